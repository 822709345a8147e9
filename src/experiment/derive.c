/* What follows from an experiment: steps, hash, the core's configuration, and
 * the checks that need a world or the data. */
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "kith/backend.h"
#include "kith/experiment.h"
#include "kith/node.h"
#include "kith/text.h"
#include "key_table.h"

uint64_t kith_experiment_steps(const struct kith_experiment *experiment,
                               size_t train_rows)
{
    if (experiment->stop.steps > 0)
        return experiment->stop.steps;
    if (!(experiment->stop.epochs > 0))
        return UINT64_MAX;
    const double batch = (double)experiment->peers * experiment->train.batch;
    return (uint64_t)floor(experiment->stop.epochs * (double)train_rows /
                           batch);
}

enum kith_err
kith_experiment_node_config(const struct kith_experiment *experiment,
                            uint64_t steps, struct kith_topology *topology,
                            struct kith_node_config *config)
{
    *topology = experiment->gossip.graph;
    if (topology->kind != experiment->gossip.topology ||
        topology->peers != experiment->peers) {
        const enum kith_err err = kith_topology_open(
            experiment->gossip.topology, experiment->peers, topology);
        if (err != KITH_OK)
            return err;
    }
    const size_t gossiped =
        kith_model_size_of(experiment->model, &experiment->model_config)
            .gossiped;
    *config = (struct kith_node_config){
        .algorithm = experiment->gossip.algorithm,
        .topology = topology,
        .seed = experiment->seed,
        .steps = steps,
        .every = experiment->gossip.every,
        .chance = experiment->gossip.chance,
        .phases = topology->kind->collective
                      ? (uint32_t)kith_topology_period(topology)
                      : 1,
        .payload_bytes = kith_experiment_payload(experiment, gossiped),
        .model_bytes = gossiped * experiment->backend->element_bytes,
        .slice_bytes = kith_experiment_slice(experiment, gossiped),
        .period = experiment->gossip.algorithm->slice == NULL
                      ? 1
                      : (uint32_t)experiment->gossip
                            .coefficients[KITH_GOSSIP_OUTER_EVERY],
        .save_period_ns = experiment->save_period_ns,
        .round_deadline_ns = experiment->gossip.deadline_ns,
        .retries = experiment->gossip.retries,
    };
    return KITH_OK;
}

void kith_experiment_lab_periods(struct kith_experiment *experiment)
{
    const kith_ns evaluate_ns = experiment->evaluate_ns;
    const bool scored = evaluate_ns > 0 && kith_model_learns(experiment->model);
    if (scored && (experiment->save_period_ns == 0 ||
                   experiment->save_period_ns > evaluate_ns))
        experiment->save_period_ns = evaluate_ns;
    experiment->evaluate_ns = scored ? evaluate_ns : 0;
}

const char *kith_world_name(enum kith_world world)
{
    switch (world) {
    case KITH_WORLD_TRAIN:
        return "train";
    case KITH_WORLD_SIM:
        return "sim";
    case KITH_WORLD_LAB:
        break;
    }
    return "lab";
}

static enum kith_err only_sim(const char *key, char *error)
{
    snprintf(error, KITH_EXPERIMENT_ERROR_BYTES,
             "%s needs virtual time: run it with kith sim, or take it out",
             key);
    return KITH_EINVAL;
}

/* An early stop needs evaluations and somebody who sees them. */
static enum kith_err check_patience(const struct kith_experiment *experiment,
                                    enum kith_world world, char *error)
{
    if (experiment->stop.patience == 0)
        return KITH_OK;
    if (world == KITH_WORLD_SIM) {
        snprintf(error, KITH_EXPERIMENT_ERROR_BYTES,
                 "stop.patience: kith sim does not stop early; run it with "
                 "--set stop.patience=0");
        return KITH_EINVAL;
    }
    /* `kith train` evaluates every epoch where nothing else is said. */
    if (world == KITH_WORLD_TRAIN ? experiment->evaluate_end
                                  : experiment->evaluate_ns == 0) {
        snprintf(error, KITH_EXPERIMENT_ERROR_BYTES,
                 "stop.patience: counts evaluations, but there is one alone, "
                 "at the end; give a time, such as --set evaluate=5s");
        return KITH_EINVAL;
    }
    return KITH_OK;
}

/* Steps are one process's. */
static enum kith_err check_evaluations(const struct kith_experiment *experiment,
                                       enum kith_world world, char *error)
{
    if (world != KITH_WORLD_TRAIN && experiment->evaluate_steps > 0) {
        snprintf(error, KITH_EXPERIMENT_ERROR_BYTES,
                 "evaluate: found %" PRIu64 " steps, which kith train alone "
                 "counts; give a time, such as --set evaluate=5s",
                 experiment->evaluate_steps);
        return KITH_EINVAL;
    }
    return check_patience(experiment, world, error);
}

enum kith_err
kith_experiment_check_world(const struct kith_experiment *experiment,
                            enum kith_world world, char *error)
{
    const enum kith_err err = check_evaluations(experiment, world, error);
    if (err != KITH_OK)
        return err;
    if (experiment->central.present && world != KITH_WORLD_SIM) {
        snprintf(error, KITH_EXPERIMENT_ERROR_BYTES,
                 "central: central baselines exist in the simulator only; run "
                 "it with kith sim, or take gossip in their place");
        return KITH_EINVAL;
    }
    switch (world) {
    case KITH_WORLD_TRAIN:
        return KITH_OK;
    case KITH_WORLD_SIM:
        if (experiment->compute.step_ns == 0 &&
            (experiment->stop.time_ns > 0 || experiment->atom_count > 0)) {
            snprintf(error, KITH_EXPERIMENT_ERROR_BYTES,
                     "compute.step: not given; a simulated time needs the "
                     "cost of a step, such as --set compute.step=5ms");
            return KITH_EINVAL;
        }
        return KITH_OK;
    case KITH_WORLD_LAB:
        break;
    }
    if (experiment->compute.exponential)
        return only_sim("compute.spread: exponential", error);
    if (experiment->gossip.deadline_ns == KITH_NEVER)
        return only_sim("gossip.deadline: never", error);
    if (experiment->network.drop_push > 0)
        return only_sim("network.drop_push", error);
    return KITH_OK;
}

/* The key that says what the model takes in. */
static const char *input_key(const struct kith_model *model)
{
    if (model->keys & KITH_MODEL_READS(IMAGE))
        return "model.image";
    return model->keys & KITH_MODEL_READS(CONTEXT) ? "model.context"
                                                   : "model.layers";
}

/* Images that are flat, or of the model's height, width and channels. */
static bool same_image(const struct kith_experiment *experiment,
                       const struct kith_examples *set)
{
    const uint32_t *image = experiment->model_config.image;
    if (!(experiment->model->keys & KITH_MODEL_READS(IMAGE)) ||
        set->shape[0] * set->shape[1] <= 1)
        return true;
    return set->shape[0] == image[0] && set->shape[1] == image[1] &&
           set->shape[2] == image[2];
}

static enum kith_err check_shape(const struct kith_experiment *experiment,
                                 const struct kith_examples *set, char *error)
{
    const struct kith_model *model = experiment->model;
    const struct kith_model_size size =
        kith_model_size_of(model, &experiment->model_config);
    if (set->input != model->input) {
        snprintf(error, KITH_EXPERIMENT_ERROR_BYTES,
                 "model.kind: model %s learns from %s, but the data in %.200s "
                 "holds %s",
                 model->name,
                 model->input == KITH_INPUT_TOKENS ? "tokens" : "images",
                 experiment->data.config.path,
                 set->input == KITH_INPUT_TOKENS ? "tokens" : "images");
        return KITH_EINVAL;
    }
    if (set->input == KITH_INPUT_TOKENS && set->classes > size.classes) {
        snprintf(error, KITH_EXPERIMENT_ERROR_BYTES,
                 "model.vocabulary: found %zu, but the data in %.200s has "
                 "%" PRIu32 " different tokens; allowed: at least as many",
                 size.classes, experiment->data.config.path, set->classes);
        return KITH_EINVAL;
    }
    if (set->features != size.features || set->classes > size.classes ||
        !same_image(experiment, set)) {
        snprintf(error, KITH_EXPERIMENT_ERROR_BYTES,
                 "%s: found %zu inputs and %zu outputs, but the data in "
                 "%.200s has %zu features (%" PRIu32 " x %" PRIu32 " x %" PRIu32
                 ") and %" PRIu32 " classes",
                 input_key(model), size.features, size.classes,
                 experiment->data.config.path, set->features, set->shape[0],
                 set->shape[1], set->shape[2], set->classes);
        return KITH_EINVAL;
    }
    if (set->count < experiment->peers) {
        snprintf(error, KITH_EXPERIMENT_ERROR_BYTES,
                 "peers: found %" PRIu32 ", but the data in %.200s has only "
                 "%zu rows: one for each at least",
                 experiment->peers, experiment->data.config.path, set->count);
        return KITH_EINVAL;
    }
    return KITH_OK;
}

enum kith_err
kith_experiment_check_data(const struct kith_experiment *experiment,
                           const struct kith_examples *set, char *error)
{
    if (set != NULL) {
        const enum kith_err err = check_shape(experiment, set, error);
        if (err != KITH_OK)
            return err;
    }
    const uint64_t steps =
        kith_experiment_steps(experiment, set == NULL ? 0 : set->count);
    if (steps == 0) {
        snprintf(
            error, KITH_EXPERIMENT_ERROR_BYTES,
            "stop.epochs: found %g, which is less than one step of %" PRIu32
            " peers with batch %" PRIu32,
            experiment->stop.epochs, experiment->peers,
            experiment->train.batch);
        return KITH_EINVAL;
    }
    const kith_ns end = kith_experiment_predicted_end(experiment, steps);
    const struct kith_atom *atom = kith_experiment_late_fault(experiment, end);
    if (atom == NULL)
        return KITH_OK;
    char at[32], over[32];
    kith_text_from_time(atom->at_ns, at, sizeof at);
    kith_text_from_time(end, over, sizeof over);
    snprintf(error, KITH_EXPERIMENT_ERROR_BYTES,
             "faults[%" PRIu32 "]: found a %s at %s; allowed: up to the "
             "predicted end, %s",
             atom->statement, kith_fault_name(atom->kind), at, over);
    return KITH_EINVAL;
}
