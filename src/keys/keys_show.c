/* `kith keys show`: what a key file says, without its secrets, a fact at a
 * time. */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#include "kith/text.h"
#include "src/keys/keys_file.h"

struct out {
    kith_key_told *tell;
    void *user;
    const char *kind, *what; /* of the file: its first word, and in words */
};

static void add(const struct out *out, const char *label, const char *key,
                const char *value)
{
    out->tell(out->user,
              &(struct kith_key_fact){
                  .label = label, .key = key, .value = value, .note = ""});
}

/* `note` stands behind the number for people: " keys". */
static void add_number(const struct out *out, const char *label,
                       uint64_t number, const char *note)
{
    char value[24];
    snprintf(value, sizeof value, "%" PRIu64, number);
    out->tell(out->user, &(struct kith_key_fact){.shape = KITH_KEY_NUMBER,
                                                 .label = label,
                                                 .key = label,
                                                 .value = value,
                                                 .note = note});
}

/* One of the values that are an array for programs. */
static void add_item(const struct out *out, const char *label, const char *key,
                     const char *value)
{
    out->tell(out->user, &(struct kith_key_fact){.shape = KITH_KEY_ITEM,
                                                 .label = label,
                                                 .key = key,
                                                 .value = value,
                                                 .note = ""});
}

static void add_hex(const struct out *out, const char *label,
                    const uint8_t bytes[32])
{
    char hex[2 * 32 + 1];
    kith_text_hex(hex, bytes, 32);
    add(out, label, label, hex);
}

static void add_time(const struct out *out, const char *label, const char *key,
                     int64_t utc_s)
{
    char text[64] = "an impossible date";
    const time_t t = (time_t)utc_s;
    struct tm parts;
    if (gmtime_r(&t, &parts))
        strftime(text, sizeof text, "%Y-%m-%dT%H:%M:%SZ", &parts);
    add(out, label, key, text);
}

static void add_print(const struct out *out, const uint8_t *bytes, size_t size)
{
    uint8_t print[KITH_FINGERPRINT_BYTES];
    kith_fingerprint(bytes, size, print);
    add_hex(out, "fingerprint", print);
}

static void add_kind(const struct out *out, const char *what)
{
    out->tell(out->user, &(struct kith_key_fact){
                             .key = "kind", .value = out->kind, .note = what});
}

static void add_roles(const struct out *out, uint32_t roles)
{
    static const struct {
        uint32_t bit;
        const char *name;
    } names[] = {{KITH_ROLE_TRAIN, "train"},
                 {KITH_ROLE_OBSERVE, "observe"},
                 {KITH_ROLE_SEED, "seed"}};
    const char *label = "roles";
    for (size_t i = 0; i < sizeof names / sizeof *names; i++)
        if ((roles & names[i].bit) != 0) {
            add_item(out, label, "roles", names[i].name);
            label = "";
        }
}

static void show_certificate(struct keys_work *work,
                             const struct key_file *file, const struct out *out)
{
    struct kith_identity identity;
    struct kith_certificate c;
    kith_keys_read_certificate(work, file->path, &identity, &c);
    if (work->err != KITH_OK)
        return;
    char serial[24];
    snprintf(serial, sizeof serial, "%016" PRIx64, c.serial);
    add_kind(out, out->what);
    add(out, "name", "name", c.name);
    if (c.rank != KITH_NOBODY)
        add_number(out, "rank", c.rank, "");
    add(out, "serial", "serial", serial);
    add_hex(out, "cluster", c.cluster);
    add_hex(out, "key", c.key);
    add_time(out, "not before", "not_before", c.not_before_s);
    add_time(out, "not after", "not_after", c.not_after_s);
    add_roles(out, c.roles);
    add_print(out, identity.certificate, identity.certificate_bytes);
}

static void show_crl(struct keys_work *work, const struct key_file *file,
                     const struct out *out)
{
    uint8_t *bytes = NULL;
    size_t size = 0;
    struct kith_crl crl;
    kith_keys_open_crl(work, file->path, &bytes, &size);
    if (!bytes || kith_crl_decode(bytes, size, &crl) != KITH_OK) {
        kith_keys_fail(work, KITH_EPARSE, "%s is damaged", file->path);
        free(bytes);
        return;
    }
    char hex[2 * KITH_FINGERPRINT_BYTES + 1];
    add_kind(out, out->what);
    add_hex(out, "cluster", crl.cluster);
    add_number(out, "sequence", crl.sequence, "");
    add_time(out, "issued", "issued", crl.issued_s);
    add_number(out, "revoked", crl.count,
               crl.count == 1 ? " certificate" : " certificates");
    for (uint32_t i = 0; i < crl.count; i++) {
        kith_text_hex(hex, crl.fingerprints[i], KITH_FINGERPRINT_BYTES);
        add_item(out, "", "fingerprints", hex);
    }
    free(bytes);
}

/* Files of "name:" and "key:" lines: node.key, node.request, ca.key. */
static void show_key(struct keys_work *work, const struct key_file *file,
                     const struct out *out)
{
    char name[KITH_NAME_MAX];
    uint8_t key[32];
    const bool named = !kith_key_file_is(file, KEYS_AUTHORITY);
    kith_key_file_bytes(work, file, "key", key, sizeof key);
    if (named)
        kith_key_file_field(work, file, "name", name, sizeof name);
    if (work->err != KITH_OK)
        return;
    add_kind(out, out->what);
    if (named)
        add(out, "name", "name", name);
    add_hex(out, "key", key);
    add_print(out, key, sizeof key);
}

/* The policy, which is the authority's: an allow-list has none. */
static void add_policy(const struct out *out, const struct kith_trust *trust)
{
    const struct kith_suite_facts *facts = kith_suite_facts(trust->suite);
    struct kith_key_fact fact = {
        .label = "suite",
        .key = "suite",
        .value = facts ? kith_suite_word(trust->suite) : NULL,
        .note = !facts ? "no policy: as network.suite of the experiment says"
                : facts->unaudited ? ", signed by the authority; unaudited "
                                     "(kith list suites)"
                                   : ", signed by the authority"};
    out->tell(out->user, &fact);
}

static void show_trust(struct keys_work *work, const struct key_file *file,
                       const struct out *out)
{
    struct kith_trust trust = {.authority_count = 0};
    kith_keys_parse_trust(work, file, &trust);
    if (work->err == KITH_OK) {
        char hex[2 * 32 + 1];
        add_kind(out, trust.authority_count ? out->what : "an allow-list");
        add_hex(out, "cluster", trust.cluster);
        for (uint32_t i = 0; i < trust.authority_count; i++) {
            kith_text_hex(hex, trust.authority[i], 32);
            add_item(out, "authority", "authorities", hex);
        }
        add_policy(out, &trust);
        if (!trust.authority_count)
            add_number(out, "allowed", trust.allowed_count,
                       trust.allowed_count == 1 ? " key" : " keys");
    }
    free((void *)(uintptr_t)trust.allowed);
}

enum kith_err kith_keys_show(const char *path, kith_key_told *tell, void *user,
                             char *error)
{
    static const struct {
        const char *kind, *what;
        bool secret;
        void (*show)(struct keys_work *work, const struct key_file *file,
                     const struct out *out);
    } kinds[] = {{KEYS_NODE, "a node's secret key", true, show_key},
                 {KEYS_AUTHORITY, "an authority's secret key", true, show_key},
                 {KEYS_REQUEST, "a request for a certificate", false, show_key},
                 {KEYS_CLUSTER, "whom a cluster trusts", false, show_trust},
                 {KEYS_CERTIFICATE, "a certificate", false, show_certificate},
                 {KEYS_CRL, "a revocation list", false, show_crl}};
    struct key_file file;
    struct out out = {.tell = tell, .user = user};
    struct keys_work work = kith_keys_start(error);
    size_t i = 0;
    kith_key_file_open(&work, &file, path, false);
    if (work.err != KITH_OK)
        return work.err;
    while (i < sizeof kinds / sizeof *kinds &&
           !kith_key_file_is(&file, kinds[i].kind))
        i++;
    if (i == sizeof kinds / sizeof *kinds) {
        kith_keys_fail(&work, KITH_EPARSE,
                       "%s is not a key file of kith: its first line is not "
                       "one of those that kith keys writes",
                       path);
    } else if (kinds[i].secret) { /* Now with its mode. */
        kith_key_file_close(&file);
        kith_key_file_open(&work, &file, path, true);
    }
    if (work.err == KITH_OK) {
        out.kind = kinds[i].kind;
        out.what = kinds[i].what;
        kinds[i].show(&work, &file, &out);
    }
    kith_key_file_close(&file);
    return work.err;
}
