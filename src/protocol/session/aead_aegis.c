/* Our own AEGIS-256X2 (draft-irtf-cfrg-aegis-aead) on AES instructions: two
 * providers, of which has() says where one can run.
 *
 * The state holds the plain key: a record begins with key and nonce together,
 * so there is nothing to expand. Nothing here allocates, and nothing here is
 * compiled for more than the build asks: it runs where the kernels cannot. */
#include <sodium.h>
#include <string.h>

#include "kith/assert.h"
#include "src/protocol/session/aegis.h"

#ifdef KITH_AEGIS_X86
#include <cpuid.h>

_Static_assert(KITH_NONCE_BYTES_MAX == 32 && KITH_KEY_BYTES == 32 &&
                   KITH_TAG_BYTES == 16,
               "AEGIS-256X2 as the draft has it, with its shorter tag");

static bool aesni_has(enum kith_suite suite)
{
    return suite == KITH_SUITE_AEGIS256X2 && __builtin_cpu_supports("aes");
}

/* The builtin's AVX2 says that the system keeps wide registers, too; VAES is a
 * name that clang 14 does not know there. */
static bool vaes_has(enum kith_suite suite)
{
    enum { VAES = 1 << 9 };
    unsigned a, b, c = 0, d;
    return aesni_has(suite) && __builtin_cpu_supports("avx2") &&
           __get_cpuid_count(7, 0, &a, &b, &c, &d) && c & VAES;
}

static enum kith_err create(union kith_aead_state *state, bool has)
{
    memset(state, 0, sizeof *state);
    return has ? KITH_OK : KITH_EUNSUPPORTED;
}

static enum kith_err aesni_create(union kith_aead_state *state,
                                  enum kith_suite suite)
{
    return create(state, aesni_has(suite));
}

static enum kith_err vaes_create(union kith_aead_state *state,
                                 enum kith_suite suite)
{
    return create(state, vaes_has(suite));
}

static void aegis_destroy(union kith_aead_state *state)
{
    sodium_memzero(state, sizeof *state);
}

static enum kith_err aegis_key(union kith_aead_state *state,
                               enum kith_suite suite,
                               const uint8_t key[KITH_KEY_BYTES],
                               enum kith_direction direction)
{
    KITH_ASSERT(suite == KITH_SUITE_AEGIS256X2);
    KITH_ASSERT(direction == KITH_SEAL || direction == KITH_OPEN);
    memcpy(state->bytes, key, KITH_KEY_BYTES);
    return KITH_OK;
}

/* What create() let through, within the bounds of a record. */
static void check(enum kith_suite suite, const struct kith_aead_text *text)
{
    KITH_ASSERT(suite == KITH_SUITE_AEGIS256X2);
    KITH_ASSERT(text->bytes <= KITH_RECORD_BYTES_MAX);
    KITH_ASSERT(text->ad_bytes <= KITH_RECORD_BYTES_MAX);
}

static enum kith_err aesni_seal(union kith_aead_state *state,
                                enum kith_suite suite,
                                const struct kith_aead_text *text)
{
    check(suite, text);
    kith_aegis_aesni_seal(state->bytes, text);
    return KITH_OK;
}

static enum kith_err vaes_seal(union kith_aead_state *state,
                               enum kith_suite suite,
                               const struct kith_aead_text *text)
{
    check(suite, text);
    kith_aegis_vaes_seal(state->bytes, text);
    return KITH_OK;
}

/* The kernels write plain text before the tag is known. */
static enum kith_err opened(bool is_good, const struct kith_aead_text *text)
{
    if (is_good)
        return KITH_OK;
    memset(text->out, 0, text->bytes);
    return KITH_EAUTH;
}

static enum kith_err aesni_open(union kith_aead_state *state,
                                enum kith_suite suite,
                                const struct kith_aead_text *text)
{
    check(suite, text);
    return opened(kith_aegis_aesni_open(state->bytes, text), text);
}

static enum kith_err vaes_open(union kith_aead_state *state,
                               enum kith_suite suite,
                               const struct kith_aead_text *text)
{
    check(suite, text);
    return opened(kith_aegis_vaes_open(state->bytes, text), text);
}

const struct kith_aead kith_aead_aegis_aesni = {
    .name = "kith-aesni",
    .suites = KITH_SUITE_BIT(KITH_SUITE_AEGIS256X2),
    .has = aesni_has,
    .create = aesni_create,
    .destroy = aegis_destroy,
    .key = aegis_key,
    .seal = aesni_seal,
    .open = aesni_open,
};

const struct kith_aead kith_aead_aegis_vaes = {
    .name = "kith-vaes",
    .suites = KITH_SUITE_BIT(KITH_SUITE_AEGIS256X2),
    .has = vaes_has,
    .create = vaes_create,
    .destroy = aegis_destroy,
    .key = aegis_key,
    .seal = vaes_seal,
    .open = vaes_open,
};
#endif
