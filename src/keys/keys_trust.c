/* What a peer's folder says about others: authorities or an allow-list, and the
 * revocation list. */
#include <sodium.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "src/keys/keys_file.h"

static int compare_prints(const void *a, const void *b)
{
    return memcmp(a, b, KITH_FINGERPRINT_BYTES);
}

static enum kith_err read_authorities(const char *path, const char *text,
                                      struct kith_trust *trust, char *error)
{
    static const char word[] = "authority ";
    for (const char *line = kith_key_file_next_line(text); line;
         line = kith_key_file_next_line(line)) {
        size_t n = 0;
        if (trust->authority_count == 2)
            return kith_key_file_fail(
                error, KITH_ELIMIT,
                "%s names more than two authorities: a roll has "
                "the old one and the new one",
                path);
        uint8_t *key = trust->authority[trust->authority_count];
        if (strncmp(line, word, sizeof word - 1) != 0 ||
            !kith_key_file_unbase64(line + sizeof word - 1, key, 32, &n) ||
            n != 32)
            return kith_key_file_fail(
                error, KITH_EPARSE,
                "%s: expected \"authority KEY\", KEY being 32 "
                "bytes of base64, found \"%.40s\"",
                path, line);
        trust->authority_count++;
    }
    if (trust->authority_count == 0)
        return kith_key_file_fail(
            error, KITH_EPARSE,
            "%s names no authority: it needs a line \"authority "
            "KEY\"",
            path);
    return KITH_OK;
}

static enum kith_err read_allowed(const char *path, const char *text,
                                  struct kith_trust *trust, char *error)
{
    uint32_t count = 0;
    uint8_t(*list)[KITH_FINGERPRINT_BYTES] =
        calloc(KITH_ALLOWED_MAX, KITH_FINGERPRINT_BYTES);
    if (!list)
        return kith_key_file_fail(error, KITH_ENOMEM, "no memory for %s", path);
    trust->allowed = (const uint8_t(*)[KITH_FINGERPRINT_BYTES])list;
    for (const char *line = kith_key_file_next_line(text); line;
         line = kith_key_file_next_line(line)) {
        size_t n = 0;
        if (count == KITH_ALLOWED_MAX)
            return kith_key_file_fail(
                error, KITH_ELIMIT,
                "%s has more than %u keys: use an authority", path,
                KITH_ALLOWED_MAX);
        if (!kith_key_file_unbase64(line, list[count], KITH_FINGERPRINT_BYTES,
                                    &n) ||
            n != KITH_FINGERPRINT_BYTES)
            return kith_key_file_fail(
                error, KITH_EPARSE,
                "%s: expected a fingerprint of 32 bytes in "
                "base64, found \"%.50s\"",
                path, line);
        count++;
    }
    qsort(list, count, KITH_FINGERPRINT_BYTES, compare_prints);
    trust->allowed_count = count;
    return KITH_OK;
}

static bool named(const char *path, const char *name)
{
    const char *slash = strrchr(path, '/');
    return strcmp(slash ? slash + 1 : path, name) == 0;
}

enum kith_err kith_key_file_parse_trust(const char *path, const char *text,
                                        struct kith_trust *trust, char *error)
{
    size_t n = 0;
    const size_t head = strlen(KEYS_CLUSTER);
    if (!kith_key_file_is(text, KEYS_CLUSTER) || text[head] != ' ' ||
        !kith_key_file_unbase64(text + head + 1, trust->cluster,
                                KITH_CLUSTER_BYTES, &n) ||
        n != KITH_CLUSTER_BYTES)
        return kith_key_file_fail(error, KITH_EPARSE,
                                  "%s: the first line must be \"" KEYS_CLUSTER
                                  " ID\", ID being 32 bytes of base64",
                                  path);
    const char *line = kith_key_file_next_line(text);
    const bool authorities =
        line ? strncmp(line, "authority", 9) == 0 : named(path, "ca.pub");
    return authorities ? read_authorities(path, text, trust, error)
                       : read_allowed(path, text, trust, error);
}

enum kith_err kith_key_file_read_trust(const char *folder,
                                       struct kith_trust *trust, char *error)
{
    char path[KITH_PATH_BYTES_MAX], *text = NULL;
    enum kith_err err = kith_key_file_path(path, folder, "ca.pub", error);
    if (err == KITH_OK && !kith_key_file_exists(path))
        err = kith_key_file_path(path, folder, "allow", error);
    if (err != KITH_OK)
        return err;
    if (!kith_key_file_exists(path))
        return kith_key_file_fail(
            error, KITH_ENOENT,
            "%s has neither ca.pub nor allow, so nobody could be "
            "trusted: copy ca.pub from the authority, or make an "
            "allow-list with kith keys allow",
            folder);
    err = kith_key_file_read(path, false, &text, error);
    if (err == KITH_OK)
        err = kith_key_file_parse_trust(path, text, trust, error);
    if (err == KITH_OK && trust->authority_count + trust->allowed_count == 0)
        err = kith_key_file_fail(error, KITH_EPARSE,
                                 "%s allows nobody: kith keys allow adds a key",
                                 path);
    kith_key_file_free_text(text);
    return err;
}

/* The one long field of a list's text, decoded. */
static enum kith_err decode_crl(const char *path, const char *text,
                                uint8_t **bytes, size_t *size, char *error)
{
    enum kith_err err = KITH_OK;
    const size_t value_bytes = strlen(text) + 1;
    char *value = malloc(value_bytes);
    *bytes = malloc(KITH_CRL_BYTES_MAX);
    struct kith_crl crl;
    if (!value || !*bytes)
        err = kith_key_file_fail(error, KITH_ENOMEM, "no memory for %s", path);
    if (err == KITH_OK && !kith_key_file_is(text, KEYS_CRL))
        err = kith_key_file_fail(error, KITH_EPARSE,
                                 "%s is not a revocation list", path);
    if (err == KITH_OK)
        err = kith_key_file_field(path, text, "crl", value, value_bytes, error);
    if (err == KITH_OK &&
        (!kith_key_file_unbase64(value, *bytes, KITH_CRL_BYTES_MAX, size) ||
         kith_crl_decode(*bytes, *size, &crl) != KITH_OK))
        err = kith_key_file_fail(
            error, KITH_EPARSE,
            "%s is damaged: copy the list again from the authority", path);
    free(value);
    if (err != KITH_OK) {
        free(*bytes);
        *bytes = NULL;
    }
    return err;
}

enum kith_err kith_key_file_read_crl(const char *path, uint8_t **bytes,
                                     size_t *size, char *error)
{
    char *text = NULL;
    *bytes = NULL;
    *size = 0;
    if (!kith_key_file_exists(path))
        return KITH_OK;
    enum kith_err err = kith_key_file_read(path, false, &text, error);
    if (err == KITH_OK)
        err = decode_crl(path, text, bytes, size, error);
    kith_key_file_free_text(text);
    return err;
}

enum kith_err kith_key_file_write_crl(const char *path, const uint8_t *bytes,
                                      size_t size, char *error)
{
    static const char head[] = KEYS_CRL "\ncrl: ";
    const size_t base64 =
        sodium_base64_encoded_len(size, sodium_base64_VARIANT_ORIGINAL);
    char *text = malloc(sizeof head + base64 + 1);
    if (!text)
        return kith_key_file_fail(error, KITH_ENOMEM, "no memory for %s", path);
    memcpy(text, head, sizeof head);
    sodium_bin2base64(text + sizeof head - 1, base64, bytes, size,
                      sodium_base64_VARIANT_ORIGINAL);
    const size_t at = strlen(text);
    memcpy(text + at, "\n", 2);
    const enum kith_err err = kith_key_file_replace(path, text, error);
    free(text);
    return err;
}

enum kith_err kith_key_file_adopt_crl(struct kith_trust *trust,
                                      const struct kith_crl *crl, char *error)
{
    const size_t bytes = (size_t)crl->count * KITH_FINGERPRINT_BYTES;
    uint8_t *list = malloc(bytes ? bytes : 1);
    if (!list)
        return kith_key_file_fail(error, KITH_ENOMEM,
                                  "no memory for %u revocations",
                                  (unsigned)crl->count);
    if (bytes)
        memcpy(list, crl->fingerprints, bytes);
    free((void *)(uintptr_t)trust->revoked);
    trust->revoked = (const uint8_t(*)[KITH_FINGERPRINT_BYTES])(void *)list;
    trust->revoked_count = crl->count;
    trust->revoked_sequence = crl->sequence;
    return KITH_OK;
}

enum kith_err
kith_key_file_read_certificate(const char *path, struct kith_identity *identity,
                               struct kith_certificate *certificate,
                               char *error)
{
    char *text = NULL, value[KEYS_BASE64_BYTES(KITH_CERTIFICATE_BYTES_MAX)];
    enum kith_err err = kith_key_file_read(path, false, &text, error);
    if (err == KITH_OK && !kith_key_file_is(text, KEYS_CERTIFICATE))
        err = kith_key_file_fail(error, KITH_EPARSE, "%s is not a certificate",
                                 path);
    if (err == KITH_OK)
        err = kith_key_file_field(path, text, "certificate", value,
                                  sizeof value, error);
    if (err == KITH_OK &&
        (!kith_key_file_unbase64(value, identity->certificate,
                                 KITH_CERTIFICATE_BYTES_MAX,
                                 &identity->certificate_bytes) ||
         kith_certificate_decode(identity->certificate,
                                 identity->certificate_bytes,
                                 certificate) != KITH_OK))
        err = kith_key_file_fail(
            error, KITH_EPARSE,
            "%s is damaged: copy it again, or certify again", path);
    kith_key_file_free_text(text);
    return err;
}

enum kith_err kith_keys_read_crl(const char *folder, uint8_t **bytes,
                                 size_t *size, char *error)
{
    char path[KITH_PATH_BYTES_MAX];
    *bytes = NULL;
    *size = 0;
    const enum kith_err err = kith_key_file_path(path, folder, "crl", error);
    return err == KITH_OK ? kith_key_file_read_crl(path, bytes, size, error)
                          : err;
}

enum kith_err kith_keys_accept_crl(const char *folder, const uint8_t *bytes,
                                   size_t size, struct kith_trust *trust,
                                   char *error)
{
    char path[KITH_PATH_BYTES_MAX];
    struct kith_crl crl;
    enum kith_err err = kith_crl_verify(trust, bytes, size, &crl);
    if (err != KITH_OK)
        return kith_key_file_fail(error, err,
                                  "a peer's revocation list is refused: %s",
                                  kith_err_text(err));
    err = kith_key_file_path(path, folder, "crl", error);
    if (err == KITH_OK)
        err = kith_key_file_write_crl(path, bytes, size, error);
    return err == KITH_OK ? kith_key_file_adopt_crl(trust, &crl, error) : err;
}
