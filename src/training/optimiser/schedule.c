/* Learning-rate schedules: a climb over the warm-up, then a shape over what is
 * left. The only use of libm that reaches a rate; the factor touches model
 * values alone, never a decision. Loshchilov and Hutter, ICLR 2017 (cosine). */
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
        [KITH_SCHEDULE_STEP] = "step",
    };
    KITH_ASSERT((unsigned)schedule < KITH_SCHEDULE_COUNT);
    return names[schedule];
}

static double falling(double floor, double shape)
{
    return floor + (1 - floor) * shape;
}

static double staircase(const struct kith_schedule_config *config, double t)
{
    double factor = 1;
    for (uint32_t i = 0; i < config->milestone_count; i++)
        if (t >= config->milestones[i])
            factor *= config->decay;
    return factor;
}

double kith_schedule_factor(const struct kith_schedule_config *config,
                            uint64_t step, uint64_t steps)
{
    if (step + 1 < config->warmup)
        return (double)(step + 1) / (double)config->warmup;
    /* Past its share a peer keeps the last factor; a share without end
     * (stop.time: UINT64_MAX) stays at the first. */
    const uint64_t begin = step < config->warmup ? step : config->warmup;
    const double t = steps <= begin || step >= steps
                         ? 1
                         : (double)(step - begin) / (double)(steps - begin);
    switch (config->kind) {
    case KITH_SCHEDULE_LINEAR:
        return falling(config->floor, 1 - t);
    case KITH_SCHEDULE_COSINE:
        return falling(config->floor, (1 + cos(pi * t)) / 2);
    case KITH_SCHEDULE_STEP:
        return staircase(config, t);
    case KITH_SCHEDULE_CONSTANT:
    case KITH_SCHEDULE_COUNT:
        break;
    }
    return 1;
}
