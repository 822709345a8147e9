/* Goal: an authenticated peer can send no frames that make a session misbehave.
 * Method: an open pair is saved and put back; the input is a list of plain
 * texts, each sealed with the peer's keys, some spoiled after sealing, read in
 * pieces. The top bit of the first operation asks for suite 3.
 *
 * Input: operations of (what, length low, length high) and so many bytes. */
#include <stdlib.h>
#include <string.h>

#include "kith/assert.h"
#include "src/protocol/session/session_state.h"
#include "tests/support/sessions.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

#define RECORD_BYTES_MAX (KITH_RECORD_BYTES_MAX - KITH_TAG_BYTES)
/* ChaChaPoly's and, where this machine can run it, AEGIS's; the one in use. */
static struct sessions pairs[2], *pair;
static uint8_t *saved[2][2];
static uint8_t wire[RECORD_BYTES_MAX + 64], plain[RECORD_BYTES_MAX];
static uint8_t sink[KITH_BURST_BYTES];
static bool in_burst;

static void prepare(int which, enum kith_suite suite,
                    const struct kith_aead *aead)
{
    pair = &pairs[which];
    sessions_setup(pair, suite, aead, 1);
    KITH_ASSERT(sessions_start(pair) && sessions_connect(pair));
    for (int i = 0; i < 2; i++) {
        saved[which][i] = malloc(kith_session_size());
        KITH_ASSERT(saved[which][i] != NULL);
        memcpy(saved[which][i], pair->ends[i].memory, kith_session_size());
    }
}

/* Providers whose states are plain bytes, so memory can be put back. */
static void prepare_both(void)
{
    const struct kith_aead *best = kith_aead_best(KITH_SUITE_AEGIS256X2);
    prepare(0, KITH_SUITE_CHACHAPOLY, &kith_aead_sodium);
    if (best)
        prepare(1, KITH_SUITE_AEGIS256X2, best);
}

/* What each event promises. */
static void check(const struct kith_session_event *event, bool discard)
{
    switch (event->kind) {
    case KITH_SESSION_CONTROL:
        KITH_ASSERT(event->frame_bytes <= KITH_CONTROL_BYTES_MAX);
        break;
    case KITH_SESSION_BULK:
        KITH_ASSERT(!in_burst && event->length > 0);
        KITH_ASSERT(event->length <= KITH_BURST_BYTES);
        KITH_ASSERT(event->offset + event->length > event->offset);
        kith_session_sink(pair->ends[1].session, discard ? NULL : sink);
        in_burst = true;
        break;
    case KITH_SESSION_RECORD:
        KITH_ASSERT(in_burst);
        KITH_ASSERT(event->record_at + event->record_bytes <= event->length);
        break;
    case KITH_SESSION_BURST:
        KITH_ASSERT(in_burst);
        in_burst = false;
        break;
    case KITH_SESSION_FIN:
    case KITH_SESSION_NONE:
        break;
    case KITH_SESSION_OPEN:
        KITH_ASSERT(event->kind != KITH_SESSION_OPEN); /* It was. */
    }
}

/* False once the session has failed. */
static bool read_all(uint8_t *bytes, size_t size, size_t piece, bool discard)
{
    struct kith_session *s = pair->ends[1].session;
    size_t at = 0, end = 0;
    for (;;) {
        size_t used = 0;
        struct kith_session_event event;
        if (kith_session_read(s, bytes + at, end - at, &used, &event) !=
            KITH_OK) {
            KITH_ASSERT(kith_session_reason(s)[0] != '\0');
            return false;
        }
        at += used;
        KITH_ASSERT(at <= end);
        check(&event, discard);
        if (event.kind == KITH_SESSION_NONE && end == size)
            return true;
        if (event.kind == KITH_SESSION_NONE)
            end = size - end < piece ? size : end + piece;
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    if (!saved[0][1])
        prepare_both();
    const int which = size > 0 && data[0] & 128 && saved[1][1];
    pair = &pairs[which];
    for (int i = 0; i < 2; i++)
        memcpy(pair->ends[i].memory, saved[which][i], kith_session_size());
    in_burst = false;
    const uint8_t *end = data + size;
    while (end - data >= 3) {
        const uint8_t what = data[0];
        size_t n = data[1] | (size_t)data[2] << 8;
        data += 3;
        const size_t given =
            n < (size_t)(end - data) ? n : (size_t)(end - data);
        n = n < RECORD_BYTES_MAX ? n : RECORD_BYTES_MAX;
        memset(plain, 0, n); /* A long record needs no long input. */
        memcpy(plain, data, given < n ? given : n);
        data += given;
        KITH_ASSERT(kith_record_seal(pair->ends[0].session, plain, n, wire) ==
                    KITH_OK);
        if (what & 64)
            wire[what % (n + KITH_RECORD_OVERHEAD)] ^= 1;
        if (!read_all(wire, n + KITH_RECORD_OVERHEAD,
                      what & 32 ? 1 + (size_t)(what & 15) * 4096 : SIZE_MAX,
                      what & 16))
            break;
    }
    return 0;
}
