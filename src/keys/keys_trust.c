/* What a peer's folder says about others: authorities or an allow-list, and the
 * revocation list. */
#include <sodium.h>
#include <stdlib.h>
#include <string.h>

#include "src/keys/keys_file.h"

static int compare_prints(const void *a, const void *b)
{
    return memcmp(a, b, KITH_FINGERPRINT_BYTES);
}

void kith_keys_sort(uint8_t (*list)[KITH_FINGERPRINT_BYTES], uint32_t count)
{
    qsort(list, count, KITH_FINGERPRINT_BYTES, compare_prints);
}

static bool line_is(const char *line, const char *word)
{
    return strncmp(line, word, strlen(word)) == 0;
}

static void read_authority(struct keys_work *work, const struct key_file *file,
                           const char *line, struct kith_trust *trust)
{
    if (trust->authority_count == 2) {
        kith_keys_fail(work, KITH_ELIMIT,
                       "%s names more than two authorities: a roll has the "
                       "old one and the new one",
                       file->path);
        return;
    }
    uint8_t *key = trust->authority[trust->authority_count];
    if (!line_is(line, KEYS_AUTHORITY_LINE) ||
        !kith_key_file_unbase64(line + sizeof KEYS_AUTHORITY_LINE - 1, key, 32,
                                NULL))
        kith_keys_fail(work, KITH_EPARSE,
                       "%s: expected \"authority KEY\", KEY being 32 bytes "
                       "of base64, found \"%.40s\"",
                       file->path, line);
    trust->authority_count++;
}

/* "suite NAME SIGNATURE", of which an authority's signature makes a policy:
 * whoever else writes such a line turns nothing on. */
static void check_policy(struct keys_work *work, const struct key_file *file,
                         const char *line, struct kith_trust *trust)
{
    uint8_t signature[KITH_SIGNATURE_BYTES];
    enum kith_suite suite = KITH_SUITE_ANY;
    const char *word = line + sizeof KEYS_SUITE_LINE - 1;
    const size_t length = strcspn(word, " \t\r\n");
    const char *rest = word + length + strspn(word + length, " \t");
    if (!kith_suite_find(word, length, &suite))
        kith_keys_fail(work, KITH_EUNSUPPORTED,
                       "%s: this release knows no suite \"%.*s\" (kith list "
                       "suites): use the release that the authority was made "
                       "with, or copy ca.pub from it again",
                       file->path, (int)(length < 40 ? length : 40), word);
    else if (!kith_key_file_unbase64(rest, signature, sizeof signature, NULL) ||
             !kith_policy_is_signed(trust, suite, signature))
        kith_keys_fail(work, KITH_EAUTH,
                       "%s: the line \"suite %s\" is not signed by the "
                       "authority, which alone chooses the suite: copy ca.pub "
                       "from it again",
                       file->path, kith_suite_word(suite));
    else if (trust->suite != KITH_SUITE_ANY && trust->suite != suite)
        kith_keys_fail(work, KITH_EPARSE,
                       "%s says suite %s and suite %s: both authorities of a "
                       "roll need the same",
                       file->path, kith_suite_word(trust->suite),
                       kith_suite_word(suite));
    else
        trust->suite = suite;
}

/* Policies after all authorities, for either may have signed one. */
static void read_authorities(struct keys_work *work,
                             const struct key_file *file,
                             struct kith_trust *trust)
{
    const char *policies[2];
    unsigned policy_count = 0;
    for (const char *line = kith_key_file_next_line(file->text);
         line && work->err == KITH_OK; line = kith_key_file_next_line(line)) {
        if (!line_is(line, KEYS_SUITE_LINE))
            read_authority(work, file, line, trust);
        else if (policy_count < 2)
            policies[policy_count++] = line;
        else
            kith_keys_fail(work, KITH_ELIMIT,
                           "%s has more than two lines \"suite ...\": one of "
                           "each authority will do",
                           file->path);
    }
    if (trust->authority_count == 0)
        kith_keys_fail(
            work, KITH_EPARSE,
            "%s names no authority: it needs a line \"authority KEY\"",
            file->path);
    for (unsigned i = 0; i < policy_count && work->err == KITH_OK; i++)
        check_policy(work, file, policies[i], trust);
}

static void read_allowed(struct keys_work *work, const struct key_file *file,
                         struct kith_trust *trust)
{
    uint32_t count = 0;
    uint8_t(*list)[KITH_FINGERPRINT_BYTES] =
        calloc(KITH_ALLOWED_MAX, KITH_FINGERPRINT_BYTES);
    trust->allowed = (const uint8_t(*)[KITH_FINGERPRINT_BYTES])list;
    if (!list)
        kith_keys_fail(work, KITH_ENOMEM, "no memory for %s", file->path);
    for (const char *line = kith_key_file_next_line(file->text);
         line && work->err == KITH_OK; line = kith_key_file_next_line(line)) {
        if (count == KITH_ALLOWED_MAX)
            kith_keys_fail(work, KITH_ELIMIT,
                           "%s has more than %u keys: use an authority",
                           file->path, KITH_ALLOWED_MAX);
        else if (line_is(line, KEYS_SUITE_LINE))
            kith_keys_fail(work, KITH_EPARSE,
                           "%s: an allow-list has no policy, since nobody "
                           "signs it: take the line \"suite ...\" out, or use "
                           "an authority",
                           file->path);
        else if (!kith_key_file_unbase64(line, list[count],
                                         KITH_FINGERPRINT_BYTES, NULL))
            kith_keys_fail(work, KITH_EPARSE,
                           "%s: expected a fingerprint of 32 bytes in base64, "
                           "found \"%.50s\"",
                           file->path, line);
        count++;
    }
    if (work->err != KITH_OK)
        return;
    kith_keys_sort(list, count);
    trust->allowed_count = count;
}

static bool named(const char *path, const char *name)
{
    const char *slash = strrchr(path, '/');
    return strcmp(slash ? slash + 1 : path, name) == 0;
}

void kith_keys_parse_trust(struct keys_work *work, const struct key_file *file,
                           struct kith_trust *trust)
{
    const size_t head = strlen(KEYS_CLUSTER);
    if (work->err != KITH_OK)
        return;
    const char *text = file->text;
    if (!kith_key_file_is(file, KEYS_CLUSTER) || text[head] != ' ' ||
        !kith_key_file_unbase64(text + head + 1, trust->cluster,
                                KITH_CLUSTER_BYTES, NULL)) {
        kith_keys_fail(work, KITH_EPARSE,
                       "%s: the first line must be \"" KEYS_CLUSTER
                       " ID\", ID being 32 bytes of base64",
                       file->path);
        return;
    }
    const char *line = kith_key_file_next_line(text);
    const bool authorities = line && !line_is(line, KEYS_SUITE_LINE)
                                 ? line_is(line, "authority")
                                 : named(file->path, "ca.pub");
    (authorities ? read_authorities : read_allowed)(work, file, trust);
}

void kith_keys_read_trust(struct keys_work *work, const char *folder,
                          struct kith_trust *trust)
{
    char path[KITH_PATH_BYTES_MAX];
    struct key_file file;
    kith_keys_path(work, path, folder, "ca.pub");
    if (work->err == KITH_OK && !kith_key_file_exists(path))
        kith_keys_path(work, path, folder, "allow");
    if (work->err == KITH_OK && !kith_key_file_exists(path))
        kith_keys_fail(work, KITH_ENOENT,
                       "%s has neither ca.pub nor allow, so nobody could be "
                       "trusted: copy ca.pub from the authority, or make an "
                       "allow-list with kith keys allow",
                       folder);
    kith_key_file_open(work, &file, path, false);
    kith_keys_parse_trust(work, &file, trust);
    if (trust->authority_count + trust->allowed_count == 0)
        kith_keys_fail(work, KITH_EPARSE,
                       "%s allows nobody: kith keys allow adds a key", path);
    kith_key_file_close(&file);
}

void kith_keys_open_crl(struct keys_work *work, const char *path,
                        uint8_t **bytes, size_t *size)
{
    struct key_file file;
    struct kith_crl crl;
    *bytes = NULL;
    *size = 0;
    if (work->err != KITH_OK || !kith_key_file_exists(path))
        return;
    kith_key_file_open(work, &file, path, false);
    kith_key_file_expect(work, &file, KEYS_CRL, "a revocation list");
    const size_t value_bytes = work->err == KITH_OK ? strlen(file.text) + 1 : 1;
    char *value = malloc(value_bytes);
    *bytes = malloc(KITH_CRL_BYTES_MAX);
    if (!value || !*bytes)
        kith_keys_fail(work, KITH_ENOMEM, "no memory for %s", path);
    kith_key_file_field(work, &file, "crl", value, value_bytes);
    if (work->err == KITH_OK &&
        (!kith_key_file_unbase64(value, *bytes, KITH_CRL_BYTES_MAX, size) ||
         kith_crl_decode(*bytes, *size, &crl) != KITH_OK))
        kith_keys_fail(work, KITH_EPARSE,
                       "%s is damaged: copy the list again from the authority",
                       path);
    free(value);
    if (work->err != KITH_OK) {
        free(*bytes);
        *bytes = NULL;
    }
    kith_key_file_close(&file);
}

void kith_keys_write_crl(struct keys_work *work, const char *path,
                         const uint8_t *bytes, size_t size)
{
    static const char head[] = KEYS_CRL "\ncrl: ";
    const size_t base64 =
        sodium_base64_encoded_len(size, sodium_base64_VARIANT_ORIGINAL);
    char *text = malloc(sizeof head + base64 + 1);
    if (!text) {
        kith_keys_fail(work, KITH_ENOMEM, "no memory for %s", path);
        return;
    }
    memcpy(text, head, sizeof head);
    sodium_bin2base64(text + sizeof head - 1, base64, bytes, size,
                      sodium_base64_VARIANT_ORIGINAL);
    const size_t at = strlen(text);
    memcpy(text + at, "\n", 2);
    kith_keys_replace(work, path, text);
    free(text);
}

/* malloc'd; at least a byte, so that NULL is an error. */
static void *copy_of(const void *bytes, size_t size)
{
    void *copy = malloc(size ? size : 1);
    if (copy && size)
        memcpy(copy, bytes, size);
    return copy;
}

enum kith_err kith_keys_take_list(struct kith_trust *trust,
                                  const uint8_t *bytes, size_t size)
{
    struct kith_crl crl;
    enum kith_err err = kith_crl_verify(trust, bytes, size, &crl);
    uint8_t *list = err == KITH_OK ? copy_of(bytes, size) : NULL;
    if (err == KITH_OK && !list)
        err = KITH_ENOMEM;
    if (err != KITH_OK)
        return err;
    free((void *)(uintptr_t)trust->list);
    trust->list = list;
    trust->list_bytes = size;
    trust->revoked = (const uint8_t(*)[KITH_FINGERPRINT_BYTES])(
        void *)(list + KITH_CRL_HEAD_BYTES);
    trust->revoked_count = crl.count;
    trust->revoked_sequence = crl.sequence;
    return KITH_OK;
}

enum kith_err kith_keys_copy_trust(struct kith_trust *to,
                                   const struct kith_trust *of)
{
    *to = *of;
    to->list = NULL;
    to->allowed = copy_of(of->allowed,
                          (size_t)of->allowed_count * KITH_FINGERPRINT_BYTES);
    if (!to->allowed)
        return KITH_ENOMEM;
    if (!of->list)
        return KITH_OK;
    to->revoked_sequence = 0; /* or it would not be newer */
    const enum kith_err err = kith_keys_take_list(to, of->list, of->list_bytes);
    if (err != KITH_OK)
        free((void *)(uintptr_t)to->allowed);
    return err;
}

enum kith_err kith_keys_keep_list(const char *folder,
                                  const struct kith_trust *trust, char *error)
{
    char path[KITH_PATH_BYTES_MAX];
    struct keys_work work = kith_keys_start(error);
    kith_keys_path(&work, path, folder, "crl.seen");
    if (work.err == KITH_OK)
        kith_keys_write_crl(&work, path, trust->list, trust->list_bytes);
    return work.err;
}

void kith_keys_read_certificate(struct keys_work *work, const char *path,
                                struct kith_identity *identity,
                                struct kith_certificate *certificate)
{
    char value[KEYS_BASE64_BYTES(KITH_CERTIFICATE_BYTES_MAX)];
    struct key_file file;
    kith_key_file_open(work, &file, path, false);
    kith_key_file_expect(work, &file, KEYS_CERTIFICATE, "a certificate");
    kith_key_file_field(work, &file, "certificate", value, sizeof value);
    enum kith_err err = KITH_EPARSE;
    if (work->err == KITH_OK &&
        kith_key_file_unbase64(value, identity->certificate,
                               KITH_CERTIFICATE_BYTES_MAX,
                               &identity->certificate_bytes))
        err = kith_certificate_decode(identity->certificate,
                                      identity->certificate_bytes, certificate);
    if (err == KITH_EVERSION)
        kith_keys_fail(work, err,
                       "%s is a certificate of another version of kith (the "
                       "first named no rank): certify its request again: kith "
                       "keys certify AUTHORITY node.request --rank N",
                       path);
    else if (err != KITH_OK)
        kith_keys_fail(work, KITH_EPARSE,
                       "%s is damaged: copy it again, or certify again", path);
    kith_key_file_close(&file);
}
