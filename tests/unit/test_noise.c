/* Noise XX against vectors of other implementations, on every AEAD provider.
 *
 * Method: each vector fixes both sides' keys and payloads; we play both sides,
 * compare every message byte for byte, open it at the other side, and compare
 * the handshake hash. Sources: tests/vectors/bundled.json (see
 * make_vectors.py), and every .json under noise/ of the test data
 * ($KITH_TESTDATA, else ../shared/data beside the source tree), where a folder
 * that yields nothing is a failure and a missing one is said and skipped. */
#include <dirent.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>
#include <sodium.h>

#include "src/protocol/session/noise.h"

#define FILE_BYTES_MAX (8u << 20)
#define MESSAGES_MAX 16
#define FIELD_MAX 4096

struct vector {
    char name[96];
    char prologue[2][FIELD_MAX], secret[2][FIELD_MAX], ephemeral[2][FIELD_MAX];
    char hash[FIELD_MAX];
    char payload[MESSAGES_MAX][FIELD_MAX], sealed[MESSAGES_MAX][FIELD_MAX];
    bool rekey[MESSAGES_MAX];
    int count;
};

struct tally {
    int ran, runs, skipped;
};

static size_t unhex(const char *text, uint8_t *bytes)
{
    size_t n = 0;
    assert_int_equal(0, sodium_hex2bin(bytes, FIELD_MAX / 2, text, strlen(text),
                                       NULL, &n, NULL));
    return n;
}

static enum kith_suite suite_of(const char *name)
{
    return strstr(name, "AESGCM") ? KITH_SUITE_AESGCM : KITH_SUITE_CHACHAPOLY;
}

/* side 0 is the initiator */
struct side {
    struct kith_noise noise;
    struct kith_cipher send, receive;
    uint8_t secret[FIELD_MAX / 2], key[32], ephemeral[FIELD_MAX / 2];
    uint8_t prologue[FIELD_MAX / 2];
};

static void side_start(struct side *side, const struct vector *v, int i,
                       const struct kith_aead *aead)
{
    const enum kith_suite suite = suite_of(v->name);
    assert_int_equal(32, unhex(v->secret[i], side->secret));
    assert_int_equal(32, unhex(v->ephemeral[i], side->ephemeral));
    assert_int_equal(0, crypto_scalarmult_base(side->key, side->secret));
    assert_int_equal(KITH_OK,
                     kith_cipher_create(&side->send, aead, suite, KITH_SEAL));
    assert_int_equal(
        KITH_OK, kith_cipher_create(&side->receive, aead, suite, KITH_OPEN));
    const struct kith_noise_options options = {
        .initiator = i == 0,
        .protocol = v->name,
        .digest = strstr(v->name, "SHA512") ? KITH_DIGEST_SHA512
                                            : KITH_DIGEST_BLAKE2B,
        .prologue = side->prologue,
        .prologue_bytes = unhex(v->prologue[i], side->prologue),
        .secret = side->secret,
        .key = side->key,
        .ephemeral = side->ephemeral,
        .send = &side->send,
        .receive = &side->receive,
    };
    kith_noise_init(&side->noise, &options);
}

static void run_message(struct side *from, struct side *to, bool handshake,
                        const uint8_t *payload, size_t payload_bytes,
                        const uint8_t *sealed, size_t sealed_bytes)
{
    uint8_t out[FIELD_MAX], back[FIELD_MAX];
    size_t n = 0;
    if (handshake) {
        assert_int_equal(KITH_OK, kith_noise_write(&from->noise, payload,
                                                   payload_bytes, out, &n));
        assert_int_equal(n, sealed_bytes);
        assert_memory_equal(out, sealed, n);
        assert_int_equal(KITH_OK,
                         kith_noise_read(&to->noise, out, n, back, &n));
        assert_int_equal(n, payload_bytes);
    } else {
        assert_int_equal(KITH_OK,
                         kith_cipher_seal(&from->send, NULL, 0, payload,
                                          payload_bytes, out));
        assert_int_equal(payload_bytes + KITH_TAG_BYTES, sealed_bytes);
        assert_memory_equal(out, sealed, sealed_bytes);
        assert_int_equal(KITH_OK, kith_cipher_open(&to->receive, NULL, 0, out,
                                                   payload_bytes, back));
    }
    assert_memory_equal(back, payload, payload_bytes);
}

static void run_vector(const struct vector *v, const struct kith_aead *aead)
{
    static struct side sides[2];
    uint8_t payload[FIELD_MAX / 2], sealed[FIELD_MAX / 2];
    side_start(&sides[0], v, 0, aead);
    side_start(&sides[1], v, 1, aead);
    assert_true(v->count > 3);
    for (int i = 0; i < v->count; i++) {
        struct side *from = &sides[i % 2], *to = &sides[1 - i % 2];
        const size_t n = unhex(v->payload[i], payload);
        const size_t m = unhex(v->sealed[i], sealed);
        if (v->rekey[i]) {
            assert_int_equal(KITH_OK, kith_cipher_rekey(&from->send));
            assert_int_equal(KITH_OK, kith_cipher_rekey(&to->receive));
        }
        run_message(from, to, i < 3, payload, n, sealed, m);
        if (i == 2) {
            assert_int_equal(KITH_OK, kith_noise_split(&sides[0].noise));
            assert_int_equal(KITH_OK, kith_noise_split(&sides[1].noise));
        }
    }
    if (v->hash[0]) {
        assert_int_equal(KITH_HASH_BYTES, unhex(v->hash, payload));
        for (int i = 0; i < 2; i++)
            assert_memory_equal(sides[i].noise.hash, payload, KITH_HASH_BYTES);
    }
    for (int i = 0; i < 2; i++) {
        kith_cipher_destroy(&sides[i].send);
        kith_cipher_destroy(&sides[i].receive);
    }
}

static bool is_ours(const char *name)
{
    static const char *const ours[] = {
        "Noise_XX_25519_AESGCM_BLAKE2b", "Noise_XX_25519_ChaChaPoly_BLAKE2b",
        "Noise_XX_25519_AESGCM_SHA512", "Noise_XX_25519_ChaChaPoly_SHA512"};
    for (size_t i = 0; i < sizeof ours / sizeof *ours; i++)
        if (strcmp(name, ours[i]) == 0)
            return true;
    return false;
}

static void vector_done(const struct vector *v, struct tally *tally)
{
    if (!is_ours(v->name)) {
        printf("  skipped %s: not plain XX of ours\n", v->name);
        tally->skipped++;
        return;
    }
    int runs = 0;
    for (size_t i = 0; kith_aeads[i]; i++) {
        if (!kith_aead_has(kith_aeads[i], suite_of(v->name))) {
            printf("  %s has no cipher for %s\n", kith_aead_name(kith_aeads[i]),
                   v->name);
            continue;
        }
        run_vector(v, kith_aeads[i]);
        runs++;
    }
    tally->ran += runs > 0;
    tally->runs += runs;
}

/* Where the value of `key` belongs; NULL for keys we do not read. */
static char *field_of(struct vector *v, const char *key)
{
    const int last = v->count - 1;
    if (strcmp(key, "protocol_name") == 0)
        return v->name;
    if (strcmp(key, "handshake_hash") == 0)
        return v->hash;
    if (last >= 0 && strcmp(key, "payload") == 0)
        return v->payload[last];
    if (last >= 0 && strcmp(key, "ciphertext") == 0)
        return v->sealed[last];
    const int i = strncmp(key, "resp_", 5) == 0 ? 1 : 0;
    if (strcmp(key + 4, "_prologue") == 0)
        return v->prologue[i];
    if (strcmp(key + 4, "_static") == 0)
        return v->secret[i];
    if (strcmp(key + 4, "_ephemeral") == 0)
        return v->ephemeral[i];
    return NULL;
}

static void put_field(struct vector *v, const char *key, const char *text,
                      size_t length)
{
    if (strcmp(key, "rekey") == 0 && v->count > 0)
        v->rekey[v->count - 1] = true;
    char *field = strlen(key) > 4 ? field_of(v, key) : NULL;
    if (!field)
        return;
    assert_true(length < (field == v->name ? sizeof v->name : FIELD_MAX));
    memcpy(field, text, length);
    field[length] = '\0';
}

/* Enough of JSON for vectors: objects and arrays nest, strings hold no
 * escapes, "messages" opens the only inner objects. */
static void read_vectors(char *text, struct tally *tally)
{
    static struct vector v;
    char key[64] = "";
    bool in_messages = false;
    for (char *at = text; *at; at++) {
        if (*at == '{' && in_messages) {
            assert_true(v.count < MESSAGES_MAX);
            v.count++;
        } else if (*at == '{') {
            memset(&v, 0, sizeof v);
        } else if (*at == ']') {
            in_messages = false;
        } else if (*at == '}' && !in_messages && v.name[0]) {
            vector_done(&v, tally);
            memset(&v, 0, sizeof v);
        } else if (*at == '"') {
            char *end = strchr(at + 1, '"');
            assert_non_null(end);
            const char *next = end + 1 + strspn(end + 1, " \t\r\n");
            const size_t length = (size_t)(end - at - 1);
            if (*next == ':') {
                snprintf(key, sizeof key, "%.*s", (int)length, at + 1);
                in_messages = in_messages || strcmp(key, "messages") == 0;
            } else {
                put_field(&v, key, at + 1, length);
            }
            at = end;
        }
    }
}

static void read_file(const char *path, struct tally *tally)
{
    FILE *file = fopen(path, "rb");
    if (!file)
        fail_msg("cannot open %s", path);
    char *text = malloc(FILE_BYTES_MAX + 1);
    assert_non_null(text);
    const size_t n = fread(text, 1, FILE_BYTES_MAX, file);
    text[n] = '\0';
    fclose(file);
    printf("%s\n", path);
    read_vectors(text, tally);
    free(text);
}

static const char *source_folder(void)
{
    const char *folder = getenv("srcdir");
    return folder && *folder ? folder : ".";
}

static void test_bundled(void **state)
{
    (void)state;
    struct tally tally = {0, 0, 0};
    char path[1024];
    snprintf(path, sizeof path, "%s/tests/vectors/bundled.json",
             source_folder());
    read_file(path, &tally);
    printf("bundled: %d vectors ran, %d runs over all providers\n", tally.ran,
           tally.runs);
    assert_true(tally.ran >= 4);
}

static DIR *open_folder(char *path, size_t size)
{
    const char *data = getenv("KITH_TESTDATA");
    DIR *folder = NULL;
    if (data && *data) {
        snprintf(path, size, "%s/noise", data);
        folder = opendir(path);
    }
    if (!folder) {
        snprintf(path, size, "%s/../shared/data/noise", source_folder());
        folder = opendir(path);
    }
    return folder;
}

static void test_external(void **state)
{
    (void)state;
    struct tally tally = {0, 0, 0};
    char path[1024], file[2048];
    DIR *folder = open_folder(path, sizeof path);
    if (!folder) {
        printf("SKIP: no noise/ under $KITH_TESTDATA, nor %s\n", path);
        skip();
        return;
    }
    for (const struct dirent *entry; (entry = readdir(folder));) {
        const size_t length = strlen(entry->d_name);
        if (length < 5 || strcmp(entry->d_name + length - 5, ".json") != 0)
            continue;
        snprintf(file, sizeof file, "%s/%s", path, entry->d_name);
        read_file(file, &tally);
    }
    closedir(folder);
    printf("%s: %d vectors ran, %d runs over all providers, %d skipped\n", path,
           tally.ran, tally.runs, tally.skipped);
    assert_true(tally.ran > 0);
}

int main(void)
{
    if (sodium_init() < 0)
        return 1;
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_bundled),
        cmocka_unit_test(test_external),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
