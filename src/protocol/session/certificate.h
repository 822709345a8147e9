/* Between certificate.c, trust.c and the session. */
#ifndef KITH_PROTOCOL_SESSION_CERTIFICATE_H
#define KITH_PROTOCOL_SESSION_CERTIFICATE_H

#include "kith/session.h"

/* Form is not looked at beyond the signature's place. */
bool kith_certificate_is_signed(const struct kith_trust *trust,
                                const uint8_t *bytes, size_t size);
/* `signature` (KITH_SIGNATURE_BYTES) over `covered` is an authority's. */
bool kith_trust_signed(const struct kith_trust *trust, const uint8_t *covered,
                       size_t bytes, const uint8_t *signature);

#define KITH_REASON_BYTES 200u
/* kith_trust_check() that also says why not, in `reason`. */
KITH_MUST_CHECK enum kith_err
kith_trust_explain(const struct kith_trust *trust, const uint8_t *certificate,
                   size_t size, const uint8_t key[KITH_KEY_BYTES],
                   int64_t utc_s, struct kith_certificate *decoded,
                   char reason[KITH_REASON_BYTES]);

#endif
