/* Goal: no bytes open a session that should not be, or make one misbehave
 * before it is open. Method: both ends' memory is saved at every phase and put
 * back, so an execution costs one step; the target owns all keys, so what the
 * fuzzer writes as certificate or HELLO is signed and sealed again.
 *
 * Input: byte 0 chooses what is spoiled, the rest is its content. */
#include <sodium.h>
#include <stdlib.h>
#include <string.h>

#include "kith/assert.h"
#include "src/protocol/session/bytes.h"
#include "src/protocol/session/session_state.h"
#include "tests/support/sessions.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

enum { FRESH, PREFACED, WAITING, KEYED, PHASES };
static struct sessions pair;
static struct kith_identity honest[2];
static uint8_t *saved[PHASES][2];
static uint8_t scratch[1 << 16];

static void save(int phase)
{
    for (int i = 0; i < 2; i++) {
        saved[phase][i] = malloc(kith_session_size());
        KITH_ASSERT(saved[phase][i] != NULL);
        memcpy(saved[phase][i], pair.ends[i].memory, kith_session_size());
    }
}

static void restore(int phase)
{
    for (int i = 0; i < 2; i++) {
        memcpy(pair.ends[i].memory, saved[phase][i], kith_session_size());
        pair.ends[i].identity = honest[i];
    }
}

static enum kith_err pass(int from)
{
    const size_t n = kith_session_output(pair.ends[from].session, scratch,
                                         KITH_PREAUTH_BYTES);
    return sessions_feed(&pair.ends[1 - from], scratch, n);
}

/* libsodium's states are plain bytes, so memory can be put back. */
static void prepare(void)
{
    sessions_setup(&pair, KITH_SUITE_CHACHAPOLY, &kith_aead_sodium, 1);
    KITH_ASSERT(sessions_start(&pair));
    honest[0] = pair.ends[0].identity;
    honest[1] = pair.ends[1].identity;
    save(FRESH); /* Preface and message 1 are pending. */
    uint8_t preface[2][KITH_PREFACE_BYTES];
    for (int i = 0; i < 2; i++)
        memcpy(preface[i], pair.ends[i].session->pending, KITH_PREFACE_BYTES);
    for (int i = 0; i < 2; i++) {
        struct kith_session *s = pair.ends[i].session;
        s->pending_bytes -= KITH_PREFACE_BYTES;
        memmove(s->pending, s->pending + KITH_PREFACE_BYTES, s->pending_bytes);
        KITH_ASSERT(sessions_feed(&pair.ends[i], preface[1 - i], 8) == KITH_OK);
    }
    save(PREFACED); /* Message 1 is pending. */
    KITH_ASSERT(pass(0) == KITH_OK);
    save(WAITING); /* Message 2 is pending. */
    KITH_ASSERT(pass(1) == KITH_OK);
    struct kith_session *a = pair.ends[0].session;
    const size_t message3 =
        KITH_LENGTH_BYTES + (size_t)get_be(a->pending, KITH_LENGTH_BYTES);
    a->pending_bytes = 0; /* The HELLO is held back. */
    KITH_ASSERT(sessions_feed(&pair.ends[1], a->pending, message3) == KITH_OK);
    save(KEYED);
}

/* The fuzzer's certificate, perhaps signed well, in message 2 or 3. */
static void try_certificate(int from, bool sign, const uint8_t *data,
                            size_t size)
{
    const int to = 1 - from;
    const size_t room = KITH_CERTIFICATE_BYTES_MAX - (sign ? 66 : 0);
    struct kith_identity *identity = &pair.ends[from].identity;
    size = size < room ? size : room;
    restore(from == 1 ? PREFACED : WAITING);
    memcpy(identity->certificate, data, size);
    identity->certificate_bytes = size;
    if (sign) {
        uint8_t covered[13 + KITH_CERTIFICATE_BYTES_MAX] = "kith-cert-v1";
        memcpy(covered + 13, data, size);
        identity->certificate[size] = 11;
        identity->certificate[size + 1] = KITH_SIGNATURE_BYTES;
        crypto_sign_detached(identity->certificate + size + 2, NULL, covered,
                             13 + size, pair.cluster.secret);
        identity->certificate_bytes = size + 66;
    }
    KITH_ASSERT(pass(to) == KITH_OK);
    const enum kith_err err = pass(from);
    const struct kith_session *s = pair.ends[to].session;
    KITH_ASSERT(err == KITH_OK || kith_session_reason(s)[0] != '\0');
    KITH_ASSERT((err == KITH_OK) == (s->phase >= KITH_PHASE_HELLO &&
                                     s->phase != KITH_PHASE_FAILED));
    if (err == KITH_OK)
        KITH_ASSERT(memcmp(s->peer.key, identity->key, KITH_KEY_BYTES) == 0);
    if (err == KITH_OK && !sign)
        KITH_ASSERT(size == honest[from].certificate_bytes &&
                    memcmp(data, honest[from].certificate, size) == 0);
}

/* The fuzzer's first record, sealed well. */
static void try_hello(int from, const uint8_t *data, size_t size)
{
    restore(KEYED);
    struct sessions_end *to = &pair.ends[1 - from];
    struct kith_session *s = pair.ends[from].session;
    s->send.cipher.n = 0;
    size = size < 4096 ? size : 4096;
    KITH_ASSERT(kith_record_seal(s, data, size, scratch) == KITH_OK);
    const enum kith_err err =
        sessions_feed(to, scratch, size + KITH_RECORD_OVERHEAD);
    KITH_ASSERT(kith_session_is_open(to->session) ==
                (err == KITH_OK &&
                 kith_session_peer_hello(to->session)->dim == 109386));
}

/* The fuzzer's bytes as they are, at any phase. */
static void try_raw(int to, int phase, const uint8_t *data, size_t size)
{
    restore(phase);
    size = size < sizeof scratch ? size : sizeof scratch;
    memcpy(scratch, data, size);
    const enum kith_err err = sessions_feed(&pair.ends[to], scratch, size);
    const struct kith_session *s = pair.ends[to].session;
    KITH_ASSERT(!kith_session_is_open(s));
    KITH_ASSERT(kith_session_want(s) <= KITH_PREAUTH_BYTES);
    KITH_ASSERT(err == KITH_OK || kith_session_reason(s)[0] != '\0');
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    if (!saved[KEYED][1])
        prepare();
    if (size == 0)
        return 0;
    const int end = data[0] >> 7;
    const int what = data[0] & 7;
    if (what < PHASES)
        try_raw(end, what, data + 1, size - 1);
    else if (what < 6)
        try_certificate(end, what == 4, data + 1, size - 1);
    else
        try_hello(end, data + 1, size - 1);
    return 0;
}
