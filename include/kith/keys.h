/* Key files on disk: text, base64, mode 0600 enforced
 * for secrets. Used by `kith keys`, `kith peer` and the lab.
 *
 *   ca.key        kith-authority-v1    cluster, key, secret   0600, offline
 *   ca.pub        kith-cluster-v1 ID   authority KEY, once or twice (a roll)
 *                                      suite NAME SIGNATURE, where it says so
 *   allow         kith-cluster-v1 ID   FINGERPRINT name, one line per key
 *   node.key      kith-key-v1          name, created, key, secret  0600
 *   node.request  kith-request-v1      name, key
 *   node.crt      kith-certificate-v1  certificate
 *   crl           kith-crl-v1          crl
 *   crl.seen      kith-crl-v1          the newest list that a peer had
 *   ranks         kith-ranks-v1        the authority's: RANK name, a line each
 *
 * The first line names the kind; the others are "field: value", values that are
 * bytes in base64; # starts a comment. ID and KEY are 32 bytes. A file is
 * written once, to a new name (O_EXCL), and synced; only crl, allow and
 * ranks are replaced, by rename. Every error is a sentence in `error`, which
 * holds KITH_KEYS_ERROR_BYTES. */
#ifndef KITH_KEYS_H
#define KITH_KEYS_H

#include "kith/err.h"
#include "kith/session.h"

#define KITH_KEYS_ERROR_BYTES 512

/* DIR/ca.key (0600) and DIR/ca.pub (cluster id on its first line). DIR is made
 * where it is missing. `suite` is the policy, which ca.pub carries signed;
 * KITH_SUITE_ANY: none. KITH_EEXIST: there is one already. */
KITH_MUST_CHECK enum kith_err
kith_keys_new_authority(const char *folder, enum kith_suite suite, char *error);
/* DIR/node.key (0600) and DIR/node.request (name, public key). */
KITH_MUST_CHECK enum kith_err kith_keys_new_node(const char *folder,
                                                 const char *name, char *error);
/* Reads REQUEST, signs with CA_DIR/ca.key, writes OUT. days in 1..90. The rank
 * is noted in CA_DIR/ranks beside the name, and KITH_NOBODY asks for the one
 * that stands there (a visitor, without the role train, needs none). */
KITH_MUST_CHECK enum kith_err kith_keys_certify(const char *authority_folder,
                                                const char *request,
                                                const char *out, unsigned days,
                                                uint32_t roles, uint32_t rank,
                                                char *error);
/* Adds the certificate file's fingerprint to CA_DIR/crl, sequence + 1. */
KITH_MUST_CHECK enum kith_err kith_keys_revoke(const char *authority_folder,
                                               const char *certificate,
                                               char *error);
/* Adds the request's key to FOLDER/allow, which is made, with a new cluster id,
 * where it is missing. KITH_EEXIST: the key is on it. */
KITH_MUST_CHECK enum kith_err kith_keys_allow(const char *folder,
                                              const char *request, char *error);
/* Loads node.key, node.crt and ca.pub | allow, the newer of crl and crl.seen
 * from a folder. Refuses
 * secrets that others can read, and a certificate that the trust would refuse
 * now. The trust's arrays are malloc'd. */
KITH_MUST_CHECK enum kith_err kith_keys_load(const char *folder,
                                             struct kith_identity *identity,
                                             struct kith_trust *trust,
                                             char *error);
/* A trust whose arrays are its own. */
KITH_MUST_CHECK enum kith_err kith_keys_copy_trust(struct kith_trust *to,
                                                   const struct kith_trust *of);
/* A copy of this list takes the place of the trust's, where kith_crl_verify()
 * allows it; otherwise its error, or KITH_ENOMEM. */
KITH_MUST_CHECK enum kith_err kith_keys_take_list(struct kith_trust *trust,
                                                  const uint8_t *bytes,
                                                  size_t size);
/* Writes the trust's list to FOLDER/crl.seen, at once or not at all: neither a
 * restart nor an older crl takes a revocation back. */
KITH_MUST_CHECK enum kith_err
kith_keys_keep_list(const char *folder, const struct kith_trust *trust,
                    char *error);
void kith_keys_free(struct kith_identity *identity, struct kith_trust *trust);

/* One fact of a key file; its texts are valid during the call alone. */
struct kith_key_fact {
    enum { KITH_KEY_TEXT, KITH_KEY_NUMBER, KITH_KEY_ITEM } shape;
    const char *label; /* for people; NULL: the file's kind, `note` in words */
    const char *key;   /* for programs; an ITEM is one of the array's */
    const char *value; /* NULL: there is none */
    const char *note;  /* what stands behind the value for people, or "" */
};
typedef void kith_key_told(void *user, const struct kith_key_fact *fact);
/* Tells what any key file says, its kind first; never a secret. */
KITH_MUST_CHECK enum kith_err
kith_keys_show(const char *path, kith_key_told *tell, void *user, char *error);

#endif
