/* Topologies: who may talk to whom in which round, and with which weight.
 *
 * Peer i averages  x_i <- x_i + sum_j W_ij (x_j - x_i)  over its sources j of
 * the round; a peer that pushes gives the share C_ji of what it has to each
 * out-neighbour j. Every W here has rows and columns that sum to 1 (so W and C
 * are one matrix), but for what `doubly` of an opened topology says.
 *
 * Static undirected graphs carry the weights that `weights` names:
 *   metropolis  W_ij = 1 / (1 + max(deg_i, deg_j))
 *   lazy        half of that: W <- (I + W) / 2
 *   optimal     W = I - a L, a = 2 / (lambda_2 + lambda_n) of the Laplacian L:
 *               the best constant; a peer of high degree may keep less than 0
 *   uniform     W_ij = 1 / (1 + deg_i): rows alone sum to 1
 * Directed graphs and schedules bring the weights of their papers.
 *
 * A graph is a function of (kind, peers, seed, options): all peers compute the
 * same one without talking. Draws come from the stream TOPOLOGY of (seed; kind,
 * round). An opened topology is never written to: threads may share it.
 *
 * One file, one line in src/gossip/topology/topologies.def.
 * Test: property/test_topologies.c. */
#ifndef KITH_TOPOLOGY_H
#define KITH_TOPOLOGY_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "kith/err.h"
#include "kith/limits.h"
#include "kith/rng.h"
#include "kith/types.h"

/* X(NAME, text) */
#define KITH_WEIGHT_RULES(X)                                                   \
    X(METROPOLIS, "metropolis")                                                \
    X(OPTIMAL, "optimal")                                                      \
    X(LAZY, "lazy")                                                            \
    X(UNIFORM, "uniform")
enum kith_weights {
#define KITH_X(name, text) KITH_WEIGHTS_##name,
    KITH_WEIGHT_RULES(KITH_X)
#undef KITH_X
        KITH_WEIGHTS_COUNT
};
const char *kith_weights_name(enum kith_weights weights);

/* X(NAME, "key"): options that only some kinds read; gossip.KEY in a file. */
#define KITH_TOPOLOGY_KEYS(X)                                                  \
    X(WEIGHTS, "weights")                                                      \
    X(DEGREE, "degree")                                                        \
    X(PROBABILITY, "probability")                                              \
    X(REWIRE, "rewire")                                                        \
    X(REGIONS, "regions")                                                      \
    X(LEADERS, "leaders")                                                      \
    X(NORMS, "norms")                                                          \
    X(BUDGET, "budget")                                                        \
    X(GRAPH, "graph")                                                          \
    X(ETA, "eta")                                                              \
    X(PERIOD, "period")                                                        \
    X(PATH, "path")
enum kith_topology_key {
#define KITH_X(name, key) KITH_TOPOLOGY_KEY_##name,
    KITH_TOPOLOGY_KEYS(KITH_X)
#undef KITH_X
        KITH_TOPOLOGY_KEY_COUNT
};
#define KITH_TOPOLOGY_READS(name) (1u << KITH_TOPOLOGY_KEY_##name)

/* One line of an edge list. weight 0: by the rule. */
struct kith_topology_edge {
    kith_id from, to;
    double weight;
};

struct kith_topology_kind;
/* All zero: every kind's own defaults. */
struct kith_topology_options {
    enum kith_weights weights;
    uint32_t degree;    /* neighbours; barabasi-albert: edges of a newcomer;
                           base: most in a round. 0: the kind's default */
    double probability; /* erdos-renyi: of an edge. 0: a little more than
                           connects it */
    double rewire;      /* watts-strogatz: of a lattice edge */
    uint32_t regions;   /* 0: about the root of the peers */
    bool leaders;       /* regions: only the first of each talks outside */
    bool norms;         /* collective-sites: a round for LARS' norms */
    double budget;      /* matcha: mean share of its matchings. 0: 1/2 */
    const struct kith_topology_kind *graph; /* matcha, global-rounds: NULL:
                                               circulant */
    double eta;      /* od-equidyn: b = eta (n - 1) / n. 0: the best */
    uint32_t period; /* global-rounds: of the rounds of all. 0: 8 */
    /* file: read while the topology is built, not kept. */
    const struct kith_topology_edge *edges; /* (edge_count), ascending, once */
    uint32_t edge_count;
};

/* An opened one: plain data, may be copied; `built` is the caller's memory. */
struct kith_topology {
    const struct kith_topology_kind *kind;
    uint32_t peers;
    uint64_t seed;
    struct kith_topology_options options; /* defaults filled in */
    const void *built;                    /* NULL where size() is 0 */
    uint32_t own;    /* the kind's: what prepare() found out */
    double constant; /* optimal: a */
    bool doubly; /* columns of W sum to 1 as rows do: averages keep the mean */
};

#define KITH_TOPOLOGY_ERROR_BYTES 256

/* What a random kind does to Gamma = sum |x_i - mean|^2 in a round, expected
 * over its draws; `random`: one exchange. */
struct kith_topology_contraction {
    double mean;  /* from a random start of mean 0 */
    double worst; /* from the slowest start */
};

/* The neighbours of one peer in one round. */
struct kith_neighbours {
    kith_id self;
    uint64_t round;
    bool sources; /* directed kinds: in-neighbours, else out-neighbours */
    uint32_t count;
    kith_id *ids;    /* (KITH_DEGREE_MAX), ascending */
    double *weights; /* (KITH_DEGREE_MAX) of `weighted` kinds, else NULL */
};

struct kith_adjacency;

struct kith_topology_kind {
    const char *name, *paper, *summary;
    bool is_static;  /* the same graph at every round */
    bool directed;   /* out- and in-neighbours differ */
    bool collective; /* its rounds make up an all-reduce: for the algorithms
                        of that `schedule` alone */
    bool weighted;   /* neighbours() fills in the weights */
    unsigned keys;   /* KITH_TOPOLOGY_READS of the options that it reads */
    /* Fills in defaults, refuses what cannot be: KITH_EINVAL or KITH_ELIMIT
     * with words in error, "KEY: what was found; what is allowed" or, without a
     * key, what was found alone. NULL: everything can be. */
    enum kith_err (*prepare)(struct kith_topology *topology, char *error);
    /* Bytes of memory; NULL: none. */
    size_t (*size)(const struct kith_topology *topology);
    /* Builds the graph there; NULL where size is. May change topology->doubly.
     */
    enum kith_err (*build)(struct kith_topology *topology, void *memory,
                           char *error);
    /* Of kinds that are drawn edge by edge, until the graph is connected: fills
     * in an empty one, false where a row overflows. scratch: what size() has
     * added. */
    bool (*draw)(const struct kith_topology *topology,
                 struct kith_adjacency *graph, uint32_t *scratch,
                 struct kith_rng *rng);
    /* The most out-neighbours of `self` in a round. */
    uint32_t (*degree)(const struct kith_topology *topology, kith_id self);
    /* Fills in the list. NULL: partner() may return anybody, nothing of this
     * record is set but its names. */
    void (*neighbours)(const struct kith_topology *topology,
                       struct kith_neighbours *list);
    /* NULL: 1 for static kinds, else 0. */
    uint64_t (*period)(const struct kith_topology *topology);
    /* Period 0: whom `self` may ever meet, ascending; NULL: anybody. */
    uint32_t (*links)(const struct kith_topology *topology, kith_id self,
                      kith_id out[KITH_DEGREE_MAX]);
    /* Period 0: closed form, where there is one. */
    struct kith_topology_contraction (*contraction)(
        const struct kith_topology *topology);
};

/* Not a graph: any two peers may meet. */
static inline bool
kith_topology_is_any_pair(const struct kith_topology_kind *kind)
{
    return kind->neighbours == NULL;
}

/* NULL-terminated, in the order of topologies.def. A name is written with '-';
 * find takes '_' for it. */
extern const struct kith_topology_kind *const kith_topology_kinds[];
const struct kith_topology_kind *kith_topology_find(const char *name);
/* Options that a topology reads, KITH_TOPOLOGY_READS: the kind's, and those of
 * the graph underneath. */
unsigned kith_topology_keys(const struct kith_topology_kind *kind,
                            const struct kith_topology_options *options);

/* Sizes and builds in two steps. *topology is prepared: defaults filled in, all
 * that can be known without building is checked; *size is what build needs.
 * error: KITH_TOPOLOGY_ERROR_BYTES.
 * KITH_ELIMIT: a peer would have more than KITH_DEGREE_MAX neighbours, or the
 * like; KITH_EINVAL: an option that cannot be. 1 peer is allowed everywhere: it
 * has no neighbours. */
KITH_MUST_CHECK enum kith_err kith_topology_prepare(
    const struct kith_topology_kind *kind, uint32_t peers, uint64_t seed,
    const struct kith_topology_options *options, struct kith_topology *topology,
    size_t *size, char *error);
/* memory: `size` bytes, aligned to 8, kept; NULL where size is 0. Errors as
 * above: a random graph may turn out with too high a degree, or not connected
 * after many draws. Cost: about the edges; weights optimal and matcha: an
 * eigenvalue problem of (peers, edges). */
KITH_MUST_CHECK enum kith_err
kith_topology_build(struct kith_topology *topology, void *memory, char *error);
/* Both at once for what needs no memory: computed kinds with their defaults,
 * seed 0. KITH_EINVAL for the others. */
KITH_MUST_CHECK enum kith_err
kith_topology_open(const struct kith_topology_kind *kind, uint32_t peers,
                   struct kith_topology *topology);

/* Out-neighbours of `self` at `round`, ascending, with the weight of each;
 * returns how many. weights may be NULL. Undirected: W_self,j; directed: the
 * column share C_j,self. Cost O(degree), but for random-matching of up to 256
 * peers: O(peers). */
uint32_t kith_topology_neighbours(const struct kith_topology *topology,
                                  kith_id self, uint64_t round,
                                  kith_id out[KITH_DEGREE_MAX],
                                  double weights[KITH_DEGREE_MAX]);
/* Who sends to `self` at `round`, ascending, with the row weight W_self,j;
 * returns how many. The same as neighbours for undirected kinds. */
uint32_t kith_topology_sources(const struct kith_topology *topology,
                               kith_id self, uint64_t round,
                               kith_id in[KITH_DEGREE_MAX],
                               double weights[KITH_DEGREE_MAX]);
/* Rounds after which the schedule repeats: 1 static, 0 random for ever (or any
 * pair). */
uint64_t kith_topology_period(const struct kith_topology *topology);
#define KITH_LINKS_ANY UINT32_MAX
/* Every peer that `self` may ever exchange with, as out-neighbour or source,
 * ascending. Writes the first `max` of them and returns how many there are, at
 * most KITH_LINKS_MAX, or KITH_LINKS_ANY: everybody, nothing is written.
 * Cost O(period * degree). */
uint32_t kith_topology_links(const struct kith_topology *topology, kith_id self,
                             kith_id *ids, uint32_t max);
/* The most out-neighbours or sources that `self` has in one round; 0 for
 * any_pair. */
uint32_t kith_topology_degree(const struct kith_topology *topology,
                              kith_id self);

/* Rounds of collective-sites: within a site, between them, within it again; to
 * whom is `shift` members or sites on, at least 1. NORMS: to all members. */
enum kith_sites_way {
    KITH_SITES_REDUCE,
    KITH_SITES_BETWEEN,
    KITH_SITES_GATHER,
    KITH_SITES_NORMS
};
struct kith_sites_round {
    enum kith_sites_way way;
    uint32_t shift;
};
struct kith_sites_round
kith_topology_sites_round(const struct kith_topology *topology, uint64_t round);
/* Its sites, of as many peers each; of another topology, or NULL: as many as
 * there are where none are given, the largest divisor up to the root of the
 * peers. */
uint32_t kith_topology_sites(const struct kith_topology *topology,
                             uint32_t peers);

/* The longest avoid list. */
#define KITH_AVOID_MAX 64u
/* A partner for one two-party exchange, never self; KITH_NOBODY when alone.
 * Uniform over all others (any_pair) or over the neighbours of this round,
 * leaving out those in avoid[avoid_count] unless nobody else is left.
 * *weight: 1/2 for an undirected pair, the column share for a directed one. */
kith_id kith_topology_partner(const struct kith_topology *topology,
                              kith_id self, uint64_t round,
                              struct kith_rng *rng, const kith_id *avoid,
                              uint32_t avoid_count, double *weight);
/* Of a directed graph one that it sends to or that sends to it: either may
 * serve a peer that adopts a model. */
kith_id kith_topology_donor(const struct kith_topology *topology, kith_id self,
                            uint64_t round, struct kith_rng *rng,
                            const kith_id *avoid, uint32_t avoid_count);

/* Doubles of scratch that rho wants. */
#define KITH_RHO_STEPS 2048u
#define KITH_RHO_SCRATCH(peers) (5 * (size_t)(peers) + 2 * KITH_RHO_STEPS)
/* rho = ||W_T ... W_1 - J||_2 over one period T: what a cycle leaves of the
 * disagreement; 1 - rho is the spectral gap of a static graph. By Lanczos'
 * iteration in float64; scratch: KITH_RHO_SCRATCH(peers) doubles. Needs a
 * period and `doubly`. Exact to 1e-12 while the iteration fits its budget
 * (rings up to about 2,000 peers), above that a lower bound: *settled (NULL: of
 * no interest) is false. */
double kith_topology_rho(const struct kith_topology *topology, double *scratch,
                         bool *settled);

/* What accelerated gossip asks of a static undirected graph of 2 peers or more,
 * where everybody takes part in one exchange with a random neighbour in a unit
 * of time: chi_1, the time that the slowest disagreement takes, and chi_2, half
 * the greatest effective resistance of an edge. At `rate` exchanges a unit both
 * are that many times smaller. scratch: KITH_MIXING_SCRATCH(peers) doubles.
 * Cost O(peers^3): a second at 1,000.
 * Test: unit/test_acid.c. */
struct kith_topology_mixing {
    double slowest, resistance;
};
#define KITH_MIXING_PEERS_MAX 1024u
#define KITH_MIXING_SCRATCH(peers)                                             \
    ((size_t)(peers) * (peers) + 3 * (size_t)(peers) + 2 * KITH_RHO_STEPS)
struct kith_topology_mixing
kith_topology_mixing(const struct kith_topology *graph, double *scratch);

#endif
