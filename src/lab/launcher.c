/* One turn of the launcher's loop. See launcher.h.
 *
 * Everything that can wake it is a descriptor (signalfd, rows pipes) or a time.
 * A child's death is seen twice, as the end of its pipe and as SIGCHLD; it is
 * over when both are in, so that no record it wrote is lost. */
#include "src/lab/launcher.h"

#include <errno.h>
#include <math.h>
#include <poll.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <sys/signalfd.h>
#include <time.h>
#include <unistd.h>

#include "kith/assert.h"
#include "kith/text.h"

/* Buffers of one child drained in one go after its end: a pipe holds 1 MiB. */
#define DRAIN_READS 256

void kith_lab_say(struct lab *lab, const char *format, ...)
{
    if (lab->options->on_line == NULL)
        return;
    char line[1024];
    va_list list;
    va_start(list, format);
    vsnprintf(line, sizeof line, format, list);
    va_end(list);
    lab->options->on_line(lab->options->user, line);
}

void kith_lab_mourn(struct lab *lab, const char *format, ...)
{
    char line[1024];
    va_list list;
    va_start(list, format);
    vsnprintf(line, sizeof line, format, list);
    va_end(list);
    if (lab->report.died[0] == '\0')
        (void)kith_text_copy(lab->report.died, sizeof lab->report.died, line);
    kith_lab_say(lab, "%s", line);
}

enum kith_err kith_lab_fail(struct lab *lab, enum kith_err err,
                            const char *format, ...)
{
    if (lab->err != KITH_OK)
        return err;
    lab->err = err;
    va_list list;
    va_start(list, format);
    vsnprintf(lab->error, KITH_LAB_ERROR_BYTES, format, list);
    va_end(list);
    return err;
}

enum kith_err kith_lab_stored(struct lab *lab, enum kith_err err)
{
    return err == KITH_OK
               ? err
               : kith_lab_fail(lab, err, "%s",
                               kith_rundb_error(lab->options->store));
}

/* Counters start again with every incarnation; the series goes on. */
static void take_row(struct lab_peer *peer, const struct kith_row *row)
{
    kith_lab_live_row(peer, row);
    if (kith_lab_is_program(&peer->lab->experiment) &&
        (isfinite(row->accuracy) || isfinite(row->test_loss)))
        peer->reported = (struct kith_score){row->test_loss, row->accuracy};
    peer->last = *row;
    kith_row_add_incarnation(&peer->last, &peer->gone);
    (void)kith_rundb_row(peer->lab->options->store, &peer->last);
}

static void take_mark(struct lab_peer *peer, kith_ns time_ns,
                      const struct kith_mark *mark)
{
    if (mark->kind == KITH_MARK_FINISHED) {
        peer->finished = true;
        peer->finished_ns = time_ns;
    }
    if (mark->kind == KITH_MARK_NONFINITE)
        peer->lab->nonfinite = true;
    if (time_ns > peer->lab->marked_ns)
        peer->lab->marked_ns = time_ns;
    peer->lab->report.marks[mark->kind]++;
    kith_lab_live_mark(peer, time_ns, mark);
    (void)kith_rundb_mark(peer->lab->options->store, peer->rank, time_ns, mark);
}

/* A full or forbidden disk hits every peer alike: the run cannot succeed. */
static bool ends_the_run(const struct lab *lab, enum kith_err err)
{
    return lab->start_ns == 0 || err == KITH_ENOSPC || err == KITH_EPERM ||
           err == KITH_EIO;
}

static void take_final(struct lab_peer *peer, const struct lab_final *final)
{
    struct lab *lab = peer->lab;
    peer->final = *final;
    peer->has_final = true;
    peer->saved = final->saved && final->err == KITH_OK;
    peer->finished = peer->finished || final->finished;
    if (final->dropped > 0)
        kith_lab_say(lab,
                     "peer %u dropped %llu records: the launcher was behind",
                     (unsigned)peer->rank, (unsigned long long) final->dropped);
    if (final->err != KITH_OK && ends_the_run(lab, final->err))
        kith_lab_fail(lab, final->err, "peer %u: %s", (unsigned)peer->rank,
                      final->text);
}

/* How large a program's model is says the program. */
/* Of a program's model the first process says how large it is. */
static void take_vectors(struct lab *lab, const struct lab_ready *ready)
{
    struct kith_model_config *config = &lab->experiment.model_config;
    if (config->dim != 0 || ready->dim > KITH_PARAMETERS_MAX ||
        ready->buffers > ready->dim)
        return;
    config->dim = (uint32_t)ready->dim;
    config->buffers = (uint32_t)ready->buffers;
    if (lab->options->record)
        (void)kith_rundb_journal_vectors(lab->options->store, config->dim,
                                         config->buffers);
}

static void take_ready(struct lab_peer *peer, const struct lab_ready *ready)
{
    struct lab *lab = peer->lab;
    const struct kith_model_config *config = &lab->experiment.model_config;
    if (peer->state != LAB_PEER_STARTED)
        return;
    peer->state = LAB_PEER_READY;
    if (!kith_lab_is_program(&lab->experiment))
        return;
    take_vectors(lab, ready);
    if (config->dim != ready->dim)
        kith_lab_fail(lab, KITH_EMISMATCH,
                      "peer %u: its model has %llu values, that of others %u; "
                      "every process of model.run makes the same one",
                      (unsigned)peer->rank, (unsigned long long)ready->dim,
                      (unsigned)config->dim);
}

/* A peer goes on when a save fails: its disk may get room again. A lab would
 * find out at its end that nothing can be evaluated, so it ends now. */
static void take_line(struct lab_peer *peer, kith_ns time_ns, const char *line)
{
    struct lab *lab = peer->lab;
    if (strncmp(line, "save-failed ", 12) == 0)
        kith_lab_fail(lab,
                      strstr(line, kith_err_text(KITH_ENOSPC)) != NULL
                          ? KITH_ENOSPC
                          : KITH_EIO,
                      "peer %u: %s; %s", (unsigned)peer->rank, line,
                      lab->options->saves == NULL
                          ? "set TMPDIR to a folder with room"
                          : "make room, or choose another folder with --save");
    if (strncmp(line, "resumed ", 8) == 0)
        kith_lab_say(lab, "peer %u: %s", (unsigned)peer->rank, line);
    if (lab->options->on_peer_line != NULL)
        lab->options->on_peer_line(lab->options->user, peer->rank, time_ns,
                                   line);
}

static void take_record(void *user, const struct lab_record *record)
{
    struct lab_peer *peer = user;
    if (record->peer != peer->rank ||
        record->incarnation != peer->child.incarnation)
        return;
    switch (record->kind) {
    case LAB_RECORD_READY:
        take_ready(peer, &record->as.ready);
        break;
    case LAB_RECORD_ROW:
        take_row(peer, &record->as.row);
        break;
    case LAB_RECORD_MARK:
        take_mark(peer, record->time_ns, &record->as.mark);
        break;
    case LAB_RECORD_LINE:
        take_line(peer, record->time_ns, record->as.line);
        break;
    case LAB_RECORD_FINAL:
        take_final(peer, &record->as.final);
        break;
    case LAB_RECORD_JOURNAL:
        (void)kith_rundb_journal(peer->lab->options->store, peer->rank,
                                 record->incarnation, record->as.journal.part,
                                 record->as.journal.bytes,
                                 record->as.journal.size);
        break;
    case LAB_RECORD_PIECES:
        kith_piece_totals_add(&peer->lab->pieces, &record->as.pieces);
        break;
    case LAB_RECORD_QUIET:
        peer->quiet = record->as.quiet;
        break;
    case LAB_RECORD_SCORE:
    case LAB_RECORD_KINDS:
        break;
    }
}

enum kith_err kith_lab_peer_start(struct lab_peer *peer)
{
    struct lab *lab = peer->lab;
    char text[KITH_LAB_ERROR_BYTES];
    int fd = -1;
    enum kith_err err =
        kith_lab_cluster_listen(&lab->cluster, peer->rank, &fd, text);
    if (err != KITH_OK)
        return kith_lab_fail(lab, err, "%s", text);
    peer->child.experiment = &lab->experiment;
    peer->child.dataset = lab->options->dataset;
    peer->child.cluster = &lab->cluster;
    peer->child.record = lab->options->record;
    peer->child.self = peer->rank;
    peer->child.listen_fd = fd;
    peer->child.output = lab->options->output;
    const bool is_program = kith_lab_is_program(&lab->experiment);
    struct lab_job job = {.keep_fd = fd,
                          .is_group = is_program,
                          .user = &peer->child,
                          .run = is_program ? kith_lab_program_peer
                                            : kith_lab_child_peer};
    snprintf(job.name, sizeof job.name, "kith peer %u",
             (unsigned)peer->rank % 100000);
    err = kith_lab_process_start(&peer->process, &job);
    const int why = errno;
    close(fd);
    if (err != KITH_OK)
        return kith_lab_fail(
            lab, err,
            "cannot start a process for peer %u: %s; run fewer peers, or raise "
            "the limits on processes and open files",
            (unsigned)peer->rank, strerror(why));
    peer->state = LAB_PEER_STARTED;
    peer->finished = peer->quiet = peer->saved = peer->has_final = false;
    memset(&peer->final, 0, sizeof peer->final);
    return KITH_OK;
}

static void bury(struct lab_peer *peer)
{
    kith_lab_process_end(&peer->process);
    peer->state = LAB_PEER_DOWN;
    peer->gone = peer->last;
}

/* What the pipe holds is read after the death; no more can come then. */
static void drain(struct lab_peer *peer)
{
    for (int i = 0; i < DRAIN_READS; i++)
        if (kith_lab_process_read(&peer->process, peer, take_record) !=
                KITH_EAGAIN ||
            peer->process.rows_fd < 0)
            break;
}

void kith_lab_peer_collect(struct lab_peer *peer)
{
    /* SIGKILL was sent: this ends at once. */
    struct timespec wait = {0, 1000000};
    while (!kith_lab_process_reap(&peer->process))
        nanosleep(&wait, NULL);
    drain(peer);
    bury(peer);
}

/* Nobody asked for it, or the run is being stopped. */
static void peer_ended(struct lab_peer *peer)
{
    struct lab *lab = peer->lab;
    char text[1024];
    bool in_order;
    if (kith_lab_is_program(&lab->experiment)) {
        drain(peer);
        in_order = kith_lab_program_ended(peer, text, sizeof text);
    } else {
        const char *why = peer->final.text;
        kith_lab_process_text(&peer->process, text, sizeof text);
        (void)kith_text_add(text, sizeof text, strlen(text), "%s%s",
                            why[0] != 0 ? ": " : "", why);
        in_order = peer->process.status == 0;
        text[0] = in_order ? '\0' : text[0];
    }
    bury(peer);
    if (in_order)
        peer->state = LAB_PEER_LEFT;
    else {
        peer->faults |= LAB_FAULT_AFFECTED;
        peer->saved = false;
    }
    if (lab->start_ns == 0 && !in_order)
        kith_lab_fail(lab, KITH_EDEVICE, "before the start, peer %u: %s",
                      (unsigned)peer->rank, text);
    if (text[0] != '\0')
        kith_lab_mourn(lab, "peer %u %s: %s", (unsigned)peer->rank,
                       in_order ? "left" : "died", text);
}

static void read_peer(struct lab_peer *peer)
{
    const enum kith_err err =
        kith_lab_process_read(&peer->process, peer, take_record);
    if (err == KITH_EPARSE || err == KITH_EVERSION) {
        kith_lab_say(peer->lab, "peer %u sent a malformed record (%s): killed",
                     (unsigned)peer->rank, kith_err_text(err));
        kith_lab_process_signal(&peer->process, SIGKILL);
    }
}

static void check_peer(struct lab_peer *peer)
{
    if (kith_lab_peer_is_alive(peer) &&
        (peer->process.rows_fd < 0 || peer->process.is_group) &&
        kith_lab_process_reap(&peer->process))
        peer_ended(peer);
}

void kith_lab_read_signals(struct lab *lab)
{
    struct signalfd_siginfo info;
    while (read(lab->signal_fd, &info, sizeof info) == sizeof info)
        if (info.ssi_signo != SIGCHLD)
            lab->signals++;
}

void kith_lab_values(struct lab *lab)
{
    struct kith_values *values = &lab->values;
    values->finite = lab->nonfinite ? 0 : 1;
    values->live = kith_lab_live_value(lab);
    struct kith_row sum = {.received = 0};
    for (uint32_t i = 0; i < lab->peer_count; i++)
        kith_row_add_peer(&sum, &lab->peers[i].last);
    kith_values_count(values, &sum);
    const kith_ns end = lab->ended_ns != 0 ? lab->ended_ns : kith_host_now();
    const double wall = (double)(end - lab->start_ns) / 1e9;
    if (wall > 0)
        values->waiting_share = sum.waiting_s / wall / (double)lab->peer_count;
}

void kith_lab_count_all(const struct lab *lab, uint64_t step,
                        struct kith_row *row)
{
    struct kith_row sum = {.received = 0};
    for (uint32_t i = 0; i < lab->peer_count; i++)
        kith_row_add_peer(&sum, &lab->peers[i].last);
    row->samples = kith_lab_is_program(&lab->experiment)
                       ? sum.samples /* as its steps have said */
                       : step * lab->experiment.train.batch * lab->peer_count;
    row->bytes_sent = sum.bytes_sent;
    row->bytes_received = sum.bytes_received;
    row->done = sum.done;
}

void kith_lab_check_values(struct lab *lab, kith_ns time_ns)
{
    kith_lab_values(lab);
    (void)kith_checks_always(&lab->checks, lab->options->experiment,
                             &lab->values, time_ns);
}

static void show_progress(struct lab *lab, kith_ns now_ns)
{
    struct kith_lab_progress progress = {.time_ns = now_ns - lab->start_ns,
                                         .step_min = UINT64_MAX,
                                         .steps = lab->steps,
                                         .accuracy = lab->accuracy};
    struct kith_row all = {.received = 0}, alive = {.received = 0};
    uint32_t losses = 0; /* a loop of a program's own may tell none */
    for (uint32_t i = 0; i < lab->peer_count; i++) {
        const struct lab_peer *peer = &lab->peers[i];
        kith_row_add_peer(&all, &peer->last);
        if (!kith_lab_peer_is_alive(peer))
            continue;
        progress.alive++;
        losses += peer->last.step > 0 && isfinite(peer->last.loss);
        kith_row_add_peer(&alive, &peer->last);
        if (peer->last.step < progress.step_min)
            progress.step_min = peer->last.step;
        if (peer->last.step > progress.step_max)
            progress.step_max = peer->last.step;
    }
    if (progress.alive == 0)
        progress.step_min = 0;
    progress.exchanges = all.done;
    progress.speed = alive.speed;
    kith_speed_mean(&progress.speed, progress.alive);
    progress.loss = losses > 0 ? alive.loss / losses : (double)NAN;
    lab->options->on_progress(lab->options->user, &progress);
}

static void every_second(struct lab *lab, kith_ns now_ns)
{
    if (lab->start_ns == 0 || now_ns < lab->start_ns ||
        now_ns < lab->progress_ns)
        return;
    lab->progress_ns = now_ns + LAB_PROGRESS_NS;
    if (lab->score_ns == 0)
        kith_lab_check_values(lab, now_ns - lab->start_ns);
    kith_lab_stored(lab, kith_rundb_flush(lab->options->store));
    if (lab->options->on_progress != NULL)
        show_progress(lab, now_ns);
}

/* After a turn that brought records, while the run is under way. */
static void gather(const struct lab *lab, kith_ns until_ns)
{
    const kith_ns now_ns = kith_host_now();
    const kith_ns from_ns = lab->read_ns + LAB_GATHER_NS;
    const kith_ns left_ns = (from_ns < until_ns ? from_ns : until_ns) - now_ns;
    if (lab->read_ns == 0 || lab->start_ns == 0 || lab->stopping ||
        left_ns <= 0)
        return;
    KITH_ASSERT(left_ns <= LAB_GATHER_NS);
    (void)nanosleep(&(struct timespec){.tv_nsec = (long)left_ns}, NULL);
}

/* Waits at most until `until_ns` for something to be readable. */
static void wait_readable(struct lab *lab, struct pollfd *fds, nfds_t count,
                          kith_ns until_ns)
{
    const kith_ns span = until_ns - kith_host_now();
    struct timespec wait = {0, 0};
    if (span > 0) {
        wait.tv_sec = (time_t)(span / KITH_S);
        wait.tv_nsec = (long)(span % KITH_S);
    }
    if (ppoll(fds, count, &wait, NULL) < 0 && errno != EINTR)
        kith_lab_fail(lab, KITH_EBUSY, "cannot wait for the peers: %s",
                      strerror(errno));
}

static kith_ns earlier(kith_ns a, kith_ns b)
{
    return b != 0 && b < a ? b : a;
}

void kith_lab_turn(struct lab *lab, kith_ns until_ns)
{
    struct pollfd fds[KITH_LAB_PEERS_MAX + 2];
    nfds_t count = 0;
    KITH_ASSERT(lab->peer_count <= KITH_LAB_PEERS_MAX);
    /* Faults first: they replace processes, and so descriptors. */
    if (lab->start_ns != 0 && !lab->stopping) {
        until_ns = earlier(until_ns, kith_lab_faults(lab, kith_host_now()));
        until_ns = earlier(until_ns, lab->score_ns);
    }
    until_ns = earlier(until_ns, lab->progress_ns);
    fds[count++] = (struct pollfd){lab->signal_fd, POLLIN, 0};
    fds[count++] =
        (struct pollfd){lab->scoring ? lab->score.rows_fd : -1, POLLIN, 0};
    for (uint32_t i = 0; i < lab->peer_count; i++)
        fds[count++] = (struct pollfd){kith_lab_peer_is_alive(&lab->peers[i])
                                           ? lab->peers[i].process.rows_fd
                                           : -1,
                                       POLLIN, 0};

    gather(lab, until_ns);
    wait_readable(lab, fds, count, until_ns);
    lab->read_ns = 0;

    if (fds[0].revents != 0)
        kith_lab_read_signals(lab);
    if (fds[1].revents != 0)
        kith_lab_score_read(lab);
    for (uint32_t i = 0; i < lab->peer_count; i++) {
        if (fds[2 + i].revents != 0) {
            read_peer(&lab->peers[i]);
            lab->read_ns = kith_host_now();
        }
        check_peer(&lab->peers[i]);
    }
    const kith_ns now_ns = kith_host_now();
    kith_lab_score_check(lab, now_ns);
    every_second(lab, now_ns);
}
