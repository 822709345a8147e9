/* AEGIS-256X2 (suite 3) is what draft-irtf-cfrg-aegis-aead says, on AES
 * instructions and in the plain C that only tests have.
 *
 * Method: the draft's vectors (crypto/aegis-256x2.json of the test data, cfrg/
 * draft-irtf-cfrg-aegis-aead 35cf57d; their tags stand here, too, for where
 * that is not); the lengths around a block, in place and apart; every flipped
 * bit of key, nonce, ad, text and tag is refused and the target zeroed;
 * implementations agree on random texts (KITH_SEED repeats); sessions with a
 * different one at each end, across a rekey. With an argument it seals what it
 * reads, for tests/long/accept_aegis.sh. */
#include "src/protocol/session/session_state.h"
#include "kith/rng.h"
#include "tests/support/aegis_plain.h"
#include "tests/support/sessions.h"
#include "tests/support/vectors.h"

#define SUITE KITH_SUITE_AEGIS256X2
#define COUNT(a) (sizeof(a) / sizeof *(a))
enum { BYTES = KITH_RECORD_BYTES_MAX - KITH_TAG_BYTES, AD_BYTES = 256 };

static const size_t lengths[] = {0,  1,  31,  32,  33,    63,
                                 64, 65, 127, 128, 65471, 65472};
static uint8_t plain[BYTES], sealed[BYTES + KITH_TAG_BYTES + 1];
static uint8_t other[BYTES + KITH_TAG_BYTES + 1];
static uint8_t key[KITH_KEY_BYTES], nonce[KITH_NONCE_BYTES_MAX], ad[AD_BYTES];

/* The plain one, then what this machine can run. */
static const struct kith_aead *ours[4] = {&aegis_plain};
static size_t ours_count = 1;

/* One text, from the static key, nonce and ad. */
static enum kith_err run(const struct kith_aead *aead,
                         enum kith_direction direction, size_t ad_bytes,
                         const uint8_t *in, uint8_t *out, size_t bytes)
{
    union kith_aead_state state;
    const struct kith_aead_text text = {nonce, ad, ad_bytes, in, out, bytes, 0};
    assert_int_equal(KITH_OK, aead->create(&state, SUITE));
    assert_int_equal(KITH_OK, aead->key(&state, SUITE, key, direction));
    const enum kith_err err = direction == KITH_SEAL
                                  ? aead->seal(&state, SUITE, &text)
                                  : aead->open(&state, SUITE, &text);
    aead->destroy(&state);
    assert_true(sodium_is_zero(state.bytes, sizeof state));
    return err;
}

static void count_up(uint8_t *bytes, size_t size, uint8_t from)
{
    for (size_t i = 0; i < size; i++)
        bytes[i] = (uint8_t)(from + i);
}

/* Key, nonce and associated data of the draft's vectors. */
static void be_the_draft(void)
{
    count_up(key, sizeof key, 0);
    count_up(nonce, sizeof nonce, 0x10);
    memcpy(ad, "\1\2\3\4\1\2\3\4", 8);
}

/* For a clone that has no test data. */
static void test_tags_of_the_draft(void **state)
{
    static const uint8_t of_nothing[KITH_TAG_BYTES] = {
        0x62, 0xcd, 0xba, 0xb0, 0x84, 0xc8, 0x3d, 0xac,
        0xdb, 0x94, 0x5b, 0xb4, 0x46, 0xf0, 0x49, 0xc8};
    static const uint8_t of_text[KITH_TAG_BYTES] = {
        0x63, 0x5d, 0x39, 0x18, 0x28, 0x52, 0x0b, 0xf1,
        0x51, 0x27, 0x63, 0xf0, 0xc8, 0xf5, 0xcd, 0xbd};
    (void)state;
    be_the_draft();
    for (size_t i = 0; i < 120; i++)
        plain[i] = (uint8_t)(4 + i % 4);
    for (size_t p = 0; p < ours_count; p++) {
        printf("  %s\n", ours[p]->name);
        run(ours[p], KITH_SEAL, 0, plain, sealed, 0);
        assert_memory_equal(of_nothing, sealed, KITH_TAG_BYTES);
        run(ours[p], KITH_SEAL, 8, plain, sealed, 120);
        assert_memory_equal(of_text, sealed + 120, KITH_TAG_BYTES);
    }
}

static void check_vector(const json_t *vector)
{
    const struct field k = field(vector, "key"), n = field(vector, "nonce");
    const struct field a = field(vector, "ad"), msg = field(vector, "msg");
    const struct field ct = field(vector, "ct"), tag = field(vector, "tag128");
    uint8_t expected[FIELD_MAX + KITH_TAG_BYTES], out[sizeof expected];
    assert_true(k.size == sizeof key && n.size == sizeof nonce);
    assert_true(a.size <= sizeof ad && ct.size == msg.size);
    assert_int_equal(KITH_TAG_BYTES, tag.size);
    memcpy(key, k.bytes, sizeof key);
    memcpy(nonce, n.bytes, sizeof nonce);
    memcpy(ad, a.bytes, a.size);
    memcpy(expected, ct.bytes, ct.size);
    memcpy(expected + ct.size, tag.bytes, tag.size);
    for (size_t p = 0; p < ours_count; p++) {
        run(ours[p], KITH_SEAL, a.size, msg.bytes, out, msg.size);
        assert_memory_equal(expected, out, msg.size + KITH_TAG_BYTES);
        assert_int_equal(
            KITH_OK, run(ours[p], KITH_OPEN, a.size, expected, out, msg.size));
        assert_memory_equal(msg.bytes, out, msg.size);
    }
}

static void check_initial_state(const json_t *vector)
{
    struct aegis_plain s;
    be_the_draft();
    aegis_plain_init(&s, key, nonce);
    for (int k = 0; k < 12; k++) {
        char name[32];
        snprintf(name, sizeof name, "V[%d,%d]", k / 2, k % 2);
        const struct field v = field(vector, name);
        assert_int_equal(16, v.size);
        assert_memory_equal(v.bytes, s.v[k / 2][k % 2], 16);
    }
}

static void test_vectors(void **state)
{
    (void)state;
    FILE *file = vectors_open("aegis-256x2.json");
    if (!file) {
        printf("  not run: no crypto/ under $KITH_TESTDATA, nor %s\n", folder);
        skip();
    }
    json_t *root = json_loadf(file, 0, NULL);
    const json_t *vector;
    size_t i;
    int states = 0, texts = 0;
    fclose(file);
    assert_true(json_is_array(root));
    json_array_foreach(root, i, vector)
    {
        if (json_object_get(vector, "tag128")) {
            check_vector(vector);
            texts++;
        } else if (json_object_get(vector, "V[0,0]")) {
            check_initial_state(vector);
            states++;
        }
    }
    assert_int_equal(1, states);
    assert_int_equal(2, texts);
    json_decref(root);
}

static void check_length(const struct kith_aead *aead, size_t n,
                         size_t ad_bytes, const uint8_t *expected)
{
    memset(other, 0x5a, sizeof other);
    run(aead, KITH_SEAL, ad_bytes, plain, other, n);
    assert_memory_equal(expected, other, n + KITH_TAG_BYTES);
    assert_int_equal(0x5a, other[n + KITH_TAG_BYTES]);
    memset(other, 0x5a, sizeof other);
    assert_int_equal(KITH_OK,
                     run(aead, KITH_OPEN, ad_bytes, expected, other, n));
    assert_memory_equal(plain, other, n);
    assert_int_equal(0x5a, other[n]);
    run(aead, KITH_SEAL, ad_bytes, other, other, n);
    assert_memory_equal(expected, other, n + KITH_TAG_BYTES);
    assert_int_equal(KITH_OK, run(aead, KITH_OPEN, ad_bytes, other, other, n));
    assert_memory_equal(plain, other, n);
    /* In place too, what is not authentic leaves zeros. */
    memcpy(other, expected, n + KITH_TAG_BYTES);
    other[n + KITH_TAG_BYTES - 1] ^= 0x80;
    assert_int_equal(KITH_EAUTH,
                     run(aead, KITH_OPEN, ad_bytes, other, other, n));
    assert_true(sodium_is_zero(other, n));
}

static void test_lengths(void **state)
{
    (void)state;
    for (size_t i = 0; i < COUNT(lengths); i++)
        for (size_t a = 0; a < 10; a++) {
            const size_t n = lengths[i], ad_bytes = lengths[a];
            if (n > 1000 && a % 4)
                continue;
            run(ours[0], KITH_SEAL, ad_bytes, plain, sealed, n);
            for (size_t p = n > 1000; p < ours_count; p++)
                check_length(ours[p], n, ad_bytes, sealed);
        }
    run(ours[0], KITH_SEAL, 7, plain, sealed, BYTES);
    check_length(ours[ours_count - 1], BYTES, 7, sealed);
}

/* Opening must fail with each bit of bytes (size) turned over. */
static void refuse(const struct kith_aead *aead, uint8_t *bytes, size_t size,
                   size_t n)
{
    for (size_t bit = 0; bit < 8 * size; bit++) {
        bytes[bit / 8] ^= (uint8_t)(1u << bit % 8);
        memset(other, 0xaa, n);
        assert_int_equal(KITH_EAUTH,
                         run(aead, KITH_OPEN, 40, sealed, other, n));
        assert_true(sodium_is_zero(other, n));
        bytes[bit / 8] ^= (uint8_t)(1u << bit % 8);
    }
}

static void test_flips_are_refused(void **state)
{
    enum { N = 77 };
    (void)state;
    for (size_t p = 0; p < ours_count; p++) {
        run(ours[p], KITH_SEAL, 40, plain, sealed, N);
        refuse(ours[p], key, sizeof key, N);
        refuse(ours[p], nonce, sizeof nonce, N);
        refuse(ours[p], ad, 40, N);
        refuse(ours[p], sealed, N + KITH_TAG_BYTES, N);
        assert_int_equal(KITH_EAUTH,
                         run(ours[p], KITH_OPEN, 39, sealed, other, N));
        assert_int_equal(KITH_EAUTH,
                         run(ours[p], KITH_OPEN, 40, sealed, other, N - 1));
        assert_int_equal(KITH_OK,
                         run(ours[p], KITH_OPEN, 40, sealed, other, N));
        assert_memory_equal(plain, other, N);
    }
}

static void test_implementations_agree(void **state)
{
    enum { CASES = 300, LONGEST = 1500 };
    const char *text = getenv("KITH_SEED");
    const uint64_t seed = text ? strtoull(text, NULL, 10) : 256;
    struct kith_rng rng;
    (void)state;
    printf("  KITH_SEED=%llu\n", (unsigned long long)seed);
    kith_rng_init(&rng, seed, KITH_STREAM_TEST, 0);
    for (int i = 0; i < CASES; i++) {
        const size_t n = kith_rng_below(&rng, LONGEST);
        const size_t ad_bytes = kith_rng_below(&rng, AD_BYTES);
        const size_t at = kith_rng_below(&rng, 64);
        kith_rng_fill(&rng, key, sizeof key);
        kith_rng_fill(&rng, nonce, sizeof nonce);
        kith_rng_fill(&rng, ad, ad_bytes);
        kith_rng_fill(&rng, plain + at, n);
        run(ours[0], KITH_SEAL, ad_bytes, plain + at, sealed, n);
        for (size_t p = 1; p < ours_count; p++) {
            run(ours[p], KITH_SEAL, ad_bytes, plain + at, other + at, n);
            assert_memory_equal(sealed, other + at, n + KITH_TAG_BYTES);
            assert_int_equal(
                KITH_OK, run(ours[p], KITH_OPEN, ad_bytes, sealed, other, n));
            assert_memory_equal(plain + at, other, n);
        }
    }
}

/* Never the plain one, nor for a suite that is not ours. */
static void test_choice(void **state)
{
    union kith_aead_state memory;
    (void)state;
    for (size_t p = 0; p < ours_count; p++) {
        assert_true(ours[p]->has(SUITE));
        assert_false(ours[p]->has(KITH_SUITE_AESGCM));
        assert_int_equal(KITH_EUNSUPPORTED,
                         ours[p]->create(&memory, KITH_SUITE_CHACHAPOLY));
    }
    assert_ptr_equal(ours_count > 1 ? ours[1] : NULL, kith_aead_best(SUITE));
    assert_false(kith_aead_has(&kith_aead_sodium, SUITE));
    assert_string_equal("Noise_XX_25519_AEGIS256X2_BLAKE2b",
                        kith_suite_name(SUITE));
}

/* docs/protocol.md: the counter's place in the nonce, and Rekey. */
static void test_nonce_and_rekey(void **state)
{
    static const uint8_t zeros[KITH_KEY_BYTES];
    uint8_t next[KITH_KEY_BYTES];
    struct kith_cipher cipher;
    const struct kith_aead *last = ours[ours_count - 1];
    (void)state;
    be_the_draft();
    assert_int_equal(KITH_OK,
                     kith_cipher_create(&cipher, last, SUITE, KITH_SEAL));
    assert_int_equal(KITH_OK, kith_cipher_key(&cipher, key, 0x010203));
    assert_int_equal(KITH_OK,
                     kith_cipher_seal(&cipher, ad, 8, plain, 100, other));
    memset(nonce, 0, sizeof nonce);
    memcpy(nonce + 4, "\3\2\1", 3);
    run(ours[0], KITH_SEAL, 8, plain, sealed, 100);
    assert_memory_equal(sealed, other, 100 + KITH_TAG_BYTES);

    memset(nonce + 4, 0xff, 8);
    run(ours[0], KITH_SEAL, 0, zeros, sealed, sizeof zeros);
    memcpy(next, sealed, sizeof next);
    assert_int_equal(KITH_OK, kith_cipher_rekey(&cipher));
    assert_memory_equal(next, cipher.key, sizeof next);
    kith_cipher_destroy(&cipher);
}

/* A burst from end `from`; true once its keys have changed. */
static bool send_burst(struct sessions *pair, int from, size_t bytes)
{
    static uint8_t wire[2 * KITH_BURST_BYTES], inbox[KITH_BURST_BYTES];
    struct sessions_end *a = &pair->ends[from], *b = &pair->ends[1 - from];
    uint8_t before[KITH_KEY_BYTES];
    size_t written = 0;
    memcpy(before, a->session->send.cipher.key, sizeof before);
    b->sink = inbox;
    assert_int_equal(KITH_OK,
                     kith_session_seal_burst(
                         a->session,
                         &(const struct kith_session_burst){1, 0, plain, bytes},
                         wire, sizeof wire, &written));
    assert_int_equal(KITH_OK, sessions_feed(b, wire, written));
    assert_int_equal(KITH_SESSION_BURST, b->last.kind);
    assert_memory_equal(plain, inbox, bytes);
    assert_memory_equal(a->session->send.cipher.key,
                        b->session->receive.cipher.key, KITH_KEY_BYTES);
    return memcmp(before, a->session->send.cipher.key, sizeof before) != 0;
}

static void check_session(const struct kith_aead *one,
                          const struct kith_aead *two)
{
    struct sessions pair;
    sessions_setup(&pair, SUITE, one, 1);
    pair.ends[1].config.aead = two;
    assert_true(sessions_start(&pair));
    assert_true(sessions_connect(&pair));
    for (int from = 0; from < 2; from++) {
        assert_false(send_burst(&pair, from, 1));
        assert_false(send_burst(&pair, from, 65472));
        pair.ends[from].session->send.since_rekey = KITH_REKEY_RECORDS - 3;
        pair.ends[1 - from].session->receive.since_rekey =
            KITH_REKEY_RECORDS - 3;
        assert_false(send_burst(&pair, from, 33));
        assert_true(send_burst(&pair, from, 65471));
        assert_false(send_burst(&pair, from, 1000));
    }
    sessions_close(&pair);
}

static void test_sessions(void **state)
{
    (void)state;
    for (size_t one = 0; one < ours_count; one++)
        for (size_t two = 0; two < ours_count; two++)
            check_session(ours[one], ours[two]);
}

static int prepare(void **state)
{
    static const uint8_t seed[randombytes_SEEDBYTES] = {3};
    (void)state;
    if (sodium_init() < 0)
        return -1;
    randombytes_buf_deterministic(plain, sizeof plain, seed);
    be_the_draft();
    for (size_t i = 0; kith_aeads[i]; i++)
        if (kith_aead_has(kith_aeads[i], SUITE) && ours_count < COUNT(ours))
            ours[ours_count++] = kith_aeads[i];
    if (ours_count == 1)
        printf("  this machine has no AES instructions: plain C only\n");
    return 0;
}

/* Reads (u32 ad, u32 text, key, nonce, ad, text), each sealed and written by
 * one implementation after the other, until there is nothing more. */
static int seal_what_comes(void)
{
    uint32_t sizes[2];
    while (fread(sizes, sizeof sizes, 1, stdin) == 1) {
        if (sizes[0] > AD_BYTES || sizes[1] > BYTES ||
            fread(key, sizeof key, 1, stdin) != 1 ||
            fread(nonce, sizeof nonce, 1, stdin) != 1 ||
            fread(ad, 1, sizes[0], stdin) != sizes[0] ||
            fread(plain, 1, sizes[1], stdin) != sizes[1])
            return 1;
        for (size_t p = 0; p < ours_count; p++)
            if (run(ours[p], KITH_SEAL, sizes[0], plain, sealed, sizes[1]) !=
                    KITH_OK ||
                fwrite(sealed, sizes[1] + KITH_TAG_BYTES, 1, stdout) != 1)
                return 1;
    }
    return ferror(stdin) || fflush(stdout) != 0;
}

int main(int argc, char **argv)
{
    (void)argv;
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_tags_of_the_draft),
        cmocka_unit_test(test_vectors),
        cmocka_unit_test(test_lengths),
        cmocka_unit_test(test_flips_are_refused),
        cmocka_unit_test(test_implementations_agree),
        cmocka_unit_test(test_choice),
        cmocka_unit_test(test_nonce_and_rekey),
        cmocka_unit_test(test_sessions),
    };
    if (argc > 1) {
        if (prepare(NULL) != 0)
            return 1;
        fprintf(stderr, "%zu\n", ours_count);
        return seal_what_comes();
    }
    return cmocka_run_group_tests(tests, prepare, NULL);
}
