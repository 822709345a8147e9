/* The session's outside: init, read, output, close, what is known of the peer.
 *
 *   PREFACE -> MESSAGE2 ------------> HELLO -> OPEN -> FINISHED    initiator
 *   PREFACE -> MESSAGE1 -> MESSAGE3 -> HELLO -> OPEN -> FINISHED   responder
 *
 * and FAILED from everywhere. session_handshake.c has the steps up to HELLO,
 * session_record.c those from there on. */
#include <sodium.h>
#include <string.h>

#include "kith/assert.h"
#include "kith/text.h"
#include "src/protocol/session/session_state.h"

_Static_assert(KITH_PREFACE_BYTES + KITH_LENGTH_BYTES +
                       KITH_MESSAGE_BYTES_MAX <=
                   KITH_PREAUTH_BYTES,
               "the longest thing that a stranger can say fits the buffer");
_Static_assert(KITH_RECORD_OVERHEAD + KITH_HELLO_BYTES_MAX <=
                   KITH_PREAUTH_BYTES,
               "and so does its HELLO");
_Static_assert(KITH_PENDING_BYTES <= KITH_PREAUTH_BYTES,
               "output() fits the 2,048 bytes that the contract asks for");

/* The caller owns the memory, so the struct can stay private and the session
 * needs no heap. */
size_t kith_session_size(void)
{
    return sizeof(struct kith_session);
}

/* The reason is kept for the caller's one log line: a session prints nothing.
 */
enum kith_err kith_session_refuse(struct kith_session *session,
                                  enum kith_err error, const char *reason)
{
    KITH_ASSERT(error != KITH_OK);
    kith_text_add(session->reason, sizeof session->reason, 0, "%s", reason);
    return error;
}

/* In constant words: nothing that a stranger sent gets into a log. */
enum kith_err kith_session_refuse_cipher(struct kith_session *session,
                                         enum kith_err err, const char *forged)
{
    if (err == KITH_EINVAL)
        return kith_session_refuse(session, KITH_EAUTH,
                                   "key exchange failed: the peer sent a "
                                   "low-order point");
    return kith_session_refuse(session, err,
                               err == KITH_EAUTH    ? forged
                               : err == KITH_ELIMIT ? "nonces are used up"
                                                    : "AEAD provider failed");
}

static bool config_is_complete(const struct kith_session_config *config)
{
    const struct kith_trust *trust = config->trust;
    const struct kith_identity *identity = config->identity;
    /* With neither an authority nor a list everybody would be refused, or, one
     * bug later, everybody let in: such a session is not made at all. */
    return identity->certificate_bytes <= KITH_CERTIFICATE_BYTES_MAX &&
           trust->authority_count <= 2 &&
           (trust->authority_count > 0 ? identity->certificate_bytes > 0
                                       : trust->allowed_count > 0);
}

enum kith_err kith_session_init(void *memory,
                                const struct kith_session_config *config,
                                struct kith_session **session)
{
    const struct kith_session_threads *threads = config->threads;
    KITH_ASSERT((uintptr_t)memory % _Alignof(struct kith_session) == 0);
    KITH_ASSERT(!threads ||
                (threads->lanes >= 1 && threads->lanes <= KITH_LANES_MAX));
    if (!config_is_complete(config) ||
        !kith_trust_allows(config->trust, config->suite))
        return KITH_EINVAL;
    if (sodium_init() < 0)
        return KITH_EDEVICE;
    /* A provider is named by tests and benches alone; both ends may use
     * different ones, for they seal the same bytes. */
    const struct kith_aead *aead =
        config->aead ? config->aead : kith_aead_best(config->suite);
    if (!aead || !aead->has(config->suite))
        return KITH_EUNSUPPORTED;

    /* Zeroed before the first failure: close() and the labels below rely on
     * it. */
    struct kith_session *s = memory;
    memset(s, 0, sizeof *s);
    s->initiator = config->initiator;
    s->suite = config->suite;
    s->trust = config->trust;
    s->identity = config->identity;
    s->utc_s = config->utc_s;
    s->threads = threads && threads->lanes > 1 ? threads : NULL;
    s->hello = config->hello;
    memcpy(s->secret, config->secret, sizeof s->secret);
    enum kith_err err =
        kith_cipher_create(&s->send.cipher, aead, s->suite, KITH_SEAL);
    if (err != KITH_OK)
        return err;
    err = kith_cipher_create(&s->receive.cipher, aead, s->suite, KITH_OPEN);
    if (err != KITH_OK)
        goto no_receive;
    err = kith_handshake_start(s, config->random);
    if (err != KITH_OK)
        goto no_handshake;
    KITH_ASSERT(s->phase == KITH_PHASE_PREFACE && s->error == KITH_OK);
    KITH_ASSERT(s->pending_bytes ==
                KITH_PREFACE_BYTES +
                    (s->initiator ? KITH_NOISE_OVERHEAD_1 : 0u));
    *session = s;
    return KITH_OK;

no_handshake:
    kith_cipher_destroy(&s->receive.cipher);
no_receive:
    kith_cipher_destroy(&s->send.cipher);
    sodium_memzero(s, sizeof *s);
    return err;
}

void kith_session_close(struct kith_session *session)
{
    KITH_ASSERT(session->phase <= KITH_PHASE_FAILED);
    kith_cipher_destroy(&session->send.cipher);
    kith_cipher_destroy(&session->receive.cipher);
    /* All of it: the hello, the peer's certificate and the burst's target say
     * with whom and about what. */
    sodium_memzero(session, sizeof *session);
}

static enum kith_err read_step(struct kith_session *s, uint8_t *bytes,
                               size_t size, size_t *used,
                               struct kith_session_event *event)
{
    KITH_ASSERT((s->phase == KITH_PHASE_FAILED) == (s->error != KITH_OK));
    /* A burst is begun by an open session, and may be cut by its failure. */
    KITH_ASSERT(s->burst.length == 0 || s->phase == KITH_PHASE_OPEN ||
                s->phase == KITH_PHASE_FAILED);
    if (s->phase <= KITH_PHASE_MESSAGE3)
        return kith_handshake_read(s, bytes, size, used);
    if (s->phase <= KITH_PHASE_OPEN)
        return kith_record_read(s, bytes, size, used, event);
    if (s->phase == KITH_PHASE_FINISHED && size > 0)
        return kith_session_refuse(s, KITH_EPARSE, "bytes came after FIN");
    return s->error;
}

enum kith_err kith_session_read(struct kith_session *session, uint8_t *bytes,
                                size_t size, size_t *consumed,
                                struct kith_session_event *event)
{
    memset(event, 0, sizeof *event);
    *consumed = 0;
    /* One event a call: the caller may close the session in its handler, so
     * nothing may be opened ahead of what it has been told. */
    for (;;) { /* Each turn consumes bytes; a handshake has four. */
        size_t used = 0;
        const enum kith_err err = read_step(session, bytes + *consumed,
                                            size - *consumed, &used, event);
        *consumed += used;
        KITH_ASSERT(*consumed <= size);
        if (err != KITH_OK) {
            /* Final: an attacker gets one guess a session, and no second error
             * whose wording differs would tell it how near that was. */
            session->phase = KITH_PHASE_FAILED;
            session->error = err;
            event->kind = KITH_SESSION_NONE;
            return err;
        }
        KITH_ASSERT(event->kind != KITH_SESSION_BULK ||
                    (session->burst.length > 0 && session->burst.done == 0));
        if (event->kind != KITH_SESSION_NONE || used == 0)
            return KITH_OK;
    }
}

/* The caller chooses the target after it has seen the announcement, so that a
 * model goes into its inbox without a copy; NULL still authenticates. */
void kith_session_sink(struct kith_session *session, void *target)
{
    KITH_ASSERT(session->burst.length > 0 && !session->burst.sink_given);
    KITH_ASSERT(session->burst.done == 0);
    session->burst.sink = target;
    session->burst.sink_given = true;
}

void kith_session_check(struct kith_session *session,
                        bool (*passes)(const void *arg, uint64_t at,
                                       size_t bytes),
                        const void *arg)
{
    KITH_ASSERT(session->burst.sink_given && session->burst.done == 0);
    session->burst.passes = passes;
    session->burst.passes_arg = arg;
}

/* Bounds what a caller buffers: KITH_PREAUTH_BYTES for strangers, so that 64
 * half-open connections cost 128 KiB. */
size_t kith_session_want(const struct kith_session *session)
{
    if (session->phase <= KITH_PHASE_HELLO)
        return kith_handshake_want(session);
    return session->phase == KITH_PHASE_OPEN
               ? KITH_LENGTH_BYTES + KITH_RECORD_BYTES_MAX
               : 0;
}

size_t kith_session_output(struct kith_session *session, uint8_t *out,
                           size_t capacity)
{
    const size_t n = session->pending_bytes;
    KITH_ASSERT(n <= sizeof session->pending && capacity >= n);
    memcpy(out, session->pending, n);
    session->pending_bytes = 0;
    return n;
}

/* FIN closes one direction: after the peer's we may still seal ours, and what
 * answers it. */
bool kith_session_is_open(const struct kith_session *session)
{
    return session->phase == KITH_PHASE_OPEN ||
           session->phase == KITH_PHASE_FINISHED;
}

/* After a mismatch the peer has proved itself, too, and a diagnosis names it:
 * so these four do not insist on an open session. */
const struct kith_certificate *kith_session_peer(const struct kith_session *s)
{
    return &s->peer;
}

const struct kith_hello *kith_session_peer_hello(const struct kith_session *s)
{
    return &s->peer_hello;
}

const uint8_t *kith_session_peer_key(const struct kith_session *session)
{
    return session->noise.peer_key;
}

const uint8_t *kith_session_peer_certificate(const struct kith_session *session,
                                             size_t *size)
{
    KITH_ASSERT(session->peer_certificate_bytes <= KITH_CERTIFICATE_BYTES_MAX);
    *size = session->peer_certificate_bytes;
    return session->peer_certificate;
}

enum kith_notice kith_session_notice(const struct kith_session *session)
{
    switch (session->notice) {
#define KITH_X(name, byte, text)                                               \
    case byte:                                                                 \
        return KITH_NOTICE_##name;
        KITH_NOTICES(KITH_X)
#undef KITH_X
    }
    return KITH_NOTICE_NONE;
}

const char *kith_notice_text(unsigned notice)
{
    switch (notice) {
#define KITH_X(name, byte, text)                                               \
    case byte:                                                                 \
        return text;
        KITH_NOTICES(KITH_X)
#undef KITH_X
    }
    return "for a reason that this version does not know";
}

const char *kith_session_reason(const struct kith_session *session)
{
    return session->reason;
}

/* The simulator's `sized` links charge this without running the handshake;
 * test_session.c holds it against real ones. */
size_t kith_session_handshake_bytes(bool initiator, size_t own_certificate,
                                    size_t hello_name_bytes)
{
    KITH_ASSERT(own_certificate <= KITH_CERTIFICATE_BYTES_MAX);
    KITH_ASSERT(hello_name_bytes < KITH_NAME_MAX);
    const size_t message = initiator
                               ? KITH_NOISE_OVERHEAD_1 + KITH_NOISE_OVERHEAD_3
                               : KITH_NOISE_OVERHEAD_2;
    return KITH_PREFACE_BYTES + KITH_LENGTH_BYTES + message + own_certificate +
           KITH_RECORD_OVERHEAD + KITH_HELLO_HEAD_BYTES + hello_name_bytes;
}

void kith_session_counters(const struct kith_session *session,
                           struct kith_session_counters *counters)
{
    KITH_ASSERT(session->send.rekeys <= session->send.records);
    KITH_ASSERT(session->receive.rekeys <= session->receive.records);
    *counters = (struct kith_session_counters){
        .records_sealed = session->send.records,
        .records_opened = session->receive.records,
        .bytes_sealed = session->send.bytes,
        .bytes_opened = session->receive.bytes,
        .rekeys = session->send.rekeys + session->receive.rekeys,
    };
}
