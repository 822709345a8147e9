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

#include <errno.h>
#include <stdlib.h>
#include <string.h>

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

static bool is_shard(const char *name, const char *part)
{
    const size_t length = strlen(name);
    return length > 4 && strcmp(name + length - 4, ".bin") == 0 &&
           strstr(name, part) != NULL;
}

static int is_training(const struct dirent *entry)
{
    return is_shard(entry->d_name, "train");
}

static int is_validation(const struct dirent *entry)
{
    return is_shard(entry->d_name, "val");
}

static enum kith_err open_shard(struct kith_data_opening *opening,
                                const char *name, struct kith_segment *segment)
{
    struct kith_file_map map;
    struct kith_shard shard;
    enum kith_err err = kith_data_map(opening, kith_data_find(opening, name),
                                      "it was there a moment ago", &map);
    if (err != KITH_OK)
        return err;
    err = kith_shard_parse(map.bytes, map.size, &shard);
    if (err != KITH_OK)
        return kith_data_refuse(
            opening, err,
            "its %zu bytes are not a token shard of version 1 whose header "
            "announces as many uint16 as follow; write or fetch it again",
            map.size);
    segment->values = map.bytes + shard.offset;
    segment->tokens = shard.tokens;
    return KITH_OK;
}

/* Adds a shard at the end of the stream. */
static enum kith_err add_shard(struct kith_data_opening *opening,
                               const char *name, bool last,
                               struct kith_examples *examples,
                               struct kith_segment *segment)
{
    const size_t context =
        opening->config->context > 0 ? opening->config->context : 1;
    const enum kith_err err = open_shard(opening, name, segment);
    if (err != KITH_OK)
        return err;
    const size_t first = examples->tokens, end = first + segment->tokens;
    segment->first = first;
    examples->tokens = end;
    /* Windows that begin in this shard; the last token begins none. */
    kith_data_count(opening,
                    (end + (last ? 0 : context) - 1) / context -
                        (first == 0 ? 0 : (first + context - 1) / context));
    /* The whole file is read once, so that no token can be outside the model's
     * vocabulary. */
    const uint16_t *tokens = segment->values;
    uint16_t most = 0;
    for (size_t i = 0; i < segment->tokens; i++)
        most = tokens[i] > most ? tokens[i] : most;
    if (most >= examples->classes)
        examples->classes = (uint32_t)most + 1;
    return KITH_OK;
}

static enum kith_err open_all(struct kith_data_opening *opening,
                              struct dirent *const *names, size_t count,
                              struct kith_examples *examples)
{
    struct kith_segment *segments =
        kith_data_alloc(opening, count, sizeof *segments, "shards");
    enum kith_err err = segments == NULL ? KITH_ENOMEM : KITH_OK;
    for (size_t i = 0; i < count && err == KITH_OK; i++)
        err = add_shard(opening, names[i]->d_name, i + 1 == count, examples,
                        &segments[i]);
    if (err != KITH_OK)
        return err;
    examples->input = KITH_INPUT_TOKENS;
    examples->element = KITH_ELEMENT_U16;
    examples->mapped = true;
    if (count == 1) {
        examples->values = segments[0].values;
    } else {
        examples->segments = segments;
        examples->segment_count = count;
    }
    return KITH_OK;
}

static enum kith_err open_tokens(struct kith_data_opening *opening,
                                 enum kith_data_part part,
                                 struct kith_examples *examples)
{
    const bool train = part == KITH_DATA_TRAIN;
    struct dirent **names = NULL;
    (void)kith_text_copy(opening->path, sizeof opening->path,
                         opening->config->path);
    const int count =
        kith_data_scan(opening, train ? is_training : is_validation, &names);
    enum kith_err err;
    if (count < 0)
        err = kith_data_refuse(opening, kith_file_error(errno),
                               "%s; data.path must be a folder of *train*.bin "
                               "and *val*.bin",
                               strerror(errno));
    else if (count == 0)
        err = kith_data_refuse(opening, KITH_ENOENT,
                               "no *%s*.bin in that folder; data.path needs "
                               "GPT-2 token shards *train*.bin and *val*.bin",
                               train ? "train" : "val");
    else if (count > SHARDS_MAX)
        err = kith_data_refuse(opening, KITH_ELIMIT, "more than %d shards",
                               SHARDS_MAX);
    else
        err = open_all(opening, names, (size_t)count, examples);
    for (int i = 0; i < count; i++)
        free(names[i]);
    free(names);
    return err;
}

const struct kith_dataset_kind kith_dataset_tokens = {
    .name = "tokens",
    .paper = "Karpathy, 2024 (llm.c's shards of GPT-2 tokens)",
    .summary = "*train*.bin and *val*.bin in a folder: uint16 tokens",
    .input = KITH_INPUT_TOKENS,
    .open = open_tokens,
};
