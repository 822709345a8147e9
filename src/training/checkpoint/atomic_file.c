/* See atomic_file.h. */
#define _POSIX_C_SOURCE 200809L /* fsync, fileno, link */
#include "atomic_file.h"

#include <errno.h>
#include <string.h>
#include <unistd.h>

#include "kith/data.h"

_Static_assert(KITH_FILE_ERROR_BYTES == KITH_DATA_ERROR_BYTES,
               "lines of plain_file.h fit those of a data set");

static void add_ending(char *out, const char *path, const char *ending)
{
    const size_t length = strlen(path);
    memcpy(out, path, length);
    memcpy(out + length, ending, strlen(ending) + 1);
}

enum kith_err kith_atomic_file_open(struct work_writer *writer,
                                    const char *path, char *error)
{
    char why[KITH_FILE_WHY_BYTES] = "";
    *writer = (struct work_writer){.path = path};
    if (strlen(path) >= KITH_PATH_BYTES_MAX)
        return kith_file_complain(error, KITH_ELIMIT, "writing", path,
                                  "the path is too long");
    /* A rename would take the place of a device, too. */
    if (kith_file_check(path, why) == KITH_EINVAL)
        return kith_file_complain(error, KITH_EINVAL, "writing", path, why);
    add_ending(writer->partial, path, ".partial");
    writer->file = kith_file_create_stream(writer->partial);
    if (writer->file == NULL)
        return kith_file_complain(error, kith_file_error(errno), "writing",
                                  writer->partial, strerror(errno));
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
        kith_file_sync_name(writer->path);
        return KITH_OK;
    }
    (void)remove(writer->partial);
    return kith_file_complain(error, kith_file_error(writer->code), "writing",
                              writer->path, strerror(writer->code));
}

void kith_atomic_file_abandon(struct work_writer *writer)
{
    (void)fclose(writer->file);
    (void)remove(writer->partial);
}
