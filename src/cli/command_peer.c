/* kith peer: one peer of a cluster, until its share is done or it is told to
 * stop.
 *
 * Below `save:` it keeps NAME.save, the model; NAME.incarnation, how often it
 * was started; and NAME-peer-N.db, the rows of each start. A start that finds
 * an incarnation goes on from the save and adopts a neighbour's model. */
#include <errno.h>
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "calibrate.h"
#include "kith/evaluation.h"
#include "kith/text.h"
#include "kith/worker.h"
#include "peer_open.h"

/* A peer whose share is done answers the others until nobody has asked for so
 * long; then the run is over for it. */
#define LINGER_NS (60 * KITH_S)
/* Between two lines about progress. */
#define PROGRESS_NS (10 * KITH_S)

struct peering {
    const struct cli_arguments *arguments;
    struct kith_member_file member;
    struct kith_peer_data data; /* its store is used with data.manifest alone */
    bool has_dataset;
    struct kith_rundb *store;
    uint32_t incarnation;
    int listen_fd, stop_fd;         /* the run takes them over */
    uint64_t steps;                 /* own share */
    struct kith_peer_report report; /* filled in while it runs */
    uint64_t messages;              /* at the last row that had news */
    kith_ns news_ns;                /* and its time */
    kith_ns told_ns;                /* of the last line about progress */
    kith_ns finished_ns;            /* own share; 0: not yet */
    char database[KITH_PATH_BYTES_MAX];
    char save[KITH_PATH_BYTES_MAX];
};

/* A time of day in front, for logs that have none. */
static void show_line(void *user, const char *line)
{
    char when[32];
    const time_t now = time(NULL);
    struct tm utc;
    (void)user;
    gmtime_r(&now, &utc);
    strftime(when, sizeof when, "%Y-%m-%dT%H:%M:%SZ", &utc);
    fprintf(stderr, "%s %s\n", when, line);
}

/* How far it is and how fast; rarely, for a log. */
static void show_progress(struct peering *peering, const struct kith_row *row)
{
    char line[KITH_PEER_LINE_BYTES], speed[KITH_SPEED_TEXT_BYTES];
    char overlap[32] = "";
    if (row->time_ns - peering->told_ns < PROGRESS_NS ||
        row->step >= peering->steps)
        return;
    peering->told_ns = row->time_ns;
    kith_speed_text(&row->speed, speed);
    if (isfinite(row->speed.exchange_overlap))
        snprintf(overlap, sizeof overlap, " overlap=%.3f",
                 row->speed.exchange_overlap);
    snprintf(line, sizeof line,
             "progress step=%" PRIu64 " loss=%.4f exchanges=%" PRIu64
             " speed=\"%s\" data_wait_s=%.3f%s memory_mb=%.1f",
             row->step, row->loss, row->done, speed, row->speed.data_wait_s,
             overlap, 1e-6 * (double)row->speed.memory_bytes);
    show_line(NULL, line);
}

static void keep_row(void *user, const struct kith_row *row)
{
    struct peering *peering = user;
    show_progress(peering, row);
    /* The store keeps its first error until it is closed. */
    (void)kith_rundb_row(peering->store, row);
    if (row->step < peering->steps ||
        peering->report.messages != peering->messages) {
        peering->messages = peering->report.messages;
        peering->news_ns = row->time_ns;
    } else if (row->time_ns - peering->news_ns > LINGER_NS) {
        kith_cli_stop_idle(); /* ends the loop in order, as a signal does */
        peering->news_ns = row->time_ns;
    }
}

static void keep_mark(void *user, kith_ns time_ns, const struct kith_mark *mark)
{
    struct peering *peering = user;
    if (mark->kind == KITH_MARK_FINISHED)
        peering->finished_ns = time_ns;
    (void)kith_rundb_mark(peering->store, peering->member.file.rank, time_ns,
                          mark);
}

static int save_path(const struct peering *peering, const char *ending,
                     char path[KITH_PATH_BYTES_MAX])
{
    const int length = snprintf(path, KITH_PATH_BYTES_MAX, "%s/%s.%s",
                                peering->member.file.save,
                                peering->member.experiment.name, ending);
    if (length < 0 || length >= (int)KITH_PATH_BYTES_MAX)
        return kith_cli_fail(peering->arguments, KITH_EXIT_EXPERIMENT,
                             "save: the path is too long");
    return KITH_EXIT_OK;
}

static int open_files(struct peering *peering)
{
    char error[KITH_RUNDB_ERROR_BYTES];
    const char *folder = peering->member.file.save;
    char words[KITH_EXPERIMENT_ERROR_BYTES];
    const int code = save_path(peering, "save", peering->save);
    if (code != KITH_EXIT_OK)
        return code;
    const enum kith_err counted = kith_start_count(
        folder, peering->member.experiment.name, &peering->incarnation, words);
    if (counted != KITH_OK)
        return kith_cli_check(peering->arguments, counted, words);
    if (kith_rundb_create(folder, "peer", &peering->member.experiment,
                          &peering->store, peering->database, error) != KITH_OK)
        return kith_cli_fail(peering->arguments, KITH_EXIT_WRITE, "%s", error);
    /* Errors stick: they are told at the end. */
    (void)kith_rundb_member(peering->store, peering->member.file.rank,
                            peering->incarnation);
    return KITH_EXIT_OK;
}

/* The last save on this machine's test set; false: there is none. */
static bool score_save(const struct peering *peering, struct kith_score *score)
{
    const struct kith_experiment *experiment = &peering->member.experiment;
    char error[KITH_DATA_ERROR_BYTES];
    double *z;
    size_t dim;
    uint64_t step;
    const struct kith_task task = kith_experiment_task(experiment, NULL);
    if (!peering->has_dataset ||
        kith_save_parameters(&task, experiment->backend, peering->save, &z,
                             &dim, &step, error) != KITH_OK)
        return false;
    const enum kith_err err = kith_evaluate(
        experiment, experiment->backend, &peering->data.dataset.test, z, score);
    free(z);
    return err == KITH_OK;
}

/* Time in training steps, as a share of the time until the own share was done,
 * else the end. */
static double utilisation(const struct peering *peering,
                          const struct kith_peer_report *report)
{
    const kith_ns span =
        peering->finished_ns > 0 ? peering->finished_ns : report->wall_ns;
    return span > 0 ? fmin(1, 1e9 * report->row.training_s / (double)span)
                    : (double)NAN;
}

/* The curve's last point: of all of the test set. */
static void keep_score(struct peering *peering,
                       const struct kith_peer_report *report,
                       const struct kith_score *score)
{
    struct kith_row row = report->row;
    row.speed.measured = false; /* nothing was trained for this row */
    row.time_ns = report->wall_ns;
    row.loss = row.test_loss = score->loss;
    row.accuracy = score->accuracy;
    (void)kith_rundb_row(peering->store, &row);
}

static void summarise(struct peering *peering,
                      const struct kith_peer_report *report,
                      struct kith_summary *summary)
{
    struct kith_score score;
    const bool scored = score_save(peering, &score);
    *summary = kith_summary_unknown("peer");
    kith_summary_count(summary, &report->row);
    summary->nodes = 1;
    summary->bytes_sent = summary->bytes_per_peer_max = report->bytes_sent;
    summary->wall_s = (double)report->wall_ns / 1e9;
    summary->utilisation = utilisation(peering, report);
    summary->speed = report->speed;
    summary->cpu.train_s = report->cpu.train_s + report->cpu.merge_s;
    summary->cpu.aead_s = report->cpu.aead_s;
    summary->cpu.socket_s = report->cpu.socket_s;
    summary->cpu.other_s = report->cpu.other_s;
    summary->pieces = kith_data_store_totals(&peering->data.store);
    summary->completed = report->finished;
    summary->alone = kith_peer_was_alone(report);
    summary->diverged = report->diverged;
    kith_summary_curve(summary, &report->curve);
    if (!scored)
        return;
    summary->accuracy.mean = summary->accuracy.worst = score.accuracy;
    summary->loss.mean = summary->loss.worst = score.loss;
    summary->scored.peers = 1;
    summary->scored.accuracy_error = 0;
    summary->diverged = summary->diverged || !isfinite(score.loss);
    keep_score(peering, report, &score);
}

static bool in_pieces(const struct peering *peering)
{
    const struct kith_experiment *experiment = &peering->member.experiment;
    return experiment->model->input != KITH_INPUT_NONE &&
           experiment->data.config.manifest[0] != '\0';
}

static enum kith_err open_pieces(struct peering *peering,
                                 struct kith_peer_options *options, char *error)
{
    const struct kith_experiment *experiment = &peering->member.experiment;
    const enum kith_err err =
        kith_peer_data_open(options, &peering->data, error);
    peering->has_dataset = err == KITH_OK;
    return err == KITH_OK ? kith_experiment_check_data(
                                experiment, &peering->data.dataset.train, error)
                          : err;
}

/* What it is about to do, for whoever reads the log of a machine. */
static void show_start(const struct peering *peering)
{
    const struct kith_experiment *experiment = &peering->member.experiment;
    const struct kith_data_config *data = &experiment->data.config;
    char line[KITH_PEER_LINE_BYTES], rows[64] = "";
    const char *graph = experiment->gossip.graph.kind == NULL
                            ? "none"
                            : experiment->gossip.graph.kind->name;
    if (peering->has_dataset)
        (void)snprintf(rows, sizeof rows, " rows=%zu",
                       peering->data.dataset.train.count);
    (void)snprintf(line, sizeof line,
                   "starting experiment=%s backend=%s threads=%u model=%s "
                   "data=%s:%.200s%s algorithm=%s every=%" PRIu32
                   " graph=%s peers=%" PRIu32,
                   experiment->name, experiment->backend->name,
                   kith_backend_thread_count(), experiment->model->name,
                   data->kind == NULL ? "none" : data->kind->name, data->path,
                   rows, experiment->gossip.algorithm->name,
                   experiment->gossip.every, graph, experiment->peers);
    show_line(NULL, line);
}

static enum kith_err run_peer(struct peering *peering, char *error)
{
    const struct kith_member_file *member = &peering->member;
    struct kith_peer_options options;
    kith_peer_options_default(&options);
    options.experiment = &member->experiment;
    options.train = peering->has_dataset ? &peering->data.dataset.train : NULL;
    options.evaluates = true;
    options.test = peering->has_dataset ? &peering->data.dataset.test : NULL;
    options.identity = &member->identity;
    options.trust = &member->trust;
    options.keys_folder = member->file.identity;
    options.self = member->file.rank;
    options.members = member->members;
    options.listen_fd = peering->listen_fd;
    options.save = peering->save;
    options.incarnation = peering->incarnation;
    options.wait_members = member->file.wait.members;
    options.wait_ns = member->file.wait.for_ns;
    options.resume = options.adopt = peering->incarnation > 0;
    options.control_fd = peering->stop_fd;
    options.user = peering;
    options.on_row = keep_row;
    options.on_mark = keep_mark;
    options.on_log = show_line;
    if (in_pieces(peering)) {
        const enum kith_err err = open_pieces(peering, &options, error);
        if (err != KITH_OK) { /* the run takes them over */
            close(peering->listen_fd);
            close(peering->stop_fd);
            return err;
        }
    }
    if (peering->has_dataset) /* errors stick */
        (void)kith_rundb_data_rows(peering->store,
                                   peering->data.dataset.train.count,
                                   peering->data.dataset.test.count);
    peering->steps = kith_experiment_steps(
        &member->experiment,
        peering->has_dataset ? peering->data.dataset.train.count : 0);
    show_start(peering);
    return kith_peer_run(&options, &peering->report, error);
}

/* Prints the end of the run; the exit code. */
static int finish(struct peering *peering, enum kith_err err, const char *error)
{
    const struct kith_peer_report *report = &peering->report;
    char store_error[KITH_RUNDB_ERROR_BYTES];
    struct kith_summary summary;
    const struct kith_experiment *experiment = &peering->member.experiment;
    if (err == KITH_OK || err == KITH_EALONE) {
        summarise(peering, report, &summary);
        summary.alone = summary.alone || err == KITH_EALONE;
        (void)kith_rundb_finish(peering->store, experiment, &summary);
    }
    const enum kith_err stored = kith_rundb_close(peering->store, store_error);
    if (err == KITH_ECLOSED)
        return kith_cli_fail(peering->arguments, KITH_EXIT_INTERRUPTED, "%s",
                             error);
    if (err != KITH_OK)
        return kith_cli_check(peering->arguments, err, error);
    if (stored != KITH_OK)
        return kith_cli_fail(peering->arguments, KITH_EXIT_WRITE, "%s",
                             store_error);
    const bool json = kith_cli_given(peering->arguments, CLI_JSON);
    if (json)
        kith_summary_json(stdout, experiment, &summary, peering->database);
    else
        kith_summary_print(experiment, &summary, peering->database);
    if (report->saved && !json)
        printf("  %-22s %s\n", "trained model", peering->save);
    if (report->finished && kith_peer_was_alone(report))
        return kith_cli_fail(
            peering->arguments, KITH_EXIT_ALONE,
            "it trained alone: of %" PRIu64 " exchanges that it asked for none "
            "was done; kith doctor %s says of each member which layer fails",
            report->counters.attempts, peering->arguments->words[0]);
    if (report->finished)
        return KITH_EXIT_OK;
    return report->interrupted ? KITH_EXIT_INTERRUPTED : KITH_EXIT_FAILED;
}

/* Listens before anything is written: a start on a busy port does not count. */
static int serve(struct peering *peering)
{
    char error[KITH_PEER_ERROR_BYTES] = "";
    enum kith_err err = kith_peer_listen(peering->member.file.listen,
                                         &peering->listen_fd, NULL, error);
    if (err != KITH_OK)
        return kith_cli_check(peering->arguments, err, error);
    /* Before the first line, and until this process has ended: libuv's own
     * handlers go with its loop, before the summary. */
    peering->stop_fd = kith_cli_signal_pipe();
    if (peering->stop_fd < 0) {
        close(peering->listen_fd);
        return kith_cli_fail(peering->arguments, KITH_EXIT_FAILED,
                             "cannot make the pipe for signals: %s",
                             strerror(errno));
    }
    const int code = open_files(peering);
    if (code != KITH_EXIT_OK) {
        close(peering->listen_fd);
        return code;
    }
    err = run_peer(peering, error);
    return finish(peering, err, error);
}

/* Into the experiment that the peer file names. */
static int calibrate(const struct cli_arguments *arguments)
{
    struct kith_peer_file file;
    char error[KITH_EXPERIMENT_ERROR_BYTES] = "";
    if (!kith_cli_given(arguments, CLI_CALIBRATE))
        return KITH_EXIT_OK;
    if (kith_peer_file_load(arguments->words[0], &file, error) != KITH_OK)
        return kith_cli_fail(arguments, KITH_EXIT_EXPERIMENT, "%s", error);
    const int code =
        kith_cli_calibrate_compute(arguments, file.experiment, false);
    kith_peer_file_close(&file);
    return code;
}

int kith_cli_peer(const struct cli_arguments *arguments)
{
    struct peering peering = {.arguments = arguments};
    int code = calibrate(arguments);
    if (code == KITH_EXIT_OK)
        code = kith_cli_member_open(arguments, arguments->words[0],
                                    KITH_WORLD_PEER, &peering.member);
    if (code != KITH_EXIT_OK)
        return code;
    code = kith_cli_compute_open(arguments, &peering.member.experiment,
                                 CLI_COMPUTE_ALL);
    if (code == KITH_EXIT_OK && !in_pieces(&peering))
        code =
            kith_cli_dataset_open(arguments, &peering.member.experiment,
                                  &peering.data.dataset, &peering.has_dataset);
    if (code == KITH_EXIT_OK)
        code = serve(&peering);
    kith_peer_data_close(&peering.data);
    kith_member_file_close(&peering.member);
    return code;
}
