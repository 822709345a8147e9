/* What peers of one run have of their own: lines, latency, the speed of steps
 * (docs/links.md, "Lines of their own").
 *
 *   line out, in   network.up, network.down, where not given network.rate; a
 *                  class of `classes` may name others
 *   latency i->j   (L_i + L_j) / 2, L of a class or network.latency: each end
 *                  has half of it
 *   pace of i      what its step takes, in steps of compute.step: the draw of
 *                  compute.speeds over the speed of its class
 *
 *   lognormal(S)   e^(S z), z standard normal: half of the peers are slower
 *                  than compute.step, and one in 44 e^(2 S) times as slow
 *   pareto(A)      u^(-1/A), u uniform: none is faster than compute.step, and a
 *                  share x^-A is more than x times as slow
 *
 * A draw depends on (seed, peer) alone, has the same bits everywhere, and is
 * kept within KITH_PACE_DRAWN_MAX either way. A machine that is no peer, as a
 * server of a central method, has what the whole has.
 * Memory: a byte a peer with classes, 8 with speeds. Test: unit/test_classes.c.
 */
#ifndef KITH_CLASSES_H
#define KITH_CLASSES_H

#include <stddef.h>
#include <stdint.h>

#include "kith/assert.h"
#include "kith/err.h"
#include "kith/types.h"

/* A peer is so much faster or slower at most, by the draw and by its class. */
#define KITH_PACE_DRAWN_MAX 1000
#define KITH_CLASS_SPEED_MAX 1000

struct kith_class {
    uint64_t up_bits, down_bits; /* of its lines, a second; 0: no limit */
    kith_ns latency_ns;
    double speed; /* of its steps; 2: they take half as long */
};

struct kith_classes {
    struct kith_class usual; /* of who is in none */
    struct kith_class *list; /* (count) */
    uint8_t *of; /* (peers) 1 + index into list; 0: in none; NULL: all are */
    uint32_t count, peers;
    double *pace;     /* (peers), > 0; NULL: 1 for all */
    double pace_most; /* of all peers; 1 where there is no list */
};

enum kith_speeds_kind {
    KITH_SPEEDS_EQUAL,
    KITH_SPEEDS_LOGNORMAL,
    KITH_SPEEDS_PARETO,
};
struct kith_speeds {
    enum kith_speeds_kind kind;
    double parameter; /* S or A; 0 for EQUAL */
};
/* equal, lognormal(S) with S above 0 to 3, pareto(A) with A from 0.5 to 100. */
KITH_MUST_CHECK enum kith_err kith_speeds_parse(const char *text,
                                                struct kith_speeds *speeds);
/* Of one peer, from the draws of (seed, peer). */
double kith_speeds_draw(const struct kith_speeds *speeds, uint64_t seed,
                        kith_id peer);

/* Inline: the simulator asks for each message. */
static inline const struct kith_class *
kith_class_of(const struct kith_classes *classes, kith_id machine)
{
    if (classes->of == NULL || machine >= classes->peers ||
        classes->of[machine] == 0)
        return &classes->usual;
    KITH_DEBUG_ASSERT(classes->of[machine] <= classes->count);
    return &classes->list[classes->of[machine] - 1];
}
/* What a message at an idle pair of lines is limited by: 0: nothing. */
uint64_t kith_class_rate(const struct kith_classes *classes, kith_id from,
                         kith_id to);
/* The least of any line; 0: none has a limit. */
uint64_t kith_classes_rate_least(const struct kith_classes *classes);
void kith_classes_close(struct kith_classes *classes);

#endif
