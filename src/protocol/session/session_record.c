/* Records: framing, nonces, bursts, rekeys.
 *
 *   record         = length (2) || Noise transport message
 *   control record = seal(type (1) || frame)
 *   burst          = seal(BULK || transfer (8) || offset (8) || length (4)),
 *                    then ceil(length / 65,472) records of payload alone
 *
 * A key seals at most 2^16 records. Both ends count: they rekey after the
 * 2^16th, and after an announcement whose records would not all fit, so that
 * the payload of a burst never crosses a rekey. n is never reset: its order is
 * the order on the wire, and a lost, repeated or moved record fails its tag.
 * session_burst.c seals and opens that payload, on several threads at once. */
#include <string.h>

#include "kith/assert.h"
#include "kith/text.h"
#include "src/protocol/session/bytes.h"
#include "src/protocol/session/session_state.h"

_Static_assert(KITH_BURST_RECORDS + 1 <= KITH_REKEY_RECORDS,
               "a burst fits under one key");
_Static_assert(KITH_BULK_BYTES + KITH_TAG_BYTES <= KITH_RECORD_BYTES_MAX,
               "a bulk record fits a Noise message");
_Static_assert(1 + KITH_CONTROL_BYTES_MAX + KITH_TAG_BYTES <=
                   KITH_RECORD_BYTES_MAX,
               "a control record fits a Noise message");
_Static_assert(KITH_HELLO_BYTES_MAX <= 1 + KITH_CONTROL_BYTES_MAX,
               "a HELLO is no longer than other frames");
_Static_assert(KITH_RECORD_BYTES_MAX <= UINT16_MAX,
               "a record's length has two bytes");
_Static_assert(KITH_ANNOUNCEMENT_BYTES == 21,
               "transfer, offset and length lie at 1, 9 and 17");
_Static_assert(KITH_BURST_BYTES % KITH_BULK_BYTES == 0,
               "only the last record of a transfer is short");
_Static_assert(KITH_BURST_BYTES <= UINT32_MAX, "the announcement's length");

/* The payload of a burst never crosses a Rekey: the reader then opens all of it
 * under one key schedule, into one target.
 * Counts one record of this direction, then rekeys if the next `needed` ones
 * do not fit under the key. */
static enum kith_err channel_count(struct kith_channel *channel, size_t bytes,
                                   size_t needed)
{
    /* Both ends count the same way from the same bytes, so that Rekey needs no
     * message that could be lost, delayed or forged. */
    KITH_ASSERT(needed >= 1 && needed <= KITH_BURST_RECORDS);
    KITH_ASSERT(channel->since_rekey < KITH_REKEY_RECORDS);
    channel->records++;
    channel->bytes += bytes + KITH_RECORD_OVERHEAD;
    channel->since_rekey++;
    if (channel->since_rekey + needed <= KITH_REKEY_RECORDS)
        return KITH_OK;
    channel->since_rekey = 0;
    channel->rekeys++;
    return kith_cipher_rekey(&channel->cipher);
}

/* The same for the payload records of a burst, or some of them, which all have
 * one key: a rekey can only come after the last. */
static enum kith_err channel_count_bulk(struct kith_channel *channel,
                                        size_t bytes)
{
    enum kith_err err = KITH_OK;
    KITH_ASSERT(channel->since_rekey + kith_burst_records(bytes) <=
                KITH_REKEY_RECORDS);
    for (size_t n; err == KITH_OK && bytes > 0; bytes -= n) {
        n = bytes < KITH_BULK_BYTES ? bytes : KITH_BULK_BYTES;
        err = channel_count(channel, n, 1);
    }
    return err;
}

static const char forged[] = "record does not authenticate";

/* A nonce may have been spent on a record that is never written: no other may
 * follow it. */
static enum kith_err seal_failed(struct kith_session *s, enum kith_err err)
{
    KITH_ASSERT(err != KITH_OK);
    s->phase = KITH_PHASE_FAILED;
    s->error = kith_session_refuse_cipher(s, err, forged);
    return err;
}

/* n is spent even where the record is then lost, and never used again.
 * Seals one record; `needed` more must fit under the key after it. */
static enum kith_err seal_one(struct kith_session *s, const uint8_t *plain,
                              size_t bytes, size_t needed, uint8_t *out)
{
    KITH_ASSERT(bytes + KITH_TAG_BYTES <= KITH_RECORD_BYTES_MAX);
    KITH_ASSERT(s->send.since_rekey < KITH_REKEY_RECORDS);
    /* The length is not authenticated: a changed one moves the tag, which then
     * does not fit. */
    put_be(out, bytes + KITH_TAG_BYTES, KITH_LENGTH_BYTES);
    enum kith_err err = kith_cipher_seal(&s->send.cipher, NULL, 0, plain, bytes,
                                         out + KITH_LENGTH_BYTES);
    if (err == KITH_OK)
        err = channel_count(&s->send, bytes, needed);
    return err == KITH_OK ? KITH_OK : seal_failed(s, err);
}

enum kith_err kith_record_seal(struct kith_session *s, const uint8_t *plain,
                               size_t bytes, uint8_t *out)
{
    return seal_one(s, plain, bytes, 1, out);
}

static bool can_seal(const struct kith_session *s)
{
    /* Keys exist from HELLO on, yet nothing of ours may be said before the
     * peer's HELLO has shown that it is the right experiment. */
    return kith_session_is_open(s) && !s->fin_sent;
}

/* Length, type, frame, tag: what a caller allocates. */
size_t kith_session_control_size(size_t frame_bytes)
{
    return KITH_RECORD_OVERHEAD + 1 + frame_bytes;
}

/* A frame behind its type byte, joined in `out` and sealed in place. */
static enum kith_err seal_frame(struct kith_session *s, enum kith_frame type,
                                const uint8_t *frame, size_t frame_bytes,
                                size_t needed, uint8_t *out)
{
    uint8_t *plain = out + KITH_LENGTH_BYTES;
    KITH_ASSERT(frame_bytes <= KITH_CONTROL_BYTES_MAX);
    KITH_ASSERT(type == KITH_FRAME_BULK || needed == 1);
    KITH_ASSERT(type != KITH_FRAME_BULK ||
                frame_bytes == KITH_ANNOUNCEMENT_BYTES - 1);
    if (frame_bytes)
        memmove(plain + 1, frame, frame_bytes);
    plain[0] = (uint8_t)type;
    return seal_one(s, plain, 1 + frame_bytes, needed, out);
}

/* One control record; capacity and frame are the caller's. */
static enum kith_err seal_whole(struct kith_session *s, enum kith_frame type,
                                const uint8_t *frame, size_t frame_bytes,
                                uint8_t *out, size_t capacity, size_t *written)
{
    const size_t size = kith_session_control_size(frame_bytes);
    *written = 0;
    if (!can_seal(s))
        return KITH_ECLOSED;
    if (frame_bytes > KITH_CONTROL_BYTES_MAX || capacity < size)
        return KITH_ELIMIT;
    const enum kith_err err = seal_frame(s, type, frame, frame_bytes, 1, out);
    if (err == KITH_OK)
        *written = size;
    KITH_ASSERT(*written <= capacity);
    return err;
}

enum kith_err kith_session_seal_control(struct kith_session *session,
                                        const uint8_t *frame,
                                        size_t frame_bytes, uint8_t *out,
                                        size_t capacity, size_t *written)
{
    return seal_whole(session, KITH_FRAME_CONTROL, frame, frame_bytes, out,
                      capacity, written);
}

/* FIN is sealed: a connection that is cut by somebody else ends without one,
 * and is told apart from an end in order (truncation, RFC 8446, section 6.1).
 * Where sealing failed the session has ended either way. */
enum kith_err kith_session_seal_fin(struct kith_session *session, uint8_t *out,
                                    size_t capacity, size_t *written)
{
    const enum kith_err err =
        seal_whole(session, KITH_FRAME_FIN, NULL, 0, out, capacity, written);
    session->fin_sent |= err == KITH_OK;
    return err;
}

enum kith_err kith_session_seal_notice(struct kith_session *session,
                                       enum kith_notice notice, uint8_t *out,
                                       size_t capacity, size_t *written)
{
    const uint8_t code = (uint8_t)notice;
    KITH_ASSERT(notice != KITH_NOTICE_NONE);
    const enum kith_err err = seal_whole(session, KITH_FRAME_REFUSED, &code, 1,
                                         out, capacity, written);
    session->fin_sent |= err == KITH_OK;
    return err;
}

size_t kith_session_burst_size(size_t length)
{
    return KITH_RECORD_OVERHEAD + KITH_ANNOUNCEMENT_BYTES + length +
           kith_burst_records(length) * KITH_RECORD_OVERHEAD;
}

/* Straight from the caller's vector: one pass over its bytes, which leave the
 * cache sealed. */
enum kith_err kith_session_seal_burst(struct kith_session *session,
                                      const struct kith_session_burst *burst,
                                      uint8_t *out, size_t capacity,
                                      size_t *written)
{
    const size_t length = burst->length;
    *written = 0;
    if (!can_seal(session))
        return KITH_ECLOSED;
    if (length == 0 || length > KITH_BURST_BYTES ||
        burst->offset > UINT64_MAX - length ||
        capacity < kith_session_burst_size(length))
        return KITH_ELIMIT;
    uint8_t body[KITH_ANNOUNCEMENT_BYTES - 1];
    put_be(body, burst->transfer, 8);
    put_be(body + 8, burst->offset, 8);
    put_be(body + 16, length, 4);
    enum kith_err err = seal_frame(session, KITH_FRAME_BULK, body, sizeof body,
                                   kith_burst_records(length), out);
    if (err != KITH_OK)
        return err;
    err = kith_burst_seal(session, burst->payload, length,
                          out + KITH_RECORD_OVERHEAD + KITH_ANNOUNCEMENT_BYTES);
    if (err == KITH_OK)
        err = channel_count_bulk(&session->send, length);
    if (err != KITH_OK)
        return seal_failed(session, err);
    *written = kith_session_burst_size(length);
    KITH_ASSERT(*written <= capacity);
    return KITH_OK;
}

/* The longest record that may come now. A peer whose HELLO is outstanding is
 * verified, but has no business with a long frame yet. */
static size_t record_limit(const struct kith_session *s)
{
    KITH_ASSERT(s->phase == KITH_PHASE_HELLO || s->phase == KITH_PHASE_OPEN);
    if (s->phase == KITH_PHASE_HELLO)
        return KITH_HELLO_BYTES_MAX + KITH_TAG_BYTES;
    return 1 + KITH_CONTROL_BYTES_MAX + KITH_TAG_BYTES;
}

/* The model is used only when the burst is whole; a forged byte ends the
 * session early, with the records that came with it. */
static enum kith_err open_bulk(struct kith_session *s, uint8_t *records,
                               size_t n, struct kith_session_event *event)
{
    struct kith_burst *burst = &s->burst;
    KITH_ASSERT(n >= 1 && n <= burst->length - burst->done);
    enum kith_err err = kith_burst_open(s, records, n, &event->passed);
    if (err == KITH_OK)
        err = channel_count_bulk(&s->receive, n);
    if (err != KITH_OK)
        return kith_session_refuse_cipher(s, err, forged);
    event->kind = KITH_SESSION_RECORD;
    event->record_at = burst->done;
    event->record_bytes = n;
    burst->done += n;
    KITH_ASSERT(burst->done <= burst->length);
    return KITH_OK;
}

/* Plain bytes of the whole records of the burst that lie at `bytes`: of one, or
 * of as many as there are threads for. The announcement was authenticated, the
 * lengths before records are not: they must agree, or a record could write past
 * the target. *used 0: the first is not whole, or its length is wrong. */
static size_t bulk_ready(const struct kith_session *s, const uint8_t *bytes,
                         size_t size, size_t *used)
{
    const uint64_t all = s->burst.length - s->burst.done;
    const size_t most = s->threads ? KITH_BURST_RECORDS : 1;
    size_t plain = 0;
    KITH_ASSERT(all > 0 && *used == 0);
    for (size_t i = 0; i < most && plain < all; i++) {
        const uint64_t left = all - plain;
        const size_t n =
            left < KITH_BULK_BYTES ? (size_t)left : KITH_BULK_BYTES;
        if (size - *used < n + KITH_RECORD_OVERHEAD ||
            get_be(bytes + *used, KITH_LENGTH_BYTES) != n + KITH_TAG_BYTES)
            break;
        *used += n + KITH_RECORD_OVERHEAD;
        plain += n;
    }
    KITH_ASSERT(*used <= size);
    return plain;
}

/* Records, then a BURST event without bytes of its own. The event repeats what
 * was announced: the caller keeps no copy of it. */
static enum kith_err read_bulk(struct kith_session *s, uint8_t *bytes,
                               size_t size, size_t *used,
                               struct kith_session_event *event)
{
    struct kith_burst *burst = &s->burst;
    KITH_ASSERT(burst->sink_given && burst->done <= burst->length);
    event->transfer = burst->transfer;
    event->offset = burst->offset;
    event->length = burst->length;
    if (burst->done == burst->length) {
        event->kind = KITH_SESSION_BURST;
        memset(burst, 0, sizeof *burst);
        return KITH_OK;
    }
    if (size < KITH_LENGTH_BYTES)
        return KITH_OK;
    const uint64_t left = burst->length - burst->done;
    const size_t n = left < KITH_BULK_BYTES ? (size_t)left : KITH_BULK_BYTES;
    if (get_be(bytes, KITH_LENGTH_BYTES) != n + KITH_TAG_BYTES)
        return kith_session_refuse(s, KITH_EPARSE,
                                   "bulk record has not the announced length");
    const size_t ready = bulk_ready(s, bytes, size, used);
    return ready > 0 ? open_bulk(s, bytes, ready, event) : KITH_OK;
}

/* Authenticated does not mean honest: each number is checked against our
 * limits, and whether anybody waits for the transfer is the caller's question.
 */
static enum kith_err read_announcement(struct kith_session *s,
                                       const uint8_t *frame, size_t n,
                                       struct kith_session_event *event)
{
    struct kith_burst burst = {.length = 0};
    KITH_ASSERT(s->burst.length == 0 && s->phase == KITH_PHASE_OPEN);
    if (n == KITH_ANNOUNCEMENT_BYTES) {
        burst.transfer = get_be(frame + 1, 8);
        burst.offset = get_be(frame + 9, 8);
        burst.length = get_be(frame + 17, 4);
    }
    if (burst.length == 0 || burst.length > KITH_BURST_BYTES ||
        burst.offset > UINT64_MAX - burst.length)
        return kith_session_refuse(s, KITH_EPARSE,
                                   "bulk announcement is malformed");
    KITH_ASSERT(kith_burst_records(burst.length) <= KITH_BURST_RECORDS);
    s->burst = burst;
    event->kind = KITH_SESSION_BULK;
    event->transfer = burst.transfer;
    event->offset = burst.offset;
    event->length = burst.length;
    return KITH_OK;
}

/* One opened control record; `frame` starts with its type. */
static enum kith_err read_frame(struct kith_session *s, const uint8_t *frame,
                                size_t n, struct kith_session_event *event)
{
    KITH_ASSERT(n >= 1 && n <= 1 + KITH_CONTROL_BYTES_MAX);
    if (frame[0] == KITH_FRAME_REFUSED && n == 2) {
        s->notice = frame[1];
        return kith_text_fail(s->reason, sizeof s->reason, KITH_EPERM,
                              "the peer refused us: %s",
                              kith_notice_text(s->notice));
    }
    if (s->phase == KITH_PHASE_HELLO) {
        event->kind = KITH_SESSION_OPEN;
        return kith_handshake_hello(s, frame, n);
    }
    switch (frame[0]) {
    case KITH_FRAME_CONTROL:
        event->kind = KITH_SESSION_CONTROL;
        event->frame = frame + 1;
        event->frame_bytes = n - 1;
        return KITH_OK;
    case KITH_FRAME_BULK:
        return read_announcement(s, frame, n, event);
    case KITH_FRAME_FIN:
        if (n != 1)
            break;
        event->kind = KITH_SESSION_FIN;
        s->phase = KITH_PHASE_FINISHED;
        return KITH_OK;
    }
    return kith_session_refuse(s, KITH_EPARSE, "frame type is unknown");
}

enum kith_err kith_record_read(struct kith_session *s, uint8_t *bytes,
                               size_t size, size_t *used,
                               struct kith_session_event *event)
{
    KITH_ASSERT(*used == 0 && event->kind == KITH_SESSION_NONE);
    if (s->burst.length > 0)
        return read_bulk(s, bytes, size, used, event);
    if (size < KITH_LENGTH_BYTES)
        return KITH_OK;
    const size_t sealed = (size_t)get_be(bytes, KITH_LENGTH_BYTES);
    /* Before a byte of it is awaited: a length is all that an attacker needs to
     * make us wait and buffer. */
    if (sealed < 1 + KITH_TAG_BYTES || sealed > record_limit(s))
        return kith_session_refuse(s, KITH_EPARSE,
                                   "record has an impossible length");
    if (size < KITH_LENGTH_BYTES + sealed)
        return KITH_OK;
    *used = KITH_LENGTH_BYTES + sealed;
    /* Opened in place: the caller's buffer is the only copy. */
    uint8_t *frame = bytes + KITH_LENGTH_BYTES;
    const size_t n = sealed - KITH_TAG_BYTES;
    enum kith_err err =
        kith_cipher_open(&s->receive.cipher, NULL, 0, frame, n, frame);
    if (err != KITH_OK)
        return kith_session_refuse_cipher(s, err, forged);
    err = read_frame(s, frame, n, event);
    if (err != KITH_OK)
        return err;
    /* After the frame has been read, since a burst decides about Rekey. */
    err = channel_count(&s->receive, n,
                        event->kind == KITH_SESSION_BULK
                            ? kith_burst_records(event->length)
                            : 1);
    return err == KITH_OK ? KITH_OK
                          : kith_session_refuse_cipher(s, err, forged);
}
