/* What follows from an experiment: steps, hash, the core's configuration, and
 * the checks that need a world or the data. */
#include <inttypes.h>
#include <math.h>
#include <string.h>

#include "kith/backend.h"
#include "kith/bucket.h"
#include "kith/check.h"
#include "kith/experiment.h"
#include "kith/node.h"
#include "kith/text.h"
#include "key_table.h"

/* Of `gossip.exchanges: 0`: all snapshots and inboxes of a peer. */
#define VECTORS_BYTES (1u << 30)

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

/* Each exchange of a side has a snapshot and an inbox. */
uint32_t kith_experiment_exchanges(const struct kith_experiment *experiment)
{
    const size_t bytes =
        kith_model_size_of(experiment->model, &experiment->model_config)
            .gossiped *
        experiment->backend->element_bytes;
    uint32_t exchanges = experiment->gossip.exchanges;
    if (exchanges > 0)
        return exchanges;
    exchanges = KITH_EXCHANGES_LIMIT;
    while (exchanges > 1 && bytes > (size_t)VECTORS_BYTES / (4 * exchanges))
        exchanges /= 2;
    return exchanges;
}

/* Of rounds whose messages are slices: of a schedule its cycle. */
static uint32_t slice_period(const struct kith_experiment *experiment,
                             const struct kith_topology *topology)
{
    const struct kith_algorithm *algorithm = experiment->gossip.algorithm;
    if (algorithm->slice == NULL)
        return 1;
    return algorithm->schedule != NULL
               ? (uint32_t)kith_topology_period(topology)
               : (uint32_t)
                     experiment->gossip.coefficients[KITH_GOSSIP_OUTER_EVERY];
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
    const uint32_t buckets = kith_bucket_count(
        gossiped, experiment->gossip.coefficients[KITH_GOSSIP_BUCKETS]);
    *config = (struct kith_node_config){
        .algorithm = experiment->gossip.algorithm,
        .topology = topology,
        .seed = experiment->seed,
        .steps = steps,
        .every = experiment->gossip.every,
        .chance = experiment->gossip.chance,
        .phases = topology->kind->collective
                      ? buckets * (uint32_t)kith_topology_period(topology)
                      : 1,
        .buckets = buckets,
        .urgent = (uint32_t)experiment->gossip.coefficients[KITH_GOSSIP_URGENT],
        .payload_bytes = kith_experiment_payload(experiment, gossiped),
        .model_bytes = gossiped * experiment->backend->element_bytes,
        .slice_bytes = kith_experiment_slice(experiment, gossiped),
        .period = slice_period(experiment, topology),
        .save_period_ns = experiment->save_period_ns,
        .round_deadline_ns = experiment->gossip.deadline_ns,
        .retries = experiment->gossip.retries,
        .exchanges = kith_experiment_exchanges(experiment),
        .prepares = experiment->backend->host == experiment->backend &&
                    experiment->gossip.algorithm->make == NULL &&
                    experiment->gossip.wire_share == 1,
    };
    return KITH_OK;
}

void kith_experiment_lab_periods(struct kith_experiment *experiment)
{
    const kith_ns evaluate_ns = experiment->evaluate_ns;
    const bool scored =
        evaluate_ns > 0 &&
        (kith_model_learns(experiment->model) || experiment->model->reports);
    if (scored && (experiment->save_period_ns == 0 ||
                   experiment->save_period_ns > evaluate_ns))
        experiment->save_period_ns = evaluate_ns;
    experiment->evaluate_ns = scored ? evaluate_ns : 0;
}

const char *kith_world_name(enum kith_world world)
{
    static const char *const names[] = {
        [KITH_WORLD_TRAIN] = "train",  [KITH_WORLD_SIM] = "sim",
        [KITH_WORLD_LAB] = "lab",      [KITH_WORLD_PEER] = "peer",
        [KITH_WORLD_PROGRAM] = "peer", [KITH_WORLD_PROGRAM_SIM] = "sim",
        [KITH_WORLD_VISIT] = "doctor"};
    return names[world];
}

#define REFUSE(...)                                                            \
    kith_text_fail(error, KITH_EXPERIMENT_ERROR_BYTES, KITH_EINVAL, __VA_ARGS__)

/* An early stop needs evaluations and somebody who sees them: those of the
 * lab's launcher come with a time alone. */
enum kith_err
kith_experiment_check_world(const struct kith_experiment *experiment,
                            enum kith_world world, char *error)
{
    static const char only_sim[] =
        "%s needs virtual time: run it with kith sim, or take it out";
    const bool is_sim =
        world == KITH_WORLD_SIM || world == KITH_WORLD_PROGRAM_SIM;
    const bool is_program =
        world == KITH_WORLD_PROGRAM || world == KITH_WORLD_PROGRAM_SIM;
    const bool is_lab = world == KITH_WORLD_LAB || world == KITH_WORLD_PEER ||
                        world == KITH_WORLD_PROGRAM ||
                        world == KITH_WORLD_VISIT;
    const bool runs = world == KITH_WORLD_LAB && experiment->model->reports;
    const bool is_patient = experiment->stop.patience > 0;
    const bool evaluates_once =
        world == KITH_WORLD_TRAIN ? experiment->evaluations == KITH_EVALUATE_END
                                  : experiment->evaluate_ns == 0;
    if (runs && experiment->run.command[0] == '\0')
        return REFUSE("model.run: not given; allowed: the command that kith "
                      "lab starts for each peer, such as \"python3 train.py\"");
    if (is_program != experiment->model->reports && !runs &&
        world != KITH_WORLD_VISIT)
        return is_program
                   ? REFUSE(
                         "model.kind: found %s, which kith trains itself, by "
                         "kith %s; allowed for a training loop of yours: "
                         "program",
                         experiment->model->name, kith_world_name(world))
               : is_sim
                   ? REFUSE("model.kind: a program's own training loop is "
                            "simulated by kith_simulate() of kith/kith.h, or "
                            "by kith.simulate() of `import kith`; this command "
                            "trains built-in models")
                   : REFUSE("model.kind: a program's own training loop opens "
                            "its peer, by kith_open() of kith/kith.h or by "
                            "`import kith`; of these commands kith lab alone "
                            "starts it, as model.run says");
    if (is_program && experiment->central.present)
        return REFUSE("central: central baselines move gradients, and a "
                      "training loop of yours gives its model alone; take "
                      "gossip in their place");
    if (world != KITH_WORLD_TRAIN && experiment->evaluate_steps > 0)
        return REFUSE("evaluate: found %" PRIu64 " steps, which kith train "
                      "alone counts; give a time, such as --set evaluate=5s",
                      experiment->evaluate_steps);
    if (is_patient && is_sim)
        return REFUSE("stop.patience: kith sim does not stop early; run it "
                      "with --set stop.patience=0");
    if (is_patient && evaluates_once)
        return REFUSE("stop.patience: counts evaluations, but there is one "
                      "alone, at the end; give a time, such as --set "
                      "evaluate=5s");
    if (experiment->central.present && !is_sim)
        return REFUSE("central: central baselines exist in the simulator only; "
                      "run it with kith sim, or take gossip in their place");
    const bool has_step =
        experiment->compute.step_ns > 0 ||
        (world == KITH_WORLD_SIM && experiment->hosts.file[0] != '\0' &&
         experiment->hosts.step_ns > 0);
    if (is_sim && !has_step &&
        (experiment->stop.time_ns > 0 || experiment->atom_count > 0))
        return REFUSE("compute.step: not given; a simulated time needs the "
                      "cost of a step, such as --set compute.step=5ms");
    if (is_lab && experiment->model->absent && experiment->model_config.dim > 0)
        return REFUSE("model.dim: values that nobody has are sent by kith sim "
                      "alone; take consensus, or leave it out");
    if (is_lab && experiment->compute.exponential)
        return REFUSE(only_sim, "compute.spread: exponential");
    if (is_lab && kith_zones_limit(&experiment->network.zones) != NULL)
        return REFUSE(only_sim, kith_zones_limit(&experiment->network.zones));
    if (is_lab && experiment->gossip.deadline_ns == KITH_NEVER)
        return REFUSE(only_sim, "gossip.deadline: never");
    if (is_lab && experiment->network.drop_push > 0)
        return REFUSE(only_sim, "network.drop_push");
    if (world == KITH_WORLD_LAB && kith_checks_ask(experiment, "conserved"))
        return REFUSE("assert: found conserved, a sum over models and messages "
                      "at one instant, which kith sim alone sees; run it with "
                      "kith sim, or take it out");
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

/* For "the data in ...": drawn data lie nowhere. */
static const char *data_name(const struct kith_experiment *experiment)
{
    const struct kith_data_config *config = &experiment->data.config;
    KITH_ASSERT(config->kind != NULL);
    return config->path[0] != '\0' ? config->path : config->kind->name;
}

static enum kith_err check_shape(const struct kith_experiment *experiment,
                                 const struct kith_examples *set, char *error)
{
    const struct kith_model *model = experiment->model;
    const struct kith_model_size size =
        kith_model_size_of(model, &experiment->model_config);
    if (set->input != model->input)
        return REFUSE(
            "model.kind: model %s learns from %s, but the data in %.200s "
            "holds %s",
            model->name, kith_experiment_input_name(model->input),
            data_name(experiment), kith_experiment_input_name(set->input));
    if (set->input == KITH_INPUT_TOKENS && set->classes > size.classes)
        return REFUSE("model.vocabulary: found %zu, but the data in %.200s has "
                      "%" PRIu32 " different tokens; allowed: at least as many",
                      size.classes, data_name(experiment), set->classes);
    if (set->features != size.features || set->classes > size.classes ||
        !same_image(experiment, set))
        return REFUSE("%s: found %zu inputs and %zu outputs, but the data in "
                      "%.200s has %zu features (%" PRIu32 " x %" PRIu32
                      " x %" PRIu32 ") and %" PRIu32 " classes",
                      input_key(model), size.features, size.classes,
                      data_name(experiment), set->features, set->shape[0],
                      set->shape[1], set->shape[2], set->classes);
    if (set->count < experiment->peers)
        return REFUSE("peers: found %" PRIu32
                      ", but the data in %.200s has only "
                      "%zu rows: one for each at least",
                      experiment->peers, data_name(experiment), set->count);
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
    if (steps == 0)
        return REFUSE(
            "stop.epochs: found %g, which is less than one step of %" PRIu32
            " peers with batch %" PRIu32,
            experiment->stop.epochs, experiment->peers,
            experiment->train.batch);
    char words[EXPERIMENT_LATE_BYTES];
    if (kith_experiment_outlasts_time(experiment, steps, words))
        return REFUSE("stop: %s", words);
    const struct kith_atom *atom =
        kith_experiment_late_fault(experiment, steps, words);
    return atom == NULL
               ? KITH_OK
               : REFUSE("faults[%" PRIu32 "]: %s", atom->statement, words);
}
