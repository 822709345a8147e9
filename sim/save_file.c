/* See save_file.h. */
#define _POSIX_C_SOURCE 200809L /* fsync, fileno */
#include "sim/save_file.h"

#include <errno.h>
#include <inttypes.h>
#include <stddef.h>
#include <string.h>
#include <unistd.h>

#include "kith/assert.h"
#include "kith/hash.h"
#include "kith/plain_file.h"
#include "kith/text.h"

#define MAGIC "kith sim save"
#define WORD 0x01020304u

/* ---- hashes */

void sim_chain_start(struct sim_chain *chain)
{
    KITH_ASSERT(chain != NULL);
    *chain = (struct sim_chain){.hash = KITH_HASH_START};
}

/* Whole blocks go into the hash as soon as they are full; what is left
 * waits, so that the hash of the first n bytes can be had at any n, and goes
 * on behind it. */
void sim_chain_add(struct sim_chain *chain, const void *bytes, size_t size)
{
    const uint8_t *from = bytes;
    KITH_ASSERT(bytes != NULL || size == 0);
    while (size > 0) {
        const size_t used = (size_t)(chain->bytes % SIM_CHAIN_BLOCK);
        const size_t room = SIM_CHAIN_BLOCK - used;
        const size_t part = size < room ? size : room;
        memcpy(chain->block + used, from, part);
        chain->bytes += part;
        from += part;
        size -= part;
        if (part == room)
            chain->hash =
                kith_hash_bytes(chain->hash, chain->block, SIM_CHAIN_BLOCK);
    }
}

/* The length is hashed, too: zeros at the end of a file would be none else,
 * where a part of a block is filled up with them. */
uint64_t sim_chain_hash(const struct sim_chain *chain)
{
    KITH_ASSERT(chain->bytes > 0 || chain->hash == KITH_HASH_START);
    return kith_hash_bytes(kith_hash_word(chain->hash, chain->bytes),
                           chain->block,
                           (size_t)(chain->bytes % SIM_CHAIN_BLOCK));
}

/* The head stands for itself, since it is read alone: a folder is asked for
 * its database long before anybody reads the body. */
static uint64_t head_hash(const struct sim_save_head *head)
{
    _Static_assert(offsetof(struct sim_save_head, hash) + 8 ==
                       sizeof(struct sim_save_head),
                   "nothing behind the hash");
    return kith_hash_bytes(KITH_HASH_START, head,
                           offsetof(struct sim_save_head, hash));
}

/* ---- written */

/* Beside the file that it will replace: a rename puts one in the place of
 * the other only within a file system. */
int sim_save_write_open(struct sim_save_writer *writer, const char *path)
{
    static const struct sim_save_head none;
    *writer = (struct sim_save_writer){.code = 0};
    sim_chain_start(&writer->chain);
    KITH_ASSERT(strlen(path) < sizeof writer->path);
    (void)snprintf(writer->path, sizeof writer->path, "%s", path);
    (void)snprintf(writer->partial, sizeof writer->partial, "%s.partial", path);
    writer->file = kith_file_create_stream(writer->partial);
    if (!writer->file)
        return errno;
    /* Its place: it is written last. */
    if (fwrite(&none, sizeof none, 1, writer->file) != 1)
        writer->code = errno != 0 ? errno : EIO;
    return 0;
}

/* Nothing is said here: whoever walks through a world must not stop
 * half-way, with marks of the walk left behind. It ends, and finish() has
 * the error. */
bool sim_save_write(void *arg, void *bytes, size_t size)
{
    struct sim_save_writer *writer = arg;
    KITH_ASSERT(writer->file != NULL);
    sim_chain_add(&writer->chain, bytes, size);
    if (writer->code == 0 && fwrite(bytes, 1, size, writer->file) != size)
        writer->code = errno != 0 ? errno : EIO;
    return writer->code == 0;
}

/* The head is written last, over the zeros in its place: of a file whose end
 * is missing it would be no head. Closing may be what tells that a disk is
 * full. */
int sim_save_write_finish(struct sim_save_writer *writer,
                          struct sim_save_head *head)
{
    KITH_ASSERT(writer->file != NULL);
    (void)snprintf(head->magic, sizeof head->magic, "%s", MAGIC);
    head->version = SIM_SAVE_VERSION;
    head->word = WORD;
    head->body_bytes = writer->chain.bytes;
    head->body_hash = sim_chain_hash(&writer->chain);
    head->hash = head_hash(head);
    if (writer->code == 0 &&
        (fseek(writer->file, 0, SEEK_SET) != 0 ||
         fwrite(head, sizeof *head, 1, writer->file) != 1 ||
         fflush(writer->file) != 0 || fsync(fileno(writer->file)) != 0))
        writer->code = errno != 0 ? errno : EIO;
    if (fclose(writer->file) != 0 && writer->code == 0)
        writer->code = errno;
    writer->file = NULL;
    if (writer->code != 0)
        sim_save_abandon(writer);
    return writer->code;
}

struct previous {
    char path[SIM_SAVE_PATH_BYTES + 16];
};

static struct previous previous_of(const struct sim_save_writer *writer)
{
    struct previous previous;
    KITH_ASSERT(writer->file == NULL && writer->code == 0);
    (void)snprintf(previous.path, sizeof previous.path, "%s.previous",
                   writer->path);
    return previous;
}

/* Between the two renames there is the one before alone, which a reader takes
 * then. */
int sim_save_publish(const struct sim_save_writer *writer)
{
    const struct previous previous = previous_of(writer);
    const bool moved = rename(writer->path, previous.path) == 0;
    int code = moved || errno == ENOENT ? 0 : errno;
    if (code == 0 && rename(writer->partial, writer->path) != 0) {
        code = errno;
        if (moved)
            (void)rename(previous.path, writer->path);
    }
    if (code == 0)
        kith_file_sync_name(writer->path);
    else
        sim_save_abandon(writer);
    return code;
}

/* Else ranks that can would be two saves ahead of one that cannot, before
 * long, and have none in common. */
void sim_save_withdraw(const struct sim_save_writer *writer)
{
    const struct previous previous = previous_of(writer);
    if (rename(previous.path, writer->path) != 0 && errno == ENOENT)
        (void)unlink(writer->path);
    kith_file_sync_name(writer->path);
}

void sim_save_abandon(const struct sim_save_writer *writer)
{
    KITH_ASSERT(writer->file == NULL);
    (void)unlink(writer->partial);
}

/* ---- read */

static enum kith_err damaged(char *why, const char *what)
{
    KITH_ASSERT(strlen(what) < SIM_SAVE_WHY_BYTES);
    (void)kith_text_copy(why, SIM_SAVE_WHY_BYTES, what);
    return KITH_EPARSE;
}

/* The magic first, so that another program's file is not called damaged;
 * then what this build cannot know; then the hash, and only then a length
 * that is believed. */
static enum kith_err check_head(const struct sim_save_head *head, size_t bytes,
                                char *why)
{
    KITH_ASSERT(bytes >= sizeof *head);
    if (memcmp(head->magic, MAGIC, sizeof MAGIC) != 0)
        return damaged(why, "it is no save of kith sim");
    if (head->version != SIM_SAVE_VERSION || head->word != WORD) {
        (void)snprintf(why, SIM_SAVE_WHY_BYTES,
                       "found format %" PRIu32 ", this kith reads %u of this "
                       "kind of machine",
                       head->version, SIM_SAVE_VERSION);
        return KITH_EVERSION;
    }
    if (head->hash != head_hash(head))
        return damaged(why, "it is damaged: its head has another hash");
    if (bytes - sizeof *head == head->body_bytes)
        return memchr(head->database, '\0', sizeof head->database)
                   ? KITH_OK
                   : damaged(why, "it is damaged: a name has no end");
    (void)snprintf(why, SIM_SAVE_WHY_BYTES,
                   "it is cut off: found %zu bytes, %" PRIu64 " were written",
                   bytes, sizeof *head + head->body_bytes);
    return KITH_EPARSE;
}

static enum kith_err open_file(const char *path, FILE **file,
                               struct sim_save_head *head, char *why)
{
    size_t bytes = 0;
    int fd;
    enum kith_err err = kith_file_open(path, &fd, &bytes, why);
    KITH_ASSERT(path[0] != '\0');
    *file = NULL;
    if (err != KITH_OK)
        return err;
    *file = kith_file_stream(fd, "rb");
    if (!*file)
        return damaged(why, "there is no memory to read it");
    if (bytes < sizeof *head || fread(head, sizeof *head, 1, *file) != 1)
        err = damaged(why, "it is cut off, or no save of kith sim");
    else
        err = check_head(head, bytes, why);
    if (err == KITH_OK)
        return KITH_OK;
    (void)fclose(*file);
    *file = NULL;
    return err;
}

enum kith_err sim_save_head_read(const char *path, struct sim_save_head *head,
                                 char *why)
{
    FILE *file;
    const enum kith_err err = open_file(path, &file, head, why);
    if (err == KITH_OK)
        (void)fclose(file);
    return err;
}

/* Two passes: an engine that is given a damaged state may come to anything
 * before the end of the file says so. The second pass finds it in memory,
 * where there is room. */
enum kith_err sim_save_read_open(struct sim_save_reader *reader,
                                 const char *path, struct sim_save_head *head,
                                 char *why)
{
    _Static_assert(SIM_SAVE_WHY_BYTES >= KITH_FILE_WHY_BYTES, "room for both");
    uint8_t bytes[SIM_CHAIN_BLOCK];
    struct sim_chain chain;
    size_t count;
    *reader = (struct sim_save_reader){NULL, 0};
    enum kith_err err = open_file(path, &reader->file, head, why);
    if (err != KITH_OK)
        return err;
    sim_chain_start(&chain);
    while ((count = fread(bytes, 1, sizeof bytes, reader->file)) > 0)
        sim_chain_add(&chain, bytes, count);
    if (chain.bytes != head->body_bytes ||
        sim_chain_hash(&chain) != head->body_hash)
        err = damaged(why, "it is damaged: its body has another hash");
    else if (fseek(reader->file, (long)sizeof *head, SEEK_SET) != 0)
        err = damaged(why, "it cannot be read twice");
    reader->left = head->body_bytes;
    if (err != KITH_OK)
        sim_save_read_close(reader);
    return err;
}

/* Never beyond the body, whatever lengths stand in it. */
bool sim_save_read(void *arg, void *bytes, size_t size)
{
    struct sim_save_reader *reader = arg;
    KITH_ASSERT(reader->file != NULL);
    if (size > reader->left || fread(bytes, 1, size, reader->file) != size)
        return false;
    reader->left -= size;
    return true;
}

void sim_save_read_close(struct sim_save_reader *reader)
{
    if (reader->file)
        (void)fclose(reader->file);
    reader->file = NULL;
}
