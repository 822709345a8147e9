/* A session's memory, for its three sources and for tests that move a counter
 * close to its limit. Nothing outside src/protocol/session/ and tests/ includes
 * this. */
#ifndef KITH_PROTOCOL_SESSION_SESSION_STATE_H
#define KITH_PROTOCOL_SESSION_SESSION_STATE_H

#include "src/protocol/session/certificate.h"
#include "src/protocol/session/noise.h"

/* Frame types: the first plain byte of a control record. */
enum kith_frame {
    KITH_FRAME_HELLO = 1,
    KITH_FRAME_CONTROL = 2,
    KITH_FRAME_BULK = 3,
    KITH_FRAME_FIN = 4,
    KITH_FRAME_REFUSED = 5,
};

#define KITH_LENGTH_BYTES 2u /* big-endian, before every record */
#define KITH_RECORD_OVERHEAD (KITH_LENGTH_BYTES + KITH_TAG_BYTES)
/* type, hash, dim, incarnation, rank, clock, instance, name length; the name
 * follows */
#define KITH_HELLO_HEAD_BYTES (1u + 8u + 8u + 4u + 4u + 4u + 4u + 1u)
#define KITH_HELLO_BYTES_MAX (KITH_HELLO_HEAD_BYTES + KITH_NAME_MAX - 1u)
/* type, transfer, offset, length */
#define KITH_ANNOUNCEMENT_BYTES (1u + 8u + 8u + 4u)
/* Handshake messages 2 and 3 with the longest certificate. */
#define KITH_MESSAGE_BYTES_MAX                                                 \
    (KITH_NOISE_OVERHEAD_2 + KITH_CERTIFICATE_BYTES_MAX)
/* All that one side can have to say before it is open. */
#define KITH_PENDING_BYTES                                                     \
    (KITH_PREFACE_BYTES + KITH_NOISE_OVERHEAD_1 + KITH_LENGTH_BYTES +          \
     KITH_MESSAGE_BYTES_MAX + KITH_RECORD_OVERHEAD + KITH_HELLO_BYTES_MAX)

/* In this order: a handshake, then records, then the end. */
enum kith_phase {
    KITH_PHASE_PREFACE,  /* the peer's 8 bytes are awaited */
    KITH_PHASE_MESSAGE1, /* responder */
    KITH_PHASE_MESSAGE2, /* initiator */
    KITH_PHASE_MESSAGE3, /* responder */
    KITH_PHASE_HELLO,    /* keys are there, the peer's HELLO is awaited */
    KITH_PHASE_OPEN,
    KITH_PHASE_FINISHED, /* the peer's FIN has come */
    KITH_PHASE_FAILED,
};

/* One direction of the record layer. */
struct kith_channel {
    struct kith_cipher cipher;
    uint32_t since_rekey; /* records under this key, <= KITH_REKEY_RECORDS */
    uint64_t records, bytes, rekeys;
};

/* The burst being received. */
struct kith_burst {
    uint64_t transfer, offset, length; /* length 0: none */
    uint64_t done;
    bool sink_given;
    uint8_t *sink; /* NULL: discard */
    bool (*passes)(const void *arg, uint64_t at, size_t bytes); /* or NULL */
    const void *passes_arg;
};

struct kith_session {
    enum kith_phase phase;
    enum kith_err error; /* once failed */
    bool initiator, fin_sent;
    enum kith_suite suite;
    const struct kith_trust *trust;
    const struct kith_identity *identity;
    int64_t utc_s;
    const struct kith_session_threads *threads; /* NULL: one lane */
    uint8_t secret[32];
    uint8_t notice; /* enum kith_notice, or one of a later version */
    struct kith_hello hello, peer_hello;
    struct kith_certificate peer;
    uint8_t peer_certificate[KITH_CERTIFICATE_BYTES_MAX]; /* as received */
    size_t peer_certificate_bytes;
    struct kith_noise noise;
    struct kith_channel send, receive;
    struct kith_burst burst;
    size_t pending_bytes;
    uint8_t pending[KITH_PENDING_BYTES];
    char reason[KITH_REASON_BYTES];
};

/* session_handshake.c: preface, messages, HELLO. Each reader consumes one
 * whole thing or, by *used == 0, asks for more bytes. */
KITH_MUST_CHECK enum kith_err kith_handshake_start(struct kith_session *session,
                                                   const uint8_t random[32]);
KITH_MUST_CHECK enum kith_err kith_handshake_read(struct kith_session *session,
                                                  const uint8_t *bytes,
                                                  size_t size, size_t *used);
KITH_MUST_CHECK enum kith_err kith_handshake_hello(struct kith_session *session,
                                                   const uint8_t *frame,
                                                   size_t frame_bytes);
size_t kith_handshake_want(const struct kith_session *session);

/* session_record.c: records, after the keys are there. */
KITH_MUST_CHECK enum kith_err kith_record_seal(struct kith_session *session,
                                               const uint8_t *plain,
                                               size_t bytes, uint8_t *out);
KITH_MUST_CHECK enum kith_err
kith_record_read(struct kith_session *session, uint8_t *bytes, size_t size,
                 size_t *used, struct kith_session_event *event);

/* session_burst.c: the payload records of a burst, `bytes` of plain text in
 * all, on the threads of the session. Their nonces are spent, and nothing is
 * counted. The error is that of the first record that has one. */
KITH_MUST_CHECK enum kith_err kith_burst_seal(struct kith_session *session,
                                              const uint8_t *plain,
                                              size_t bytes, uint8_t *out);
/* Whole records, opened to where the sink says or, without one, where they lie;
 * each that has authenticated is checked. */
KITH_MUST_CHECK enum kith_err kith_burst_open(struct kith_session *session,
                                              uint8_t *records, size_t bytes,
                                              bool *passed);
/* Records that `bytes` of payload take. */
size_t kith_burst_records(uint64_t bytes);

/* Sets the reason, a constant text, and returns the error. */
enum kith_err kith_session_refuse(struct kith_session *session,
                                  enum kith_err error, const char *reason);
/* The same for what Noise or a cipher said; `forged`: to KITH_EAUTH. */
enum kith_err kith_session_refuse_cipher(struct kith_session *session,
                                         enum kith_err err, const char *forged);

#endif
