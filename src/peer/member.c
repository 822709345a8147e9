/* One member: which link is used, dialling on demand, back-off.
 *
 * Two peers may dial each other at the same moment. Then the connection that
 * the lower rank initiated is used; its initiator, who opens last, says FIN on
 * the other one, and what was under way there still arrives. A second
 * connection from the same side replaces the first, which its initiator must
 * have given up.
 * Test: unit/test_contact.c. */
#include <netdb.h>
#include <stdlib.h>
#include <string.h>

#include "kith/assert.h"
#include "kith/hash.h"
#include "transport.h"

static void dial(struct kith_contact *contact);
static void dial_address(struct kith_contact *contact);

static kith_id self_of(const struct kith_contact *contact)
{
    return contact->transport->options.self;
}

static void tell_down(struct kith_contact *contact)
{
    contact->down_due = true;
    kith_transport_soon(contact->transport);
}

static bool is_dialling(const struct kith_contact *contact)
{
    return contact->dialled != NULL || contact->lookup != NULL;
}

static void wait_in_line(struct kith_contact *contact,
                         const struct kith_message *message)
{
    if (contact->waiting == NULL)
        contact->waiting = malloc(KITH_WAITING_MAX * sizeof *contact->waiting);
    if (contact->waiting == NULL || contact->waiting_count == KITH_WAITING_MAX)
        return; /* Lost: the protocol repeats what matters. */
    contact->waiting[contact->waiting_count++] = *message;
}

void kith_contact_send(struct kith_contact *contact,
                       const struct kith_message *message)
{
    struct kith_transport *transport = contact->transport;
    if (transport->stopping)
        return;
    if (contact->link != NULL) {
        kith_traffic_send(contact->link, message);
        return;
    }
    const bool dialling = is_dialling(contact);
    if (!dialling && (kith_ns)uv_hrtime() < contact->retry_ns) {
        tell_down(contact);
        return;
    }
    wait_in_line(contact, message);
    if (!dialling)
        dial(contact);
}

void kith_contact_cancel(struct kith_contact *contact, uint32_t slots)
{
    uint32_t kept = 0;
    for (uint32_t i = 0; i < contact->waiting_count; i++) {
        const struct kith_message *message = &contact->waiting[i];
        if (message->kind == KITH_MESSAGE_MODEL &&
            kith_slot_cancelled(slots, message->slot))
            continue;
        contact->waiting[kept++] = *message;
    }
    contact->waiting_count = kept;
}

/* ---- dialling */

/* A member that is down, or that has another experiment, is dialled for as long
 * as this peer runs. */
static void dial_failed_log(struct kith_contact *contact, const char *layer,
                            const char *why)
{
    struct kith_transport *transport = contact->transport;
    const uint64_t failure =
        kith_hash_bytes(kith_hash_bytes(KITH_HASH_START, layer, strlen(layer)),
                        why, strlen(why));
    contact->failures = failure == contact->failure ? contact->failures + 1 : 1;
    contact->failure = failure;
    if (!kith_repeat_is_said(contact->failures))
        return;
    kith_transport_log(
        transport,
        "dial-failed rank=%u address=%s layer=%s reason=\"%s\" retry_ms=%lld "
        "count=%llu",
        contact->rank, transport->options.members[contact->rank].address, layer,
        why, (long long)(contact->backoff_ns / KITH_MS),
        (unsigned long long)contact->failures);
}

static void dial_failed(struct kith_contact *contact, const char *layer,
                        const char *why)
{
    struct kith_transport *transport = contact->transport;
    const struct kith_peer_limits *limits = &transport->options.limits;
    if (contact->found != NULL)
        uv_freeaddrinfo(contact->found);
    contact->found = contact->candidate = NULL;
    if (contact->link != NULL || transport->stopping)
        return;
    transport->dial_failures++;
    const kith_ns next = 2 * contact->backoff_ns;
    contact->backoff_ns = contact->backoff_ns == 0     ? limits->dial_first_ns
                          : next > limits->dial_max_ns ? limits->dial_max_ns
                                                       : next;
    contact->retry_ns = (kith_ns)uv_hrtime() + contact->backoff_ns;
    dial_failed_log(contact, layer, why);
    contact->waiting_count = 0;
    tell_down(contact);
}

static void dial_connected(uv_connect_t *connect, int status)
{
    struct kith_link *link = connect->data;
    struct kith_transport *transport = link->transport;
    struct kith_contact *contact = &transport->contacts[link->rank];
    if (link->state != KITH_LINK_CONNECTING)
        return; /* Closed meanwhile: link_close has told the contact. */
    const enum kith_account_kind was = kith_net_enter(&transport->net);
    if (status == 0) {
        kith_link_start(link);
    } else {
        if (contact->candidate != NULL)
            contact->candidate = contact->candidate->ai_next;
        if (contact->candidate != NULL) {
            contact->dialled = NULL; /* The name has another address. */
            kith_link_close(link, uv_strerror(status));
            dial_address(contact);
        } else {
            kith_link_close(link, uv_strerror(status));
        }
    }
    kith_net_leave(&transport->net, was);
}

static void dial_socket(struct kith_contact *contact,
                        const struct sockaddr *address)
{
    struct kith_transport *transport = contact->transport;
    struct kith_link *link = kith_link_new(transport, true);
    if (link == NULL) {
        dial_failed(contact, "memory", "out of memory");
        return;
    }
    link->rank = contact->rank;
    kith_address_print(address, link->address);
    kith_lane_init(&link->socket.lane, transport->options.seed,
                   self_of(contact), contact->rank);
    link->socket.lane.stalled = contact->stalled;
    link->connect.data = link;
    contact->dialled = link;
    const int failed = uv_tcp_connect(&link->connect, &link->socket.tcp,
                                      address, dial_connected);
    if (failed != 0)
        kith_link_close(link, uv_strerror(failed));
}

static void dial_address(struct kith_contact *contact)
{
    dial_socket(contact, contact->candidate->ai_addr);
}

static void dial_looked_up(uv_getaddrinfo_t *lookup, int status,
                           struct addrinfo *found)
{
    struct kith_contact *contact = lookup->data;
    struct kith_transport *transport = contact->transport;
    const enum kith_account_kind was = kith_net_enter(&transport->net);
    free(lookup);
    contact->lookup = NULL;
    contact->found = contact->candidate = found;
    if (status != 0 || found == NULL)
        dial_failed(contact, "name", uv_strerror(status));
    else if (transport->stopping || contact->link != NULL)
        dial_failed(contact, "name", "not needed any more");
    else
        dial_address(contact);
    kith_net_leave(&transport->net, was);
}

static void dial(struct kith_contact *contact)
{
    struct kith_transport *transport = contact->transport;
    const char *text = transport->options.members[contact->rank].address;
    struct kith_address address;
    union {
        struct sockaddr any;
        struct sockaddr_in v4;
        struct sockaddr_in6 v6;
    } numeric;
    if (kith_address_parse(text, &address) != KITH_OK) {
        dial_failed(contact, "name", "not HOST:PORT");
        return;
    }
    const int port = atoi(address.port);
    if (uv_ip4_addr(address.host, port, &numeric.v4) == 0 ||
        uv_ip6_addr(address.host, port, &numeric.v6) == 0) {
        dial_socket(contact, &numeric.any);
        return;
    }
    const struct addrinfo hints = {.ai_socktype = SOCK_STREAM,
                                   .ai_flags = AI_ADDRCONFIG};
    contact->lookup = malloc(sizeof *contact->lookup);
    if (contact->lookup == NULL) {
        dial_failed(contact, "memory", "out of memory");
        return;
    }
    contact->lookup->data = contact;
    const int failed =
        uv_getaddrinfo(transport->loop, contact->lookup, dial_looked_up,
                       address.host, address.port, &hints);
    if (failed != 0) {
        free(contact->lookup);
        contact->lookup = NULL;
        dial_failed(contact, "name", uv_strerror(failed));
    }
}

/* ---- links that open and close */

void kith_contact_flush(struct kith_contact *contact)
{
    const uint32_t count = contact->waiting_count;
    if (contact->link == NULL && is_dialling(contact))
        return; /* the hold ends before the dial: they wait on */
    contact->waiting_count = 0;
    for (uint32_t i = 0; i < count && contact->link != NULL; i++)
        kith_traffic_send(contact->link, &contact->waiting[i]);
}

/* Another link with the same member is open already. */
static bool settle_pair(struct kith_contact *contact, struct kith_link *link)
{
    struct kith_link *other = contact->link;
    const uint32_t now = kith_session_peer_hello(link->session)->incarnation;
    const uint32_t then = kith_session_peer_hello(other->session)->incarnation;
    if (now < then) {
        kith_link_refuse(link, KITH_REFUSAL_DUPLICATE,
                         "from before the peer's restart");
        return false;
    }
    if (now > then || link->initiator == other->initiator) {
        /* A restart, or its initiator gave the older one up: down, then up. */
        contact->link = NULL;
        tell_down(contact);
        kith_link_close(other, "replaced by a newer connection");
        return true;
    }
    /* Both sides answer alike. */
    const bool better = link->initiator == (self_of(contact) < contact->rank);
    struct kith_link *loser = better ? other : link;
    if (better)
        contact->link = link;
    /* The winner's initiator opens last, so the winner is open on both sides
     * by now and nothing sent there can come before this FIN. */
    if (self_of(contact) < contact->rank)
        kith_link_leave(loser);
    return true;
}

bool kith_contact_opened(struct kith_contact *contact, struct kith_link *link)
{
    struct kith_transport *transport = contact->transport;
    const struct kith_transport_user *user = &transport->options.user;
    if (contact->dialled == link) {
        contact->dialled = NULL;
        if (contact->found != NULL)
            uv_freeaddrinfo(contact->found);
        contact->found = contact->candidate = NULL;
    }
    contact->backoff_ns = contact->retry_ns = 0;
    contact->failures = 0;
    kith_socket_stall(&link->socket, contact->stalled);
    link->held = transport->held;
    if (link->held)
        kith_socket_pause(&link->socket, true);
    const bool was_up = contact->link != NULL;
    if (was_up && !settle_pair(contact, link))
        return false;
    kith_contact_turn(contact); /* A LINK_DOWN that is due comes first. */
    if (contact->link == NULL)
        contact->link = link;
    if (!link->held && !contact->is_up) {
        contact->is_up = true;
        user->up(user->arg, contact->rank);
    }
    if (!transport->held)
        kith_contact_flush(contact);
    return link->state == KITH_LINK_OPEN;
}

/* Another open link of this member that is not on its way out. */
static struct kith_link *spare_link(const struct kith_contact *contact,
                                    const struct kith_link *but)
{
    for (struct kith_link *l = contact->transport->links; l; l = l->next)
        if (l != but && l->known && l->rank == contact->rank &&
            l->state == KITH_LINK_OPEN && !l->leaving && !l->fin_received)
            return l;
    return NULL;
}

void kith_contact_finished(struct kith_contact *contact, struct kith_link *link)
{
    if (contact->link != link)
        return;
    contact->link = spare_link(contact, link);
    if (contact->link == NULL)
        tell_down(contact);
}

void kith_contact_closed(struct kith_contact *contact, struct kith_link *link,
                         const char *why)
{
    if (contact->dialled == link) {
        contact->dialled = NULL;
        dial_failed(contact, link->session == NULL ? "tcp" : "handshake", why);
    }
    kith_contact_finished(contact, link);
}

void kith_contact_turn(struct kith_contact *contact)
{
    struct kith_transport *transport = contact->transport;
    const struct kith_transport_user *user = &transport->options.user;
    if (!contact->down_due || transport->held)
        return;
    contact->down_due = false;
    contact->is_up = false;
    user->down(user->arg, contact->rank);
    if (contact->link != NULL) {
        contact->is_up = true; /* A link opened before this could be said. */
        user->up(user->arg, contact->rank);
    }
}

void kith_contact_free(struct kith_contact *contact)
{
    KITH_ASSERT(contact->lookup == NULL);
    if (contact->found != NULL)
        uv_freeaddrinfo(contact->found);
    free(contact->waiting);
}
