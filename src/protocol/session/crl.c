/* Revocation lists.
 *
 *   list = "kith-crl-v1\0" || cluster (32) || sequence (8) || issued (8)
 *          || count (4) || count fingerprints (32 each), ascending
 *          || Ed25519 signature (64) over all before it
 *
 * The context prefix is the list's own first bytes, so that 128 kB need not be
 * copied to be verified. */
#include <sodium.h>
#include <string.h>

#include "kith/assert.h"
#include "src/protocol/session/bytes.h"
#include "src/protocol/session/certificate.h"

static const char context[] = "kith-crl-v1"; /* its zero byte included */
_Static_assert(KITH_CRL_HEAD_BYTES ==
                   sizeof context + KITH_CLUSTER_BYTES + 8 + 8 + 4,
               "context, cluster, sequence, issued, count");
_Static_assert(KITH_REVOKED_MAX <= UINT32_MAX / KITH_FINGERPRINT_BYTES,
               "sizes of lists fit 32 bits");

size_t kith_crl_size(uint32_t count)
{
    return KITH_CRL_HEAD_BYTES + (size_t)count * KITH_FINGERPRINT_BYTES +
           KITH_SIGNATURE_BYTES;
}

/* Strictly: a fingerprint that stands twice would give one list two encodings,
 * and look-ups are binary searches. */
static bool ascending(const uint8_t (*list)[KITH_FINGERPRINT_BYTES],
                      uint32_t count)
{
    for (uint32_t i = 1; i < count; i++)
        if (memcmp(list[i - 1], list[i], KITH_FINGERPRINT_BYTES) >= 0)
            return false;
    return true;
}

/* The caller's list is signed as it is, not sorted here: who keeps it keeps it
 * sorted, and a mistake shows as KITH_EINVAL instead of as another list. */
enum kith_err kith_crl_sign(const struct kith_crl *crl,
                            const uint8_t secret[64], uint8_t *bytes)
{
    if (crl->count > KITH_REVOKED_MAX || crl->issued_s < 0 ||
        !ascending(crl->fingerprints, crl->count))
        return KITH_EINVAL;
    uint8_t *at = bytes + sizeof context;
    const size_t covered = kith_crl_size(crl->count) - KITH_SIGNATURE_BYTES;
    KITH_ASSERT(covered >= KITH_CRL_HEAD_BYTES);
    memcpy(bytes, context, sizeof context);
    memcpy(at, crl->cluster, KITH_CLUSTER_BYTES);
    put_be(at + KITH_CLUSTER_BYTES, crl->sequence, 8);
    put_be(at + KITH_CLUSTER_BYTES + 8, (uint64_t)crl->issued_s, 8);
    put_be(at + KITH_CLUSTER_BYTES + 16, crl->count, 4);
    if (crl->count > 0)
        memcpy(bytes + KITH_CRL_HEAD_BYTES, crl->fingerprints,
               covered - KITH_CRL_HEAD_BYTES);
    crypto_sign_detached(bytes + covered, NULL, bytes, covered, secret);
    return KITH_OK;
}

enum kith_err kith_crl_decode(const uint8_t *bytes, size_t size,
                              struct kith_crl *crl)
{
    memset(crl, 0, sizeof *crl);
    /* The least size first: the head is read below. */
    if (size < kith_crl_size(0) || memcmp(bytes, context, sizeof context) != 0)
        return KITH_EPARSE;
    const uint8_t *at = bytes + sizeof context;
    const uint64_t issued = get_be(at + KITH_CLUSTER_BYTES + 8, 8);
    const uint64_t count = get_be(at + KITH_CLUSTER_BYTES + 16, 4);
    if (count > KITH_REVOKED_MAX || issued > INT64_MAX ||
        size != kith_crl_size((uint32_t)count))
        return KITH_EPARSE;
    const uint8_t(*list)[KITH_FINGERPRINT_BYTES] =
        (const uint8_t(*)[KITH_FINGERPRINT_BYTES])(bytes + KITH_CRL_HEAD_BYTES);
    if (!ascending(list, (uint32_t)count))
        return KITH_EPARSE;
    memcpy(crl->cluster, at, KITH_CLUSTER_BYTES);
    crl->sequence = get_be(at + KITH_CLUSTER_BYTES, 8);
    crl->issued_s = (int64_t)issued;
    crl->count = (uint32_t)count;
    crl->fingerprints = list;
    KITH_ASSERT(kith_crl_size(crl->count) == size);
    return KITH_OK;
}

enum kith_err kith_crl_verify(const struct kith_trust *trust,
                              const uint8_t *bytes, size_t size,
                              struct kith_crl *crl)
{
    const enum kith_err err = kith_crl_decode(bytes, size, crl);
    if (err != KITH_OK)
        return err;
    if (memcmp(crl->cluster, trust->cluster, KITH_CLUSTER_BYTES) != 0)
        return KITH_EAUTH;
    const size_t covered = size - KITH_SIGNATURE_BYTES;
    KITH_ASSERT(covered >= KITH_CRL_HEAD_BYTES);
    if (!kith_trust_signed(trust, bytes, covered, bytes + covered))
        return KITH_EAUTH;
    /* An older list is authentic too: without this an attacker who replays one
     * would take a revocation back. */
    return crl->sequence > trust->revoked_sequence ? KITH_OK : KITH_EEXPIRED;
}
