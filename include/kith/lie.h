/* What a hostile member sends in place of its model x (the faults `huge` and
 * `hostile`): finite or not, it is what leaves. The member itself trains, but
 * where its kind says how, and merges against x, as if it were honest; but for
 * HUGE, which merges against what it has sent.
 *
 *   huge       by, with the sign of x       scale      by x
 *   flip       -x                           gauss      x + by N(0, 1)
 *   alie       m - by s                     ipm        -by m
 *   dissensus  r + by (r - m)               nan        not a number
 *   stale      the first model it received since the lie began
 *   free-ride  its own model of when the lie began
 *   ride       m + by |s| (k - m) / |k - m|: as far as is let in, towards k
 *   ascent     m + by |s| (x - m) / |x - m|, where x goes up its loss
 *   label-flip x, learnt from labels that are turned: the last for the first
 *
 * k is its own model of when the lie began. Two honest models are sqrt(2) |s|
 * apart, and guard clip clips at twice, rejects at 2.5 times that: 2.5 |s| from
 * their middle is 1.9 of it.
 *
 * r is the model that it received last, m and s the mean and the deviation of
 * those received since the lie began, each new one with weight 0.2: the papers'
 * liars see all honest models, this one what came to it. Until one has come r
 * and m are x, s is 0.
 *
 * Source: alie: Baruch et al., NeurIPS 2019; ipm: Xie et al., UAI 2019;
 * dissensus: He et al., "ClippedGossip", 2022. Test: unit/test_lies.c. */
#ifndef KITH_LIE_H
#define KITH_LIE_H

#include <stdint.h>

/* X(NAME, "kind", by where the file says none (0: takes none), it is above,
 * it is at most) */
#define KITH_LIES(X)                                                           \
    X(NONE, "none", 0, 0, 0)                                                   \
    X(HUGE, "huge", 0, 1, 3.4028234663852886e38)                               \
    X(FLIP, "flip", 0, 0, 0)                                                   \
    X(SCALE, "scale", -10, -1e6, 1e6)                                          \
    X(GAUSS, "gauss", 0.05, 0, 1e6)                                            \
    X(ALIE, "alie", 5, 0, 1e6)                                                 \
    X(IPM, "ipm", 0.5, 0, 1e6)                                                 \
    X(DISSENSUS, "dissensus", 1.5, 0, 1e6)                                     \
    X(STALE, "stale", 0, 0, 0)                                                 \
    X(FREE_RIDE, "free-ride", 0, 0, 0)                                         \
    X(NAN, "nan", 0, 0, 0)                                                     \
    X(RIDE, "ride", 2.5, 0, 1e6)                                               \
    X(ASCENT, "ascent", 2.5, 0, 1e6)                                           \
    X(LABEL_FLIP, "label-flip", 0, 0, 0)

enum kith_lie_kind {
#define KITH_X(name, word, by, above, most) KITH_LIE_##name,
    KITH_LIES(KITH_X)
#undef KITH_X
        KITH_LIE_COUNT
};

struct kith_lie {
    enum kith_lie_kind kind; /* NONE: x */
    double by;               /* of a kind that takes one */
    uint32_t models;         /* of the next so many; 0: of all */
};

struct kith_lie_kind_record {
    const char *name;
    double by, above, most; /* most 0: it takes no `by` */
};
/* (KITH_LIE_COUNT) by kind. */
extern const struct kith_lie_kind_record kith_lie_kinds[];
/* KITH_LIE_COUNT: there is no such kind. */
enum kith_lie_kind kith_lie_find(const char *name);

#endif
