/* Deadlines from measured round trips; no timeout is a guess.
 *
 *   deviation <- deviation + (|sample - mean| - deviation) / 4
 *   mean      <- mean + (sample - mean) / 8
 *   timeout    = 4 (mean + 4 deviation), doubled at every try
 *
 * Source: Jacobson and Karels, "Congestion avoidance and control", SIGCOMM
 * 1988; RFC 6298. A sample counts for no more than the timeout in force, so
 * that one slow neighbour cannot lift every deadline at once.
 * The factor 4 on top is there because an answer waits for the
 * other side's step boundary, whose phase is random. */
#include "src/protocol/core/round_trip.h"
#include "kith/assert.h"

void kith_estimate_add(struct kith_estimate *estimate, kith_ns sample_ns)
{
    KITH_ASSERT(sample_ns >= 0);
    const kith_ns most = estimate->mean_us == 0
                             ? KITH_TIMEOUT_MAX_NS
                             : kith_estimate_timeout(estimate, 0, 0);
    const kith_ns clipped = sample_ns < most ? sample_ns : most;
    const int32_t sample_us =
        clipped < KITH_US ? 1 : (int32_t)(clipped / KITH_US);
    if (estimate->mean_us == 0) {
        estimate->mean_us = sample_us;
        estimate->deviation_us = sample_us / 2;
        return;
    }
    const int32_t error = sample_us - estimate->mean_us;
    const int32_t magnitude = error < 0 ? -error : error;
    estimate->deviation_us += (magnitude - estimate->deviation_us) / 4;
    estimate->mean_us += error / 8;
    if (estimate->mean_us < 1)
        estimate->mean_us = 1;
    KITH_ASSERT(estimate->mean_us <= KITH_TIMEOUT_MAX_NS / KITH_US);
    KITH_ASSERT(estimate->deviation_us >= 0);
}

kith_ns kith_estimate_timeout(const struct kith_estimate *estimate,
                              kith_ns initial_ns, uint32_t tries)
{
    kith_ns timeout = initial_ns;
    KITH_ASSERT(estimate->mean_us >= 0 && estimate->deviation_us >= 0);
    if (estimate->mean_us > 0)
        timeout =
            4 * KITH_US *
            ((kith_ns)estimate->mean_us + 4 * (kith_ns)estimate->deviation_us);
    if (timeout < KITH_TIMEOUT_MIN_NS)
        timeout = KITH_TIMEOUT_MIN_NS;
    for (uint32_t i = 0; i < tries && timeout < KITH_TIMEOUT_MAX_NS; i++)
        timeout *= 2;
    return timeout < KITH_TIMEOUT_MAX_NS ? timeout : KITH_TIMEOUT_MAX_NS;
}
