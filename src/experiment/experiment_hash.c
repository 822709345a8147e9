/* What makes two experiments the same: the keys that all peers must agree on.
 *
 * The hash covers the canonical text of each such key that is not at its
 * default. So a new key leaves the hash of every file that does not name it as
 * it was; whoever changes the meaning of a text or the order of rows adds 1 to
 * KITH_EXPERIMENT_HASH_VERSION. Test: unit/test_experiment_hash.c. */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "kith/assert.h"
#include "kith/hash.h"
#include "key_table.h"

static uint64_t hash_text(uint64_t hash, const char *text)
{
    const size_t length = strlen(text);
    return kith_hash_bytes(kith_hash_word(hash, length), text, length);
}

uint64_t kith_experiment_hash(const struct kith_experiment *experiment)
{
    uint64_t hash =
        kith_hash_word(KITH_HASH_START, KITH_EXPERIMENT_HASH_VERSION);
    char text[SCHEMA_SHOWN_BYTES];
    for (const struct key *key = kith_experiment_keys; key->path != NULL; key++)
        if (!(key->flags & KEY_LOCAL) &&
            !kith_schema_show(key, experiment, text))
            hash = hash_text(hash_text(hash, key->path), text);
    return hash;
}

void kith_experiment_hash_text(const struct kith_experiment *experiment,
                               char text[KITH_EXPERIMENT_HASH_BYTES])
{
    (void)snprintf(text, KITH_EXPERIMENT_HASH_BYTES, "%u:%016" PRIx64,
                   KITH_EXPERIMENT_HASH_VERSION,
                   kith_experiment_hash(experiment));
}

static uint64_t hash_hosts(uint64_t hash,
                           const struct kith_experiment *experiment)
{
    const uint64_t words[] = {
        experiment->hosts.cores,
        experiment->hosts.peers,
        (uint64_t)experiment->hosts.step_ns,
        (uint64_t)experiment->hosts.message_ns,
        (uint64_t)experiment->hosts.handover_ns,
        (uint64_t)experiment->hosts.wake_ns,
        (uint64_t)experiment->hosts.slice_ns,
        experiment->hosts.merge_bits,
        experiment->hosts.wire_bits,
    };
    for (size_t i = 0; i < sizeof words / sizeof words[0]; i++)
        hash = kith_hash_word(hash, words[i]);
    return hash;
}

/* A trace is read to crashes and joins, which have a time and a peer. */
static uint64_t hash_atoms(uint64_t hash,
                           const struct kith_experiment *experiment)
{
    for (uint32_t i = 0; i < experiment->atom_count; i++) {
        const struct kith_atom *atom = &experiment->atoms[i];
        hash = kith_hash_word(hash, (uint64_t)atom->at_ns);
        hash = kith_hash_word(hash, atom->peer);
        hash = kith_hash_word(hash, atom->statement);
        hash = kith_hash_word(hash, 2u * atom->begins + atom->arrives);
    }
    return kith_hash_word(hash, experiment->atom_count);
}

uint64_t kith_experiment_files_hash(const struct kith_experiment *experiment)
{
    const uint64_t hash =
        kith_hash_word(KITH_HASH_START, experiment->network.zones.hash);
    KITH_ASSERT(experiment->atom_count == 0 || experiment->atoms != NULL);
    return hash_atoms(hash_hosts(hash, experiment), experiment);
}

/* "its KEY is THERE, this run's is HERE" in `what`; false: they are equal. */
static bool report(const char *key, const char *there, const char *here,
                   char *what, size_t size)
{
    if (strcmp(there, here) == 0)
        return false;
    (void)snprintf(what, size, "its %s is %.60s, this run's is %.60s", key,
                   there[0] == '\0' ? "not given" : there,
                   here[0] == '\0' ? "not given" : here);
    return true;
}

static bool report_key(const struct key *key,
                       const struct kith_experiment *there,
                       const struct kith_experiment *here, char *what,
                       size_t size)
{
    char texts[2][SCHEMA_SHOWN_BYTES];
    (void)kith_schema_show(key, there, texts[0]);
    (void)kith_schema_show(key, here, texts[1]);
    return report(key->path, texts[0], texts[1], what, size);
}

static bool report_size(const struct kith_experiment *there,
                        const struct kith_experiment *here, char *what,
                        size_t size)
{
    char texts[2][32];
    const struct kith_experiment *const both[] = {there, here};
    for (unsigned i = 0; i < 2; i++)
        (void)snprintf(
            texts[i], sizeof texts[i], "%zu",
            kith_model_size_of(both[i]->model, &both[i]->model_config).dim);
    return report("number of parameters", texts[0], texts[1], what, size);
}

/* The model first: where it is another one, so are many of its keys. */
static void name_difference(const struct kith_experiment *there,
                            const struct kith_experiment *here, char *what,
                            size_t size)
{
    if (report("model.kind", there->model->name, here->model->name, what,
               size) ||
        report_size(there, here, what, size))
        return;
    for (const struct key *key = kith_experiment_keys; key->path != NULL; key++)
        if (!(key->flags & KEY_LOCAL) &&
            report_key(key, there, here, what, size))
            return;
}

/* Was this text of a hash made by the same rules as ours? Before version 2 it
 * had no version. */
static bool is_comparable(const char *hash)
{
    return strtoul(hash, NULL, 10) == KITH_EXPERIMENT_HASH_VERSION &&
           strchr(hash, ':') != NULL;
}

bool kith_experiment_is(const struct kith_experiment *here, const char *hash,
                        const char *yaml, char *what, size_t size)
{
    struct kith_experiment there;
    char error[KITH_EXPERIMENT_ERROR_BYTES];
    char ours[KITH_EXPERIMENT_HASH_BYTES];
    kith_experiment_hash_text(here, ours);
    if (hash != NULL && strcmp(hash, ours) == 0)
        return true;
    const bool comparable = hash != NULL && is_comparable(hash);
    (void)snprintf(what, size, "its settings differ");
    if (yaml == NULL || yaml[0] == '\0' ||
        kith_experiment_parse("there", yaml, strlen(yaml), NULL, 0, &there,
                              error) != KITH_OK) {
        if (!comparable)
            (void)snprintf(what, size,
                           "written by kith before experiments' hashes had "
                           "version %u, and its settings cannot be read here: "
                           "start anew, or go on with the kith that wrote it",
                           KITH_EXPERIMENT_HASH_VERSION);
        return false;
    }
    /* The size of a program's vectors need not be in a file. */
    if (there.model->reports &&
        kith_model_size_of(there.model, &there.model_config).dim == 0) {
        there.model_config.dim = here->model_config.dim;
        (void)snprintf(what, size, "its vectors have another number of values");
    }
    const bool same = !comparable && kith_experiment_hash(&there) ==
                                         kith_experiment_hash(here);
    if (!same)
        name_difference(&there, here, what, size);
    if (comparable && strcmp(here->gossip.guard, "none") != 0 &&
        kith_experiment_hash(&there) == kith_experiment_hash(here))
        (void)snprintf(what, size,
                       "its text is the same, but named no gossip.guard when "
                       "that meant none: name it");
    kith_experiment_close(&there);
    return same;
}
