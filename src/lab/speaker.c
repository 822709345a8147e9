/* What a peer of a lab says to its launcher. See kith/lab_place.h.
 *
 * One thread at a time: the loop's, while kith_peer_run() lasts. */
#include <errno.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "kith/model.h"
#include "kith/lab_place.h"
#include "kith/text.h"
#include "src/lab/process.h"
#include "src/lab/records.h"

/* Records kept while the pipe is full: 2 MiB; of a run that is recorded, whose
 * journal is worth nothing with a gap, up to 128 MiB. */
#define QUEUE_RECORDS 4096u
#define QUEUE_RECORDED (64 * QUEUE_RECORDS)
/* How long a record that must arrive waits for room. */
#define MUST_WAIT_MS 5000

struct kith_speaker {
    const struct kith_lab_place *place;
    struct kith_listener listener;
    struct lab_record *queue; /* (capacity) ring */
    uint32_t capacity, first, count;
    uint64_t dropped;
    uint32_t part;    /* of the journal: the next one */
    kith_ns start_ns; /* the common instant; 0: not yet told */
};

static void flush_queue(struct kith_speaker *speaker, int wait_ms)
{
    while (speaker->count > 0 &&
           kith_lab_record_send(speaker->place->rows_fd,
                                &speaker->queue[speaker->first], wait_ms)) {
        speaker->first = (speaker->first + 1) % speaker->capacity;
        speaker->count--;
    }
}

/* false: it is full, and stays as large as it is. */
static bool has_room(struct kith_speaker *speaker)
{
    const uint32_t old = speaker->capacity;
    if (speaker->count < old)
        return true;
    if (!speaker->place->records || old >= QUEUE_RECORDED)
        return false;
    struct lab_record *queue =
        realloc(speaker->queue, 2 * (size_t)old * sizeof *queue);
    if (queue == NULL)
        return false;
    /* What stood before the first one follows the last one now. */
    memcpy(queue + old, queue, speaker->first * sizeof *queue);
    speaker->queue = queue;
    speaker->capacity = 2 * old;
    return true;
}

static void speak(struct kith_speaker *speaker, struct lab_record *record,
                  bool must_arrive)
{
    record->peer = speaker->place->self;
    record->incarnation = speaker->place->incarnation;
    if (record->time_ns < 0)
        record->time_ns = 0;
    flush_queue(speaker, must_arrive ? MUST_WAIT_MS : 0);
    if (speaker->count == 0 &&
        kith_lab_record_send(speaker->place->rows_fd, record,
                             must_arrive ? MUST_WAIT_MS : 0))
        return;
    if (!has_room(speaker)) {
        speaker->dropped++;
        return;
    }
    speaker->queue[(speaker->first + speaker->count++) % speaker->capacity] =
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

static void on_quiet(void *user, kith_ns time_ns, bool quiet)
{
    struct lab_record record = {.kind = LAB_RECORD_QUIET, .time_ns = time_ns};
    record.as.quiet = quiet;
    speak(user, &record, true);
}

static void on_log(void *user, const char *line)
{
    struct lab_record record = {.kind = LAB_RECORD_LINE};
    const struct kith_speaker *speaker = user;
    if (speaker->listener.on_log != NULL)
        speaker->listener.on_log(speaker->listener.user, line);
    if (speaker->start_ns > 0)
        record.time_ns = kith_host_now() - speaker->start_ns;
    kith_text_copy(record.as.line, sizeof record.as.line, line);
    speak(user, &record, false);
}

/* A part that is dropped leaves a gap in the numbers, which a replay names. */
static void on_journal(void *user, const uint8_t *bytes, size_t size, bool last)
{
    struct kith_speaker *speaker = user;
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
static kith_ns wait_start(struct kith_speaker *speaker)
{
    char line[64];
    uint64_t instant = 0;
    if (!read_line(speaker->place->control_fd, line, sizeof line) ||
        strncmp(line, "start ", 6) != 0)
        return kith_host_now();
    /* Before the machine's own start, for a run that goes on after a reboot. */
    const bool before = line[6] == '-';
    if (kith_text_u64(line + 6 + before, &instant) != KITH_OK ||
        instant > INT64_MAX)
        return kith_host_now();
    return before ? -(kith_ns)instant : (kith_ns)instant;
}

static kith_ns on_ready(void *user)
{
    struct kith_speaker *speaker = user;
    const struct kith_listener *listener = &speaker->listener;
    const struct kith_experiment *experiment = speaker->place->experiment;
    struct lab_record record = {.kind = LAB_RECORD_READY};
    record.as.ready.dim =
        kith_model_size_of(experiment->model, &experiment->model_config).dim;
    record.as.ready.buffers = experiment->model_config.buffers;
    if (listener->on_open != NULL)
        listener->on_open(listener->user);
    speak(speaker, &record, true);
    speaker->start_ns = wait_start(speaker);
    if (listener->on_start != NULL)
        listener->on_start(listener->user);
    return speaker->start_ns;
}

void kith_speaker_options(struct kith_speaker *speaker,
                          struct kith_peer_options *options)
{
    const struct kith_lab_place *place = speaker->place;
    kith_peer_options_default(options);
    options->experiment = place->experiment;
    options->identity = place->identity;
    options->trust = place->trust;
    options->self = place->self;
    options->members = place->members;
    options->listen_fd = place->listen_fd;
    options->save = place->save;
    options->incarnation = place->incarnation;
    options->adopt = place->adopts;
    options->resume = place->resumes;
    options->control_fd = place->control_fd;
    options->user = speaker;
    options->on_row = on_row;
    options->on_mark = on_mark;
    options->on_quiet = on_quiet;
    options->on_log = on_log;
    options->on_journal = place->records ? on_journal : NULL;
    options->on_ready = on_ready;
}

void kith_speaker_end(struct kith_speaker *speaker, enum kith_err err,
                      const struct kith_peer_report *report, const char *text)
{
    struct lab_record record = {.kind = LAB_RECORD_FINAL,
                                .time_ns = report->wall_ns};
    struct lab_final *final = &record.as.final;
    /* The last row is the one that is summed up: it has to arrive. */
    if (err == KITH_OK && speaker->dropped > 0)
        kith_speaker_row(speaker, &report->row);
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

void kith_speaker_row(struct kith_speaker *speaker, const struct kith_row *row)
{
    struct lab_record record = {.kind = LAB_RECORD_ROW,
                                .time_ns = row->time_ns};
    record.as.row = *row;
    speak(speaker, &record, true);
}

void kith_speaker_pieces(struct kith_speaker *speaker,
                         const struct kith_piece_totals *totals)
{
    struct lab_record record = {.kind = LAB_RECORD_PIECES};
    record.as.pieces = *totals;
    speak(speaker, &record, true);
}

void kith_speaker_score(struct kith_speaker *speaker,
                        const struct kith_score *score)
{
    const struct kith_average_facts *average = &speaker->place->average;
    struct lab_record record = {.kind = LAB_RECORD_SCORE};
    record.as.score = (struct lab_score){average->step,
                                         average->peers,
                                         score->loss,
                                         score->accuracy,
                                         average->consensus_distance,
                                         average->correlation};
    speak(speaker, &record, true);
}

enum kith_err kith_speaker_open(const struct kith_lab_place *place,
                                const struct kith_listener *listener,
                                struct kith_speaker **out)
{
    struct kith_speaker *speaker = calloc(1, sizeof *speaker);
    if (speaker == NULL)
        return KITH_ENOMEM;
    speaker->capacity = QUEUE_RECORDS;
    speaker->queue = calloc(speaker->capacity, sizeof *speaker->queue);
    if (speaker->queue == NULL) {
        free(speaker);
        return KITH_ENOMEM;
    }
    speaker->place = place;
    if (listener != NULL)
        speaker->listener = *listener;
    *out = speaker;
    return KITH_OK;
}

void kith_speaker_close(struct kith_speaker *speaker)
{
    if (speaker == NULL)
        return;
    free(speaker->queue);
    free(speaker);
}
