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

/* A revocation list of 4,096 fingerprints is 175 kB of base64; an allow-list
 * of as many lines, 500 kB. */
#define KEYS_FILE_BYTES_MAX (1u << 20)
#define KEYS_BASE64_BYTES(n) (((n) + 2) / 3 * 4 + 1)

/* Writes the sentence and returns the code. */
enum kith_err kith_key_file_fail(char *error, enum kith_err code,
                                 const char *format, ...) KITH_PRINTF(3, 4);
enum kith_err kith_key_file_fail_errno(char *error, const char *what,
                                       const char *path);

/* folder/name into path (KITH_PATH_BYTES_MAX). */
KITH_MUST_CHECK enum kith_err kith_key_file_path(char *path, const char *folder,
                                                 const char *name, char *error);
bool kith_key_file_exists(const char *path);
KITH_MUST_CHECK enum kith_err kith_key_file_make_folder(const char *folder,
                                                        char *error);

/* The whole file, terminated and without a zero byte inside, to be freed with
 * kith_key_file_free_text(). `secret` refuses a file that group or others may
 * touch. */
KITH_MUST_CHECK enum kith_err kith_key_file_read(const char *path, bool secret,
                                                 char **text, char *error);
/* Wipes up to the end of the string, which is all of it. */
void kith_key_file_free_text(char *text);
/* A new file (KITH_EEXIST), synced; nothing is left of a failed one. */
KITH_MUST_CHECK enum kith_err kith_key_file_write_new(const char *path,
                                                      const char *text,
                                                      bool secret, char *error);
/* Replaces the file at once, by rename. */
KITH_MUST_CHECK enum kith_err
kith_key_file_replace(const char *path, const char *text, char *error);

/* Does the first line start with this word? */
bool kith_key_file_is(const char *text, const char *kind);
/* The value of "field: value" on a line of its own; KITH_EPARSE if absent or
 * longer. */
KITH_MUST_CHECK enum kith_err
kith_key_file_field(const char *path, const char *text, const char *field,
                    char *value, size_t size, char *error);
/* The same, in base64, of exactly `size` bytes. */
KITH_MUST_CHECK enum kith_err
kith_key_file_bytes(const char *path, const char *text, const char *field,
                    uint8_t *bytes, size_t size, char *error);
/* Base64 of at most `capacity` bytes, ending at a blank or line end. */
bool kith_key_file_unbase64(const char *text, uint8_t *bytes, size_t capacity,
                            size_t *size);
/* The next line that is neither empty nor a comment, after the one at `line`;
 * NULL at the end. */
const char *kith_key_file_next_line(const char *line);

/* keys_trust.c: ca.pub or allow into trust (its cluster, authorities, allowed).
 */
KITH_MUST_CHECK enum kith_err kith_key_file_read_trust(const char *folder,
                                                       struct kith_trust *trust,
                                                       char *error);
KITH_MUST_CHECK enum kith_err
kith_key_file_parse_trust(const char *path, const char *text,
                          struct kith_trust *trust, char *error);
/* The list in FOLDER/crl, checked; *bytes malloc'd or NULL. */
KITH_MUST_CHECK enum kith_err kith_key_file_read_crl(const char *path,
                                                     uint8_t **bytes,
                                                     size_t *size, char *error);
KITH_MUST_CHECK enum kith_err kith_key_file_write_crl(const char *path,
                                                      const uint8_t *bytes,
                                                      size_t size, char *error);
/* Copies the list's fingerprints into trust. */
KITH_MUST_CHECK enum kith_err
kith_key_file_adopt_crl(struct kith_trust *trust, const struct kith_crl *crl,
                        char *error);
KITH_MUST_CHECK enum kith_err
kith_key_file_read_certificate(const char *path, struct kith_identity *identity,
                               struct kith_certificate *certificate,
                               char *error);

#endif
