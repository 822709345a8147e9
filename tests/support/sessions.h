/* Two sessions joined by memory, for tests, fuzz targets and benchmarks: an
 * authority, two identities, and a pump that moves bytes. */
#ifndef KITH_TESTS_SESSIONS_H
#define KITH_TESTS_SESSIONS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "kith/session.h"

#define SESSIONS_UTC_S INT64_C(1767312000) /* 2026-01-02 */
#define SESSIONS_DAY_S INT64_C(86400)

struct sessions_cluster {
    uint8_t secret[64]; /* the authority's */
    struct kith_trust trust;
};

/* One end: its settings, then its session. Change config between
 * sessions_setup() and sessions_start(). */
struct sessions_end {
    struct kith_identity identity;
    struct kith_trust trust;
    struct kith_session_config config;
    struct kith_session *session;
    void *memory;
    enum kith_err error;            /* of the last pump */
    struct kith_session_event last; /* the last event that was not NONE */
    uint8_t frame[KITH_CONTROL_BYTES_MAX]; /* of the last CONTROL */
    uint8_t *sink;                         /* given to every burst */
};

struct sessions {
    struct sessions_cluster cluster;
    struct sessions_end ends[2]; /* 0 initiates */
};

/* Authority, cluster id and key pair are functions of the label. */
void sessions_cluster(struct sessions_cluster *cluster, const char *label);
/* A key pair from the label and, with `cluster`, a certificate around it that
 * is valid from yesterday for 30 days. */
void sessions_identity(struct kith_identity *identity, const char *label,
                       const struct sessions_cluster *cluster);
/* Fills a certificate that sessions_certify() would sign as it is. */
struct kith_certificate
sessions_certificate(const struct kith_identity *identity, const char *name,
                     const struct sessions_cluster *cluster);
void sessions_certify(struct kith_identity *identity,
                      const struct kith_certificate *certificate,
                      const struct sessions_cluster *cluster);

/* A pair that will succeed. `run` varies the ephemeral keys. */
void sessions_setup(struct sessions *pair, enum kith_suite suite,
                    const struct kith_aead *aead, uint32_t run);
/* False: init refused an end; its error says why. */
bool sessions_start(struct sessions *pair);
/* Handshake to the end: moves output until both are silent. True: both open. */
bool sessions_connect(struct sessions *pair);
/* Lets `end` read all of bytes; gives end->sink to bursts. */
enum kith_err sessions_feed(struct sessions_end *end, uint8_t *bytes,
                            size_t size);
void sessions_close(struct sessions *pair);

#endif
