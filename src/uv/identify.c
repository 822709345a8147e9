/* Who a proved peer is: a certificate names a key, the member list names ranks.
 *
 * HELLO claims a rank. Where the member list knows that rank's key, it must be
 * that key. Otherwise the first certified name (with an allow-list: the first
 * key) that claims the rank keeps it until this process ends; a renewed key
 * under the same name is the same member. */
#include <stdio.h>
#include <string.h>
#include <time.h>

#include "kith/keys.h"
#include "kith/text.h"
#include "transport.h"

#define DETAIL_BYTES 200

/* True when this is the rank's member; else says why not. */
static bool is_member(const struct kith_link *link,
                      struct kith_contact *contact, char detail[DETAIL_BYTES])
{
    const struct kith_transport_options *options = &link->transport->options;
    const struct kith_member *member = &options->members[contact->rank];
    const uint8_t *key = kith_session_peer_key(link->session);
    const char *name = kith_session_peer(link->session)->name;
    size_t certificate_bytes;
    (void)kith_session_peer_certificate(link->session, &certificate_bytes);
    if (member->has_fingerprint) {
        uint8_t fingerprint[KITH_FINGERPRINT_BYTES];
        kith_fingerprint(key, KITH_KEY_BYTES, fingerprint);
        if (memcmp(fingerprint, member->fingerprint, sizeof fingerprint) == 0)
            return true;
        snprintf(detail, DETAIL_BYTES,
                 "rank %u has another key than the member list says: %s",
                 contact->rank, name);
        return false;
    }
    if (!contact->has_pin) {
        contact->has_pin = true;
        memcpy(contact->pin_key, key, KITH_KEY_BYTES);
        kith_text_copy(contact->pin_name, sizeof contact->pin_name, name);
        return true;
    }
    if (certificate_bytes > 0
            ? strcmp(contact->pin_name, name) == 0
            : memcmp(contact->pin_key, key, KITH_KEY_BYTES) == 0)
        return true;
    snprintf(detail, DETAIL_BYTES, "rank %u is taken by %s, now claimed by %s",
             contact->rank, contact->pin_name, name);
    return false;
}

bool kith_transport_identify(struct kith_link *link)
{
    struct kith_transport *transport = link->transport;
    const struct kith_transport_options *options = &transport->options;
    const struct kith_certificate *peer = kith_session_peer(link->session);
    const kith_id rank = kith_session_peer_hello(link->session)->rank;
    char detail[DETAIL_BYTES];
    if (rank >= options->peers || rank == options->self) {
        snprintf(detail, sizeof detail, "%s claims rank %u, of %u peers",
                 peer->name, rank, options->peers);
        kith_link_refuse(link, KITH_REFUSAL_MEMBER, detail);
        return false;
    }
    if (link->initiator && rank != link->rank) {
        snprintf(detail, sizeof detail, "rank %u was dialled, %s has rank %u",
                 link->rank, peer->name, rank);
        kith_link_refuse(link, KITH_REFUSAL_MEMBER, detail);
        return false;
    }
    struct kith_contact *contact = &transport->contacts[rank];
    if (!is_member(link, contact, detail)) {
        kith_link_refuse(link, KITH_REFUSAL_MEMBER, detail);
        return false;
    }
    if (transport->session_count >= options->limits.sessions_max) {
        kith_link_refuse(link, KITH_REFUSAL_SESSIONS, peer->name);
        return false;
    }
    if (!link->initiator) {
        link->rank = rank;
        kith_lane_init(&link->socket.lane, options->seed, options->self, rank);
    }
    link->known = true;
    transport->session_count++;
    transport->connected++;
    const struct kith_aead *aead =
        options->aead ? options->aead : kith_aead_best(options->suite);
    kith_transport_log(transport,
                       "connected rank=%u name=%s address=%s direction=%s "
                       "suite=%s provider=%s incarnation=%u",
                       rank, peer->name, link->address,
                       link->initiator ? "out" : "in",
                       kith_suite_name(options->suite), kith_aead_name(aead),
                       kith_session_peer_hello(link->session)->incarnation);
    return true;
}

/* Takes the new lists over where they are not older than ours. */
static void reread_trust(struct kith_transport *transport)
{
    struct kith_identity identity;
    struct kith_trust trust;
    char error[KITH_KEYS_ERROR_BYTES];
    if (transport->options.keys_folder == NULL)
        return;
    if (kith_keys_load(transport->options.keys_folder, &identity, &trust,
                       error) != KITH_OK) {
        kith_transport_log(transport, "keys-unread reason=\"%s\"", error);
        return;
    }
    if (trust.revoked_sequence < transport->trust.revoked_sequence) {
        kith_transport_log(
            transport,
            "keys-unread reason=\"the revocation list is older: "
            "%llu, we hold %llu\"",
            (unsigned long long)trust.revoked_sequence,
            (unsigned long long)transport->trust.revoked_sequence);
        kith_keys_free(&identity, &trust);
        return;
    }
    if (transport->trust_is_ours)
        kith_keys_free(&transport->reread, &transport->trust);
    transport->trust = trust;
    transport->reread = identity;
    transport->trust_is_ours = true;
}

void kith_transport_recheck(struct kith_transport *transport)
{
    reread_trust(transport);
    struct kith_link *next;
    for (struct kith_link *l = transport->links; l != NULL; l = next) {
        next = l->next;
        if (!l->known || l->state != KITH_LINK_OPEN)
            continue;
        size_t size;
        const uint8_t *certificate =
            kith_session_peer_certificate(l->session, &size);
        struct kith_certificate decoded;
        const enum kith_err err = kith_trust_check(
            &transport->trust, certificate, size,
            kith_session_peer_key(l->session), (int64_t)time(NULL), &decoded);
        if (err == KITH_OK)
            continue;
        const enum kith_refusal refusal =
            err == KITH_EREVOKED   ? KITH_REFUSAL_REVOKED
            : err == KITH_EEXPIRED ? KITH_REFUSAL_EXPIRED
                                   : KITH_REFUSAL_AUTH;
        kith_link_refuse(l, refusal, kith_session_peer(l->session)->name);
    }
}
