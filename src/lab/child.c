/* Inside a forked process of the lab. See child.h.
 *
 * A peer never waits for the launcher: a record that finds the pipe full joins
 * a short queue, and when that is full too, rows and trace lines are dropped
 * and counted. What the launcher steers by (READY, FINISHED, FINAL) waits for
 * room, a bounded time. */
#include "src/lab/child.h"

#include <errno.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "kith/backend.h"
#include "kith/peer.h"
#include "kith/text.h"
#include "kith/worker.h"
#include "src/lab/average.h"
#include "src/lab/records.h"
#include "src/lab/process.h"

/* Records kept while the pipe is full: 2 MiB. */
#define QUEUE_RECORDS 4096u
/* How long a record that must arrive waits for room. */
#define MUST_WAIT_MS 5000

struct speaker {
    const struct lab_child *child;
    int rows_fd, control_fd;
    struct lab_record *queue; /* (QUEUE_RECORDS) ring */
    uint32_t first, count;
    uint64_t dropped;
    uint32_t part;    /* of the journal: the next one */
    kith_ns start_ns; /* the common instant; 0: not yet told */
};

static void flush_queue(struct speaker *speaker, int wait_ms)
{
    while (speaker->count > 0 &&
           kith_lab_record_send(speaker->rows_fd,
                                &speaker->queue[speaker->first], wait_ms)) {
        speaker->first = (speaker->first + 1) % QUEUE_RECORDS;
        speaker->count--;
    }
}

static void speak(struct speaker *speaker, struct lab_record *record,
                  bool must_arrive)
{
    record->peer = speaker->child->self;
    record->incarnation = speaker->child->incarnation;
    if (record->time_ns < 0)
        record->time_ns = 0;
    flush_queue(speaker, must_arrive ? MUST_WAIT_MS : 0);
    if (speaker->count == 0 &&
        kith_lab_record_send(speaker->rows_fd, record,
                             must_arrive ? MUST_WAIT_MS : 0))
        return;
    if (speaker->count == QUEUE_RECORDS) {
        speaker->dropped++;
        return;
    }
    speaker->queue[(speaker->first + speaker->count++) % QUEUE_RECORDS] =
        *record;
}

static void on_row(void *user, const struct kith_row *row)
{
    struct lab_record record = {.kind = LAB_RECORD_ROW,
                                .time_ns = row->time_ns};
    record.as.row = *row;
    speak(user, &record, false);
}

/* A line per training step would be most of the database; rows have them. */
static void on_mark(void *user, kith_ns time_ns, const struct kith_mark *mark)
{
    if (mark->kind == KITH_MARK_STEP)
        return;
    struct lab_record record = {.kind = LAB_RECORD_MARK, .time_ns = time_ns};
    record.as.mark = *mark;
    speak(user, &record, mark->kind == KITH_MARK_FINISHED);
}

static void on_log(void *user, const char *line)
{
    struct lab_record record = {.kind = LAB_RECORD_LINE};
    const struct speaker *speaker = user;
    if (speaker->start_ns > 0)
        record.time_ns = kith_host_now() - speaker->start_ns;
    kith_text_copy(record.as.line, sizeof record.as.line, line);
    speak(user, &record, false);
}

/* A part that is dropped leaves a gap in the numbers, which a replay names. */
static void on_journal(void *user, const uint8_t *bytes, size_t size, bool last)
{
    struct speaker *speaker = user;
    struct lab_record record = {.kind = LAB_RECORD_JOURNAL};
    record.as.journal.part = speaker->part++;
    record.as.journal.size = (uint32_t)size;
    memcpy(record.as.journal.bytes, bytes, size);
    speak(speaker, &record, last);
}

/* Reads one line, byte by byte: what follows it is for the peer's own loop.
 * false: the launcher is gone. */
static bool read_line(int fd, char *line, size_t size)
{
    size_t length = 0;
    while (length + 1 < size) {
        const ssize_t got = read(fd, line + length, 1);
        if (got < 0 && (errno == EAGAIN || errno == EINTR)) {
            struct pollfd more = {fd, POLLIN, 0};
            poll(&more, 1, -1);
            continue;
        }
        if (got <= 0)
            return false;
        if (line[length] == '\n') {
            line[length] = 0;
            return true;
        }
        length++;
    }
    return false;
}

/* "start NS": the common instant. Anything else, and the end of the launcher,
 * mean now; the loop then sees the end of the control pipe and stops. */
static kith_ns on_ready(void *user)
{
    struct speaker *speaker = user;
    struct lab_record record = {.kind = LAB_RECORD_READY};
    speak(speaker, &record, true);
    char line[64];
    uint64_t instant = 0;
    if (!read_line(speaker->control_fd, line, sizeof line) ||
        strncmp(line, "start ", 6) != 0)
        return speaker->start_ns = kith_host_now();
    /* Before the machine's own start, for a run that goes on after a reboot. */
    const bool before = line[6] == '-';
    if (kith_text_u64(line + 6 + before, &instant) != KITH_OK ||
        instant > INT64_MAX)
        return speaker->start_ns = kith_host_now();
    speaker->start_ns = before ? -(kith_ns)instant : (kith_ns)instant;
    return speaker->start_ns;
}

static void set_options(struct kith_peer_options *options,
                        struct speaker *speaker, const char *save)
{
    const struct lab_child *child = speaker->child;
    kith_peer_options_default(options);
    options->experiment = child->experiment;
    options->train = child->dataset == NULL ? NULL : &child->dataset->train;
    options->test = child->dataset == NULL ? NULL : &child->dataset->test;
    /* With `evaluate` a time the launcher does, the average. */
    options->evaluates = child->experiment->evaluate_ns == 0;
    options->identity = &child->cluster->identities[child->self];
    options->trust = &child->cluster->trust;
    options->self = child->self;
    options->members = child->cluster->members;
    options->listen_fd = child->listen_fd;
    options->save = save;
    options->incarnation = child->incarnation;
    options->adopt = child->incarnation > child->first;
    options->resume = options->adopt || child->resume;
    options->control_fd = speaker->control_fd;
    options->user = speaker;
    options->on_row = on_row;
    options->on_mark = on_mark;
    options->on_log = on_log;
    options->on_journal = child->record ? on_journal : NULL;
    options->on_ready = on_ready;
}

static void send_final(struct speaker *speaker, enum kith_err err,
                       const struct kith_peer_report *report, const char *text)
{
    struct lab_record record = {.kind = LAB_RECORD_FINAL,
                                .time_ns = report->wall_ns};
    struct lab_final *final = &record.as.final;
    final->err = err;
    final->finished = report->finished;
    final->interrupted = report->interrupted;
    final->saved = report->saved;
    final->dropped = speaker->dropped;
    final->speed = report->speed;
    final->points = report->curve.done;
    final->left_out = report->curve.left_out;
    final->rows = report->curve.plan.rows;
    kith_text_copy(final->text, sizeof final->text, text);
    speak(speaker, &record, true);
}

/* The data, where they come in pieces, and the run. */
static enum kith_err run_peer(struct speaker *speaker,
                              struct kith_peer_options *options,
                              struct kith_peer_report *report, char *error)
{
    struct kith_peer_data data;
    if (options->train == NULL ||
        options->experiment->data.config.manifest[0] == '\0')
        return kith_peer_run(options, report, error);
    enum kith_err err = kith_peer_data_open(options, &data, error);
    if (err != KITH_OK)
        return err;
    struct lab_record record = {.kind = LAB_RECORD_PIECES};
    record.as.pieces = kith_data_store_totals(&data.store);
    speak(speaker, &record, true);
    err = kith_peer_run(options, report, error);
    kith_peer_data_close(&data);
    return err;
}

int kith_lab_child_peer(void *user, int rows_fd, int control_fd)
{
    struct lab_child *child = user;
    struct speaker speaker = {
        .child = child, .rows_fd = rows_fd, .control_fd = control_fd};
    speaker.queue = calloc(QUEUE_RECORDS, sizeof *speaker.queue);
    if (speaker.queue == NULL)
        return 1;
    kith_lab_cluster_keep_only(child->cluster, child->self);
    kith_backend_threads(1);

    char save[KITH_PATH_BYTES_MAX], error[KITH_PEER_ERROR_BYTES] = "";
    kith_lab_cluster_save_path(child->cluster, child->self, save);
    struct kith_peer_options options;
    set_options(&options, &speaker, save);
    struct kith_peer_report report;
    memset(&report, 0, sizeof report);
    const enum kith_err err = run_peer(&speaker, &options, &report, error);

    /* The last row is the one that is summed up: it has to arrive. */
    if (err == KITH_OK && speaker.dropped > 0) {
        struct lab_record last = {.kind = LAB_RECORD_ROW,
                                  .time_ns = report.row.time_ns};
        last.as.row = report.row;
        speak(&speaker, &last, true);
    }
    send_final(&speaker, err, &report, err == KITH_OK ? "" : error);
    free(speaker.queue);
    return err == KITH_OK ? 0 : 1;
}

int kith_lab_child_score(void *user, int rows_fd, int control_fd)
{
    const struct lab_child *child = user;
    (void)control_fd;
    kith_backend_threads(1);
    uint8_t wanted[KITH_LAB_PEERS_MAX];
    memset(wanted, 1, sizeof wanted);
    struct lab_average average;
    if (kith_lab_average_open(&average, child->experiment, child->cluster,
                              wanted, NULL, NULL) != KITH_OK)
        return 1;

    struct lab_record record = {.kind = LAB_RECORD_SCORE};
    struct kith_score score;
    int status = 1;
    if (average.count > 0 &&
        kith_lab_average_score(&average, child->experiment, child->dataset,
                               &score) == KITH_OK) {
        record.as.score = (struct lab_score){kith_lab_average_step(&average),
                                             average.count,
                                             score.loss,
                                             score.accuracy,
                                             average.consensus_distance,
                                             average.correlation};
        status = kith_lab_record_send(rows_fd, &record, MUST_WAIT_MS) ? 0 : 1;
    }
    kith_lab_average_close(&average);
    return status;
}
