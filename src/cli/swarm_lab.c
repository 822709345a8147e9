/* One run of a search with real processes: kith swarm --lab.
 *
 * Its rows go to a run database, which goes where nothing was violated. */
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "kith/lab.h"
#include "kith/text.h"
#include "swarm_command.h"

static void show_line(void *user, const char *line)
{
    (void)user;
    fprintf(stderr, "%s\n", line);
}

static enum kith_err run_lab(const struct swarm_search *search,
                             const struct kith_experiment *experiment,
                             struct kith_rundb *store,
                             const struct kith_dataset *dataset,
                             struct swarm_outcome *outcome)
{
    char error[KITH_LAB_ERROR_BYTES], more[sizeof outcome->what];
    struct kith_summary summary = {0};
    struct kith_lab_report report = {0};
    const struct kith_lab_options options = {
        .experiment = experiment,
        .dataset = dataset,
        .store = store,
        .report = &report,
        .on_line = search->one ? show_line : NULL,
    };
    const enum kith_err err = kith_lab_run(&options, &summary, error);
    if (err == KITH_OK && !summary.completed)
        return KITH_ECLOSED; /* a signal */
    memcpy(outcome->marks, report.marks, sizeof outcome->marks);
    (void)kith_text_add(
        more, sizeof more, 0, "%s%s%s", report.not_live,
        report.not_live[0] != '\0' && report.died[0] != '\0' ? "; " : "",
        report.died);
    kith_swarm_judge(experiment, &summary, err == KITH_OK ? "" : error, more,
                     "", outcome);
    return KITH_OK;
}

int kith_swarm_lab(const struct swarm_search *search,
                   const struct kith_experiment *experiment,
                   struct swarm_outcome *outcome)
{
    char path[KITH_PATH_BYTES_MAX], error[KITH_RUNDB_ERROR_BYTES];
    const char *folder;
    struct kith_rundb *store;
    struct kith_dataset dataset;
    bool has = false;
    int code = kith_cli_out_folder(search->arguments, &folder);
    if (code == KITH_EXIT_OK)
        code = kith_cli_dataset_open(search->arguments, experiment, &dataset,
                                     &has);
    if (code != KITH_EXIT_OK)
        return code;
    enum kith_err err =
        kith_rundb_create(folder, "lab", experiment, &store, path, error);
    code = kith_cli_check(search->arguments, err, error);
    if (code == KITH_EXIT_OK) {
        err =
            run_lab(search, experiment, store, has ? &dataset : NULL, outcome);
        code = kith_cli_check(search->arguments, kith_rundb_close(store, error),
                              error);
        if (outcome->what[0] == '\0')
            (void)unlink(path);
        else
            (void)kith_text_add(outcome->what, sizeof outcome->what,
                                strlen(outcome->what), " (%s)", path);
        if (err == KITH_ECLOSED)
            code = KITH_EXIT_INTERRUPTED;
    }
    if (has)
        kith_dataset_close(&dataset);
    return code;
}
