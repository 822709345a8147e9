/* Which plug-ins read which keys: what their records declare, for refusals, for
 * `kith list` and for the help of a key.
 *
 * A kind of plug-in has a table of keys in its header, one bit each, and a
 * registry whose records have a name and a mask of the keys that they read. */
#include <string.h>

#include "kith/assert.h"
#include "kith/text.h"
#include "key_table.h"

/* More readers than this are no help. */
#define READERS_MAX 12u

struct reader {
    const char *name;
    unsigned keys;
};

#define KEY(name, key) key,
#define KEY_OF_GOSSIP(name, key, low, high, help) key,
#define KIND(word, table, KEYS, KEY)                                           \
    static const char *const word##_keys[] = {KEYS(KEY) NULL};                 \
    static struct reader word##_at(unsigned index)                             \
    {                                                                          \
        return table[index] == NULL                                            \
                   ? (struct reader){NULL, 0}                                  \
                   : (struct reader){table[index]->name, table[index]->keys};  \
    }
KIND(algorithm, kith_algorithms, KITH_GOSSIP_KEYS, KEY_OF_GOSSIP)
KIND(compressor, kith_compressors, KITH_COMPRESSOR_KEYS, KEY)
KIND(guard, kith_guards, KITH_GUARD_KEYS, KEY)
KIND(topology, kith_topology_kinds, KITH_TOPOLOGY_KEYS, KEY)
KIND(model, kith_models, KITH_MODEL_KEYS, KEY)
KIND(optimiser, kith_optimisers, KITH_OPTIMISER_KEYS, KEY)

static const struct kind {
    const char *word, *section;
    const char *refusal; /* of a key that one of them does not read */
    const char *const *keys;
    struct reader (*at)(unsigned index); /* name NULL: past the last */
} kinds[] = {
    [KITH_READER_ALGORITHM] = {"algorithm", "gossip", "read", algorithm_keys,
                               algorithm_at},
    [KITH_READER_COMPRESSOR] = {"compressor", "gossip", "read", compressor_keys,
                                compressor_at},
    [KITH_READER_GUARD] = {"guard", "gossip", "read", guard_keys, guard_at},
    [KITH_READER_TOPOLOGY] = {"topology", "gossip", "have", topology_keys,
                              topology_at},
    [KITH_READER_MODEL] = {"model", "model", "have", model_keys, model_at},
    [KITH_READER_OPTIMISER] = {"optimiser", "train", "read", optimiser_keys,
                               optimiser_at},
};
#define KIND_COUNT (sizeof kinds / sizeof kinds[0])

void kith_experiment_key_path(enum kith_reader reader, unsigned i,
                              char path[KITH_NAME_MAX])
{
    const struct kind *const kind = &kinds[reader];
    const size_t length = kith_text_add(path, KITH_NAME_MAX, 0, "%s.%s",
                                        kind->section, kind->keys[i]);
    KITH_ASSERT(length < KITH_NAME_MAX);
}

enum kith_err kith_experiment_refuse_unread(const struct tree *tree,
                                            enum kith_reader reader,
                                            const char *name, unsigned mask)
{
    const struct kind *const kind = &kinds[reader];
    for (unsigned i = 0; kind->keys[i] != NULL; i++) {
        char path[KITH_NAME_MAX];
        kith_experiment_key_path(reader, i, path);
        if (!(mask >> i & 1u) && kith_yaml_find(tree, path) != NULL)
            return kith_yaml_refuse(tree, path,
                                    "%s %s does not %s it; take it out",
                                    kind->word, name, kind->refusal);
    }
    return KITH_OK;
}

void kith_experiment_keys_read(enum kith_reader reader, unsigned mask,
                               char *text, size_t size)
{
    size_t at = 0;
    text[0] = '\0';
    for (unsigned i = 0; kinds[reader].keys[i] != NULL; i++)
        if (mask >> i & 1u)
            at = kith_text_add(text, size, at, "%s%s", at == 0 ? "" : ", ",
                               kinds[reader].keys[i]);
}

/* "top-k, random-k: "; "" where all of them read it, or many. */
static void name_readers(const struct kind *kind, unsigned key, char *text,
                         size_t size)
{
    size_t at = 0;
    unsigned count = 0, read = 0;
    text[0] = '\0';
    for (; kind->at(count).name != NULL; count++) {
        const struct reader reader = kind->at(count);
        if (!(reader.keys >> key & 1u))
            continue;
        at = kith_text_add(text, size, at, "%s%s", read == 0 ? "" : ", ",
                           reader.name);
        read++;
    }
    if (read == 0 || read == count || read > READERS_MAX)
        text[0] = '\0';
    else
        kith_text_add(text, size, at, ": ");
}

/* Of the key of that path. */
static void readers_of(const char *path, char *text, size_t size)
{
    text[0] = '\0';
    for (size_t k = 0; k < KIND_COUNT; k++)
        for (unsigned i = 0; kinds[k].keys[i] != NULL; i++) {
            char own[KITH_NAME_MAX];
            kith_experiment_key_path((enum kith_reader)k, i, own);
            if (strcmp(own, path) == 0)
                name_readers(&kinds[k], i, text, size);
        }
}

bool kith_experiment_key(unsigned index, struct kith_experiment_key *key)
{
    const struct key *const row = &kith_experiment_keys[index];
    if (row->path == NULL)
        return false;
    *key = (struct kith_experiment_key){
        .path = row->path,
        .initial = row->initial,
        .is_required = (row->flags & KEY_REQUIRED) != 0,
        .is_local = (row->flags & KEY_LOCAL) != 0};
    _Static_assert(sizeof key->allowed == SCHEMA_ALLOWED_BYTES, "");
    kith_schema_allowed(row, key->allowed);
    readers_of(row->path, key->help, sizeof key->help);
    kith_text_add(key->help, sizeof key->help, strlen(key->help), "%s",
                  row->help);
    return true;
}
