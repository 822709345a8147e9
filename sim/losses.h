/* The loss of a row: the mean over the steps of training since the row before,
 * as a real peer's: a single batch's would be noise. Without a step between
 * them it is unknown, where a real peer says its last one again. */
#ifndef KITH_SIM_LOSSES_H
#define KITH_SIM_LOSSES_H

#include <math.h>
#include <stdint.h>

struct sim_losses {
    double sum;
    uint64_t steps;
};

/* One that is not finite is in no row. */
static inline void sim_losses_add(struct sim_losses *losses, double loss)
{
    if (!isfinite(loss))
        return;
    losses->sum += loss;
    losses->steps++;
}

/* The mean since the last call; NaN: there was no step. */
static inline double sim_losses_take(struct sim_losses *losses)
{
    const double mean =
        losses->steps > 0 ? losses->sum / (double)losses->steps : (double)NAN;
    *losses = (struct sim_losses){0};
    return mean;
}

#endif
