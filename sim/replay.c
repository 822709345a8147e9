/* A replay: whose event is next, and what it does.
 *
 * Every peer holds its next entry. The earliest one by the lab's clock, which
 * all its peers share, goes first; a MESSAGE whose entry has not been sent
 * stands back. Where nobody can go on, the record and the replay do not agree.
 *
 *   driver of a real peer        here
 *   submits an item to a thread  keeps it; runs it when WORK_DONE says so
 *   seals a model from its slot  copies it into a entry
 *   opens it into the inbox      copies it there when it was complete
 *
 * Items may run at any moment between the two events: the node asks for no slot
 * that one which is out could touch (src/work). */
#include "sim/replay_run.h"

#include <inttypes.h>
#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "kith/assert.h"

#define PROGRESS_EVENTS 256u
#define TEXT_BYTES 160u

/* The first failure is the line that is printed; what follows from it would
 * hide it. */
void sim_replay_fail(struct sim_replay *replay, enum kith_err err,
                     const char *format, ...)
{
    KITH_ASSERT(err != KITH_OK);
    if (replay->err != KITH_OK)
        return;
    va_list list;
    va_start(list, format);
    vsnprintf(replay->error, SIM_REPLAY_ERROR_BYTES, format, list);
    va_end(list);
    replay->err = err;
}

/* Peer and event are named in the numbers that the journal counts by, so that
 * the entry can be found. */
void sim_replay_diverge(struct sim_replay *replay, kith_id peer,
                        const char *format, ...)
{
    KITH_ASSERT(peer < replay->peers);
    const struct sim_replay_peer *state = &replay->peer_states[peer];
    char what[512];
    va_list list;
    va_start(list, format);
    vsnprintf(what, sizeof what, format, list);
    va_end(list);
    if (replay->err == KITH_OK)
        replay->report->diverged = true;
    sim_replay_fail(replay, KITH_EMISMATCH,
                    "replay diverged: peer %" PRIu32 ", event %" PRIu64
                    " (%.6f s, life %" PRIu32 "): %s",
                    peer, state->entries,
                    (double)state->head.event.now_ns / 1e9, state->head_process,
                    what);
}

/* ---- one event */

/* A save was written when it was asked for, as its peer may have died before
 * the item ended; all else runs here. */
static void run_item(struct sim_replay *replay, kith_id peer,
                     struct kith_work_result *result)
{
    KITH_ASSERT(replay->peer_states[peer].working);
    struct sim_replay_peer *state = &replay->peer_states[peer];
    *result =
        (struct kith_work_result){.kind = state->work.kind, .finite = true};
    state->working = false;
    if (state->work.kind == KITH_WORK_SAVE)
        return; /* written when it was asked for: it may outlive its peer */
    if (!replay->report->decisions || state->work.kind != KITH_WORK_TRAIN)
        kith_worker_run(state->worker, &state->work, result);
    if (state->work.kind != KITH_WORK_TRAIN)
        sim_replay_forget(state);
    replay->report->items++;
    const char *failed = kith_worker_failed(state->worker);
    if (failed != NULL)
        sim_replay_fail(replay, KITH_EPARSE, "peer %" PRIu32 ": %s", peer,
                        failed);
}

/* Deadlines are left alone: when a node was woken, the journal says. */
static void apply(struct sim_replay *replay, kith_id peer)
{
    KITH_ASSERT(peer < replay->peers);
    struct sim_replay_peer *state = &replay->peer_states[peer];
    const struct kith_effects *effects = replay->effects;
    for (uint32_t i = 0; i < effects->send_count; i++) {
        KITH_ASSERT(effects->sends[i].to < replay->peers);
        sim_replay_send(replay, peer, &effects->sends[i]);
    }
    if (!effects->has_work)
        return;
    KITH_ASSERT(!state->working);
    state->working = true;
    state->work = effects->work;
    if (state->told != state->lies)
        kith_worker_lie(state->worker, &state->lie);
    state->told = state->lies;
    kith_worker_prepare(state->worker, &state->work);
    if (state->work.edge_count > 0) /* slots that it has filled, or will */
        sim_replay_forget(state);
    if (state->work.kind == KITH_WORK_SAVE)
        sim_replay_peer_save(replay, peer);
}

/* The event carries the lab's times, real and virtual alike: the node cannot
 * tell a replay from its own run. */
static void step(struct sim_replay *replay, kith_id peer)
{
    KITH_ASSERT(replay->peer_states[peer].process == SIM_REPLAY_STARTED);
    struct sim_replay_peer *state = &replay->peer_states[peer];
    kith_node_step(state->node, &state->head.event, replay->effects);
    apply(replay, peer);
    replay->report->events++;
}

/* A model goes where the node wants it; what it did not want, or does not any
 * more, was discarded. */
static void receive(struct sim_replay *replay, kith_id peer,
                    struct sim_replay_message *entry)
{
    KITH_ASSERT(entry != NULL);
    struct sim_replay_peer *state = &replay->peer_states[peer];
    struct kith_message *message = &state->head.message;
    const struct sim_replay_bytes *bytes = entry->model;
    state->head.event.message = message;
    if (bytes != NULL && message->slot != KITH_SLOT_NONE &&
        message->slot == kith_node_inbox(state->node, entry->from, message))
        memcpy(kith_worker_slot(state->worker, message->slot), bytes->values,
               bytes->size);
    sim_replay_message_free(entry);
    replay->report->messages++;
    step(replay, peer);
}

/* The item runs now, whenever the lab's thread ran it: its result must be the
 * recorded one. */
static void worked(struct sim_replay *replay, kith_id peer)
{
    KITH_ASSERT(peer < replay->peers);
    struct sim_replay_peer *state = &replay->peer_states[peer];
    const struct kith_work_result expected = state->head.result;
    struct kith_work_result *found = &state->head.result;
    if (!state->working || state->work.kind != expected.kind) {
        sim_replay_diverge(replay, peer,
                           "expected the end of an item %s, found %s",
                           kith_work_name(expected.kind),
                           state->working ? kith_work_name(state->work.kind)
                                          : "that none is out");
        return;
    }
    run_item(replay, peer, found);
    if (replay->report->decisions)
        *found = expected;
    if (found->finite != expected.finite) {
        sim_replay_diverge(replay, peer, "expected a %s step, found a %s one",
                           expected.finite ? "finite" : "non-finite",
                           found->finite ? "finite" : "non-finite");
        return;
    }
    if (found->kind == KITH_WORK_TRAIN) {
        replay->report->steps += !found->is_part;
        if (!replay->report->decisions)
            sim_replay_compare(&replay->report->losses, expected.loss,
                               found->loss);
    }
    state->head.event.result = found;
    step(replay, peer);
}

/* What the journal says is not trusted: an entry that no driver could have
 * written ends the replay with a line, not a crash. */
static void event(struct sim_replay *replay, kith_id peer)
{
    KITH_ASSERT(peer < replay->peers);
    struct sim_replay_peer *state = &replay->peer_states[peer];
    const struct kith_event *event = &state->head.event;
    const bool start = event->kind == KITH_EVENT_START;
    if (state->process != (start ? SIM_REPLAY_OPENED : SIM_REPLAY_STARTED)) {
        sim_replay_diverge(replay, peer, "found a journal out of order");
        return;
    }
    state->process = SIM_REPLAY_STARTED;
    switch (event->kind) {
    case KITH_EVENT_START:
    case KITH_EVENT_WAKE:
    case KITH_EVENT_LINK_UP:
    case KITH_EVENT_LINK_DOWN:
    case KITH_EVENT_LEAVE:
    case KITH_EVENT_PAUSE:
    case KITH_EVENT_GO_ON:
        step(replay, peer);
        break;
    case KITH_EVENT_MESSAGE:
        receive(
            replay, peer,
            sim_replay_take(replay, peer, event->from, &state->head.message));
        break;
    case KITH_EVENT_WORK_DONE:
        worked(replay, peer);
        break;
    }
}

/* The thread was stopped, with an item done or not begun. */
static void end(struct sim_replay *replay, kith_id peer)
{
    KITH_ASSERT(peer < replay->peers);
    struct sim_replay_peer *state = &replay->peer_states[peer];
    struct kith_work_result result;
    if (state->process != SIM_REPLAY_STARTED) {
        sim_replay_diverge(replay, peer, "found a journal out of order");
        return;
    }
    if (state->head.ran && !state->working) {
        sim_replay_diverge(replay, peer,
                           "expected an item to end with its peer, found that "
                           "none is out");
        return;
    }
    if (state->head.ran)
        run_item(replay, peer, &result);
    state->ended = true; /* and no event of it comes any more */
    state->process = SIM_REPLAY_DOWN;
    if (replay->err == KITH_OK)
        sim_replay_result_model(replay, peer);
}

/* From the next item on: one that the experiment has for this peer. */
static void lie(struct sim_replay *replay, kith_id peer)
{
    KITH_ASSERT(peer < replay->peers);
    const struct kith_experiment *experiment = &replay->experiment;
    struct sim_replay_peer *state = &replay->peer_states[peer];
    const struct kith_lie *told = &state->head.lie;
    bool found = told->kind == KITH_LIE_NONE;
    for (uint32_t i = 0; i < experiment->atom_count; i++)
        found |= experiment->atoms[i].peer == peer &&
                 experiment->atoms[i].lie == told->kind;
    if (!found || !isfinite(told->by)) {
        sim_replay_diverge(replay, peer,
                           "found a lie that the experiment does not have");
        return;
    }
    state->lie = *told;
    state->lies++;
}

/* A peer's entries in their order: what comes first and what comes last are
 * checked against each other. */
static void carry_out(struct sim_replay *replay, kith_id peer)
{
    KITH_ASSERT(replay->peer_states[peer].has_head);
    struct sim_replay_peer *state = &replay->peer_states[peer];
    switch (state->head.kind) {
    case KITH_JOURNAL_BEGIN:
        if (state->ended)
            sim_replay_diverge(replay, peer, "found a life after its end");
        else
            sim_replay_peer_begin(replay, peer);
        break;
    case KITH_JOURNAL_EVENT:
        event(replay, peer);
        break;
    case KITH_JOURNAL_END:
        end(replay, peer);
        break;
    case KITH_JOURNAL_LIE:
        lie(replay, peer);
        break;
    }
    state->has_head = false;
}

/* ---- whose turn it is */

/* A rank from the file becomes an index: it is checked here, before anything
 * uses it. */
static void read_head(struct sim_replay *replay, kith_id peer)
{
    KITH_ASSERT(peer < replay->peers);
    struct sim_replay_peer *state = &replay->peer_states[peer];
    if (state->has_head || state->over)
        return;
    const enum kith_err err =
        kith_journal_next(replay->journal, peer, &state->head_process,
                          &state->head, replay->error);
    if (err == KITH_ENOENT) {
        state->over = true;
        return;
    }
    if (err != KITH_OK) {
        replay->err = err;
        return;
    }
    state->entries++;
    state->has_head = true;
    const kith_id from = state->head.event.from;
    if (state->head.kind == KITH_JOURNAL_EVENT && from != KITH_NOBODY &&
        (from >= replay->peers || from == peer))
        sim_replay_diverge(replay, peer,
                           "found the rank %" PRIu32
                           "; allowed: another one below %" PRIu32,
                           from, replay->peers);
}

/* A message is ready once its sender has sent the equal one; all else is ready
 * at once. */
static bool is_ready(const struct sim_replay *replay, kith_id peer)
{
    KITH_ASSERT(replay->peer_states[peer].has_head);
    const struct sim_replay_peer *state = &replay->peer_states[peer];
    const struct kith_journal_entry *head = &state->head;
    return head->kind != KITH_JOURNAL_EVENT ||
           head->event.kind != KITH_EVENT_MESSAGE ||
           state->process != SIM_REPLAY_STARTED ||
           sim_replay_has(replay, peer, head->event.from, &head->message);
}

/* A beginning and an end have no time: they go first. */
static kith_ns time_of(const struct sim_replay_peer *state)
{
    KITH_ASSERT(state->has_head);
    return state->head.kind == KITH_JOURNAL_EVENT ? state->head.event.now_ns
                                                  : -1;
}

/* The earliest that is ready, or NOBODY; *stuck: the earliest of all. */
static kith_id whose_turn(struct sim_replay *replay, kith_id *stuck)
{
    KITH_ASSERT(replay->peers > 0);
    kith_id turn = KITH_NOBODY;
    *stuck = KITH_NOBODY;
    for (kith_id i = 0; i < replay->peers && replay->err == KITH_OK; i++) {
        read_head(replay, i);
        const struct sim_replay_peer *peer_states = replay->peer_states;
        if (!peer_states[i].has_head)
            continue;
        const kith_ns at_ns = time_of(&peer_states[i]);
        if (*stuck == KITH_NOBODY || at_ns < time_of(&peer_states[*stuck]))
            *stuck = i;
        if ((turn == KITH_NOBODY || at_ns < time_of(&peer_states[turn])) &&
            is_ready(replay, i))
            turn = i;
    }
    return turn;
}

/* Nobody can go on: the earliest entry says what was expected, and the messages
 * that wait say what was found. */
static void stuck_at(struct sim_replay *replay, kith_id peer)
{
    KITH_ASSERT(replay->peer_states[peer].has_head);
    const struct kith_event *event = &replay->peer_states[peer].head.event;
    const struct sim_replay_peer *sender = &replay->peer_states[event->from];
    char expected[TEXT_BYTES], found[TEXT_BYTES], why[TEXT_BYTES] = "";
    sim_replay_message_text(&replay->peer_states[peer].head.message, expected,
                            sizeof expected);
    sim_replay_waiting_text(replay, peer, event->from, found, sizeof found);
    if (sender->over && !sender->ended)
        snprintf(why, sizeof why,
                 "; the journal of peer %" PRIu32 " stops at event %" PRIu64
                 " without an end",
                 event->from, sender->entries);
    sim_replay_diverge(replay, peer,
                       "expected a %s from peer %" PRIu32
                       ", which never sent it; found %s waiting%s",
                       expected, event->from, found, why);
}

/* Asked between events: an event is short, and its end is a state that can be
 * left. */
static void look_up(struct sim_replay *replay, kith_id peer)
{
    KITH_ASSERT(peer < replay->peers);
    const struct sim_replay_options *options = replay->options;
    const uint64_t events = replay->report->events;
    if (options->stop != NULL && *options->stop)
        sim_replay_fail(replay, KITH_EAGAIN, "stopped after %" PRIu64 " events",
                        events);
    if (options->progress != NULL && events % PROGRESS_EVENTS == 0)
        options->progress(events, replay->peer_states[peer].head.event.now_ns,
                          options->arg);
}

/* Until the journal is read to its end, or the first thing that does not agree.
 * */
static void run(struct sim_replay *replay)
{
    KITH_ASSERT(replay->err == KITH_OK);
    while (replay->err == KITH_OK) {
        kith_id stuck;
        const kith_id turn = whose_turn(replay, &stuck);
        if (replay->err != KITH_OK || stuck == KITH_NOBODY)
            return;
        if (turn == KITH_NOBODY) {
            stuck_at(replay, stuck);
            return;
        }
        carry_out(replay, turn);
        look_up(replay, turn);
    }
}

/* ---- from options to report */

/* Final models of all peers are kept: their average is compared, too, in the
 * lab's order. */
static void open_peers(struct sim_replay *replay)
{
    KITH_ASSERT(replay->peer_states == NULL);
    const size_t peers = replay->peers, dim = replay->dim;
    replay->peer_states = calloc(peers, sizeof *replay->peer_states);
    replay->effects = calloc(1, sizeof *replay->effects);
    replay->scratch = malloc((dim + 1) * sizeof *replay->scratch);
    replay->models = calloc(peers, (dim + 1) * sizeof *replay->models);
    replay->report->models = calloc(peers, sizeof *replay->report->models);
    if (replay->peer_states == NULL || replay->effects == NULL ||
        replay->scratch == NULL || replay->models == NULL ||
        replay->report->models == NULL) {
        sim_replay_fail(replay, KITH_ENOMEM,
                        "out of memory for %zu models of %zu values", peers,
                        dim);
        return;
    }
    for (size_t i = 0; i < peers; i++)
        replay->peer_states[i].last = &replay->peer_states[i].first;
}

/* The experiment and the journal must be of one build and one file;
 * journal_open() says what may make a difference. */
static void open_replay(struct sim_replay *replay, char *note)
{
    KITH_ASSERT(replay->journal == NULL);
    const struct sim_replay_options *options = replay->options;
    const struct kith_experiment *experiment = &replay->experiment;
    const struct kith_dataset *dataset = options->dataset;
    if (experiment->backend->host != experiment->backend) {
        sim_replay_fail(replay, KITH_EUNSUPPORTED,
                        "cannot replay %.200s: it was computed on %s, and a "
                        "replay computes on the host alone",
                        options->path, experiment->backend->name);
        return;
    }
    replay->err = kith_journal_open(options->path, experiment, &replay->journal,
                                    note, replay->error);
    if (replay->err == KITH_OK && replay->report->decisions)
        replay->err = kith_journal_vectors(
            replay->journal, &replay->experiment.model_config, replay->error);
    if (replay->err != KITH_OK)
        return;
    replay->dim =
        kith_model_size_of(experiment->model, &experiment->model_config).dim;
    const enum kith_err err = kith_experiment_node_config(
        experiment,
        kith_experiment_steps(experiment, dataset ? dataset->train.count : 0),
        &replay->topology, &replay->config);
    replay->config.topology = &replay->topology;
    if (replay->report->decisions) /* as in src/peer/peer.c, with a caller */
        replay->config.prepares = false;
    if (err != KITH_OK)
        sim_replay_fail(replay, err, "cannot open the topology: %s",
                        kith_err_text(err));
    else
        open_peers(replay);
}

/* A journal that is there and says nothing was cut. */
static void check_end(struct sim_replay *replay)
{
    KITH_ASSERT(replay->err == KITH_OK);
    for (kith_id i = 0; i < replay->peers && replay->err == KITH_OK; i++) {
        struct kith_journal_model model;
        const struct sim_replay_peer *state = &replay->peer_states[i];
        if (state->ended)
            continue;
        const enum kith_err err = kith_journal_model(
            replay->journal, i, replay->dim, &model, NULL, replay->error);
        if (err == KITH_OK)
            sim_replay_fail(replay, KITH_EPARSE,
                            "cannot replay %.200s: peer %" PRIu32
                            " left a final model, but its journal stops at "
                            "event %" PRIu64 " without an end: the file was "
                            "cut, or its launcher was behind; record it again",
                            replay->options->path, i, state->entries);
        else if (err != KITH_ENOENT)
            replay->err = err;
    }
}

/* Also of what open_replay() left half done. */
static void close_replay(struct sim_replay *replay)
{
    if (replay->peer_states != NULL)
        sim_replay_messages_close(replay);
    for (uint32_t i = 0; replay->peer_states != NULL && i < replay->peers; i++)
        sim_replay_peer_close(&replay->peer_states[i]);
    kith_journal_close(replay->journal);
    free(replay->peer_states);
    free(replay->effects);
    free(replay->scratch);
    free(replay->models);
}

/* The lab's periods are longer than the experiment's where its machine was
 * slow: the copy of the experiment has the ones that it used. */
enum kith_err sim_replay(const struct sim_replay_options *options,
                         struct sim_replay_report *report, char *note,
                         char *error)
{
    struct sim_replay replay = {.options = options,
                                .report = report,
                                .error = error,
                                .experiment = *options->experiment,
                                .peers = options->experiment->peers};
    memset(report, 0, sizeof *report);
    report->peers = replay.peers;
    report->decisions = replay.experiment.run.command[0] != '\0';
    note[0] = error[0] = '\0';
    kith_experiment_lab_periods(&replay.experiment);
    open_replay(&replay, note);
    if (replay.err == KITH_OK)
        run(&replay);
    if (replay.err == KITH_OK)
        check_end(&replay);
    if (replay.err == KITH_OK && !report->decisions)
        sim_replay_result_average(&replay);
    close_replay(&replay);
    return replay.err;
}

void sim_replay_report_close(struct sim_replay_report *report)
{
    free(report->models);
    report->models = NULL;
}
