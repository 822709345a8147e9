/* Reading and writing key files; private to src/keys/. */
#ifndef KITH_KEYS_KEYS_FILE_H
#define KITH_KEYS_KEYS_FILE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "kith/keys.h"

#define KEYS_AUTHORITY "kith-authority-v1"
#define KEYS_CLUSTER "kith-cluster-v1"
#define KEYS_NODE "kith-key-v1"
#define KEYS_REQUEST "kith-request-v1"
#define KEYS_CERTIFICATE "kith-certificate-v1"
#define KEYS_CRL "kith-crl-v1"
#define KEYS_RANKS "kith-ranks-v1"
/* Lines of ca.pub, after the first. */
#define KEYS_AUTHORITY_LINE "authority "
#define KEYS_SUITE_LINE "suite "

/* A revocation list of 4,096 fingerprints is 175 kB of base64; an allow-list
 * of as many lines, 500 kB. */
#define KEYS_FILE_BYTES_MAX (1u << 20)
#define KEYS_BASE64_BYTES(n) (((n) + 2) / 3 * 4 + 1)

/* An operation on key files. Its first failure is kept; the functions below
 * then do nothing more, so that only the end of an operation looks at it. */
struct keys_work {
    enum kith_err err;
    char *error; /* KITH_KEYS_ERROR_BYTES: the sentence for `err` */
};
/* A key file that was read. */
struct key_file {
    const char *path;
    char *text; /* terminated, without a zero byte inside; NULL: not read */
};

/* With libsodium ready, or failed. */
struct keys_work kith_keys_start(char *error);
/* Keeps the sentence and the code, unless there is a failure already. */
enum kith_err kith_keys_fail(struct keys_work *work, enum kith_err code,
                             const char *format, ...) KITH_PRINTF(3, 4);

/* folder/name into path (KITH_PATH_BYTES_MAX). */
void kith_keys_path(struct keys_work *work, char *path, const char *folder,
                    const char *name);
bool kith_key_file_exists(const char *path);
void kith_keys_make_folder(struct keys_work *work, const char *folder);

/* The whole file; `path` must outlive it. `secret` refuses a file that group or
 * others may touch. To be closed also after a failure. */
void kith_key_file_open(struct keys_work *work, struct key_file *file,
                        const char *path, bool secret);
/* Wipes the text. */
void kith_key_file_close(struct key_file *file);
/* A new file (KITH_EEXIST), synced; nothing is left of a failed one. */
void kith_keys_write_new(struct keys_work *work, const char *path,
                         const char *text, bool secret);
/* Replaces the file at once, by rename. */
void kith_keys_replace(struct keys_work *work, const char *path,
                       const char *text);

/* Does the first line start with this word? */
bool kith_key_file_is(const struct key_file *file, const char *kind);
/* Fails where it does not: the file is not `what`. */
void kith_key_file_expect(struct keys_work *work, const struct key_file *file,
                          const char *kind, const char *what);
/* The value of "field: value" on a line of its own; KITH_EPARSE if absent or
 * longer. */
void kith_key_file_field(struct keys_work *work, const struct key_file *file,
                         const char *field, char *value, size_t size);
/* The same, in base64, of exactly `size` bytes. */
void kith_key_file_bytes(struct keys_work *work, const struct key_file *file,
                         const char *field, uint8_t *bytes, size_t size);
/* Base64 of at most `capacity` bytes (size NULL: of exactly as many), ending at
 * a blank or line end. */
bool kith_key_file_unbase64(const char *text, uint8_t *bytes, size_t capacity,
                            size_t *size);
/* The next line that is neither empty nor a comment, after the one at `line`;
 * NULL at the end. */
const char *kith_key_file_next_line(const char *line);

/* keys_trust.c: ca.pub or allow into trust (its cluster, authorities, allowed).
 */
void kith_keys_read_trust(struct keys_work *work, const char *folder,
                          struct kith_trust *trust);
void kith_keys_parse_trust(struct keys_work *work, const struct key_file *file,
                           struct kith_trust *trust);
void kith_keys_sort(uint8_t (*list)[KITH_FINGERPRINT_BYTES], uint32_t count);
/* The list in the file, checked; *bytes malloc'd or NULL. */
void kith_keys_open_crl(struct keys_work *work, const char *path,
                        uint8_t **bytes, size_t *size);
void kith_keys_write_crl(struct keys_work *work, const char *path,
                         const uint8_t *bytes, size_t size);
/* keys_ranks.c: the rank that this name has in the authority's folder or, where
 * it is not KITH_NOBODY, is to have: refuses a second rank of a name and a
 * second name of a rank. */
void kith_keys_give_rank(struct keys_work *work, const char *folder,
                         const char *name, uint32_t *rank);
void kith_keys_read_certificate(struct keys_work *work, const char *path,
                                struct kith_identity *identity,
                                struct kith_certificate *certificate);

#endif
