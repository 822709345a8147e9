/* See atomic_file.h. */
#define _POSIX_C_SOURCE 200809L /* fsync, fileno, link, mmap */
#include "atomic_file.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "kith/data.h"
#include "kith/plain_file.h"

enum kith_err kith_checkpoint_complain(char *error, enum kith_err err,
                                       const char *doing, const char *path,
                                       const char *what)
{
    const size_t length = strlen(path), shown = length < 250 ? length : 250;
    (void)snprintf(error, KITH_DATA_ERROR_BYTES, "%s %s: %.200s", doing,
                   path + (length - shown), what);
    return err;
}

static void add_ending(char *out, const char *path, const char *ending)
{
    const size_t length = strlen(path);
    memcpy(out, path, length);
    memcpy(out + length, ending, strlen(ending) + 1);
}

enum kith_err kith_atomic_file_open(struct work_writer *writer,
                                    const char *path, char *error)
{
    *writer = (struct work_writer){.path = path};
    if (strlen(path) >= KITH_PATH_BYTES_MAX)
        return kith_checkpoint_complain(error, KITH_ELIMIT, "writing", path,
                                        "the path is too long");
    add_ending(writer->partial, path, ".partial");
    writer->file = kith_file_create_stream(writer->partial);
    if (writer->file == NULL)
        return kith_checkpoint_complain(error, kith_file_error(errno),
                                        "writing", writer->partial,
                                        strerror(errno));
    return KITH_OK;
}

void kith_atomic_file_write(struct work_writer *writer, const void *bytes,
                            size_t size)
{
    if (writer->code == 0 && fwrite(bytes, 1, size, writer->file) != size)
        writer->code = errno != 0 ? errno : EIO;
}

void kith_atomic_file_write_at(struct work_writer *writer, long offset,
                               const void *bytes, size_t size)
{
    if (writer->code == 0 && fseek(writer->file, offset, SEEK_SET) != 0)
        writer->code = errno;
    kith_atomic_file_write(writer, bytes, size);
}

/* PATH is PATH.previous, too, from one moment to the next: a second name for
 * the file takes the place of the one before. Where links are refused a rename
 * has to do, and PATH is gone for a moment. */
static int keep_previous_of(const char *path)
{
    char previous[KITH_PATH_BYTES_MAX + 32], link_name[sizeof previous];
    add_ending(previous, path, ".previous");
    add_ending(link_name, path, ".previous.partial");
    if (unlink(link_name) != 0 && errno != ENOENT)
        return -1;
    if (link(path, link_name) != 0)
        return errno == ENOENT ? 0 : rename(path, previous);
    const int result = rename(link_name, previous);
    /* Still there where both were the same file already. */
    (void)unlink(link_name);
    return result;
}

/* A rename is on the disk once its folder is. */
static void sync_folder(const char *path)
{
    char folder[KITH_PATH_BYTES_MAX];
    const char *slash = strrchr(path, '/');
    const size_t length = slash == NULL ? 0 : (size_t)(slash - path);
    memcpy(folder, path, length);
    folder[length] = '\0';
    const int fd = open(slash == NULL ? "."
                        : length == 0 ? "/"
                                      : folder,
                        O_RDONLY | O_CLOEXEC);
    if (fd < 0)
        return; /* Some file systems refuse; the file itself is safe. */
    (void)fsync(fd);
    (void)close(fd);
}

enum kith_err kith_atomic_file_commit(struct work_writer *writer,
                                      bool keep_previous, char *error)
{
    if (writer->code == 0 &&
        (fflush(writer->file) != 0 || fsync(fileno(writer->file)) != 0))
        writer->code = errno;
    if (fclose(writer->file) != 0 && writer->code == 0)
        writer->code = errno;
    if (writer->code == 0 && keep_previous &&
        keep_previous_of(writer->path) != 0)
        writer->code = errno;
    if (writer->code == 0 && rename(writer->partial, writer->path) != 0)
        writer->code = errno;
    if (writer->code == 0) {
        sync_folder(writer->path);
        return KITH_OK;
    }
    (void)remove(writer->partial);
    return kith_checkpoint_complain(error, kith_file_error(writer->code),
                                    "writing", writer->path,
                                    strerror(writer->code));
}

void kith_atomic_file_abandon(struct work_writer *writer)
{
    (void)fclose(writer->file);
    (void)remove(writer->partial);
}

enum kith_err kith_file_map_open(const char *path, struct work_map *map,
                                 char *error)
{
    char why[KITH_FILE_WHY_BYTES];
    size_t size;
    int fd;
    *map = (struct work_map){NULL, 0};
    enum kith_err err = kith_file_open(path, &fd, &size, why);
    if (err != KITH_OK)
        return kith_checkpoint_complain(error, err, "reading", path, why);
    if (size > 0) {
        void *bytes = mmap(NULL, size, PROT_READ, MAP_PRIVATE, fd, 0);
        if (bytes == MAP_FAILED)
            err = kith_checkpoint_complain(error, kith_file_error(errno),
                                           "reading", path, strerror(errno));
        else
            *map = (struct work_map){bytes, size};
    }
    (void)close(fd);
    return err;
}

void kith_file_map_close(struct work_map *map)
{
    if (map->bytes != NULL)
        (void)munmap((void *)(uintptr_t)map->bytes, map->size);
    *map = (struct work_map){NULL, 0};
}
