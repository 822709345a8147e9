/* Learning-rate schedules: factor(t) = min(1, (t + 1) / warmup) * shape(t / T).
 * The only use of libm among the plug-ins; the factor touches model values
 * alone, never a decision. */
#include <math.h>

#include "kith/assert.h"
#include "kith/optimiser.h"

static const double pi = 3.14159265358979323846;

const char *kith_schedule_name(enum kith_schedule schedule)
{
    static const char *const names[KITH_SCHEDULE_COUNT] = {
        [KITH_SCHEDULE_CONSTANT] = "constant",
        [KITH_SCHEDULE_LINEAR] = "linear",
        [KITH_SCHEDULE_COSINE] = "cosine",
    };
    KITH_ASSERT((unsigned)schedule < KITH_SCHEDULE_COUNT);
    return names[schedule];
}

static double shape(enum kith_schedule schedule, double t)
{
    switch (schedule) {
    case KITH_SCHEDULE_LINEAR:
        return 1 - t;
    case KITH_SCHEDULE_COSINE:
        return (1 + cos(pi * t)) / 2;
    case KITH_SCHEDULE_CONSTANT:
    case KITH_SCHEDULE_COUNT:
        break;
    }
    return 1;
}

double kith_schedule_factor(enum kith_schedule schedule, uint64_t step,
                            uint64_t steps, uint64_t warmup)
{
    /* Past its share a peer keeps the last factor; a share without end
     * (stop.time: UINT64_MAX) stays at the first. */
    const double t =
        steps == 0 || step >= steps ? 1 : (double)step / (double)steps;
    const double climb =
        step + 1 < warmup ? (double)(step + 1) / (double)warmup : 1;
    return climb * shape(schedule, t);
}
