/* What happens again and again is said less and less often. See log_limit.h. */
#include "log_limit.h"

uint64_t kith_repeat(struct kith_repeats *repeats, uint64_t what,
                     kith_ns now_ns)
{
    uint32_t at = 0, oldest = 0;
    while (at < repeats->count && repeats->entries[at].what != what) {
        if (repeats->entries[at].seen_ns < repeats->entries[oldest].seen_ns)
            oldest = at;
        at++;
    }
    const bool known =
        at < repeats->count &&
        now_ns - repeats->entries[at].seen_ns < KITH_REPEAT_FORGET_NS;
    if (at == KITH_REPEATS_MAX)
        at = oldest;
    else if (at == repeats->count)
        repeats->count++;
    if (!known)
        repeats->entries[at].times = 0;
    repeats->entries[at].what = what;
    repeats->entries[at].seen_ns = now_ns;
    return ++repeats->entries[at].times;
}
