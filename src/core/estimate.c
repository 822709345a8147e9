/* Deadlines from measured round trips: nobody guesses a timeout.
 *
 *   deviation <- deviation + (|sample - mean| - deviation) / 4
 *   mean      <- mean + (sample - mean) / 8
 *   timeout    = 4 (mean + 4 deviation), doubled at every try
 *
 * Source: Jacobson and Karels, "Congestion avoidance and control", SIGCOMM
 * 1988; RFC 6298. A sample counts for no more than the timeout in force, so
 * that one neighbour which drags its feet cannot lift every deadline at once.
 * The factor 4 on top is there because an answer waits for the
 * other side's step boundary, whose phase is random. */
#include "src/core/private.h"

void kith_estimate_add(struct kith_estimate *estimate, kith_ns sample_ns)
{
    if (sample_ns < 1)
        sample_ns = 1;
    if (estimate->mean_ns == 0) {
        estimate->mean_ns = sample_ns;
        estimate->deviation_ns = sample_ns / 2;
        return;
    }
    const kith_ns most = kith_estimate_timeout(estimate, 0, 0);
    if (sample_ns > most)
        sample_ns = most;
    const kith_ns error = sample_ns - estimate->mean_ns;
    const kith_ns magnitude = error < 0 ? -error : error;
    estimate->deviation_ns += (magnitude - estimate->deviation_ns) / 4;
    estimate->mean_ns += error / 8;
    if (estimate->mean_ns < 1)
        estimate->mean_ns = 1;
}

kith_ns kith_estimate_timeout(const struct kith_estimate *estimate,
                              kith_ns initial_ns, uint32_t tries)
{
    kith_ns timeout = initial_ns;
    if (estimate->mean_ns > 0) {
        const kith_ns sum = estimate->mean_ns + 4 * estimate->deviation_ns;
        timeout = sum > KITH_TIMEOUT_MAX_NS / 4 ? KITH_TIMEOUT_MAX_NS : 4 * sum;
    }
    if (timeout < KITH_TIMEOUT_MIN_NS)
        timeout = KITH_TIMEOUT_MIN_NS;
    for (uint32_t i = 0; i < tries && timeout < KITH_TIMEOUT_MAX_NS; i++)
        timeout *= 2;
    return timeout < KITH_TIMEOUT_MAX_NS ? timeout : KITH_TIMEOUT_MAX_NS;
}
