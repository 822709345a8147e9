/* A guard: what stands between a received model and the merge, after the gate
 * "finite, right shape, fresh" that is always on.
 *
 *   x <- x + w c (received - sent)     c the exchange's weight, w in [0, 1]
 *
 * The worker measures, the guard answers w; 0 is a rejection. What it withholds
 * of the exchange, (1 - w) c (received - sent), is booked
 * (kith_worker_withheld). A guard knows identities and what was received
 * before; all of it is forgotten at a restart. Rules that need every model of a
 * round see them through `judge`, before the first is merged.
 *
 * One file, one line in src/gossip/guard/guards.def; no heap, no clock.
 * Test: unit/test_guard_clip.c, unit/test_guard_rounds.c,
 * unit/test_guard_runs.c. */
#ifndef KITH_GUARD_H
#define KITH_GUARD_H

#include <stdbool.h>
#include <stddef.h>

#include "kith/backend.h"
#include "kith/limits.h"
#include "kith/types.h"

/* Keys of `gossip:` that only some guards read. X(NAME, key) */
#define KITH_GUARD_KEYS(X)                                                     \
    X(LIARS, "liars")                                                          \
    X(TOLERANCE, "tolerance")
enum kith_guard_key {
#define KITH_X(name, key) KITH_GUARD_KEY_##name,
    KITH_GUARD_KEYS(KITH_X)
#undef KITH_X
        KITH_GUARD_KEY_COUNT
};
#define KITH_GUARD_READS(name) (1u << KITH_GUARD_KEY_##name)

struct kith_guard_config {
    uint32_t liars;   /* b, neighbours of a round that may lie */
    double tolerance; /* gamma, of one's own norm */
};

/* Coordinates of a model that a guard looks at one by one: private and random,
 * in runs; all of them where there are no more. */
#define KITH_GUARD_COORDINATES 1024u

/* Of fewer neighbours nobody can tell which of them lies: no guard is chosen
 * there by default. */
#define KITH_GUARD_NEIGHBOURS 4u

/* One received model. */
struct kith_guard_model {
    const struct kith_guard_config *config;
    kith_id peer;
    double distance; /* |received - sent|; INFINITY where that is none */
    double movement; /* mean of own movement between two merges; 0: none yet */
    double norm;     /* |sent|; 0: not asked */
    double elapsed;  /* share of own steps that are done, in [0, 1] */
    /* On our last batch, of received and sent; NaN: no step yet; 0: not asked
     */
    double loss, own_loss;
    /* (coordinates) of received - sent, and of sent; NULL: not asked */
    const double *v, *sent;
    double rounding; /* of |v|^2, what steps of the wire that do not follow how
                        far models are apart are expected to have added */
    size_t coordinates, dim; /* looked at, of as many values of a model */
};

/* Models of a round; number `count` is our own snapshot. */
struct kith_guard_round {
    const struct kith_guard_config *config;
    const struct kith_backend *host; /* of the models; a device's where they
                                        were unpacked there */
    size_t dim;
    uint32_t count;                          /* received, <= KITH_DEGREE_MAX */
    const void *models[KITH_DEGREE_MAX + 1]; /* (dim) */
    void *merged; /* (dim) in the place of each received one; NULL: none */
    double distances[KITH_DEGREE_MAX];  /* |received - sent| */
    double losses[KITH_DEGREE_MAX + 1]; /* as `loss`; number `count`: our own */
    double let_in[KITH_DEGREE_MAX];     /* the answers; 1 each before */
};

struct kith_guard {
    const char *name, *paper, *summary; /* required */
    unsigned keys;                      /* KITH_GUARD_READS(...) | ... */

    /* Bytes of what it keeps, 8-aligned, zeroed; NULL: nothing. A worker's
     * begin with a page, of which those that are never touched cost nothing. */
    size_t (*bytes)(size_t coordinates);
    /* Writes what will be read before anything is known, as zeros are: memory
     * that is read first is given twice. NULL: there is no such thing. */
    void (*begin)(void *state, size_t coordinates);
    /* Where in what it keeps, 8-aligned, a worker may hold own coordinates, of
     * 8 bytes at most, to measure `movement` from: one place, which the guard
     * does not read before it writes there itself. NULL: it does not need that
     * any more, nor ever again. No function: never. Of as many coordinates as
     * `bytes` was asked for. */
    void *(*before)(void *state, size_t coordinates);
    /* Can these bytes, which a file had, be what it keeps? NULL: whatever they
     * are, nothing goes by them. */
    bool (*is_whole)(const void *state, size_t coordinates);
    bool looks;         /* weigh: at coordinates, `v` */
    bool looks_at_norm; /* `norm` */
    bool looks_at_loss; /* `loss`, `losses` */
    /* How much of this model is let in, in [0, 1]; or, where all of a round are
     * needed, of each. One of the two is required but for `none`; where there
     * are both `judge` answers of rounds. */
    double (*weigh)(void *state, const struct kith_guard_model *model);
    void (*judge)(void *state, struct kith_guard_round *round);
    bool replaces; /* judge: fills `merged` */
};

/* NULL-terminated, in the order of guards.def. */
extern const struct kith_guard *const kith_guards[];
const struct kith_guard *kith_guard_find(const char *name);

#endif
