/* The law of links: what TCP makes of latency, jitter and loss.
 *
 *   R  = 2 (latency + jitter)                     a round trip
 *   T  = R + max(200 ms, 4 jitter)                the time-out: RFC 6298 with
 *                                                 Linux's bound on 4 RTTVAR
 *   W  = sqrt(3 / (2 p))                          packets in a window, share p
 *                                                 lost: Mathis et al. 1997
 *
 *   a packet leaves   when the line has sent it, and in the long run every
 *                     R / W, ten at once after a pause (RFC 6928)
 *   it is lost        with p, each time that it is sent
 *   3 more follow     it arrives R later, and what is behind it goes on: fast
 *                     retransmission (RFC 5681, 3.2; RFC 6675)
 *   fewer follow, or  after T, 2 T, 4 T ... it is sent again, and what is
 *   lost once more    behind it leaves after it (RFC 6298, 5.5)
 *
 * A message's jitter is one draw. docs/links.md says what is left out. */
#include "kith/link_law.h"

#include <math.h>

#include "kith/assert.h"
#include "kith/rng.h"

#define TIMEOUT_MIN_NS (200 * KITH_MS)
#define SENT_MAX 8u       /* then it passes: 200 ms << 8 = 51 s */
#define FIRST_WINDOW 10   /* packets */
#define DUPLICATE_ACKS 3u /* that start a fast retransmission */
/* Of a drawn number of packets: fine enough for any share. */
#define PACKET_UNITS (1 << 20)
/* The mean that still can be drawn; a packet in 10^11 is none. */
#define MEAN_MAX 1e17

/* The faults by name, as in kith_faults. */
enum force {
#define X(name) FORCE_##name,
#include "src/experiment/fault/faults.def"
    FORCE_COUNT
};
_Static_assert(FORCE_COUNT <= KITH_LINK_FORCES, "each fault has its force");

bool kith_link_is_cut(const struct kith_link_terms *terms)
{
    return terms->force[FORCE_partition] > 0;
}

bool kith_link_is_plain(const struct kith_link_terms *terms)
{
    bool is_forced = false;
    for (unsigned i = 0; i < FORCE_COUNT; i++)
        is_forced = is_forced || terms->force[i] > 0;
    return terms->latency_ns == 0 && terms->jitter_ns == 0 &&
           terms->rate_bits == 0 && terms->loss == 0 && !is_forced;
}

/* Without an intermediate above 64 bits. */
kith_ns kith_line_time(uint64_t bytes, uint64_t rate_bits)
{
    if (rate_bits == 0)
        return 0;
    KITH_ASSERT(bytes <= UINT64_MAX / 8);
    const uint64_t bits = 8 * bytes;
    uint64_t whole = bits / rate_bits, rest = bits % rate_bits;
    if (whole >= KITH_NEVER / KITH_S)
        return KITH_NEVER;
    for (int digits = 0; digits < 3; digits++) {
        rest *= 1000;
        whole = whole * 1000 + rest / rate_bits;
        rest %= rate_bits;
    }
    return (kith_ns)(whole + (rest > 0));
}

kith_ns kith_line_take(kith_ns *free_ns, uint64_t rate_bits, kith_ns at_ns,
                       uint64_t bytes)
{
    const kith_ns begins_ns = *free_ns > at_ns ? *free_ns : at_ns;
    *free_ns = kith_ns_add(begins_ns, kith_line_time(bytes, rate_bits));
    KITH_ASSERT(*free_ns >= begins_ns && begins_ns >= at_ns);
    return begins_ns;
}

/* Streams of its own for each ordered pair: what other links carry shifts no
 * draw. */
void kith_link_flow_init(struct kith_link_flow *flow,
                         const struct kith_link_terms *terms, uint64_t seed,
                         kith_id from, kith_id to)
{
    KITH_ASSERT(terms->latency_ns >= 0 && terms->jitter_ns >= 0);
    *flow = (struct kith_link_flow){
        .terms = *terms, .seed = seed, .from = from, .to = to};
}

static struct kith_rng stream_at(uint64_t seed, kith_id from, kith_id to,
                                 enum kith_stream stream, uint32_t block)
{
    struct kith_rng rng;
    kith_rng_init(&rng, seed, stream, (uint64_t)from << 32 | to);
    rng.block = block;
    return rng;
}

static struct kith_rng losses_at(const struct kith_link_flow *flow,
                                 uint32_t block)
{
    return stream_at(flow->seed, flow->from, flow->to, KITH_STREAM_LOSS, block);
}

static kith_ns round_trip(const struct kith_link_terms *terms)
{
    return 2 * (terms->latency_ns + terms->jitter_ns);
}

static kith_ns first_timeout(const struct kith_link_terms *terms)
{
    const kith_ns spread_ns = 4 * terms->jitter_ns;
    return round_trip(terms) +
           (spread_ns > TIMEOUT_MIN_NS ? spread_ns : TIMEOUT_MIN_NS);
}

kith_ns kith_link_stall(const struct kith_link_terms *terms, double rare)
{
    kith_ns stall_ns = 0;
    double chance = terms->loss;
    KITH_ASSERT(rare > 0);
    for (unsigned i = 0; i < SENT_MAX && chance > rare; i++) {
        stall_ns += first_timeout(terms) << i;
        chance *= terms->loss;
    }
    return stall_ns;
}

/* How many packets pass before the next one is lost: geometric, so that a loss
 * costs a draw and a packet none. A block in four is the number's, the others
 * are for lost_times(). */
static void draw_loss(struct kith_link_flow *flow)
{
    KITH_ASSERT(flow->terms.loss > 0 && flow->terms.loss < 1);
    const double mean = PACKET_UNITS / -log1p(-flow->terms.loss);
    struct kith_rng rng = losses_at(flow, 4 * flow->losses);
    flow->until_loss =
        (uint64_t)kith_rng_exponential(
            &rng, mean < MEAN_MAX ? (kith_ns)mean : (kith_ns)MEAN_MAX) /
        PACKET_UNITS;
    flow->is_drawn = true;
}

/* How often the packet that is lost now is lost in all. */
static unsigned lost_times(struct kith_link_flow *flow)
{
    struct kith_rng rng = losses_at(flow, 4 * flow->losses++ + 1);
    unsigned times = 1;
    while (times < SENT_MAX && kith_rng_double(&rng) < flow->terms.loss)
        times++;
    return times;
}

/* Packets that end in this piece. A message's last one may be short, and a
 * message without bytes is one. */
static uint64_t packets_of(struct kith_link_flow *flow,
                           const struct kith_link_piece *piece)
{
    const uint64_t bytes = flow->begun_bytes + piece->bytes;
    flow->begun_bytes =
        piece->rest > 0 ? (uint32_t)(bytes % KITH_PACKET_BYTES) : 0;
    if (piece->rest > 0)
        return bytes / KITH_PACKET_BYTES;
    return bytes > 0 ? (bytes - 1) / KITH_PACKET_BYTES + 1 : 1;
}

/* When the last packet leaves if none is lost: the line has it, and what left
 * before; or the window is full. */
static kith_ns sender_leaves(struct kith_link_flow *flow, uint64_t packets,
                             kith_ns begins_ns, kith_ns line_ns)
{
    const kith_ns ends_ns = kith_ns_add(begins_ns, line_ns);
    const double packet_ns =
        (double)round_trip(&flow->terms) * sqrt(flow->terms.loss * (2.0 / 3));
    if (flow->window_ns < begins_ns)
        flow->window_ns = begins_ns;
    flow->window_ns =
        kith_ns_add(flow->window_ns, kith_ns_from(packet_ns * (double)packets));
    const kith_ns full_ns =
        flow->window_ns - (kith_ns)(packet_ns * FIRST_WINDOW);
    return full_ns > ends_ns ? full_ns : ends_ns;
}

/* The lost packet left sent_ns ago; returns how much later what is behind it
 * leaves. *late_ns: until when it keeps back what has arrived. */
static kith_ns retransmit(struct kith_link_flow *flow, uint64_t followers,
                          kith_ns sent_ns, kith_ns gap_ns, kith_ns *late_ns)
{
    const kith_ns timeout_ns = first_timeout(&flow->terms);
    /* A gap as long as a time-out makes it no fast one, however long. */
    const kith_ns fast_ns =
        round_trip(&flow->terms) +
        (kith_ns)DUPLICATE_ACKS * (gap_ns < timeout_ns ? gap_ns : timeout_ns);
    const unsigned times = lost_times(flow);
    const bool is_fast = followers >= DUPLICATE_ACKS && fast_ns < timeout_ns;
    const unsigned timeouts = times - is_fast;
    const kith_ns wait_ns = (((kith_ns)1 << timeouts) - 1) * timeout_ns;
    const kith_ns again_ns =
        kith_ns_add(sent_ns, wait_ns + (is_fast ? fast_ns : 0));
    if (again_ns > *late_ns)
        *late_ns = again_ns;
    return wait_ns;
}

static kith_ns sender_loses(struct kith_link_flow *flow,
                            const struct kith_link_piece *piece,
                            uint64_t packets, kith_ns begins_ns)
{
    const kith_ns line_ns = piece->ends_ns - piece->begins_ns;
    flow->left_ns = sender_leaves(flow, packets, begins_ns, line_ns);
    const kith_ns gap_ns =
        packets > 0 ? (flow->left_ns - begins_ns) / (kith_ns)packets : 0;
    const uint64_t to_come =
        (piece->rest + KITH_PACKET_BYTES - 1) / KITH_PACKET_BYTES;
    kith_ns late_ns = 0;
    if (!flow->is_drawn)
        draw_loss(flow);
    while (flow->until_loss < packets && flow->left_ns < KITH_NEVER) {
        packets -= flow->until_loss + 1; /* are behind it */
        const kith_ns wait_ns = retransmit(
            flow, packets + to_come, flow->left_ns - (kith_ns)packets * gap_ns,
            gap_ns, &late_ns);
        flow->left_ns = kith_ns_add(flow->left_ns, wait_ns);
        flow->window_ns = kith_ns_add(flow->window_ns, wait_ns);
        draw_loss(flow);
    }
    flow->until_loss -= packets < flow->until_loss ? packets : flow->until_loss;
    return late_ns > flow->left_ns ? late_ns : flow->left_ns;
}

kith_ns kith_link_delay(const struct kith_link_terms *terms, uint64_t seed,
                        kith_id from, kith_id to, uint32_t message)
{
    KITH_DEBUG_ASSERT(terms->latency_ns >= 0 && terms->jitter_ns >= 0);
    if (terms->jitter_ns == 0)
        return terms->latency_ns;
    struct kith_rng rng = stream_at(seed, from, to, KITH_STREAM_LINK, message);
    return terms->latency_ns + kith_rng_exponential(&rng, terms->jitter_ns);
}

kith_ns kith_link_arrival(struct kith_link_flow *flow,
                          const struct kith_link_piece *piece)
{
    KITH_ASSERT(piece->ends_ns >= piece->begins_ns);
    const struct kith_link_terms *terms = &flow->terms;
    const kith_ns delay_ns = kith_link_delay(terms, flow->seed, flow->from,
                                             flow->to, flow->messages);
    kith_ns leaves_ns = piece->ends_ns;
    const uint64_t packets = packets_of(flow, piece);
    if (terms->loss > 0) {
        const bool waits = flow->left_ns > piece->begins_ns;
        leaves_ns = sender_loses(flow, piece, packets,
                                 waits ? flow->left_ns : piece->begins_ns);
    }
    flow->messages += piece->rest == 0;
    KITH_ASSERT(leaves_ns >= piece->ends_ns);
    return kith_ns_add(leaves_ns, delay_ns);
}

bool kith_link_agrees(const struct kith_link_flow *before,
                      const struct kith_link_piece *piece, kith_ns arrives_ns)
{
    struct kith_link_flow flow = *before;
    KITH_ASSERT(arrives_ns >= 0);
    return kith_link_arrival(&flow, piece) == arrives_ns;
}
