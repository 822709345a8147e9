/* What guards that see all models of a round do alike. */
#include "rounds.h"

#include <string.h>

#include "kith/assert.h"

void kith_guard_replace(struct kith_guard_round *round, kith_guard_rule *rule,
                        void *state)
{
    const struct kith_backend *host = round->host;
    const uint32_t n = round->count + 1;
    kith_guard_values values[GUARD_MODELS] = {0}, found;
    for (size_t at = 0, count; at < round->dim; at += count) {
        const size_t skip = at * host->element_bytes;
        count = round->dim - at < GUARD_CHUNK ? round->dim - at : GUARD_CHUNK;
        for (uint32_t i = 0; i < n; i++)
            host->read(count, (const char *)round->models[i] + skip, values[i]);
        rule(state, values, n, found);
        host->write(count, found, (char *)round->merged + skip);
    }
}

void kith_guard_distances(const struct kith_guard_round *round, double *squared)
{
    const uint32_t n = round->count + 1;
    for (uint32_t i = 0; i < n; i++) {
        squared[i * n + i] = 0;
        for (uint32_t j = 0; j < i; j++) {
            const double found = round->host->distance_squared(
                round->dim, round->models[i], round->models[j]);
            squared[i * n + j] = squared[j * n + i] =
                found <= 1e300 ? found : 1e300;
        }
    }
}

void kith_guard_sort(double *values, uint32_t n)
{
    KITH_ASSERT(n <= GUARD_MODELS);
    for (uint32_t i = 1; i < n; i++) {
        const double value = values[i];
        uint32_t at = i;
        for (; at > 0 && values[at - 1] > value; at--)
            values[at] = values[at - 1];
        values[at] = value;
    }
}

/* A loop that compilers carry out for several coordinates at once. */
static void in_order(double *restrict less, double *restrict more)
{
    for (unsigned k = 0; k < GUARD_CHUNK; k++) {
        const double a = less[k], b = more[k];
        less[k] = a < b ? a : b;
        more[k] = a > b ? a : b;
    }
}

/* Which values are compared does not depend on any: all coordinates of a chunk
 * at once. Odd-even merging of runs of p values (Batcher 1968; Knuth,
 * algorithm 5.2.2M). */
static void sort_each(kith_guard_values *values, uint32_t n)
{
    for (uint32_t p = 1; p < n; p *= 2)
        for (uint32_t apart = p; apart > 0; apart /= 2)
            for (uint32_t from = apart % p; from + apart < n; from += 2 * apart)
                for (uint32_t i = from; i < from + apart && i + apart < n; i++)
                    if (i / (2 * p) == (i + apart) / (2 * p))
                        in_order(values[i], values[i + apart]);
}

void kith_guard_trimmed(kith_guard_values *values, uint32_t n, uint32_t cut,
                        double *found)
{
    const double middle = n - 2 * cut;
    KITH_ASSERT(n > 2 * cut);
    sort_each(values, n);
    for (unsigned k = 0; k < GUARD_CHUNK; k++)
        found[k] = 0;
    for (uint32_t i = cut; i < n - cut; i++)
        for (unsigned k = 0; k < GUARD_CHUNK; k++)
            found[k] += values[i][k] / middle;
}

uint32_t kith_guard_liars(const struct kith_guard_round *round)
{
    const uint32_t most = round->count / 2; /* (n - 1) / 2 */
    const uint32_t liars = round->config->liars;
    return liars < most ? liars : most;
}
