/* The revocation list: kept on disk, enforced, and passed from peer to peer.
 *
 *   EDITION = 0xc1 || sequence (8) || bytes (4)
 *
 * Who holds a list says its sequence on every new link, and on all links when a
 * newer one comes: bytes 0. Who holds an older one (or none) answers with its
 * own, who holds a newer one sends it: EDITION with its size, then bursts of
 * transfer 2^64 - 1. So a list that has reached one peer reaches all, at the
 * cost of 13 bytes a link where nothing is new, and of nothing where there is
 * no list. A list counts for its signature and its sequence, not for its
 * bearer. */
#include <stdlib.h>
#include <time.h>

#include "frame_bytes.h"
#include "kith/assert.h"
#include "kith/keys.h"
#include "transport.h"

#define EDITION_BYTES 13u
/* Lists that come at the same time: 1 MiB. The others are asked for again when
 * their links are renewed, and this one is passed on. */
#define LISTS_MAX 8u

static bool say_edition(struct kith_link *link, size_t bytes)
{
    uint8_t frame[EDITION_BYTES] = {KITH_FRAME_EDITION};
    kith_frame_put(frame + 1, link->transport->trust.revoked_sequence, 8);
    kith_frame_put(frame + 9, bytes, 4);
    return kith_link_control(link, frame, sizeof frame);
}

void kith_list_announce(struct kith_link *link)
{
    const struct kith_trust *trust = &link->transport->trust;
    if (trust->list && link->list.theirs < trust->revoked_sequence)
        (void)say_edition(link, 0);
}

/* Each edition once a link, whatever the other side says; in bursts of one
 * record that fit the chunks of this run's models. */
static void send_list(struct kith_link *link)
{
    const struct kith_trust *trust = &link->transport->trust;
    const size_t room =
        link->transport->net.large_bytes - (kith_session_burst_size(1) - 1);
    const size_t most = room < KITH_BULK_BYTES ? room : KITH_BULK_BYTES;
    KITH_ASSERT(room <= link->transport->net.large_bytes);
    if (!trust->list || link->list.sent >= trust->revoked_sequence ||
        !say_edition(link, trust->list_bytes))
        return;
    link->list.sent = trust->revoked_sequence;
    for (size_t at = 0; at < trust->list_bytes;) {
        const size_t left = trust->list_bytes - at;
        const size_t length = left < most ? left : most;
        if (!kith_link_bulk(link, KITH_LIST_TRANSFER, at, trust->list + at,
                            length))
            return;
        at += length;
    }
}

static bool list_begins(struct kith_link *link, uint64_t sequence, size_t size)
{
    struct kith_transport *transport = link->transport;
    struct kith_list_traffic *list = &link->list;
    if (list->size > 0 || size > KITH_CRL_BYTES_MAX || size < kith_crl_size(0))
        return kith_link_refuse(link, KITH_REFUSAL_RECORD,
                                "a revocation list of an impossible length");
    list->size = (uint32_t)size;
    list->at = 0;
    if (sequence <= transport->trust.revoked_sequence ||
        transport->lists_coming >= LISTS_MAX)
        return true;
    list->bytes = malloc(size);
    transport->lists_coming += list->bytes != NULL;
    return true;
}

bool kith_list_frame(struct kith_link *link, const uint8_t *frame, size_t size)
{
    const uint64_t ours = link->transport->trust.revoked_sequence;
    struct kith_list_traffic *list = &link->list;
    if (size != EDITION_BYTES)
        return kith_link_refuse(link, KITH_REFUSAL_RECORD,
                                "a control frame that is no message");
    const uint64_t sequence = kith_frame_get(frame + 1, 8),
                   bytes = kith_frame_get(frame + 9, 4);
    if (sequence > list->theirs)
        list->theirs = sequence;
    if (bytes > 0)
        return list_begins(link, sequence, (size_t)bytes);
    if (sequence < ours)
        send_list(link);
    else if (sequence > ours && sequence > list->asked) {
        list->asked = sequence;
        (void)say_edition(link, 0);
    }
    return link->state == KITH_LINK_OPEN;
}

void kith_list_forget(struct kith_link *link)
{
    struct kith_list_traffic *list = &link->list;
    if (list->bytes != NULL) {
        KITH_ASSERT(link->transport->lists_coming > 0);
        link->transport->lists_coming--;
    }
    free(list->bytes);
    list->bytes = NULL;
    list->size = 0;
}

/* Who passes on what no authority has signed is not honest. */
static bool list_ended(struct kith_link *link)
{
    struct kith_list_traffic *list = &link->list;
    struct kith_transport *transport = link->transport;
    enum kith_err err = KITH_EEXPIRED;
    if (list->bytes != NULL && transport->trust.authority_count > 0)
        err = kith_keys_take_list(&transport->trust, list->bytes, list->size);
    kith_list_forget(link);
    if (err == KITH_EPARSE || err == KITH_EAUTH)
        return kith_link_refuse(link, KITH_REFUSAL_RECORD,
                                "a revocation list that nobody signed");
    if (err == KITH_OK)
        kith_list_adopted(transport, link->address);
    return link->state == KITH_LINK_OPEN;
}

/* Authenticated, and still anything: each number is compared with what was
 * announced. */
bool kith_list_event(struct kith_link *link,
                     const struct kith_session_event *event)
{
    struct kith_list_traffic *list = &link->list;
    if (event->kind == KITH_SESSION_BULK) {
        if (list->size == 0 || event->offset != list->at ||
            event->length > list->size - list->at)
            return kith_link_refuse(link, KITH_REFUSAL_TRANSFER,
                                    "a burst that was not announced");
        kith_session_sink(link->session,
                          list->bytes ? list->bytes + list->at : NULL);
        return true;
    }
    if (event->kind == KITH_SESSION_BURST) {
        list->at += (uint32_t)event->length;
        KITH_ASSERT(list->at <= list->size);
        if (list->at == list->size)
            return list_ended(link);
    }
    return true;
}

/* A list revokes for as long as this machine lives, so it is on disk before it
 * is passed on; where it cannot be, it counts until the end of the process. */
void kith_list_keep(struct kith_transport *transport)
{
    char error[KITH_KEYS_ERROR_BYTES];
    const struct kith_trust *trust = &transport->trust;
    if (transport->options.keys_folder == NULL || trust->list == NULL ||
        trust->revoked_sequence == transport->kept_sequence)
        return;
    transport->kept_sequence = trust->revoked_sequence;
    if (kith_keys_keep_list(transport->options.keys_folder, trust, error) !=
        KITH_OK)
        kith_transport_log(transport, "list-unkept reason=\"%s\"", error);
}

void kith_list_adopted(struct kith_transport *transport, const char *from)
{
    const struct kith_identity *identity = &transport->identity;
    const struct kith_transport_user *user = &transport->options.user;
    struct kith_certificate decoded;
    kith_list_keep(transport);
    kith_transport_log(transport,
                       "revocations sequence=%llu count=%u from=\"%s\"",
                       (unsigned long long)transport->trust.revoked_sequence,
                       transport->trust.revoked_count, from);
    for (struct kith_link *l = transport->links; l != NULL; l = l->next)
        if (l->known && l->state == KITH_LINK_OPEN)
            kith_list_announce(l);
    kith_transport_enforce(transport);
    if (kith_trust_check(&transport->trust, identity->certificate,
                         identity->certificate_bytes, identity->key,
                         (int64_t)time(NULL), &decoded) == KITH_EREVOKED &&
        user->hopeless)
        user->hopeless(user->arg, "our certificate is revoked");
}
