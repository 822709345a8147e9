/* What kith's cryptography answers to Wycheproof's cases, on every provider.
 *
 * Method: crypto/wycheproof-*.json of the test data ($KITH_TESTDATA, else
 * ../shared/data beside the source tree; C2SP/wycheproof dac1dd4). A valid AEAD
 * case must seal to its bytes and open again, an invalid one be refused with
 * the target zeroed; signatures must be accepted as an authority's or refused;
 * X25519 must give the shared secret, and a handshake be refused where that is
 * zero. Cases of sizes that cannot occur here are counted. SKIP without data.
 */
#include "src/protocol/session/certificate.h"
#include "src/protocol/session/noise.h"
#include "tests/support/vectors.h"

static json_t *load(const char *name)
{
    char path[100];
    snprintf(path, sizeof path, "wycheproof-%s_test.json", name);
    FILE *file = vectors_open(path);
    if (!file)
        fail_msg("no %s in %s", path, folder);
    json_error_t error;
    json_t *root = json_loadf(file, 0, &error);
    fclose(file);
    if (!root)
        fail_msg("%s/%s: %s", folder, path, error.text);
    return root;
}

static bool is_result(const json_t *test, const char *result)
{
    return strcmp(json_string_value(json_object_get(test, "result")), result) ==
           0;
}

static long long number(const json_t *object, const char *key)
{
    return (long long)json_integer_value(json_object_get(object, key));
}

static void check_aead(const struct kith_aead *aead, enum kith_suite suite,
                       const json_t *test)
{
    const struct field key = field(test, "key"), iv = field(test, "iv");
    const struct field ad = field(test, "aad"), msg = field(test, "msg");
    const struct field tag = field(test, "tag");
    struct field ct = field(test, "ct");
    uint8_t out[FIELD_MAX + KITH_TAG_BYTES];
    union kith_aead_state state;
    struct kith_aead_text text = {iv.bytes, ad.bytes, ad.size, msg.bytes,
                                  out,      msg.size, 0};
    const bool valid = is_result(test, "valid");
    assert_int_equal(ct.size, msg.size);
    memcpy(ct.bytes + ct.size, tag.bytes, tag.size);
    assert_int_equal(KITH_OK, aead->create(&state, suite));
    assert_int_equal(KITH_OK, aead->key(&state, suite, key.bytes, KITH_SEAL));
    assert_int_equal(KITH_OK, aead->seal(&state, suite, &text));
    const bool same = memcmp(out, ct.bytes, ct.size + KITH_TAG_BYTES) == 0;
    assert_int_equal(valid, same);
    text.in = ct.bytes;
    memset(out, 0xff, sizeof out);
    assert_int_equal(KITH_OK, aead->key(&state, suite, key.bytes, KITH_OPEN));
    assert_int_equal(valid ? KITH_OK : KITH_EAUTH,
                     aead->open(&state, suite, &text));
    if (valid)
        assert_memory_equal(out, msg.bytes, msg.size);
    else
        assert_true(sodium_is_zero(out, msg.size));
    aead->destroy(&state);
}

/* The sizes of our suites: 256-bit keys, 96-bit nonces, 128-bit tags. */
static bool is_ours(const json_t *group)
{
    return number(group, "keySize") == 256 && number(group, "ivSize") == 96 &&
           number(group, "tagSize") == 128;
}

static void run_aead(const char *name, enum kith_suite suite, int expected)
{
    json_t *root = load(name);
    const json_t *group, *test;
    size_t i, k;
    for (size_t p = 0; kith_aeads[p]; p++) {
        int ran = 0, others = 0;
        if (!kith_aead_has(kith_aeads[p], suite)) {
            printf("  %s has no %s\n", kith_aead_name(kith_aeads[p]), name);
            continue;
        }
        json_array_foreach(json_object_get(root, "testGroups"), i, group)
            json_array_foreach(json_object_get(group, "tests"), k, test)
        {
            if (is_ours(group))
                check_aead(kith_aeads[p], suite, test);
            ran += is_ours(group);
            others += !is_ours(group);
        }
        printf("  %s, %s: %d as stated, %d of other sizes\n", name,
               kith_aead_name(kith_aeads[p]), ran, others);
        assert_int_equal(expected, ran);
    }
    json_decref(root);
}

static void test_aes_gcm(void **state)
{
    (void)state;
    run_aead("aes_gcm", KITH_SUITE_AESGCM, 66);
}

static void test_chacha(void **state)
{
    (void)state;
    run_aead("chacha20_poly1305", KITH_SUITE_CHACHAPOLY, 316);
}

/* A certificate's signature has 64 bytes: no other length can be asked. */
static void test_ed25519(void **state)
{
    (void)state;
    json_t *root = load("ed25519");
    const json_t *group, *test;
    int accepted = 0, refused = 0, other = 0;
    size_t i, k;
    json_array_foreach(json_object_get(root, "testGroups"), i, group)
    {
        struct kith_trust trust = {.authority_count = 1};
        const struct field pk =
            field(json_object_get(group, "publicKey"), "pk");
        assert_int_equal(sizeof trust.authority[0], pk.size);
        memcpy(trust.authority[0], pk.bytes, pk.size);
        json_array_foreach(json_object_get(group, "tests"), k, test)
        {
            const struct field msg = field(test, "msg");
            const struct field sig = field(test, "sig");
            const bool valid = is_result(test, "valid");
            if (sig.size != KITH_SIGNATURE_BYTES) {
                assert_false(valid);
                other++;
                continue;
            }
            assert_int_equal(valid, kith_trust_signed(&trust, msg.bytes,
                                                      msg.size, sig.bytes));
            accepted += valid;
            refused += !valid;
        }
    }
    printf("  ed25519: %d accepted, %d refused, %d of other lengths\n",
           accepted, refused, other);
    assert_int_equal(151, accepted + refused + other);
    json_decref(root);
}

/* The answer of a responder with that ephemeral secret to a message 1 with that
 * ephemeral key. */
static enum kith_err shake(const struct field *secret,
                           const struct field *public)
{
    struct kith_cipher send, receive;
    uint8_t key[KITH_KEY_BYTES], out[256];
    size_t n;
    assert_int_equal(0, crypto_scalarmult_base(key, secret->bytes));
    assert_int_equal(KITH_OK, kith_cipher_create(
                                  &send, kith_aead_best(KITH_SUITE_CHACHAPOLY),
                                  KITH_SUITE_CHACHAPOLY, KITH_SEAL));
    assert_int_equal(KITH_OK,
                     kith_cipher_create(&receive,
                                        kith_aead_best(KITH_SUITE_CHACHAPOLY),
                                        KITH_SUITE_CHACHAPOLY, KITH_OPEN));
    struct kith_noise noise;
    kith_noise_init(&noise, &(struct kith_noise_options){
                                .protocol = "Noise_XX_25519_ChaChaPoly_BLAKE2b",
                                .digest = KITH_DIGEST_BLAKE2B,
                                .prologue = key,
                                .secret = secret->bytes,
                                .key = key,
                                .ephemeral = secret->bytes,
                                .send = &send,
                                .receive = &receive,
                            });
    assert_int_equal(KITH_OK, kith_noise_read(&noise, public->bytes,
                                              KITH_KEY_BYTES, out, &n));
    const enum kith_err err = kith_noise_write(&noise, key, 0, out, &n);
    kith_cipher_destroy(&send);
    kith_cipher_destroy(&receive);
    return err;
}

static void test_x25519(void **state)
{
    (void)state;
    json_t *root = load("x25519");
    const json_t *group, *test;
    int computed = 0, refused = 0;
    size_t i, k;
    json_array_foreach(json_object_get(root, "testGroups"), i, group)
        json_array_foreach(json_object_get(group, "tests"), k, test)
    {
        const struct field secret = field(test, "private");
        const struct field public = field(test, "public");
        const struct field shared = field(test, "shared");
        const bool zero = sodium_is_zero(shared.bytes, shared.size);
        uint8_t ours[KITH_KEY_BYTES];
        const int bad = crypto_scalarmult(ours, secret.bytes, public.bytes);
        assert_int_equal(zero, bad != 0);
        if (!zero)
            assert_memory_equal(ours, shared.bytes, sizeof ours);
        assert_int_equal(zero ? KITH_EINVAL : KITH_OK, shake(&secret, &public));
        computed += !zero;
        refused += zero;
    }
    printf("  x25519: %d computed, %d refused (zero)\n", computed, refused);
    assert_int_equal(518, computed + refused);
    json_decref(root);
}

int main(void)
{
    if (sodium_init() < 0)
        return 1;
    FILE *file = vectors_open("wycheproof-aes_gcm_test.json");
    if (!file) {
        printf("SKIP: no crypto/ under $KITH_TESTDATA, nor %s\n", folder);
        return 77;
    }
    fclose(file);
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_aes_gcm),
        cmocka_unit_test(test_chacha),
        cmocka_unit_test(test_ed25519),
        cmocka_unit_test(test_x25519),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
