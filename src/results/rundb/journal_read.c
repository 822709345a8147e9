/* A run's journal out of its database.
 *
 * One statement for each peer walks over its parts in order; between two calls
 * a peer holds what is left of one part. Whatever the database says is checked
 * before it is used: SQLite itself refuses values longer than a final model. */
#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "kith/assert.h"
#include "kith/journal.h"
#include "kith/text.h"
#include "rundb_store.h"

/* The tables that a replay reads are as they were: a later column of the series
 * is none of its. */
#define SCHEMA_OLDEST 3

struct peer_journal {
    struct kith_query parts;
    uint32_t last;        /* the last one that the database holds */
    uint32_t incarnation; /* of the parts that have been read */
    uint32_t part;        /* the next one of this incarnation */
    bool any;
    struct kith_journal_clock clock;
    size_t at, fill;
    uint8_t bytes[KITH_JOURNAL_PART_BYTES + KITH_JOURNAL_ENTRY_BYTES_MAX];
};

struct kith_journal {
    sqlite3 *database;
    char path[KITH_PATH_BYTES_MAX];
    uint32_t peers;
    struct peer_journal *readers; /* (peers) */
};

static enum kith_err KITH_PRINTF(4, 5)
    refuse(char *error, const char *path, enum kith_err err, const char *format,
           ...)
{
    char what[KITH_JOURNAL_ERROR_BYTES];
    va_list list;
    va_start(list, format);
    vsnprintf(what, sizeof what, format, list);
    va_end(list);
    snprintf(error, KITH_JOURNAL_ERROR_BYTES, "cannot replay %.160s: %.330s",
             path, what);
    return err;
}

static enum kith_err check_file(sqlite3 *database, const char *path,
                                char *error)
{
    char what[96];
    const enum kith_err err =
        kith_rundb_check_file(database, SCHEMA_OLDEST, what, sizeof what);
    if (err == KITH_EVERSION)
        return refuse(error, path, err, "%s; record the run again", what);
    if (err != KITH_OK)
        return refuse(error, path, err, "%s", what);
    if (!kith_rundb_is_plain(database))
        return refuse(error, path, KITH_EPARSE,
                      "found a view or a virtual table in place of run, "
                      "journal or models; record the run again");
    return KITH_OK;
}

static enum kith_err check_run(sqlite3 *database, const char *path,
                               const struct kith_experiment *experiment,
                               char *error)
{
    char text[256] = "", wanted[32];
    uint64_t version;
    if (experiment->peers > KITH_JOURNAL_PEERS_MAX)
        return refuse(error, path, KITH_ELIMIT,
                      "found %" PRIu32 " peers; allowed: %u, the most of a lab",
                      experiment->peers, KITH_JOURNAL_PEERS_MAX);
    if (!kith_rundb_fact(database, "world", text, sizeof text) ||
        strcmp(text, "lab") != 0)
        return refuse(error, path, KITH_EMISMATCH,
                      "found a run of kith %.20s; allowed: one of kith lab "
                      "--record",
                      text);
    if (!kith_rundb_fact(database, "journal", text, sizeof text))
        return refuse(error, path, KITH_EMISMATCH,
                      "it has no journal; record one with kith lab "
                      "EXPERIMENT.yaml --record");
    if (kith_text_u64(text, &version) != KITH_OK ||
        version < KITH_JOURNAL_OLDEST || version > KITH_JOURNAL_VERSION)
        return refuse(error, path, KITH_EVERSION,
                      "found a journal of version %.20s, this kith reads %d "
                      "to %d; record the run again",
                      text, KITH_JOURNAL_OLDEST, KITH_JOURNAL_VERSION);
    if (kith_rundb_fact(database, "resumed_utc", text, sizeof text))
        return refuse(error, path, KITH_EMISMATCH,
                      "the run was gone on with (%.20s) after its journal "
                      "ended; record one that is not interrupted",
                      text);
    /* 16 digits alone are a hash of version 1: nothing to compare with. */
    kith_experiment_hash_text(experiment, wanted);
    if (!kith_rundb_fact(database, "experiment_hash", text, sizeof text) ||
        (strlen(text) != 16 && strcmp(text, wanted) != 0))
        return refuse(error, path, KITH_EMISMATCH,
                      "its experiment has the hash %.20s, the text that it "
                      "keeps %s: one of them was changed",
                      text, wanted);
    return KITH_OK;
}

/* The longest value that may be read: a final model, or the experiment. */
static void set_limits(sqlite3 *database, size_t dim)
{
    const uint64_t model = (uint64_t)dim * sizeof(double);
    const uint64_t most = model > KITH_JOURNAL_MODEL_BYTES_MAX
                              ? KITH_JOURNAL_MODEL_BYTES_MAX
                              : model;
    sqlite3_limit(database, SQLITE_LIMIT_LENGTH,
                  (int)(most + KITH_YAML_BYTES_MAX + 4096));
}

static enum kith_err open_readers(struct kith_journal *journal, char *error)
{
    for (uint32_t i = 0; i < journal->peers; i++) {
        struct peer_journal *reader = &journal->readers[i];
        int64_t most = 0;
        kith_query_begin(&reader->parts, journal->database,
                         "SELECT incarnation, part, bytes FROM journal WHERE "
                         "run_id=1 AND peer=? ORDER BY incarnation, part",
                         "p", (kith_id)i);
        if (!kith_query_one_whole(journal->database,
                                  "SELECT max(incarnation) FROM journal WHERE "
                                  "run_id=1 AND peer=?",
                                  &most, "p", (kith_id)i) ||
            reader->parts.statement == NULL)
            return refuse(error, journal->path, KITH_EPARSE,
                          "reading its journal: %.200s",
                          sqlite3_errmsg(journal->database));
        reader->last = (uint32_t)most;
    }
    return KITH_OK;
}

static enum kith_err open_journal(struct kith_journal *journal,
                                  const struct kith_experiment *experiment,
                                  char *error)
{
    char why[RUNDB_WHY_BYTES];
    const enum kith_err err =
        kith_rundb_open_file(journal->path, &journal->database, why);
    if (err != KITH_OK)
        return refuse(error, journal->path, err, "%.200s", why);
    set_limits(
        journal->database,
        kith_model_size_of(experiment->model, &experiment->model_config).dim);
    return check_file(journal->database, journal->path, error);
}

static void note_build(struct kith_journal *journal, char *note)
{
    char build[256];
    note[0] = '\0';
    if (kith_rundb_fact(journal->database, "build", build, sizeof build) &&
        strcmp(build, kith_build()) != 0)
        snprintf(note, KITH_JOURNAL_ERROR_BYTES,
                 "recorded by another build, %.200s: floats may differ in "
                 "their last digits",
                 build);
}

enum kith_err kith_journal_open(const char *path,
                                const struct kith_experiment *experiment,
                                struct kith_journal **out, char *note,
                                char *error)
{
    struct kith_journal *journal = calloc(1, sizeof *journal);
    if (journal == NULL)
        return refuse(error, path, KITH_ENOMEM, "out of memory");
    snprintf(journal->path, sizeof journal->path, "%s", path);
    journal->peers = experiment->peers;
    enum kith_err err = open_journal(journal, experiment, error);
    if (err == KITH_OK)
        err = check_run(journal->database, path, experiment, error);
    if (err == KITH_OK) {
        journal->readers = calloc(journal->peers, sizeof *journal->readers);
        err = journal->readers == NULL
                  ? refuse(error, path, KITH_ENOMEM, "out of memory")
                  : open_readers(journal, error);
    }
    if (err != KITH_OK) {
        kith_journal_close(journal);
        return err;
    }
    note_build(journal, note);
    *out = journal;
    return KITH_OK;
}

static bool fact(const struct kith_journal *journal, const char *key,
                 uint64_t most, uint32_t *value)
{
    char text[32];
    uint64_t found = 0;
    if (kith_rundb_fact(journal->database, key, text, sizeof text) &&
        (kith_text_u64(text, &found) != KITH_OK || found > most))
        return false;
    *value = (uint32_t)found;
    return true;
}

enum kith_err kith_journal_vectors(const struct kith_journal *journal,
                                   struct kith_model_config *config,
                                   char *error)
{
    return fact(journal, "vectors", KITH_PARAMETERS_MAX, &config->dim) &&
                   fact(journal, "buffers", config->dim, &config->buffers)
               ? KITH_OK
               : refuse(error, journal->path, KITH_EPARSE,
                        "how large the program's model is, is damaged");
}

void kith_journal_close(struct kith_journal *journal)
{
    if (journal == NULL)
        return;
    for (uint32_t i = 0; journal->readers != NULL && i < journal->peers; i++)
        (void)!kith_query_end(&journal->readers[i].parts);
    free(journal->readers);
    sqlite3_close(journal->database);
    free(journal);
}

bool kith_journal_returns(const struct kith_journal *journal, kith_id peer,
                          uint32_t incarnation)
{
    return journal->readers[peer].last > incarnation;
}

/* Takes the part that the statement stands on. */
static enum kith_err take_part(struct kith_journal *journal, kith_id peer,
                               char *error)
{
    struct peer_journal *reader = &journal->readers[peer];
    const int64_t incarnation = kith_query_whole(&reader->parts, 0);
    const int64_t part = kith_query_whole(&reader->parts, 1);
    const void *bytes = sqlite3_column_blob(reader->parts.statement, 2);
    const int size = sqlite3_column_bytes(reader->parts.statement, 2);
    if (incarnation < 0 || incarnation > INT32_MAX || bytes == NULL ||
        size <= 0 || size > (int)KITH_JOURNAL_PART_BYTES)
        return refuse(error, journal->path, KITH_EPARSE,
                      "its journal is damaged: peer %" PRIu32
                      " has a part of %d bytes in life %" PRId64,
                      peer, size, incarnation);
    if (!reader->any || incarnation != (int64_t)reader->incarnation) {
        /* What a killed peer left unfinished goes with it. */
        reader->at = reader->fill = 0;
        reader->part = 0;
        reader->clock = (struct kith_journal_clock){0};
        reader->incarnation = (uint32_t)incarnation;
        reader->any = true;
    }
    if (part != (int64_t)reader->part)
        return refuse(error, journal->path, KITH_EPARSE,
                      "part %" PRIu32 " of peer %" PRIu32
                      "'s journal (life %" PRIu32
                      ") is missing: its launcher was behind, or the file was "
                      "cut; record the run again, on fewer peers",
                      reader->part, peer, reader->incarnation);
    reader->part++;
    memmove(reader->bytes, reader->bytes + reader->at,
            reader->fill - reader->at);
    reader->fill -= reader->at;
    reader->at = 0;
    KITH_ASSERT(reader->fill + (size_t)size <= sizeof reader->bytes);
    memcpy(reader->bytes + reader->fill, bytes, (size_t)size);
    reader->fill += (size_t)size;
    return KITH_OK;
}

/* The next part, where there is one. */
static enum kith_err step_part(struct kith_journal *journal, kith_id peer,
                               char *error)
{
    struct peer_journal *reader = &journal->readers[peer];
    if (kith_query_next(&reader->parts))
        return take_part(journal, peer, error);
    if (reader->parts.code == SQLITE_DONE)
        return KITH_ENOENT;
    return refuse(error, journal->path, KITH_EPARSE,
                  "reading peer %" PRIu32 "'s journal: %.200s", peer,
                  sqlite3_errmsg(journal->database));
}

enum kith_err kith_journal_next(struct kith_journal *journal, kith_id peer,
                                uint32_t *incarnation,
                                struct kith_journal_entry *entry, char *error)
{
    KITH_ASSERT(peer < journal->peers);
    struct peer_journal *reader = &journal->readers[peer];
    for (;;) {
        size_t used = 0;
        enum kith_err err =
            kith_journal_unpack(&reader->clock, reader->bytes + reader->at,
                                reader->fill - reader->at, entry, &used);
        reader->at += used;
        *incarnation = reader->incarnation;
        if (err == KITH_OK)
            return KITH_OK;
        /* Nothing that is whole is as long as what is left. */
        if (err == KITH_EPARSE ||
            reader->fill - reader->at >= KITH_JOURNAL_ENTRY_BYTES_MAX)
            return refuse(error, journal->path, KITH_EPARSE,
                          "its journal is damaged: part %" PRIu32
                          " of peer %" PRIu32 " (life %" PRIu32
                          ") holds no entry at byte %zu",
                          reader->part > 0 ? reader->part - 1 : 0, peer,
                          reader->incarnation, reader->at);
        err = step_part(journal, peer, error);
        if (err != KITH_OK)
            return err;
    }
}

static enum kith_err take_model(const struct kith_query *query, size_t dim,
                                struct kith_journal_model *model, double *z)
{
    const int64_t step = kith_query_whole(query, 0);
    *model = (struct kith_journal_model){
        .step = (uint64_t)step,
        .score = {.loss = kith_query_real(query, 1),
                  .accuracy = kith_query_real(query, 2)},
        .digest = (uint64_t)kith_query_whole(query, 4),
        .kept = sqlite3_column_type(query->statement, 5) != SQLITE_NULL};
    if (step < 0 || kith_query_whole(query, 3) != (int64_t)dim)
        return KITH_EPARSE;
    if (!model->kept)
        return KITH_OK;
    const void *bytes = sqlite3_column_blob(query->statement, 5);
    if ((size_t)sqlite3_column_bytes(query->statement, 5) != dim * sizeof *z ||
        (bytes == NULL && dim > 0))
        return KITH_EPARSE;
    if (z != NULL && dim > 0)
        memcpy(z, bytes, dim * sizeof *z);
    return KITH_OK;
}

enum kith_err kith_journal_model(struct kith_journal *journal, kith_id peer,
                                 size_t dim, struct kith_journal_model *model,
                                 double *z, char *error)
{
    struct kith_query query;
    kith_query_begin(&query, journal->database,
                     "SELECT step, loss, accuracy, dim, digest, model FROM "
                     "models WHERE run_id=1 AND peer IS ?",
                     "p", peer);
    const bool found = kith_query_next(&query);
    enum kith_err err = found ? take_model(&query, dim, model, z) : KITH_ENOENT;
    if (!kith_query_end(&query))
        err = KITH_EPARSE;
    if (err == KITH_EPARSE)
        (void)refuse(error, journal->path, err,
                     "its final model of peer %" PRId64 " is damaged: %.120s",
                     peer == KITH_NOBODY ? -1 : (int64_t)peer,
                     found ? "not of this experiment's size"
                           : sqlite3_errmsg(journal->database));
    return err;
}
