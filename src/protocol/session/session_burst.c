/* The payload of a burst, sealed and opened on as many threads as there are.
 *
 *   record i of a burst   nonce n + i, place i * 65,490 on the wire,
 *                         place i * 65,472 in the vector
 *
 * All three are known before the first record is touched, and one key serves
 * them all (session_record.c): so records wait for nothing but a thread, and
 * what is written is the same for any number of threads. The caller's thread
 * has said what is to be done before they start, and goes on when they are
 * done: counts, rekeys, errors and events are its own, in the order of the
 * wire. Test: unit/test_session_threads.c. */
#include <string.h>

#include "kith/assert.h"
#include "src/protocol/session/bytes.h"
#include "src/protocol/session/session_state.h"

/* Between two records on the wire. */
#define STRIDE_BYTES (KITH_BULK_BYTES + KITH_RECORD_OVERHEAD)

_Static_assert(KITH_LANES_MAX <= KITH_BURST_RECORDS,
               "a full burst has a record for every thread");

/* What the threads share: read by all, but for the answers, one a record. */
struct shared {
    struct kith_session *session;
    const uint8_t *plain; /* (bytes), when sealing */
    uint8_t *wire;
    size_t bytes;
    enum kith_err errors[KITH_BURST_RECORDS];
    bool passed[KITH_BURST_RECORDS];
};

size_t kith_burst_records(uint64_t bytes)
{
    KITH_ASSERT(bytes <= UINT64_MAX - KITH_BULK_BYTES);
    return (size_t)((bytes + KITH_BULK_BYTES - 1) / KITH_BULK_BYTES);
}

/* Of record i: only the last one is short. */
static size_t record_bytes(const struct shared *shared, size_t i)
{
    const size_t at = i * KITH_BULK_BYTES;
    KITH_ASSERT(at < shared->bytes);
    const size_t left = shared->bytes - at;
    return left < KITH_BULK_BYTES ? left : KITH_BULK_BYTES;
}

/* The error of the first record that has one, as if they had come one by one.
 */
static enum kith_err run(struct shared *shared,
                         void (*part)(void *context, unsigned lane, size_t i))
{
    const struct kith_session_threads *threads = shared->session->threads;
    const size_t count = kith_burst_records(shared->bytes);
    KITH_ASSERT(count >= 1 && count <= KITH_BURST_RECORDS);
    if (threads && count > 1)
        threads->run(threads->arg, count, part, shared);
    else
        for (size_t i = 0; i < count; i++)
            part(shared, 0, i);
    for (size_t i = 0; i < count; i++)
        if (shared->errors[i] != KITH_OK)
            return shared->errors[i];
    return KITH_OK;
}

static void seal_part(void *context, unsigned lane, size_t i)
{
    struct shared *shared = context;
    const size_t n = record_bytes(shared, i);
    uint8_t *out = shared->wire + i * STRIDE_BYTES;
    /* The length is not authenticated: a changed one moves the tag, which then
     * does not fit. */
    put_be(out, n + KITH_TAG_BYTES, KITH_LENGTH_BYTES);
    shared->errors[i] = kith_cipher_seal_ahead(
        &shared->session->send.cipher, lane, i,
        shared->plain + i * KITH_BULK_BYTES, n, out + KITH_LENGTH_BYTES);
}

enum kith_err kith_burst_seal(struct kith_session *session,
                              const uint8_t *plain, size_t bytes, uint8_t *out)
{
    struct shared shared = {
        .session = session, .plain = plain, .wire = out, .bytes = bytes};
    const uint64_t left = UINT64_MAX - session->send.cipher.n;
    const size_t count = kith_burst_records(bytes);
    /* All or none: what was sealed under a nonce must be spent with it. */
    if (count > left)
        return KITH_ELIMIT;
    const enum kith_err err = run(&shared, seal_part);
    kith_cipher_spend(&session->send.cipher, count);
    return err;
}

/* A record without a place to go is opened where it lies, which authenticates
 * it too. A check sees nothing that has not authenticated. */
static void open_part(void *context, unsigned lane, size_t i)
{
    struct shared *shared = context;
    const struct kith_burst *burst = &shared->session->burst;
    const size_t n = record_bytes(shared, i);
    const uint64_t at = burst->done + i * KITH_BULK_BYTES;
    uint8_t *record = shared->wire + i * STRIDE_BYTES + KITH_LENGTH_BYTES;
    KITH_ASSERT(at + n <= burst->length);
    const enum kith_err err = kith_cipher_open_ahead(
        &shared->session->receive.cipher, lane, i, record, n,
        burst->sink ? burst->sink + at : record);
    shared->errors[i] = err;
    shared->passed[i] =
        err == KITH_OK &&
        (!burst->passes || burst->passes(burst->passes_arg, at, n));
}

enum kith_err kith_burst_open(struct kith_session *session, uint8_t *records,
                              size_t bytes, bool *passed)
{
    struct shared shared = {
        .session = session, .wire = records, .bytes = bytes};
    const size_t count = kith_burst_records(bytes);
    const enum kith_err err = run(&shared, open_part);
    if (err != KITH_OK)
        return err;
    kith_cipher_spend(&session->receive.cipher, count);
    *passed = true;
    for (size_t i = 0; i < count; i++)
        *passed = *passed && shared.passed[i];
    return KITH_OK;
}
