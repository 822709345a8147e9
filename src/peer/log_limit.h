/* What happens again and again is said less and less often.
 *
 * The n-th time in a row is said where n is a power of two, and with its n: a
 * peer with another experiment is dialled and refused every few seconds for as
 * long as it runs. What was not seen for a while is new again.
 * Pure: time is an argument. Test: unit/test_log_limit.c. */
#ifndef KITH_PEER_LOG_LIMIT_H
#define KITH_PEER_LOG_LIMIT_H

#include <stdbool.h>
#include <stdint.h>

#include "kith/types.h"

/* Different things remembered; the one not seen for longest is forgotten. */
#define KITH_LOG_LIMIT_ENTRIES 64u
#define KITH_LOG_LIMIT_FORGET_NS (60 * KITH_S)

struct kith_log_limit {
    struct {
        uint64_t hash; /* of what was to be logged */
        uint64_t times;
        kith_ns seen_ns;
    } entries[KITH_LOG_LIMIT_ENTRIES];
    uint32_t count;
};

/* How often this was seen, this time included. */
uint64_t kith_log_limit_count(struct kith_log_limit *limit, uint64_t hash,
                              kith_ns now_ns);

static inline bool kith_log_limit_passes(uint64_t times)
{
    return (times & (times - 1)) == 0;
}

#endif
