/* What a channel carried, booked event by event: see kith/channel_use.h. */
#include "kith/channel_use.h"

#include "kith/assert.h"

/* What has gone on since the last event. */
static void book(struct kith_channel_use *use, kith_ns now_ns)
{
    const kith_ns span = now_ns - use->since_ns;
    if (span <= 0)
        return;
    if (use->in_flight > 0) {
        use->sending_ns += span;
        use->byte_ns += (double)use->in_flight * (double)span;
    }
    if (use->exchanging) {
        use->exchange_ns += span;
        if (use->in_flight == 0 && use->receiving == 0)
            use->idle_ns += span;
    }
    use->since_ns = now_ns;
}

void kith_channel_use_sent(struct kith_channel_use *use, kith_ns now_ns,
                           uint64_t bytes)
{
    book(use, now_ns);
    use->in_flight += bytes;
    if (use->in_flight > use->in_flight_most)
        use->in_flight_most = use->in_flight;
}

void kith_channel_use_left(struct kith_channel_use *use, kith_ns now_ns,
                           uint64_t bytes)
{
    KITH_ASSERT(bytes <= use->in_flight);
    book(use, now_ns);
    use->in_flight -= bytes;
}

void kith_channel_use_receives(struct kith_channel_use *use, kith_ns now_ns,
                               bool begins)
{
    KITH_ASSERT(begins || use->receiving > 0);
    book(use, now_ns);
    use->receiving += begins ? 1u : UINT32_MAX;
}

void kith_channel_use_exchanges(struct kith_channel_use *use, kith_ns now_ns,
                                bool exchanging)
{
    if (exchanging == use->exchanging)
        return;
    book(use, now_ns);
    use->exchanging = exchanging;
}

void kith_channel_use_add(struct kith_channel_use *sum, kith_ns now_ns,
                          const struct kith_channel_use *one)
{
    struct kith_channel_use now = *one;
    book(&now, now_ns);
    if (now.in_flight_most > sum->in_flight_most)
        sum->in_flight_most = now.in_flight_most;
    sum->sending_ns += now.sending_ns;
    sum->exchange_ns += now.exchange_ns;
    sum->idle_ns += now.idle_ns;
    sum->byte_ns += now.byte_ns;
    sum->passes += now.passes;
}

void kith_channel_use_row(const struct kith_channel_use *sum,
                          struct kith_row *row)
{
    KITH_ASSERT(sum->idle_ns <= sum->exchange_ns);
    row->in_flight_most = (double)sum->in_flight_most;
    row->in_flight_byte_s = 1e-9 * sum->byte_ns;
    row->sending_s = 1e-9 * (double)sum->sending_ns;
    row->exchange_s = 1e-9 * (double)sum->exchange_ns;
    row->idle_s = 1e-9 * (double)sum->idle_ns;
    row->passes = (double)sum->passes;
}
