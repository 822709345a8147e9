/* Peer file -> experiment, keys, member list; see kith/member_file.h. */
#include "kith/member_file.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "kith/keys.h"
#include "kith/plain_file.h"
#include "kith/text.h"

#define FAIL(err, ...)                                                         \
    kith_text_fail(error, KITH_EXPERIMENT_ERROR_BYTES, err, __VA_ARGS__)

static enum kith_err open_experiment(struct kith_member_file *member,
                                     enum kith_world world, char *error)
{
    char why[KITH_EXPERIMENT_ERROR_BYTES];
    const char *path = member->file.experiment;
    enum kith_err err =
        kith_experiment_load(path, NULL, 0, &member->experiment, error);
    if (err != KITH_OK)
        return err;
    err = kith_experiment_check_world(&member->experiment, world, why);
    if (err != KITH_OK)
        return FAIL(err, "%.300s: %s", path, why);
    if (member->experiment.stop.patience > 0)
        return FAIL(KITH_EINVAL,
                    "%.300s: stop.patience: a peer does not see the averaged "
                    "model and cannot stop early; take it out, or set it to 0",
                    path);
    return KITH_OK;
}

static enum kith_err open_members(struct kith_member_file *member,
                                  const char *path, char *error)
{
    const uint32_t count = member->file.member_count;
    if (count != member->experiment.peers)
        return FAIL(KITH_EINVAL,
                    "%.300s: members: found %u; allowed: %u, as many as peers "
                    "in %.300s",
                    path, count, member->experiment.peers,
                    member->file.experiment);
    member->members = calloc(count, sizeof *member->members);
    if (member->members == NULL)
        return FAIL(KITH_ENOMEM, "out of memory");
    for (uint32_t i = 0; i < count; i++) {
        kith_text_copy(member->members[i].address, KITH_ADDRESS_BYTES,
                       member->file.members[i].address);
        /* The loader has checked the digits; "" is none. */
        member->members[i].has_fingerprint =
            kith_text_unhex(member->file.members[i].fingerprint,
                            member->members[i].fingerprint,
                            KITH_FINGERPRINT_BYTES) == KITH_OK;
    }
    return KITH_OK;
}

/* Every peer would refuse us for it. */
static enum kith_err check_rank(const struct kith_member_file *member,
                                const char *path, char *error)
{
    const struct kith_identity *identity = &member->identity;
    struct kith_certificate own;
    if (identity->certificate_bytes == 0 ||
        kith_certificate_decode(identity->certificate,
                                identity->certificate_bytes, &own) != KITH_OK ||
        own.rank == member->file.rank)
        return KITH_OK;
    return FAIL(KITH_EMISMATCH,
                "%.300s/node.crt is for rank %d, %.300s says rank %u: correct "
                "`rank`, or certify the request again with --rank %u",
                member->file.identity, (int)own.rank, path, member->file.rank,
                member->file.rank);
}

static enum kith_err open_keys(struct kith_member_file *member,
                               const char *path, char *error)
{
    enum kith_err err = kith_keys_load(member->file.identity, &member->identity,
                                       &member->trust, error);
    if (err == KITH_OK)
        err = check_rank(member, path, error);
    member->is_of_keys = err != KITH_OK;
    return err;
}

enum kith_err kith_member_file_open(const char *path, enum kith_world world,
                                    struct kith_member_file *member,
                                    char *error)
{
    memset(member, 0, sizeof *member);
    enum kith_err err = kith_peer_file_load(path, &member->file, error);
    if (err != KITH_OK)
        return err;
    err = open_experiment(member, world, error);
    if (err == KITH_OK)
        err = open_members(member, path, error);
    if (err == KITH_OK)
        err = open_keys(member, path, error);
    if (err != KITH_OK)
        kith_member_file_close(member);
    return err;
}

/* Once is enough, and twice does no harm. */
void kith_member_file_close(struct kith_member_file *member)
{
    const bool is_of_keys = member->is_of_keys;
    kith_keys_free(&member->identity, &member->trust);
    free(member->members);
    kith_experiment_close(&member->experiment);
    kith_peer_file_close(&member->file);
    memset(member, 0, sizeof *member);
    member->is_of_keys = is_of_keys;
}

/* ---- starts */

/* "" where there is none. */
static enum kith_err read_count(const char *path, char *text, size_t size,
                                char *error)
{
    char why[KITH_FILE_WHY_BYTES];
    int fd;
    text[0] = '\0';
    const enum kith_err err = kith_file_open(path, &fd, NULL, why);
    if (err == KITH_ENOENT)
        return KITH_OK;
    if (err != KITH_OK)
        return FAIL(err, "%.300s: %s", path, why);
    const ssize_t count = read(fd, text, size - 1);
    (void)close(fd);
    if (count < 0)
        return FAIL(KITH_EIO, "cannot read %.300s", path);
    text[count] = '\0';
    text[strcspn(text, "\n")] = '\0';
    return KITH_OK;
}

static enum kith_err write_count(const char *path, uint32_t count, char *error)
{
    char partial[KITH_PATH_BYTES_MAX + 16];
    (void)snprintf(partial, sizeof partial, "%s.partial", path);
    FILE *file = kith_file_create_stream(partial);
    if (file != NULL)
        (void)fprintf(file, "%" PRIu32 "\n", count); /* commit tells */
    const int code =
        file == NULL ? errno : kith_file_commit(file, partial, path);
    return code == 0 ? KITH_OK
                     : FAIL(KITH_EIO, "cannot write %.300s: %s", path,
                            strerror(code));
}

enum kith_err kith_start_count(const char *folder, const char *name,
                               uint32_t *incarnation, char *error)
{
    char path[KITH_PATH_BYTES_MAX], text[24];
    uint64_t before = 0;
    const int length =
        snprintf(path, sizeof path, "%s/%s.incarnation", folder, name);
    *incarnation = 0;
    if (length < 0 || (size_t)length >= sizeof path)
        return FAIL(KITH_EINVAL, "save: the path is too long");
    if (mkdir(folder, 0700) != 0 && errno != EEXIST)
        return FAIL(KITH_EIO, "cannot make the folder %.300s: %s", folder,
                    strerror(errno));
    const enum kith_err err = read_count(path, text, sizeof text, error);
    if (err != KITH_OK)
        return err;
    const bool is_whole = kith_text_u64(text, &before) == KITH_OK;
    if (text[0] != '\0' && (!is_whole || before >= UINT32_MAX))
        return FAIL(KITH_EPARSE,
                    "%.300s: found \"%s\"; allowed: a whole number; take the "
                    "file and the save beside it away to start afresh",
                    path, text);
    *incarnation = text[0] == '\0' ? 0 : (uint32_t)before + 1;
    return write_count(path, *incarnation, error);
}
