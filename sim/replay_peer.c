/* A peer's process in a replay: what src/peer/peer.c does when it opens one,
 * and what a restarted one finds on its disk.
 *
 * A killed peer may have died within a save: whether that one or the one before
 * was found, the journal says by the step and the hash of the model. */
#include "sim/replay_run.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#include "kith/assert.h"

/* A file per peer, and the one before it beside it: what a real peer keeps. */
static void save_path(const struct sim_replay *replay, kith_id peer,
                      const char *ending, char path[KITH_PATH_BYTES_MAX])
{
    KITH_ASSERT(peer < replay->peers);
    snprintf(path, KITH_PATH_BYTES_MAX, "%s/peer-%" PRIu32 ".save%s",
             replay->options->saves, peer, ending);
}

/* Only what a later process may go on from is written. */
void sim_replay_peer_save(struct sim_replay *replay, kith_id peer)
{
    KITH_ASSERT(replay->peer_states[peer].work.kind == KITH_WORK_SAVE);
    const struct sim_replay_peer *state = &replay->peer_states[peer];
    char path[KITH_PATH_BYTES_MAX], error[KITH_DATA_ERROR_BYTES] = "";
    if (!kith_journal_returns(replay->journal, peer, state->incarnation))
        return;
    const struct kith_standing standing = {.step = state->work.step,
                                           .best = NAN};
    save_path(replay, peer, "", path);
    const enum kith_err err =
        kith_save_write(state->worker, path, &standing, true, error);
    /* As in the lab: the save before it is worth more. */
    if (err != KITH_OK && err != KITH_ENONFINITE)
        sim_replay_fail(replay, err, "peer %" PRIu32 ": %s", peer, error);
}

/* A killed process leaves nothing: worker, node and copies go, messages that it
 * has sent stay. */
void sim_replay_peer_close(struct sim_replay_peer *state)
{
    KITH_ASSERT(state->node == NULL || state->worker != NULL);
    kith_worker_close(state->worker);
    free(state->node);
    state->worker = NULL;
    state->node = NULL;
    state->process = SIM_REPLAY_DOWN;
    state->working = false;
    sim_replay_forget(state);
}

/* As a lab's peer opens it, but for the thread that prepares batches: batches
 * are the same without. */
static bool open_worker(struct sim_replay *replay, kith_id peer)
{
    KITH_ASSERT(replay->peer_states[peer].worker == NULL);
    struct sim_replay_peer *state = &replay->peer_states[peer];
    const struct kith_dataset *dataset = replay->options->dataset;
    const struct kith_worker_config config = {
        .task = kith_experiment_task(&replay->experiment, NULL),
        .backend = replay->experiment.backend,
        .train = dataset ? &dataset->train : NULL,
        .self = peer,
        .steps = replay->config.steps,
        .edges_max = kith_node_edges(&replay->config, peer),
        .peers = replay->peers,
        .together = replay->peers,
    };
    char text[KITH_DATA_ERROR_BYTES] = "";
    const enum kith_err err = kith_worker_open(&config, &state->worker, text);
    if (err != KITH_OK)
        sim_replay_fail(replay, err, "peer %" PRIu32 ": %s", peer,
                        text[0] ? text : kith_err_text(err));
    return err == KITH_OK;
}

/* Is this the model that it began with? */
static bool is_it(struct sim_replay *replay, kith_id peer, uint64_t step)
{
    KITH_ASSERT(replay->peer_states[peer].worker != NULL);
    const struct sim_replay_peer *state = &replay->peer_states[peer];
    const struct kith_journal_entry *begin = &state->head;
    if (step != begin->step)
        return false;
    if (begin->digest == 0 || replay->report->decisions)
        return true;
    kith_worker_read(state->worker, replay->scratch);
    return kith_journal_digest(replay->scratch, replay->dim) == begin->digest;
}

/* A save that was being written when the process died may be whole, torn or
 * missing: the journal's hash says which was found. */
static bool restored(struct sim_replay *replay, kith_id peer)
{
    KITH_ASSERT(replay->peer_states[peer].worker != NULL);
    static const char *const endings[] = {"", ".previous"};
    char path[KITH_PATH_BYTES_MAX], error[KITH_DATA_ERROR_BYTES];
    if (is_it(replay, peer, 0))
        return true;
    for (size_t i = 0; i < sizeof endings / sizeof *endings; i++) {
        struct kith_standing standing;
        save_path(replay, peer, endings[i], path);
        if (kith_save_read(replay->peer_states[peer].worker, path, &standing,
                           error) == KITH_OK &&
            is_it(replay, peer, standing.step))
            return true;
    }
    return false;
}

/* The first process begins from the seed; a later one from the save whose hash
 * the journal names. */
void sim_replay_peer_begin(struct sim_replay *replay, kith_id peer)
{
    KITH_ASSERT(replay->peer_states[peer].has_head);
    struct sim_replay_peer *state = &replay->peer_states[peer];
    const struct kith_journal_entry *begin = &state->head;
    const bool first = state->processes == 0;
    sim_replay_peer_close(state);
    if (first && (begin->step > 0 || begin->adopt)) {
        sim_replay_fail(replay, KITH_EMISMATCH,
                        "cannot replay %.200s: peer %" PRIu32
                        " went on from step %" PRIu64
                        " of an earlier run; record one from its first step",
                        replay->options->path, peer, begin->step);
        return;
    }
    state->processes++;
    state->incarnation = state->head_process;
    replay->report->restarts += !first;
    if (!open_worker(replay, peer))
        return;
    if (!first && !restored(replay, peer)) {
        sim_replay_diverge(replay, peer,
                           "expected to go on from its save of step %" PRIu64
                           ", found no save with that model",
                           begin->step);
        return;
    }
    state->node = malloc(kith_node_size(&replay->config));
    if (state->node == NULL) {
        sim_replay_fail(replay, KITH_ENOMEM, "no memory for a node");
        return;
    }
    state->node = kith_node_init(state->node, &replay->config, peer,
                                 state->incarnation, begin->step, begin->adopt);
    state->process = SIM_REPLAY_OPENED;
}
