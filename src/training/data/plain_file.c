/* See kith/plain_file.h. */
#include "kith/plain_file.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

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

int kith_file_create(const char *path)
{
    if (unlink(path) != 0 && errno != ENOENT)
        return -1;
    return open(path, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC,
                0666);
}

FILE *kith_file_create_stream(const char *path)
{
    const int fd = kith_file_create(path);
    FILE *file = fd < 0 ? NULL : fdopen(fd, "wb");
    if (fd >= 0 && file == NULL)
        (void)close(fd);
    return file;
}
