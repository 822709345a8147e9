/* Sessions that stand: every `revoked_ns` keys, certificate and revocation list
 * are read again, and what the list forbids, what has expired and what has
 * grown old is closed. */
#include <sodium.h>
#include <stdlib.h>
#include <time.h>

#include "kith/assert.h"
#include "kith/keys.h"
#include "transport.h"

/* Nothing came for so long: most likely no exchange is under way. */
#define QUIET_NS (200 * KITH_MS)

/* Another certificate or key than ours, for our rank. */
static void renew_identity(struct kith_transport *transport,
                           const struct kith_identity *identity)
{
    struct kith_identity *const ours = &transport->identity;
    struct kith_certificate decoded = {.rank = transport->options.self};
    if (sodium_memcmp(ours, identity, sizeof *ours) == 0)
        return;
    if (identity->certificate_bytes > 0 &&
        (kith_certificate_decode(identity->certificate,
                                 identity->certificate_bytes,
                                 &decoded) != KITH_OK ||
         decoded.rank != transport->options.self)) {
        kith_transport_log(transport,
                           "keys-unread reason=\"node.crt is for rank %d, this "
                           "is rank %u\"",
                           (int)decoded.rank, transport->options.self);
        return;
    }
    /* A handshake reads its identity as it goes: not half of each. */
    for (struct kith_link *l = transport->links; l != NULL; l = l->next)
        if (l->state == KITH_LINK_HANDSHAKE)
            kith_link_close(l, "our certificate was renewed");
    *ours = *identity;
    transport->renewed_ns = (kith_ns)uv_hrtime();
    kith_transport_log(
        transport, "renewed name=%s serial=%016llx days_left=%lld",
        decoded.name, (unsigned long long)decoded.serial,
        (long long)((decoded.not_after_s - (int64_t)time(NULL)) / 86400));
}

/* Takes what is new over; a list that is older than ours stays where it is. */
static void reload_keys(struct kith_transport *transport)
{
    const struct kith_transport_user *user = &transport->options.user;
    struct kith_identity identity;
    struct kith_trust trust;
    char error[KITH_KEYS_ERROR_BYTES];
    if (transport->options.keys_folder == NULL)
        return;
    const enum kith_err err = kith_keys_load(transport->options.keys_folder,
                                             &identity, &trust, error);
    if (err != KITH_OK) {
        kith_transport_log(transport, "keys-unread reason=\"%s\"", error);
        if (err == KITH_EREVOKED && user->hopeless)
            user->hopeless(user->arg, "our certificate is revoked");
        return;
    }
    /* Sessions of both kinds at once would be a negotiation. */
    if (!kith_trust_allows(&trust, transport->options.suite)) {
        kith_transport_log(
            transport,
            "keys-unread reason=\"ca.pub says %s%s, this process "
            "speaks %s: copy ca.pub again, or start the peer "
            "again for that\"",
            trust.suite == KITH_SUITE_ANY ? "" : "suite ",
            trust.suite == KITH_SUITE_ANY ? "no suite"
                                          : kith_suite_word(trust.suite),
            kith_suite_word(transport->options.suite));
        trust.suite = transport->trust.suite;
    }
    renew_identity(transport, &identity);
    sodium_memzero(&identity, sizeof identity);
    const uint64_t before = transport->trust.revoked_sequence;
    /* Where the folder cannot be written, a list from a peer is here alone. */
    if (trust.revoked_sequence < before && transport->trust.list &&
        kith_keys_take_list(&trust, transport->trust.list,
                            transport->trust.list_bytes) != KITH_OK) {
        kith_keys_free(&identity, &trust);
        return;
    }
    free((void *)(uintptr_t)transport->trust.allowed);
    free((void *)(uintptr_t)transport->trust.list);
    transport->trust = trust;
    KITH_ASSERT(trust.revoked_sequence >= before);
    if (trust.revoked_sequence > before)
        kith_list_adopted(transport, "the identity folder");
}

/* New ephemeral keys after a while: the session is left in order, and who has
 * something to say dials anew; the same after a new certificate of ours, within
 * a minute. At a quiet moment, unless there is none. The moment of birth, in
 * nanoseconds, spreads the renewals: 90 to 110 %. */
static void renew_old(struct kith_link *link, kith_ns now_ns)
{
    struct kith_transport *transport = link->transport;
    const struct kith_peer_limits *limits = &transport->options.limits;
    const kith_ns age = now_ns - link->born_ns;
    KITH_ASSERT(age >= 0 && limits->renew_ns >= 0);
    const kith_ns tenth = limits->renew_ns / 10;
    const kith_ns due = 9 * tenth + link->born_ns % (2 * tenth + 1);
    struct kith_session_counters counters;
    kith_session_counters(link->session, &counters);
    const uint64_t bytes = counters.bytes_sealed + counters.bytes_opened;
    const uint64_t most = limits->renew_bytes;
    const bool renewed = link->born_ns < transport->renewed_ns;
    if ((link->closing & KITH_CLOSING_BEGUN) || link->held ||
        (age < due && bytes < most && !renewed))
        return;
    const bool quiet = kith_traffic_is_idle(link) && !link->traffic.receiving &&
                       now_ns - link->progress_ns >= QUIET_NS;
    const bool overdue =
        age >= due + tenth || bytes >= most + most / 10 ||
        (renewed && now_ns - transport->renewed_ns >= limits->renew_ns / 60);
    if (!quiet && !overdue)
        return;
    kith_transport_log(transport, "renewing rank=%u age_s=%lld bytes=%llu",
                       link->rank, (long long)(age / KITH_S),
                       (unsigned long long)bytes);
    kith_member_finished(&transport->members[link->rank], link);
    kith_link_leave(link);
}

/* A certificate is checked at the handshake and again here, since sessions
 * outlive it: without this a revoked peer would stay until it restarts. */
void kith_transport_enforce(struct kith_transport *transport)
{
    for (struct kith_link *l = transport->links; l != NULL; l = l->next) {
        if (!l->known || l->state != KITH_LINK_OPEN)
            continue;
        size_t size;
        const uint8_t *certificate =
            kith_session_peer_certificate(l->session, &size);
        struct kith_certificate decoded;
        const enum kith_err err = kith_trust_check(
            &transport->trust, certificate, size,
            kith_session_peer_key(l->session), (int64_t)time(NULL), &decoded);
        if (err == KITH_OK) {
            renew_old(l, (kith_ns)uv_hrtime());
            continue;
        }
        const char *const name = kith_session_peer(l->session)->name;
        if (err == KITH_EREVOKED)
            kith_link_tell(l, KITH_REFUSAL_REVOKED, KITH_NOTICE_REVOKED, name);
        else if (err == KITH_EEXPIRED)
            kith_link_tell(l, KITH_REFUSAL_EXPIRED, KITH_NOTICE_EXPIRED, name);
        else
            kith_link_refuse(l, KITH_REFUSAL_AUTH, name);
    }
}

/* Keys are read first, so that one tick applies them. */
void kith_transport_tick(uv_timer_t *timer)
{
    struct kith_transport *transport = timer->data;
    KITH_NET_SCOPE(&transport->net);
    reload_keys(transport);
    kith_transport_enforce(transport);
}
