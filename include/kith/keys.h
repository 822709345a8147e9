/* Key files on disk (reference/faults.md 3.3): text, base64, mode 0600 enforced
 * for secrets. Used by `kith keys`, `kith peer` and the lab. */
#ifndef KITH_KEYS_H
#define KITH_KEYS_H

#include "kith/err.h"
#include "kith/session.h"

#ifdef __cplusplus
extern "C" {
#endif

#define KITH_KEYS_ERROR_BYTES 512

/* DIR/ca.key (0600) and DIR/ca.pub (cluster id on its first line). */
KITH_MUST_CHECK enum kith_err kith_keys_new_authority(const char *folder,
                                                      char *error);
/* DIR/node.key (0600) and DIR/node.request (name, public key). */
KITH_MUST_CHECK enum kith_err kith_keys_new_node(const char *folder,
                                                 const char *name, char *error);
/* Reads REQUEST, signs with CA_DIR/ca.key, writes OUT. days in 1..90. */
KITH_MUST_CHECK enum kith_err kith_keys_certify(const char *authority_folder,
                                                const char *request,
                                                const char *out, unsigned days,
                                                uint32_t roles, char *error);
/* Adds the certificate file's fingerprint to CA_DIR/crl, sequence + 1. */
KITH_MUST_CHECK enum kith_err kith_keys_revoke(const char *authority_folder,
                                               const char *certificate,
                                               char *error);
/* Loads node.key, node.crt and ca.pub | allow, crl from a folder. Refuses
 * secrets that others can read. The trust's arrays are malloc'd. */
KITH_MUST_CHECK enum kith_err kith_keys_load(const char *folder,
                                             struct kith_identity *identity,
                                             struct kith_trust *trust,
                                             char *error);
void kith_keys_free(struct kith_identity *identity, struct kith_trust *trust);
/* Human-readable description of any key file, to `text`. */
KITH_MUST_CHECK enum kith_err kith_keys_show(const char *path, char *text,
                                             size_t size, char *error);

#ifdef __cplusplus
}
#endif
#endif
