/* Time that things take, in whole nanoseconds: bytes on a wire, what happens
 * to them on the way, a step of training. Shared by the two engines of this
 * folder, the one that drives nodes and the central baselines'. */
#ifndef KITH_SIM_DELAY_H
#define KITH_SIM_DELAY_H

#include <stdint.h>

#include "kith/experiment.h"
#include "kith/rng.h"

/* bytes * 8 s / rate, rounded up; rate <= 10^15, 0: no time at all. */
kith_ns sim_wire_time(uint64_t bytes, uint64_t rate_bits);
/* share of 2^32, clipped: 1 is not reached exactly, 2^-32 short. */
uint32_t sim_threshold(double share);
/* Jitter and retransmissions of one message, drawn from its link's stream. */
kith_ns sim_mishaps(const struct kith_link_terms *terms, uint64_t bytes,
                    struct kith_rng *rng);
/* The peer's step: compute.step, or an exponential with that mean which
 * depends on (seed, peer, step) alone; `slow` times as long. */
kith_ns sim_step_time(const struct kith_experiment *experiment, kith_id peer,
                      uint64_t step, double slow);

#endif
