/* A peer's life in a replay: what src/peer/peer.c does when it opens one, and
 * what a restarted one finds on its disk.
 *
 * A killed peer may have died within a save: whether that one or the one before
 * was found, the journal says by the step and the hash of the model. */
#include "sim/replay.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static void save_path(const struct sim_replay *replay, kith_id peer,
                      const char *ending, char path[KITH_PATH_BYTES_MAX])
{
    snprintf(path, KITH_PATH_BYTES_MAX, "%s/peer-%" PRIu32 ".save%s",
             replay->options->saves, peer, ending);
}

/* Only what a later life may go on from is written. */
void sim_life_save(struct sim_replay *replay, kith_id peer)
{
    const struct sim_actor *actor = &replay->actors[peer];
    char path[KITH_PATH_BYTES_MAX], error[KITH_DATA_ERROR_BYTES] = "";
    if (!kith_journal_returns(replay->journal, peer, actor->incarnation))
        return;
    const struct kith_standing standing = {.step = actor->work.step,
                                           .best = NAN};
    save_path(replay, peer, "", path);
    const enum kith_err err =
        kith_save_write(actor->worker, path, &standing, true, error);
    /* As in the lab: the save before it is worth more. */
    if (err != KITH_OK && err != KITH_ENONFINITE)
        sim_replay_fail(replay, err, "peer %" PRIu32 ": %s", peer, error);
}

void sim_life_close(struct sim_actor *actor)
{
    kith_worker_close(actor->worker);
    free(actor->node);
    actor->worker = NULL;
    actor->node = NULL;
    actor->alive = actor->started = actor->working = false;
    sim_mail_forget(actor);
}

static bool open_worker(struct sim_replay *replay, kith_id peer)
{
    struct sim_actor *actor = &replay->actors[peer];
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
    const enum kith_err err = kith_worker_open(&config, &actor->worker, text);
    if (err != KITH_OK)
        sim_replay_fail(replay, err, "peer %" PRIu32 ": %s", peer,
                        text[0] ? text : kith_err_text(err));
    return err == KITH_OK;
}

/* Is this the model that it began with? */
static bool is_it(struct sim_replay *replay, kith_id peer, uint64_t step)
{
    const struct sim_actor *actor = &replay->actors[peer];
    const struct kith_journal_entry *begin = &actor->head;
    if (step != begin->step)
        return false;
    if (begin->digest == 0)
        return true;
    kith_worker_read(actor->worker, replay->z);
    return kith_journal_digest(replay->z, replay->dim) == begin->digest;
}

static bool restored(struct sim_replay *replay, kith_id peer)
{
    static const char *const endings[] = {"", ".previous"};
    char path[KITH_PATH_BYTES_MAX], error[KITH_DATA_ERROR_BYTES];
    if (is_it(replay, peer, 0))
        return true;
    for (size_t i = 0; i < sizeof endings / sizeof *endings; i++) {
        struct kith_standing standing;
        save_path(replay, peer, endings[i], path);
        if (kith_save_read(replay->actors[peer].worker, path, &standing,
                           error) == KITH_OK &&
            is_it(replay, peer, standing.step))
            return true;
    }
    return false;
}

void sim_life_begin(struct sim_replay *replay, kith_id peer)
{
    struct sim_actor *actor = &replay->actors[peer];
    const struct kith_journal_entry *begin = &actor->head;
    const bool first = actor->lives == 0;
    sim_life_close(actor);
    if (first && (begin->step > 0 || begin->adopt)) {
        sim_replay_fail(replay, KITH_EMISMATCH,
                        "cannot replay %.200s: peer %" PRIu32
                        " went on from step %" PRIu64
                        " of an earlier run; record one from its first step",
                        replay->options->path, peer, begin->step);
        return;
    }
    actor->lives++;
    actor->incarnation = actor->head_life;
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
    actor->node = malloc(kith_node_size(&replay->config));
    if (actor->node == NULL) {
        sim_replay_fail(replay, KITH_ENOMEM, "no memory for a node");
        return;
    }
    actor->node = kith_node_init(actor->node, &replay->config, peer,
                                 actor->incarnation, begin->step, begin->adopt);
    actor->alive = true;
}
