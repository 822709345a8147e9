/* What a runner of work items is told of an experiment. */
#include "kith/experiment.h"
#include "kith/worker.h"

static void hash(const void *experiment, char text[KITH_OWNER_HASH_BYTES])
{
    _Static_assert(KITH_OWNER_HASH_BYTES == KITH_EXPERIMENT_HASH_BYTES, "");
    kith_experiment_hash_text(experiment, text);
}

static bool is_same(const void *experiment, const char *text,
                    const char *source, char *what, size_t size)
{
    return kith_experiment_is(experiment, text, source, what, size);
}

struct kith_task kith_experiment_task(const struct kith_experiment *experiment,
                                      const struct kith_experiment *named)
{
    const struct kith_experiment *owner = named != NULL ? named : experiment;
    return (struct kith_task){
        .seed = experiment->seed,
        .peers = experiment->peers,
        .model = experiment->model,
        .model_config = &experiment->model_config,
        .training = &experiment->train,
        .split = &experiment->data.split,
        .algorithm = experiment->gossip.algorithm,
        .coefficients = experiment->gossip.coefficients,
        .graph = &experiment->gossip.graph,
        .every = experiment->gossip.every,
        .exchanges = kith_experiment_exchanges(experiment),
        .format = experiment->gossip.format,
        .wire_share = experiment->gossip.wire_share,
        .compression = kith_experiment_compression(experiment, 0),
        .guard = kith_guard_find(experiment->gossip.guard),
        .guard_config = experiment->gossip.guarded,
        .owner = {.role = named != NULL ? "train" : "peer",
                  .source = owner->source,
                  .experiment = owner,
                  .hash = hash,
                  .is = is_same},
    };
}
