/* kith sim --sweep and --all-cells: one process a simulation, on all cores.
 *
 *   launcher --fork--> a run: its part of the database, its share of the page
 *      that all of them see (how far it is, and what went wrong)
 *
 * The launcher alone writes the database, after each run in one transaction. A
 * run that was cut short leaves nothing, and is done again. */
#define _GNU_SOURCE /* prctl */
#include <errno.h>
#include <inttypes.h>
#include <math.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include <jansson.h>

#include "kith/json.h"
#include "kith/report.h"
#include "kith/sim.h"
#include "kith/text.h"
#include "sweep_command.h"

#define JOBS_MAX 256u
/* How often the progress line is looked at while nothing ends. */
#define LOOK_NS (200 * 1000 * 1000L)

/* Written by a child, read by the launcher: one writer, no lock. */
struct share {
    volatile double done; /* of its run, 0 to 1 */
    bool fatal;           /* no other run would fare better: a full disk */
    char problem[KITH_PROBLEM_BYTES];
};

struct job {
    pid_t pid; /* 0: free */
    uint32_t run;
};

struct sweep {
    const struct cli_arguments *arguments;
    const struct sim_options *options;
    struct cli_dataset_cache *cache;
    struct kith_runs *runs;
    char path[KITH_PATH_BYTES_MAX];
    struct job jobs[JOBS_MAX];
    struct share *shares; /* (job_count), shared */
    unsigned job_count, running;
    uint32_t next, todo, done, failed; /* runs of this command */
    kith_ns began_ns;
    int code; /* of what ends the sweep early */
};

/* ---- one run, in its own process */

static void note_progress(const struct sim_progress *progress, void *arg)
{
    struct share *share = arg;
    if (progress->steps_total > 0)
        share->done = fmin(1, (double)progress->steps_done /
                                  (double)progress->steps_total);
}

/* No file can be written there. */
static bool is_write_failure(enum kith_err err)
{
    return err == KITH_ENOSPC || err == KITH_EPERM || err == KITH_EIO ||
           err == KITH_ENOENT;
}

static void note_problem(struct share *share, enum kith_err err, bool writing,
                         const char *problem)
{
    share->fatal = writing && is_write_failure(err);
    kith_text_copy(share->problem, sizeof share->problem, problem);
}

/* From the open experiment to a finished part. */
static enum kith_err simulate(const struct sweep *sweep, uint32_t run,
                              struct kith_experiment *experiment,
                              struct share *share)
{
    char error[SIM_ERROR_BYTES] = "", path[KITH_PATH_BYTES_MAX];
    struct kith_dataset *set;
    struct kith_rundb *store = NULL;
    struct kith_summary summary = {0};
    enum kith_err err =
        kith_cli_dataset_cache_get(sweep->cache, experiment, &set, error);
    const bool writing = err == KITH_OK;
    kith_runs_part(sweep->runs, run, path);
    if (err == KITH_OK)
        err = kith_rundb_create_part(path, run + 1, "sim", experiment, &store,
                                     error);
    if (err != KITH_OK) {
        note_problem(share, err, writing, error);
        return err;
    }
    struct sim_options options = *sweep->options;
    options.experiment = experiment;
    options.dataset = set;
    options.store = store;
    options.of_sweep = true;
    options.progress = note_progress;
    options.arg = share;
    if (!kith_cli_given(sweep->arguments, CLI_WIRE))
        options.wire = experiment->network.wire;
    if (set != NULL)
        (void)kith_rundb_data_rows(store, set->train.count, set->test.count);
    err = sim_run(&options, &summary, NULL, error);
    if (err == KITH_OK)
        (void)kith_rundb_finish(store, experiment, &summary);
    else
        note_problem(share, err, err == KITH_ENOSPC, error);
    const enum kith_err stored = kith_rundb_close(store, error);
    if (stored != KITH_OK)
        note_problem(share, stored, true, error);
    return err != KITH_OK ? err : stored;
}

static int child_main(const struct sweep *sweep, uint32_t run,
                      struct share *share)
{
    char error[KITH_EXPERIMENT_ERROR_BYTES] = "", seed[32];
    const struct kith_plan *plan = kith_runs_plan(sweep->runs);
    const struct kith_cell *cell = &plan->cells[run % plan->cell_count];
    const char *sets[] = {seed};
    struct kith_experiment experiment;
    snprintf(seed, sizeof seed, "seed=%" PRIu64,
             cell->seed + run / plan->cell_count);
    enum kith_err err = kith_experiment_parse(cell->path, cell->experiment,
                                              strlen(cell->experiment), sets, 1,
                                              &experiment, error);
    if (err != KITH_OK) {
        note_problem(share, err, false, error);
        return 1;
    }
    kith_experiment_steps_of_hosts(&experiment);
    if (kith_cli_compute_open(sweep->arguments, &experiment, CLI_COMPUTE_ONE) !=
        KITH_EXIT_OK) {
        note_problem(share, KITH_EUNSUPPORTED, false,
                     "compute.products is not installed here");
        return 1;
    }
    err = simulate(sweep, run, &experiment, share);
    return err == KITH_OK ? 0 : 1;
}

/* ---- the launcher */

static double elapsed_s(const struct sweep *sweep)
{
    return 1e-9 * (double)(kith_host_now() - sweep->began_ns);
}

static void show_progress(const struct sweep *sweep)
{
    char left[48] = "", failed[32] = "";
    double done = sweep->done;
    for (unsigned i = 0; i < sweep->job_count; i++)
        if (sweep->jobs[i].pid != 0)
            done += fmin(1, sweep->shares[i].done);
    const double share = done / sweep->todo;
    if (share > 0.01)
        snprintf(left, sizeof left, ", %.0f s to go",
                 elapsed_s(sweep) * (1 - share) / share);
    if (sweep->failed > 0)
        snprintf(failed, sizeof failed, ", %" PRIu32 " failed", sweep->failed);
    kith_cli_progress(
        "%" PRIu32 " of %" PRIu32 " runs (%.0f %%), %u at work%s%s",
        sweep->done, sweep->todo, 100 * share, sweep->running, failed, left);
}

/* What is to be done of this state? A run that failed is tried again. */
static bool open_run(const struct sweep *sweep, uint32_t run)
{
    const enum kith_run_state state = kith_runs_state(sweep->runs, run);
    return state == KITH_RUN_PLANNED || state == KITH_RUN_FAILED;
}

static bool start(struct sweep *sweep, unsigned at, uint32_t run)
{
    const pid_t launcher = getpid();
    memset(&sweep->shares[at], 0, sizeof sweep->shares[at]);
    fflush(stdout);
    fflush(stderr);
    const pid_t pid = fork();
    if (pid < 0) {
        sweep->code = kith_cli_fail(
            sweep->arguments, KITH_EXIT_RESOURCES,
            "cannot start a process: %s; use fewer --jobs", strerror(errno));
        return false;
    }
    if (pid == 0) {
        /* Ctrl-C is the launcher's, and nobody outlives it. */
        sigset_t none;
        prctl(PR_SET_PDEATHSIG, SIGKILL);
        signal(SIGINT, SIG_IGN);
        signal(SIGTERM, SIG_DFL);
        signal(SIGXFSZ, SIG_IGN);
        sigemptyset(&none);
        sigprocmask(SIG_SETMASK, &none, NULL);
        if (getppid() != launcher)
            _exit(1);
        kith_runs_forget(sweep->runs);
        _exit(child_main(sweep, run, &sweep->shares[at]));
    }
    sweep->jobs[at] = (struct job){pid, run};
    sweep->running++;
    return true;
}

static void start_more(struct sweep *sweep)
{
    const uint32_t count = kith_runs_count(sweep->runs);
    for (unsigned i = 0; i < sweep->job_count; i++) {
        if (sweep->jobs[i].pid != 0)
            continue;
        while (sweep->next < count && !open_run(sweep, sweep->next))
            sweep->next++;
        if (sweep->next == count || !start(sweep, i, sweep->next))
            return;
        sweep->next++;
    }
}

/* A run has ended: into the database with it. */
static void collect(struct sweep *sweep, unsigned at, int status)
{
    char error[KITH_RUNDB_ERROR_BYTES] = "", problem[KITH_PROBLEM_BYTES];
    const struct share *share = &sweep->shares[at];
    const uint32_t run = sweep->jobs[at].run;
    sweep->jobs[at].pid = 0;
    sweep->running--;
    enum kith_err err;
    if (WIFEXITED(status) && WEXITSTATUS(status) == 0) {
        err = kith_runs_take(sweep->runs, run, error);
    } else if (share->fatal) {
        sweep->code = kith_cli_fail(sweep->arguments, KITH_EXIT_WRITE, "%s",
                                    share->problem);
        return;
    } else {
        kith_text_copy(problem, sizeof problem, share->problem);
        if (WIFSIGNALED(status))
            (void)kith_text_add(problem, sizeof problem, 0,
                                "ended by signal %d (%s)%s", WTERMSIG(status),
                                strsignal(WTERMSIG(status)),
                                WTERMSIG(status) == SIGKILL
                                    ? "; out of memory? try fewer --jobs"
                                    : "");
        err = kith_runs_fail(sweep->runs, run, problem, error);
        sweep->failed++;
    }
    sweep->done++;
    if (err != KITH_OK)
        sweep->code = kith_cli_check(sweep->arguments, err, error);
}

static void reap(struct sweep *sweep, bool wait)
{
    for (unsigned i = 0; i < sweep->job_count; i++) {
        int status;
        const pid_t pid = sweep->jobs[i].pid;
        if (pid == 0)
            continue;
        const pid_t ended = waitpid(pid, &status, wait ? 0 : WNOHANG);
        if (ended == pid && sweep->code == KITH_EXIT_OK && !wait)
            collect(sweep, i, status);
        else if (ended == pid)
            sweep->jobs[i].pid = 0;
    }
}

static void run_all(struct sweep *sweep)
{
    sigset_t child;
    sigemptyset(&child);
    sigaddset(&child, SIGCHLD);
    sigprocmask(SIG_BLOCK, &child, NULL);
    sweep->began_ns = kith_host_now();
    for (;;) {
        if (kith_cli_stop || sweep->code != KITH_EXIT_OK)
            break;
        start_more(sweep);
        if (sweep->running == 0)
            break;
        show_progress(sweep);
        const struct timespec look = {0, LOOK_NS};
        (void)sigtimedwait(&child, NULL,
                           &look); /* or a signal: kith_cli_stop */
        reap(sweep, false);
    }
    for (unsigned i = 0; i < sweep->job_count; i++)
        if (sweep->jobs[i].pid != 0)
            kill(sweep->jobs[i].pid, SIGKILL);
    reap(sweep, true);
    sweep->running = 0;
    sigprocmask(SIG_UNBLOCK, &child, NULL);
    kith_cli_progress_end();
}

/* ---- before and after */

/* A new database, or the unfinished one of the very same plan. */
static int open_plan(struct sweep *sweep)
{
    const struct cli_arguments *arguments = sweep->arguments;
    const char *folder =
        kith_cli_given(arguments, CLI_OUT) ? arguments->values[CLI_OUT] : ".";
    char error[KITH_RUNDB_ERROR_BYTES] = "";
    struct kith_plan plan;
    int code = kith_cli_plan_open(arguments, sweep->cache, &plan);
    if (code != KITH_EXIT_OK)
        return code;
    enum kith_err err = KITH_OK;
    if (kith_runs_find(folder, &plan, sweep->path) == KITH_OK) {
        err = kith_runs_open(sweep->path, &sweep->runs, error);
        if (err == KITH_OK)
            err = kith_runs_extend(sweep->runs, plan.seeds, error);
    } else if (kith_cli_given(arguments, CLI_RESUME)) {
        code = kith_cli_fail(arguments, KITH_EXIT_EXPERIMENT,
                             "--resume: %s holds no unfinished %s of these "
                             "cells; leave it out to begin",
                             folder, plan.kind);
    } else {
        code = kith_cli_out_folder(arguments, &folder);
        if (code == KITH_EXIT_OK)
            err = kith_runs_create(folder, &plan, &sweep->runs, sweep->path,
                                   error);
    }
    kith_plan_free(&plan);
    if (err == KITH_OK)
        return code;
    return kith_cli_fail(arguments,
                         is_write_failure(err) ? KITH_EXIT_WRITE
                                               : kith_cli_exit_of(err),
                         "%s", error);
}

/* --resume PATH: the database names its own cells. */
static int open_named(struct sweep *sweep)
{
    const struct cli_arguments *arguments = sweep->arguments;
    char error[KITH_RUNDB_ERROR_BYTES] = "";
    uint64_t seeds = 0;
    const int code = kith_cli_number(arguments, CLI_SEEDS, 1, 10000, &seeds);
    if (code != KITH_EXIT_OK)
        return code;
    if (arguments->word_count > 0 || arguments->sweep_count > 0 ||
        arguments->set_count > 0 || kith_cli_given(arguments, CLI_ALL_CELLS) ||
        kith_cli_given(arguments, CLI_SEED) ||
        kith_cli_given(arguments, CLI_SHARD))
        return kith_cli_fail(arguments, KITH_EXIT_USAGE,
                             "--resume RUNS.db names its experiment and cells; "
                             "allowed beside it: --seeds, --jobs, --json");
    kith_text_copy(sweep->path, sizeof sweep->path,
                   arguments->values[CLI_RESUME]);
    enum kith_err err = kith_runs_open(sweep->path, &sweep->runs, error);
    if (err == KITH_OK)
        err = kith_runs_extend(sweep->runs, (uint32_t)seeds, error);
    return kith_cli_check(arguments, err, error);
}

static int open_jobs(struct sweep *sweep)
{
    uint64_t jobs = kith_cli_cores();
    const int code =
        kith_cli_number(sweep->arguments, CLI_JOBS, 1, JOBS_MAX, &jobs);
    if (code != KITH_EXIT_OK)
        return code;
    const uint32_t count = kith_runs_count(sweep->runs);
    uint32_t there = 0;
    for (uint32_t run = 0; run < count; run++) {
        const enum kith_run_state state = kith_runs_state(sweep->runs, run);
        there += state == KITH_RUN_DONE || state == KITH_RUN_DIVERGED;
        sweep->todo += open_run(sweep, run);
    }
    if (there > 0)
        (void)kith_cli_fail(sweep->arguments, KITH_EXIT_OK,
                            "going on with %s: %" PRIu32 " of %" PRIu32
                            " runs are there",
                            sweep->path, there, there + sweep->todo);
    sweep->job_count = (unsigned)(jobs < sweep->todo ? jobs : sweep->todo);
    if (sweep->job_count == 0)
        return KITH_EXIT_OK;
    sweep->shares =
        mmap(NULL, sweep->job_count * sizeof *sweep->shares,
             PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    if (sweep->shares != MAP_FAILED)
        return KITH_EXIT_OK;
    sweep->shares = NULL;
    return kith_cli_fail(sweep->arguments, KITH_EXIT_RESOURCES,
                         "out of memory");
}

/* Did every run come to a good end? */
static bool all_well(const struct kith_comparison *comparison)
{
    for (uint32_t i = 0; i < comparison->outcome_count; i++)
        if (comparison->outcomes[i].state != KITH_RUN_DONE ||
            comparison->outcomes[i].violations > 0)
            return false;
    return true;
}

/* The table, or the object, of all runs in the database. */
static int show(struct sweep *sweep, const struct kith_plan *plan)
{
    const struct cli_arguments *arguments = sweep->arguments;
    const char *paths[] = {sweep->path};
    char error[KITH_REPORT_ERROR_BYTES] = "";
    struct kith_comparison comparison;
    struct kith_report_options options = {.what = NULL};
    int code = kith_cli_target(arguments, &options.target);
    if (code != KITH_EXIT_OK)
        return code;
    const enum kith_err err =
        kith_compare(paths, 1, &options, &comparison, error);
    if (err != KITH_OK)
        return kith_cli_check(arguments, err, error);
    if (kith_cli_given(arguments, CLI_JSON)) {
        json_t *document = json_pack(
            "{s:o, s:o, s:I, s:o}", "name", kith_json_text(plan->name), "kind",
            kith_json_text(plan->kind), "seeds", (json_int_t)plan->seeds,
            "database", kith_json_text(sweep->path));
        kith_comparison_add_to(&comparison, document);
        kith_json_print(document, 9);
    } else {
        kith_comparison_print(&comparison, stdout);
        printf("  %-22s %s\n", "run database", sweep->path);
    }
    const bool well = all_well(&comparison);
    kith_comparison_close(&comparison);
    return kith_cli_flush(arguments, well ? KITH_EXIT_OK : KITH_EXIT_FAILED);
}

static int run_plan(struct sweep *sweep)
{
    int code = open_jobs(sweep);
    if (code != KITH_EXIT_OK)
        return code;
    kith_cli_catch_signals();
    signal(SIGXFSZ, SIG_IGN);
    run_all(sweep);
    code = show(sweep, kith_runs_plan(sweep->runs));
    if (sweep->done < sweep->todo) {
        (void)kith_cli_fail(
            sweep->arguments, KITH_EXIT_OK,
            "%" PRIu32 " runs are missing; go on with: kith sim --resume %s",
            sweep->todo - sweep->done, sweep->path);
        code = kith_cli_stop ? KITH_EXIT_INTERRUPTED : KITH_EXIT_FAILED;
    }
    if (sweep->shares != NULL)
        munmap(sweep->shares, sweep->job_count * sizeof *sweep->shares);
    return sweep->code != KITH_EXIT_OK ? sweep->code : code;
}

int kith_cli_sweep(const struct cli_arguments *arguments,
                   const struct sim_options *options)
{
    const char *resume = arguments->values[CLI_RESUME];
    const bool named = resume != NULL && resume[0] != '\0';
    const unsigned wanted = kith_cli_given(arguments, CLI_ALL_CELLS) ? 0 : 1;
    struct cli_dataset_cache cache = {0};
    struct sweep *sweep;
    if (!named && arguments->word_count != wanted)
        return kith_cli_fail(
            arguments, KITH_EXIT_USAGE,
            wanted == 1 ? "which experiment? kith sim EXPERIMENT.yaml ..."
                        : "--all-cells takes no experiment; --cells DIR "
                          "names their folder");
    if (kith_cli_given(arguments, CLI_TRACE) ||
        kith_cli_given(arguments, CLI_DUMP) ||
        kith_cli_given(arguments, CLI_TIMELINE) ||
        kith_cli_given(arguments, CLI_CALIBRATE))
        return kith_cli_fail(
            arguments, KITH_EXIT_USAGE,
            "--trace, --timeline, --dump and --calibrate belong to one run");
    sweep = calloc(1, sizeof *sweep);
    if (sweep == NULL)
        return kith_cli_fail(arguments, KITH_EXIT_RESOURCES, "out of memory");
    sweep->arguments = arguments;
    sweep->options = options;
    sweep->cache = &cache;
    int code = named ? open_named(sweep) : open_plan(sweep);
    if (code == KITH_EXIT_OK)
        code = run_plan(sweep);
    if (sweep->runs != NULL)
        kith_runs_close(sweep->runs);
    kith_cli_dataset_cache_close(&cache);
    free(sweep);
    return code;
}
