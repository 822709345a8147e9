/* AES-256-GCM of Intel's ipsec-mb, which takes four blocks of AES and of GHASH
 * in one instruction where a processor has VAES and VPCLMULQDQ with 64 bytes.
 *
 * Elsewhere it is no faster than libcrypto, so that it has nothing there. Its
 * calls are found through a manager of 200 KB, which also runs the library's
 * known answers: made once a process, and only what we need of it is kept. An
 * expanded key is 1 KB, so that it is on the heap: hence an archive of its own.
 * It is only read by a record, so a state has all lanes at once. The library
 * leaves the tag's comparison to us, and writes plain text before that.
 *
 * Cost: 10.7 GB/s each way where libcrypto 3.0 has 4.0 (bench/bench_record).
 * Test: unit/test_aead (bytes equal to the other providers'), test_wycheproof,
 * unit/test_session. */
#include <intel-ipsec-mb.h>
#include <pthread.h>
#include <sodium.h>
#include <stdlib.h>
#include <string.h>

#include "kith/assert.h"
#include "src/protocol/session/aead.h"

_Static_assert(KITH_NONCE_BYTES == 12, "the library's length of a nonce");
_Static_assert(KITH_KEY_BYTES == 32, "AES-256");

#define KEY_ALIGN ((size_t)64)
#define KEY_BYTES                                                              \
    ((sizeof(struct gcm_key_data) + KEY_ALIGN - 1) / KEY_ALIGN * KEY_ALIGN)
#define FEATURES                                                               \
    (IMB_FEATURE_AVX512_SKX | IMB_FEATURE_VAES | IMB_FEATURE_VPCLMULQDQ |      \
     IMB_FEATURE_SELF_TEST_PASS)

/* NULL: not for this processor. Written once, before anybody reads it. */
static struct {
    aes_gcm_pre_t expand;
    aes_gcm_enc_dec_t seal, open;
} gcm;
static pthread_once_t is_asked = PTHREAD_ONCE_INIT;

static void ask_library(void)
{
    IMB_MGR *manager = alloc_mb_mgr(0);
    if (!manager)
        return;
    init_mb_mgr_auto(manager, NULL);
    if ((manager->features & FEATURES) == FEATURES) {
        gcm.expand = manager->gcm256_pre;
        gcm.seal = manager->gcm256_enc;
        gcm.open = manager->gcm256_dec;
    }
    free_mb_mgr(manager);
}

static bool ipsec_mb_has(enum kith_suite suite)
{
    return suite == KITH_SUITE_AESGCM &&
           pthread_once(&is_asked, ask_library) == 0 && gcm.seal != NULL;
}

static struct gcm_key_data *key_of(const union kith_aead_state *state)
{
    KITH_ASSERT(state->lanes[0] != NULL);
    return state->lanes[0];
}

static void ipsec_mb_destroy(union kith_aead_state *state)
{
    sodium_memzero(key_of(state), KEY_BYTES);
    free(state->lanes[0]);
    state->lanes[0] = NULL;
}

static enum kith_err ipsec_mb_create(union kith_aead_state *state,
                                     enum kith_suite suite)
{
    if (!ipsec_mb_has(suite))
        return KITH_EUNSUPPORTED;
    memset(state, 0, sizeof *state);
    state->lanes[0] = aligned_alloc(KEY_ALIGN, KEY_BYTES);
    return state->lanes[0] ? KITH_OK : KITH_ENOMEM;
}

static enum kith_err ipsec_mb_key(union kith_aead_state *state,
                                  enum kith_suite suite,
                                  const uint8_t key[KITH_KEY_BYTES],
                                  enum kith_direction direction)
{
    (void)suite;
    (void)direction; /* GCM's keys are the same both ways. */
    gcm.expand(key, key_of(state));
    return KITH_OK;
}

/* The library returns without a word where an argument is wrong. */
static void run(const union kith_aead_state *state, aes_gcm_enc_dec_t call,
                const struct kith_aead_text *text, uint8_t tag[KITH_TAG_BYTES])
{
    struct gcm_context_data context;
    KITH_ASSERT(text->in != NULL && text->out != NULL && text->nonce != NULL);
    KITH_ASSERT(text->ad != NULL || text->ad_bytes == 0);
    KITH_ASSERT(text->bytes <= KITH_RECORD_BYTES_MAX);
    call(key_of(state), &context, text->out, text->in, text->bytes, text->nonce,
         text->ad, text->ad_bytes, tag, KITH_TAG_BYTES);
    sodium_memzero(&context, sizeof context);
}

static enum kith_err ipsec_mb_seal(union kith_aead_state *state,
                                   enum kith_suite suite,
                                   const struct kith_aead_text *text)
{
    (void)suite;
    run(state, gcm.seal, text, text->out + text->bytes);
    return KITH_OK;
}

static enum kith_err ipsec_mb_open(union kith_aead_state *state,
                                   enum kith_suite suite,
                                   const struct kith_aead_text *text)
{
    uint8_t tag[KITH_TAG_BYTES] = {0}, sent[KITH_TAG_BYTES];
    (void)suite;
    memcpy(sent, text->in + text->bytes, sizeof sent);
    run(state, gcm.open, text, tag);
    const bool is_good = sodium_memcmp(tag, sent, sizeof tag) == 0;
    sodium_memzero(tag, sizeof tag); /* What a forger would like to know. */
    if (is_good)
        return KITH_OK;
    memset(text->out, 0, text->bytes);
    return KITH_EAUTH;
}

const struct kith_aead kith_aead_ipsec_mb = {
    .name = "ipsec-mb",
    .suites = KITH_SUITE_BIT(KITH_SUITE_AESGCM),
    .has = ipsec_mb_has,
    .create = ipsec_mb_create,
    .destroy = ipsec_mb_destroy,
    .key = ipsec_mb_key,
    .seal = ipsec_mb_seal,
    .open = ipsec_mb_open,
};
