/* Sessions that stand: every `revoked_ns` the revocation list is read again,
 * and what it forbids, what has expired and what has grown old is closed. */
#include <sodium.h>
#include <time.h>

#include "kith/assert.h"
#include "kith/keys.h"
#include "transport.h"

/* Nothing came for so long: most likely no exchange is under way. */
#define QUIET_NS (200 * KITH_MS)

/* Takes the new lists over where they are not older than ours. */
static void reload_trust(struct kith_transport *transport)
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
    sodium_memzero(&identity, sizeof identity); /* only the lists are kept */
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
        kith_keys_free(&transport->reloaded, &transport->trust);
    KITH_ASSERT(trust.revoked_sequence >= transport->trust.revoked_sequence);
    transport->trust = trust;
    transport->reloaded = identity;
    transport->trust_is_ours = true;
}

/* New ephemeral keys after a while: the session is left in order, and who has
 * something to say dials anew. At a quiet moment, unless there is none. The
 * moment of birth, in nanoseconds, spreads the renewals: 90 to 110 %. */
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
    if ((link->closing & KITH_CLOSING_BEGUN) || link->held ||
        (age < due && bytes < most))
        return;
    const bool quiet = kith_traffic_is_idle(link) && !link->traffic.receiving &&
                       now_ns - link->progress_ns >= QUIET_NS;
    if (!quiet && age < due + tenth && bytes < most + most / 10)
        return;
    kith_transport_log(transport, "renewing rank=%u age_s=%lld bytes=%llu",
                       link->rank, (long long)(age / KITH_S),
                       (unsigned long long)bytes);
    kith_member_finished(&transport->members[link->rank], link);
    kith_link_leave(link);
}

/* A certificate is checked at the handshake and again here, since sessions
 * outlive it: without this a revoked peer would stay until it restarts. Trust
 * is read first, so that one tick applies it. */
void kith_transport_tick(uv_timer_t *timer)
{
    struct kith_transport *transport = timer->data;
    KITH_NET_SCOPE(&transport->net);
    reload_trust(transport);
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
