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
#define TEXT_BYTES 1024u

struct authority {
    uint8_t cluster[KITH_CLUSTER_BYTES], key[32], secret[64];
};

/* Appends the label, the bytes in base64, and the end of the line. */
static void add_line(char text[TEXT_BYTES], const char *label,
                     const uint8_t *bytes, size_t size)
{
    char value[KEYS_BASE64_BYTES(KITH_CERTIFICATE_BYTES_MAX)];
    const size_t at = strlen(text);
    sodium_bin2base64(value, sizeof value, bytes, size,
                      sodium_base64_VARIANT_ORIGINAL);
    snprintf(text + at, TEXT_BYTES - at, "%s%s\n", label, value);
    sodium_memzero(value, sizeof value);
}

/* A secret file and a public one in a folder. */
struct key_pair {
    char secret_path[KITH_PATH_BYTES_MAX], public_path[KITH_PATH_BYTES_MAX];
    char secret[TEXT_BYTES], public[TEXT_BYTES];
};

/* The folder is made, and both paths, before a key is drawn. */
static void pair_open(struct keys_work *work, struct key_pair *pair,
                      const char *folder, const char *secret,
                      const char *public)
{
    pair->secret[0] = pair->public[0] = '\0';
    kith_keys_make_folder(work, folder);
    kith_keys_path(work, pair->secret_path, folder, secret);
    kith_keys_path(work, pair->public_path, folder, public);
}

/* Writes both files, or neither: the secret first. Wipes the pair. */
static enum kith_err pair_write(struct keys_work *work, struct key_pair *pair)
{
    kith_keys_write_new(work, pair->secret_path, pair->secret, true);
    const bool written = work->err == KITH_OK;
    kith_keys_write_new(work, pair->public_path, pair->public, false);
    if (written && work->err != KITH_OK)
        unlink(pair->secret_path);
    sodium_memzero(pair, sizeof *pair);
    return work->err;
}

/* The line that every member gets with ca.pub, and that nobody else can write.
 */
static void add_policy(char text[TEXT_BYTES], const struct authority *a,
                       enum kith_suite suite)
{
    char label[64];
    uint8_t signature[KITH_SIGNATURE_BYTES];
    kith_policy_sign(a->cluster, suite, a->secret, signature);
    snprintf(label, sizeof label, KEYS_SUITE_LINE "%s ",
             kith_suite_word(suite));
    add_line(text, label, signature, sizeof signature);
}

enum kith_err kith_keys_new_authority(const char *folder, enum kith_suite suite,
                                      char *error)
{
    struct key_pair pair;
    struct authority a;
    struct keys_work work = kith_keys_start(error);
    pair_open(&work, &pair, folder, "ca.key", "ca.pub");
    if (work.err != KITH_OK)
        return work.err;
    crypto_sign_keypair(a.key, a.secret);
    randombytes_buf(a.cluster, sizeof a.cluster);
    add_line(pair.secret, KEYS_AUTHORITY "\ncluster: ", a.cluster,
             sizeof a.cluster);
    add_line(pair.secret, "key: ", a.key, sizeof a.key);
    add_line(pair.secret, "secret: ", a.secret, sizeof a.secret);
    add_line(pair.public, KEYS_CLUSTER " ", a.cluster, sizeof a.cluster);
    add_line(pair.public, KEYS_AUTHORITY_LINE, a.key, sizeof a.key);
    if (suite != KITH_SUITE_ANY)
        add_policy(pair.public, &a, suite);
    sodium_memzero(&a, sizeof a);
    return pair_write(&work, &pair);
}

static void check_name(struct keys_work *work, const char *name)
{
    if (work->err == KITH_OK &&
        !kith_name_is_safe((const uint8_t *)name, strlen(name)))
        kith_keys_fail(work, KITH_EINVAL,
                       "the name \"%.70s\" will not do: 1 to %u letters, "
                       "digits, dots, dashes, underscores",
                       name, KITH_NAME_MAX - 1);
}

enum kith_err kith_keys_new_node(const char *folder, const char *name,
                                 char *error)
{
    struct key_pair pair;
    uint8_t key[KITH_KEY_BYTES], secret[KITH_KEY_BYTES];
    struct keys_work work = kith_keys_start(error);
    check_name(&work, name);
    pair_open(&work, &pair, folder, "node.key", "node.request");
    if (work.err != KITH_OK)
        return work.err;
    crypto_box_keypair(key, secret);
    snprintf(pair.secret, sizeof pair.secret,
             KEYS_NODE "\nname: %s\ncreated: %lld\n", name,
             (long long)time(NULL));
    add_line(pair.secret, "key: ", key, sizeof key);
    add_line(pair.secret, "secret: ", secret, sizeof secret);
    snprintf(pair.public, sizeof pair.public, KEYS_REQUEST "\nname: %s\n",
             name);
    add_line(pair.public, "key: ", key, sizeof key);
    sodium_memzero(secret, sizeof secret);
    return pair_write(&work, &pair);
}

static void check_pair(struct keys_work *work, const char *path, bool matches)
{
    if (work->err == KITH_OK && !matches)
        kith_keys_fail(
            work, KITH_EPARSE,
            "%s is damaged: its key and secret do not belong together", path);
}

static void read_authority(struct keys_work *work, const char *folder,
                           struct authority *a)
{
    char path[KITH_PATH_BYTES_MAX];
    struct key_file file;
    kith_keys_path(work, path, folder, "ca.key");
    const bool sound = work->err == KITH_OK;
    kith_key_file_open(work, &file, path, true);
    if (sound && work->err == KITH_ENOENT) {
        work->err = KITH_OK;
        kith_keys_fail(work, KITH_ENOENT,
                       "%.300s has no ca.key: give the authority's folder, or "
                       "make an authority first: kith keys new DIR --authority",
                       folder);
    }
    kith_key_file_expect(work, &file, KEYS_AUTHORITY, "an authority's key");
    kith_key_file_bytes(work, &file, "cluster", a->cluster, sizeof a->cluster);
    kith_key_file_bytes(work, &file, "key", a->key, sizeof a->key);
    kith_key_file_bytes(work, &file, "secret", a->secret, sizeof a->secret);
    /* An Ed25519 secret ends in its public key. */
    check_pair(work, path, memcmp(a->secret + 32, a->key, sizeof a->key) == 0);
    kith_key_file_close(&file);
}

static void read_request(struct keys_work *work, const char *path,
                         char name[KITH_NAME_MAX], uint8_t key[KITH_KEY_BYTES])
{
    struct key_file file;
    kith_key_file_open(work, &file, path, false);
    kith_key_file_expect(work, &file, KEYS_REQUEST,
                         "a request: kith keys new writes one as node.request");
    kith_key_file_field(work, &file, "name", name, KITH_NAME_MAX);
    check_name(work, name);
    kith_key_file_bytes(work, &file, "key", key, KITH_KEY_BYTES);
    kith_key_file_close(&file);
}

static void write_certificate(struct keys_work *work, const char *path,
                              const struct kith_certificate *c,
                              const struct authority *a)
{
    uint8_t bytes[KITH_CERTIFICATE_BYTES_MAX];
    char text[TEXT_BYTES] = "";
    const size_t n = kith_certificate_sign(c, a->secret, bytes);
    add_line(text, KEYS_CERTIFICATE "\ncertificate: ", bytes, n);
    kith_keys_write_new(work, path, text, false);
}

enum kith_err kith_keys_certify(const char *authority_folder,
                                const char *request, const char *out,
                                unsigned days, uint32_t roles, uint32_t rank,
                                char *error)
{
    struct authority a = {.key = {0}};
    struct kith_certificate c = {.roles = roles, .rank = rank};
    struct keys_work work = kith_keys_start(error);
    if (days < 1 || days > DAYS_MAX)
        kith_keys_fail(&work, KITH_EINVAL,
                       "a certificate lives 1 to %u days, not %u", DAYS_MAX,
                       days);
    if (roles == 0 || (roles & ~ROLES_ALL) != 0)
        kith_keys_fail(&work, KITH_EINVAL,
                       "roles are train, observe and seed, at least one");
    read_authority(&work, authority_folder, &a);
    read_request(&work, request, c.name, c.key);
    if (rank != KITH_NOBODY || (roles & (uint32_t)KITH_ROLE_TRAIN) != 0)
        kith_keys_give_rank(&work, authority_folder, c.name, &c.rank);
    if (work.err == KITH_OK) {
        memcpy(c.cluster, a.cluster, sizeof c.cluster);
        randombytes_buf(&c.serial, sizeof c.serial);
        c.not_before_s = (int64_t)time(NULL);
        c.not_after_s = c.not_before_s + (int64_t)days * DAY_S;
        write_certificate(&work, out, &c, &a);
    }
    sodium_memzero(&a, sizeof a);
    return work.err;
}

/* The list with one more fingerprint, in order. */
static void list_insert(struct keys_work *work, const struct kith_crl *old,
                        const uint8_t print[KITH_FINGERPRINT_BYTES],
                        uint8_t (*list)[KITH_FINGERPRINT_BYTES])
{
    if (old->count >= KITH_REVOKED_MAX)
        kith_keys_fail(work, KITH_ELIMIT,
                       "the list is full (%u): start a new authority and let "
                       "the old certificates expire",
                       KITH_REVOKED_MAX);
    for (uint32_t i = 0; i < old->count; i++)
        if (memcmp(old->fingerprints[i], print, KITH_FINGERPRINT_BYTES) == 0)
            kith_keys_fail(work, KITH_EEXIST, "it is revoked already");
    if (work->err != KITH_OK)
        return;
    if (old->count > 0)
        memcpy(list, old->fingerprints,
               (size_t)old->count * KITH_FINGERPRINT_BYTES);
    memcpy(list[old->count], print, KITH_FINGERPRINT_BYTES);
    kith_keys_sort(list, old->count + 1);
}

static void extend_crl(struct keys_work *work, const char *path,
                       const struct authority *a,
                       const uint8_t print[KITH_FINGERPRINT_BYTES])
{
    uint8_t *old_bytes = NULL, *bytes = malloc(KITH_CRL_BYTES_MAX);
    uint8_t(*list)[KITH_FINGERPRINT_BYTES] =
        calloc(KITH_REVOKED_MAX, KITH_FINGERPRINT_BYTES);
    size_t old_size = 0;
    struct kith_trust trust = {.authority_count = 1};
    struct kith_crl crl = {.count = 0};
    memcpy(trust.cluster, a->cluster, sizeof trust.cluster);
    memcpy(trust.authority[0], a->key, sizeof a->key);
    if (!bytes || !list)
        kith_keys_fail(work, KITH_ENOMEM, "no memory for %s", path);
    kith_keys_open_crl(work, path, &old_bytes, &old_size);
    if (old_bytes &&
        kith_crl_verify(&trust, old_bytes, old_size, &crl) != KITH_OK)
        kith_keys_fail(work, KITH_EAUTH,
                       "%s was not signed by this authority: move it away",
                       path);
    if (work->err == KITH_OK)
        list_insert(work, &crl, print, list);
    if (work->err == KITH_OK) {
        struct kith_crl next = {
            .sequence = crl.sequence + 1,
            .issued_s = (int64_t)time(NULL),
            .count = crl.count + 1,
            .fingerprints = (const uint8_t(*)[KITH_FINGERPRINT_BYTES])list};
        memcpy(next.cluster, a->cluster, sizeof next.cluster);
        work->err = kith_crl_sign(&next, a->secret, bytes);
        kith_keys_write_crl(work, path, bytes, kith_crl_size(next.count));
    }
    free(old_bytes);
    free(bytes);
    free(list);
}

enum kith_err kith_keys_revoke(const char *authority_folder,
                               const char *certificate, char *error)
{
    char path[KITH_PATH_BYTES_MAX];
    uint8_t print[KITH_FINGERPRINT_BYTES];
    struct authority a = {.key = {0}};
    struct kith_identity identity;
    struct kith_certificate c;
    struct keys_work work = kith_keys_start(error);
    kith_keys_read_certificate(&work, certificate, &identity, &c);
    read_authority(&work, authority_folder, &a);
    if (work.err == KITH_OK &&
        memcmp(c.cluster, a.cluster, sizeof a.cluster) != 0)
        kith_keys_fail(&work, KITH_EAUTH,
                       "%s is a certificate of another cluster", certificate);
    kith_keys_path(&work, path, authority_folder, "crl");
    if (work.err == KITH_OK) {
        kith_fingerprint(identity.certificate, identity.certificate_bytes,
                         print);
        extend_crl(&work, path, &a, print);
    }
    sodium_memzero(&a, sizeof a);
    return work.err;
}

/* The old text, or a fresh first line, and one line more. */
static void append_allowed(struct keys_work *work, const char *path,
                           const char *old, const char *line)
{
    uint8_t cluster[KITH_CLUSTER_BYTES];
    char head[TEXT_BYTES] = "";
    if (!old) {
        randombytes_buf(cluster, sizeof cluster);
        add_line(head, KEYS_CLUSTER " ", cluster, sizeof cluster);
        old = head;
    }
    const size_t size = strlen(old) + strlen(line) + 3;
    char *text = malloc(size);
    if (!text) {
        kith_keys_fail(work, KITH_ENOMEM, "no memory for %s", path);
        return;
    }
    const char *gap = old[strlen(old) - 1] == '\n' ? "" : "\n";
    snprintf(text, size, "%s%s%s\n", old, gap, line);
    kith_keys_replace(work, path, text);
    free(text);
}

enum kith_err kith_keys_allow(const char *folder, const char *request,
                              char *error)
{
    char path[KITH_PATH_BYTES_MAX], name[KITH_NAME_MAX], line[TEXT_BYTES];
    char print64[KEYS_BASE64_BYTES(KITH_FINGERPRINT_BYTES)];
    uint8_t key[KITH_KEY_BYTES], print[KITH_FINGERPRINT_BYTES];
    struct kith_trust trust = {.authority_count = 0};
    struct key_file old = {.text = NULL};
    struct keys_work work = kith_keys_start(error);
    read_request(&work, request, name, key);
    kith_keys_path(&work, path, folder, "allow");
    if (work.err == KITH_OK && kith_key_file_exists(path)) {
        kith_key_file_open(&work, &old, path, false);
        kith_keys_parse_trust(&work, &old, &trust);
    } else {
        kith_keys_make_folder(&work, folder);
    }
    if (work.err == KITH_OK) {
        kith_fingerprint(key, sizeof key, print);
        sodium_bin2base64(print64, sizeof print64, print, sizeof print,
                          sodium_base64_VARIANT_ORIGINAL);
        snprintf(line, sizeof line, "%s %s", print64, name);
        if (trust.allowed_count == KITH_ALLOWED_MAX)
            kith_keys_fail(&work, KITH_ELIMIT,
                           "%s is full (%u keys): use an authority", path,
                           KITH_ALLOWED_MAX);
        else if (old.text && strstr(old.text, print64))
            kith_keys_fail(&work, KITH_EEXIST, "%s has this key already", path);
        else
            append_allowed(&work, path, old.text, line);
    }
    kith_key_file_close(&old);
    free((void *)(uintptr_t)trust.allowed);
    return work.err;
}

static void load_node(struct keys_work *work, const char *folder,
                      struct kith_identity *identity)
{
    char path[KITH_PATH_BYTES_MAX];
    struct key_file file;
    uint8_t key[KITH_KEY_BYTES];
    kith_keys_path(work, path, folder, "node.key");
    if (work->err == KITH_OK && !kith_key_file_exists(path))
        kith_keys_fail(work, KITH_ENOENT,
                       "%s is missing: kith keys new %s makes one, and a "
                       "request for its certificate",
                       path, folder);
    kith_key_file_open(work, &file, path, true);
    kith_key_file_expect(work, &file, KEYS_NODE, "a node key");
    kith_key_file_bytes(work, &file, "secret", identity->secret,
                        KITH_KEY_BYTES);
    kith_key_file_bytes(work, &file, "key", key, KITH_KEY_BYTES);
    if (work->err == KITH_OK)
        check_pair(work, path,
                   crypto_scalarmult_base(identity->key, identity->secret) ==
                           0 &&
                       memcmp(identity->key, key, KITH_KEY_BYTES) == 0);
    kith_key_file_close(&file);
}

/* An older list than the trust has already is as good as none. */
static void load_crl(struct keys_work *work, const char *folder,
                     const char *name, struct kith_trust *trust)
{
    char path[KITH_PATH_BYTES_MAX];
    uint8_t *bytes = NULL;
    size_t size = 0;
    kith_keys_path(work, path, folder, name);
    kith_keys_open_crl(work, path, &bytes, &size);
    if (bytes && trust->authority_count > 0) {
        const enum kith_err err = kith_keys_take_list(trust, bytes, size);
        if (err != KITH_OK && err != KITH_EEXPIRED)
            kith_keys_fail(
                work, err,
                "%s is not by an authority of ca.pub: copy it again, or, if "
                "the authority is a new one, take it away",
                path);
    }
    free(bytes);
}

/* Our own certificate must pass what every peer will ask of it. */
static void load_certificate(struct keys_work *work, const char *folder,
                             struct kith_identity *identity,
                             const struct kith_trust *trust)
{
    char path[KITH_PATH_BYTES_MAX];
    struct kith_certificate c;
    kith_keys_path(work, path, folder, "node.crt");
    if (work->err == KITH_OK && !kith_key_file_exists(path))
        kith_keys_fail(work, KITH_ENOENT,
                       "%s is missing: have the authority run kith keys "
                       "certify on %s/node.request",
                       path, folder);
    kith_keys_read_certificate(work, path, identity, &c);
    if (work->err != KITH_OK)
        return;
    const enum kith_err err = kith_trust_check(
        trust, identity->certificate, identity->certificate_bytes,
        identity->key, (int64_t)time(NULL), &c);
    if (err == KITH_EEXPIRED)
        kith_keys_fail(work, err,
                       "%s is not valid now: look at this machine's clock, or "
                       "certify again (kith keys show %s)",
                       path, path);
    else if (err != KITH_OK)
        kith_keys_fail(work, err,
                       "%s is refused: %s. It must be for node.key here, by "
                       "the authority in ca.pub, and not revoked",
                       path, kith_err_text(err));
}

enum kith_err kith_keys_load(const char *folder, struct kith_identity *identity,
                             struct kith_trust *trust, char *error)
{
    memset(identity, 0, sizeof *identity);
    memset(trust, 0, sizeof *trust);
    struct keys_work work = kith_keys_start(error);
    load_node(&work, folder, identity);
    kith_keys_read_trust(&work, folder, trust);
    load_crl(&work, folder, "crl", trust);
    load_crl(&work, folder, "crl.seen", trust);
    if (trust->authority_count > 0)
        load_certificate(&work, folder, identity, trust);
    if (work.err != KITH_OK)
        kith_keys_free(identity, trust);
    return work.err;
}

void kith_keys_free(struct kith_identity *identity, struct kith_trust *trust)
{
    sodium_memzero(identity, sizeof *identity);
    free((void *)(uintptr_t)trust->allowed);
    free((void *)(uintptr_t)trust->list);
    memset(trust, 0, sizeof *trust);
}
