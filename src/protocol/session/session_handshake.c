/* From the first byte to the verified HELLO.
 *
 *   preface   = "kith" || version (1) || suite (1) || 0 0, first of each side
 *   prologue  = preface || cluster id: another cluster, version or suite fails
 *               the transcript even where the clear bytes were altered
 *   message 1 = 32 bytes; messages 2 and 3 = length (2) || Noise, the payload
 *               being the sender's certificate (empty with an allow-list)
 *   HELLO     = 1 || experiment hash (8) || dim (8) || incarnation (4)
 *               || rank (4) || clock (4) || instance (4) || name length (1)
 *               || name, the first record of each side
 *
 * Lengths are checked before anything is awaited, so no more than
 * KITH_PREAUTH_BYTES of an unverified peer are ever needed. */
#include <string.h>

#include "kith/assert.h"
#include "kith/text.h"
#include "src/protocol/session/bytes.h"
#include "src/protocol/session/certificate.h"
#include "src/protocol/session/session_state.h"

static const uint8_t magic[4] = {'k', 'i', 't', 'h'};

_Static_assert(sizeof magic + 4 == KITH_PREFACE_BYTES,
               "magic, version, suite, two reserved bytes");
_Static_assert(KITH_FIRST_BYTES == KITH_PREFACE_BYTES + KITH_NOISE_OVERHEAD_1,
               "a stranger's first bytes");
_Static_assert(KITH_PROTOCOL_VERSION <= UINT8_MAX, "the version is a byte");
_Static_assert(KITH_HELLO_HEAD_BYTES == 34,
               "HELLO's fields lie at offsets 1, 9, 17, 21, 25, 29 and 33");
_Static_assert(KITH_NAME_MAX - 1 <= UINT8_MAX, "the name's length is a byte");
_Static_assert(KITH_MESSAGE_BYTES_MAX <= UINT16_MAX,
               "a handshake message's length has two bytes");
_Static_assert(KITH_NOISE_OVERHEAD_3 <= KITH_NOISE_OVERHEAD_2,
               "room for message 2 is room for message 3");

/* In the clear, and so small that a foreign protocol is recognised before any
 * cryptography is spent on it. */
static void preface_write(enum kith_suite suite,
                          uint8_t preface[KITH_PREFACE_BYTES])
{
    memset(preface, 0, KITH_PREFACE_BYTES);
    memcpy(preface, magic, sizeof magic);
    preface[4] = KITH_PROTOCOL_VERSION;
    preface[5] = (uint8_t)suite;
}

bool kith_session_begins(const uint8_t *bytes, size_t size)
{
    return memcmp(bytes, magic, size < sizeof magic ? size : sizeof magic) == 0;
}

static const char forged[] = "handshake does not authenticate: another "
                             "cluster id, an altered or a replayed message";

/* Output waits in the session until the caller fetches it: the session does no
 * I/O, and a handshake's whole output has a bound (KITH_PENDING_BYTES). */
static uint8_t *pending_end(struct kith_session *s, size_t room)
{
    KITH_ASSERT(s->pending_bytes + room <= sizeof s->pending);
    return s->pending + s->pending_bytes;
}

enum kith_err kith_handshake_start(struct kith_session *s,
                                   const uint8_t random[32])
{
    uint8_t prologue[KITH_PREFACE_BYTES + KITH_CLUSTER_BYTES];
    KITH_ASSERT(s->pending_bytes == 0);
    preface_write(s->suite, prologue);
    memcpy(prologue + KITH_PREFACE_BYTES, s->trust->cluster,
           KITH_CLUSTER_BYTES);
    const struct kith_noise_options options = {
        .initiator = s->initiator,
        .protocol = kith_suite_name(s->suite),
        .digest = KITH_DIGEST_BLAKE2B,
        .prologue = prologue,
        .prologue_bytes = sizeof prologue,
        .secret = s->identity->secret,
        .key = s->identity->key,
        .ephemeral = random,
        .send = &s->send.cipher,
        .receive = &s->receive.cipher,
    };
    kith_noise_init(&s->noise, &options);
    enum kith_err err = KITH_OK;
    memcpy(pending_end(s, KITH_PREFACE_BYTES), prologue, KITH_PREFACE_BYTES);
    s->pending_bytes = KITH_PREFACE_BYTES;
    if (s->initiator) {
        size_t n = 0;
        err = kith_noise_write(&s->noise, NULL, 0,
                               pending_end(s, KITH_NOISE_OVERHEAD_1), &n);
        s->pending_bytes += n;
    }
    KITH_ASSERT(err != KITH_OK || s->noise.message == (s->initiator ? 1u : 0u));
    s->phase = KITH_PHASE_PREFACE;
    return err;
}

static enum kith_err read_preface(struct kith_session *s, const uint8_t *bytes)
{
    uint8_t ours[KITH_PREFACE_BYTES];
    KITH_ASSERT(s->phase == KITH_PHASE_PREFACE);
    /* Each field on its own, so that the log says which one differs; the whole
     * is under the transcript's hash anyway (as the prologue). */
    preface_write(s->suite, ours);
    if (memcmp(bytes, magic, sizeof magic) != 0)
        return kith_session_refuse(
            s, KITH_EPARSE, "preface is not kith's: plain or foreign bytes");
    if (bytes[4] != ours[4])
        return kith_text_fail(
            s->reason, sizeof s->reason, KITH_EVERSION,
            "peer speaks version %u%s, we speak %u: update %s",
            (unsigned)bytes[4],
            bytes[4] == 1 ? " (kith before ranks in certificates)" : "",
            (unsigned)ours[4], bytes[4] < ours[4] ? "the peer" : "this one");
    if (bytes[5] != ours[5])
        return kith_text_fail(s->reason, sizeof s->reason, KITH_EVERSION,
                              "suite differs: peer offers %s, we use %s",
                              kith_suite_name((enum kith_suite)bytes[5]),
                              kith_suite_name(s->suite));
    if (memcmp(bytes, ours, sizeof ours) != 0)
        return kith_session_refuse(s, KITH_EVERSION,
                                   "preface has reserved bits set");
    s->phase = s->initiator ? KITH_PHASE_MESSAGE2 : KITH_PHASE_MESSAGE1;
    return KITH_OK;
}

/* The certificate is Noise's payload: message 2 encrypts it to whoever sent the
 * ephemeral key, message 3 to the authenticated responder (revision 34, section
 * 7.8: identity hiding of XX).
 * Appends message 2 or 3, our certificate inside, to the output. */
static enum kith_err write_message(struct kith_session *s)
{
    KITH_ASSERT(s->phase ==
                (s->initiator ? KITH_PHASE_MESSAGE2 : KITH_PHASE_MESSAGE3));
    const size_t room = KITH_LENGTH_BYTES + KITH_NOISE_OVERHEAD_2 +
                        s->identity->certificate_bytes;
    uint8_t *out = pending_end(s, room);
    size_t n = 0;
    const enum kith_err err = kith_noise_write(
        &s->noise, s->identity->certificate, s->identity->certificate_bytes,
        out + KITH_LENGTH_BYTES, &n);
    if (err != KITH_OK)
        return kith_session_refuse_cipher(s, err, forged);
    KITH_ASSERT(KITH_LENGTH_BYTES + n <= room);
    put_be(out, n, KITH_LENGTH_BYTES);
    s->pending_bytes += KITH_LENGTH_BYTES + n;
    return KITH_OK;
}

/* Made of what only this process knows and for this peer alone: whoever shows
 * it to the peer is this process, even where its key was copied. */
static uint32_t instance_for_peer(const struct kith_session *s)
{
    uint8_t hash[KITH_HASH_BYTES];
    KITH_ASSERT(s->noise.message == 3); /* the key is proved */
    kith_digest_two(KITH_DIGEST_BLAKE2B, hash, s->secret, sizeof s->secret,
                    s->noise.peer_key, KITH_KEY_BYTES);
    return (uint32_t)get_be(hash, 4);
}

/* Keys both directions and appends our HELLO. It is the first record, not a
 * part of message 3, so that both sides send theirs sealed and at once. */
static enum kith_err finish_handshake(struct kith_session *s)
{
    KITH_ASSERT(s->send.records == 0 && s->receive.records == 0);
    enum kith_err err = kith_noise_split(&s->noise);
    if (err != KITH_OK)
        return kith_session_refuse(s, err, "AEAD provider failed");
    uint8_t frame[KITH_HELLO_BYTES_MAX];
    const size_t name_bytes = strlen(s->hello.model);
    KITH_ASSERT(name_bytes < KITH_NAME_MAX);
    frame[0] = KITH_FRAME_HELLO;
    put_be(frame + 1, s->hello.experiment_hash, 8);
    put_be(frame + 9, s->hello.dim, 8);
    put_be(frame + 17, s->hello.incarnation, 4);
    put_be(frame + 21, s->hello.rank, 4);
    put_be(frame + 25, (uint32_t)s->utc_s, 4);
    put_be(frame + 29, instance_for_peer(s), 4);
    frame[33] = (uint8_t)name_bytes;
    memcpy(frame + KITH_HELLO_HEAD_BYTES, s->hello.model, name_bytes);
    const size_t n = KITH_HELLO_HEAD_BYTES + name_bytes;
    err =
        kith_record_seal(s, frame, n, pending_end(s, n + KITH_RECORD_OVERHEAD));
    if (err != KITH_OK)
        return err;
    s->pending_bytes += n + KITH_RECORD_OVERHEAD;
    KITH_ASSERT(s->send.records == 1 && s->send.cipher.n == 1);
    s->phase = KITH_PHASE_HELLO;
    return KITH_OK;
}

/* The first curve operations that a stranger can make us do: two products,
 * which half_open.h rations. */
static enum kith_err read_message1(struct kith_session *s, const uint8_t *bytes)
{
    uint8_t none[1]; /* message 1 has no payload: it would be in the clear */
    size_t none_bytes = 0;
    KITH_ASSERT(!s->initiator && s->phase == KITH_PHASE_MESSAGE1);
    const enum kith_err err = kith_noise_read(
        &s->noise, bytes, KITH_NOISE_OVERHEAD_1, none, &none_bytes);
    if (err != KITH_OK)
        return kith_session_refuse_cipher(s, err, forged);
    KITH_ASSERT(none_bytes == 0);
    s->phase = KITH_PHASE_MESSAGE3;
    return write_message(s);
}

/* To one whom our authority certified and who has proved its key: the handshake
 * is over, so that only it can read why it may not stay. What is left unsaid
 * where sealing fails is no news to us. */
static void tell_refused(struct kith_session *s, enum kith_notice notice)
{
    const uint8_t frame[2] = {KITH_FRAME_REFUSED, (uint8_t)notice};
    KITH_ASSERT(!s->initiator && s->noise.message == 3);
    if (kith_noise_split(&s->noise) == KITH_OK &&
        kith_record_seal(s, frame, sizeof frame,
                         pending_end(s, sizeof frame + KITH_RECORD_OVERHEAD)) ==
            KITH_OK)
        s->pending_bytes += sizeof frame + KITH_RECORD_OVERHEAD;
}

/* Message 2 or 3: who is it? Noise has proved that the peer holds the secret of
 * peer_key; the certificate says whose key that is. Whoever dials sees
 * the responder's certificate; the initiator's goes to a verified responder. */
static enum kith_err read_identity(struct kith_session *s, const uint8_t *bytes,
                                   size_t size)
{
    KITH_ASSERT(s->initiator == (s->phase == KITH_PHASE_MESSAGE2));
    KITH_ASSERT(size <= KITH_MESSAGE_BYTES_MAX);
    enum kith_err err =
        kith_noise_read(&s->noise, bytes, size, s->peer_certificate,
                        &s->peer_certificate_bytes);
    if (err != KITH_OK)
        return kith_session_refuse_cipher(s, err, forged);
    KITH_ASSERT(s->peer_certificate_bytes <= KITH_CERTIFICATE_BYTES_MAX);
    err = kith_trust_explain(s->trust, s->peer_certificate,
                             s->peer_certificate_bytes, s->noise.peer_key,
                             s->utc_s, &s->peer, s->reason);
    if (!s->initiator && (err == KITH_EREVOKED || err == KITH_EEXPIRED))
        tell_refused(s, err == KITH_EREVOKED ? KITH_NOTICE_REVOKED
                                             : KITH_NOTICE_EXPIRED);
    if (err != KITH_OK)
        return err;
    if (memcmp(s->noise.peer_key, s->identity->key, KITH_KEY_BYTES) == 0)
        return kith_session_refuse(
            s, KITH_EAUTH,
            "peer has our own key: a connection to ourselves, or a copied key");
    if (s->initiator)
        err = write_message(s);
    return err == KITH_OK ? finish_handshake(s) : err;
}

/* Without a certificate: the length of a peer under an allow-list. */
static size_t least_message(const struct kith_session *s)
{
    return s->initiator ? KITH_NOISE_OVERHEAD_2 : KITH_NOISE_OVERHEAD_3;
}

enum kith_err kith_handshake_read(struct kith_session *s, const uint8_t *bytes,
                                  size_t size, size_t *used)
{
    KITH_ASSERT(s->phase <= KITH_PHASE_MESSAGE3 && *used == 0);
    if (s->phase <= KITH_PHASE_MESSAGE1) { /* of one length each */
        const bool preface = s->phase == KITH_PHASE_PREFACE;
        const size_t whole =
            preface ? KITH_PREFACE_BYTES : KITH_NOISE_OVERHEAD_1;
        if (size < whole)
            return KITH_OK;
        *used = whole;
        return preface ? read_preface(s, bytes) : read_message1(s, bytes);
    }
    if (size < KITH_LENGTH_BYTES)
        return KITH_OK;
    const size_t n = (size_t)get_be(bytes, KITH_LENGTH_BYTES);
    const size_t least = least_message(s);
    if (n < least || n > least + KITH_CERTIFICATE_BYTES_MAX)
        return kith_session_refuse(s, KITH_EPARSE,
                                   "handshake message has an impossible "
                                   "length");
    if (size < KITH_LENGTH_BYTES + n)
        return KITH_OK;
    *used = KITH_LENGTH_BYTES + n;
    return read_identity(s, bytes + KITH_LENGTH_BYTES, n);
}

/* An initiator may find the responder's preface and message 2 in one segment,
 * since a responder writes them together (connection.c). */
size_t kith_handshake_want(const struct kith_session *s)
{
    KITH_ASSERT(s->phase <= KITH_PHASE_HELLO);
    if (s->phase == KITH_PHASE_PREFACE && s->initiator)
        return KITH_PREFACE_BYTES + KITH_LENGTH_BYTES + KITH_MESSAGE_BYTES_MAX;
    if (s->phase == KITH_PHASE_PREFACE)
        return KITH_PREFACE_BYTES + KITH_NOISE_OVERHEAD_1;
    if (s->phase == KITH_PHASE_MESSAGE1)
        return KITH_NOISE_OVERHEAD_1;
    if (s->phase == KITH_PHASE_HELLO)
        return KITH_RECORD_OVERHEAD + KITH_HELLO_BYTES_MAX;
    return KITH_LENGTH_BYTES + least_message(s) + KITH_CERTIFICATE_BYTES_MAX;
}

/* Both must train the same thing; says which part differs. The model and its
 * size first: a user reads them faster than two hashes. */
static enum kith_err compare_hello(struct kith_session *s)
{
    const struct kith_hello *ours = &s->hello, *theirs = &s->peer_hello;
    KITH_ASSERT(strlen(theirs->model) < sizeof theirs->model);
    if (strcmp(ours->model, theirs->model) != 0)
        kith_text_add(s->reason, sizeof s->reason, 0,
                      "model differs: peer has %s, we have %s", theirs->model,
                      ours->model);
    else if (ours->dim != theirs->dim)
        kith_text_add(s->reason, sizeof s->reason, 0,
                      "model size differs: peer has %llu parameters, we have "
                      "%llu",
                      (unsigned long long)theirs->dim,
                      (unsigned long long)ours->dim);
    else if (ours->experiment_hash != theirs->experiment_hash)
        kith_text_add(s->reason, sizeof s->reason, 0,
                      "experiment differs: peer has %016llx, we have %016llx",
                      (unsigned long long)theirs->experiment_hash,
                      (unsigned long long)ours->experiment_hash);
    else
        return KITH_OK;
    return KITH_EMISMATCH;
}

/* A member is verified: only now is more memory taken than one lane needs. */
static enum kith_err open_lanes(struct kith_session *s)
{
    const unsigned lanes = s->threads ? s->threads->lanes : 1;
    KITH_ASSERT(s->noise.message == 3 && s->phase == KITH_PHASE_HELLO);
    enum kith_err err = kith_cipher_widen(&s->send.cipher, lanes);
    if (err == KITH_OK)
        err = kith_cipher_widen(&s->receive.cipher, lanes);
    if (err != KITH_OK)
        return kith_session_refuse_cipher(s, err, forged);
    s->phase = KITH_PHASE_OPEN;
    return KITH_OK;
}

/* The model's name is shown in logs, where a quote or a blank would let a peer
 * write fields of its own: it is as safe as a certificate's, or empty. */
enum kith_err kith_handshake_hello(struct kith_session *s, const uint8_t *frame,
                                   size_t frame_bytes)
{
    KITH_ASSERT(s->phase == KITH_PHASE_HELLO && s->noise.message == 3);
    if (frame_bytes < KITH_HELLO_HEAD_BYTES || frame[0] != KITH_FRAME_HELLO ||
        frame_bytes != KITH_HELLO_HEAD_BYTES + (size_t)frame[33] ||
        !(frame[33] == 0 ||
          kith_name_is_safe(frame + KITH_HELLO_HEAD_BYTES, frame[33])))
        return kith_session_refuse(s, KITH_EPARSE,
                                   "first record is not a HELLO");
    struct kith_hello *hello = &s->peer_hello;
    hello->experiment_hash = get_be(frame + 1, 8);
    hello->dim = get_be(frame + 9, 8);
    hello->incarnation = (uint32_t)get_be(frame + 17, 4);
    hello->rank = (uint32_t)get_be(frame + 21, 4);
    /* Its low 32 bits: of such seconds the one that is next to ours. */
    hello->utc_s = s->utc_s + (int32_t)((uint32_t)get_be(frame + 25, 4) -
                                        (uint32_t)s->utc_s);
    hello->instance = (uint32_t)get_be(frame + 29, 4);
    memcpy(hello->model, frame + KITH_HELLO_HEAD_BYTES, frame[33]);
    hello->model[frame[33]] = '\0';
    const enum kith_err err = compare_hello(s);
    return err == KITH_OK ? open_lanes(s) : err;
}
