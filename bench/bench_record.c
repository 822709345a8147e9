/* The record layer against the AEAD calls that it is made of.
 *
 * One sample seals and opens bursts of 16 full bulk records: bare (the
 * library's own calls on an expanded key, a nonce per record, nothing else),
 * and through a session (announcement, framing, nonces, counting, opening into
 * the sink). Same payload, same buffers, same distance between records; the two
 * alternate, each round in the other order. Target: 0.95 of the bare calls, for
 * every provider and suite.
 *
 * Our own AEGIS-256X2, and ipsec-mb, whose provider is one call, are their own
 * ceiling there. Beside AEGIS stands AES-256-GCM of libcrypto, else of
 * libsodium, bare, in the same rounds. Target: 3 times that with VAES, as fast
 * with AES-NI. */
#include "bench/bench.h"

#include <sodium.h>
#ifdef KITH_HAVE_LIBCRYPTO
#include <openssl/evp.h>
#endif

#include "kith/assert.h"
#include "src/protocol/session/aead.h"
#include "tests/support/sessions.h"

#define ROUNDS 31
#define BURSTS 4 /* in one sample */
#define STRIDE (2u + KITH_BULK_BYTES + KITH_TAG_BYTES)
#define WIRE_BYTES (KITH_BURST_RECORDS * STRIDE + 64u)

static uint8_t *vector, *inbox, *wire;
static const uint8_t key[KITH_KEY_BYTES] = {7};
static uint8_t nonce[KITH_NONCE_BYTES_MAX];

/* One record by the library alone. */
struct bare {
    void (*seal)(const uint8_t *plain, uint8_t *sealed);
    bool (*open)(const uint8_t *sealed, uint8_t *plain);
};

static crypto_aead_aes256gcm_state aes;

static void aes_seal(const uint8_t *plain, uint8_t *sealed)
{
    crypto_aead_aes256gcm_encrypt_afternm(sealed, NULL, plain, KITH_BULK_BYTES,
                                          NULL, 0, NULL, nonce, &aes);
}

static bool aes_open(const uint8_t *sealed, uint8_t *plain)
{
    return crypto_aead_aes256gcm_decrypt_afternm(
               plain, NULL, NULL, sealed, KITH_BULK_BYTES + KITH_TAG_BYTES,
               NULL, 0, nonce, &aes) == 0;
}

static void chacha_seal(const uint8_t *plain, uint8_t *sealed)
{
    crypto_aead_chacha20poly1305_ietf_encrypt(
        sealed, NULL, plain, KITH_BULK_BYTES, NULL, 0, NULL, nonce, key);
}

static bool chacha_open(const uint8_t *sealed, uint8_t *plain)
{
    return crypto_aead_chacha20poly1305_ietf_decrypt(
               plain, NULL, NULL, sealed, KITH_BULK_BYTES + KITH_TAG_BYTES,
               NULL, 0, nonce, key) == 0;
}

#ifdef KITH_HAVE_LIBCRYPTO
static EVP_CIPHER_CTX *sealer, *opener;

static void evp_prepare(enum kith_suite suite)
{
    const EVP_CIPHER *cipher = suite == KITH_SUITE_AESGCM
                                   ? EVP_aes_256_gcm()
                                   : EVP_chacha20_poly1305();
    EVP_CIPHER_CTX_free(sealer);
    EVP_CIPHER_CTX_free(opener);
    sealer = EVP_CIPHER_CTX_new();
    opener = EVP_CIPHER_CTX_new();
    KITH_ASSERT(EVP_EncryptInit_ex(sealer, cipher, NULL, key, nonce) == 1);
    KITH_ASSERT(EVP_DecryptInit_ex(opener, cipher, NULL, key, nonce) == 1);
}

static void evp_seal(const uint8_t *plain, uint8_t *sealed)
{
    int n = 0;
    EVP_EncryptInit_ex(sealer, NULL, NULL, NULL, nonce);
    EVP_EncryptUpdate(sealer, sealed, &n, plain, KITH_BULK_BYTES);
    EVP_EncryptFinal_ex(sealer, sealed + KITH_BULK_BYTES, &n);
    EVP_CIPHER_CTX_ctrl(sealer, EVP_CTRL_AEAD_GET_TAG, KITH_TAG_BYTES,
                        sealed + KITH_BULK_BYTES);
}

static bool evp_open(const uint8_t *sealed, uint8_t *plain)
{
    int n = 0;
    uint8_t tag[KITH_TAG_BYTES];
    memcpy(tag, sealed + KITH_BULK_BYTES, sizeof tag);
    EVP_DecryptInit_ex(opener, NULL, NULL, NULL, nonce);
    EVP_DecryptUpdate(opener, plain, &n, sealed, KITH_BULK_BYTES);
    EVP_CIPHER_CTX_ctrl(opener, EVP_CTRL_AEAD_SET_TAG, KITH_TAG_BYTES, tag);
    return EVP_DecryptFinal_ex(opener, plain + n, &n) == 1;
}
#endif

/* AEGIS and ipsec-mb, by the provider's own calls. */
static const struct kith_aead *own;
static union kith_aead_state own_state;
static enum kith_suite own_suite;

static void own_prepare(const struct kith_aead *aead, enum kith_suite suite)
{
    own = aead;
    own_suite = suite;
    KITH_ASSERT(own->create(&own_state, suite) == KITH_OK);
    KITH_ASSERT(own->key(&own_state, suite, key, KITH_SEAL) == KITH_OK);
}

static void own_seal(const uint8_t *plain, uint8_t *sealed)
{
    const struct kith_aead_text text = {
        .nonce = nonce, .in = plain, .out = sealed, .bytes = KITH_BULK_BYTES};
    KITH_ASSERT(own->seal(&own_state, own_suite, &text) == KITH_OK);
}

static bool own_open(const uint8_t *sealed, uint8_t *plain)
{
    const struct kith_aead_text text = {
        .nonce = nonce, .in = sealed, .out = plain, .bytes = KITH_BULK_BYTES};
    return own->open(&own_state, own_suite, &text) == KITH_OK;
}

static struct bare bare_of(const struct kith_aead *aead, enum kith_suite suite)
{
#ifdef KITH_HAVE_LIBCRYPTO
    if (aead == &kith_aead_libcrypto) {
        evp_prepare(suite);
        return (struct bare){evp_seal, evp_open};
    }
#endif
    if (aead != &kith_aead_sodium) {
        own_prepare(aead, suite);
        return (struct bare){own_seal, own_open};
    }
    if (suite == KITH_SUITE_CHACHAPOLY)
        return (struct bare){chacha_seal, chacha_open};
    crypto_aead_aes256gcm_beforenm(&aes, key);
    return (struct bare){aes_seal, aes_open};
}

/* Seconds of sealing and of opening. */
struct cost {
    double seal, open;
};

static struct cost run_bare(const struct bare *bare)
{
    struct cost cost = {0, 0};
    for (int burst = 0; burst < BURSTS; burst++) {
        const double start = bench_cpu();
        for (size_t i = 0; i < KITH_BURST_RECORDS; i++) {
            nonce[11] = (uint8_t)i;
            bare->seal(vector + i * KITH_BULK_BYTES, wire + i * STRIDE + 2);
        }
        const double middle = bench_cpu();
        for (size_t i = 0; i < KITH_BURST_RECORDS; i++) {
            nonce[11] = (uint8_t)i;
            KITH_ASSERT(
                bare->open(wire + i * STRIDE + 2, inbox + i * KITH_BULK_BYTES));
        }
        cost.seal += middle - start;
        cost.open += bench_cpu() - middle;
    }
    return cost;
}

static struct cost run_session(struct sessions *pair)
{
    struct cost cost = {0, 0};
    for (int burst = 0; burst < BURSTS; burst++) {
        size_t n = 0;
        const double start = bench_cpu();
        KITH_ASSERT(kith_session_seal_burst(pair->ends[0].session,
                                            &(const struct kith_session_burst){
                                                1, 0, vector, KITH_BURST_BYTES},
                                            wire, WIRE_BYTES, &n) == KITH_OK);
        const double middle = bench_cpu();
        KITH_ASSERT(sessions_feed(&pair->ends[1], wire, n) == KITH_OK);
        cost.seal += middle - start;
        cost.open += bench_cpu() - middle;
    }
    KITH_ASSERT(pair->ends[1].last.kind == KITH_SESSION_BURST);
    return cost;
}

static double rate(double seconds)
{
    return 1e-9 * BURSTS * KITH_BURST_BYTES / seconds;
}

static void compare(const struct kith_aead *aead, enum kith_suite suite)
{
    double bare_seal[ROUNDS], bare_open[ROUNDS], bare_both[ROUNDS];
    double our_seal[ROUNDS], our_open[ROUNDS], our_both[ROUNDS];
    struct sessions pair;
    const struct bare bare = bare_of(aead, suite);
    sessions_setup(&pair, suite, aead, 1);
    KITH_ASSERT(sessions_start(&pair) && sessions_connect(&pair));
    pair.ends[1].sink = inbox;
    run_bare(&bare);
    run_session(&pair);
    for (int r = 0; r < ROUNDS; r++) {
        struct cost theirs = {0, 0}, ours = {0, 0};
        for (int turn = 0; turn < 2; turn++)
            if ((turn + r) % 2)
                ours = run_session(&pair);
            else
                theirs = run_bare(&bare);
        bare_seal[r] = rate(theirs.seal), bare_open[r] = rate(theirs.open);
        our_seal[r] = rate(ours.seal), our_open[r] = rate(ours.open);
        bare_both[r] = rate(theirs.seal + theirs.open);
        our_both[r] = rate(ours.seal + ours.open);
    }
    sessions_close(&pair);
    printf("# %s, %s\n", kith_suite_name(suite), kith_aead_name(aead));
    bench_print("bare seal", bare_seal, ROUNDS, "GB/s");
    bench_print("record layer seal", our_seal, ROUNDS, "GB/s");
    bench_print("bare open", bare_open, ROUNDS, "GB/s");
    bench_print("record layer open", our_open, ROUNDS, "GB/s");
    bench_ratio("record layer : bare, seal and open", our_both, bare_both,
                ROUNDS, 0.95);
}

static const struct kith_aead *library_of_gcm(void)
{
#ifdef KITH_HAVE_LIBCRYPTO
    return &kith_aead_libcrypto;
#else
    return &kith_aead_sodium;
#endif
}

/* AEGIS of that provider beside a library's AES-256-GCM, both bare. */
static void beside_gcm(const struct kith_aead *aead)
{
    const bool is_wide = strcmp(kith_aead_name(aead), "kith-vaes") == 0;
    const double target = is_wide ? 3 : 1;
    double seal[ROUNDS], open[ROUNDS], gcm_seal[ROUNDS], gcm_open[ROUNDS];
    const struct kith_aead *const library = library_of_gcm();
    const struct bare gcm = bare_of(library, KITH_SUITE_AESGCM);
    const struct bare aegis = bare_of(aead, KITH_SUITE_AEGIS256X2);
    run_bare(&gcm);
    run_bare(&aegis);
    for (int r = 0; r < ROUNDS; r++) {
        struct cost theirs = {0, 0}, ours = {0, 0};
        for (int turn = 0; turn < 2; turn++)
            if ((turn + r) % 2)
                ours = run_bare(&aegis);
            else
                theirs = run_bare(&gcm);
        seal[r] = rate(ours.seal), open[r] = rate(ours.open);
        gcm_seal[r] = rate(theirs.seal), gcm_open[r] = rate(theirs.open);
    }
    printf("# AEGIS-256X2, %s, beside AES-256-GCM, %s\n", kith_aead_name(aead),
           kith_aead_name(library));
    bench_print("AES-256-GCM seal", gcm_seal, ROUNDS, "GB/s");
    bench_print("AES-256-GCM open", gcm_open, ROUNDS, "GB/s");
    bench_print("AEGIS-256X2 seal", seal, ROUNDS, "GB/s");
    bench_print("AEGIS-256X2 open", open, ROUNDS, "GB/s");
    bench_ratio("AEGIS-256X2 : AES-256-GCM, seal", seal, gcm_seal, ROUNDS,
                target);
    bench_ratio("AEGIS-256X2 : AES-256-GCM, open", open, gcm_open, ROUNDS,
                target);
}

int main(void)
{
    static const enum kith_suite suites[] = {
        KITH_SUITE_AESGCM, KITH_SUITE_CHACHAPOLY, KITH_SUITE_AEGIS256X2};
    KITH_ASSERT(sodium_init() >= 0);
    bench_pin(0);
    vector = bench_alloc(KITH_BURST_BYTES);
    inbox = bench_alloc(KITH_BURST_BYTES);
    wire = bench_alloc(WIRE_BYTES);
    randombytes_buf_deterministic(vector, KITH_BURST_BYTES, key);
    for (size_t s = 0; s < sizeof suites / sizeof *suites; s++)
        for (size_t i = 0; kith_aeads[i]; i++)
            if (kith_aead_has(kith_aeads[i], suites[s]))
                compare(kith_aeads[i], suites[s]);
    for (size_t i = 0; kith_aeads[i]; i++)
        if (kith_aead_has(kith_aeads[i], KITH_SUITE_AEGIS256X2) &&
            kith_aead_has(library_of_gcm(), KITH_SUITE_AESGCM))
            beside_gcm(kith_aeads[i]);
    return 0;
}
