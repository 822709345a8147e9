/* Latency, jitter, rate, loss and stalls: arithmetic on instants. */
#include "shaper.h"

#include "kith/assert.h"
#include "kith/limits.h"

/* A lost record costs what TCP's fast retransmission does, a round trip; on a
 * link without latency at least the kernel's shortest timer tick. */
#define RETRANSMISSION_MIN_NS KITH_MS

void kith_shaper_init(struct kith_shaper *shaper,
                      const struct kith_link_terms *usual)
{
    *shaper = (struct kith_shaper){.usual = *usual};
}

/* A stream of its own for each ordered pair: delays do not depend on what
 * other links carry. */
void kith_shaper_flow_init(struct kith_shaper_flow *flow,
                           const struct kith_link_terms *usual, uint64_t seed,
                           kith_id from, kith_id to)
{
    *flow = (struct kith_shaper_flow){.terms = *usual};
    kith_rng_init(&flow->rng, seed, KITH_STREAM_LINK,
                  (uint64_t)from << 32 | to);
}

/* Time of `bytes` on a line; in two parts, so that nothing overflows. */
static kith_ns line_time(uint64_t rate_bits, size_t bytes)
{
    if (rate_bits == 0)
        return 0;
    KITH_ASSERT(bytes <= UINT64_MAX / 8);
    const uint64_t bits = (uint64_t)bytes * 8u;
    const uint64_t seconds = bits / rate_bits;
    const double rest = (double)(bits % rate_bits) / (double)rate_bits;
    return (kith_ns)seconds * KITH_S + (kith_ns)(rest * (double)KITH_S);
}

/* A line is busy until free_ns; what comes later queues behind it (a FIFO
 * queue without loss). */
static kith_ns line_take(kith_ns *free_ns, uint64_t rate_bits, kith_ns now_ns,
                         size_t bytes)
{
    const kith_ns from = *free_ns > now_ns ? *free_ns : now_ns;
    *free_ns = from + line_time(rate_bits, bytes);
    KITH_ASSERT(*free_ns >= now_ns);
    return *free_ns;
}

/* Loss delays and never drops: TCP below hides it, and costs a round trip for
 * each lost segment that it recovers by duplicate ACKs (RFC 5681, section
 * 3.2). */
static kith_ns retransmissions(struct kith_shaper_flow *flow, size_t bytes)
{
    const kith_ns round_trip = 2 * flow->terms.latency_ns;
    const kith_ns each =
        round_trip > RETRANSMISSION_MIN_NS ? round_trip : RETRANSMISSION_MIN_NS;
    kith_ns sum = 0;
    for (size_t at = 0; at < bytes; at += KITH_RECORD_BYTES_MAX)
        if (kith_rng_double(&flow->rng) < flow->terms.loss)
            sum += each;
    return sum;
}

/* In order within a flow: jitter may delay a chunk but must not let the next
 * overtake it, or the record layer would see a forgery. */
kith_ns kith_shaper_release(struct kith_shaper *shaper,
                            struct kith_shaper_flow *flow, kith_ns now_ns,
                            size_t bytes)
{
    const struct kith_link_terms *terms = &flow->terms;
    kith_ns at =
        line_take(&shaper->out_free_ns, terms->rate_bits, now_ns, bytes);
    at += terms->latency_ns;
    if (terms->jitter_ns > 0)
        at += kith_rng_exponential(&flow->rng, terms->jitter_ns);
    if (terms->loss > 0)
        at += retransmissions(flow, bytes);
    if (at < flow->last_ns)
        at = flow->last_ns;
    KITH_ASSERT(at >= now_ns + terms->latency_ns && at >= flow->last_ns);
    flow->last_ns = at;
    return at;
}

/* The receiver's line is shared by all its links, as its uplink is. */
kith_ns kith_shaper_arrive(struct kith_shaper *shaper, kith_ns now_ns,
                           size_t bytes)
{
    KITH_ASSERT(bytes > 0);
    return line_take(&shaper->in_free_ns, shaper->usual.rate_bits, now_ns,
                     bytes);
}
