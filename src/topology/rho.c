/* rho = ||W - J||_2, J = 1 1^T / n: how much of the disagreement one round
 * leaves. Power iteration on B^T B, B = W - J, from a seeded random start:
 *
 *   y = B x,  z = B^T y,  rho^2 = |y|^2 / |x|^2,  x <- z / |z|.
 */
#include "kith/topology.h"

#include <math.h>

#include "kith/assert.h"

/* Edge visits of one call, about: seconds, not minutes. */
#define VISITS_MAX UINT64_C(1000000000)
/* Left to gain, relative to rho^2, when the iteration may stop. */
#define TOLERANCE 1e-14

static double dot(uint32_t n, const double *x, const double *y)
{
    double sum = 0;
    for (uint32_t i = 0; i < n; i++)
        sum += x[i] * y[i];
    return sum;
}

static void subtract_mean(uint32_t n, double *x)
{
    double sum = 0;
    for (uint32_t i = 0; i < n; i++)
        sum += x[i];
    for (uint32_t i = 0; i < n; i++)
        x[i] -= sum / n;
}

/* out <- W x, or W^T x: row i of W is i's own weights. Returns the edges. */
static uint64_t multiply(const struct kith_topology *topology, bool transpose,
                         const double *x, double *out)
{
    kith_id peers[KITH_DEGREE_MAX];
    double weights[KITH_DEGREE_MAX];
    uint64_t edges = 0;

    for (kith_id i = 0; i < topology->peers; i++)
        out[i] = 0;
    for (kith_id i = 0; i < topology->peers; i++) {
        const uint32_t count =
            kith_topology_neighbours(topology, i, 0, peers, weights);
        double own = 1;
        for (uint32_t k = 0; k < count; k++) {
            own -= weights[k];
            if (transpose)
                out[peers[k]] += weights[k] * x[i];
            else
                out[i] += weights[k] * x[peers[k]];
        }
        out[i] += own * x[i];
        edges += count + 1;
    }
    return edges;
}

/* The estimates rise geometrically, by steps d with ratio r: d r / (1 - r) is
 * still to come. */
static bool is_settled(double value, double step, double last_step)
{
    if (step <= 1e-16 * value)
        return true;
    const double ratio = step / last_step;
    return ratio < 1 && step * ratio / (1 - ratio) < TOLERANCE * value;
}

double kith_topology_rho(const struct kith_topology *topology, double *scratch)
{
    KITH_ASSERT(topology->kind->is_static);
    const uint32_t n = topology->peers;
    double *const x = scratch, *const y = scratch + n, *const z = y + n;
    struct kith_rng rng;
    kith_rng_init(&rng, n, KITH_STREAM_TOPOLOGY, 0);
    for (uint32_t i = 0; i < n; i++)
        x[i] = kith_rng_double(&rng) - 0.5;
    subtract_mean(n, x);

    double value = 0, last_step = 0;
    uint32_t settled = 0;
    for (uint64_t visits = 0; visits < VISITS_MAX && settled < 3;) {
        const double norm = sqrt(dot(n, x, x));
        if (norm < 1e-14)
            return 0;
        for (uint32_t i = 0; i < n; i++)
            x[i] /= norm;
        /* x has mean 0 and W is doubly stochastic: B x = W x. The mean that
         * rounding brings in is taken out again. */
        visits += multiply(topology, false, x, y);
        subtract_mean(n, y);
        const double next = dot(n, y, y);
        visits += multiply(topology, true, y, z);
        subtract_mean(n, z);
        for (uint32_t i = 0; i < n; i++)
            x[i] = z[i];

        const double step = fabs(next - value);
        settled = is_settled(next, step, last_step) ? settled + 1 : 0;
        value = next;
        last_step = step;
    }
    return sqrt(value);
}
