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

struct keys_work kith_keys_start(char *error)
{
    struct keys_work work = {.error = error};
    error[0] = '\0';
    if (sodium_init() < 0)
        kith_keys_fail(&work, KITH_EDEVICE,
                       "libsodium cannot start: no source of randomness");
    return work;
}

enum kith_err kith_keys_fail(struct keys_work *work, enum kith_err code,
                             const char *format, ...)
{
    va_list arguments;
    if (work->err != KITH_OK)
        return work->err;
    va_start(arguments, format);
    vsnprintf(work->error, KITH_KEYS_ERROR_BYTES, format, arguments);
    va_end(arguments);
    return work->err = code;
}

static void fail_errno(struct keys_work *work, const char *what,
                       const char *path)
{
    const int code = errno;
    const enum kith_err err =
        code == EEXIST ? KITH_EEXIST : kith_file_error(code);
    kith_keys_fail(work, err, "cannot %s %s: %s", what, path, strerror(code));
}

void kith_keys_path(struct keys_work *work, char *path, const char *folder,
                    const char *name)
{
    const int n = snprintf(path, KITH_PATH_BYTES_MAX, "%s/%s", folder, name);
    if (n < 0 || n >= (int)KITH_PATH_BYTES_MAX)
        kith_keys_fail(work, KITH_ELIMIT,
                       "path is longer than %u bytes: use a shorter folder",
                       KITH_PATH_BYTES_MAX);
}

bool kith_key_file_exists(const char *path)
{
    struct stat status;
    return stat(path, &status) == 0;
}

void kith_keys_make_folder(struct keys_work *work, const char *folder)
{
    if (work->err == KITH_OK && mkdir(folder, 0700) != 0 && errno != EEXIST)
        fail_errno(work, "make folder", folder);
}

/* Refuses what is not a plain file of bounded size, and loose secrets. */
static size_t check_status(struct keys_work *work, int fd, const char *path,
                           bool secret)
{
    struct stat status = {.st_size = 0};
    if (fstat(fd, &status) != 0)
        fail_errno(work, "look at", path);
    else if (!S_ISREG(status.st_mode))
        kith_keys_fail(work, KITH_EINVAL, "%s is not a plain file", path);
    else if (secret && (status.st_mode & 077) != 0)
        kith_keys_fail(work, KITH_EPERM,
                       "%s holds a secret and its mode is %04o, so others can "
                       "touch it: chmod 600 %s, and make a new key if others "
                       "may have read it",
                       path, (unsigned)(status.st_mode & 07777), path);
    else if (status.st_size < 0 || status.st_size > (off_t)KEYS_FILE_BYTES_MAX)
        kith_keys_fail(work, KITH_ELIMIT,
                       "%s is larger than any key file (%u bytes)", path,
                       KEYS_FILE_BYTES_MAX);
    return (size_t)status.st_size;
}

static void read_all(struct keys_work *work, int fd, const char *path,
                     char *text, size_t size)
{
    size_t at = 0;
    ssize_t n = 1;
    while (at < size && n != 0) {
        n = read(fd, text + at, size - at);
        if (n < 0 && errno != EINTR) {
            fail_errno(work, "read", path);
            return;
        }
        at += n > 0 ? (size_t)n : 0;
    }
    if (strlen(text) != at)
        kith_keys_fail(work, KITH_EPARSE, "%s holds a zero byte", path);
}

void kith_key_file_open(struct keys_work *work, struct key_file *file,
                        const char *path, bool secret)
{
    *file = (struct key_file){.path = path};
    if (work->err != KITH_OK)
        return;
    const int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
    if (fd < 0) {
        fail_errno(work, "open", path);
        return;
    }
    const size_t size = check_status(work, fd, path, secret);
    if (work->err == KITH_OK && (file->text = calloc(1, size + 1)) == NULL)
        kith_keys_fail(work, KITH_ENOMEM, "no memory for %s", path);
    if (work->err == KITH_OK)
        read_all(work, fd, path, file->text, size);
    close(fd);
    if (work->err != KITH_OK && file->text != NULL) {
        /* All of it: what was read may hold a zero byte before the secret. */
        sodium_memzero(file->text, size + 1);
        kith_key_file_close(file);
    }
}

void kith_key_file_close(struct key_file *file)
{
    if (file->text)
        sodium_memzero(file->text, strlen(file->text));
    free(file->text);
    file->text = NULL;
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

void kith_keys_write_new(struct keys_work *work, const char *path,
                         const char *text, bool secret)
{
    if (work->err != KITH_OK)
        return;
    const int fd = open(path, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC,
                        secret ? 0600 : 0644);
    if (fd < 0) {
        if (errno == EEXIST)
            kith_keys_fail(work, KITH_EEXIST,
                           "%s is there already and key files are never "
                           "overwritten: move it away first",
                           path);
        fail_errno(work, "create", path);
        return;
    }
    if (write_all(fd, text) != 0)
        fail_errno(work, "write", path);
    if (close(fd) != 0)
        fail_errno(work, "close", path);
    if (work->err != KITH_OK)
        unlink(path);
    else
        kith_file_sync_name(path);
}

void kith_keys_replace(struct keys_work *work, const char *path,
                       const char *text)
{
    char fresh[KITH_PATH_BYTES_MAX + 8];
    if (work->err != KITH_OK)
        return;
    snprintf(fresh, sizeof fresh, "%s.new", path);
    unlink(fresh); /* What a crash may have left. */
    kith_keys_write_new(work, fresh, text, false);
    if (work->err == KITH_OK && rename(fresh, path) != 0) {
        fail_errno(work, "replace", path);
        unlink(fresh);
    }
    if (work->err == KITH_OK)
        kith_file_sync_name(path);
}

bool kith_key_file_is(const struct key_file *file, const char *kind)
{
    const size_t n = strlen(kind);
    return strncmp(file->text, kind, n) == 0 &&
           strcspn(file->text + n, " \r\n") == 0;
}

void kith_key_file_expect(struct keys_work *work, const struct key_file *file,
                          const char *kind, const char *what)
{
    if (work->err == KITH_OK && !kith_key_file_is(file, kind))
        kith_keys_fail(work, KITH_EPARSE, "%s is not %s", file->path, what);
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

void kith_key_file_field(struct keys_work *work, const struct key_file *file,
                         const char *field, char *value, size_t size)
{
    const size_t n = strlen(field);
    if (work->err != KITH_OK)
        return;
    for (const char *line = kith_key_file_next_line(file->text); line;
         line = kith_key_file_next_line(line)) {
        if (strncmp(line, field, n) != 0 || line[n] != ':')
            continue;
        const char *start = line + n + 1 + strspn(line + n + 1, " \t");
        const size_t length = strcspn(start, " \t\r\n");
        if (length == 0 || length >= size)
            break;
        memcpy(value, start, length);
        value[length] = '\0';
        return;
    }
    kith_keys_fail(work, KITH_EPARSE,
                   "%s has no usable line \"%s: ...\": copy the file again, "
                   "whole",
                   file->path, field);
}

bool kith_key_file_unbase64(const char *text, uint8_t *bytes, size_t capacity,
                            size_t *size)
{
    size_t n = 0;
    const bool read =
        sodium_base642bin(bytes, capacity, text, strcspn(text, " \t\r\n"), NULL,
                          &n, NULL, sodium_base64_VARIANT_ORIGINAL) == 0;
    if (size == NULL)
        return read && n == capacity;
    *size = n;
    return read;
}

void kith_key_file_bytes(struct keys_work *work, const struct key_file *file,
                         const char *field, uint8_t *bytes, size_t size)
{
    char value[KEYS_BASE64_BYTES(64) + 1];
    kith_key_file_field(work, file, field, value, sizeof value);
    if (work->err == KITH_OK &&
        !kith_key_file_unbase64(value, bytes, size, NULL))
        kith_keys_fail(work, KITH_EPARSE,
                       "%s: \"%s\" is not %zu bytes of base64", file->path,
                       field, size);
    sodium_memzero(value, sizeof value);
}
