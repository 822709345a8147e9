/* A session: one authenticated, encrypted conversation. Bytes <-> messages.
 *
 *   preface 8 B -> XX (certificates in messages 2 and 3) -> HELLO -> open
 *
 * No I/O, clock or heap: the caller moves bytes, gives 32 random bytes and
 * utc_s, and owns every buffer. There is no unauthenticated mode.
 * Construction: docs/protocol.md.
 *
 * Records: 2-byte big-endian length, then a Noise transport message. A control
 * record holds one frame. A BULK frame announces (transfer, offset, length);
 * exactly ceil(length / 65,472) payload-only records follow it, one burst. */
#ifndef KITH_SESSION_H
#define KITH_SESSION_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "kith/err.h"
#include "kith/limits.h"
#include "kith/types.h"

/* X(NAME, byte, the word in files and in Noise's name) */
#define KITH_SUITES(X)                                                         \
    X(AESGCM, 1, "AESGCM")                                                     \
    X(CHACHAPOLY, 2, "ChaChaPoly")                                             \
    X(AEGIS256X2, 3, "AEGIS256X2")
enum kith_suite {
#define KITH_X(name, byte, word) KITH_SUITE_##name = byte,
    KITH_SUITES(KITH_X)
#undef KITH_X
};
#define KITH_SUITE_ANY ((enum kith_suite)0) /* of a policy: it names none */
/* "Noise_XX_25519_AESGCM_BLAKE2b", and "AESGCM". */
const char *kith_suite_name(enum kith_suite suite);
const char *kith_suite_word(enum kith_suite suite);
/* By its word, in small letters or large ones. */
bool kith_suite_find(const char *text, size_t length, enum kith_suite *suite);
/* What to know before one chooses it. */
struct kith_suite_facts {
    enum kith_suite suite;
    const char *aead, *summary, *choose;
    bool unaudited; /* then the authority's policy alone turns it on */
};
/* NULL: no such suite; past the last. */
const struct kith_suite_facts *kith_suite_facts(enum kith_suite suite);
const struct kith_suite_facts *kith_suite_at(unsigned index);

#define KITH_KEY_BYTES 32u
#define KITH_CLUSTER_BYTES 32u
#define KITH_FINGERPRINT_BYTES 32u
#define KITH_SIGNATURE_BYTES 64u
#define KITH_PREFACE_BYTES 8u
/* 1: kith before certificates named a rank; 2: before HELLO named an instance.
 */
#define KITH_PROTOCOL_VERSION 3u

enum kith_role {
    KITH_ROLE_TRAIN = 1,
    KITH_ROLE_OBSERVE = 2,
    KITH_ROLE_SEED = 4
};

/* A certificate, decoded. The wire form is a canonical TLV <= 512 bytes ending
 * in the authority's Ed25519 signature over "kith-cert-v2\0" || body. */
struct kith_certificate {
    uint8_t cluster[KITH_CLUSTER_BYTES];
    uint64_t serial;
    uint8_t key[KITH_KEY_BYTES]; /* X25519 */
    char name[KITH_NAME_MAX];
    int64_t not_before_s, not_after_s;
    uint32_t roles;
    uint64_t quota_round_bytes, quota_model_bytes; /* 0: no quota */
    uint32_t rank; /* its place in the member list; KITH_NOBODY: a visitor's */
    uint8_t signature[KITH_SIGNATURE_BYTES];
};
/* [A-Za-z0-9._-]{1,63}: goes into logs, file names and pages as it is. */
bool kith_name_is_safe(const uint8_t *name, size_t length);
/* KITH_EVERSION: of another version, of which nothing more is read. */
KITH_MUST_CHECK enum kith_err
kith_certificate_decode(const uint8_t *bytes, size_t size,
                        struct kith_certificate *certificate);
/* Signs with the authority's Ed25519 secret key (64 bytes); returns size. */
size_t kith_certificate_sign(const struct kith_certificate *certificate,
                             const uint8_t secret[64],
                             uint8_t bytes[KITH_CERTIFICATE_BYTES_MAX]);

/* Whom we trust: up to two authorities (a roll), or an allow-list. */
struct kith_trust {
    uint8_t cluster[KITH_CLUSTER_BYTES];
    uint8_t authority[2][32]; /* Ed25519 public keys */
    uint32_t authority_count;
    enum kith_suite suite; /* the authority's policy, or KITH_SUITE_ANY */
    /* BLAKE2b-256 of X25519 keys, sorted; used where no authority is given */
    const uint8_t (*allowed)[KITH_FINGERPRINT_BYTES];
    uint32_t allowed_count;
    /* BLAKE2b-256 of certificates, sorted */
    const uint8_t (*revoked)[KITH_FINGERPRINT_BYTES];
    uint32_t revoked_count;
    uint64_t revoked_sequence;
    const uint8_t *list; /* the signed list that says so, or NULL */
    size_t list_bytes;
};
/* KITH_EAUTH (authority, cluster, allow-list), KITH_EEXPIRED (+-5 min skew),
 * KITH_EREVOKED, KITH_EPARSE, KITH_EVERSION. */
KITH_MUST_CHECK enum kith_err
kith_trust_check(const struct kith_trust *trust, const uint8_t *certificate,
                 size_t size, const uint8_t key[KITH_KEY_BYTES], int64_t utc_s,
                 struct kith_certificate *decoded);

/* The authority's policy: which suite its cluster speaks, signed with the
 * context "kith-policy-v1\0". */
void kith_policy_sign(const uint8_t cluster[KITH_CLUSTER_BYTES],
                      enum kith_suite suite, const uint8_t secret[64],
                      uint8_t signature[KITH_SIGNATURE_BYTES]);
bool kith_policy_is_signed(const struct kith_trust *trust,
                           enum kith_suite suite,
                           const uint8_t signature[KITH_SIGNATURE_BYTES]);
/* The policy's suite alone; without a policy any but those that are unaudited.
 */
bool kith_trust_allows(const struct kith_trust *trust, enum kith_suite suite);

/* A revocation list: "kith-crl-v1\0" || cluster || sequence || issued || count
 * || sorted fingerprints of certificates || Ed25519 signature over all before
 * it. Passed on from peer to peer (src/peer/revocation.c). */
struct kith_crl {
    uint8_t cluster[KITH_CLUSTER_BYTES];
    uint64_t sequence; /* grows with every edition */
    int64_t issued_s;
    uint32_t count; /* <= KITH_REVOKED_MAX */
    const uint8_t (*fingerprints)[KITH_FINGERPRINT_BYTES]; /* ascending */
};
#define KITH_CRL_HEAD_BYTES (12u + KITH_CLUSTER_BYTES + 8u + 8u + 4u)
#define KITH_CRL_BYTES_MAX                                                     \
    (KITH_CRL_HEAD_BYTES + KITH_REVOKED_MAX * KITH_FINGERPRINT_BYTES +         \
     KITH_SIGNATURE_BYTES)
size_t kith_crl_size(uint32_t count);
/* Writes kith_crl_size(count) bytes. KITH_EINVAL: not strictly ascending. */
KITH_MUST_CHECK enum kith_err kith_crl_sign(const struct kith_crl *crl,
                                            const uint8_t secret[64],
                                            uint8_t *bytes);
/* Form only; crl->fingerprints points into bytes. */
KITH_MUST_CHECK enum kith_err kith_crl_decode(const uint8_t *bytes, size_t size,
                                              struct kith_crl *crl);
/* Form, cluster, signature, and a sequence above trust->revoked_sequence:
 * KITH_EPARSE, KITH_EAUTH, KITH_EEXPIRED (an older edition, or the same). */
KITH_MUST_CHECK enum kith_err kith_crl_verify(const struct kith_trust *trust,
                                              const uint8_t *bytes, size_t size,
                                              struct kith_crl *crl);

/* BLAKE2b-256 of a certificate or of an X25519 key. */
void kith_fingerprint(const uint8_t *bytes, size_t size,
                      uint8_t fingerprint[KITH_FINGERPRINT_BYTES]);

struct kith_identity {
    uint8_t secret[KITH_KEY_BYTES], key[KITH_KEY_BYTES]; /* X25519 */
    uint8_t certificate[KITH_CERTIFICATE_BYTES_MAX];
    size_t certificate_bytes; /* 0 with an allow-list */
};

/* A visitor that stays a while, to measure the way (docs/protocol.md). */
#define KITH_VISIT_MEASURES 1u
/* What both ends must share; travels in the first sealed frame. */
struct kith_hello {
    uint64_t experiment_hash;
    uint64_t dim;
    uint32_t incarnation; /* a visitor's: KITH_VISIT_MEASURES, or 0 */
    uint32_t rank;     /* the sender's place in the member list; KITH_NOBODY: a
                          visitor, who proves himself and leaves */
    int64_t utc_s;     /* the sender's clock: config.utc_s, filled in by the
                          session; how `kith doctor` finds a wrong clock */
    uint32_t instance; /* of the sender, for this peer alone: all connections of
                          one process with one key show the same, filled in by
                          the session; who has stolen a key cannot know it */
    char model[KITH_NAME_MAX]; /* for the refusal's text */
};

/* AEAD providers: one contract, two libraries. */
struct kith_aead; /* src/protocol/session/aead.h */
extern const struct kith_aead *const kith_aeads[]; /* NULL-terminated */
const char *kith_aead_name(const struct kith_aead *aead);
/* Here, on this processor; and in this build, on one that can. */
bool kith_aead_has(const struct kith_aead *aead, enum kith_suite suite);
bool kith_aead_builds(const struct kith_aead *aead, enum kith_suite suite);
/* The fastest built-in provider that has this suite; NULL for none. */
const struct kith_aead *kith_aead_best(enum kith_suite suite);
/* For whoever has a clock: seals `records` full bulk records of zeros, or opens
 * one as often, under a key that nobody uses. `memory` (KITH_AEAD_TRIAL_BYTES).
 * KITH_EUNSUPPORTED, KITH_ENOMEM, KITH_EDEVICE: the provider's. */
#define KITH_AEAD_TRIAL_BYTES                                                  \
    ((size_t)KITH_BULK_BYTES + (size_t)KITH_BULK_BYTES + KITH_TAG_BYTES)
KITH_MUST_CHECK enum kith_err kith_aead_trial(const struct kith_aead *aead,
                                              enum kith_suite suite, bool opens,
                                              uint8_t *memory,
                                              unsigned records);

/* X(NAME, byte, text): why one who has proved its key is not kept. Told in a
 * sealed frame, as a byte: what the refused logs is its own text. A stranger,
 * and whoever another authority certified, is told nothing. Append only. */
#define KITH_NOTICES(X)                                                        \
    X(REVOKED, 1, "our certificate is revoked")                                \
    X(EXPIRED, 2, "our certificate has expired, or a clock is wrong")          \
    X(RANK, 3, "our certificate is for another rank than we claim")            \
    X(KEY, 4, "its member list has another key for our rank")                  \
    X(ROLE, 5, "our certificate lacks the role train")                         \
    X(QUOTA, 6, "our certificate does not allow models of this size")          \
    X(TAKEN, 7, "another key of its allow-list has our rank, or ours another") \
    X(ELSEWHERE, 8, "our rank is connected from another address")              \
    X(RATE, 9, "we come too often")                                            \
    X(FULL, 10, "it has no room for another session")                          \
    X(BREACH, 11, "we keep breaking the protocol")
enum kith_notice {
    KITH_NOTICE_NONE,
#define KITH_X(name, byte, text) KITH_NOTICE_##name = byte,
    KITH_NOTICES(KITH_X)
#undef KITH_X
};
const char *kith_notice_text(unsigned notice);

/* Of a full burst four threads have four records each. */
#define KITH_LANES_MAX 4u
/* Threads of the caller's that share the records of a burst, whose nonces and
 * places are known beforehand. run() calls part(context, lane, i) once for each
 * i < count, in no order, and returns when all are done; no two parts of one
 * lane at once. What is sealed is the same for any number of them. */
struct kith_session_threads {
    unsigned lanes; /* 1 to KITH_LANES_MAX, the caller's own included */
    void (*run)(void *arg, size_t count,
                void (*part)(void *context, unsigned lane, size_t i),
                void *context);
    void *arg;
};

struct kith_session_config {
    bool initiator;
    enum kith_suite suite;
    const struct kith_aead *aead;         /* NULL: kith_aead_best */
    const struct kith_trust *trust;       /* kept */
    const struct kith_identity *identity; /* kept */
    struct kith_hello hello;
    uint8_t random[32]; /* the ephemeral key */
    uint8_t secret[32]; /* of this process: what instances are made of */
    int64_t utc_s;
    const struct kith_session_threads *threads; /* kept; NULL: the caller */
};

/* `memory` is kith_session_size() bytes, aligned for any type. KITH_EINVAL:
 * neither authority nor allow-list, our certificate is missing or too long, or
 * the trust does not allow the suite (kith_trust_allows);
 * KITH_EUNSUPPORTED: no provider has the suite; KITH_ENOMEM, KITH_EDEVICE: from
 * the provider. */
struct kith_session;
size_t kith_session_size(void);
KITH_MUST_CHECK enum kith_err
kith_session_init(void *memory, const struct kith_session_config *config,
                  struct kith_session **session);
/* Wipes keys. Memory is the caller's. */
void kith_session_close(struct kith_session *session);

enum kith_session_event_kind {
    KITH_SESSION_NONE,    /* more bytes are needed */
    KITH_SESSION_OPEN,    /* peer verified: kith_session_peer() */
    KITH_SESSION_CONTROL, /* one frame: frame, frame_bytes */
    KITH_SESSION_BULK,    /* a burst begins: transfer, offset, length; answer
                             with kith_session_sink() before reading on */
    KITH_SESSION_RECORD,  /* bulk was opened at sink + record_at: one record,
                             or with threads as many whole ones as came */
    KITH_SESSION_BURST,   /* the burst is complete */
    KITH_SESSION_FIN,     /* the peer closed in order */
};
struct kith_session_event {
    enum kith_session_event_kind kind;
    const uint8_t *frame; /* CONTROL: valid until the next read */
    size_t frame_bytes;
    uint64_t transfer, offset, length; /* BULK */
    uint64_t record_at, record_bytes;  /* RECORD: within this burst */
    bool passed;                       /* RECORD: kith_session_check() */
};
/* Consumes some of `bytes` (modified in place) and yields at most one event.
 * Call again until NONE, write kith_session_output() after each call. The
 * session keeps no copy: what was not consumed is the start of an incomplete
 * record, to be presented again with more bytes behind it. Any error is final:
 * write kith_session_output() once more (after KITH_EMISMATCH it holds our
 * HELLO, by which the peer names the difference too), close, log
 * kith_session_reason(). */
KITH_MUST_CHECK enum kith_err
kith_session_read(struct kith_session *session, uint8_t *bytes, size_t size,
                  size_t *consumed, struct kith_session_event *event);
/* Where the announced burst goes: `length` bytes, or NULL to authenticate and
 * discard. */
void kith_session_sink(struct kith_session *session, void *target);
/* After the sink: passes(arg, at, bytes) is asked of each record of this burst
 * once it has authenticated, while it is in the cache, by the thread that
 * opened it; `at` counts from the sink. RECORD's `passed` joins the answers. */
void kith_session_check(struct kith_session *session,
                        bool (*passes)(const void *arg, uint64_t at,
                                       size_t bytes),
                        const void *arg);
/* Room the caller needs for unread bytes: the longest thing that can come next,
 * <= KITH_PREAUTH_BYTES until the peer is verified, then 65,537. The first read
 * of a responder is 8 + 32 bytes. Reading more than this at once is harmless,
 * keeping more of an unverified peer's bytes is not needed. */
#define KITH_PREAUTH_BYTES 2048u
/* An initiator's preface and message 1, which it writes together. */
#define KITH_FIRST_BYTES (KITH_PREFACE_BYTES + KITH_KEY_BYTES)
/* Can these bytes be the beginning of a preface? Before there is a session. */
bool kith_session_begins(const uint8_t *bytes, size_t size);
size_t kith_session_want(const struct kith_session *session);
/* Handshake and HELLO bytes waiting to be written; 0 when none. `out` holds at
 * least 2,048. */
size_t kith_session_output(struct kith_session *session, uint8_t *out,
                           size_t capacity);

bool kith_session_is_open(const struct kith_session *session);
/* Verified identity; valid once open. */
const struct kith_certificate *kith_session_peer(const struct kith_session *s);
const struct kith_hello *kith_session_peer_hello(const struct kith_session *s);
const uint8_t *kith_session_peer_key(const struct kith_session *session);
/* The certificate as received, for kith_trust_check() against a newer list;
 * *size 0 with an allow-list. */
const uint8_t *kith_session_peer_certificate(const struct kith_session *session,
                                             size_t *size);
/* "certificate expired 2026-01-02" and the like; "" while all is well. */
const char *kith_session_reason(const struct kith_session *session);

/* Bytes on the wire of one control frame of n bytes: 2 + 1 + n + 16. */
size_t kith_session_control_size(size_t frame_bytes);
/* Seal one control frame. KITH_ECLOSED: not open, or FIN was sent. KITH_ELIMIT:
 * frame too long or out too small. KITH_EDEVICE: the provider failed and the
 * session with it. The same for bursts and FIN. */
KITH_MUST_CHECK enum kith_err
kith_session_seal_control(struct kith_session *session, const uint8_t *frame,
                          size_t frame_bytes, uint8_t *out, size_t capacity,
                          size_t *written);
/* Bytes on the wire of one burst of `length` <= KITH_BURST_BYTES, announcement
 * included. */
size_t kith_session_burst_size(size_t length);
/* Seal one burst of a transfer straight from the caller's vector. */
struct kith_session_burst {
    uint64_t transfer, offset;
    const void *payload; /* (length) */
    size_t length;
};
KITH_MUST_CHECK enum kith_err
kith_session_seal_burst(struct kith_session *session,
                        const struct kith_session_burst *burst, uint8_t *out,
                        size_t capacity, size_t *written);
KITH_MUST_CHECK enum kith_err
kith_session_seal_fin(struct kith_session *session, uint8_t *out,
                      size_t capacity, size_t *written);
/* Tells the peer why it is not kept; the last thing that is sealed. */
KITH_MUST_CHECK enum kith_err
kith_session_seal_notice(struct kith_session *session, enum kith_notice notice,
                         uint8_t *out, size_t capacity, size_t *written);
/* What the peer told us so, after KITH_EPERM from kith_session_read();
 * KITH_NOTICE_NONE: nothing, or what this version does not know. */
enum kith_notice kith_session_notice(const struct kith_session *session);
/* Bytes of the whole handshake (preface, three messages, both HELLOs), by side,
 * for certificate lengths: what a `sized` link charges. */
size_t kith_session_handshake_bytes(bool initiator, size_t own_certificate,
                                    size_t hello_name_bytes);

struct kith_session_counters {
    uint64_t records_sealed, records_opened, bytes_sealed, bytes_opened, rekeys;
};
void kith_session_counters(const struct kith_session *session,
                           struct kith_session_counters *counters);

#endif
