/* `kith keys show`: what a key file says, without its secrets. */
#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#include "kith/text.h"
#include "src/keys/keys_file.h"

struct out {
    char *text;
    size_t size, at;
};

static KITH_PRINTF(3, 4) void add(struct out *out, const char *label,
                                  const char *format, ...)
{
    char value[512];
    va_list list;
    va_start(list, format);
    vsnprintf(value, sizeof value, format, list);
    va_end(list);
    out->at = kith_text_add(out->text, out->size, out->at, "  %-12s %s\n",
                            label, value);
}

static void add_hex(struct out *out, const char *label, const uint8_t *bytes,
                    size_t size)
{
    char hex[2 * 32 + 1];
    kith_text_hex(hex, bytes, size);
    add(out, label, "%s", hex);
}

static void add_time(struct out *out, const char *label, int64_t utc_s)
{
    char text[64] = "an impossible date";
    const time_t t = (time_t)utc_s;
    struct tm parts;
    if (gmtime_r(&t, &parts))
        strftime(text, sizeof text, "%Y-%m-%d %H:%M:%S UTC", &parts);
    add(out, label, "%s", text);
}

static void add_heading(struct out *out, const char *path, const char *what)
{
    out->at =
        kith_text_add(out->text, out->size, out->at, "%s: %s\n", path, what);
}

static void add_print(struct out *out, const char *label, const uint8_t *bytes,
                      size_t size)
{
    uint8_t print[KITH_FINGERPRINT_BYTES];
    kith_fingerprint(bytes, size, print);
    add_hex(out, label, print, sizeof print);
}

static void show_certificate(struct keys_work *work,
                             const struct key_file *file, const char *what,
                             struct out *out)
{
    struct kith_identity identity;
    struct kith_certificate c;
    kith_keys_read_certificate(work, file->path, &identity, &c);
    if (work->err != KITH_OK)
        return;
    add_heading(out, file->path, what);
    add(out, "name", "%s", c.name);
    if (c.rank != KITH_NOBODY)
        add(out, "rank", "%" PRIu32, c.rank);
    add(out, "serial", "%016" PRIx64, c.serial);
    add_hex(out, "cluster", c.cluster, sizeof c.cluster);
    add_hex(out, "key", c.key, sizeof c.key);
    add_time(out, "not before", c.not_before_s);
    add_time(out, "not after", c.not_after_s);
    char roles[64];
    snprintf(roles, sizeof roles, "%s%s%s",
             c.roles & KITH_ROLE_TRAIN ? " train" : "",
             c.roles & KITH_ROLE_OBSERVE ? " observe" : "",
             c.roles & KITH_ROLE_SEED ? " seed" : "");
    add(out, "roles", "%s", roles + 1); /* A certificate has at least one. */
    add_print(out, "fingerprint", identity.certificate,
              identity.certificate_bytes);
}

static void show_crl(struct keys_work *work, const struct key_file *file,
                     const char *what, struct out *out)
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
    add_heading(out, file->path, what);
    add_hex(out, "cluster", crl.cluster, sizeof crl.cluster);
    add(out, "sequence", "%" PRIu64, crl.sequence);
    add_time(out, "issued", crl.issued_s);
    add(out, "revoked", "%" PRIu32 " certificate%s", crl.count,
        crl.count == 1 ? "" : "s");
    for (uint32_t i = 0; i < crl.count; i++)
        add_hex(out, "", crl.fingerprints[i], KITH_FINGERPRINT_BYTES);
    free(bytes);
}

/* Files of "name:" and "key:" lines: node.key, node.request, ca.key. */
static void show_key(struct keys_work *work, const struct key_file *file,
                     const char *what, struct out *out)
{
    char name[KITH_NAME_MAX];
    uint8_t key[32];
    const bool named = !kith_key_file_is(file, KEYS_AUTHORITY);
    kith_key_file_bytes(work, file, "key", key, sizeof key);
    if (named)
        kith_key_file_field(work, file, "name", name, sizeof name);
    if (work->err != KITH_OK)
        return;
    add_heading(out, file->path, what);
    if (named)
        add(out, "name", "%s", name);
    add_hex(out, "key", key, sizeof key);
    add_print(out, "fingerprint", key, sizeof key);
}

/* The policy, which is the authority's: an allow-list has none. */
static void add_policy(struct out *out, const struct kith_trust *trust)
{
    const struct kith_suite_facts *facts = kith_suite_facts(trust->suite);
    if (facts)
        add(out, "suite", "%s, signed by the authority%s",
            kith_suite_word(trust->suite),
            facts->unaudited ? "; unaudited (kith list suites)" : "");
    else
        add(out, "suite", "%s",
            "no policy: as network.suite of the experiment says");
}

static void show_trust(struct keys_work *work, const struct key_file *file,
                       const char *what, struct out *out)
{
    struct kith_trust trust = {.authority_count = 0};
    kith_keys_parse_trust(work, file, &trust);
    if (work->err == KITH_OK) {
        add_heading(out, file->path,
                    trust.authority_count ? what : "an allow-list");
        add_hex(out, "cluster", trust.cluster, sizeof trust.cluster);
        for (uint32_t i = 0; i < trust.authority_count; i++)
            add_hex(out, "authority", trust.authority[i], 32);
        add_policy(out, &trust);
        if (!trust.authority_count)
            add(out, "allowed", "%" PRIu32 " key%s", trust.allowed_count,
                trust.allowed_count == 1 ? "" : "s");
    }
    free((void *)(uintptr_t)trust.allowed);
}

enum kith_err kith_keys_show(const char *path, char *text, size_t size,
                             char *error)
{
    static const struct {
        const char *kind, *what;
        bool secret;
        void (*show)(struct keys_work *work, const struct key_file *file,
                     const char *what, struct out *out);
    } kinds[] = {{KEYS_NODE, "a node's secret key", true, show_key},
                 {KEYS_AUTHORITY, "an authority's secret key", true, show_key},
                 {KEYS_REQUEST, "a request for a certificate", false, show_key},
                 {KEYS_CLUSTER, "whom a cluster trusts", false, show_trust},
                 {KEYS_CERTIFICATE, "a certificate", false, show_certificate},
                 {KEYS_CRL, "a revocation list", false, show_crl}};
    struct key_file file;
    struct out out = {text, size, 0};
    struct keys_work work = kith_keys_start(error);
    size_t i = 0;
    text[0] = '\0';
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
    if (work.err == KITH_OK)
        kinds[i].show(&work, &file, kinds[i].what, &out);
    kith_key_file_close(&file);
    return work.err;
}
