/* What all topologies share: opening, weights, links.
 *
 *   metropolis  W_ij = 1 / (1 + max(deg_i, deg_j))
 *   lazy        half of that
 *   uniform     W_ij = 1 / (1 + deg_i)
 *   optimal     W_ij = a = 2 / (lambda_2 + lambda_n)
 *   directed    share 1 / (1 + out-degree) to each out-neighbour, and
 *               1 / (1 + in-degree) for what comes from each source
 *
 * Metropolis-Hastings: Boyd, Diaconis and Xiao, SIAM Review 46(4), 2004; the
 * best constant: Xiao and Boyd, Systems and Control Letters 53, 2004. */
#include "topology_kinds.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "kith/assert.h"
#include "kith/hash.h"

const char *kith_weights_name(enum kith_weights weights)
{
    static const char *const names[] = {
#define KITH_X(name, text) text,
        KITH_WEIGHT_RULES(KITH_X)
#undef KITH_X
    };
    return weights < KITH_WEIGHTS_COUNT ? names[weights] : NULL;
}

void kith_topology_stream(const struct kith_topology *topology, uint64_t round,
                          struct kith_rng *rng)
{
    const char *const name = topology->kind->name;
    const uint64_t kind = kith_hash_bytes(KITH_HASH_START, name, strlen(name));
    kith_rng_init(rng, topology->seed, KITH_STREAM_TOPOLOGY,
                  (kind << 32) ^ round);
}

uint32_t kith_topology_log2(uint32_t peers)
{
    uint32_t tau = 0;
    while (UINT64_C(1) << tau < peers)
        tau++;
    return tau;
}

enum kith_err kith_topology_refuse(char *error, enum kith_err code,
                                   const char *format, ...)
{
    va_list list;
    va_start(list, format);
    (void)vsnprintf(error, KITH_TOPOLOGY_ERROR_BYTES, format, list);
    va_end(list);
    return code;
}

void kith_topology_insert(kith_id *ids, double *weights, uint32_t count,
                          kith_id id, double weight)
{
    uint32_t at = count;
    for (; at > 0 && ids[at - 1] > id; at--) {
        ids[at] = ids[at - 1];
        if (weights != NULL)
            weights[at] = weights[at - 1];
    }
    ids[at] = id;
    if (weights != NULL)
        weights[at] = weight;
}

static bool is_optimal(const struct kith_topology *topology)
{
    return (topology->kind->keys & KITH_TOPOLOGY_READS(WEIGHTS)) &&
           topology->options.weights == KITH_WEIGHTS_OPTIMAL;
}

static size_t own_size(const struct kith_topology *topology)
{
    const struct kith_topology_kind *const kind = topology->kind;
    return kind->size == NULL ? 0 : (kind->size(topology) + 7) / 8 * 8;
}

/* No peer of more neighbours than a round has room for. */
static enum kith_err check_degrees(const struct kith_topology *topology,
                                   char *error)
{
    const struct kith_topology_kind *const kind = topology->kind;
    for (kith_id self = 0; self < topology->peers; self++) {
        const uint32_t degree = kind->degree(topology, self);
        if (degree > KITH_DEGREE_MAX)
            return kith_topology_refuse(
                error, KITH_ELIMIT,
                "found %s, which gives a peer of %u more than %u neighbours; "
                "use a sparser one or fewer peers",
                kind->name, topology->peers, KITH_DEGREE_MAX);
    }
    return KITH_OK;
}

enum kith_err kith_topology_prepare(const struct kith_topology_kind *kind,
                                    uint32_t peers, uint64_t seed,
                                    const struct kith_topology_options *options,
                                    struct kith_topology *topology,
                                    size_t *size, char *error)
{
    KITH_ASSERT(kith_topology_is_any_pair(kind) || kind->neighbours != NULL);
    KITH_ASSERT((kind->size == NULL) == (kind->build == NULL));
    *size = 0;
    *topology = (struct kith_topology){.kind = kind,
                                       .peers = peers,
                                       .seed = seed,
                                       .doubly = !kind->collective};
    if (options != NULL)
        topology->options = *options;
    if (peers == 0 || peers > KITH_PEERS_MAX)
        return kith_topology_refuse(error, KITH_ELIMIT,
                                    "found %u peers; allowed: 1 to %u", peers,
                                    KITH_PEERS_MAX);
    if (kind->prepare != NULL) {
        const enum kith_err err = kind->prepare(topology, error);
        if (err != KITH_OK)
            return err;
    }
    *size = own_size(topology);
    if (is_optimal(topology))
        *size += KITH_RHO_SCRATCH(peers) * sizeof(double);
    return *size == own_size(topology) && *size == 0 &&
                   !kith_topology_is_any_pair(kind)
               ? check_degrees(topology, error)
               : KITH_OK;
}

/* uniform on a graph that is not regular. */
static bool is_regular(const struct kith_topology *topology)
{
    const uint32_t degree = topology->kind->degree(topology, 0);
    for (kith_id self = 1; self < topology->peers; self++)
        if (topology->kind->degree(topology, self) != degree)
            return false;
    return true;
}

enum kith_err kith_topology_build(struct kith_topology *topology, void *memory,
                                  char *error)
{
    const struct kith_topology_kind *const kind = topology->kind;
    const size_t own = own_size(topology);
    if (kind->build != NULL) {
        topology->built = memory;
        const enum kith_err err = kind->build(topology, memory, error);
        if (err != KITH_OK)
            return err;
    }
    topology->options.edges = NULL;
    if (kith_topology_is_any_pair(kind))
        return KITH_OK;
    const enum kith_err err = check_degrees(topology, error);
    if (err != KITH_OK || !(kind->keys & KITH_TOPOLOGY_READS(WEIGHTS)))
        return err;
    if (topology->options.weights == KITH_WEIGHTS_UNIFORM)
        topology->doubly = topology->doubly && is_regular(topology);
    if (is_optimal(topology) && topology->peers > 1) {
        const struct kith_spectrum spectrum = kith_spectrum_laplacian(
            topology, (double *)memory + own / sizeof(double));
        if (!spectrum.settled)
            return kith_topology_refuse(
                error, KITH_ELIMIT,
                "weights: found optimal, but the spectrum of %s with %u peers "
                "takes too long; allowed: metropolis, lazy, uniform",
                kind->name, topology->peers);
        topology->constant = 2 / (spectrum.low + spectrum.high);
    }
    return KITH_OK;
}

enum kith_err kith_topology_open(const struct kith_topology_kind *kind,
                                 uint32_t peers, struct kith_topology *topology)
{
    char error[KITH_TOPOLOGY_ERROR_BYTES];
    size_t size;
    const enum kith_err err =
        kith_topology_prepare(kind, peers, 0, NULL, topology, &size, error);
    if (err == KITH_OK && size > 0)
        return KITH_EINVAL;
    return err == KITH_OK ? kith_topology_build(topology, NULL, error) : err;
}

double kith_topology_weigh(const struct kith_topology *topology,
                           uint32_t own_degree, kith_id other)
{
    const struct kith_topology_kind *const kind = topology->kind;
    if (kind->directed)
        return 1.0 / (1.0 + own_degree);
    if (topology->options.weights == KITH_WEIGHTS_OPTIMAL)
        return topology->constant;
    if (topology->options.weights == KITH_WEIGHTS_UNIFORM)
        return 1.0 / (1.0 + own_degree);
    const uint32_t theirs = kind->degree(topology, other);
    const double weight =
        1.0 / (1.0 + (theirs > own_degree ? theirs : own_degree));
    return topology->options.weights == KITH_WEIGHTS_LAZY ? weight / 2 : weight;
}

typedef uint32_t list_function(const struct kith_topology *topology,
                               kith_id self, uint64_t round,
                               kith_id out[KITH_DEGREE_MAX],
                               double weights[KITH_DEGREE_MAX]);

static uint32_t list(const struct kith_topology *topology,
                     list_function *function, kith_id self, uint64_t round,
                     kith_id out[KITH_DEGREE_MAX],
                     double weights[KITH_DEGREE_MAX])
{
    double unused[KITH_DEGREE_MAX];
    KITH_ASSERT(self < topology->peers);
    const uint32_t count = function(topology, self, round, out,
                                    weights == NULL ? unused : weights);
    KITH_ASSERT(count <= KITH_DEGREE_MAX);
    if (weights != NULL && !topology->kind->weighted)
        for (uint32_t i = 0; i < count; i++)
            weights[i] = kith_topology_weigh(topology, count, out[i]);
    return count;
}

uint32_t kith_topology_neighbours(const struct kith_topology *topology,
                                  kith_id self, uint64_t round,
                                  kith_id out[KITH_DEGREE_MAX],
                                  double weights[KITH_DEGREE_MAX])
{
    const struct kith_topology_kind *const kind = topology->kind;
    return kith_topology_is_any_pair(kind) || topology->peers == 1
               ? 0
               : list(topology, kind->neighbours, self, round, out, weights);
}

uint32_t kith_topology_sources(const struct kith_topology *topology,
                               kith_id self, uint64_t round,
                               kith_id in[KITH_DEGREE_MAX],
                               double weights[KITH_DEGREE_MAX])
{
    const struct kith_topology_kind *const kind = topology->kind;
    return kith_topology_is_any_pair(kind) || topology->peers == 1
               ? 0
               : list(topology,
                      kind->directed ? kind->sources : kind->neighbours, self,
                      round, in, weights);
}

uint64_t kith_topology_period(const struct kith_topology *topology)
{
    const struct kith_topology_kind *const kind = topology->kind;
    if (kind->period != NULL)
        return kind->period(topology);
    return kind->is_static ? 1 : 0;
}

/* ids[count], ascending, with those of more[more_count] that are new. */
static uint32_t join(kith_id ids[KITH_LINKS_MAX], uint32_t count,
                     const kith_id *more, uint32_t more_count)
{
    for (uint32_t i = 0; i < more_count; i++) {
        uint32_t low = 0, high = count;
        while (low < high) {
            const uint32_t middle = (low + high) / 2;
            if (ids[middle] < more[i])
                low = middle + 1;
            else
                high = middle;
        }
        if (low < count && ids[low] == more[i])
            continue;
        KITH_ASSERT(count < KITH_LINKS_MAX);
        memmove(ids + low + 1, ids + low, (count - low) * sizeof *ids);
        ids[low] = more[i];
        count++;
    }
    return count;
}

uint32_t kith_topology_links(const struct kith_topology *topology, kith_id self,
                             kith_id *ids, uint32_t max)
{
    const struct kith_topology_kind *const kind = topology->kind;
    const uint64_t period = kith_topology_period(topology);
    kith_id all[KITH_LINKS_MAX], some[KITH_DEGREE_MAX];
    uint32_t count = 0;
    KITH_ASSERT(self < topology->peers);
    if (topology->peers == 1)
        return 0;
    if (period == 0 && kind->links == NULL)
        return KITH_LINKS_ANY;
    if (period == 0)
        count = join(all, 0, some, kind->links(topology, self, some));
    for (uint64_t round = 0; round < period; round++) {
        count =
            join(all, count, some,
                 kith_topology_neighbours(topology, self, round, some, NULL));
        if (kind->directed)
            count =
                join(all, count, some,
                     kith_topology_sources(topology, self, round, some, NULL));
    }
    for (uint32_t i = 0; i < count && i < max; i++)
        ids[i] = all[i];
    return count;
}

uint32_t kith_topology_degree(const struct kith_topology *topology,
                              kith_id self)
{
    const struct kith_topology_kind *const kind = topology->kind;
    if (kith_topology_is_any_pair(kind) || topology->peers == 1)
        return 0;
    uint32_t degree = kind->degree(topology, self);
    if (kind->directed && kind->is_static) {
        kith_id in[KITH_DEGREE_MAX];
        const uint32_t count =
            kith_topology_sources(topology, self, 0, in, NULL);
        degree = count > degree ? count : degree;
    }
    return degree;
}

unsigned kith_topology_keys(const struct kith_topology_kind *kind,
                            const struct kith_topology_options *options)
{
    if (!(kind->keys & KITH_TOPOLOGY_READS(GRAPH)))
        return kind->keys;
    const struct kith_topology_kind *const graph =
        options->graph == NULL ? &kith_topology_circulant : options->graph;
    return kind->keys | (graph->keys & ~KITH_TOPOLOGY_READS(WEIGHTS));
}
