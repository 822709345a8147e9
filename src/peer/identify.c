/* Who a proved peer is: a certificate names a key and its rank, the member list
 * may name the key of a rank, too.
 *
 * HELLO claims a rank. It must be the certificate's, so that no member can take
 * the place of one who has not come yet; and where the member list knows that
 * rank's key, it must be that key. Under an allow-list nobody vouches for
 * ranks: the first key that claims one keeps it until this process ends, and
 * nobody holds two.
 *
 * KITH_NOBODY is a visitor (`kith doctor`): told who we are and seen off, or
 * let in to measure the way here (guest.c); never anybody's link. */
#include <stdio.h>
#include <string.h>

#include "kith/assert.h"
#include "transport.h"

#define DETAIL_BYTES 200

/* The member list gives this rank to this key. */
static bool is_listed(const struct kith_member *listed, const uint8_t *key)
{
    uint8_t fingerprint[KITH_FINGERPRINT_BYTES];
    kith_fingerprint(key, KITH_KEY_BYTES, fingerprint);
    return listed->has_fingerprint &&
           memcmp(fingerprint, listed->fingerprint, sizeof fingerprint) == 0;
}

/* The rank was claimed by this key before. */
static bool is_pinned(const struct kith_member_state *member,
                      const uint8_t *key)
{
    return member->has_pin && memcmp(member->pin_key, key, KITH_KEY_BYTES) == 0;
}

/* A rank other than `but` that is theirs already, or KITH_NOBODY. */
static kith_id rank_of(const struct kith_transport *transport,
                       const uint8_t *key, kith_id but)
{
    for (kith_id i = 0; i < transport->options.peers; i++)
        if (i != but && (is_listed(&transport->options.members[i], key) ||
                         is_pinned(&transport->members[i], key)))
            return i;
    return KITH_NOBODY;
}

/* Without an authority: trust on first use, within the allow-list. */
static enum kith_notice claim_rank(const struct kith_link *link,
                                   struct kith_member_state *member,
                                   char detail[DETAIL_BYTES])
{
    const uint8_t *key = kith_session_peer_key(link->session);
    const char *name = kith_session_peer(link->session)->name;
    const kith_id other = rank_of(link->transport, key, member->rank);
    if (member->has_pin && !is_pinned(member, key))
        snprintf(detail, DETAIL_BYTES,
                 "rank %u is taken by another key, now claimed by %s",
                 member->rank, name);
    else if (other != KITH_NOBODY)
        snprintf(detail, DETAIL_BYTES, "%s has rank %u and claims rank %u too",
                 name, other, member->rank);
    else {
        member->has_pin = true;
        memcpy(member->pin_key, key, KITH_KEY_BYTES);
        return KITH_NOTICE_NONE;
    }
    return KITH_NOTICE_TAKEN;
}

/* Is this the rank's member? Says why not. */
static enum kith_notice check_member(const struct kith_link *link,
                                     struct kith_member_state *member,
                                     char detail[DETAIL_BYTES])
{
    const struct kith_member *listed =
        &link->transport->options.members[member->rank];
    const struct kith_certificate *peer = kith_session_peer(link->session);
    size_t certificate_bytes;
    (void)kith_session_peer_certificate(link->session, &certificate_bytes);
    if (certificate_bytes > 0 && peer->rank != member->rank) {
        snprintf(detail, DETAIL_BYTES,
                 "the certificate of %s is for rank %d, it claims rank %u",
                 peer->name, (int)peer->rank, member->rank);
        return KITH_NOTICE_RANK;
    }
    if (listed->has_fingerprint &&
        !is_listed(listed, kith_session_peer_key(link->session))) {
        snprintf(detail, DETAIL_BYTES,
                 "rank %u has another key than the member list says: %s",
                 member->rank, peer->name);
        return KITH_NOTICE_KEY;
    }
    return certificate_bytes > 0 || listed->has_fingerprint
               ? KITH_NOTICE_NONE
               : claim_rank(link, member, detail);
}

/* Takes one of a member's tokens, for coming or for a bad message: the rate of
 * handshakes from one address, per member. False when there was none. */
static bool take_token(struct kith_member_state *member)
{
    const struct kith_peer_limits *limits = &member->transport->options.limits;
    return kith_bucket_take(&member->tokens, (kith_ns)uv_hrtime(),
                            limits->handshake_rate, limits->handshake_burst);
}

/* Members pay from the same bucket for reconnecting and for breaches: an
 * honest one needs neither often. */
void kith_transport_charge(struct kith_transport *transport, kith_id peer)
{
    if (peer >= transport->options.peers ||
        take_token(&transport->members[peer]))
        return;
    for (struct kith_link *l = transport->links; l != NULL; l = l->next) {
        if (l->known && l->rank == peer && l->state == KITH_LINK_OPEN)
            kith_link_tell(l, KITH_REFUSAL_RECORD, KITH_NOTICE_BREACH,
                           "it keeps breaking the protocol");
    }
}

/* Our HELLO is on its way. All visitors share one member's tokens: ours, whom
 * nobody else uses. */
static bool receive_visitor(struct kith_link *link)
{
    struct kith_transport *transport = link->transport;
    const char *name = kith_session_peer(link->session)->name;
    if (!take_token(&transport->members[transport->options.self]))
        return kith_link_tell(link, KITH_REFUSAL_RATE, KITH_NOTICE_RATE, name);
    if (kith_session_peer_hello(link->session)->incarnation ==
        KITH_VISIT_MEASURES)
        return kith_guest_welcome(link);
    kith_transport_log(transport, "visited name=%s address=%s", name,
                       link->address);
    return kith_link_close(link, "a visitor");
}

/* Lengths of models are known: whose certificate does not allow one need
 * not come. What one exchange brings is counted where it comes (transfer.c). */
static bool may_send_models(const struct kith_link *link,
                            char detail[DETAIL_BYTES])
{
    const struct kith_certificate *peer = kith_session_peer(link->session);
    const struct kith_transport_options *options = &link->transport->options;
    const uint64_t model = options->payload_bytes > options->model_bytes
                               ? options->payload_bytes
                               : options->model_bytes;
    const uint64_t of_model = peer->quota_model_bytes;
    const uint64_t of_round = peer->quota_round_bytes;
    if ((of_model == 0 || model <= of_model) &&
        (of_round == 0 || model <= of_round))
        return true;
    snprintf(detail, DETAIL_BYTES,
             "a model has %llu bytes, the certificate of %s allows %llu a "
             "model and %llu a round (0: any)",
             (unsigned long long)model, peer->name,
             (unsigned long long)of_model, (unsigned long long)of_round);
    return false;
}

/* May this link carry that rank's exchanges? Says why not. */
static enum kith_notice check_link(const struct kith_link *link, kith_id rank,
                                   char detail[DETAIL_BYTES])
{
    const struct kith_transport *transport = link->transport;
    const struct kith_transport_options *options = &transport->options;
    const struct kith_certificate *peer = kith_session_peer(link->session);
    if (rank >= options->peers || rank == options->self) {
        snprintf(detail, DETAIL_BYTES, "%s claims rank %u, of %u peers",
                 peer->name, rank, options->peers);
        return KITH_NOTICE_RANK;
    }
    if (link->initiator && rank != link->rank) {
        snprintf(detail, DETAIL_BYTES, "rank %u was dialled, %s has rank %u",
                 link->rank, peer->name, rank);
        return KITH_NOTICE_RANK;
    }
    if ((peer->roles & (uint32_t)KITH_ROLE_TRAIN) == 0) {
        snprintf(detail, DETAIL_BYTES,
                 "the certificate of %s lacks the role train", peer->name);
        return KITH_NOTICE_ROLE;
    }
    return may_send_models(link, detail)
               ? check_member(link, &link->transport->members[rank], detail)
               : KITH_NOTICE_QUOTA;
}

/* From here it may come again, whatever its address says. */
static void find_home(const struct kith_link *link)
{
    struct sockaddr_storage at = {.ss_family = 0};
    int size = sizeof at;
    KITH_ASSERT(!link->initiator && link->rank != KITH_NOBODY);
    if (uv_tcp_getpeername(&link->socket.tcp, (struct sockaddr *)&at, &size) ==
        0)
        kith_half_open_home(&link->transport->half_open, link->rank,
                            (const struct sockaddr *)&at);
}

/* The flow's random stream is of the pair, not of the connection: the same
 * delays whichever side dialled, as in the simulator. */
static void connected(struct kith_link *link, kith_id rank)
{
    struct kith_transport *transport = link->transport;
    const struct kith_transport_options *options = &transport->options;
    if (!link->initiator) {
        link->rank = rank;
        find_home(link);
        kith_socket_flow(&link->socket, &transport->members[rank].flow);
    }
    KITH_ASSERT(!link->known && link->rank == rank && rank != options->self);
    link->known = true;
    transport->session_count++;
    transport->connected++;
    KITH_ASSERT(transport->session_count <= options->limits.sessions_max);
    const struct kith_aead *aead =
        options->aead ? options->aead : kith_aead_best(options->suite);
    kith_transport_log(transport,
                       "connected rank=%u name=%s address=%s direction=%s "
                       "suite=%s provider=%s incarnation=%u",
                       rank, kith_session_peer(link->session)->name,
                       link->address, link->initiator ? "out" : "in",
                       kith_suite_name(options->suite), kith_aead_name(aead),
                       kith_session_peer_hello(link->session)->incarnation);
}

/* From cheap to dear, and tokens only from who may be here: a stranger cannot
 * spend a member's. */
bool kith_transport_identify(struct kith_link *link)
{
    struct kith_transport *transport = link->transport;
    const char *name = kith_session_peer(link->session)->name;
    const kith_id rank = kith_session_peer_hello(link->session)->rank;
    char detail[DETAIL_BYTES];
    if (rank == KITH_NOBODY && !link->initiator)
        return receive_visitor(link);
    const enum kith_notice why = check_link(link, rank, detail);
    if (why != KITH_NOTICE_NONE)
        return kith_link_tell(link, KITH_REFUSAL_MEMBER, why, detail);
    if (!take_token(&transport->members[rank]))
        return kith_link_tell(link, KITH_REFUSAL_RATE, KITH_NOTICE_RATE, name);
    if (transport->session_count >= transport->options.limits.sessions_max)
        return kith_link_tell(link, KITH_REFUSAL_SESSIONS, KITH_NOTICE_FULL,
                              name);
    connected(link, rank);
    return true;
}
