/* `kith keys`: authorities, node keys, certificates, revocations, and loading
 * what a peer needs. The formats are in kith/keys.h. Randomness is libsodium's;
 * the days of a certificate come from the machine's clock. */
#include <sodium.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "src/keys/keys_file.h"

#define DAY_S INT64_C(86400)
#define DAYS_MAX 90u
#define ROLES_ALL                                                              \
    ((uint32_t)KITH_ROLE_TRAIN | (uint32_t)KITH_ROLE_OBSERVE |                 \
     (uint32_t)KITH_ROLE_SEED)
#define B64_32 KEYS_BASE64_BYTES(32)
#define B64_64 KEYS_BASE64_BYTES(64)
#define TEXT_BYTES 1024u

struct authority {
    uint8_t cluster[KITH_CLUSTER_BYTES], key[32], secret[64];
};

static void base64(char *text, size_t text_bytes, const uint8_t *bytes,
                   size_t size)
{
    sodium_bin2base64(text, text_bytes, bytes, size,
                      sodium_base64_VARIANT_ORIGINAL);
}

static enum kith_err start(char *error)
{
    error[0] = '\0';
    if (sodium_init() < 0)
        return kith_key_file_fail(
            error, KITH_EDEVICE,
            "libsodium cannot start: no source of randomness");
    return KITH_OK;
}

/* A secret file and a public one in a folder. */
struct key_pair {
    char secret_path[KITH_PATH_BYTES_MAX], public_path[KITH_PATH_BYTES_MAX];
    char secret[TEXT_BYTES], public[TEXT_BYTES];
};

/* The folder is made, and both paths, before a key is drawn. */
static enum kith_err pair_open(struct key_pair *pair, const char *folder,
                               const char *secret, const char *public,
                               char *error)
{
    enum kith_err err = kith_key_file_make_folder(folder, error);
    if (err == KITH_OK)
        err = kith_key_file_path(pair->secret_path, folder, secret, error);
    if (err == KITH_OK)
        err = kith_key_file_path(pair->public_path, folder, public, error);
    return err;
}

/* Writes both files, or neither: the secret first. Wipes the pair. */
static enum kith_err pair_write(struct key_pair *pair, char *error)
{
    enum kith_err err =
        kith_key_file_write_new(pair->secret_path, pair->secret, true, error);
    if (err == KITH_OK) {
        err = kith_key_file_write_new(pair->public_path, pair->public, false,
                                      error);
        if (err != KITH_OK)
            unlink(pair->secret_path);
    }
    sodium_memzero(pair, sizeof *pair);
    return err;
}

enum kith_err kith_keys_new_authority(const char *folder, char *error)
{
    char cluster64[B64_32], key64[B64_32], secret64[B64_64];
    struct key_pair pair;
    struct authority a;
    enum kith_err err = start(error);
    if (err == KITH_OK)
        err = pair_open(&pair, folder, "ca.key", "ca.pub", error);
    if (err != KITH_OK)
        return err;
    crypto_sign_keypair(a.key, a.secret);
    randombytes_buf(a.cluster, sizeof a.cluster);
    base64(cluster64, sizeof cluster64, a.cluster, sizeof a.cluster);
    base64(key64, sizeof key64, a.key, sizeof a.key);
    base64(secret64, sizeof secret64, a.secret, sizeof a.secret);
    snprintf(pair.secret, sizeof pair.secret,
             KEYS_AUTHORITY "\ncluster: %s\nkey: %s\nsecret: %s\n", cluster64,
             key64, secret64);
    snprintf(pair.public, sizeof pair.public,
             KEYS_CLUSTER " %s\nauthority %s\n", cluster64, key64);
    err = pair_write(&pair, error);
    sodium_memzero(&a, sizeof a);
    sodium_memzero(secret64, sizeof secret64);
    return err;
}

static bool name_is_safe(const char *name)
{
    static const char letters[] = "abcdefghijklmnopqrstuvwxyz"
                                  "ABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789._-";
    const size_t n = strlen(name);
    return n >= 1 && n < KITH_NAME_MAX && strspn(name, letters) == n;
}

static enum kith_err check_name(const char *name, char *error)
{
    if (name_is_safe(name))
        return KITH_OK;
    return kith_key_file_fail(
        error, KITH_EINVAL,
        "the name \"%.70s\" will not do: 1 to %u letters, digits, "
        "dots, dashes, underscores",
        name, KITH_NAME_MAX - 1);
}

enum kith_err kith_keys_new_node(const char *folder, const char *name,
                                 char *error)
{
    char key64[B64_32], secret64[B64_32];
    struct key_pair pair;
    uint8_t key[KITH_KEY_BYTES], secret[KITH_KEY_BYTES];
    enum kith_err err = start(error);
    if (err == KITH_OK)
        err = check_name(name, error);
    if (err == KITH_OK)
        err = pair_open(&pair, folder, "node.key", "node.request", error);
    if (err != KITH_OK)
        return err;
    crypto_box_keypair(key, secret);
    base64(key64, sizeof key64, key, sizeof key);
    base64(secret64, sizeof secret64, secret, sizeof secret);
    snprintf(pair.secret, sizeof pair.secret,
             KEYS_NODE "\nname: %s\ncreated: %lld\nkey: %s\nsecret: %s\n", name,
             (long long)time(NULL), key64, secret64);
    snprintf(pair.public, sizeof pair.public,
             KEYS_REQUEST "\nname: %s\nkey: %s\n", name, key64);
    err = pair_write(&pair, error);
    sodium_memzero(secret, sizeof secret);
    sodium_memzero(secret64, sizeof secret64);
    return err;
}

static enum kith_err read_authority(const char *folder, struct authority *a,
                                    char *error)
{
    char path[KITH_PATH_BYTES_MAX], *text = NULL;
    enum kith_err err = kith_key_file_path(path, folder, "ca.key", error);
    if (err == KITH_OK)
        err = kith_key_file_read(path, true, &text, error);
    if (err == KITH_ENOENT)
        err = kith_key_file_fail(
            error, KITH_ENOENT,
            "%.300s has no ca.key: give the authority's folder, or "
            "make an authority first: kith keys new DIR "
            "--authority",
            folder);
    if (err == KITH_OK && !kith_key_file_is(text, KEYS_AUTHORITY))
        err = kith_key_file_fail(error, KITH_EPARSE,
                                 "%s is not an authority's key", path);
    if (err == KITH_OK)
        err = kith_key_file_bytes(path, text, "cluster", a->cluster,
                                  sizeof a->cluster, error);
    if (err == KITH_OK)
        err = kith_key_file_bytes(path, text, "key", a->key, sizeof a->key,
                                  error);
    if (err == KITH_OK)
        err = kith_key_file_bytes(path, text, "secret", a->secret,
                                  sizeof a->secret, error);
    /* An Ed25519 secret ends in its public key. */
    if (err == KITH_OK && memcmp(a->secret + 32, a->key, sizeof a->key) != 0)
        err = kith_key_file_fail(
            error, KITH_EPARSE,
            "%s is damaged: its key and secret do not belong "
            "together",
            path);
    kith_key_file_free_text(text);
    return err;
}

static enum kith_err read_request(const char *path, char name[KITH_NAME_MAX],
                                  uint8_t key[KITH_KEY_BYTES], char *error)
{
    char *text = NULL;
    enum kith_err err = kith_key_file_read(path, false, &text, error);
    if (err == KITH_OK && !kith_key_file_is(text, KEYS_REQUEST))
        err = kith_key_file_fail(
            error, KITH_EPARSE,
            "%s is not a request: kith keys new writes one as "
            "node.request",
            path);
    if (err == KITH_OK)
        err =
            kith_key_file_field(path, text, "name", name, KITH_NAME_MAX, error);
    if (err == KITH_OK)
        err = check_name(name, error);
    if (err == KITH_OK)
        err =
            kith_key_file_bytes(path, text, "key", key, KITH_KEY_BYTES, error);
    kith_key_file_free_text(text);
    return err;
}

static enum kith_err write_certificate(const char *path,
                                       const struct kith_certificate *c,
                                       const struct authority *a, char *error)
{
    uint8_t bytes[KITH_CERTIFICATE_BYTES_MAX];
    char text[TEXT_BYTES], value[KEYS_BASE64_BYTES(KITH_CERTIFICATE_BYTES_MAX)];
    const size_t n = kith_certificate_sign(c, a->secret, bytes);
    base64(value, sizeof value, bytes, n);
    snprintf(text, sizeof text, KEYS_CERTIFICATE "\ncertificate: %s\n", value);
    return kith_key_file_write_new(path, text, false, error);
}

enum kith_err kith_keys_certify(const char *authority_folder,
                                const char *request, const char *out,
                                unsigned days, uint32_t roles, char *error)
{
    struct authority a;
    struct kith_certificate c = {.roles = roles};
    enum kith_err err = start(error);
    if (err == KITH_OK && (days < 1 || days > DAYS_MAX))
        err = kith_key_file_fail(error, KITH_EINVAL,
                                 "a certificate lives 1 to %u days, not %u",
                                 DAYS_MAX, days);
    if (err == KITH_OK && (roles == 0 || (roles & ~ROLES_ALL) != 0))
        err = kith_key_file_fail(
            error, KITH_EINVAL,
            "roles are train, observe and seed, at least one");
    if (err == KITH_OK)
        err = read_authority(authority_folder, &a, error);
    if (err == KITH_OK)
        err = read_request(request, c.name, c.key, error);
    if (err == KITH_OK) {
        memcpy(c.cluster, a.cluster, sizeof c.cluster);
        randombytes_buf(&c.serial, sizeof c.serial);
        c.not_before_s = (int64_t)time(NULL);
        c.not_after_s = c.not_before_s + (int64_t)days * DAY_S;
        err = write_certificate(out, &c, &a, error);
    }
    sodium_memzero(&a, sizeof a);
    return err;
}

/* The list with one more fingerprint, in order. */
static enum kith_err list_insert(const struct kith_crl *old,
                                 const uint8_t print[KITH_FINGERPRINT_BYTES],
                                 uint8_t (*list)[KITH_FINGERPRINT_BYTES],
                                 char *error)
{
    uint32_t at = 0;
    if (old->count >= KITH_REVOKED_MAX)
        return kith_key_file_fail(
            error, KITH_ELIMIT,
            "the list is full (%u): start a new authority and let "
            "the old certificates expire",
            KITH_REVOKED_MAX);
    while (at < old->count &&
           memcmp(old->fingerprints[at], print, KITH_FINGERPRINT_BYTES) < 0)
        at++;
    if (at < old->count &&
        memcmp(old->fingerprints[at], print, KITH_FINGERPRINT_BYTES) == 0)
        return kith_key_file_fail(error, KITH_EEXIST, "it is revoked already");
    if (at)
        memcpy(list, old->fingerprints, (size_t)at * KITH_FINGERPRINT_BYTES);
    memcpy(list[at], print, KITH_FINGERPRINT_BYTES);
    if (at < old->count)
        memcpy(list[at + 1], old->fingerprints[at],
               (size_t)(old->count - at) * KITH_FINGERPRINT_BYTES);
    return KITH_OK;
}

static enum kith_err extend_crl(const char *path, const struct authority *a,
                                const uint8_t print[KITH_FINGERPRINT_BYTES],
                                char *error)
{
    uint8_t *old_bytes = NULL, *bytes = malloc(KITH_CRL_BYTES_MAX);
    uint8_t(*list)[KITH_FINGERPRINT_BYTES] =
        calloc(KITH_REVOKED_MAX, KITH_FINGERPRINT_BYTES);
    size_t old_size = 0;
    struct kith_trust trust = {.authority_count = 1};
    struct kith_crl crl = {.count = 0};
    enum kith_err err = KITH_OK;
    memcpy(trust.cluster, a->cluster, sizeof trust.cluster);
    memcpy(trust.authority[0], a->key, sizeof a->key);
    if (!bytes || !list)
        err = kith_key_file_fail(error, KITH_ENOMEM, "no memory for %s", path);
    if (err == KITH_OK)
        err = kith_key_file_read_crl(path, &old_bytes, &old_size, error);
    if (err == KITH_OK && old_bytes &&
        kith_crl_verify(&trust, old_bytes, old_size, &crl) != KITH_OK)
        err = kith_key_file_fail(
            error, KITH_EAUTH,
            "%s was not signed by this authority: move it away", path);
    if (err == KITH_OK)
        err = list_insert(&crl, print, list, error);
    if (err == KITH_OK) {
        const struct kith_crl next = {
            .sequence = crl.sequence + 1,
            .issued_s = (int64_t)time(NULL),
            .count = crl.count + 1,
            .fingerprints = (const uint8_t(*)[KITH_FINGERPRINT_BYTES])list};
        struct kith_crl out = next;
        memcpy(out.cluster, a->cluster, sizeof out.cluster);
        err = kith_crl_sign(&out, a->secret, bytes);
        if (err == KITH_OK)
            err = kith_key_file_write_crl(path, bytes, kith_crl_size(out.count),
                                          error);
    }
    free(old_bytes);
    free(bytes);
    free(list);
    return err;
}

enum kith_err kith_keys_revoke(const char *authority_folder,
                               const char *certificate, char *error)
{
    char path[KITH_PATH_BYTES_MAX];
    uint8_t print[KITH_FINGERPRINT_BYTES];
    struct authority a;
    struct kith_identity identity;
    struct kith_certificate c;
    enum kith_err err = start(error);
    if (err == KITH_OK)
        err = kith_key_file_read_certificate(certificate, &identity, &c, error);
    if (err == KITH_OK)
        err = read_authority(authority_folder, &a, error);
    if (err == KITH_OK && memcmp(c.cluster, a.cluster, sizeof a.cluster) != 0)
        err = kith_key_file_fail(error, KITH_EAUTH,
                                 "%s is a certificate of another cluster",
                                 certificate);
    if (err == KITH_OK)
        err = kith_key_file_path(path, authority_folder, "crl", error);
    if (err == KITH_OK) {
        kith_fingerprint(identity.certificate, identity.certificate_bytes,
                         print);
        err = extend_crl(path, &a, print, error);
    }
    sodium_memzero(&a, sizeof a);
    return err;
}

/* The old text, or a fresh first line, and one line more. */
static enum kith_err append_allowed(const char *path, const char *old,
                                    const char *line, char *error)
{
    uint8_t cluster[KITH_CLUSTER_BYTES];
    char head[TEXT_BYTES], cluster64[B64_32];
    if (!old) {
        randombytes_buf(cluster, sizeof cluster);
        base64(cluster64, sizeof cluster64, cluster, sizeof cluster);
        snprintf(head, sizeof head, KEYS_CLUSTER " %s\n", cluster64);
        old = head;
    }
    const size_t size = strlen(old) + strlen(line) + 3;
    char *text = malloc(size);
    if (!text)
        return kith_key_file_fail(error, KITH_ENOMEM, "no memory for %s", path);
    const char *gap = old[strlen(old) - 1] == '\n' ? "" : "\n";
    snprintf(text, size, "%s%s%s\n", old, gap, line);
    const enum kith_err err = kith_key_file_replace(path, text, error);
    free(text);
    return err;
}

enum kith_err kith_keys_allow(const char *folder, const char *request,
                              char *error)
{
    char path[KITH_PATH_BYTES_MAX], name[KITH_NAME_MAX], line[TEXT_BYTES];
    char print64[B64_32], *old = NULL;
    uint8_t key[KITH_KEY_BYTES], print[KITH_FINGERPRINT_BYTES];
    struct kith_trust trust = {.authority_count = 0};
    enum kith_err err = start(error);
    if (err == KITH_OK)
        err = read_request(request, name, key, error);
    if (err == KITH_OK)
        err = kith_key_file_path(path, folder, "allow", error);
    if (err == KITH_OK && kith_key_file_exists(path)) {
        err = kith_key_file_read(path, false, &old, error);
        if (err == KITH_OK)
            err = kith_key_file_parse_trust(path, old, &trust, error);
    } else if (err == KITH_OK) {
        err = kith_key_file_make_folder(folder, error);
    }
    if (err == KITH_OK) {
        kith_fingerprint(key, sizeof key, print);
        base64(print64, sizeof print64, print, sizeof print);
        snprintf(line, sizeof line, "%s %s", print64, name);
        if (trust.allowed_count == KITH_ALLOWED_MAX)
            err = kith_key_file_fail(error, KITH_ELIMIT,
                                     "%s is full (%u keys): use an authority",
                                     path, KITH_ALLOWED_MAX);
        else if (old && strstr(old, print64))
            err = kith_key_file_fail(error, KITH_EEXIST,
                                     "%s has this key already", path);
        else
            err = append_allowed(path, old, line, error);
    }
    kith_key_file_free_text(old);
    free((void *)(uintptr_t)trust.allowed);
    return err;
}

static enum kith_err load_node(const char *folder,
                               struct kith_identity *identity, char *error)
{
    char path[KITH_PATH_BYTES_MAX], *text = NULL;
    uint8_t key[KITH_KEY_BYTES];
    enum kith_err err = kith_key_file_path(path, folder, "node.key", error);
    if (err == KITH_OK)
        err = kith_key_file_read(path, true, &text, error);
    if (err == KITH_OK && !kith_key_file_is(text, KEYS_NODE))
        err = kith_key_file_fail(error, KITH_EPARSE, "%s is not a node key",
                                 path);
    if (err == KITH_OK)
        err = kith_key_file_bytes(path, text, "secret", identity->secret,
                                  KITH_KEY_BYTES, error);
    if (err == KITH_OK)
        err =
            kith_key_file_bytes(path, text, "key", key, KITH_KEY_BYTES, error);
    if (err == KITH_OK &&
        (crypto_scalarmult_base(identity->key, identity->secret) != 0 ||
         memcmp(identity->key, key, KITH_KEY_BYTES) != 0))
        err = kith_key_file_fail(
            error, KITH_EPARSE,
            "%s is damaged: its key and secret do not belong "
            "together",
            path);
    kith_key_file_free_text(text);
    return err;
}

static enum kith_err load_crl(const char *folder, struct kith_trust *trust,
                              char *error)
{
    uint8_t *bytes = NULL;
    size_t size = 0;
    struct kith_crl crl;
    enum kith_err err = kith_keys_read_crl(folder, &bytes, &size, error);
    if (err == KITH_OK && bytes && trust->authority_count > 0) {
        err = kith_crl_verify(trust, bytes, size, &crl);
        if (err != KITH_OK)
            kith_key_file_fail(
                error, err,
                "%s/crl is not by this cluster's authority: copy it "
                "again",
                folder);
        else
            err = kith_key_file_adopt_crl(trust, &crl, error);
    }
    free(bytes);
    return err;
}

/* Our own certificate must pass what every peer will ask of it. */
static enum kith_err load_certificate(const char *folder,
                                      struct kith_identity *identity,
                                      const struct kith_trust *trust,
                                      char *error)
{
    char path[KITH_PATH_BYTES_MAX];
    struct kith_certificate c;
    enum kith_err err = kith_key_file_path(path, folder, "node.crt", error);
    if (err == KITH_OK && !kith_key_file_exists(path))
        err = kith_key_file_fail(
            error, KITH_ENOENT,
            "%s is missing: have the authority run kith keys "
            "certify on %s/node.request",
            path, folder);
    if (err == KITH_OK)
        err = kith_key_file_read_certificate(path, identity, &c, error);
    if (err != KITH_OK)
        return err;
    err = kith_trust_check(trust, identity->certificate,
                           identity->certificate_bytes, identity->key,
                           (int64_t)time(NULL), &c);
    if (err == KITH_EEXPIRED)
        return kith_key_file_fail(
            error, err,
            "%s is not valid now: look at this machine's clock, "
            "or certify again (kith keys show %s)",
            path, path);
    if (err != KITH_OK)
        return kith_key_file_fail(
            error, err,
            "%s is refused: %s. It must be for node.key here, by "
            "the authority in ca.pub, and not revoked",
            path, kith_err_text(err));
    return KITH_OK;
}

enum kith_err kith_keys_load(const char *folder, struct kith_identity *identity,
                             struct kith_trust *trust, char *error)
{
    memset(identity, 0, sizeof *identity);
    memset(trust, 0, sizeof *trust);
    enum kith_err err = start(error);
    if (err == KITH_OK)
        err = load_node(folder, identity, error);
    if (err == KITH_OK)
        err = kith_key_file_read_trust(folder, trust, error);
    if (err == KITH_OK)
        err = load_crl(folder, trust, error);
    if (err == KITH_OK && trust->authority_count > 0)
        err = load_certificate(folder, identity, trust, error);
    if (err != KITH_OK)
        kith_keys_free(identity, trust);
    return err;
}

void kith_keys_free(struct kith_identity *identity, struct kith_trust *trust)
{
    sodium_memzero(identity, sizeof *identity);
    free((void *)(uintptr_t)trust->allowed);
    free((void *)(uintptr_t)trust->revoked);
    memset(trust, 0, sizeof *trust);
}
