/* One connection: what goes out, what comes in, and its end.
 *
 *   CONNECTING -> HANDSHAKE -> OPEN [-> FIN both ways] -> CLOSED
 *
 * Until its first message has come a stranger costs a ticket (half_open.h) and
 * KITH_PREAUTH_BYTES, then, until message 3 has verified, a session, too; no
 * more is read at once than the handshake can use. Its memory, its session and
 * its time-outs are connection_life.c's. */
#include "connection.h"

#include <stdlib.h>
#include <string.h>

#include "kith/assert.h"
#include "transport.h"

_Static_assert(KITH_CONTROL_READ_BYTES < KITH_READ_BYTES,
               "a read of models is longer than one of control frames");
_Static_assert(KITH_PREAUTH_BYTES <= KITH_CHUNK_SMALL,
               "the output of a handshake fits a small chunk");

/* Once the peer is verified, or gone, its place is free for the next stranger.
 * Twice is harmless. */
static void give_ticket(struct kith_link *link)
{
    if (link->ticket != KITH_TICKET_NONE)
        kith_half_open_release(&link->transport->half_open, link->ticket);
    link->ticket = KITH_TICKET_NONE;
}

/* Idempotent, for several callers may find the same link broken. The member is
 * told last: it may dial at once, and must not find this link in use. */
bool kith_link_close(struct kith_link *link, const char *why)
{
    if (link->state == KITH_LINK_CLOSED)
        return false;
    struct kith_transport *transport = link->transport;
    if (link->known && link->state == KITH_LINK_OPEN) {
        KITH_ASSERT(transport->session_count > 0);
        transport->closed++;
        transport->session_count--;
        KITH_ASSERT(transport->connected - transport->closed ==
                    transport->session_count);
        kith_transport_log(transport,
                           "closed rank=%u name=%s address=%s reason=\"%s\"",
                           link->rank, kith_session_peer(link->session)->name,
                           link->address, why);
    }
    link->state = KITH_LINK_CLOSED;
    kith_traffic_close(link);
    kith_hand_over_closed(link);
    kith_piece_closed(link);
    kith_guest_closed(link);
    give_ticket(link);
    kith_link_release(link);
    if (link->rank != KITH_NOBODY)
        kith_member_closed(&transport->members[link->rank], link, why);
    return false;
}

/* Nothing is sent to a stranger: a reason would help nobody but an attacker. */
bool kith_link_refuse(struct kith_link *link, enum kith_refusal refusal,
                      const char *detail)
{
    if (link->state == KITH_LINK_CLOSED)
        return false;
    kith_transport_refuse(link->transport, refusal, link->address, detail);
    return kith_link_close(link, detail);
}

/* ---- out
 *
 * Chunks come from the process's pool, are filled by the session, and belong to
 * the socket once they are written. A chunk that cannot be had ends the link:
 * a record that was sealed and not sent would break the order of nonces. */

/* Once is enough: the session hands out all that it has at once. */
bool kith_link_flush(struct kith_link *link)
{
    struct kith_net *net = &link->transport->net;
    struct kith_chunk *chunk = kith_chunk_take(net, KITH_PREAUTH_BYTES);
    if (chunk == NULL)
        return kith_link_close(link, "out of memory");
    KITH_ASSERT(chunk->capacity >= KITH_PREAUTH_BYTES);
    chunk->size =
        kith_session_output(link->session, chunk->bytes, chunk->capacity);
    if (chunk->size > 0)
        kith_socket_write(&link->socket, chunk);
    else
        kith_chunk_give(net, chunk);
    return true;
}

/* A queue that grows without end is a peer that does not read: it is cut off
 * rather than given our memory. */
bool kith_link_control(struct kith_link *link, const uint8_t *frame,
                       size_t size)
{
    struct kith_net *net = &link->transport->net;
    if (link->state != KITH_LINK_OPEN ||
        (link->closing & KITH_CLOSING_FIN_SENT))
        return false;
    if (link->socket.queued >= KITH_CHUNKS_MAX)
        return kith_link_close(link, "the peer does not read");
    struct kith_chunk *chunk =
        kith_chunk_take(net, kith_session_control_size(size));
    if (chunk == NULL)
        return kith_link_close(link, "out of memory");
    const enum kith_account_kind was =
        kith_account_switch(&net->account, KITH_ACCOUNT_AEAD);
    const enum kith_err err =
        kith_session_seal_control(link->session, frame, size, chunk->bytes,
                                  chunk->capacity, &chunk->size);
    kith_account_switch(&net->account, was);
    if (err != KITH_OK) {
        kith_chunk_give(net, chunk);
        return kith_link_close(link, "a control frame could not be sealed");
    }
    kith_socket_write(&link->socket, chunk);
    if (link->socket.failed)
        return kith_link_close(link, "the connection broke");
    return true;
}

bool kith_link_bulk(struct kith_link *link, uint64_t transfer, uint64_t offset,
                    const uint8_t *payload, size_t length)
{
    struct kith_net *net = &link->transport->net;
    if (link->state != KITH_LINK_OPEN ||
        (link->closing & KITH_CLOSING_FIN_SENT))
        return false;
    struct kith_chunk *chunk =
        kith_chunk_take(net, kith_session_burst_size(length));
    if (chunk == NULL)
        return kith_link_close(link, "out of memory for a burst");
    const struct kith_session_burst burst = {transfer, offset, payload, length};
    if (kith_session_seal_burst(link->session, &burst, chunk->bytes,
                                chunk->capacity, &chunk->size) != KITH_OK) {
        kith_chunk_give(net, chunk);
        return kith_link_close(link, "a burst could not be sealed");
    }
    kith_socket_write(&link->socket, chunk);
    return link->state == KITH_LINK_OPEN;
}

/* The notice leaves at once or not at all: the socket is closed behind it. */
bool kith_link_tell(struct kith_link *link, enum kith_refusal refusal,
                    enum kith_notice notice, const char *detail)
{
    struct kith_net *net = &link->transport->net;
    struct kith_chunk *chunk =
        link->state == KITH_LINK_OPEN
            ? kith_chunk_take(net, kith_session_control_size(1))
            : NULL;
    if (chunk != NULL &&
        kith_session_seal_notice(link->session, notice, chunk->bytes,
                                 chunk->capacity, &chunk->size) == KITH_OK)
        kith_socket_write(&link->socket, chunk);
    else if (chunk != NULL)
        kith_chunk_give(net, chunk);
    return kith_link_refuse(link, refusal, detail);
}

/* The other side has told why it does not keep us. */
static void link_told(struct kith_link *link)
{
    const char *why = kith_session_reason(link->session);
    if (link->rank != KITH_NOBODY)
        kith_member_told(&link->transport->members[link->rank],
                         kith_session_notice(link->session), link->address);
    kith_link_close(link, why);
}

/* Called whenever something has been sent or received while the link closes.
 * Our FIN waits for the models under way; the connection for both FINs and the
 * last chunk, so that neither side sees a reset. */
void kith_link_finish_closing(struct kith_link *link)
{
    struct kith_net *net = &link->transport->net;
    if (!(link->closing & KITH_CLOSING_BEGUN) || link->state != KITH_LINK_OPEN)
        return;
    if (!(link->closing & KITH_CLOSING_FIN_SENT) &&
        kith_traffic_is_idle(link)) {
        struct kith_chunk *chunk = kith_chunk_take(net, KITH_CHUNK_SMALL);
        if (chunk == NULL ||
            kith_session_seal_fin(link->session, chunk->bytes, chunk->capacity,
                                  &chunk->size) != KITH_OK) {
            if (chunk != NULL)
                kith_chunk_give(net, chunk);
            kith_link_close(link, "could not say goodbye");
            return;
        }
        link->closing |= KITH_CLOSING_FIN_SENT;
        kith_socket_write(&link->socket, chunk);
    }
    if ((link->closing & KITH_CLOSING_BOTH_FINS) == KITH_CLOSING_BOTH_FINS &&
        link->socket.queued == 0)
        kith_link_close(link, "closed in order");
}

/* Idempotent. The timer ends it when the other side does not answer. */
void kith_link_leave(struct kith_link *link)
{
    if ((link->closing & KITH_CLOSING_BEGUN) || link->state != KITH_LINK_OPEN)
        return;
    link->closing |= KITH_CLOSING_BEGUN;
    link->progress_ns = (kith_ns)uv_hrtime();
    kith_link_set_timer(link, KITH_DRAIN_NS);
    kith_link_finish_closing(link);
}

/* ---- in
 *
 * The shared read buffer holds what was left of a record, then the new bytes;
 * the session consumes them record by record, and what is left goes back into
 * `partial`. A model's bytes go straight from this buffer, opened, into the
 * inbox. */

/* The read buffer is shared by all links, so what is left of a record is put
 * before the new bytes. How much is asked for bounds how much a peer can make
 * us process before others have their turn. */
void kith_link_alloc(struct kith_socket *socket, uint8_t **bytes, size_t *size)
{
    struct kith_link *link = socket->owner;
    struct kith_net *net = socket->net;
    KITH_ASSERT(link->partial_size <= link->partial_capacity);
    KITH_ASSERT(link->partial_size + KITH_READ_BYTES <= net->read_bytes);
    memcpy(net->read_buffer, link->partial, link->partial_size);
    *bytes = net->read_buffer + link->partial_size;
    if (link->state == KITH_LINK_OPEN) {
        /* Where models lie in memory, or pieces of the data are given, what is
         * read must fit `partial`, should the link rest after its first frame.
         */
        const bool rests =
            link->sharing.view.head != NULL || link->pieces.asked;
        const size_t whole =
            rests ? KITH_RECORD_BYTES_MAX + 1u : KITH_READ_BYTES;
        const size_t most = whole - KITH_CONTROL_READ_BYTES;
        const size_t expected = kith_traffic_expected(link);
        *size = KITH_CONTROL_READ_BYTES + (expected < most ? expected : most);
        link->read_limit = *size;
        return;
    }
    const size_t want =
        link->session ? kith_session_want(link->session) : KITH_FIRST_BYTES;
    *size = want > link->partial_size ? want - link->partial_size : 1;
}

/* What the session made of a bad byte, as a kind of refusal. */
static enum kith_refusal refusal_of(const struct kith_link *link,
                                    enum kith_err err)
{
    if (err == KITH_EAUTH)
        return link->state == KITH_LINK_OPEN ? KITH_REFUSAL_RECORD
                                             : KITH_REFUSAL_AUTH;
    if (err == KITH_EEXPIRED)
        return KITH_REFUSAL_EXPIRED;
    if (err == KITH_EREVOKED)
        return KITH_REFUSAL_REVOKED;
    if (err == KITH_EVERSION)
        return KITH_REFUSAL_VERSION;
    if (err == KITH_EMISMATCH)
        return KITH_REFUSAL_MISMATCH;
    if (!link->initiator && link->progress_ns == link->born_ns)
        return KITH_REFUSAL_PREFACE;
    return KITH_REFUSAL_RECORD;
}

/* An open link keeps a cut record: on first need, most never have one. */
static bool make_room(struct kith_link *link, size_t size)
{
    const size_t capacity = KITH_RECORD_BYTES_MAX + 2u;
    uint8_t *rest = size <= capacity ? realloc(link->partial, capacity) : NULL;
    if (rest == NULL)
        return false;
    link->partial = rest;
    link->partial_capacity = capacity;
    return true;
}

/* Idle time counts from here. The ticket goes back before identify(), which
 * may refuse. */
static bool link_opened(struct kith_link *link)
{
    KITH_ASSERT(link->state == KITH_LINK_HANDSHAKE);
    KITH_ASSERT(kith_session_is_open(link->session));
    give_ticket(link);
    link->state = KITH_LINK_OPEN;
    if (!kith_transport_identify(link))
        return false;
    if (kith_link_is_guest(link)) {
        kith_link_set_timer(link, KITH_GUEST_NS);
        return true;
    }
    kith_link_set_timer(link, link->transport->options.limits.idle_ns);
    struct kith_member_state *member = &link->transport->members[link->rank];
    if (!kith_member_opened(member, link))
        return false;
    kith_list_announce(link);
    kith_piece_opened(link);
    kith_hand_over_opened(link);
    return link->state == KITH_LINK_OPEN;
}

/* False: the link is closed, or is to be left alone. */
static bool link_event(struct kith_link *link,
                       const struct kith_session_event *event)
{
    if (event->kind == KITH_SESSION_OPEN) {
        KITH_NET_SCOPE(&link->transport->net);
        /* Our HELLO first: the other side must be open before a message. */
        return kith_link_flush(link) && link_opened(link);
    }
    if (kith_link_is_guest(link))
        return kith_guest_event(link, event);
    if (event->kind == KITH_SESSION_FIN) {
        link->closing |= KITH_CLOSING_FIN_RECEIVED;
        kith_member_finished(&link->transport->members[link->rank], link);
        kith_link_leave(link);
        kith_link_finish_closing(link);
        return link->state == KITH_LINK_OPEN;
    }
    return kith_traffic_event(link, event);
}

/* The first bytes of a stranger: a session, which draws a key, is made for a
 * whole first message behind a preface of ours, and only while the budget
 * lasts. False: the link was refused, or more must come. */
static bool begin_handshake(struct kith_link *link, size_t size)
{
    struct kith_transport *transport = link->transport;
    const uint8_t *bytes = transport->net.read_buffer;
    KITH_ASSERT(!link->initiator && link->state == KITH_LINK_HANDSHAKE);
    if (!kith_session_begins(bytes, size))
        return kith_link_refuse(link, KITH_REFUSAL_PREFACE,
                                "plain or foreign bytes");
    if (size < KITH_FIRST_BYTES) {
        KITH_ASSERT(size <= link->partial_capacity);
        memcpy(link->partial, bytes, size);
        link->partial_size = size;
        return false;
    }
    if (!kith_half_open_pay(&transport->half_open, link->ticket,
                            (kith_ns)uv_hrtime()))
        return kith_link_refuse(link, KITH_REFUSAL_BUDGET, "");
    return kith_link_make_session(link);
}

/* Paused for this turn, by kith_link_rest(). */
static bool is_resting(const struct kith_link *link)
{
    return link->state == KITH_LINK_OPEN && !link->held &&
           !link->socket.reading;
}

/* Of a member alone, that was dialled or has proved its rank: nobody else can
 * say that it has another experiment. Dialled, its address says who it is; who
 * dials us is believed once its certificate names the rank of its HELLO. */
static void note_mismatch(const struct kith_link *link)
{
    struct kith_transport *transport = link->transport;
    const struct kith_transport_options *options = &transport->options;
    const kith_id rank = link->initiator
                             ? link->rank
                             : kith_session_peer_hello(link->session)->rank;
    size_t certificate_bytes;
    (void)kith_session_peer_certificate(link->session, &certificate_bytes);
    if (rank >= options->peers || rank == options->self)
        return;
    if (link->initiator ||
        (certificate_bytes > 0 &&
         (int64_t)kith_session_peer(link->session)->rank == (int64_t)rank))
        kith_member_differs(&transport->members[rank],
                            kith_session_reason(link->session));
}

/* Reads `size` bytes at the start of the read buffer; keeps what is left. */
static void link_consume(struct kith_link *link, size_t size)
{
    struct kith_net *net = &link->transport->net;
    uint8_t *bytes = net->read_buffer;
    KITH_ASSERT(size <= net->read_bytes);
    size_t at = 0;
    link->partial_size = 0;
    if (link->session == NULL && !begin_handshake(link, size))
        return;
    const enum kith_account_kind was =
        kith_account_switch(&net->account, KITH_ACCOUNT_AEAD);
    while (link->state != KITH_LINK_CLOSED && !link->held &&
           !is_resting(link)) {
        struct kith_session_event event;
        size_t consumed = 0;
        const enum kith_err err = kith_session_read(
            link->session, bytes + at, size - at, &consumed, &event);
        at += consumed;
        KITH_ASSERT(at <= size);
        if (err == KITH_EPERM) {
            link_told(link);
            break;
        }
        if (err != KITH_OK) {
            /* After a mismatch this is our HELLO: the peer names it too. After
             * a certificate of ours that will not do, why. */
            (void)kith_link_flush(link);
            if (err == KITH_EMISMATCH)
                note_mismatch(link);
            kith_link_refuse(link, refusal_of(link, err),
                             kith_session_reason(link->session));
            break;
        }
        if (consumed > 0)
            link->progress_ns = (kith_ns)uv_hrtime();
        if (event.kind == KITH_SESSION_NONE || !link_event(link, &event))
            break;
    }
    kith_account_switch(&net->account, was);
    if (link->state == KITH_LINK_CLOSED)
        return;
    if (size - at > link->partial_capacity &&
        (link->state != KITH_LINK_OPEN || !make_room(link, size - at))) {
        kith_link_close(link, "no room for a record that was cut short");
        return;
    }
    link->partial_size = size - at;
    KITH_ASSERT(link->partial_size <= link->partial_capacity);
    memcpy(link->partial, bytes + at, link->partial_size);
    if (link->state != KITH_LINK_OPEN)
        kith_link_flush(link);
}

/* A read that talk has filled: let the rest of the loop have its turn. */
static void throttle_control(struct kith_link *link, kith_ns began_ns)
{
    const kith_ns now = (kith_ns)uv_hrtime();
    if (link->state == KITH_LINK_OPEN && !link->held && !is_resting(link) &&
        kith_traffic_expected(link) < KITH_CONTROL_READ_BYTES)
        kith_socket_throttle(&link->socket,
                             now + KITH_CONTROL_THROTTLE * (now - began_ns));
}

/* libuv gives an error or EOF as a negative size. The time of processing is
 * measured to throttle a peer that talks without end. */
void kith_link_read(struct kith_socket *socket, ssize_t size)
{
    struct kith_link *link = socket->owner;
    if (link->state == KITH_LINK_CLOSED)
        return;
    if (size >= 0) {
        const bool filled = (size_t)size == link->read_limit;
        const kith_ns began_ns = (kith_ns)uv_hrtime();
        link_consume(link, link->partial_size + (size_t)size);
        if (filled)
            throttle_control(link, began_ns);
        return;
    }
    const char *why = size == UV_EOF ? "the peer closed the connection"
                                     : uv_strerror((int)size);
    if (link->state == KITH_LINK_OPEN)
        kith_link_close(link, why);
    else
        kith_link_refuse(link, KITH_REFUSAL_CLOSED, why);
}

/* What came during the hold lies in `partial`; reading was paused, so the
 * kernel keeps the rest. */
void kith_link_unhold(struct kith_link *link)
{
    if (!link->held || link->state != KITH_LINK_OPEN)
        return;
    link->held = false;
    kith_socket_pause(&link->socket, false);
    memcpy(link->transport->net.read_buffer, link->partial, link->partial_size);
    link_consume(link, link->partial_size);
    if (link->state == KITH_LINK_OPEN)
        kith_traffic_pump(link);
}

/* What was read already is kept as that of a hold is; a read of a link whose
 * models lie in shared memory is short enough for `partial`. */
void kith_link_rest(struct kith_link *link)
{
    KITH_ASSERT(!link->held);
    if (link->transport->stopping)
        return; /* There may be no next turn. */
    kith_socket_pause(&link->socket, true);
    kith_transport_notify_soon(link->transport);
}

void kith_link_wake(struct kith_link *link)
{
    if (!is_resting(link))
        return;
    kith_socket_pause(&link->socket, false);
    memcpy(link->transport->net.read_buffer, link->partial, link->partial_size);
    link_consume(link, link->partial_size);
}
