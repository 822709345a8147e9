/* A connection's memory, its session and its time-outs.
 *
 * Every phase has a bound in time: TCP and each message message_ns, the whole
 * handshake handshake_ns, an open link idle_ns, a closing one KITH_DRAIN_NS.
 * What goes over it is connection.c's. */
#include <sodium.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "connection.h"
#include "kith/assert.h"
#include "transport.h"

_Static_assert(KITH_DRAIN_NS >= KITH_MS, "timers count milliseconds");

static void link_timer(uv_timer_t *timer);

/* In whole milliseconds, cut off. */
void kith_link_set_timer(struct kith_link *link, kith_ns after_ns)
{
    uv_timer_start(&link->timer, link_timer, (uint64_t)(after_ns / KITH_MS), 0);
}

/* Runs when libuv has closed both handles, and on the way out of link_new. The
 * session wipes its keys before its memory is given back. */
static void link_free(struct kith_link *link)
{
    if (link->session != NULL)
        kith_session_close(link->session);
    kith_list_forget(link);
    free(link->session_memory);
    free(link->partial);
    free(link);
}

/* libuv calls back once for the TCP handle and once for the timer, in either
 * order; the memory goes with the second. */
static void handle_closed(struct kith_link *link)
{
    KITH_ASSERT(link->handles > 0 && link->state == KITH_LINK_CLOSED);
    if (--link->handles > 0)
        return;
    *link->back = link->next;
    if (link->next != NULL)
        link->next->back = link->back;
    link_free(link);
}

static void link_closed(struct kith_socket *socket)
{
    handle_closed(socket->owner);
}

static void timer_closed(uv_handle_t *handle)
{
    handle_closed(handle->data);
}

/* Both handles: the memory goes once libuv has closed them. */
void kith_link_release(struct kith_link *link)
{
    KITH_ASSERT(link->state == KITH_LINK_CLOSED);
    kith_socket_close(&link->socket);
    uv_close((uv_handle_t *)&link->timer, timer_closed);
}

/* The session gets 32 random bytes, which are wiped here: it keeps its own
 * copy until the keys are split. */
bool kith_link_make_session(struct kith_link *link)
{
    const struct kith_transport *transport = link->transport;
    const struct kith_transport_options *options = &transport->options;
    struct kith_session_config config = {
        .initiator = link->initiator,
        .suite = options->suite,
        .aead = options->aead,
        .trust = &transport->trust,
        .identity = &transport->identity,
        .hello = options->hello,
        .utc_s = (int64_t)time(NULL),
        .threads = &transport->threads.session,
    };
    memcpy(config.secret, transport->secret, sizeof config.secret);
    link->session_memory = malloc(kith_session_size());
    const bool made = link->session_memory != NULL &&
                      uv_random(NULL, NULL, config.random, sizeof config.random,
                                0, NULL) == 0 &&
                      kith_session_init(link->session_memory, &config,
                                        &link->session) == KITH_OK;
    sodium_memzero(config.random, sizeof config.random);
    sodium_memzero(config.secret, sizeof config.secret);
    return made || kith_link_close(link, "a session could not be made");
}

/* TCP stands: the handshake's clocks run from here, and what the other end has
 * sent meanwhile is read. A link that cannot be read is closed at once. */
void kith_link_start(struct kith_link *link)
{
    KITH_ASSERT(link->state == KITH_LINK_CONNECTING);
    KITH_ASSERT(link->initiator == (link->rank != KITH_NOBODY));
    link->state = KITH_LINK_HANDSHAKE;
    link->born_ns = link->progress_ns = (kith_ns)uv_hrtime();
    /* The responder's first bytes wait for the initiator's: a port scanner that
     * only connects sees an open port, and not what listens there.
     * A responder's preface goes with message 2: one write, and a stranger who
     * says nothing learns nothing. */
    if (link->initiator &&
        !(kith_link_make_session(link) && kith_link_flush(link)))
        return;
    if (kith_socket_start(&link->socket) != KITH_OK)
        kith_link_close(link, "the socket could not be read");
}

/* Two limits: each message, against silence, and the whole, against one byte
 * at a time (slow loris). */
static void handshake_timer(struct kith_link *link, kith_ns now)
{
    const struct kith_peer_limits *limits = &link->transport->options.limits;
    const kith_ns message_due = link->progress_ns + limits->message_ns;
    const kith_ns whole_due = link->born_ns + limits->handshake_ns;
    const kith_ns due = message_due < whole_due ? message_due : whole_due;
    if (now >= due)
        kith_link_refuse(link, KITH_REFUSAL_TIMEOUT,
                         now >= whole_due ? "handshake" : "next message");
    else
        kith_link_set_timer(link, due - now + KITH_MS);
}

/* One timer for all phases, set again to whatever comes next, which is cheaper
 * than to restart it with every byte. */
static void link_timer(uv_timer_t *timer)
{
    struct kith_link *link = timer->data;
    struct kith_net *net = &link->transport->net;
    KITH_NET_SCOPE(net);
    const kith_ns now = (kith_ns)uv_hrtime();
    const kith_ns idle = link->transport->options.limits.idle_ns;
    if (link->state == KITH_LINK_CONNECTING) {
        kith_link_close(link, "connecting took too long");
    } else if (link->state == KITH_LINK_HANDSHAKE) {
        handshake_timer(link, now);
    } else if (link->closing & KITH_CLOSING_BEGUN) {
        kith_link_close(link, "closed after waiting for the peer");
    } else if (kith_link_is_guest(link)) {
        kith_link_close(link, "a visitor has measured long enough");
    } else if (now - link->progress_ns >= idle) {
        kith_member_finished(&link->transport->members[link->rank], link);
        kith_link_leave(link);
    } else {
        kith_link_set_timer(link, idle - (now - link->progress_ns) + KITH_MS);
    }
}

/* The timer runs from the start: a stranger that connects and says nothing is
 * closed by it. */
struct kith_link *kith_link_new(struct kith_transport *transport,
                                bool initiator)
{
    struct kith_link *link = calloc(1, sizeof *link);
    if (link == NULL)
        return NULL;
    link->transport = transport;
    link->initiator = initiator;
    link->rank = KITH_NOBODY;
    link->ticket = KITH_TICKET_NONE;
    link->partial_capacity = KITH_PREAUTH_BYTES;
    link->partial = malloc(link->partial_capacity);
    if (link->partial == NULL ||
        kith_socket_init(&link->socket, &transport->net, link) != KITH_OK) {
        link_free(link);
        return NULL;
    }
    link->socket.alloc = kith_link_alloc;
    link->socket.read = kith_link_read;
    link->socket.closed = link_closed;
    uv_timer_init(transport->loop, &link->timer);
    link->timer.data = link;
    link->handles = 2;
    link->born_ns = link->progress_ns = (kith_ns)uv_hrtime();
    link->next = transport->links;
    link->back = &transport->links;
    if (link->next != NULL)
        link->next->back = &link->next;
    transport->links = link;
    kith_link_set_timer(link, transport->options.limits.message_ns);
    return link;
}
