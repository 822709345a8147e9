/* Goal: no bytes make certificates or revocation lists misbehave, and one
 * certificate has one encoding. Method: the target owns the authority, so what
 * the fuzzer writes is signed again and gets past the signature.
 *
 * Input: byte 0 & 1 chooses certificate or list; the rest is all of it but the
 * signature. */
#include <sodium.h>
#include <string.h>

#include "kith/assert.h"
#include "tests/support/sessions.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static struct sessions_cluster cluster;
static struct kith_identity alice;

static void sign(const char *context, size_t context_bytes, const uint8_t *body,
                 size_t size, uint8_t signature[64])
{
    uint8_t covered[16 + KITH_CERTIFICATE_BYTES_MAX];
    KITH_ASSERT(context_bytes + size <= sizeof covered);
    memcpy(covered, context, context_bytes);
    memcpy(covered + context_bytes, body, size);
    crypto_sign_detached(signature, NULL, covered, context_bytes + size,
                         cluster.secret);
}

static void try_certificate(const uint8_t *body, size_t size)
{
    uint8_t bytes[KITH_CERTIFICATE_BYTES_MAX + 66], again[sizeof bytes];
    struct kith_certificate c, checked;
    if (size > KITH_CERTIFICATE_BYTES_MAX)
        return;
    memcpy(bytes, body, size);
    memset(bytes + size, 0, 66);
    bytes[size] = 12;
    bytes[size + 1] = KITH_SIGNATURE_BYTES;
    if (kith_certificate_decode(bytes, size + 66, &c) != KITH_OK)
        return;
    KITH_ASSERT(kith_trust_check(&cluster.trust, bytes, size + 66, c.key,
                                 SESSIONS_UTC_S, &checked) == KITH_EAUTH);
    KITH_ASSERT(kith_certificate_sign(&c, cluster.secret, again) == size + 66);
    KITH_ASSERT(memcmp(again, bytes, size) == 0);
    sign("kith-cert-v2", 13, bytes, size, bytes + size + 2);
    KITH_ASSERT(memcmp(again, bytes, size + 66) == 0);
    const enum kith_err err = kith_trust_check(
        &cluster.trust, bytes, size + 66, alice.key, SESSIONS_UTC_S, &checked);
    if (err == KITH_OK)
        KITH_ASSERT(memcmp(checked.key, alice.key, 32) == 0 &&
                    memcmp(checked.cluster, cluster.trust.cluster, 32) == 0 &&
                    checked.not_before_s <= SESSIONS_UTC_S + 300 &&
                    checked.not_after_s >= SESSIONS_UTC_S - 300);
}

static void try_crl(const uint8_t *body, size_t size)
{
    uint8_t bytes[16 + KITH_CERTIFICATE_BYTES_MAX + 64];
    struct kith_crl crl;
    if (size > KITH_CERTIFICATE_BYTES_MAX)
        return;
    memcpy(bytes, body, size);
    sign("", 0, bytes, size, bytes + size);
    if (kith_crl_decode(bytes, size + 64, &crl) != KITH_OK)
        return;
    KITH_ASSERT(kith_crl_size(crl.count) == size + 64);
    const enum kith_err err =
        kith_crl_verify(&cluster.trust, bytes, size + 64, &crl);
    KITH_ASSERT(err == KITH_OK || err == KITH_EAUTH || err == KITH_EEXPIRED);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    if (cluster.trust.authority_count == 0) {
        sessions_cluster(&cluster, "home");
        sessions_identity(&alice, "alice", &cluster);
    }
    if (size == 0)
        return 0;
    if (data[0] & 1)
        try_crl(data + 1, size - 1);
    else
        try_certificate(data + 1, size - 1);
    return 0;
}
