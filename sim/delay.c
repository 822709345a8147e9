/* Steps of training; see delay.h. */
#include "sim/delay.h"

#include "kith/assert.h"
#include "kith/rng.h"

/* Depends on (seed, peer, step) and on nothing that happened: two algorithms on
 * one seed meet the same slow steps. */
kith_ns sim_step_time(const struct kith_experiment *experiment, kith_id peer,
                      uint64_t step, double slow)
{
    KITH_DEBUG_ASSERT(slow > 0);
    KITH_DEBUG_ASSERT(experiment->compute.step_ns > 0);
    kith_ns time_ns = kith_experiment_step_ns(experiment, peer);
    if (experiment->compute.exponential) {
        struct kith_rng rng;
        kith_rng_init(&rng, experiment->seed, KITH_STREAM_COMPUTE, peer);
        rng.block = (uint32_t)step;
        time_ns = kith_rng_exponential(&rng, time_ns);
        time_ns = time_ns > 0 ? time_ns : 1;
    }
    if (slow > 1)
        time_ns = kith_ns_from((double)time_ns * slow);
    return time_ns <= KITH_TIME_MAX ? time_ns : KITH_TIME_MAX + 1;
}
