/* How long a step of training takes, for peers that gossip and for the workers
 * of central baselines. What messages take is kith/link_law.h. */
#ifndef KITH_SIM_DELAY_H
#define KITH_SIM_DELAY_H

#include <stdint.h>

#include "kith/experiment.h"

/* The peer's step: its compute.step, or an exponential with that mean which
 * depends on (seed, peer, step) alone; `slow` times as long. */
kith_ns sim_step_time(const struct kith_experiment *experiment, kith_id peer,
                      uint64_t step, double slow);

#endif
