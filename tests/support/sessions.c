/* Two sessions joined by memory; see sessions.h. Every key is a hash of a
 * label, so that a failure repeats. */
#include "tests/support/sessions.h"

#include <sodium.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "kith/assert.h"

static void derive(uint8_t out[32], const char *purpose, const char *label)
{
    char text[128];
    const int n = snprintf(text, sizeof text, "%s/%s", purpose, label);
    crypto_generichash(out, 32, (const uint8_t *)text, (unsigned long long)n,
                       NULL, 0);
}

void sessions_cluster(struct sessions_cluster *cluster, const char *label)
{
    uint8_t seed[32];
    memset(cluster, 0, sizeof *cluster);
    KITH_ASSERT(sodium_init() >= 0);
    derive(seed, "authority", label);
    crypto_sign_seed_keypair(cluster->trust.authority[0], cluster->secret,
                             seed);
    derive(cluster->trust.cluster, "cluster", label);
    cluster->trust.authority_count = 1;
}

struct kith_certificate
sessions_certificate(const struct kith_identity *identity, const char *name,
                     const struct sessions_cluster *cluster)
{
    struct kith_certificate certificate = {
        .serial = 7,
        .not_before_s = SESSIONS_UTC_S - SESSIONS_DAY_S,
        .not_after_s = SESSIONS_UTC_S + 29 * SESSIONS_DAY_S,
        .roles = KITH_ROLE_TRAIN,
        .rank = 3,
    };
    memcpy(certificate.cluster, cluster->trust.cluster, KITH_CLUSTER_BYTES);
    memcpy(certificate.key, identity->key, KITH_KEY_BYTES);
    snprintf(certificate.name, sizeof certificate.name, "%s", name);
    return certificate;
}

void sessions_certify(struct kith_identity *identity,
                      const struct kith_certificate *certificate,
                      const struct sessions_cluster *cluster)
{
    identity->certificate_bytes = kith_certificate_sign(
        certificate, cluster->secret, identity->certificate);
}

void sessions_identity(struct kith_identity *identity, const char *label,
                       const struct sessions_cluster *cluster)
{
    memset(identity, 0, sizeof *identity);
    derive(identity->secret, "identity", label);
    KITH_ASSERT(crypto_scalarmult_base(identity->key, identity->secret) == 0);
    if (cluster) {
        const struct kith_certificate certificate =
            sessions_certificate(identity, label, cluster);
        sessions_certify(identity, &certificate, cluster);
    }
}

static void end_setup(struct sessions *pair, int i, enum kith_suite suite,
                      const struct kith_aead *aead, uint32_t run)
{
    struct sessions_end *end = &pair->ends[i];
    char label[32];
    sessions_identity(&end->identity, i ? "bob" : "alice", &pair->cluster);
    end->trust = pair->cluster.trust;
    if (suite == KITH_SUITE_AEGIS256X2) /* the policy alone turns it on */
        end->trust.suite = suite;
    end->config = (struct kith_session_config){
        .initiator = i == 0,
        .suite = suite,
        .aead = aead,
        .trust = &end->trust,
        .identity = &end->identity,
        .hello = {.experiment_hash = 0x1234,
                  .dim = 109386,
                  .incarnation = 1,
                  .rank = 3,
                  .model = "mlp"},
        .utc_s = SESSIONS_UTC_S,
    };
    snprintf(label, sizeof label, "%d/%u", i, (unsigned)run);
    derive(end->config.random, "ephemeral", label);
    end->memory = malloc(kith_session_size());
    KITH_ASSERT(end->memory != NULL);
}

void sessions_setup(struct sessions *pair, enum kith_suite suite,
                    const struct kith_aead *aead, uint32_t run)
{
    memset(pair, 0, sizeof *pair);
    sessions_cluster(&pair->cluster, "home");
    end_setup(pair, 0, suite, aead, run);
    end_setup(pair, 1, suite, aead, run);
}

bool sessions_start(struct sessions *pair)
{
    for (int i = 0; i < 2; i++) {
        struct sessions_end *end = &pair->ends[i];
        end->error =
            kith_session_init(end->memory, &end->config, &end->session);
        if (end->error != KITH_OK) {
            end->session = NULL;
            return false;
        }
    }
    return true;
}

enum kith_err sessions_feed(struct sessions_end *end, uint8_t *bytes,
                            size_t size)
{
    size_t at = 0;
    for (;;) { /* Each turn yields an event or is the last. */
        size_t consumed = 0;
        struct kith_session_event event;
        end->error = kith_session_read(end->session, bytes + at, size - at,
                                       &consumed, &event);
        at += consumed;
        if (end->error != KITH_OK || event.kind == KITH_SESSION_NONE)
            return end->error;
        end->last = event;
        if (event.kind == KITH_SESSION_CONTROL)
            memcpy(end->frame, event.frame, event.frame_bytes);
        if (event.kind == KITH_SESSION_BULK)
            kith_session_sink(end->session, end->sink);
    }
}

bool sessions_connect(struct sessions *pair)
{
    uint8_t bytes[KITH_PREAUTH_BYTES];
    bool moved = true;
    while (moved) { /* Four flights at most. */
        moved = false;
        for (int i = 0; i < 2; i++) {
            const size_t n =
                kith_session_output(pair->ends[i].session, bytes, sizeof bytes);
            struct sessions_end *to = &pair->ends[1 - i];
            if (n == 0 || to->error != KITH_OK)
                continue;
            moved = true;
            to->error = sessions_feed(to, bytes, n);
        }
    }
    return kith_session_is_open(pair->ends[0].session) &&
           kith_session_is_open(pair->ends[1].session);
}

void sessions_close(struct sessions *pair)
{
    for (int i = 0; i < 2; i++) {
        if (pair->ends[i].session)
            kith_session_close(pair->ends[i].session);
        free(pair->ends[i].memory);
    }
    memset(pair, 0, sizeof *pair);
}
