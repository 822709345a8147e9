/* What comes over an open link: transfer.c says in which form.
 *
 * A certified peer may still be hostile: it can send any authenticated bytes.
 * So a model must have been announced, be of the size that the experiment says,
 * stay within its certificate's quota, come in bursts of the expected offsets,
 * and be finite; and its inbox is asked for again before every burst. */
#include <math.h>

#include "kith/assert.h"
#include "kith/wire.h"
#include "transport.h"

/* What a read may ask for. A peer that sends other things than the model it
 * announced, or models that nobody wants, gets small reads. */
size_t kith_traffic_expected(const struct kith_link *link)
{
    const struct kith_traffic *traffic = &link->traffic;
    if (kith_link_is_guest(link))
        return kith_guest_expected(link);
    if (link->pieces.asked)
        return kith_piece_expected(link);
    if (!traffic->receiving || traffic->in_frames > KITH_FRAMES_PER_BURST_MAX ||
        traffic->unrequested > KITH_UNREQUESTED_MAX)
        return 0;
    return (size_t)traffic->model.payload_bytes - traffic->in_offset;
}

/* Of the burst that is due. */
size_t kith_burst_next(const struct kith_traffic *traffic)
{
    const size_t left =
        (size_t)traffic->model.payload_bytes - traffic->in_offset;
    return left < KITH_BURST_BYTES ? left : KITH_BURST_BYTES;
}

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
void kith_traffic_discard(struct kith_traffic *traffic)
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
        kith_traffic_discard(&l->traffic);
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
    traffic->in_filled = 0;
    kith_traffic_discard(traffic);
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

/* DROPPED, EDITION, SHARED and PIECE are no messages: they begin as no header
 * can. */
static bool step_control(struct kith_link *link, const uint8_t *frame,
                         size_t size)
{
    struct kith_message message;
    if (link->traffic.in_frames <= KITH_FRAMES_PER_BURST_MAX)
        link->traffic.in_frames++;
    if (size == 1 && frame[0] == KITH_FRAME_DROPPED) {
        receives(link, false);
        return true;
    }
    if (size > 0 && frame[0] == KITH_FRAME_EDITION)
        return kith_list_frame(link, frame, size);
    if (size > 0 && frame[0] == KITH_FRAME_PIECE)
        return kith_piece_frame(link, frame, size);
    if (size > 0 && frame[0] == KITH_FRAME_SHARED)
        return size == KITH_SHARED_BURST_BYTES && frame[1] == KITH_SHARED_BURST
                   ? kith_shared_burst_comes(link, frame)
                   : kith_hand_over_frame(link, frame, size);
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
bool kith_burst_passes(const void *arg, uint64_t record_at, size_t bytes)
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
 * expect; none is used as it is. The exchange may have been given up since the
 * last burst. */
bool kith_burst_begins(struct kith_link *link, uint64_t transfer,
                       uint64_t offset, uint64_t length)
{
    struct kith_traffic *traffic = &link->traffic;
    const struct kith_transport_user *user = &link->transport->options.user;
    if (!traffic->receiving || transfer != traffic->in_id - 1 ||
        offset != traffic->in_offset || length != kith_burst_next(traffic))
        return kith_link_refuse(link, KITH_REFUSAL_TRANSFER,
                                "a burst that was not announced");
    if (traffic->target != NULL &&
        user->inbox(user->arg, link->rank, &traffic->model) !=
            traffic->model.slot)
        kith_traffic_discard(traffic);
    traffic->in_burst = true;
    traffic->in_frames = 0;
    return true;
}

/* What is opaque its merge checks. */
bool kith_burst_is_checked(const struct kith_link *link)
{
    const struct kith_traffic *traffic = &link->traffic;
    return traffic->target != NULL && traffic->finite &&
           (traffic->model.pattern == KITH_PATTERN_PULL ||
            !link->transport->options.opaque);
}

static bool step_bulk(struct kith_link *link,
                      const struct kith_session_event *event)
{
    struct kith_traffic *traffic = &link->traffic;
    if (!kith_burst_begins(link, event->transfer, event->offset, event->length))
        return false;
    kith_session_sink(link->session, traffic->target
                                         ? traffic->target + traffic->in_offset
                                         : NULL);
    if (kith_burst_is_checked(link))
        kith_session_check(link->session, kith_burst_passes, link);
    return true;
}

/* The session promises that the burst was whole, so the offset moves by its
 * length. */
void kith_burst_ends(struct kith_link *link)
{
    struct kith_traffic *traffic = &link->traffic;
    const size_t total = (size_t)traffic->model.payload_bytes;
    KITH_ASSERT(traffic->in_burst && traffic->in_offset < total);
    traffic->in_burst = false;
    traffic->in_offset += kith_burst_next(traffic);
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
    if (event->kind != KITH_SESSION_CONTROL &&
        event->transfer == KITH_PIECE_TRANSFER)
        return kith_piece_event(link, event);
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
        kith_burst_ends(link);
    kith_account_switch(account, KITH_ACCOUNT_AEAD);
    return kept;
}
