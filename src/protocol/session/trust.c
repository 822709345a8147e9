/* Whom we speak to: a certificate by one of two authorities, not revoked, in
 * its days; or, without an authority, a key on the allow-list.
 *
 * Signature before dates: an unsigned certificate's dates say nothing. */
#include <sodium.h>
#include <string.h>

#include "kith/assert.h"
#include "kith/text.h"
#include "src/protocol/session/certificate.h"

/* Clocks of honest machines differ by less. */
#define SKEW_S INT64_C(300)

/* 256 bits: to make two certificates of one fingerprint takes 2^128 tries. */
void kith_fingerprint(const uint8_t *bytes, size_t size,
                      uint8_t fingerprint[KITH_FINGERPRINT_BYTES])
{
    crypto_generichash(fingerprint, KITH_FINGERPRINT_BYTES, bytes, size, NULL,
                       0);
}

/* Binary search in a sorted list of public values. */
static bool list_has(const uint8_t (*list)[KITH_FINGERPRINT_BYTES],
                     uint32_t count,
                     const uint8_t fingerprint[KITH_FINGERPRINT_BYTES])
{
    uint32_t low = 0, high = count;
    while (low < high) {
        const uint32_t middle = low + (high - low) / 2;
        KITH_ASSERT(low <= middle && middle < high && high <= count);
        const int order =
            memcmp(list[middle], fingerprint, KITH_FINGERPRINT_BYTES);
        if (order == 0)
            return true;
        if (order < 0)
            low = middle + 1;
        else
            high = middle;
    }
    return false;
}

/* "2026-01-02" from seconds of UTC; days to date after Hinnant,
 * "chrono-compatible low-level date algorithms". */
static size_t add_date(char *text, size_t size, size_t at, int64_t utc_s)
{
    KITH_ASSERT(utc_s >= 0); /* division rounds toward zero */
    const int64_t days = utc_s / 86400 + 719468; /* since 0000-03-01 */
    const int64_t era = days / 146097, day_of_era = days % 146097;
    const int64_t year_of_era = (day_of_era - day_of_era / 1460 +
                                 day_of_era / 36524 - day_of_era / 146096) /
                                365;
    const int64_t day_of_year =
        day_of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
    const int64_t month = (5 * day_of_year + 2) / 153; /* March is 0 */
    const int64_t day = day_of_year - (153 * month + 2) / 5 + 1;
    KITH_ASSERT(month >= 0 && month <= 11 && day >= 1 && day <= 31);
    const int64_t year = year_of_era + era * 400 + (month >= 10 ? 1 : 0);
    return kith_text_add(
        text, size, at, "%04lld-%02lld-%02lld", (long long)year,
        (long long)(month >= 10 ? month - 9 : month + 3), (long long)day);
}

/* A list of keys in place of an authority, for small clusters: whoever edits
 * the file decides, and no date ends it. */
static enum kith_err check_allowed(const struct kith_trust *trust, size_t size,
                                   const uint8_t key[KITH_KEY_BYTES],
                                   struct kith_certificate *decoded,
                                   const char **why)
{
    uint8_t fingerprint[KITH_FINGERPRINT_BYTES];
    KITH_ASSERT(trust->authority_count == 0);
    kith_fingerprint(key, KITH_KEY_BYTES, fingerprint);
    *why = "key is not on the allow-list";
    if (!list_has(trust->allowed, trust->allowed_count, fingerprint))
        return KITH_EAUTH;
    *why = "a certificate came where an allow-list rules";
    if (size != 0)
        return KITH_EAUTH;
    /* Nobody vouches for a name: the key's fingerprint is the name. */
    memcpy(decoded->cluster, trust->cluster, KITH_CLUSTER_BYTES);
    memcpy(decoded->key, key, KITH_KEY_BYTES);
    kith_text_hex(decoded->name, fingerprint, 8);
    decoded->not_after_s = INT64_MAX;
    decoded->roles = KITH_ROLE_TRAIN;
    return KITH_OK;
}

static enum kith_err check_signed(const struct kith_trust *trust,
                                  const uint8_t *bytes, size_t size,
                                  const uint8_t key[KITH_KEY_BYTES],
                                  struct kith_certificate *decoded,
                                  const char **why)
{
    /* The reasons differ in the log alone: a peer is told nothing, but that the
     * connection ends. */
    KITH_ASSERT(trust->authority_count >= 1);
    const enum kith_err err = kith_certificate_decode(bytes, size, decoded);
    *why = err == KITH_EVERSION ? "certificate is of another version: both "
                                  "need the same release, and a certificate "
                                  "from it"
                                : "certificate is malformed";
    if (err != KITH_OK)
        return err;
    *why = "certificate is for another cluster";
    if (memcmp(decoded->cluster, trust->cluster, KITH_CLUSTER_BYTES) != 0)
        return KITH_EAUTH;
    *why = "certificate is not signed by an authority of this cluster";
    if (!kith_certificate_is_signed(trust, bytes, size))
        return KITH_EAUTH;
    /* A certificate is public: it proves something about its own key alone. */
    *why = "certificate is for another key";
    if (memcmp(decoded->key, key, KITH_KEY_BYTES) != 0)
        return KITH_EAUTH;
    uint8_t fingerprint[KITH_FINGERPRINT_BYTES];
    kith_fingerprint(bytes, size, fingerprint);
    *why = "certificate is revoked";
    if (list_has(trust->revoked, trust->revoked_count, fingerprint))
        return KITH_EREVOKED;
    KITH_ASSERT(decoded->not_before_s <= decoded->not_after_s);
    return KITH_OK;
}

enum kith_err kith_trust_explain(const struct kith_trust *trust,
                                 const uint8_t *certificate, size_t size,
                                 const uint8_t key[KITH_KEY_BYTES],
                                 int64_t utc_s,
                                 struct kith_certificate *decoded,
                                 char reason[KITH_REASON_BYTES])
{
    KITH_ASSERT(trust->authority_count <= 2);
    const char *why = "";
    memset(decoded, 0, sizeof *decoded);
    enum kith_err err =
        trust->authority_count > 0
            ? check_signed(trust, certificate, size, key, decoded, &why)
            : check_allowed(trust, size, key, decoded, &why);
    KITH_ASSERT(decoded->not_before_s >= 0 && decoded->not_after_s >= 0);
    /* Written so that no side overflows, whatever the dates: both are from a
     * file, and the clock may be 1970. */
    const bool early = utc_s < decoded->not_before_s - SKEW_S;
    const bool late = utc_s > SKEW_S && utc_s - SKEW_S > decoded->not_after_s;
    if (err == KITH_OK && (early || late)) {
        err = KITH_EEXPIRED;
        const size_t at =
            kith_text_add(reason, KITH_REASON_BYTES, 0,
                          early ? "certificate is not valid before "
                                : "certificate expired ");
        add_date(reason, KITH_REASON_BYTES, at,
                 early ? decoded->not_before_s : decoded->not_after_s);
    } else if (err != KITH_OK) {
        kith_text_add(reason, KITH_REASON_BYTES, 0, "%s", why);
    }
    return err;
}

enum kith_err kith_trust_check(const struct kith_trust *trust,
                               const uint8_t *certificate, size_t size,
                               const uint8_t key[KITH_KEY_BYTES], int64_t utc_s,
                               struct kith_certificate *decoded)
{
    char reason[KITH_REASON_BYTES];
    return kith_trust_explain(trust, certificate, size, key, utc_s, decoded,
                              reason);
}
