/* What guards that see all models of a round do alike. */
#include "rounds.h"

#include <math.h>

#include "kith/assert.h"

/* Values of all models that are looked at together. */
enum { CHUNK = 32 };

void kith_guard_replace(struct kith_guard_round *round, kith_guard_rule *rule,
                        void *state)
{
    const struct kith_backend *host = round->host;
    const uint32_t n = round->count + 1;
    double values[GUARD_MODELS][CHUNK], column[GUARD_MODELS], found[CHUNK];
    for (size_t at = 0, count; at < round->dim; at += count) {
        const size_t skip = at * host->element_bytes;
        count = round->dim - at < CHUNK ? round->dim - at : CHUNK;
        for (uint32_t i = 0; i < n; i++)
            host->read(count, (const char *)round->models[i] + skip, values[i]);
        for (size_t k = 0; k < count; k++) {
            for (uint32_t i = 0; i < n; i++)
                column[i] = values[i][k];
            found[k] = rule(state, column, n);
        }
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

double kith_guard_trimmed(double *values, uint32_t n, uint32_t cut)
{
    double sum = 0;
    KITH_ASSERT(n > 2 * cut);
    for (uint32_t i = 1; i < n; i++) {
        const double value = values[i];
        uint32_t at = i;
        for (; at > 0 && values[at - 1] > value; at--)
            values[at] = values[at - 1];
        values[at] = value;
    }
    for (uint32_t i = cut; i < n - cut; i++)
        sum += values[i] / (double)(n - 2 * cut);
    return sum;
}

uint32_t kith_guard_liars(const struct kith_guard_round *round)
{
    const uint32_t most = round->count / 2; /* (n - 1) / 2 */
    const uint32_t liars = round->config->liars;
    return liars < most ? liars : most;
}
