/* rho = ||W_T ... W_1 - J||_2, J = 1 1^T / n: how much of the disagreement one
 * period leaves. Where W is symmetric rho is its largest eigenvalue on vectors
 * of mean 0, by magnitude; else rho^2 is that of B^T B, B = W_T ... W_1. */
#include "topology_kinds.h"

#include <math.h>
#include <string.h>

#include "kith/assert.h"

struct cycle {
    const struct kith_topology *topology;
    uint64_t rounds;
    double *x, *y; /* (n) each */
};

/* out <- W_round x, or its transpose: row i of W is what i gives its sources,
 * and the rest to itself. */
static void multiply(const struct kith_topology *topology, uint64_t round,
                     bool transpose, const double *x, double *out)
{
    kith_id peers[KITH_DEGREE_MAX];
    double weights[KITH_DEGREE_MAX];
    memset(out, 0, topology->peers * sizeof *out);
    for (kith_id i = 0; i < topology->peers; i++) {
        const uint32_t count =
            kith_topology_sources(topology, i, round, peers, weights);
        double own = 1;
        for (uint32_t k = 0; k < count; k++) {
            own -= weights[k];
            if (transpose)
                out[peers[k]] += weights[k] * x[i];
            else
                out[i] += weights[k] * x[peers[k]];
        }
        out[i] += own * x[i];
    }
}

static void apply_symmetric(const void *context, const double *x, double *out)
{
    const struct cycle *cycle = context;
    multiply(cycle->topology, 0, false, x, out);
}

/* out <- B^T B x. */
static void apply_squared(const void *context, const double *x, double *out)
{
    const struct cycle *cycle = context;
    double *from = cycle->x, *to = cycle->y;
    memcpy(from, x, cycle->topology->peers * sizeof *x);
    for (uint64_t step = 0; step < 2 * cycle->rounds; step++) {
        const bool back = step >= cycle->rounds;
        const uint64_t round = back ? 2 * cycle->rounds - 1 - step : step;
        multiply(cycle->topology, round, back, from, to);
        double *const spare = from;
        from = to;
        to = spare;
    }
    memcpy(out, from, cycle->topology->peers * sizeof *out);
}

double kith_topology_rho(const struct kith_topology *topology, double *scratch,
                         bool *settled)
{
    const uint32_t n = topology->peers;
    struct cycle cycle = {.topology = topology,
                          .rounds = kith_topology_period(topology),
                          .x = scratch,
                          .y = scratch + n};
    KITH_ASSERT(cycle.rounds > 0 && topology->doubly);
    if (settled != NULL)
        *settled = true;
    if (n == 1)
        return 0;
    const bool symmetric = cycle.rounds == 1 && !topology->kind->directed;
    const uint64_t visits = (symmetric ? 8 : 16) * cycle.rounds * n;
    const struct kith_spectrum ends =
        kith_spectrum_find(n, symmetric ? apply_symmetric : apply_squared,
                           &cycle, visits, scratch + 2 * (size_t)n);
    if (settled != NULL)
        *settled = ends.settled;
    return symmetric ? fmax(fabs(ends.low), fabs(ends.high))
                     : sqrt(fmax(ends.high, 0));
}
