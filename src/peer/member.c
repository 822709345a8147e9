/* One member: which link is used, dialling on demand, back-off.
 *
 * Two peers may dial each other at the same moment. Then the connection that
 * the lower rank initiated is used; its initiator, who opens last, says FIN on
 * the other one, and what was under way there still arrives. A second
 * connection from the same side replaces the first, which its initiator must
 * have given up.
 * Test: unit/test_member.c. */
#include <netdb.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "kith/assert.h"
#include "kith/hash.h"
#include "transport.h"

static void dial_socket(struct kith_member_state *member,
                        const struct sockaddr *address);

/* Ranks decide ties between two connections of a pair. */
static kith_id self_of(const struct kith_member_state *member)
{
    return member->transport->options.self;
}

/* Never at once: the caller may be within a step of the node, which must not
 * be entered again. */
static void schedule_down(struct kith_member_state *member)
{
    member->down_due = true;
    kith_transport_notify_soon(member->transport);
}

/* Looking the name up counts: it may take seconds. */
static bool is_dialling(const struct kith_member_state *member)
{
    return member->dialled != NULL || member->lookup != NULL;
}

/* What the name stood for, once a dial has ended; freeaddrinfo() of libuv takes
 * NULL. */
static void forget_addresses(struct kith_member_state *member)
{
    uv_freeaddrinfo(member->found);
    member->found = member->candidate = NULL;
}

/* Bounded: a dial that takes long loses messages, which the protocol repeats,
 * rather than growing a queue. */
static void enqueue_message(struct kith_member_state *member,
                            const struct kith_message *message)
{
    if (member->waiting == NULL)
        member->waiting = malloc(KITH_WAITING_MAX * sizeof *member->waiting);
    if (member->waiting == NULL || member->waiting_count == KITH_WAITING_MAX)
        return; /* Lost: the protocol repeats what matters. */
    KITH_ASSERT(member->waiting_count < KITH_WAITING_MAX);
    member->waiting[member->waiting_count++] = *message;
}

/* A snapshot that is filled again must not leave as if it were the old one. */
void kith_member_cancel(struct kith_member_state *member, uint32_t slots)
{
    uint32_t kept = 0;
    for (uint32_t i = 0; i < member->waiting_count; i++) {
        const struct kith_message *message = &member->waiting[i];
        if (message->kind == KITH_MESSAGE_MODEL &&
            kith_slot_cancelled(slots, message->slot))
            continue;
        member->waiting[kept++] = *message;
    }
    KITH_ASSERT(kept <= member->waiting_count);
    member->waiting_count = kept;
}

/* ---- dialling
 *
 *   idle -> (look-up) -> TCP, address by address -> handshake -> open
 *     ^                     |                          |
 *     +---- back-off <------+--------------------------+
 *
 * Only a wish to send begins a dial, and only after the back-off is over. */

/* A member that is down, or that has another experiment, is dialled for as long
 * as this peer runs. */
static void dial_failed_log(struct kith_member_state *member, const char *layer,
                            const char *why)
{
    struct kith_transport *transport = member->transport;
    const uint64_t failure =
        kith_hash_bytes(kith_hash_bytes(KITH_HASH_START, layer, strlen(layer)),
                        why, strlen(why));
    member->failures = failure == member->failure ? member->failures + 1 : 1;
    member->failure = failure;
    if (!kith_log_limit_passes(member->failures))
        return;
    kith_transport_log(
        transport,
        "dial-failed rank=%u address=%s layer=%s reason=\"%s\" retry_ms=%lld "
        "count=%llu",
        member->rank, transport->options.members[member->rank].address, layer,
        why, (long long)(member->backoff_ns / KITH_MS),
        (unsigned long long)member->failures);
}

/* Back-off doubles up to dial_max_ns, without jitter: peers start at different
 * times anyway, and a listener's rate limit spreads the rest. */
static void dial_failed(struct kith_member_state *member, const char *layer,
                        const char *why)
{
    struct kith_transport *transport = member->transport;
    const struct kith_peer_limits *limits = &transport->options.limits;
    forget_addresses(member);
    if (member->link != NULL || transport->stopping)
        return;
    transport->dial_failures++;
    const kith_ns next = 2 * member->backoff_ns;
    member->backoff_ns = member->backoff_ns == 0      ? limits->dial_first_ns
                         : next > limits->dial_max_ns ? limits->dial_max_ns
                                                      : next;
    KITH_ASSERT(member->backoff_ns >= limits->dial_first_ns &&
                member->backoff_ns <= limits->dial_max_ns);
    member->retry_ns = (kith_ns)uv_hrtime() + member->backoff_ns;
    dial_failed_log(member, layer, why);
    member->waiting_count = 0;
    schedule_down(member);
}

/* A name may stand for several addresses: the next one is tried before the
 * dial counts as failed. */
static void dial_connected(uv_connect_t *connect, int status)
{
    struct kith_link *link = connect->data;
    struct kith_transport *transport = link->transport;
    struct kith_member_state *member = &transport->members[link->rank];
    if (link->state != KITH_LINK_CONNECTING)
        return; /* Closed meanwhile: link_close has told the member. */
    KITH_NET_SCOPE(&transport->net);
    if (status == 0) {
        kith_link_start(link);
        return;
    }
    if (member->candidate != NULL)
        member->candidate = member->candidate->ai_next;
    const struct addrinfo *const next = member->candidate;
    if (next != NULL)
        member->dialled = NULL; /* The name has another address. */
    kith_link_close(link, uv_strerror(status));
    if (next != NULL)
        dial_socket(member, next->ai_addr);
}

/* The flow is known here, since we chose whom to dial; for incoming links it
 * is set when they are identified. */
static void dial_socket(struct kith_member_state *member,
                        const struct sockaddr *address)
{
    struct kith_transport *transport = member->transport;
    KITH_ASSERT(member->dialled == NULL && member->rank != self_of(member));
    struct kith_link *link = kith_link_new(transport, true);
    if (link == NULL) {
        dial_failed(member, "memory", "out of memory");
        return;
    }
    link->rank = member->rank;
    kith_address_print(address, link->address);
    link->socket.flow = &member->flow;
    link->connect.data = link;
    kith_half_open_home(&transport->half_open, member->rank, address);
    member->dialled = link;
    const int failed = uv_tcp_connect(&link->connect, &link->socket.tcp,
                                      address, dial_connected);
    if (failed != 0)
        kith_link_close(link, uv_strerror(failed));
}

/* The list belongs to getaddrinfo and lives until the dial has ended.
 * The wish may be gone: the other side may have connected meanwhile. */
static void dial_looked_up(uv_getaddrinfo_t *lookup, int status,
                           struct addrinfo *found)
{
    struct kith_member_state *member = lookup->data;
    struct kith_transport *transport = member->transport;
    KITH_NET_SCOPE(&transport->net);
    free(lookup);
    member->lookup = NULL;
    member->found = member->candidate = found;
    if (status != 0 || found == NULL)
        dial_failed(member, "name", uv_strerror(status));
    else if (transport->stopping || member->link != NULL)
        dial_failed(member, "name", "not needed any more");
    else
        dial_socket(member, found->ai_addr);
}

/* Numeric addresses go without the resolver's thread pool, which a slow DNS
 * server can block. */
static void dial(struct kith_member_state *member)
{
    struct kith_transport *transport = member->transport;
    const char *text = transport->options.members[member->rank].address;
    struct kith_address address;
    struct sockaddr_storage numeric;
    if (kith_address_parse(text, &address) != KITH_OK) {
        dial_failed(member, "name", "not HOST:PORT");
        return;
    }
    if (kith_address_is_numeric(&address, &numeric)) {
        dial_socket(member, (const struct sockaddr *)&numeric);
        return;
    }
    const struct addrinfo hints = {.ai_socktype = SOCK_STREAM,
                                   .ai_flags = AI_ADDRCONFIG};
    member->lookup = malloc(sizeof *member->lookup);
    if (member->lookup == NULL) {
        dial_failed(member, "memory", "out of memory");
        return;
    }
    member->lookup->data = member;
    const int failed =
        uv_getaddrinfo(transport->loop, member->lookup, dial_looked_up,
                       address.host, address.port, &hints);
    if (failed != 0) {
        free(member->lookup);
        member->lookup = NULL;
        dial_failed(member, "name", uv_strerror(failed));
    }
}

/* Dials on demand: who exchanges nothing has no connection. During back-off
 * the answer is a LINK_DOWN, so that the node picks somebody else. */
void kith_member_send(struct kith_member_state *member,
                      const struct kith_message *message)
{
    struct kith_transport *transport = member->transport;
    if (transport->stopping)
        return;
    const bool dialling = is_dialling(member);
    if (member->link != NULL) {
        kith_traffic_send(member->link, message);
    } else if (!dialling && (kith_ns)uv_hrtime() < member->retry_ns) {
        schedule_down(member);
    } else {
        enqueue_message(member, message);
        if (!dialling)
            dial(member);
    }
}

/* Nothing waits for it: where it may not be dialled now, that is all. */
void kith_member_dial(struct kith_member_state *member)
{
    if (!member->transport->stopping && member->link == NULL &&
        !is_dialling(member) && (kith_ns)uv_hrtime() >= member->retry_ns)
        dial(member);
}

/* ---- links that open and close
 *
 * `link` is the one that is used for sending; others of the same member may
 * still receive until they are closed. The node is told of a member's first
 * link and of the loss of its last one. */

/* Counted before sending: what fails to be sent is not queued again here. */
void kith_member_flush(struct kith_member_state *member)
{
    const uint32_t count = member->waiting_count;
    if (member->link == NULL && is_dialling(member))
        return; /* the hold ends before the dial: they wait on */
    member->waiting_count = 0;
    for (uint32_t i = 0; i < count && member->link != NULL; i++)
        kith_traffic_send(member->link, &member->waiting[i]);
}

static bool same_host(const char *one, const char *other)
{
    const char *const port = strrchr(one, ':');
    const size_t length = port ? (size_t)(port - one) + 1 : strlen(one);
    return strncmp(one, other, length) == 0;
}

/* Whatever the addresses, connections of one process show one instance, which
 * nobody but its process and we can know. */
static bool is_same_process(const struct kith_link *link,
                            const struct kith_link *other)
{
    return kith_session_peer_hello(link->session)->instance ==
           kith_session_peer_hello(other->session)->instance;
}

/* One key from two places: a copy, or a peer that has moved. The one that was
 * here first stays for as long as it is heard, whatever the newcomer says and
 * whoever dialled; but one host may start its member again. */
static bool is_elsewhere(const struct kith_member_state *member,
                         const struct kith_link *link,
                         const struct kith_link *other)
{
    const kith_ns alive_ns = member->transport->options.limits.alive_ns;
    const bool restarted =
        same_host(link->address, other->address) &&
        kith_session_peer_hello(link->session)->incarnation !=
            kith_session_peer_hello(other->session)->incarnation;
    return !is_same_process(link, other) && !restarted &&
           (kith_ns)uv_hrtime() - other->progress_ns < alive_ns;
}

/* Another link with the same member is open already. */
static bool resolve_duplicate(struct kith_member_state *member,
                              struct kith_link *link)
{
    struct kith_link *other = member->link;
    KITH_ASSERT(other != link && other->rank == link->rank);
    if (is_elsewhere(member, link, other)) {
        char detail[2 * KITH_ADDRESS_BYTES];
        snprintf(detail, sizeof detail, "rank %u, %s, stays at %s",
                 member->rank, kith_session_peer(link->session)->name,
                 other->address);
        return kith_link_tell(link, KITH_REFUSAL_PLACES, KITH_NOTICE_ELSEWHERE,
                              detail);
    }
    const uint32_t now = kith_session_peer_hello(link->session)->incarnation;
    const uint32_t then = kith_session_peer_hello(other->session)->incarnation;
    if (now < then)
        return kith_link_refuse(link, KITH_REFUSAL_DUPLICATE,
                                "from before the peer's restart");
    const bool another = !is_same_process(link, other);
    if (another || link->initiator == other->initiator) {
        /* A restart, or its initiator gave the older one up: down, then up. */
        if (!same_host(link->address, other->address))
            kith_transport_log(
                member->transport, "moved rank=%u name=%s address=%s from=%s",
                member->rank, kith_session_peer(link->session)->name,
                link->address, other->address);
        member->link = NULL;
        schedule_down(member);
        kith_link_close(other, another
                                   ? "replaced by another process with its key"
                                   : "replaced by a newer connection");
        return true;
    }
    /* Both sides answer alike. */
    const bool better = link->initiator == (self_of(member) < member->rank);
    struct kith_link *loser = better ? other : link;
    if (better)
        member->link = link;
    /* The winner's initiator opens last, so the winner is open on both sides
     * by now and nothing sent there can come before this FIN. */
    if (self_of(member) < member->rank)
        kith_link_leave(loser);
    return true;
}

void kith_member_tell_up(struct kith_member_state *member)
{
    const struct kith_transport_user *user = &member->transport->options.user;
    if (member->link == NULL || member->is_up)
        return;
    member->is_up = true;
    user->up(user->arg, member->rank);
}

/* Both sides decide alike which of two connections stays, by ranks and roles
 * alone, so they need no message about it. */
bool kith_member_opened(struct kith_member_state *member,
                        struct kith_link *link)
{
    struct kith_transport *transport = member->transport;
    if (member->dialled == link) {
        member->dialled = NULL;
        forget_addresses(member);
    }
    member->retry_ns = 0;
    KITH_ASSERT(link->socket.flow == &member->flow);
    link->held = transport->held;
    if (link->held)
        kith_socket_pause(&link->socket, true);
    const bool was_up = member->link != NULL;
    if (was_up && !resolve_duplicate(member, link))
        return false;
    kith_member_notify(member); /* A LINK_DOWN that is due comes first. */
    if (member->link == NULL)
        member->link = link;
    if (!link->held)
        kith_member_tell_up(member);
    if (!transport->held)
        kith_member_flush(member);
    return link->state == KITH_LINK_OPEN;
}

/* Another open link of this member that is not on its way out. */
static struct kith_link *spare_link(const struct kith_member_state *member,
                                    const struct kith_link *but)
{
    for (struct kith_link *l = member->transport->links; l; l = l->next)
        if (l != but && l->known && l->rank == member->rank &&
            l->state == KITH_LINK_OPEN &&
            !(l->closing & (KITH_CLOSING_BEGUN | KITH_CLOSING_FIN_RECEIVED)))
            return l;
    return NULL;
}

/* The peer reads no more on this link; another open one takes its place, if
 * there is one. */
void kith_member_finished(struct kith_member_state *member,
                          struct kith_link *link)
{
    if (member->link != link)
        return;
    member->link = spare_link(member, link);
    if (member->link == NULL)
        schedule_down(member);
}

/* A dial that fails in TCP is a network's fault, one that fails in the
 * handshake a configuration's: the log says which. */
void kith_member_closed(struct kith_member_state *member,
                        struct kith_link *link, const char *why)
{
    if (member->dialled == link) {
        member->dialled = NULL;
        dial_failed(member, link->session == NULL ? "tcp" : "handshake", why);
    }
    kith_member_finished(member, link);
    /* Seen off as soon as it was open: dialled again at once, that would be
     * twenty times a second. */
    if (link->initiator && link->known && !link->heard &&
        !(link->closing & KITH_CLOSING_BEGUN))
        dial_failed(member, "session", why);
}

void kith_member_heard(struct kith_member_state *member)
{
    member->backoff_ns = 0;
    member->failures = 0;
    member->standing = KITH_STANDING_GOOD;
    member->transport->heard = true;
}

/* A neighbour that was one of ours, and is started with another experiment, is
 * gone as one that crashed is; but who shares ours with nobody from the first
 * would try for ever. */
void kith_member_differs(struct kith_member_state *member, const char *why)
{
    const struct kith_transport *transport = member->transport;
    const struct kith_transport_user *user = &transport->options.user;
    uint32_t differ = 0;
    member->standing = KITH_STANDING_DIFFERS;
    for (kith_id i = 0; i < transport->options.peers; i++)
        differ += transport->members[i].standing == KITH_STANDING_DIFFERS;
    KITH_ASSERT(differ < transport->options.peers);
    if (!transport->heard && differ + 1 == transport->options.peers &&
        user->differs)
        user->differs(user->arg, why);
}

/* Nothing that time or another try could change. */
static bool is_final(unsigned standing)
{
    return standing == KITH_NOTICE_REVOKED || standing == KITH_NOTICE_RANK ||
           standing == KITH_NOTICE_KEY || standing == KITH_NOTICE_ROLE ||
           standing == KITH_NOTICE_QUOTA;
}

/* One liar among several cannot send us away: more members must say so than
 * have spoken with us, and two where there are two. */
static bool is_hopeless(const struct kith_transport *transport)
{
    uint32_t against = 0, with = 0;
    for (kith_id i = 0; i < transport->options.peers; i++) {
        against += is_final(transport->members[i].standing);
        with += transport->members[i].standing == KITH_STANDING_GOOD;
    }
    return against > with &&
           against >= (transport->options.peers > 2 ? 2u : 1u);
}

void kith_member_told(struct kith_member_state *member, enum kith_notice notice,
                      const char *address)
{
    struct kith_transport *transport = member->transport;
    const struct kith_transport_user *user = &transport->options.user;
    const char *const text = kith_notice_text(notice);
    const uint64_t words[2] = {member->rank, (uint64_t)notice};
    const uint64_t times = kith_log_limit_count(
        &transport->log_limit,
        kith_hash_bytes(KITH_HASH_START, words, sizeof words),
        (kith_ns)uv_hrtime());
    member->standing = (unsigned)notice;
    if (kith_log_limit_passes(times))
        kith_transport_log(transport,
                           "refused-by rank=%u address=%s reason=\"%s\" "
                           "count=%llu",
                           member->rank, address, text,
                           (unsigned long long)times);
    if (is_final(member->standing) && is_hopeless(transport) && user->hopeless)
        user->hopeless(user->arg, text);
}

/* DOWN before UP where both are due: the node sees each change once, and in
 * order. */
void kith_member_notify(struct kith_member_state *member)
{
    struct kith_transport *transport = member->transport;
    const struct kith_transport_user *user = &transport->options.user;
    if (!member->down_due || transport->held)
        return;
    member->down_due = false;
    member->is_up = false;
    user->down(user->arg, member->rank);
    kith_member_tell_up(member); /* Opened before this could be said. */
}

/* The loop has run dry, so no look-up is under way. */
void kith_member_free(struct kith_member_state *member)
{
    KITH_ASSERT(member->lookup == NULL);
    forget_addresses(member);
    free(member->waiting);
}
