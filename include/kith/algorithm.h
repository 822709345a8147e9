/* An algorithm: a choice on each axis, and a few lines of arithmetic.
 *
 * The core reads the declared choices; the worker runs the hooks over backend
 * vectors. One file, one line in src/gossip/algorithm/algorithms.def.
 *
 *   own step       before_step   direction   (optimiser)   after_step
 *   an exchange    make          merge, once for each edge
 *   a round        make          merge, once for each edge          finish
 */
#ifndef KITH_ALGORITHM_H
#define KITH_ALGORITHM_H

#include <stdbool.h>
#include <stddef.h>

#include "kith/backend.h"
#include "kith/err.h"
#include "kith/message.h"
#include "kith/topology.h"
#include "kith/work.h"

struct kith_compression; /* compressor.h */

/* Keys of `gossip:` that only some algorithms read: coefficients of their
 * rules, under the names of the papers.
 * X(NAME, key, lowest, highest, help) */
#define KITH_GOSSIP_KEYS(X)                                                    \
    X(ELASTICITY, "elasticity", 0, 0.5,                                        \
      "how far the two move towards each other")                               \
    X(CONSENSUS, "consensus", 0, 4, "how far the mean draws: gamma or c")      \
    X(MOMENTUM, "momentum", 0, 0.9999, "the outer one")                        \
    X(DECAY, "decay", 0, 0.9999, "how slowly its buffer follows")              \
    X(RATE, "rate", 0, 16, "the outer rate")                                   \
    X(SHARE, "share", 1e-9, 1, "share of the coordinates in a step")           \
    X(RADIUS, "radius", 0, 1e30, "a difference's most; 0: adaptive")           \
    X(FRAGMENTS, "fragments", 1, 256, "parts, one in each round")              \
    X(BLEND, "blend", 0, 1, "share of the own model that stays")               \
    X(MIXING, "mixing", 0, 16, "eta, per exchange; 0: from the graph")         \
    X(STRENGTH, "strength", 0, 64, "alpha of the copy; 0: from the graph")     \
    X(OUTER_EVERY, "outer_every", 1, 1e6,                                      \
      "rounds from one outer step to the next")                                \
    X(ROWS, "rows", 1, 15, "of a sketch, an odd number")                       \
    X(COLUMNS, "columns", 1e-3, 1e6, "of a sketch, times the values kept")     \
    X(TRUNCATE, "truncate", 0, 1e6,                                            \
      "what is sketched, times the values kept; 0: all")                       \
    X(CANDIDATES, "candidates", 0, 1e6,                                        \
      "asked for exactly, times the values kept; 0: estimates are taken")      \
    X(BUCKETS, "buckets", 1, 64,                                               \
      "parts of a gradient, each sent while the rest is computed")             \
    X(URGENT, "urgent", 1, 64,                                                 \
      "of them the first layers', sent in the order of the next step")
enum kith_gossip_key {
#define KITH_X(name, key, low, high, help) KITH_GOSSIP_##name,
    KITH_GOSSIP_KEYS(KITH_X)
#undef KITH_X
        KITH_GOSSIP_KEY_COUNT
};

/* Vectors of an algorithm's own, beside x and the exchange's slots. */
#define KITH_ALGORITHM_VECTORS_MAX 6u
#define KITH_EDGE_VECTORS_MAX 4u

/* Numbers kept for each neighbour, 0 at the start. */
#define KITH_EDGE_SCALARS 2u

/* What a hook may touch. Vectors are (dim) on the peer's backend. */
struct kith_algebra {
    const struct kith_backend *backend;
    size_t dim;
    uint32_t peers;
    kith_id self;
    uint64_t seed;
    const double *coefficients; /* (KITH_GOSSIP_KEY_COUNT) */
    const struct kith_topology *graph;
    const struct kith_compression *compression; /* of (dim) */
    void *live;                                 /* x */
    /* MERGES_BESIDE: x before it, where snapshots stand in it, and `live` holds
     * nothing yet; else NULL. */
    const void *before;
    double *scalars; /* (scalar_count) the algorithm's own, kept per peer */
    void *const *vectors; /* (vectors) its own */
    void *scratch;        /* (scratch_bytes) holds nothing between two hooks */
    uint32_t *places;     /* (places) nor do they; in memory that is shared */
    /* Of the step: what the optimiser gets, (trained), may be changed; the
     * learning rate of this step; parameters that train come first in x.
     * SHARES_GRADIENTS: in a round, too; NULL where there was no step since the
     * optimiser's last one. */
    void *gradient;
    size_t decayed, trained; /* the layout's */
    uint32_t layers;         /* weight tensors, all of `decayed` */
    double rate;
    uint64_t step;
    uint32_t every; /* own steps between two exchanges */
    /* Of the exchange or the round: kith_work's. */
    uint64_t round;
    /* Of the edge. */
    void *sent;           /* the edge's snapshot slot */
    const void *received; /* the edge's inbox, NULL if nothing came */
    double withheld;      /* share of it that a guard does not let in */
    /* Of a round: what is kept for all its neighbours, (edge_count,
     * edge_vectors) and (edge_count, KITH_EDGE_SCALARS), which of them this
     * edge is; in `finish` the edges that were merged. */
    void *const *edges;
    double *edge_scalars;
    uint32_t edge_count, edge_index;
    double given; /* make: shares of the messages that were made before */
    unsigned edge_vectors;               /* for each neighbour */
    const struct kith_work_edge *merged; /* (merged_count) */
    const void *const *inboxes;          /* (merged_count) what came of each */
    uint32_t merged_count;
};

enum kith_wait {
    KITH_WAIT_NO,     /* training goes on during an exchange */
    KITH_WAIT_ROUND,  /* step t + 1 is taken while round t is under way, step
                         t + 2 waits for it: x <- W x - eta g */
    KITH_WAIT_STRICT, /* step t + 1 waits for round t: x <- W (x - eta g) */
};

/* What an algorithm needs, allows, keeps or does; a set of them is its `flags`.
 * X(NAME, bit, key): `key` is its name in `kith list`, NULL: not listed. */
#define KITH_ALGORITHM_FLAGS(X)                                                \
    /* A column-stochastic share is enough. */                                 \
    X(ALLOWS_DIRECTED_LINKS, 0, "directed")                                    \
    /* The sum of x, or of x by its weight, changes by gradients alone. */     \
    X(CONSERVES_SUM, 1, "conserves_sum")                                       \
    /* Decisions depend on the values of models. */                            \
    X(DECIDES_BY_VALUES, 2, "value_driven")                                    \
    /* State is kept for each neighbour. */                                    \
    X(NEEDS_STATIC_GRAPH, 3, "fixed_graph")                                    \
    X(NEEDS_TREE, 4, "tree")                                                   \
    /* A lost message leaves a bias behind, */                                 \
    X(NEEDS_LOSSLESS_LINK, 5, "lossless")                                      \
    /* and so does a peer that leaves or restarts. */                          \
    X(NEEDS_STABLE_MEMBERS, 6, "no_churn")                                     \
    /* The fixed point has no bias where the peers' data differ. */            \
    X(REMOVES_DATA_BIAS, 7, "exact")                                           \
    /* Eigenvalues of W above -1/3: `weights: lazy` where a file names none.   \
     */                                                                        \
    X(NEEDS_LAZY_WEIGHTS, 8, "lazy")                                           \
    X(TAKES_COMPRESSOR, 9, "compresses")                                       \
    /* A round makes a message of its own for each neighbour. */               \
    X(SENDS_EDGE_MESSAGES, 10, NULL)                                           \
    /* At most one exchange at a time, asked for or answered; one is started   \
     * with probability 1/(2H) a step. Where two may overlap, deltas stay      \
     * exact negatives, but of models that have moved: pairs mix about 0.6 as  \
     * fast. */                                                                \
    X(NEEDS_EXCLUSIVE_EXCHANGE, 11, NULL)                                      \
    /* A round's message takes mass out of x: delta_sum. */                    \
    X(SPLITS_MASS, 12, NULL)                                                   \
    /* Messages are bytes that `merge` checks: what a compressor makes, and of \
     * a raw one vectors like any other; without KITH_TAKES_COMPRESSOR its own \
     * (kith_algorithm_sends_bytes). */                                        \
    X(CHECKS_ITS_MESSAGES, 13, NULL)                                           \
    /* Own steps are z <- z - eta g(z), whatever `factor` is; at x they count  \
     * by weight. */                                                           \
    X(STEPS_AT_Z, 14, NULL)                                                    \
    /* `merge` is kith_algorithm_mix and asks nothing else of x. */            \
    X(MERGES_BESIDE, 15, NULL)                                                 \
    /* What is received is a model, or two vectors, and `merge` adds weight    \
     * (received - sent) of it: a guard may make the weight less. Or it comes  \
     * with a weight that `merge` keeps (kith_algorithm_gives_weight): of what \
     * is `withheld` it takes own values in the place of the others. */        \
    X(TAKES_GUARD, 16, "guarded")                                              \
    /* Its messages must arrive as they were made: totals that grow, sums that \
     * take the place of x, or what the sender has added to itself already.    \
     * Formats that round are refused. */                                      \
    X(NEEDS_EXACT_MESSAGES, 17, "exact_messages")                              \
    /* A step computes a gradient and leaves x alone; rounds turn it into the  \
     * mean of all peers', along which the optimiser steps where a cycle ends. \
     */                                                                        \
    X(SHARES_GRADIENTS, 18, "gradients")                                       \
    /* Its arithmetic goes over single values, or bytes of its own, and so     \
     * over vectors of a host alone. */                                        \
    X(NEEDS_HOST, 19, NULL)
enum kith_algorithm_flag {
#define KITH_X(name, bit, key) KITH_##name = 1u << (bit),
    KITH_ALGORITHM_FLAGS(KITH_X)
#undef KITH_X
};

struct kith_algorithm {
    const char *name;    /* required */
    const char *paper;   /* required: authors, venue, year */
    const char *summary; /* required: the update rule in one line */
    const char *differs; /* what is not the paper's; NULL: nothing that a user
                            could measure (tests/oracle) */
    enum kith_pattern pattern;
    enum kith_wait wait;
    uint32_t flags; /* KITH_NEEDS_... | KITH_CONSERVES_SUM | ..., see above */

    const char *schedule; /* the one topology that it runs on, a cycle of
                             rounds each time; NULL: any that fits */

    unsigned keys;                         /* KITH_GOSSIP_READS(...) | ... */
    double initial[KITH_GOSSIP_KEY_COUNT]; /* of those keys */
    unsigned scalar_count;
    double scalars_start[KITH_SCALARS_MAX];
    double scalars_low, scalars_high; /* what a sane one is; 0, 0: a share of a
                                         weight, in [SHARE_LEAST, 2 peers] */
    double scalars_least;             /* 0 or no less than that; 0: whole */
    unsigned vectors;                 /* of its own, (dim), 0 at the start */
    unsigned edge_vectors; /* for each neighbour, (dim), 0 at the start */

    /* Bytes of a message; NULL: one vector. */
    size_t (*payload)(const struct kith_algebra *algebra);
    /* Bytes of a message of a round that is not whole, at most payload;
     * NULL: all are. Which are: kith_algorithm_is_whole. */
    size_t (*slice)(const struct kith_algebra *algebra);
    /* Which rounds of its schedule are whole; NULL: the first half. */
    bool (*is_whole)(const struct kith_topology *graph, uint64_t round);
    /* Bytes of scratch on the backend, and coordinates that a device is told
     * of together, 0 on a host; NULL: none. All four see dim, backend,
     * coefficients and compression alone. */
    size_t (*scratch_bytes)(const struct kith_algebra *algebra);
    size_t (*places)(const struct kith_algebra *algebra);
    /* What it needs of the experiment beyond flags and keys, for a refusal by
     * name; NULL: nothing is missing. Sees dim, peers, backend, coefficients
     * and compression alone. */
    const char *(*wants)(const struct kith_algebra *algebra);
    /* Own vectors from x: at the beginning, and where x was adopted. */
    void (*start)(struct kith_algebra *algebra);

    /* A step of one's own. */
    void (*before_step)(struct kith_algebra *algebra);
    void (*direction)(struct kith_algebra *algebra);
    void (*after_step)(struct kith_algebra *algebra);

    /* sent <- what travels; default (NULL): sent <- x.
     * May change x and scalars (push: both split). KITH_SENDS_EDGE_MESSAGES:
     * called for each neighbour that is sent to, with edge->weight C_ji. */
    void (*make)(struct kith_algebra *algebra, struct kith_work_edge *edge);
    /* x <- x + this edge's delta; sets edge->delta_sum, and edge->refused
     * where what came is malformed. Required unless pattern is NONE. */
    void (*merge)(struct kith_algebra *algebra, struct kith_work_edge *edge);
    /* The exact opposite of what make + merge did to x on this side. */
    void (*undo)(struct kith_algebra *algebra, struct kith_work_edge *edge);
    /* After the last edge of a round, though none was merged; `sent` is the
     * round's snapshot. Returns the sum over coordinates of what it added. */
    double (*finish)(struct kith_algebra *algebra);
    /* z such that gradients are taken at z, in place of x (push-sum divides by
     * its weight): the factor z = factor * x. Default 1. The step is applied to
     * x: x <- x - eta g(z), unless KITH_STEPS_AT_Z. */
    double (*factor)(const double *scalars);
};
/* Whoever sends loses weight, which the receiver has from then on, whatever a
 * guard says of the values that came with it. */
static inline bool
kith_algorithm_gives_weight(const struct kith_algorithm *algorithm)
{
    return algorithm->pattern == KITH_PATTERN_PUSH ||
           (algorithm->flags & KITH_SPLITS_MASS) != 0;
}

/* Are its messages bytes of its own, whatever the compressor? They are no
 * vectors and no models, `payload` says how many there are, and nobody but
 * `merge` looks into them: it bounds every number before it is used, and sets
 * edge->refused. Host backends alone. */
static inline bool
kith_algorithm_sends_bytes(const struct kith_algorithm *algorithm)
{
    return (algorithm->flags &
            (KITH_CHECKS_ITS_MESSAGES | KITH_TAKES_COMPRESSOR)) ==
           KITH_CHECKS_ITS_MESSAGES;
}

/* Does `merge` add differences of what two ends sent, with a coordinate always
 * at the same place of a message, and does nothing go on from the sum? An outer
 * step multiplies by its momentum what one neighbour's message left out: diloco
 * on unlike data diverged with moniqua4. */
static inline bool
kith_algorithm_adds_differences(const struct kith_algorithm *algorithm)
{
    const bool adds =
        (algorithm->flags & (KITH_MERGES_BESIDE | KITH_TAKES_GUARD)) != 0;
    return adds && !kith_algorithm_gives_weight(algorithm) &&
           algorithm->slice == NULL && algorithm->finish == NULL;
}

/* Is this round's message of `payload` bytes, and no slice? Of a period of
 * `outer_every` rounds the last is; of a schedule's the first half, whose
 * messages say where, and those of the other half how much, or as `is_whole`
 * has it. graph: seen by that alone. */
static inline bool
kith_algorithm_is_whole(const struct kith_algorithm *algorithm,
                        const struct kith_topology *graph, uint64_t period,
                        uint64_t round)
{
    if (algorithm->is_whole != NULL)
        return algorithm->is_whole(graph, round);
    if (period < 2)
        return true;
    return algorithm->schedule != NULL ? round % period < period / 2
                                       : round % period == period - 1;
}

/* Bytes of an exchange's message. */
static inline size_t
kith_algorithm_payload(const struct kith_algorithm *algorithm,
                       const struct kith_algebra *algebra)
{
    return algorithm->payload == NULL || algebra->dim == 0
               ? algebra->dim * algebra->backend->element_bytes
               : algorithm->payload(algebra);
}

/* The least weight that a push-sum's message carries: who keeps less than 2^-40
 * gives a token of 2^-20 of it, hence 2^-60 but for millions of tokens in a
 * row. A lighter one would weigh nothing beside the values that come with it.
 */
#define KITH_SHARE_LEAST 0x1p-64

/* The most weight that a peer or a message has, in weights that all begin with.
 * Shares are split and added, never made, so what all of n peers hold and what
 * is under way stays n, and nobody ever holds more. A restarted peer begins at
 * 1 again, and a torn hand-over may count twice: twice n allows n of these. */
static inline double kith_algorithm_weight_most(uint32_t peers)
{
    return 2.0 * peers;
}

/* May one of its scalars be this, on the wire or in a checkpoint? */
static inline bool
kith_algorithm_is_sane(const struct kith_algorithm *algorithm, uint32_t peers,
                       double scalar)
{
    const bool is_share = algorithm->scalars_high == algorithm->scalars_low;
    const double high =
        is_share ? kith_algorithm_weight_most(peers) : algorithm->scalars_high;
    if (!(scalar >= algorithm->scalars_low && scalar <= high))
        return false;
    const double least = is_share ? KITH_SHARE_LEAST : algorithm->scalars_least;
    if (least == 0)
        return (double)(uint64_t)scalar == scalar; /* high is below 2^64 */
    return scalar >= least || (scalar == 0 && !is_share);
}
#define KITH_GOSSIP_READS(name) (1u << KITH_GOSSIP_##name)

/* NULL-terminated, in the order of algorithms.def. */
extern const struct kith_algorithm *const kith_algorithms[];
const struct kith_algorithm *kith_algorithm_find(const char *name);

#endif
