/* An algorithm: a choice on each axis, and a few lines of arithmetic.
 *
 * The core reads the declared choices; the worker runs the hooks over backend
 * vectors. One file, one line in src/algorithm/algorithms.def. */
#ifndef KITH_ALGORITHM_H
#define KITH_ALGORITHM_H

#include <stdbool.h>
#include <stddef.h>

#include "kith/backend.h"
#include "kith/message.h"
#include "kith/work.h"

#ifdef __cplusplus
extern "C" {
#endif

/* What a hook may touch. Vectors are (dim) on the peer's backend. */
struct kith_algebra {
    const struct kith_backend *backend;
    size_t dim;
    void *live;      /* x */
    double *scalars; /* (scalar_count) the algorithm's own, kept per peer */
    void *sent;      /* the edge's snapshot slot */
    const void *received; /* the edge's inbox, NULL if nothing came */
};

enum kith_wait {
    KITH_WAIT_NO,    /* training goes on during an exchange */
    KITH_WAIT_ROUND, /* step t + 1 waits for round t, or its deadline */
};

struct kith_algorithm {
    const char *name;    /* required */
    const char *paper;   /* required: authors, venue, year */
    const char *summary; /* required: the update rule in one line */
    enum kith_pattern pattern;
    enum kith_wait wait;
    bool directed;      /* a column-stochastic share is enough */
    bool conserves_sum; /* sum of x (or of scalar-weighted x) never changes */
    bool value_driven;  /* decisions depend on model values */
    unsigned scalar_count;
    double scalars_start[KITH_SCALARS_MAX];
    unsigned extra_vectors; /* memory beyond x and the exchange's slots */

    /* sent <- what travels; default (NULL): sent <- x.
     * May change x and scalars (push: both split). */
    void (*make)(struct kith_algebra *algebra, struct kith_work_edge *edge);
    /* x <- x + this edge's delta; sets edge->delta_sum. Required unless
     * pattern is NONE. */
    void (*merge)(struct kith_algebra *algebra, struct kith_work_edge *edge);
    /* make and merge where x has not changed since the snapshot: `sent` is the
     * old x, `live` becomes the new one and holds nothing before. Optional,
     * with the same result as the two. */
    void (*swap_merge)(struct kith_algebra *algebra,
                       struct kith_work_edge *edge);
    /* The exact opposite of what make + merge did to x on this side. */
    void (*undo)(struct kith_algebra *algebra, struct kith_work_edge *edge);
    /* z such that gradients are taken at z, in place of x (push-sum divides by
     * its weight): the factor z = factor * x. Default 1. */
    double (*factor)(const double *scalars);
};

/* NULL-terminated, in the order of algorithms.def. */
extern const struct kith_algorithm *const kith_algorithms[];
const struct kith_algorithm *kith_algorithm_find(const char *name);

#ifdef __cplusplus
}
#endif
#endif
