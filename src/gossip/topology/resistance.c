/* How fast pairs of neighbours agree, as accelerated gossip asks:
 *
 *   L = sum over edges of lambda_ij (e_i - e_j) (e_i - e_j)^T
 *   chi_1 = 1 / lambda_2(L)
 *   chi_2 = max over edges of (e_i - e_j)^T L^+ (e_i - e_j) / 2
 *
 * lambda_ij = (1 / deg_i + 1 / deg_j) / 2: everybody turns to a random
 * neighbour every other unit of time, so that one takes part in one exchange in
 * a unit on average. L^+ = (L + J / n)^-1 - J / n, whose second term edges do
 * not see; the inverse is Gauss' and Jordan's, in place: positive definite, so
 * no pivots.
 *
 * Nabli et al., NeurIPS 2023 (2306.08289), section 3. */
#include "topology_kinds.h"

#include "kith/assert.h"

static double rate_of(const struct kith_topology *graph, kith_id i, kith_id j)
{
    return (1.0 / graph->kind->degree(graph, i) +
            1.0 / graph->kind->degree(graph, j)) /
           2;
}

/* out <- L x */
static void apply(const void *context, const double *x, double *out)
{
    const struct kith_topology *graph = context;
    kith_id peers[KITH_DEGREE_MAX];
    for (kith_id i = 0; i < graph->peers; i++) {
        const uint32_t count =
            kith_topology_neighbours(graph, i, 0, peers, NULL);
        out[i] = 0;
        for (uint32_t k = 0; k < count; k++)
            out[i] += rate_of(graph, i, peers[k]) * (x[i] - x[peers[k]]);
    }
}

/* m (n, n) <- L + J / n */
static void fill(const struct kith_topology *graph, double *m)
{
    const size_t n = graph->peers;
    kith_id peers[KITH_DEGREE_MAX];
    for (size_t at = 0; at < n * n; at++)
        m[at] = 1.0 / (double)n;
    for (kith_id i = 0; i < graph->peers; i++) {
        const uint32_t count =
            kith_topology_neighbours(graph, i, 0, peers, NULL);
        for (uint32_t k = 0; k < count; k++) {
            const double rate = rate_of(graph, i, peers[k]);
            m[i * n + i] += rate;
            m[i * n + peers[k]] -= rate;
        }
    }
}

static void invert(size_t n, double *m)
{
    for (size_t p = 0; p < n; p++) {
        double *const row = m + p * n;
        const double pivot = row[p];
        row[p] = 1;
        for (size_t j = 0; j < n; j++)
            row[j] /= pivot;
        for (size_t i = 0; i < n; i++) {
            double *const other = m + i * n;
            const double factor = other[p];
            if (i == p)
                continue;
            other[p] = 0;
            for (size_t j = 0; j < n; j++)
                other[j] -= factor * row[j];
        }
    }
}

static double resistance(const struct kith_topology *graph, const double *m)
{
    const size_t n = graph->peers;
    kith_id peers[KITH_DEGREE_MAX];
    double most = 0;
    for (kith_id i = 0; i < graph->peers; i++) {
        const uint32_t count =
            kith_topology_neighbours(graph, i, 0, peers, NULL);
        for (uint32_t k = 0; k < count; k++) {
            const size_t j = peers[k];
            const double across =
                m[i * n + i] + m[j * n + j] - m[i * n + j] - m[j * n + i];
            most = across / 2 > most ? across / 2 : most;
        }
    }
    return most;
}

struct kith_topology_mixing
kith_topology_mixing(const struct kith_topology *graph, double *scratch)
{
    const size_t n = graph->peers;
    KITH_ASSERT(graph->kind->is_static && !graph->kind->directed && n >= 2);
    const struct kith_spectrum spectrum = kith_spectrum_find(
        graph->peers, apply, graph, 8 * (uint64_t)n, scratch + n * n);
    fill(graph, scratch);
    invert(n, scratch);
    return (struct kith_topology_mixing){
        .slowest = 1 / spectrum.low, .resistance = resistance(graph, scratch)};
}
