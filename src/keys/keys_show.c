/* `kith keys show`: what a key file says, without its secrets. */
#include <inttypes.h>
#include <sodium.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "kith/text.h"
#include "src/keys/keys_file.h"

struct out {
    char *text;
    size_t size, at;
};

static void add_hex(struct out *out, const char *label, const uint8_t *bytes,
                    size_t size)
{
    char hex[2 * 32 + 1];
    kith_text_hex(hex, bytes, size);
    out->at = kith_text_add(out->text, out->size, out->at, "  %-12s %s\n",
                            label, hex);
}

static void add_text(struct out *out, const char *label, const char *value)
{
    out->at = kith_text_add(out->text, out->size, out->at, "  %-12s %s\n",
                            label, value);
}

static void add_time(struct out *out, const char *label, int64_t utc_s)
{
    char text[64] = "an impossible date";
    const time_t t = (time_t)utc_s;
    struct tm parts;
    if (gmtime_r(&t, &parts))
        strftime(text, sizeof text, "%Y-%m-%d %H:%M:%S UTC", &parts);
    add_text(out, label, text);
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

/* "3 keys" */
static void add_count(struct out *out, const char *label, uint32_t count,
                      const char *what)
{
    char text[64];
    snprintf(text, sizeof text, "%" PRIu32 " %s%s", count, what,
             count == 1 ? "" : "s");
    add_text(out, label, text);
}

static enum kith_err show_certificate(const char *path, struct out *out,
                                      char *error)
{
    struct kith_identity identity;
    struct kith_certificate c;
    char roles[64], number[32];
    enum kith_err err =
        kith_key_file_read_certificate(path, &identity, &c, error);
    if (err != KITH_OK)
        return err;
    add_heading(out, path, "a certificate");
    add_text(out, "name", c.name);
    snprintf(number, sizeof number, "%016" PRIx64, c.serial);
    add_text(out, "serial", number);
    add_hex(out, "cluster", c.cluster, sizeof c.cluster);
    add_hex(out, "key", c.key, sizeof c.key);
    add_time(out, "not before", c.not_before_s);
    add_time(out, "not after", c.not_after_s);
    snprintf(roles, sizeof roles, "%s%s%s",
             c.roles & KITH_ROLE_TRAIN ? " train" : "",
             c.roles & KITH_ROLE_OBSERVE ? " observe" : "",
             c.roles & KITH_ROLE_SEED ? " seed" : "");
    add_text(out, "roles", roles + 1); /* A certificate has at least one. */
    add_print(out, "fingerprint", identity.certificate,
              identity.certificate_bytes);
    return KITH_OK;
}

static enum kith_err show_crl(const char *path, struct out *out, char *error)
{
    uint8_t *bytes = NULL;
    size_t size = 0;
    struct kith_crl crl;
    char number[64];
    enum kith_err err = kith_key_file_read_crl(path, &bytes, &size, error);
    if (err != KITH_OK)
        return err;
    if (!bytes || kith_crl_decode(bytes, size, &crl) != KITH_OK) {
        free(bytes);
        return kith_key_file_fail(error, KITH_EPARSE, "%s is damaged", path);
    }
    add_heading(out, path, "a revocation list");
    add_hex(out, "cluster", crl.cluster, sizeof crl.cluster);
    snprintf(number, sizeof number, "%" PRIu64, crl.sequence);
    add_text(out, "sequence", number);
    add_time(out, "issued", crl.issued_s);
    add_count(out, "revoked", crl.count, "certificate");
    for (uint32_t i = 0; i < crl.count; i++)
        add_hex(out, "", crl.fingerprints[i], KITH_FINGERPRINT_BYTES);
    free(bytes);
    return KITH_OK;
}

/* Files of "name:" and "key:" lines: node.key, node.request, ca.key. */
static enum kith_err show_key(const char *path, const char *text,
                              const char *what, struct out *out, char *error)
{
    char name[KITH_NAME_MAX];
    uint8_t key[32];
    const enum kith_err err =
        kith_key_file_bytes(path, text, "key", key, 32, error);
    if (err != KITH_OK)
        return err;
    add_heading(out, path, what);
    if (!kith_key_file_is(text, KEYS_AUTHORITY)) {
        if (kith_key_file_field(path, text, "name", name, sizeof name, error) !=
            KITH_OK)
            return KITH_EPARSE;
        add_text(out, "name", name);
    }
    add_hex(out, "key", key, sizeof key);
    add_print(out, "fingerprint", key, sizeof key);
    return KITH_OK;
}

static enum kith_err show_trust(const char *path, const char *text,
                                struct out *out, char *error)
{
    struct kith_trust trust;
    memset(&trust, 0, sizeof trust);
    const enum kith_err err =
        kith_key_file_parse_trust(path, text, &trust, error);
    if (err == KITH_OK) {
        add_heading(out, path,
                    trust.authority_count ? "whom a cluster trusts"
                                          : "an allow-list");
        add_hex(out, "cluster", trust.cluster, sizeof trust.cluster);
        for (uint32_t i = 0; i < trust.authority_count; i++)
            add_hex(out, "authority", trust.authority[i], 32);
        if (!trust.authority_count)
            add_count(out, "allowed", trust.allowed_count, "key");
    }
    free((void *)(uintptr_t)trust.allowed);
    return err;
}

enum kith_err kith_keys_show(const char *path, char *text, size_t size,
                             char *error)
{
    char *file = NULL;
    struct out out = {text, size, 0};
    error[0] = text[0] = '\0';
    enum kith_err err = kith_key_file_read(path, false, &file, error);
    if (err != KITH_OK)
        return err;
    const bool secret = kith_key_file_is(file, KEYS_NODE) ||
                        kith_key_file_is(file, KEYS_AUTHORITY);
    kith_key_file_free_text(file);
    err =
        kith_key_file_read(path, secret, &file, error); /* Now with its mode. */
    if (err != KITH_OK)
        return err;
    if (kith_key_file_is(file, KEYS_NODE))
        err = show_key(path, file, "a node's secret key", &out, error);
    else if (kith_key_file_is(file, KEYS_AUTHORITY))
        err = show_key(path, file, "an authority's secret key", &out, error);
    else if (kith_key_file_is(file, KEYS_REQUEST))
        err = show_key(path, file, "a request for a certificate", &out, error);
    else if (kith_key_file_is(file, KEYS_CLUSTER))
        err = show_trust(path, file, &out, error);
    else if (kith_key_file_is(file, KEYS_CERTIFICATE))
        err = show_certificate(path, &out, error);
    else if (kith_key_file_is(file, KEYS_CRL))
        err = show_crl(path, &out, error);
    else
        err = kith_key_file_fail(
            error, KITH_EPARSE,
            "%s is not a key file of kith: its first line is not "
            "one of those that kith keys writes",
            path);
    kith_key_file_free_text(file);
    return err;
}
