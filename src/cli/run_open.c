/* From a file name to an open run, and from its end to an exit code. */
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "cli.h"
#include "kith/plain_file.h"
#include "kith/text.h"

int kith_cli_exit_of(enum kith_err err)
{
    switch (err) {
    case KITH_OK:
        return KITH_EXIT_OK;
    case KITH_EIO:
    case KITH_ENOSPC:
    case KITH_EPERM:
        return KITH_EXIT_WRITE;
    case KITH_EADDRINUSE:
    case KITH_ETIMEOUT:
    case KITH_ECLOSED:
        return KITH_EXIT_NETWORK;
    case KITH_EAUTH:
    case KITH_EEXPIRED:
    case KITH_EREVOKED:
        return KITH_EXIT_KEYS;
    case KITH_ENOMEM:
    case KITH_ELIMIT:
    case KITH_EBUSY:
    case KITH_EDEVICE:
    case KITH_EUNSUPPORTED:
        return KITH_EXIT_RESOURCES;
    case KITH_EINVAL:
    case KITH_ENOENT:
    case KITH_EEXIST:
    case KITH_EPARSE:
    case KITH_EVERSION:
    case KITH_EMISMATCH:
        return KITH_EXIT_EXPERIMENT;
    case KITH_EALONE:
        return KITH_EXIT_ALONE;
    case KITH_EAGAIN:
    case KITH_ENONFINITE:
        break;
    }
    return KITH_EXIT_FAILED;
}

enum kith_err kith_cli_read_text(const char *path, char *text, size_t size)
{
    char why[KITH_FILE_WHY_BYTES];
    int fd;
    size_t at = 0;
    text[0] = '\0';
    const enum kith_err err = kith_file_open(path, &fd, NULL, why);
    if (err != KITH_OK)
        return err;
    ssize_t count = 1;
    while (at < size - 1 && count > 0) {
        count = read(fd, text + at, size - 1 - at);
        at += count > 0 ? (size_t)count : 0;
    }
    text[at] = '\0';
    (void)close(fd);
    return count < 0 ? KITH_EIO : KITH_OK;
}

int kith_cli_out_folder(const struct cli_arguments *arguments,
                        const char **folder)
{
    *folder = arguments->values[CLI_OUT];
    if (*folder == NULL)
        *folder = ".";
    else if (mkdir(*folder, 0777) != 0 && errno != EEXIST)
        return kith_cli_fail(
            arguments, KITH_EXIT_WRITE,
            "cannot make the folder %s: %s; choose another with --out", *folder,
            strerror(errno));
    return KITH_EXIT_OK;
}

int kith_cli_check_folder(const struct cli_arguments *arguments,
                          const char *option, const char *path)
{
    char folder[KITH_PATH_BYTES_MAX];
    kith_text_copy(folder, sizeof folder, path);
    char *slash = strrchr(folder, '/');
    if (slash != NULL)
        slash[slash == folder] = '\0';
    const char *name = slash == NULL ? "." : folder;
    if (access(name, W_OK | X_OK) == 0)
        return KITH_EXIT_OK;
    return kith_cli_fail(arguments, KITH_EXIT_WRITE,
                         "%s: cannot write in the folder %.300s: %s; make it, "
                         "or choose another",
                         option, name, strerror(errno));
}

int kith_cli_replace_file(const struct cli_arguments *arguments,
                          const char *path, const char *text)
{
    char temporary[KITH_PATH_BYTES_MAX + 16];
    (void)snprintf(temporary, sizeof temporary, "%s.partial", path);
    FILE *file = kith_file_create_stream(temporary);
    if (file != NULL)
        (void)fputs(text, file); /* An error shows in kith_file_commit. */
    const int code =
        file == NULL ? errno : kith_file_commit(file, temporary, path);
    return code == 0
               ? KITH_EXIT_OK
               : kith_cli_fail(arguments, KITH_EXIT_WRITE,
                               "cannot write %.300s: %s", path, strerror(code));
}

/* source: the text in place of the file; NULL: the file. */
static int open_experiment(const struct cli_arguments *arguments,
                           const char *path, const char *source,
                           struct kith_experiment *experiment)
{
    char error[KITH_EXPERIMENT_ERROR_BYTES];
    struct cli_settings sets;
    const int code = kith_cli_settings(arguments, &sets);
    if (code != KITH_EXIT_OK)
        return code;
    const enum kith_err err =
        source == NULL
            ? kith_experiment_load(path, sets.texts, sets.count, experiment,
                                   error)
            : kith_experiment_parse(path, source, strlen(source), sets.texts,
                                    sets.count, experiment, error);
    if (err == KITH_OK)
        return KITH_EXIT_OK;
    return kith_cli_fail(arguments,
                         err == KITH_ENOMEM ? KITH_EXIT_RESOURCES
                                            : KITH_EXIT_EXPERIMENT,
                         "%s", error);
}

int kith_cli_experiment_open(const struct cli_arguments *arguments,
                             const char *path,
                             struct kith_experiment *experiment)
{
    return open_experiment(arguments, path, NULL, experiment);
}

int kith_cli_dataset_open(const struct cli_arguments *arguments,
                          const struct kith_experiment *experiment,
                          struct kith_dataset *dataset, bool *has)
{
    char error[KITH_EXPERIMENT_ERROR_BYTES];
    *has = experiment->model->input != KITH_INPUT_NONE;
    if (*has &&
        kith_dataset_open(&experiment->data.config, dataset, error) != KITH_OK)
        return kith_cli_fail(arguments, KITH_EXIT_DATA, "%s", error);
    if (kith_experiment_check_data(experiment, *has ? &dataset->train : NULL,
                                   error) != KITH_OK) {
        if (*has)
            kith_dataset_close(dataset);
        return kith_cli_fail(arguments, KITH_EXIT_EXPERIMENT, "%.300s: %s",
                             arguments->words[0], error);
    }
    if (*has && dataset->note[0] != '\0')
        (void)kith_cli_fail(arguments, KITH_EXIT_OK, "%s", dataset->note);
    return KITH_EXIT_OK;
}

/* Where examples came from, into the database. Training gives every sample out
 * of memory or out of a mapped file. */
static void store_counts(const struct cli_run *run, uint64_t samples)
{
    const struct kith_data_counts *counts = &run->dataset.counts;
    const bool mapped = run->dataset.train.mapped &&
                        (run->world != KITH_WORLD_LAB ||
                         run->experiment.data.config.manifest[0] == '\0');
    const struct {
        const char *key;
        uint64_t value;
    } rows[] = {{"data_origin", counts->origin},
                {"data_disk", counts->disk},
                {"data_refetched", counts->refetched},
                {"data_memory", mapped ? 0 : samples},
                {"data_mapped", mapped ? samples : 0}};
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        char text[32];
        (void)snprintf(text, sizeof text, "%" PRIu64, rows[i].value);
        /* Errors stick: closing the database reports them. */
        (void)kith_rundb_summary(run->store, rows[i].key, text);
    }
}

static int store_open(struct cli_run *run)
{
    const char *folder;
    char error[KITH_RUNDB_ERROR_BYTES];
    if (run->path[0] != '\0') {
        const enum kith_err err =
            kith_rundb_reopen(run->path, kith_world_name(run->world),
                              &run->experiment, &run->store, error);
        return kith_cli_check(run->arguments, err, error);
    }
    const int code = kith_cli_out_folder(run->arguments, &folder);
    if (code != KITH_EXIT_OK)
        return code;
    if (kith_rundb_create(folder, kith_world_name(run->world), &run->experiment,
                          &run->store, run->path, error) != KITH_OK)
        return kith_cli_fail(run->arguments, KITH_EXIT_WRITE, "%s", error);
    return KITH_EXIT_OK;
}

/* The experiment, the run to go on with, and the data. */
static int open_inputs(struct cli_run *run)
{
    char error[KITH_EXPERIMENT_ERROR_BYTES];
    const bool saved = run->world != KITH_WORLD_SIM;
    int code = saved ? kith_cli_resume_source(run) : KITH_EXIT_OK;
    if (code == KITH_EXIT_OK)
        code = open_experiment(run->arguments, run->own.words[0], run->source,
                               &run->experiment);
    if (code != KITH_EXIT_OK)
        return code;
    if (kith_experiment_check_world(&run->experiment, run->world, error) !=
        KITH_OK)
        code = kith_cli_fail(run->arguments, KITH_EXIT_EXPERIMENT, "%.300s: %s",
                             run->own.words[0], error);
    if (run->world == KITH_WORLD_SIM)
        kith_experiment_steps_of_hosts(&run->experiment);
    if (code == KITH_EXIT_OK)
        code = saved ? kith_cli_resume_find(run) : kith_cli_resume_sim(run);
    if (code == KITH_EXIT_OK)
        code = kith_cli_compute_open(run->arguments, &run->experiment,
                                     run->world != KITH_WORLD_TRAIN
                                         ? CLI_COMPUTE_ONE
                                     : run->resume ? CLI_COMPUTE_ALL
                                                   : CLI_COMPUTE_MEASURED);
    if (code == KITH_EXIT_OK)
        code = kith_cli_dataset_open(run->arguments, &run->experiment,
                                     &run->dataset, &run->has_dataset);
    return code;
}

static void close_inputs(struct cli_run *run)
{
    kith_dataset_close(&run->dataset);
    kith_experiment_close(&run->experiment);
    free(run->source);
}

static bool speaks(const struct cli_run *run)
{
    return run->ranks == NULL || run->ranks->rank == 0;
}

static int open_run(struct cli_run *run, const struct cli_arguments *arguments,
                    enum kith_world world, const struct kith_ranks *ranks,
                    int (*check)(const struct cli_run *run))
{
    memset(run, 0, sizeof *run);
    run->own = *arguments;
    run->arguments = &run->own;
    run->world = world;
    run->ranks = ranks;
    int code = open_inputs(run);
    if (code == KITH_EXIT_OK && check != NULL)
        code = check(run);
    code = kith_cli_ranks_agree(ranks, code);
    if (code == KITH_EXIT_OK) {
        code = speaks(run) ? store_open(run) : KITH_EXIT_OK;
        code = kith_cli_ranks_agree(ranks, code);
    }
    if (code == KITH_EXIT_OK && run->has_dataset && run->store != NULL)
        (void)kith_rundb_data_rows(run->store, run->dataset.train.count,
                                   run->dataset.test.count);
    if (code == KITH_EXIT_OK && world != KITH_WORLD_SIM)
        code = kith_cli_resume_name(run);
    if (code != KITH_EXIT_OK)
        close_inputs(run);
    return code;
}

int kith_cli_run_open(struct cli_run *run,
                      const struct cli_arguments *arguments,
                      enum kith_world world)
{
    return open_run(run, arguments, world, NULL, NULL);
}

int kith_cli_run_open_ranks(struct cli_run *run,
                            const struct cli_arguments *arguments,
                            const struct kith_ranks *ranks,
                            int (*check)(const struct cli_run *run))
{
    return open_run(run, arguments, KITH_WORLD_SIM, ranks, check);
}

/* The code of a run that did not fail: complete, and every check held? */
static int code_of(const struct kith_summary *summary)
{
    if (kith_cli_stop && !summary->completed)
        return KITH_EXIT_INTERRUPTED;
    return summary->completed && summary->violations == 0 ? KITH_EXIT_OK
                                                          : KITH_EXIT_FAILED;
}

int kith_cli_run_close(struct cli_run *run, enum kith_err err,
                       const char *error, const struct kith_summary *summary)
{
    char store_error[KITH_RUNDB_ERROR_BYTES];
    if (!speaks(run)) { /* the first rank says how it ended */
        close_inputs(run);
        return err == KITH_OK ? KITH_EXIT_OK : kith_cli_exit_of(err);
    }
    kith_cli_progress_end();
    int code = kith_cli_check(run->arguments, err, error);
    if (run->has_dataset && summary != NULL && err == KITH_OK)
        store_counts(run, summary->samples);
    const enum kith_err stored = kith_rundb_close(run->store, store_error);
    if (stored != KITH_OK && err == KITH_OK)
        code =
            kith_cli_fail(run->arguments, KITH_EXIT_WRITE, "%s", store_error);
    if (code == KITH_EXIT_OK) {
        if (kith_cli_given(run->arguments, CLI_JSON))
            kith_summary_json(stdout, &run->experiment, summary, run->path);
        else
            kith_summary_print(&run->experiment, summary, run->path);
        code = kith_cli_flush(run->arguments, code_of(summary));
    }
    close_inputs(run);
    return code;
}
