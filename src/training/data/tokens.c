/* GPT-2 token shards, as llm.c and modded-nanogpt write them:
 *
 *   256 little-endian int32: 20240520, 1, tokens, 0...   (may be missing)
 *   tokens of uint16
 *
 *   FOLDER/...train....bin, in the order of their names: the training stream
 *   FOLDER/...val....bin: the test stream
 *
 * Every shard is mapped where it lies; the stream is the list of them. */
#include "data_files.h"

#include <dirent.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "kith/plain_file.h"
#include "kith/text.h"

enum {
    HEADER_BYTES = 1024,
    SHARD_MAGIC = 20240520,
    SHARD_VERSION = 1,
    SHARDS_MAX = 16384,
};

static uint32_t word_at(const uint8_t *bytes, size_t i)
{
    return (uint32_t)bytes[4 * i] | (uint32_t)bytes[4 * i + 1] << 8 |
           (uint32_t)bytes[4 * i + 2] << 16 | (uint32_t)bytes[4 * i + 3] << 24;
}

enum kith_err kith_shard_parse(const uint8_t *bytes, size_t size,
                               struct kith_shard *shard)
{
    size_t offset = 0;
    *shard = (struct kith_shard){.offset = 0};
    if (size > KITH_DATA_BYTES_MAX)
        return KITH_ELIMIT;
    /* Read as tokens the magic number would begin with 55,432: none of
     * GPT-2's. */
    if (size >= 4 && word_at(bytes, 0) == SHARD_MAGIC) {
        if (size < HEADER_BYTES || word_at(bytes, 1) != SHARD_VERSION)
            return KITH_EPARSE;
        offset = HEADER_BYTES;
        if ((size - offset) / 2 != word_at(bytes, 2))
            return KITH_EPARSE;
    }
    if (size == offset || (size - offset) % 2 != 0)
        return KITH_EPARSE;
    *shard = (struct kith_shard){offset, (size - offset) / 2};
    return KITH_OK;
}

/* ---- the data set */

struct names {
    char (*name)[256];
    size_t count;
};

static int compare(const void *a, const void *b)
{
    return strcmp(a, b);
}

static bool is_shard(const char *name, const char *part)
{
    const size_t length = strlen(name);
    return length > 4 && strcmp(name + length - 4, ".bin") == 0 &&
           strstr(name, part) != NULL;
}

/* NAMEs of the folder that hold `part`, sorted; the caller frees them. */
static enum kith_err list(struct data_opening *opening, const char *part,
                          struct names *names)
{
    const char *path = opening->config->path;
    DIR *folder = opendir(path);
    if (folder == NULL)
        return kith_data_complain(
            opening->error, kith_file_error(errno), path,
            "%s; data.path must be a folder of *train*.bin "
            "and *val*.bin",
            strerror(errno));
    enum kith_err err = KITH_OK;
    for (const struct dirent *entry = readdir(folder); entry != NULL;
         entry = readdir(folder)) {
        if (!is_shard(entry->d_name, part))
            continue;
        if (names->count == SHARDS_MAX) {
            err = kith_data_complain(opening->error, KITH_ELIMIT, path,
                                     "more than %d shards", SHARDS_MAX);
            break;
        }
        if ((names->count & (names->count - 1)) == 0) {
            void *more = realloc(names->name,
                                 (2 * names->count + 1) * sizeof *names->name);
            if (more == NULL) {
                err = kith_data_complain(opening->error, KITH_ENOMEM, path,
                                         "no memory");
                break;
            }
            names->name = more;
        }
        (void)kith_text_copy(names->name[names->count++], sizeof names->name[0],
                             entry->d_name);
    }
    (void)closedir(folder);
    if (err == KITH_OK && names->count == 0)
        err = kith_data_complain(opening->error, KITH_ENOENT, path,
                                 "no *%s*.bin in that folder; data.path needs "
                                 "GPT-2 token shards *train*.bin and *val*.bin",
                                 part);
    if (err == KITH_OK)
        qsort(names->name, names->count, sizeof *names->name, compare);
    return err;
}

static uint32_t largest(const uint16_t *tokens, size_t count)
{
    uint16_t most = 0;
    for (size_t i = 0; i < count; i++)
        most = tokens[i] > most ? tokens[i] : most;
    return most;
}

static enum kith_err open_shard(struct data_opening *opening, const char *name,
                                struct data_file *file,
                                struct kith_segment *segment)
{
    struct data_bytes bytes;
    struct kith_shard shard;
    enum kith_err err = kith_data_find(opening, name, file);
    if (err == KITH_ENOENT)
        return kith_data_complain(opening->error, err, file->path,
                                  "it was there a moment ago");
    if (err == KITH_OK)
        err = kith_data_map(opening, file, &bytes);
    if (err != KITH_OK)
        return err;
    err = kith_shard_parse(bytes.bytes, bytes.size, &shard);
    if (err != KITH_OK)
        return kith_data_complain(
            opening->error, err, file->path,
            "its %zu bytes are not a token shard of version 1 "
            "whose header announces as many uint16 as follow; "
            "write or fetch it again",
            bytes.size);
    segment->values = bytes.bytes + shard.offset;
    segment->tokens = shard.tokens;
    return KITH_OK;
}

static enum kith_err open_all(struct data_opening *opening,
                              const struct names *names,
                              struct kith_examples *examples)
{
    struct kith_segment *segments =
        kith_data_alloc(opening, names->count * sizeof *segments);
    if (segments == NULL)
        return kith_data_complain(opening->error, KITH_ENOMEM,
                                  opening->config->path, "no memory");
    const size_t context =
        opening->config->context > 0 ? opening->config->context : 1;
    for (size_t i = 0; i < names->count; i++) {
        struct data_file file;
        const enum kith_err err =
            open_shard(opening, names->name[i], &file, &segments[i]);
        if (err != KITH_OK)
            return err;
        segments[i].first = examples->tokens;
        /* Windows that begin in this shard; the last token begins none. */
        const size_t last = i + 1 == names->count;
        const size_t end = examples->tokens + segments[i].tokens;
        kith_data_count(opening, &file,
                        (end + (last ? 0 : context) - 1) / context -
                            (examples->tokens == 0
                                 ? 0
                                 : (examples->tokens + context - 1) / context));
        examples->tokens = end;
        /* The whole file is read once, so that no token can be outside the
         * model's vocabulary. */
        const uint32_t most = largest(segments[i].values, segments[i].tokens);
        if (most >= examples->classes)
            examples->classes = most + 1;
    }
    examples->element = KITH_ELEMENT_U16;
    examples->mapped = true;
    examples->values = names->count == 1 ? segments[0].values : NULL;
    examples->segments = names->count == 1 ? NULL : segments;
    examples->segment_count = names->count == 1 ? 0 : names->count;
    return kith_data_windows(opening, opening->config->path, examples);
}

static enum kith_err open_part(struct data_opening *opening, const char *part,
                               struct kith_examples *examples)
{
    struct names names = {NULL, 0};
    enum kith_err err = list(opening, part, &names);
    if (err == KITH_OK)
        err = open_all(opening, &names, examples);
    free(names.name);
    return err;
}

static enum kith_err open_tokens(const struct kith_data_config *config,
                                 struct kith_dataset *set, char *error)
{
    struct data_opening opening = {config, set, error};
    enum kith_err err = open_part(&opening, "train", &set->train);
    if (err == KITH_OK)
        err = open_part(&opening, "val", &set->test);
    return err;
}

const struct kith_dataset_kind kith_dataset_tokens = {
    .name = "tokens",
    .paper = "Karpathy, 2024 (llm.c's shards of GPT-2 tokens)",
    .summary = "*train*.bin and *val*.bin in a folder: uint16 tokens",
    .input = KITH_INPUT_TOKENS,
    .open = open_tokens,
};
