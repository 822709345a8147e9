/* Messages and models over an open link.
 *
 *   control frame   one message header (kith_wire_pack), or DROPPED
 *   MODEL           the n-th such header of a direction names transfer n; its
 *                   bytes follow as bursts of 16 records, the last one shorter
 *   DROPPED         one msgpack nil: the transfer under way ends here
 *   SHARED          within a host, in place of a burst: where it lies in the
 *                   sender's memory, from where it is copied (hand_over.h)
 *
 * Bursts are sealed straight from the lent snapshot and opened straight into
 * the lent inbox; while a record is in cache it passes the finite gate. One
 * transfer at a time per direction; control frames go between its bursts. */
#include "kith/assert.h"
#include "kith/wire.h"
#include "transport.h"

/* A ring: transfers leave in the order in which they were asked for. */
_Static_assert(KITH_WIRE_BYTES_MAX <= KITH_CONTROL_BYTES_MAX,
               "a header is a control frame");
_Static_assert(KITH_BURSTS_MIN >= 2 && KITH_BURSTS_MIN <= KITH_BURSTS_MAX,
               "one burst is sealed while another is sent");
_Static_assert(KITH_BURSTS_MAX < KITH_CHUNKS_MAX,
               "models alone never look like a peer that does not read");
_Static_assert((KITH_FRAME_DROPPED & 0xf0u) != 0x90u, "no header begins so");

static struct kith_transfer *transfer_at(struct kith_traffic *traffic,
                                         uint32_t index)
{
    KITH_ASSERT(index < KITH_TRANSFERS_MAX);
    return &traffic->transfers[(traffic->transfer_first + index) %
                               KITH_TRANSFERS_MAX];
}

/* The header of a MODEL is a control frame like any other. */
static bool send_header(struct kith_link *link,
                        const struct kith_message *message)
{
    uint8_t frame[KITH_WIRE_BYTES_MAX];
    return kith_link_control(link, frame, kith_wire_pack(message, frame));
}

/* A model waits for its turn on the link, a control message goes before the
 * next burst. */
void kith_traffic_send(struct kith_link *link,
                       const struct kith_message *message)
{
    struct kith_traffic *traffic = &link->traffic;
    if (message->kind != KITH_MESSAGE_MODEL) {
        (void)send_header(link, message); /* A broken link tells by itself. */
        return;
    }
    if (traffic->transfer_count == KITH_TRANSFERS_MAX) {
        kith_link_close(link, "too many models wait to be sent");
        return;
    }
    struct kith_transfer *transfer =
        transfer_at(traffic, traffic->transfer_count++);
    *transfer = (struct kith_transfer){.message = *message};
    kith_traffic_pump(link);
}

/* A transfer whose header has left is taken back by DROPPED; one that still
 * waits was never announced. */
void kith_traffic_cancel(struct kith_link *link, uint32_t slots)
{
    struct kith_traffic *traffic = &link->traffic;
    const uint32_t count = traffic->transfer_count;
    bool dropped = false;
    traffic->transfer_count = 0;
    for (uint32_t i = 0; i < count; i++) {
        const struct kith_transfer transfer = *transfer_at(traffic, i);
        if (kith_slot_cancelled(slots, transfer.message.slot))
            dropped = dropped || transfer.announced;
        else
            *transfer_at(traffic, traffic->transfer_count++) = transfer;
    }
    if (dropped) /* the frame below is the end of that message */
        link->socket.rest = 0;
    const uint8_t frame[1] = {KITH_FRAME_DROPPED};
    if (dropped && kith_link_control(link, frame, sizeof frame))
        kith_traffic_pump(link);
}

/* Nothing waits, and the kernel has everything: FIN may follow. */
bool kith_traffic_is_idle(const struct kith_link *link)
{
    return link->traffic.transfer_count == 0 && link->traffic.bursts == 0;
}

/* The kernel has the burst: there is room for another. Sent bytes count as
 * progress, so that a slow receiver is not idle. */
static void burst_done(struct kith_chunk *chunk)
{
    struct kith_link *link = chunk->socket->owner;
    const kith_ns now_ns = (kith_ns)uv_hrtime();
    KITH_ASSERT(link->traffic.bursts > 0);
    link->traffic.bursts--;
    kith_channel_use_left(&link->transport->use, now_ns, chunk->size);
    if (link->state != KITH_LINK_OPEN)
        return;
    link->progress_ns = now_ns;
    if (link->socket.failed) {
        kith_link_close(link, "the connection broke");
        return;
    }
    kith_traffic_pump(link);
    kith_link_finish_closing(link);
}

/* Long links need more bursts in flight: a round trip's worth. */
static uint32_t window(const struct kith_link *link)
{
    const struct kith_link_terms *terms = &link->socket.flow->terms;
    if (kith_link_is_plain(terms))
        return KITH_BURSTS_MIN;
    const double round_trip_s =
        2e-9 * (double)(terms->latency_ns + terms->jitter_ns);
    const double rate = terms->rate_bits > 0
                            ? (double)terms->rate_bits / 8
                            : 5e9; /* bytes per second, no limit */
    const double more = round_trip_s * rate / KITH_BURST_BYTES;
    return more > KITH_BURSTS_MAX - KITH_BURSTS_MIN
               ? KITH_BURSTS_MAX
               : KITH_BURSTS_MIN + (uint32_t)more;
}

/* Seals the next burst, or where it lies (*placed_bytes > 0), into a chunk;
 * NULL: the link is closed. */
static struct kith_chunk *seal_next(struct kith_link *link,
                                    const struct kith_transfer *transfer,
                                    size_t length, size_t *placed_bytes)
{
    struct kith_net *net = &link->transport->net;
    const struct kith_transport_user *user = &link->transport->options.user;
    const uint8_t *source = user->slot(user->arg, transfer->message.slot);
    uint8_t frame[KITH_SHARED_BURST_BYTES];
    const size_t placed =
        kith_shared_burst_place(link, transfer, source, length, frame);
    *placed_bytes = placed;
    struct kith_chunk *chunk =
        kith_chunk_take(net, placed > 0 ? kith_session_control_size(placed)
                                        : kith_session_burst_size(length));
    if (chunk == NULL) {
        kith_link_close(link, "out of memory for a burst");
        return NULL;
    }
    const enum kith_account_kind was =
        kith_account_switch(&net->account, KITH_ACCOUNT_AEAD);
    const enum kith_err err =
        placed > 0 ? kith_session_seal_control(link->session, frame, placed,
                                               chunk->bytes, chunk->capacity,
                                               &chunk->size)
                   : kith_session_seal_burst(
                         link->session,
                         &(const struct kith_session_burst){
                             link->traffic.out_id - 1, transfer->offset,
                             source + transfer->offset, length},
                         chunk->bytes, chunk->capacity, &chunk->size);
    kith_account_switch(&net->account, was);
    if (err == KITH_OK)
        return chunk;
    kith_chunk_give(net, chunk);
    kith_link_close(link, "a burst could not be sealed");
    return NULL;
}

/* Seals and sends the next burst; false when the link broke. */
static bool send_burst(struct kith_link *link, struct kith_transfer *transfer)
{
    struct kith_transport *transport = link->transport;
    const size_t total = (size_t)transfer->message.payload_bytes;
    KITH_ASSERT(transfer->announced && transfer->offset < total);
    const size_t left = total - transfer->offset;
    const size_t length = left < KITH_BURST_BYTES ? left : KITH_BURST_BYTES;
    size_t placed;
    struct kith_chunk *chunk = seal_next(link, transfer, length, &placed);
    if (chunk == NULL)
        return false;
    transfer->offset += length;
    KITH_ASSERT(transfer->offset <= total);
    link->socket.rest = total - transfer->offset;
    chunk->done = burst_done;
    link->traffic.bursts++;
    transfer->sealed = transfer->sealed || placed == 0;
    transfer->outside =
        transfer->outside || (placed == 0 && link->sharing.ready);
    if (transfer->offset == total) {
        transport->use.passes += transfer->sealed;
        kith_sent_vector(transport, transfer);
    }
    kith_channel_use_sent(&transport->use, (kith_ns)uv_hrtime(), chunk->size);
    kith_socket_write(&link->socket, chunk);
    return link->state == KITH_LINK_OPEN;
}

/* Sent, dropped, or never to be sent. */
static void transfer_finish(struct kith_traffic *traffic)
{
    KITH_ASSERT(traffic->transfer_count > 0);
    traffic->transfer_first =
        (traffic->transfer_first + 1) % KITH_TRANSFERS_MAX;
    traffic->transfer_count--;
}

/* Is the next model there to be sent? One that will never be is dropped: the
 * exchange ends as one whose answer is lost. */
static bool snapshot_ready(struct kith_link *link,
                           struct kith_transfer *transfer)
{
    const struct kith_transport_user *user = &link->transport->options.user;
    if (transfer->announced || user->outgoing == NULL)
        return true;
    const enum kith_outgoing outgoing =
        user->outgoing(user->arg, transfer->message.slot);
    if (outgoing == KITH_OUTGOING_READY)
        return true;
    if (outgoing == KITH_OUTGOING_NEVER)
        transfer_finish(&link->traffic);
    if (link->traffic.transfer_count > 0)
        kith_transport_poll(link->transport);
    return false;
}

/* Fills the window and no more: sealed bytes are memory, and control frames
 * queue behind them. */
void kith_traffic_pump(struct kith_link *link)
{
    struct kith_traffic *traffic = &link->traffic;
    const uint32_t most = window(link);
    if (traffic->pumping)
        return; /* A burst that the kernel took at once ends up here. */
    traffic->pumping = true;
    while (link->state == KITH_LINK_OPEN && !link->held &&
           !(link->closing & KITH_CLOSING_FIN_SENT) && !link->socket.failed &&
           traffic->transfer_count > 0 && traffic->bursts < most) {
        struct kith_transfer *transfer = transfer_at(traffic, 0);
        if (!snapshot_ready(link, transfer))
            break;
        if (!transfer->announced) {
            transfer->announced = true;
            traffic->out_id++;
            link->socket.rest = (size_t)transfer->message.payload_bytes;
            if (!send_header(link, &transfer->message))
                break;
        }
        const size_t total = (size_t)transfer->message.payload_bytes;
        if (transfer->offset < total && !send_burst(link, transfer))
            break;
        if (transfer->offset == total)
            transfer_finish(traffic);
    }
    traffic->pumping = false;
}
