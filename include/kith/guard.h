/* A guard: what stands between a received model and the merge, after the gate
 * "finite, right shape, fresh" that is always on.
 * One file, one line in src/gossip/guard/guards.def. */
#ifndef KITH_GUARD_H
#define KITH_GUARD_H

struct kith_guard {
    const char *name, *paper, *summary; /* required */
};

/* NULL-terminated, in the order of guards.def. */
extern const struct kith_guard *const kith_guards[];
const struct kith_guard *kith_guard_find(const char *name);

#endif
