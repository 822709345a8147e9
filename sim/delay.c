/* Delays of both engines; see delay.h. A lost record waits for its
 * retransmission timer, 200 ms + a round trip, doubled at each further loss
 * (RFC 6298 as Linux bounds it); a message waits for its slowest record. */
#include "sim/delay.h"

#include "kith/assert.h"

#define RETRANSMIT_NS (200 * KITH_MS)
#define RETRANSMITS_MAX 8u /* 200 ms << 8 = 51 s: TCP would soon give up */

/* A share becomes a bound on 32 random bits: comparing integers gives the same
 * losses with any compiler. */
uint32_t sim_threshold(double share)
{
    KITH_ASSERT(share >= 0);
    const double scaled = share * 4294967296.0;
    return scaled >= 4294967295.0 ? UINT32_MAX : (uint32_t)scaled;
}

/* Without an intermediate above 64 bits. */
kith_ns sim_wire_time(uint64_t bytes, uint64_t rate_bits)
{
    if (rate_bits == 0)
        return 0;
    const uint64_t bits = 8 * bytes;
    uint64_t whole = bits / rate_bits, rest = bits % rate_bits;
    for (int digits = 0; digits < 3; digits++) {
        rest *= 1000;
        whole = whole * 1000 + rest / rate_bits;
        rest %= rate_bits;
    }
    return (kith_ns)(whole + (rest > 0));
}

/* Jitter first, then one draw per record: the order of draws is part of what a
 * seed means, and may not change. */
kith_ns sim_mishaps(const struct kith_link_terms *terms, uint64_t bytes,
                    struct kith_rng *rng)
{
    const uint32_t loss_threshold = sim_threshold(terms->loss);
    kith_ns delay_ns = 0;
    if (terms->jitter_ns > 0)
        delay_ns = kith_rng_exponential(rng, terms->jitter_ns);
    if (loss_threshold > 0) {
        const kith_ns timer_ns = RETRANSMIT_NS + 2 * terms->latency_ns;
        /* Loss strikes records, which are what a channel seals and TCP sends
         * again; a short message is one. */
        const uint64_t records = 1 + bytes / KITH_RECORD_BYTES_MAX;
        unsigned worst = 0;
        for (uint64_t i = 0; i < records; i++) {
            unsigned lost = 0;
            while (lost < RETRANSMITS_MAX && kith_rng_u32(rng) < loss_threshold)
                lost++;
            worst = lost > worst ? lost : worst;
        }
        delay_ns += ((1 << worst) - 1) * timer_ns;
    }
    return delay_ns;
}

/* Depends on (seed, peer, step) and on nothing that happened: two algorithms on
 * one seed meet the same slow steps. */
kith_ns sim_step_time(const struct kith_experiment *experiment, kith_id peer,
                      uint64_t step, double slow)
{
    KITH_DEBUG_ASSERT(slow > 0);
    KITH_DEBUG_ASSERT(experiment->compute.step_ns > 0);
    kith_ns time_ns = experiment->compute.step_ns;
    if (experiment->compute.exponential) {
        struct kith_rng rng;
        kith_rng_init(&rng, experiment->seed, KITH_STREAM_COMPUTE, peer);
        rng.block = (uint32_t)step;
        time_ns = kith_rng_exponential(&rng, time_ns);
        time_ns = time_ns > 0 ? time_ns : 1;
    }
    return slow > 1 ? (kith_ns)((double)time_ns * slow) : time_ns;
}
