/* What happens again and again is said less and less often. See log_limit.h. */
#include "log_limit.h"

#include "kith/assert.h"

/* Exponential back-off of lines, as syslog daemons collapse repeats: 1, 2, 4,
 * 8 ... A hash, not the text: 64 entries stay below 2 KiB, and a collision
 * costs a line. */
uint64_t kith_log_limit_count(struct kith_log_limit *limit, uint64_t hash,
                              kith_ns now_ns)
{
    uint32_t at = 0, oldest = 0;
    while (at < limit->count && limit->entries[at].hash != hash) {
        if (limit->entries[at].seen_ns < limit->entries[oldest].seen_ns)
            oldest = at;
        at++;
    }
    const bool known =
        at < limit->count &&
        now_ns - limit->entries[at].seen_ns < KITH_LOG_LIMIT_FORGET_NS;
    if (at == KITH_LOG_LIMIT_ENTRIES)
        at = oldest;
    else if (at == limit->count)
        limit->count++;
    KITH_ASSERT(at < KITH_LOG_LIMIT_ENTRIES && at < limit->count);
    if (!known)
        limit->entries[at].times = 0;
    limit->entries[at].hash = hash;
    limit->entries[at].seen_ns = now_ns;
    return ++limit->entries[at].times;
}
