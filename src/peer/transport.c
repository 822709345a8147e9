/* Listening, admission, the members, and the end of it all. */
#include "transport.h"

#include <sodium.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "kith/assert.h"
#include "kith/fault.h"
#include "kith/hash.h"
#include "kith/keys.h"

#define BACKLOG 512

/* Lines of KEY=VALUE: a shell can cut them, docs/protocol.md lists them. */
void kith_transport_log(struct kith_transport *transport, const char *format,
                        ...)
{
    const struct kith_transport_options *options = &transport->options;
    if (options->on_log == NULL)
        return;
    char line[KITH_PEER_LINE_BYTES];
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(line, sizeof line, format, arguments);
    va_end(arguments);
    options->on_log(options->log_user, line);
}

/* The same peer comes from another port each time. */
static uint64_t refusal_hash(enum kith_refusal refusal, const char *address,
                             const char *detail)
{
    const char *port = strrchr(address, ':');
    const size_t host = port ? (size_t)(port - address) : strlen(address);
    uint64_t hash = kith_hash_word(KITH_HASH_START, (uint64_t)refusal);
    hash = kith_hash_bytes(hash, address, host);
    return kith_hash_bytes(hash, detail, strlen(detail));
}

/* Two limits: one line for repeats of the same, and KITH_REFUSALS_PER_S for
 * floods of different ones. Counters count all. */
void kith_transport_refuse(struct kith_transport *transport,
                           enum kith_refusal refusal, const char *address,
                           const char *detail)
{
    KITH_ASSERT(refusal < KITH_REFUSAL_COUNT);
    transport->refusals[refusal]++;
    const kith_ns now = (kith_ns)uv_hrtime();
    const uint64_t times = kith_log_limit_count(
        &transport->log_limit, refusal_hash(refusal, address, detail), now);
    if (!kith_log_limit_passes(times))
        return;
    if (now - transport->log_second_ns >= KITH_S) {
        if (transport->log_left_out > 0)
            kith_transport_log(transport, "refused-more count=%u",
                               transport->log_left_out);
        transport->log_second_ns = now;
        transport->log_count = transport->log_left_out = 0;
    }
    if (transport->log_count++ >= KITH_REFUSALS_PER_S) {
        transport->log_left_out++;
        return;
    }
    kith_transport_log(transport,
                       "refused kind=%s address=%s reason=\"%s\" detail=\"%s\" "
                       "count=%llu",
                       kith_refusal_word(refusal), address,
                       kith_refusal_name(refusal), detail,
                       (unsigned long long)times);
}

/* ---- listening
 *
 * A stranger passes three gates: the kernel's backlog, the half-open table, the
 * handshake. Only the third costs us cryptography. */

/* For connections that never became a link. */
static void close_plain(uv_handle_t *handle)
{
    free(handle);
}

/* Takes a connection only to close it: it would wait in the backlog. */
static void accept_and_close(struct kith_transport *transport,
                             uv_stream_t *listener)
{
    uv_tcp_t *tcp = malloc(sizeof *tcp);
    if (tcp == NULL)
        return;
    uv_tcp_init(transport->loop, tcp);
    (void)uv_accept(listener, (uv_stream_t *)tcp);
    uv_close((uv_handle_t *)tcp, close_plain);
}

/* Admission before a byte is read; the kernel has completed TCP, which is all
 * that a stranger gets for nothing. */
static void transport_accept(struct kith_transport *transport,
                             uv_stream_t *listener)
{
    struct kith_link *link = kith_link_new(transport, false);
    if (link == NULL) {
        accept_and_close(transport, listener);
        return;
    }
    struct sockaddr_storage from = {.ss_family = 0};
    int size = sizeof from;
    if (uv_accept(listener, (uv_stream_t *)&link->socket.tcp) != 0 ||
        uv_tcp_getpeername(&link->socket.tcp, (struct sockaddr *)&from,
                           &size) != 0) {
        kith_link_close(link, "accepting failed");
        return;
    }
    const struct sockaddr *address = (const struct sockaddr *)&from;
    kith_address_print(address, link->address);
    void *evicted = NULL;
    const enum kith_refusal refusal =
        kith_half_open_admit(&transport->half_open,
                             &(const struct kith_half_open_request){
                                 address, (kith_ns)uv_hrtime(), link},
                             &link->ticket, &evicted);
    if (evicted) { /* its ticket is the newcomer's now */
        struct kith_link *const other = evicted;
        other->ticket = KITH_TICKET_NONE;
        kith_link_refuse(other, KITH_REFUSAL_HALF_OPEN, "it made room");
    }
    if (refusal == KITH_REFUSAL_COUNT)
        kith_link_start(link);
    else
        kith_link_refuse(link, refusal, "");
}

/* Errors of accept (descriptors used up, most often) are logged and survived.
 */
static void transport_connection(uv_stream_t *listener, int status)
{
    struct kith_transport *transport = listener->data;
    KITH_NET_SCOPE(&transport->net);
    if (status < 0)
        kith_transport_log(transport, "accept-failed reason=\"%s\"",
                           uv_strerror(status));
    else if (transport->stopping)
        accept_and_close(transport, listener);
    else
        transport_accept(transport, listener);
}

/* Names are looked up when they are dialled. */
static void find_homes(struct kith_transport *transport)
{
    for (kith_id i = 0; i < transport->options.peers; i++) {
        struct kith_address address;
        struct sockaddr_storage at;
        if (kith_address_parse(transport->options.members[i].address,
                               &address) == KITH_OK &&
            kith_address_is_numeric(&address, &at))
            kith_half_open_home(&transport->half_open, i,
                                (const struct sockaddr *)&at);
    }
}

/* ---- turns
 *
 * What must not happen within the call that caused it happens at the end of the
 * loop's turn (idle handle) or at the next tick (timer). */

/* All members: few have news, and looking is cheaper than a list of those who
 * have. */
static void transport_notify(uv_idle_t *idle)
{
    struct kith_transport *transport = idle->data;
    KITH_NET_SCOPE(&transport->net);
    uv_idle_stop(idle);
    for (kith_id i = 0; i < transport->options.peers; i++)
        kith_member_notify(&transport->members[i]);
    for (struct kith_link *l = transport->links; l != NULL; l = l->next)
        kith_link_wake(l);
}

/* An idle handle runs before the next poll, that is after all callbacks of
 * this turn. */
void kith_transport_notify_soon(struct kith_transport *transport)
{
    if (!transport->stopping)
        uv_idle_start(&transport->notify, transport_notify);
}

/* A copy takes milliseconds, and a device's own call-back would come on a
 * thread of its driver's: asking is simpler. */
#define POLL_MS 1

/* Only links with a model to send can be waiting for a copy. */
static void transport_polled(uv_timer_t *timer)
{
    struct kith_transport *transport = timer->data;
    KITH_NET_SCOPE(&transport->net);
    for (struct kith_link *l = transport->links; l != NULL; l = l->next) {
        if (l->state != KITH_LINK_OPEN || l->traffic.transfer_count == 0)
            continue;
        kith_traffic_pump(l);
        kith_link_finish_closing(l);
    }
}

/* Idempotent while it is set; not after stop(). */
void kith_transport_poll(struct kith_transport *transport)
{
    if (!uv_is_active((uv_handle_t *)&transport->poll) &&
        !uv_is_closing((uv_handle_t *)&transport->poll))
        uv_timer_start(&transport->poll, transport_polled, POLL_MS, 0);
}

/* ---- begin and end
 *
 * init -> (hold) -> unhold -> leave -> stop -> the loop runs dry -> free.
 * leave() is for a run that ends in order, stop() for any. */

/* The socket listens already where it comes from kith_peer_listen(): again is
 * harmless, and its backlog is kept. */
static enum kith_err start_listening(struct kith_transport *transport, int fd)
{
    uv_tcp_init(transport->loop, &transport->listener);
    transport->listener.data = transport;
    if (uv_tcp_open(&transport->listener, fd) != 0 ||
        uv_listen((uv_stream_t *)&transport->listener, BACKLOG,
                  transport_connection) != 0)
        return KITH_EIO;
    return KITH_OK;
}

/* Handles that were opened before a failure need the loop to close, so it is
 * run dry here. */
enum kith_err kith_transport_init(struct kith_transport *transport,
                                  uv_loop_t *loop,
                                  const struct kith_transport_options *options,
                                  int fd)
{
    memset(transport, 0, sizeof *transport);
    transport->options = *options;
    transport->loop = loop;
    transport->identity = *options->identity;
    transport->held = true;
    transport->pieces.store = options->store;
    const size_t most = options->payload_bytes > options->model_bytes
                            ? options->payload_bytes
                            : options->model_bytes;
    const size_t piece =
        options->store != NULL ? options->store->manifest.piece_bytes : 0;
    const size_t model = most < KITH_BURST_BYTES ? most : KITH_BURST_BYTES;
    const size_t room = kith_session_burst_size(model > piece ? model : piece);
    uint64_t seed = 0;
    KITH_ASSERT(options->self < options->peers);
    KITH_ASSERT(options->slice_bytes <= most);
    transport->members = calloc(options->peers, sizeof *transport->members);
    if (transport->members == NULL)
        return KITH_ENOMEM;
    enum kith_err err = kith_keys_copy_trust(&transport->trust, options->trust);
    if (err != KITH_OK)
        goto no_trust;
    for (kith_id i = 0; i < options->peers; i++) {
        transport->members[i].transport = transport;
        transport->members[i].rank = i;
        transport->members[i].tokens.tokens = options->limits.handshake_burst;
        struct kith_link_terms terms = options->usual;
        if (options->experiment != NULL)
            kith_experiment_link(options->experiment, options->self, i, &terms);
        kith_link_flow_init(&transport->members[i].flow, &terms, options->seed,
                            options->self, i);
    }
    err = uv_random(NULL, NULL, &seed, sizeof seed, 0, NULL) == 0 &&
                  uv_random(NULL, NULL, transport->secret,
                            sizeof transport->secret, 0, NULL) == 0
              ? kith_half_open_init(&transport->half_open,
                                    &transport->options.limits, options->peers,
                                    seed)
              : KITH_EDEVICE;
    if (err != KITH_OK)
        goto no_half_open;
    find_homes(transport);
    err = kith_net_init(&transport->net, loop, &options->usual,
                        room > KITH_CHUNK_SMALL ? room : KITH_CHUNK_SMALL + 1);
    if (err != KITH_OK)
        goto no_net;
    err = kith_record_threads_start(&transport->threads,
                                    options->cores > 0 ? options->cores : 1);
    if (err != KITH_OK)
        goto no_threads;
    if (options->experiment != NULL)
        kith_net_take_lines(&transport->net,
                            &options->experiment->network.classes,
                            options->self);
    transport->net.congestion = options->congestion;
    uv_idle_init(loop, &transport->notify);
    uv_timer_init(loop, &transport->tick);
    uv_timer_init(loop, &transport->poll);
    transport->notify.data = transport->tick.data = transport->poll.data =
        transport;
    const uint64_t tick = (uint64_t)(options->limits.revoked_ns / KITH_MS);
    uv_timer_start(&transport->tick, kith_transport_tick, tick, tick);
    kith_list_keep(transport);
    kith_hand_over_start(transport);
    err = start_listening(transport, fd);
    if (err != KITH_OK) {
        kith_transport_stop(transport);
        uv_run(loop, UV_RUN_DEFAULT);
        kith_transport_free(transport);
    }
    return err;

no_threads:
    kith_net_stop(&transport->net);
    uv_run(loop, UV_RUN_DEFAULT);
    kith_net_free(&transport->net);
no_net:
    kith_half_open_close(&transport->half_open);
no_half_open:
    kith_keys_free(&transport->identity, &transport->trust);
no_trust:
    free(transport->members);
    return err;
}

/* Links first, as UP; then what they said during the hold; then what we have
 * for them. Who could not be dialled during the hold, and is connected now, has
 * not been down for anybody: a round would go on without it until it is
 * heard. */
void kith_transport_unhold(struct kith_transport *transport)
{
    KITH_ASSERT(transport->held);
    transport->held = false;
    for (kith_id i = 0; i < transport->options.peers; i++) {
        struct kith_member_state *member = &transport->members[i];
        member->down_due &= member->link == NULL;
        kith_member_notify(member);
        kith_member_tell_up(member);
    }
    for (struct kith_link *l = transport->links; l != NULL; l = l->next)
        kith_link_unhold(l);
    for (kith_id i = 0; i < transport->options.peers; i++)
        kith_member_flush(&transport->members[i]);
}

/* May fail in any way: the node learns of it by LINK_DOWN, or by a deadline. */
void kith_transport_send(struct kith_transport *transport, kith_id to,
                         const struct kith_message *message)
{
    KITH_ASSERT(to < transport->options.peers);
    kith_member_send(&transport->members[to], message);
}

void kith_transport_dial(struct kith_transport *transport, kith_id to)
{
    KITH_ASSERT(to < transport->options.peers && to != transport->options.self);
    kith_member_dial(&transport->members[to]);
}

/* Links and members' queues: a model may wait in either. */
void kith_transport_cancel(struct kith_transport *transport, uint32_t slots)
{
    for (struct kith_link *l = transport->links; l != NULL; l = l->next)
        kith_traffic_cancel(l, slots);
    for (kith_id i = 0; i < transport->options.peers; i++)
        kith_member_cancel(&transport->members[i], slots);
}

/* Also for links that open later: the member remembers it. */
void kith_transport_act(struct kith_transport *transport,
                        const struct kith_atom *atom)
{
    KITH_ASSERT(atom->other < transport->options.peers);
    struct kith_link_flow *flow = &transport->members[atom->other].flow;
    kith_atom_act(atom, flow);
    for (struct kith_link *l = transport->links; l != NULL; l = l->next)
        if (l->socket.flow == flow && l->state != KITH_LINK_CLOSED)
            kith_socket_flow(&l->socket, flow);
}

/* Open sessions get their FIN; whatever is not open yet has nothing to lose. */
void kith_transport_leave(struct kith_transport *transport)
{
    transport->stopping = true;
    kith_sent_vectors_sum(transport);
    uv_idle_stop(&transport->notify);
    for (struct kith_link *l = transport->links; l != NULL; l = l->next)
        kith_link_wake(l);
    for (struct kith_link *l = transport->links; l != NULL; l = l->next)
        if (l->state == KITH_LINK_OPEN && !l->held && !kith_link_is_guest(l))
            kith_link_leave(l);
        else
            kith_link_close(l, "this peer leaves");
}

/* Links leave the list when libuv has closed their handles. */
bool kith_transport_is_empty(const struct kith_transport *transport)
{
    return transport->links == NULL;
}

/* stop() may run twice: after an error in init, and from close_all(). */
static void close_once(void *handle)
{
    if (!uv_is_closing(handle))
        uv_close(handle, NULL);
}

/* Look-ups cannot be closed, only cancelled; their callbacks run in the loop.
 */
void kith_transport_stop(struct kith_transport *transport)
{
    transport->stopping = true;
    for (struct kith_link *l = transport->links; l != NULL; l = l->next)
        kith_link_close(l, "this peer leaves");
    for (kith_id i = 0; i < transport->options.peers; i++)
        if (transport->members[i].lookup != NULL)
            uv_cancel((uv_req_t *)transport->members[i].lookup);
    kith_net_stop(&transport->net);
    kith_hand_over_stop(transport);
    close_once(&transport->listener);
    close_once(&transport->tick);
    close_once(&transport->poll);
    close_once(&transport->notify);
}

/* After uv_run() has returned: every callback has run. */
void kith_transport_free(struct kith_transport *transport)
{
    KITH_ASSERT(transport->links == NULL && transport->session_count == 0);
    for (kith_id i = 0; i < transport->options.peers; i++)
        kith_member_free(&transport->members[i]);
    free(transport->members);
    kith_half_open_close(&transport->half_open);
    kith_record_threads_stop(&transport->threads);
    kith_net_free(&transport->net);
    sodium_memzero(transport->secret, sizeof transport->secret);
    kith_keys_free(&transport->identity, &transport->trust);
}
