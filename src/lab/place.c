/* A place in a descriptor: see kith/lab_place.h.
 *
 *   struct sealed | members | the experiment's text
 *
 * as they stand in memory: both sides are of one build, which the first bytes
 * say. Every size is checked before it is used. */
#include "kith/lab_place.h"

#include <errno.h>
#include <fcntl.h>
#include <sodium.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "kith/build.h"
#include "kith/lab.h"
#include "kith/text.h"

#define FAIL(err, ...)                                                         \
    kith_text_fail(error, KITH_EXPERIMENT_ERROR_BYTES, err, __VA_ARGS__)

struct sealed {
    char build[256];
    uint32_t members, source_bytes;
    struct kith_lab_place place; /* its pointers mean nothing */
    struct kith_identity identity;
    struct kith_trust trust; /* nor do these */
};

static bool write_all(int fd, const void *data, size_t size)
{
    const char *at = data;
    while (size > 0) {
        const ssize_t put = write(fd, at, size);
        if (put < 0 && errno == EINTR)
            continue;
        if (put <= 0)
            return false;
        at += put;
        size -= (size_t)put;
    }
    return true;
}

static bool read_all(int fd, void *data, size_t size, size_t from)
{
    char *at = data;
    while (size > 0) {
        const ssize_t got = pread(fd, at, size, (off_t)from);
        if (got < 0 && errno == EINTR)
            continue;
        if (got <= 0)
            return false;
        at += got;
        from += (size_t)got;
        size -= (size_t)got;
    }
    return true;
}

enum kith_err kith_lab_place_give(const struct kith_lab_place *place, int *out)
{
    const struct kith_experiment *experiment = place->experiment;
    struct sealed sealed;
    memset(&sealed, 0, sizeof sealed);
    (void)kith_text_copy(sealed.build, sizeof sealed.build, kith_build_exact());
    sealed.members = experiment->peers;
    sealed.source_bytes = (uint32_t)experiment->source_bytes;
    sealed.place = *place;
    sealed.identity = *place->identity;
    sealed.trust = *place->trust;
    const int fd = memfd_create("kith place", 0);
    const bool whole = fd >= 0 && write_all(fd, &sealed, sizeof sealed) &&
                       write_all(fd, place->members,
                                 sealed.members * sizeof *place->members) &&
                       write_all(fd, experiment->source, sealed.source_bytes);
    sodium_memzero(&sealed, sizeof sealed);
    if (!whole && fd >= 0)
        (void)close(fd);
    *out = fd;
    return whole ? KITH_OK : KITH_EIO;
}

/* ---- taking it */

/* The descriptor that the environment names, or -1. */
static int named_descriptor(void)
{
    const char *text = getenv(KITH_PLACE_VARIABLE);
    uint64_t number;
    return text == NULL || kith_text_u64(text, &number) != KITH_OK ||
                   number > INT32_MAX
               ? -1
               : (int)number;
}

static bool is_ended(const char *text, size_t size)
{
    return memchr(text, '\0', size) != NULL;
}

/* Nothing is done to a file that is something else. */
static enum kith_err find_place(int fd, struct sealed *sealed, char *error)
{
    struct stat status;
    if (fstat(fd, &status) != 0 || status.st_size == 0)
        return FAIL(KITH_ENOENT,
                    "the place in a kith lab that %s names is taken, or was "
                    "not handed on to this process: one process has it, the "
                    "one that model.run starts, and one peer",
                    KITH_PLACE_VARIABLE);
    if (!read_all(fd, sealed->build, sizeof sealed->build, 0) ||
        !is_ended(sealed->build, sizeof sealed->build) ||
        strncmp(sealed->build, "kith ", 5) != 0)
        return FAIL(KITH_EPARSE, "%s: descriptor %d is not a place",
                    KITH_PLACE_VARIABLE, fd);
    return KITH_OK;
}

static enum kith_err read_sealed(int fd, struct sealed *sealed, char *error)
{
    struct stat status;
    if (strcmp(sealed->build, kith_build_exact()) != 0)
        return FAIL(KITH_EVERSION,
                    "kith lab is %s, this libkith is %s; use the two of one "
                    "build",
                    sealed->build, kith_build_exact());
    if (fstat(fd, &status) != 0 || !read_all(fd, sealed, sizeof *sealed, 0) ||
        sealed->members == 0 || sealed->members > KITH_LAB_PEERS_MAX ||
        sealed->source_bytes > KITH_YAML_BYTES_MAX ||
        sealed->place.self >= sealed->members ||
        !is_ended(sealed->place.save, sizeof sealed->place.save) ||
        (size_t)status.st_size !=
            sizeof *sealed + sealed->members * sizeof(struct kith_member) +
                sealed->source_bytes)
        return FAIL(KITH_EPARSE, "%s: descriptor %d is cut short",
                    KITH_PLACE_VARIABLE, fd);
    return KITH_OK;
}

static enum kith_err read_rest(int fd, const struct sealed *sealed,
                               struct kith_member_file *member, char *error)
{
    const size_t bytes = sealed->members * sizeof *member->members;
    char *source = malloc(sealed->source_bytes + 1u);
    member->members = malloc(bytes);
    enum kith_err err = KITH_EPARSE;
    if (source == NULL || member->members == NULL)
        err = FAIL(KITH_ENOMEM, "out of memory for a place of %u members",
                   sealed->members);
    else if (!read_all(fd, member->members, bytes, sizeof *sealed) ||
             !read_all(fd, source, sealed->source_bytes,
                       sizeof *sealed + bytes))
        err = FAIL(KITH_EPARSE, "the place is cut short");
    else
        err = kith_experiment_parse("the lab's experiment", source,
                                    sealed->source_bytes, NULL, 0,
                                    &member->experiment, error);
    free(source);
    if (err == KITH_OK && member->experiment.peers != sealed->members) {
        kith_experiment_close(&member->experiment);
        err = FAIL(KITH_EMISMATCH, "the place has %u members, for %u peers",
                   sealed->members, member->experiment.peers);
    }
    if (err != KITH_OK) {
        free(member->members);
        member->members = NULL;
    }
    return err;
}

/* A file that a child of the caller executes has none of them. */
static void close_on_exec(int fd)
{
    if (fd >= 0)
        (void)fcntl(fd, F_SETFD, FD_CLOEXEC);
}

enum kith_err kith_lab_place_take(struct kith_lab_place *place,
                                  struct kith_member_file *member, char *error)
{
    struct sealed sealed;
    memset(member, 0, sizeof *member);
    const int fd = named_descriptor();
    if (fd < 0)
        return FAIL(KITH_ENOENT,
                    "no peer file was named, and no kith lab has started this "
                    "process; name a peer file, or run it by `kith lab` with "
                    "model: {kind: program, run: COMMAND}");
    enum kith_err err = find_place(fd, &sealed, error);
    if (err != KITH_OK)
        return err;
    err = read_sealed(fd, &sealed, error);
    if (err == KITH_OK) {
        close_on_exec(sealed.place.rows_fd);
        close_on_exec(sealed.place.control_fd);
        close_on_exec(sealed.place.listen_fd);
        close_on_exec(sealed.place.average_fd);
        err = read_rest(fd, &sealed, member, error);
    }
    /* Nobody else shall find the key in it. */
    (void)ftruncate(fd, 0);
    (void)close(fd);
    if (err == KITH_OK) {
        member->file.rank = sealed.place.self;
        member->identity = sealed.identity;
        member->trust = sealed.trust;
        member->trust.allowed = member->trust.revoked = NULL;
        member->trust.allowed_count = member->trust.revoked_count = 0;
        member->trust.list = NULL;
        member->trust.list_bytes = 0;
        *place = sealed.place;
        place->experiment = &member->experiment;
        place->identity = &member->identity;
        place->trust = &member->trust;
        place->members = member->members;
    }
    sodium_memzero(&sealed, sizeof sealed);
    return err;
}

enum kith_err kith_lab_place_average(const struct kith_lab_place *place,
                                     size_t dim, float **values)
{
    struct stat status;
    const size_t bytes = dim * sizeof **values;
    if (fstat(place->average_fd, &status) != 0 ||
        (size_t)status.st_size != bytes)
        return KITH_EMISMATCH;
    *values = malloc(bytes > 0 ? bytes : 1);
    if (*values == NULL)
        return KITH_ENOMEM;
    if (read_all(place->average_fd, *values, bytes, 0))
        return KITH_OK;
    free(*values);
    return KITH_EIO;
}
