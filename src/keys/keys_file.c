/* Key files: bounded reading, writing that either happened or did not, fields
 * and base64. Secrets are wiped before memory is given back. */
#include "src/keys/keys_file.h"

#include <errno.h>
#include <fcntl.h>
#include <sodium.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "kith/plain_file.h"

enum kith_err kith_key_file_fail(char *error, enum kith_err code,
                                 const char *format, ...)
{
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(error, KITH_KEYS_ERROR_BYTES, format, arguments);
    va_end(arguments);
    return code;
}

enum kith_err kith_key_file_fail_errno(char *error, const char *what,
                                       const char *path)
{
    const int code = errno;
    const enum kith_err err =
        code == EEXIST ? KITH_EEXIST : kith_file_error(code);
    return kith_key_file_fail(error, err, "cannot %s %s: %s", what, path,
                              strerror(code));
}

enum kith_err kith_key_file_path(char *path, const char *folder,
                                 const char *name, char *error)
{
    const int n = snprintf(path, KITH_PATH_BYTES_MAX, "%s/%s", folder, name);
    if (n < 0 || n >= (int)KITH_PATH_BYTES_MAX)
        return kith_key_file_fail(
            error, KITH_ELIMIT,
            "path is longer than %u bytes: use a shorter folder",
            KITH_PATH_BYTES_MAX);
    return KITH_OK;
}

bool kith_key_file_exists(const char *path)
{
    struct stat status;
    return stat(path, &status) == 0;
}

enum kith_err kith_key_file_make_folder(const char *folder, char *error)
{
    if (mkdir(folder, 0700) == 0 || errno == EEXIST)
        return KITH_OK;
    return kith_key_file_fail_errno(error, "make folder", folder);
}

void kith_key_file_free_text(char *text)
{
    if (text)
        sodium_memzero(text, strlen(text));
    free(text);
}

/* Refuses what is not a plain file of bounded size, and loose secrets. */
static enum kith_err check_status(int fd, const char *path, bool secret,
                                  size_t *size, char *error)
{
    struct stat status;
    if (fstat(fd, &status) != 0)
        return kith_key_file_fail_errno(error, "look at", path);
    if (!S_ISREG(status.st_mode))
        return kith_key_file_fail(error, KITH_EINVAL, "%s is not a plain file",
                                  path);
    if (secret && (status.st_mode & 077) != 0)
        return kith_key_file_fail(
            error, KITH_EPERM,
            "%s holds a secret and its mode is %04o, so others "
            "can touch it: chmod 600 %s, and make a new key if "
            "others may have read it",
            path, (unsigned)(status.st_mode & 07777), path);
    if (status.st_size < 0 || status.st_size > (off_t)KEYS_FILE_BYTES_MAX)
        return kith_key_file_fail(error, KITH_ELIMIT,
                                  "%s is larger than any key file (%u bytes)",
                                  path, KEYS_FILE_BYTES_MAX);
    *size = (size_t)status.st_size;
    return KITH_OK;
}

static enum kith_err read_all(int fd, const char *path, char *text, size_t size,
                              char *error)
{
    size_t at = 0;
    while (at < size) {
        const ssize_t n = read(fd, text + at, size - at);
        if (n < 0 && errno == EINTR)
            continue;
        if (n < 0)
            return kith_key_file_fail_errno(error, "read", path);
        if (n == 0)
            break;
        at += (size_t)n;
    }
    text[at] = '\0';
    if (strlen(text) != at)
        return kith_key_file_fail(error, KITH_EPARSE, "%s holds a zero byte",
                                  path);
    return KITH_OK;
}

enum kith_err kith_key_file_read(const char *path, bool secret, char **text,
                                 char *error)
{
    size_t size = 0;
    *text = NULL;
    const int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
    if (fd < 0)
        return kith_key_file_fail_errno(error, "open", path);
    enum kith_err err = check_status(fd, path, secret, &size, error);
    if (err == KITH_OK) {
        *text = calloc(1, size + 1);
        err = *text ? read_all(fd, path, *text, size, error)
                    : kith_key_file_fail(error, KITH_ENOMEM, "no memory for %s",
                                         path);
    }
    close(fd);
    if (err != KITH_OK && *text != NULL) {
        /* All of it: what was read may hold a zero byte before the secret. */
        sodium_memzero(*text, size + 1);
        free(*text);
        *text = NULL;
    }
    return err;
}

/* A rename or a new name is durable once its folder is. */
static void sync_folder(const char *path)
{
    char folder[KITH_PATH_BYTES_MAX];
    const char *slash = strrchr(path, '/');
    snprintf(folder, sizeof folder, "%.*s", slash ? (int)(slash - path) : 1,
             slash ? path : ".");
    const int fd =
        open(folder[0] ? folder : "/", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (fd < 0)
        return;
    (void)fsync(fd); /* Some file systems refuse; the data itself is synced. */
    close(fd);
}

static int write_all(int fd, const char *text)
{
    const size_t size = strlen(text);
    for (size_t at = 0; at < size;) {
        const ssize_t n = write(fd, text + at, size - at);
        if (n < 0 && errno == EINTR)
            continue;
        if (n <= 0)
            return -1;
        at += (size_t)n;
    }
    return fsync(fd);
}

enum kith_err kith_key_file_write_new(const char *path, const char *text,
                                      bool secret, char *error)
{
    const int fd = open(path, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC,
                        secret ? 0600 : 0644);
    if (fd < 0 && errno == EEXIST)
        return kith_key_file_fail(error, KITH_EEXIST,
                                  "%s is there already and key files are never "
                                  "overwritten: move it away first",
                                  path);
    if (fd < 0)
        return kith_key_file_fail_errno(error, "create", path);
    enum kith_err err = KITH_OK;
    if (write_all(fd, text) != 0)
        err = kith_key_file_fail_errno(error, "write", path);
    if (close(fd) != 0 && err == KITH_OK)
        err = kith_key_file_fail_errno(error, "close", path);
    if (err != KITH_OK)
        unlink(path);
    else
        sync_folder(path);
    return err;
}

enum kith_err kith_key_file_replace(const char *path, const char *text,
                                    char *error)
{
    char fresh[KITH_PATH_BYTES_MAX + 8];
    snprintf(fresh, sizeof fresh, "%s.new", path);
    unlink(fresh); /* What a crash may have left. */
    enum kith_err err = kith_key_file_write_new(fresh, text, false, error);
    if (err == KITH_OK && rename(fresh, path) != 0) {
        err = kith_key_file_fail_errno(error, "replace", path);
        unlink(fresh);
    }
    if (err == KITH_OK)
        sync_folder(path);
    return err;
}

bool kith_key_file_is(const char *text, const char *kind)
{
    const size_t n = strlen(kind);
    return strncmp(text, kind, n) == 0 && strcspn(text + n, " \r\n") == 0;
}

const char *kith_key_file_next_line(const char *line)
{
    do {
        line = strchr(line, '\n');
        if (!line)
            return NULL;
        line++;
    } while (*line == '#' || *line == '\n' || *line == '\r');
    return *line ? line : NULL;
}

enum kith_err kith_key_file_field(const char *path, const char *text,
                                  const char *field, char *value, size_t size,
                                  char *error)
{
    const size_t n = strlen(field);
    for (const char *line = kith_key_file_next_line(text); line;
         line = kith_key_file_next_line(line)) {
        if (strncmp(line, field, n) != 0 || line[n] != ':')
            continue;
        const char *start = line + n + 1 + strspn(line + n + 1, " \t");
        const size_t length = strcspn(start, " \t\r\n");
        if (length == 0 || length >= size)
            break;
        memcpy(value, start, length);
        value[length] = '\0';
        return KITH_OK;
    }
    return kith_key_file_fail(
        error, KITH_EPARSE,
        "%s has no usable line \"%s: ...\": copy the file again, "
        "whole",
        path, field);
}

bool kith_key_file_unbase64(const char *text, uint8_t *bytes, size_t capacity,
                            size_t *size)
{
    return sodium_base642bin(bytes, capacity, text, strcspn(text, " \t\r\n"),
                             NULL, size, NULL,
                             sodium_base64_VARIANT_ORIGINAL) == 0;
}

enum kith_err kith_key_file_bytes(const char *path, const char *text,
                                  const char *field, uint8_t *bytes,
                                  size_t size, char *error)
{
    char value[KEYS_BASE64_BYTES(64) + 1];
    size_t n = 0;
    enum kith_err err =
        kith_key_file_field(path, text, field, value, sizeof value, error);
    if (err == KITH_OK &&
        (!kith_key_file_unbase64(value, bytes, size, &n) || n != size))
        err = kith_key_file_fail(error, KITH_EPARSE,
                                 "%s: \"%s\" is not %zu bytes of base64", path,
                                 field, size);
    sodium_memzero(value, sizeof value);
    return err;
}
