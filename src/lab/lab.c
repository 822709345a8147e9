/* kith_lab_run: the phases of a run with real processes. See kith/lab.h.
 *
 *   open    signals, keys, ports, folder, one process per peer
 *   start   when all have said READY: one common instant for all of them
 *   run     turns of the loop until the last healthy peer has finished, and no
 *           exchange is under way
 *   stop    `stop` to all, a bounded time for exchanges and saves, SIGKILL
 *   result  the saves are averaged and evaluated
 *
 * Every way out passes through close_lab(), which leaves no process, port, key
 * or file behind but the run database. */
#include <errno.h>
#include <math.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/signalfd.h>
#include <unistd.h>

#include "kith/assert.h"
#include "kith/backend.h"
#include "kith/peer.h"
#include "src/lab/launcher.h"

/* A launcher holds three descriptors per peer. */
static void raise_file_limit(void)
{
    struct rlimit limit;
    if (getrlimit(RLIMIT_NOFILE, &limit) != 0)
        return;
    limit.rlim_cur = limit.rlim_max;
    (void)setrlimit(RLIMIT_NOFILE, &limit);
}

static void lab_signals(sigset_t *set)
{
    sigemptyset(set);
    sigaddset(set, SIGINT);
    sigaddset(set, SIGTERM);
    sigaddset(set, SIGHUP);
    sigaddset(set, SIGCHLD);
}

/* What the caller does with signals. */
struct callers {
    sigset_t mask;
    struct sigaction on_pipe;
};

static enum kith_err open_signals(struct lab *lab, struct callers *before)
{
    sigset_t ours;
    lab_signals(&ours);
    sigprocmask(SIG_BLOCK, &ours, &before->mask);
    /* A peer may die before the launcher writes to it. */
    const struct sigaction ignored = {.sa_handler = SIG_IGN};
    sigaction(SIGPIPE, &ignored, &before->on_pipe);
    lab->signal_fd = signalfd(-1, &ours, SFD_CLOEXEC | SFD_NONBLOCK);
    return lab->signal_fd >= 0
               ? KITH_OK
               : kith_lab_fail(lab, KITH_EBUSY, "cannot receive signals: %s",
                               strerror(errno));
}

/* What is pending was meant for this run: it must not end the caller. */
static void close_signals(struct lab *lab, const struct callers *before)
{
    struct signalfd_siginfo info;
    if (lab->signal_fd >= 0) {
        while (read(lab->signal_fd, &info, sizeof info) == sizeof info)
            continue;
        close(lab->signal_fd);
    }
    sigaction(SIGPIPE, &before->on_pipe, NULL);
    sigprocmask(SIG_SETMASK, &before->mask, NULL);
}

static enum kith_err open_peers(struct lab *lab)
{
    const uint32_t count = lab->options->experiment->peers;
    lab->peers = calloc(count, sizeof *lab->peers);
    if (lab->peers == NULL)
        return kith_lab_fail(lab, KITH_ENOMEM, "out of memory for %u peers",
                             (unsigned)count);
    lab->peer_count = count;
    for (uint32_t i = 0; i < lab->peer_count; i++) {
        struct lab_peer *peer = &lab->peers[i];
        peer->lab = lab;
        peer->rank = i;
        peer->slow = 1;
        peer->process.rows_fd = peer->process.control_fd = -1;
        peer->last.peer = i;
        peer->reported = (struct kith_score){NAN, NAN};
        peer->child.resume = lab->options->resume;
    }
    enum kith_err err =
        lab->options->resume ? kith_lab_read_interrupted(lab) : KITH_OK;
    for (uint32_t i = 0; i < lab->peer_count && err == KITH_OK; i++)
        err = kith_lab_peer_start(&lab->peers[i]);
    return err;
}

/* The authority of a lab is made for the run and signs what its file says: so a
 * lab takes what a cluster needs a policy for. Said once, not by each peer. */
static enum kith_err choose_suite(struct lab *lab)
{
    const char *word = lab->experiment.network.suite;
    struct kith_trust *trust = &lab->cluster.trust;
    enum kith_suite suite;
    char text[KITH_PEER_ERROR_BYTES];
    KITH_ASSERT(trust->suite == KITH_SUITE_ANY);
    if (kith_suite_find(word, strlen(word), &suite))
        trust->suite = suite;
    const enum kith_err err =
        kith_peer_suite(&lab->experiment, trust, &suite, text);
    return err == KITH_OK ? err : kith_lab_fail(lab, err, "%s", text);
}

static enum kith_err open_lab(struct lab *lab)
{
    const struct kith_experiment *experiment = lab->options->experiment;
    lab->score.rows_fd = lab->score.control_fd = -1;
    lab->accuracy = lab->best = NAN;
    if (experiment->peers > KITH_LAB_PEERS_MAX)
        return kith_lab_fail(
            lab, KITH_ELIMIT,
            "%u peers are more than the %u processes of a lab; use kith sim, "
            "or lower `peers`",
            (unsigned)experiment->peers, KITH_LAB_PEERS_MAX);
    const struct kith_dataset *dataset = lab->options->dataset;
    lab->steps =
        kith_experiment_steps(experiment, dataset ? dataset->train.count : 0);
    lab->experiment = *experiment;
    kith_experiment_lab_periods(&lab->experiment);
    kith_checks_start(&lab->checks);
    kith_values_clear(&lab->values);
    lab->correlation_lowest = NAN;
    enum kith_err err = KITH_OK;
    if (lab->options->record)
        err = kith_rundb_journal_begin(lab->options->store);
    if (kith_lab_stored(lab, err) != KITH_OK)
        return err;
    raise_file_limit();
    kith_backend_threads(1);
    lab->opened_ns = kith_host_now();
    lab->remind_ns = lab->opened_ns + LAB_REMIND_NS;
    char text[KITH_LAB_ERROR_BYTES];
    err = kith_lab_cluster_open(&lab->cluster, experiment->peers,
                                lab->options->port, lab->options->saves, text);
    if (err != KITH_OK)
        return kith_lab_fail(lab, err, "%s", text);
    err = choose_suite(lab);
    return err == KITH_OK ? open_peers(lab) : err;
}

static bool all_ready(const struct lab *lab)
{
    for (uint32_t i = 0; i < lab->peer_count; i++)
        if (lab->peers[i].state != LAB_PEER_READY)
            return false;
    return true;
}

/* Opening a large model takes as long as it takes; a death or Ctrl-C ends it.
 */
static void start_together(struct lab *lab)
{
    while (!all_ready(lab) && lab->err == KITH_OK && lab->signals == 0) {
        kith_lab_turn(lab, kith_host_now() + KITH_S);
        kith_lab_program_wait(lab);
    }
    if (lab->err != KITH_OK || lab->signals > 0 ||
        kith_lab_stored(lab, kith_lab_live_open(lab)) != KITH_OK)
        return;

    const kith_ns period_ns = lab->experiment.evaluate_ns;
    lab->start_ns = kith_host_now() + LAB_LEAD_NS - lab->resumed_ns;
    lab->progress_ns = lab->start_ns + lab->resumed_ns + LAB_PROGRESS_NS;
    if (period_ns > 0)
        lab->score_ns =
            lab->start_ns + (lab->resumed_ns / period_ns + 1) * period_ns;
    lab->cpu_start_s = kith_lab_cpu_s();
    for (uint32_t i = 0; i < lab->peer_count; i++)
        if (!kith_lab_process_tell(&lab->peers[i].process, "start %lld",
                                   (long long)lab->start_ns))
            kith_lab_process_signal(&lab->peers[i].process, SIGKILL);
    if (lab->options->resume)
        kith_lab_faults_pass(lab);
}

/* Does the end wait for this peer? A paused one counts if it will go on. */
static bool is_awaited(const struct lab_peer *peer)
{
    return kith_lab_peer_is_alive(peer) && !peer->finished &&
           (!(peer->faults & LAB_FAULT_PAUSED) ||
            kith_lab_fault_ends(peer->lab, peer->rank, KITH_EFFECT_PAUSE));
}

static bool may_come_back(const struct lab_peer *peer)
{
    return peer->state == LAB_PEER_DOWN &&
           kith_lab_fault_ends(peer->lab, peer->rank, KITH_EFFECT_STOP);
}

/* As in the simulator: what the last steps began may end. Peers that a fault
 * has touched are not waited for. */
static bool is_wound_up(struct lab *lab)
{
    uint32_t restless = 0;
    const kith_ns now_ns = kith_host_now();
    for (uint32_t i = 0; i < lab->peer_count; i++) {
        const struct lab_peer *peer = &lab->peers[i];
        restless += kith_lab_peer_is_alive(peer) && peer->finished &&
                    !peer->quiet && peer->faults == 0;
    }
    if (lab->wind_up_ns == 0)
        lab->wind_up_ns = now_ns + LAB_WIND_UP_NS;
    if (restless > 0 && now_ns < lab->wind_up_ns)
        return false;
    if (restless > 0)
        kith_lab_say(lab,
                     "%u peers still had exchanges under way %u s after the "
                     "last step: given up",
                     (unsigned)restless, (unsigned)(LAB_WIND_UP_NS / KITH_S));
    return true;
}

/* Over: every healthy peer is done, and what crashed once had its grace. Where
 * all of them have crashed, the crashed ones are what the run is about. */
static bool is_over(struct lab *lab)
{
    bool any_alive = false, healthy = false, affected = false, coming = false;
    bool any_healthy = false, any_left = false;
    for (uint32_t i = 0; i < lab->peer_count; i++) {
        const struct lab_peer *peer = &lab->peers[i];
        any_alive = any_alive || kith_lab_peer_is_alive(peer);
        any_left = any_left || peer->state == LAB_PEER_LEFT;
        any_healthy = any_healthy || ((peer->state != LAB_PEER_DOWN) &&
                                      !(peer->faults & LAB_FAULT_AFFECTED));
        coming = coming || may_come_back(peer);
        if (is_awaited(peer))
            *(peer->faults & LAB_FAULT_AFFECTED ? &affected : &healthy) = true;
    }
    if (!any_alive && !coming) {
        if (!any_left)
            kith_lab_fail(lab, KITH_EDEVICE, "every peer died%s%s",
                          lab->report.died[0] != '\0'
                              ? "; the first by no fault: "
                              : " by a fault",
                          lab->report.died);
        return true;
    }
    if (healthy)
        return false;
    if (!any_healthy)
        return !affected && !coming;
    const kith_ns now_ns = kith_host_now();
    if (lab->grace_ns == 0)
        lab->grace_ns = now_ns + LAB_GRACE_NS;
    return (!affected || now_ns >= lab->grace_ns) && is_wound_up(lab);
}

/* stop.time: every peer counts it by itself; this is for one that does not. */
static bool is_late(const struct lab *lab)
{
    const kith_ns time_ns = lab->experiment.stop.time_ns;
    return time_ns > 0 &&
           kith_host_now() > lab->start_ns + time_ns + LAB_LATE_NS;
}

static void run(struct lab *lab)
{
    while (lab->err == KITH_OK && lab->signals == 0 && !lab->early &&
           !is_over(lab) && !is_late(lab)) {
        if (kith_lab_stored(lab, kith_rundb_flush(lab->options->store)) !=
            KITH_OK)
            break;
        const kith_ns second = kith_host_now() + KITH_S;
        kith_lab_turn(lab,
                      lab->grace_ns > kith_host_now() && lab->grace_ns < second
                          ? lab->grace_ns
                          : second);
    }
    lab->ended_ns = kith_host_now();
}

/* Rounds that the last step began go on over the file's lines; peers wait for
 * them as long as they took, and what that varies by. */
static kith_ns last_rounds(const struct lab *lab)
{
    const struct kith_node_config *config = &lab->live.config;
    const double bits_per_s =
        (double)kith_classes_rate_least(&lab->experiment.network.classes);
    if (config->algorithm == NULL || bits_per_s == 0)
        return 0; /* it never began; it takes no time */
    const double bits = 8.0 * config->phases * kith_node_edges(config, 0) *
                        (double)config->payload_bytes;
    return (kith_ns)(LAB_ROUNDS * bits / bits_per_s * 1e9);
}

static kith_ns stop_span(const struct lab *lab)
{
    const struct kith_experiment *experiment = &lab->experiment;
    const double bytes = 8.0 * (double)kith_model_size_of(
                                   experiment->model, &experiment->model_config)
                                   .dim;
    return LAB_STOP_NS + last_rounds(lab) +
           (kith_lab_is_program(experiment) ? LAB_PROGRAM_STOP_NS : 0) +
           (kith_ns)(bytes / LAB_STOP_BYTES_PER_S * 1e9) * lab->peer_count;
}

static bool any_alive(const struct lab *lab)
{
    for (uint32_t i = 0; i < lab->peer_count; i++)
        if (kith_lab_peer_is_alive(&lab->peers[i]))
            return true;
    return false;
}

/* A program that runs on behind the end of its peer costs the run nothing. */
static void end_late(struct lab_peer *peer)
{
    const bool has_ended = peer->has_final && peer->final.err == KITH_OK;
    if (has_ended)
        peer->state = LAB_PEER_LEFT;
    kith_lab_mourn(peer->lab, "peer %u did not stop in time: %skilled",
                   (unsigned)peer->rank,
                   has_ended ? "its program runs on without a peer, and is "
                             : "");
}

/* A second Ctrl-C does not wait for saves. Who cannot be told is ending by
 * itself, its pipe closed; if not, the deadline ends it. */
static void stop(struct lab *lab)
{
    lab->stopping = true;
    const uint32_t signals = lab->signals;
    const kith_ns deadline_ns = kith_host_now() + stop_span(lab);
    for (uint32_t i = 0; i < lab->peer_count; i++) {
        struct lab_peer *peer = &lab->peers[i];
        if (!kith_lab_peer_is_alive(peer))
            continue;
        kith_lab_process_signal(&peer->process, SIGCONT);
        (void)kith_lab_process_tell(&peer->process, "stop");
    }
    while (any_alive(lab) && lab->err == KITH_OK && lab->signals == signals &&
           kith_host_now() < deadline_ns)
        kith_lab_turn(lab, deadline_ns);
    for (uint32_t i = 0; i < lab->peer_count; i++)
        if (kith_lab_peer_is_alive(&lab->peers[i]) && lab->err == KITH_OK)
            end_late(&lab->peers[i]);
}

static void close_lab(struct lab *lab)
{
    kith_lab_process_end(&lab->score);
    for (uint32_t i = 0; i < lab->peer_count; i++)
        kith_lab_process_end(&lab->peers[i].process);
    free(lab->peers);
    kith_lab_live_close(lab);
    kith_lab_cluster_close(&lab->cluster);
}

enum kith_err kith_lab_run(const struct kith_lab_options *options,
                           struct kith_summary *summary, char *error)
{
    struct lab *lab = calloc(1, sizeof *lab);
    memset(summary, 0, sizeof *summary);
    error[0] = 0;
    if (lab == NULL) {
        snprintf(error, KITH_LAB_ERROR_BYTES, "out of memory");
        return KITH_ENOMEM;
    }
    lab->options = options;
    lab->error = error;
    lab->signal_fd = -1;
    struct callers before;
    enum kith_err err = open_signals(lab, &before);
    if (err == KITH_OK)
        err = open_lab(lab);
    if (err == KITH_OK)
        start_together(lab);
    if (lab->err == KITH_OK && lab->start_ns != 0) {
        run(lab);
        if (lab->err == KITH_OK)
            stop(lab);
    }
    kith_lab_result(lab, summary);
    if (options->report != NULL)
        *options->report = lab->report;
    err = lab->err;
    /* Kept from the first step to the end of the run. */
    lab->cluster.folder.keep = options->saves != NULL && !summary->completed &&
                               (lab->start_ns != 0 || options->resume);
    close_lab(lab);
    close_signals(lab, &before);
    free(lab);
    return err;
}
