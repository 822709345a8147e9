/* See kith/plain_file.h. */
#define _DEFAULT_SOURCE /* mmap, madvise */
#include "kith/plain_file.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "kith/limits.h"
#include "kith/text.h"

enum kith_err kith_file_error(int code)
{
    switch (code) {
    case ENOENT:
    case ENOTDIR:
        return KITH_ENOENT;
    case EACCES:
    case EPERM:
    case EROFS:
        return KITH_EPERM;
    case ENOMEM:
        return KITH_ENOMEM;
    case ENOSPC:
    case EDQUOT:
    case EFBIG:
        return KITH_ENOSPC;
    default:
        return KITH_EIO;
    }
}

static const char *kind_of(mode_t mode)
{
    return S_ISDIR(mode)                    ? "a folder"
           : S_ISFIFO(mode)                 ? "a FIFO"
           : S_ISSOCK(mode)                 ? "a socket"
           : S_ISCHR(mode) || S_ISBLK(mode) ? "a device"
                                            : "no file";
}

static enum kith_err fail(int code, char *why)
{
    (void)kith_text_copy(why, KITH_FILE_WHY_BYTES, strerror(code));
    return kith_file_error(code);
}

static enum kith_err check_kind(const struct stat *about, char *why)
{
    if (S_ISREG(about->st_mode))
        return KITH_OK;
    (void)kith_text_add(why, KITH_FILE_WHY_BYTES, 0,
                        "it is %s, not a plain file", kind_of(about->st_mode));
    return KITH_EINVAL;
}

enum kith_err kith_file_check(const char *path, char *why)
{
    struct stat about;
    return stat(path, &about) != 0 ? fail(errno, why) : check_kind(&about, why);
}

enum kith_err kith_file_open(const char *path, int *fd, size_t *bytes,
                             char *why)
{
    struct stat about;
    *fd = open(path, O_RDONLY | O_NONBLOCK | O_NOCTTY | O_CLOEXEC);
    /* Sockets, and devices without a driver, cannot be opened at all. */
    if (*fd < 0 && errno == ENXIO)
        return kith_file_check(path, why);
    enum kith_err err = *fd < 0 || fstat(*fd, &about) != 0
                            ? fail(errno, why)
                            : check_kind(&about, why);
    if (err == KITH_OK && bytes != NULL)
        *bytes = (size_t)about.st_size;
    if (err != KITH_OK && *fd >= 0)
        (void)close(*fd);
    return err;
}

int kith_file_by_name(const struct dirent **a, const struct dirent **b)
{
    return strcmp((*a)->d_name, (*b)->d_name);
}

int kith_file_create(const char *path)
{
    if (unlink(path) != 0 && errno != ENOENT)
        return -1;
    return open(path, O_RDWR | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0666);
}

FILE *kith_file_stream(int fd, const char *mode)
{
    FILE *file = fd < 0 ? NULL : fdopen(fd, mode);
    if (fd >= 0 && file == NULL)
        (void)close(fd);
    return file;
}

FILE *kith_file_create_stream(const char *path)
{
    return kith_file_stream(kith_file_create(path), "wb");
}

int kith_file_commit(FILE *file, const char *partial, const char *path)
{
    int code = ferror(file) == 0 ? 0 : errno != 0 ? errno : EIO;
    if (code == 0 && (fflush(file) != 0 || fsync(fileno(file)) != 0))
        code = errno;
    if (fclose(file) != 0 && code == 0)
        code = errno;
    if (code == 0 && rename(partial, path) != 0)
        code = errno;
    if (code != 0)
        (void)unlink(partial);
    return code;
}

void kith_file_sync_name(const char *path)
{
    char folder[KITH_PATH_BYTES_MAX];
    const char *slash = strrchr(path, '/');
    (void)kith_text_copy(folder, sizeof folder, slash == NULL ? "." : path);
    if (slash != NULL)
        folder[slash == path ? 1 : slash - path] = '\0';
    const int fd = open(folder, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (fd < 0)
        return; /* Some file systems refuse; the file itself is safe. */
    (void)fsync(fd);
    (void)close(fd);
}

enum kith_err kith_file_complain(char *error, enum kith_err err,
                                 const char *doing, const char *path,
                                 const char *what)
{
    const size_t length = strlen(path), shown = length < 250 ? length : 250;
    (void)snprintf(error, KITH_FILE_ERROR_BYTES, "%s %s: %.200s", doing,
                   path + (length - shown), what);
    return err;
}

enum kith_err kith_file_map(const char *path, struct kith_file_map *map,
                            char *why)
{
    size_t size = 0;
    int fd;
    *map = (struct kith_file_map){NULL, 0};
    enum kith_err err = kith_file_open(path, &fd, &size, why);
    if (err != KITH_OK)
        return err;
    if (size > 0) {
        void *bytes = mmap(NULL, size, PROT_READ, MAP_PRIVATE, fd, 0);
        if (bytes == MAP_FAILED)
            err = fail(errno, why);
        else
            *map = (struct kith_file_map){bytes, size};
    }
    (void)close(fd);
    return err;
}

enum kith_err kith_file_map_open(const char *path, struct kith_file_map *map,
                                 char *error)
{
    char why[KITH_FILE_WHY_BYTES];
    const enum kith_err err = kith_file_map(path, map, why);
    if (err != KITH_OK)
        kith_file_complain(error, err, "reading", path, why);
    return err;
}

void kith_file_map_rest(const struct kith_file_map *map)
{
    if (map->bytes != NULL)
        (void)madvise((void *)(uintptr_t)map->bytes, map->size, MADV_DONTNEED);
}

void kith_file_map_close(struct kith_file_map *map)
{
    if (map->bytes != NULL)
        (void)munmap((void *)(uintptr_t)map->bytes, map->size);
    *map = (struct kith_file_map){NULL, 0};
}
