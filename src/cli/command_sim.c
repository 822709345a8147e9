/* kith sim: the experiment in virtual time. */
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "calibrate.h"
#include "cli.h"
#include "kith/report.h"
#include "kith/sim.h"
#include "kith/text.h"
#include "sweep_command.h"

static void show_progress(const struct sim_progress *progress, void *arg)
{
    char share[24] = "";
    (void)arg;
    if (progress->target_ns > 0) {
        kith_cli_progress("%8.2f s virtual of the save's %.2f s, caught up "
                          "with, events %llu",
                          (double)progress->now_ns / 1e9,
                          (double)progress->target_ns / 1e9,
                          (unsigned long long)progress->events);
        return;
    }
    /* Steps that are taken again after a crash count again: no share, then. */
    if (progress->steps_total > 0 &&
        progress->steps_done <= progress->steps_total)
        snprintf(share, sizeof share, " (%.0f %%)",
                 100 * (double)progress->steps_done /
                     (double)progress->steps_total);
    kith_cli_progress("%8.2f s virtual, %.1f s real, steps %llu%s, events %llu",
                      (double)progress->now_ns / 1e9, progress->wall_s,
                      (unsigned long long)progress->steps_done, share,
                      (unsigned long long)progress->events);
}

static void show_notice(const char *line, void *arg)
{
    static const struct cli_arguments own = {.command = "sim"};
    (void)arg;
    (void)kith_cli_fail(&own, KITH_EXIT_OK, "%s", line);
}

/* Which of names[] the option says; *choice stays where it is not given. */
static int parse_choice(const struct cli_arguments *arguments,
                        enum cli_option option, const char *what,
                        const char *const *names, unsigned *choice)
{
    const char *word = arguments->values[option];
    for (unsigned i = 0; word != NULL; i++) {
        if (names[i] == NULL)
            return kith_cli_unknown(arguments, what, word, names);
        if (strcmp(names[i], word) == 0) {
            *choice = i;
            break;
        }
    }
    return KITH_EXIT_OK;
}

static int parse_choices(const struct cli_arguments *arguments,
                         struct sim_options *options)
{
    static const char *const queues[] = {
        [SIM_QUEUE_CALENDAR] = "calendar", [SIM_QUEUE_HEAP] = "heap", NULL};
    static const char *const wires[] = {
        [KITH_WIRE_SIZED] = "sized", [KITH_WIRE_FULL] = "full", NULL};
    static const char *const kept[] = {[SIM_ROWS_AUTO] = "auto",
                                       [SIM_ROWS_NONE] = "none",
                                       [SIM_ROWS_SAMPLED] = "sampled",
                                       [SIM_ROWS_ALL] = "all",
                                       NULL};
    unsigned queue = options->queue, wire = options->wire;
    unsigned rows = options->rows;
    uint64_t threads = 1;
    int code = parse_choice(arguments, CLI_QUEUE, "queue", queues, &queue);
    if (code == KITH_EXIT_OK)
        code = parse_choice(arguments, CLI_WIRE, "wire mode", wires, &wire);
    if (code == KITH_EXIT_OK)
        code = parse_choice(arguments, CLI_ROWS, "rows", kept, &rows);
    if (code == KITH_EXIT_OK)
        code = kith_cli_number(arguments, CLI_THREADS, 1, SIM_THREADS_MAX,
                               &threads);
    if (code == KITH_EXIT_OK && kith_cli_given(arguments, CLI_WINDOW) &&
        !kith_cli_given(arguments, CLI_TIMELINE))
        code = kith_cli_fail(arguments, KITH_EXIT_USAGE,
                             "--window is of a --timeline FILE");
    const char *window = arguments->values[CLI_WINDOW];
    if (code == KITH_EXIT_OK && !sim_window_parse(window, &options->window))
        code = kith_cli_fail(arguments, KITH_EXIT_USAGE,
                             "--window: found \"%.60s\"; allowed: peers, and "
                             "a span of virtual time, such as 0..7 or "
                             "0..7,1s..2s",
                             window);
    options->queue = (enum sim_queue_kind)queue;
    options->wire = (enum kith_wire_mode)wire;
    options->rows = (enum sim_rows)rows;
    options->threads = (unsigned)threads;
    options->cores = kith_cli_cores();
    return code;
}

static bool many(const struct cli_arguments *arguments)
{
    return arguments->sweep_count > 0 || kith_cli_given(arguments, CLI_SEEDS) ||
           kith_cli_given(arguments, CLI_ALL_CELLS) ||
           (kith_cli_given(arguments, CLI_RESUME) &&
            !kith_cli_given(arguments, CLI_SAVE));
}

/* --save FOLDER, of one run. `--resume FILE.yaml`: the option has no value, the
 * file is the word. */
static int parse_saving(struct cli_arguments *arguments,
                        struct sim_saving *saving)
{
    const char *resume = arguments->values[CLI_RESUME];
    const char *every = arguments->values[CLI_SAVE_EVERY];
    const char *folder = arguments->values[CLI_SAVE];
    if (folder == NULL)
        return every == NULL ? KITH_EXIT_OK
                             : kith_cli_fail(arguments, KITH_EXIT_USAGE,
                                             "--save-every is of a --save "
                                             "FOLDER");
    if (many(arguments) || kith_cli_given(arguments, CLI_REPLAY))
        return kith_cli_fail(arguments, KITH_EXIT_USAGE,
                             "--save is of one run: a sweep goes on by itself, "
                             "with the same command; leave --save out");
    if (resume != NULL && resume[0] != '\0' && arguments->word_count == 0) {
        arguments->words[arguments->word_count++] = resume;
        arguments->values[CLI_RESUME] = resume = "";
    }
    if (resume != NULL && resume[0] != '\0')
        return kith_cli_fail(arguments, KITH_EXIT_USAGE,
                             "--save FOLDER --resume: found \"%.60s\" behind "
                             "it; allowed: nothing, the folder is named",
                             resume);
    *saving = (struct sim_saving){
        .folder = folder, .resume = resume != NULL, .every_ns = 60 * KITH_S};
    if (every != NULL && (kith_text_time(every, &saving->every_ns) != KITH_OK ||
                          saving->every_ns <= 0))
        return kith_cli_fail(arguments, KITH_EXIT_USAGE,
                             "--save-every: found \"%.60s\"; allowed: a time "
                             "above 0, such as 90s or 5min",
                             every);
    return KITH_EXIT_OK;
}

/* What only many runs have a use for. */
static int check_one(const struct cli_arguments *arguments)
{
    static const enum cli_option only[] = {CLI_JOBS, CLI_CELLS, CLI_SHARD,
                                           CLI_TARGET_LOSS, CLI_TARGET};
    for (size_t i = 0; i < sizeof only / sizeof *only; i++)
        if (kith_cli_given(arguments, only[i]))
            return kith_cli_fail(
                arguments, KITH_EXIT_USAGE,
                "--jobs, --cells, --shard and --target-loss go "
                "with --sweep, --seeds or --all-cells");
    if (arguments->word_count != 1)
        return kith_cli_fail(
            arguments, KITH_EXIT_USAGE,
            "found %u arguments, not one experiment; see kith sim --help",
            arguments->word_count);
    return KITH_EXIT_OK;
}

/* NULL: all are honest. */
static int parse_claims(const struct cli_arguments *arguments, uint32_t peers,
                        uint8_t **claims)
{
    const char *text = arguments->values[CLI_DISHONEST];
    *claims = NULL;
    if (text == NULL)
        return KITH_EXIT_OK;
    *claims = malloc(peers);
    if (*claims == NULL)
        return kith_cli_fail(arguments, KITH_EXIT_RESOURCES, "out of memory");
    if (sim_claims_parse(text, peers, *claims))
        return KITH_EXIT_OK;
    free(*claims);
    *claims = NULL;
    return kith_cli_fail(arguments, KITH_EXIT_USAGE,
                         "--dishonest: found \"%.60s\"; allowed: peers below "
                         "%u and what they claim, such as 3=rounds,5=silent",
                         text, peers);
}

/* What a machine's file says is part of the answer. */
static void tell_hosts(const struct cli_run *run)
{
    const struct kith_experiment *experiment = &run->experiment;
    if (experiment->hosts.taken[0] == '\0')
        return;
    fprintf(stderr, "hosts: of %s: %s\n", experiment->hosts.file,
            experiment->hosts.taken);
    /* An error sticks: closing the database reports it. */
    (void)kith_rundb_summary(run->store, "hosts", experiment->hosts.taken);
}

/* What is a choice of this command, not the experiment's. */
static int check_ranks(const struct cli_run *run)
{
    char error[SIM_ERROR_BYTES];
    const struct cli_arguments *arguments = run->arguments;
    const struct sim_saving saving = {.folder = arguments->values[CLI_SAVE]};
    const struct sim_options options = {
        .experiment = &run->experiment,
        .wire = kith_cli_given(arguments, CLI_WIRE) &&
                        strcmp(arguments->values[CLI_WIRE], "full") == 0
                    ? KITH_WIRE_FULL
                : kith_cli_given(arguments, CLI_WIRE)
                    ? KITH_WIRE_SIZED
                    : run->experiment.network.wire,
        .dump_path = arguments->values[CLI_DUMP],
        .ranks = run->ranks,
        .saves = saving.folder != NULL ? &saving : NULL};
    enum kith_err err = sim_check_ranks(&options, error);
    if (err == KITH_OK)
        err = sim_check_saves(&options, error);
    const int code = kith_cli_check(arguments, err, error);
    uint8_t *claims = NULL; /* of peers that are known only now */
    if (code != KITH_EXIT_OK)
        return code;
    const int found = parse_claims(arguments, run->experiment.peers, &claims);
    free(claims);
    return found;
}

static void be_first(struct sim_options *options,
                     const struct cli_arguments *arguments)
{
    options->progress = show_progress;
    options->notice = show_notice;
    options->trace_path = arguments->values[CLI_TRACE];
    options->timeline_path = arguments->values[CLI_TIMELINE];
    options->dump_path = arguments->values[CLI_DUMP];
}

/* Wherever the run goes on from, its database is found again. */
static void name_database(const struct cli_run *run, struct sim_saving *saving,
                          char path[PATH_MAX])
{
    if (run->store != NULL && realpath(run->path, path) != NULL)
        saving->database = path;
}

/* The command that goes on, where there is something to go on from. */
static void advise(const struct cli_arguments *arguments,
                   const struct sim_saving *saving)
{
    char database[KITH_PATH_BYTES_MAX];
    if (saving->folder == NULL ||
        sim_saved_database(saving->folder, database, sizeof database) !=
            KITH_OK)
        return;
    kith_cli_progress_end();
    fprintf(stderr, "go on with the same command%s, saved in %s\n",
            kith_cli_given(arguments, CLI_RESUME) ? "" : " and --resume",
            saving->folder);
}

/* One run, by this process or, with others, by several. */
static int run_one(const struct cli_arguments *arguments,
                   struct sim_options *options, struct sim_saving *saving,
                   const struct kith_ranks *ranks)
{
    struct cli_run run;
    char path[PATH_MAX];
    struct kith_summary summary = {0};
    char error[SIM_ERROR_BYTES] = "";
    int code = kith_cli_run_open_ranks(&run, arguments, ranks, check_ranks);
    if (code != KITH_EXIT_OK)
        return code;
    kith_cli_catch_signals();
    options->experiment = &run.experiment;
    options->dataset = run.has_dataset ? &run.dataset : NULL;
    if (!kith_cli_given(arguments, CLI_WIRE))
        options->wire = run.experiment.network.wire;
    options->store = run.store;
    name_database(&run, saving, path);
    options->saves = saving->folder != NULL ? saving : NULL;
    options->stop = &kith_cli_stop;
    options->ranks = ranks;
    if (ranks->rank == 0) {
        be_first(options, arguments);
        tell_hosts(&run);
    }
    uint8_t *claims;
    code = parse_claims(arguments, run.experiment.peers, &claims);
    code = kith_cli_ranks_agree(ranks, code);
    if (code != KITH_EXIT_OK)
        return kith_cli_run_close(&run, KITH_EINVAL, "nothing was simulated",
                                  NULL);
    options->claims = claims;
    struct sim_report report;
    const enum kith_err err = sim_run(options, &summary, &report, error);
    free(claims);
    if (err == KITH_OK && ranks->rank == 0)
        (void)kith_rundb_finish(run.store, &run.experiment, &summary);
    if (report.windows_text[0] != '\0' && ranks->rank == 0)
        fprintf(stderr, "events: %s (%llu windows)\n", report.windows_text,
                (unsigned long long)report.windows);
    if (report.asides > 0)
        fprintf(stderr, "events: one thread, and %llu merges beside them\n",
                (unsigned long long)report.asides);
    if (report.not_live[0] != '\0' && ranks->rank == 0)
        (void)kith_cli_fail(arguments, KITH_EXIT_FAILED,
                            "not live after the last fault: %s",
                            report.not_live);
    const int ended = kith_cli_run_close(&run, err, error, &summary);
    if (ranks->rank == 0 && kith_cli_stop)
        advise(arguments, saving);
    if (kith_cli_stop && (ranks->count > 1 || err == KITH_ECLOSED))
        return KITH_EXIT_INTERRUPTED;
    return err == KITH_EPARSE ? KITH_EXIT_DATA : ended;
}

/* Several ranks carry out one run, of a cost that all know. */
static int check_alone(const struct cli_arguments *arguments,
                       const struct kith_ranks *ranks)
{
    const char *what = kith_cli_given(arguments, CLI_REPLAY) ? "--replay"
                       : kith_cli_given(arguments, CLI_CALIBRATE)
                           ? "--calibrate"
                       : many(arguments) ? "a sweep"
                                         : NULL;
    if (ranks->count <= 1 || what == NULL)
        return KITH_EXIT_OK;
    return kith_cli_fail(arguments, KITH_EXIT_USAGE,
                         "%s is not divided among %u ranks: leave mpirun out",
                         what, ranks->count);
}

static int run(struct cli_arguments *arguments, const struct kith_ranks *ranks)
{
    struct sim_options options = {0};
    struct sim_saving saving = {.folder = NULL};
    struct kith_target target;
    int code = check_alone(arguments, ranks);
    if (code == KITH_EXIT_OK && kith_cli_given(arguments, CLI_REPLAY) &&
        !kith_cli_given(arguments, CLI_SAVE))
        return kith_cli_replay(arguments);
    if (code == KITH_EXIT_OK)
        code = parse_choices(arguments, &options);
    if (code == KITH_EXIT_OK)
        code = kith_cli_target(arguments, &target);
    if (code == KITH_EXIT_OK)
        code = parse_saving(arguments, &saving);
    if (code == KITH_EXIT_OK && !many(arguments))
        code = check_one(arguments);
    code = kith_cli_ranks_told(ranks, code);
    if (code == KITH_EXIT_OK && many(arguments))
        return kith_cli_sweep(arguments, &options);
    if (code == KITH_EXIT_OK && kith_cli_given(arguments, CLI_CALIBRATE))
        code = kith_cli_calibrate_step(arguments);
    return code == KITH_EXIT_OK ? run_one(arguments, &options, &saving, ranks)
                                : code;
}

int kith_cli_sim(const struct cli_arguments *arguments)
{
    struct kith_ranks ranks;
    int code = kith_cli_ranks_open(arguments, &ranks);
    if (code != KITH_EXIT_OK)
        return code;
    struct cli_arguments own = *arguments;
    code = run(&own, &ranks);
    /* Of those that a signal ends one may be gone. */
    if (!kith_cli_stop)
        kith_ranks_finish(&ranks);
    return code;
}
