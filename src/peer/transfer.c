/* Messages and models over an open link.
 *
 *   control frame   one message header (kith_wire_pack), or DROPPED
 *   MODEL           the n-th such header of a direction names transfer n; its
 *                   bytes follow as bursts of 16 records, the last one shorter
 *   DROPPED         one msgpack nil: the transfer under way ends here
 *
 * Bursts are sealed straight from the lent snapshot and opened straight into
 * the lent inbox; while a record is in cache it passes the finite gate. One
 * transfer at a time per direction; control frames go between its bursts. */
#include <math.h>

#include "kith/assert.h"
#include "kith/wire.h"
#include "transport.h"

#define FRAME_DROPPED 0xc0u

/* A ring: transfers leave in the order in which they were asked for. */
_Static_assert(KITH_WIRE_BYTES_MAX <= KITH_CONTROL_BYTES_MAX,
               "a header is a control frame");
_Static_assert(KITH_BURSTS_MIN >= 2 && KITH_BURSTS_MIN <= KITH_BURSTS_MAX,
               "one burst is sealed while another is sent");
_Static_assert(KITH_BURSTS_MAX < KITH_CHUNKS_MAX,
               "models alone never look like a peer that does not read");
_Static_assert((FRAME_DROPPED & 0xf0u) != 0x90u, "no header begins so");

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
    const uint8_t frame[1] = {FRAME_DROPPED};
    if (dropped && kith_link_control(link, frame, sizeof frame))
        kith_traffic_pump(link);
}

/* Nothing waits, and the kernel has everything: FIN may follow. */
bool kith_traffic_is_idle(const struct kith_link *link)
{
    return link->traffic.transfer_count == 0 && link->traffic.bursts == 0;
}

/* What a read may ask for. A peer that sends other things than the model it
 * announced, or models that nobody wants, gets small reads. */
size_t kith_traffic_expected(const struct kith_link *link)
{
    const struct kith_traffic *traffic = &link->traffic;
    if (!traffic->receiving || traffic->in_frames > KITH_FRAMES_PER_BURST_MAX ||
        traffic->unrequested > KITH_UNREQUESTED_MAX)
        return 0;
    return (size_t)traffic->model.payload_bytes - traffic->in_offset;
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

/* Seals and sends the next burst; false when the link broke. */
static bool send_burst(struct kith_link *link, struct kith_transfer *transfer)
{
    struct kith_transport *transport = link->transport;
    struct kith_net *net = &transport->net;
    const struct kith_transport_user *user = &transport->options.user;
    const size_t total = (size_t)transfer->message.payload_bytes;
    KITH_ASSERT(transfer->announced && transfer->offset < total);
    const size_t left = total - transfer->offset;
    const size_t length = left < KITH_BURST_BYTES ? left : KITH_BURST_BYTES;
    const uint8_t *source = user->slot(user->arg, transfer->message.slot);
    struct kith_chunk *chunk =
        kith_chunk_take(net, kith_session_burst_size(length));
    if (chunk == NULL)
        return kith_link_close(link, "out of memory for a burst");
    const enum kith_account_kind was =
        kith_account_switch(&net->account, KITH_ACCOUNT_AEAD);
    const enum kith_err err =
        kith_session_seal_burst(link->session,
                                &(const struct kith_session_burst){
                                    link->traffic.out_id - 1, transfer->offset,
                                    source + transfer->offset, length},
                                chunk->bytes, chunk->capacity, &chunk->size);
    kith_account_switch(&net->account, was);
    if (err != KITH_OK) {
        kith_chunk_give(net, chunk);
        return kith_link_close(link, "a burst could not be sealed");
    }
    transfer->offset += length;
    KITH_ASSERT(transfer->offset <= total);
    link->socket.rest = total - transfer->offset;
    chunk->done = burst_done;
    link->traffic.bursts++;
    transport->use.passes += transfer->offset == total;
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

/* ---- in
 *
 * A certified peer may still be hostile: it can send any authenticated bytes.
 * So a model must have been announced, be of the size that the experiment says,
 * stay within its certificate's quota, come in bursts of the expected offsets,
 * and be finite; and its inbox is asked for again before every burst. */

/* The node decides what a message means; the transport has checked its form. */
static void deliver(struct kith_link *link, const struct kith_message *message)
{
    const struct kith_transport_user *user = &link->transport->options.user;
    user->message(user->arg, link->rank, message);
}

/* Of a model; said once where it begins and where it ends. */
static void receives(struct kith_link *link, bool receiving)
{
    if (receiving != link->traffic.receiving)
        kith_channel_use_receives(&link->transport->use, (kith_ns)uv_hrtime(),
                                  receiving);
    link->traffic.receiving = receiving;
}

void kith_traffic_close(struct kith_link *link)
{
    KITH_ASSERT(link->state == KITH_LINK_CLOSED);
    receives(link, false);
}

static void deliver_model(struct kith_link *link)
{
    struct kith_traffic *traffic = &link->traffic;
    receives(link, false);
    link->transport->use.passes += traffic->model.payload_bytes > 0;
    struct kith_message model = traffic->model;
    model.finite = traffic->finite;
    const struct kith_transport_user *user = &link->transport->options.user;
    if (traffic->target != NULL && model.finite && user->arrived != NULL)
        user->arrived(user->arg, model.slot);
    model.distance_squared = (double)NAN; /* the worker measures it */
    deliver(link, &model);
}

/* The transfer's bytes go nowhere from the next burst on. */
static void discard(struct kith_traffic *traffic)
{
    traffic->target = NULL;
    traffic->model.slot = KITH_SLOT_NONE;
}

/* An inbox has one writer: a transfer that was given up, but still arrives
 * elsewhere, must not write into it any more. One that is stuck within a burst
 * (a partition) can only be stopped by closing its link. */
static void claim(struct kith_link *link, uint32_t slot)
{
    for (struct kith_link *l = link->transport->links; l != NULL; l = l->next) {
        if (l == link || l->state != KITH_LINK_OPEN || !l->traffic.receiving ||
            l->traffic.model.slot != slot)
            continue;
        discard(&l->traffic);
        if (l->traffic.in_burst)
            kith_link_close(l, "its transfer was given up and is stuck");
    }
}

/* A round is what one exchange brings, repeats included. */
static bool is_within_quota(struct kith_link *link,
                            const struct kith_message *message)
{
    struct kith_traffic *traffic = &link->traffic;
    const struct kith_message *last = &traffic->model;
    const uint64_t quota = kith_session_peer(link->session)->quota_round_bytes;
    const bool same = last->kind == KITH_MESSAGE_MODEL &&
                      last->mine == message->mine &&
                      last->pattern == message->pattern &&
                      last->id.incarnation == message->id.incarnation &&
                      last->id.counter == message->id.counter;
    if (!same)
        traffic->quota_bytes = 0;
    traffic->quota_bytes += message->payload_bytes;
    return quota == 0 || traffic->quota_bytes <= quota;
}

/* Size, quota, and one at a time are checked before a slot is asked for: a
 * certified peer may still be hostile. */
static bool model_begins(struct kith_link *link,
                         const struct kith_message *message)
{
    struct kith_traffic *traffic = &link->traffic;
    const struct kith_transport_options *options = &link->transport->options;
    const struct kith_transport_user *user = &options->user;
    const size_t due = message->pattern == KITH_PATTERN_PULL
                           ? options->model_bytes
                           : options->payload_bytes;
    /* Whether this round is one with slices is the node's to say. */
    const bool is_slice = message->pattern == KITH_PATTERN_ROUND &&
                          options->slice_bytes > 0 &&
                          message->payload_bytes == options->slice_bytes;
    const char *const why =
        traffic->receiving ? "a second model while one is being received"
        : message->payload_bytes != due && !is_slice ? "a model of another size"
        : !is_within_quota(link, message)
            ? "more models in one round than its certificate allows"
            : NULL;
    if (why != NULL)
        return kith_link_refuse(link, KITH_REFUSAL_TRANSFER, why);
    receives(link, true);
    traffic->model = *message;
    traffic->in_id++;
    traffic->in_offset = 0;
    traffic->finite = true;
    discard(traffic);
    const uint32_t slot = user->inbox(user->arg, link->rank, message);
    traffic->model.slot = slot;
    if (traffic->unrequested <= KITH_UNREQUESTED_MAX)
        traffic->unrequested++;
    if (slot != KITH_SLOT_NONE) {
        traffic->unrequested = 0;
        claim(link, slot);
        traffic->target = user->slot(user->arg, slot);
    }
    if (due == 0)
        deliver_model(link);
    return true;
}

/* DROPPED and EDITION are no messages: they begin with msgpack's nil and with
 * what is no msgpack, as no header can. */
static bool step_control(struct kith_link *link, const uint8_t *frame,
                         size_t size)
{
    struct kith_message message;
    if (link->traffic.in_frames <= KITH_FRAMES_PER_BURST_MAX)
        link->traffic.in_frames++;
    if (size == 1 && frame[0] == FRAME_DROPPED) {
        receives(link, false);
        return true;
    }
    if (size > 0 && frame[0] == KITH_FRAME_EDITION)
        return kith_list_frame(link, frame, size);
    if (kith_wire_unpack(frame, size, &message) != KITH_OK)
        return kith_link_refuse(link, KITH_REFUSAL_RECORD,
                                "a control frame that is no message");
    link->heard = true;
    kith_member_heard(&link->transport->members[link->rank]);
    message.slot = KITH_SLOT_NONE;
    if (message.kind == KITH_MESSAGE_MODEL)
        return model_begins(link, &message);
    deliver(link, &message);
    return true;
}

/* The finite gate costs a pass over bytes that decryption has just brought
 * into the cache of the core which runs it: on any of the threads that open
 * records, so it changes nothing. */
static bool record_passes(const void *arg, uint64_t record_at, size_t bytes)
{
    const struct kith_link *link = arg;
    const struct kith_traffic *traffic = &link->traffic;
    const struct kith_transport_options *options = &link->transport->options;
    const bool is_pull = traffic->model.pattern == KITH_PATTERN_PULL;
    const size_t at = traffic->in_offset + (size_t)record_at;
    KITH_ASSERT(at + bytes <= traffic->model.payload_bytes);
    /* Slots are memory of the host's; the loop never waits for a device. */
    return kith_format_passes(
        is_pull ? NULL : options->format, options->backend->host,
        (size_t)traffic->model.payload_bytes, at, bytes, traffic->target + at);
}

/* Announced by the session's peer, so every number is compared with what we
 * expect; none is used as it is. */
static bool step_bulk(struct kith_link *link,
                      const struct kith_session_event *event)
{
    struct kith_traffic *traffic = &link->traffic;
    const struct kith_transport_user *user = &link->transport->options.user;
    const size_t left =
        (size_t)traffic->model.payload_bytes - traffic->in_offset;
    const size_t length = left < KITH_BURST_BYTES ? left : KITH_BURST_BYTES;
    if (!traffic->receiving || event->transfer != traffic->in_id - 1 ||
        event->offset != traffic->in_offset || event->length != length)
        return kith_link_refuse(link, KITH_REFUSAL_TRANSFER,
                                "a burst that was not announced");
    /* The exchange may have been given up since the last burst. */
    if (traffic->target != NULL &&
        user->inbox(user->arg, link->rank, &traffic->model) !=
            traffic->model.slot)
        discard(traffic);
    traffic->in_burst = true;
    traffic->in_frames = 0;
    kith_session_sink(link->session, traffic->target
                                         ? traffic->target + traffic->in_offset
                                         : NULL);
    /* What is opaque its merge checks. */
    const bool is_pull = traffic->model.pattern == KITH_PATTERN_PULL;
    if (traffic->target != NULL && traffic->finite &&
        (is_pull || !link->transport->options.opaque))
        kith_session_check(link->session, record_passes, link);
    return true;
}

/* The session promises that the burst was whole, so the offset moves by its
 * length. */
static void step_burst(struct kith_link *link)
{
    struct kith_traffic *traffic = &link->traffic;
    const size_t total = (size_t)traffic->model.payload_bytes;
    const size_t left = total - traffic->in_offset;
    KITH_ASSERT(traffic->in_burst && left > 0);
    traffic->in_burst = false;
    traffic->in_offset += left < KITH_BURST_BYTES ? left : KITH_BURST_BYTES;
    if (traffic->in_offset == total)
        deliver_model(link);
}

/* Bulk records stay on the account of the AEAD: switching costs a clock read,
 * and there are thousands. */
bool kith_traffic_event(struct kith_link *link,
                        const struct kith_session_event *event)
{
    struct kith_account *account = &link->transport->net.account;
    bool kept = true;
    if (event->kind != KITH_SESSION_CONTROL &&
        event->transfer == KITH_LIST_TRANSFER)
        return kith_list_event(link, event);
    if (event->kind == KITH_SESSION_BULK)
        return step_bulk(link, event);
    if (event->kind == KITH_SESSION_RECORD) {
        link->traffic.finite = link->traffic.finite && event->passed;
        return true;
    }
    KITH_ASSERT(event->kind == KITH_SESSION_CONTROL ||
                event->kind == KITH_SESSION_BURST);
    kith_account_switch(account, KITH_ACCOUNT_OTHER);
    if (event->kind == KITH_SESSION_CONTROL)
        kept = step_control(link, event->frame, event->frame_bytes);
    else
        step_burst(link);
    kith_account_switch(account, KITH_ACCOUNT_AEAD);
    return kept;
}
