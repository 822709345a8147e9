/* Stages of a pipeline: where the model is cut, and memory for each. The model
 * has `stages` parts of nearly equally many operations, each cut where a single
 * tensor crosses. All batches are those that one peer alone would train on. */
#include <stdlib.h>
#include <string.h>

#include "sim/central/vertical.h"

/* Every part of a batch has activations of its own: several are between forward
 * and back at a time. */
static enum kith_err open_network(struct sim_central *run,
                                  struct kith_graph **network)
{
    KITH_ASSERT(run->experiment->train.batch > 0);
    const struct kith_experiment *experiment = run->experiment;
    const struct vertical *vertical = run->state;
    const struct kith_graph_options options = {.backend = experiment->backend,
                                               .rows = vertical->rows,
                                               .training = true,
                                               .smoothing =
                                                   experiment->train.smoothing};
    char words[KITH_MODEL_ERROR_BYTES] = "";
    const enum kith_err err = kith_graph_open(
        experiment->model, &experiment->model_config, &options, network, words);
    return err == KITH_OK ? err : sim_fail(run->world, err, "%s", words);
}

/* cuts[i]: the first operation of stage i, the nearest place after the even
 * one where a single tensor crosses. */
static enum kith_err place_cuts(struct sim_central *run,
                                struct kith_graph *network)
{
    KITH_ASSERT(((struct vertical *)run->state)->count > 0);
    struct vertical *vertical = run->state;
    const uint32_t operations = kith_graph_operations(network);
    size_t bytes;
    vertical->cuts[vertical->count] = operations;
    for (uint32_t i = 1; i < vertical->count; i++) {
        uint32_t cut = (uint32_t)((uint64_t)operations * i / vertical->count);
        cut = cut > vertical->cuts[i - 1] ? cut : vertical->cuts[i - 1] + 1;
        while (cut < operations &&
               (!kith_graph_edge(network, cut, false, 1, &bytes) ||
                !kith_graph_edge(network, cut, true, 1, &bytes)))
            cut++;
        if (cut >= operations) {
            return sim_fail(
                run->world, KITH_EINVAL,
                "model %s cannot be cut into %u stages: between %u operations "
                "a single tensor must cross each cut; take fewer peers",
                run->experiment->model->name, vertical->count, operations);
        }
        vertical->cuts[i] = cut;
    }
    return KITH_OK;
}

/* The batches of peer 0 of one. */
static enum kith_err open_loader(struct sim_central *run)
{
    KITH_ASSERT(((struct vertical *)run->state)->loader == NULL);
    struct vertical *vertical = run->state;
    const struct kith_experiment *experiment = run->experiment;
    if (!run->world->options.dataset)
        return KITH_OK;
    const struct kith_examples *train = &run->world->options.dataset->train;
    size_t count;
    char words[KITH_DATA_ERROR_BYTES] = "";
    enum kith_err err =
        kith_split_rows(&experiment->data.split, train, experiment->seed, 1, 0,
                        &vertical->own_rows, &count);
    if (err == KITH_OK) {
        const struct kith_loader_config config = {
            .examples = train,
            .backend = experiment->backend,
            .rows = vertical->own_rows,
            .row_count = count,
            .batch = vertical->rows,
            .seed = experiment->seed,
            .augment = experiment->train.augment,
            .shuffle = true};
        err = kith_loader_open(&config, &vertical->loader, words);
    }
    if (err != KITH_OK) {
        return sim_fail(run->world, err, "opening the data: %s",
                        words[0] ? words : kith_err_text(err));
    }
    const bool tokens = train->input == KITH_INPUT_TOKENS;
    const size_t element =
        tokens ? sizeof(int32_t) : experiment->backend->element_bytes;
    vertical->input_bytes = vertical->rows * train->features * element;
    vertical->label_count = vertical->rows * (tokens ? train->features : 1);
    return KITH_OK;
}

/* One label more than needed, and a line more of inputs: neither is empty, so
 * that NULL means that memory is out. */
static enum kith_err open_batch(struct sim_central *run,
                                struct vertical_batch *batch)
{
    KITH_ASSERT(batch->inputs == NULL);
    const struct vertical *vertical = run->state;
    batch->inputs = sim_alloc(run->world, 1, vertical->input_bytes + 64);
    batch->labels =
        sim_alloc(run->world, vertical->label_count + 1, sizeof *batch->labels);
    return batch->inputs && batch->labels ? KITH_OK : KITH_ENOMEM;
}

/* Weights of its own for each slot: a part goes backward with the weights that
 * it went forward with, however often they have moved meanwhile. */
static enum kith_err open_stage(struct sim_central *run,
                                struct vertical_stage *stage)
{
    KITH_ASSERT(stage->slots == NULL && stage->gradient == NULL);
    const uint32_t slots = ((struct vertical *)run->state)->slots;
    stage->slots = sim_alloc(run->world, slots, sizeof *stage->slots);
    if (!stage->slots || !run->server)
        return stage->slots ? KITH_OK : KITH_ENOMEM;
    stage->gradient = sim_copy_take(run->world);
    if (!stage->gradient)
        return KITH_ENOMEM;
    memset(stage->gradient, 0, run->world->vector_bytes);
    enum kith_err err = KITH_OK;
    for (uint32_t i = 0; i < slots && err == KITH_OK; i++) {
        stage->slots[i].x = sim_copy_take(run->world);
        err = stage->slots[i].x ? open_network(run, &stage->slots[i].network)
                                : KITH_ENOMEM;
    }
    return err;
}

/* Slots times stages: memory grows with what is in the pipeline, as it does on
 * real machines. */
static enum kith_err open_memory(struct sim_central *run)
{
    KITH_ASSERT(((struct vertical *)run->state)->slots <= VERTICAL_SLOTS_MAX);
    const struct vertical *vertical = run->state;
    enum kith_err err = KITH_OK;
    for (uint32_t s = 0; s < vertical->count && err == KITH_OK; s++)
        err = open_stage(run, &vertical->stages[s]);
    for (uint32_t i = 0; i < vertical->slots && err == KITH_OK; i++)
        err = open_batch(run, &vertical->batches[i]);
    return err;
}

/* A network is opened once to see where it can be cut, and closed: stages open
 * their own. */
enum kith_err sim_vertical_open(struct sim_central *run)
{
    KITH_ASSERT(run->config->stages <= run->worker_count);
    const struct kith_central *config = run->config;
    struct sim_world *world = run->world;
    struct vertical *vertical = run->state;
    vertical->count = config->stages > 0 ? config->stages : run->worker_count;
    vertical->slots = config->in_flight * config->micro_batches;
    vertical->rows = run->experiment->train.batch / config->micro_batches;
    vertical->edge_bytes = config->payload_bytes;
    vertical->cuts =
        sim_alloc(world, vertical->count + 1, sizeof *vertical->cuts);
    vertical->stages =
        sim_alloc(world, vertical->count, sizeof *vertical->stages);
    vertical->batches =
        sim_alloc(world, vertical->slots, sizeof *vertical->batches);
    if (!vertical->cuts || !vertical->stages || !vertical->batches)
        return KITH_ENOMEM;
    enum kith_err err = open_loader(run);
    struct kith_graph *network = NULL;
    if (err == KITH_OK && run->server) {
        err = open_network(run, &network);
        err = err == KITH_OK ? place_cuts(run, network) : err;
    }
    kith_graph_close(network);
    return err == KITH_OK ? open_memory(run) : err;
}

/* Also of what sim_vertical_open() left half done. */
void sim_vertical_close(struct sim_central *run)
{
    KITH_ASSERT(run->method == &sim_central_vertical);
    struct vertical *vertical = run->state;
    for (uint32_t s = 0; vertical->stages && s < vertical->count; s++) {
        const struct vertical_stage *stage = &vertical->stages[s];
        for (uint32_t i = 0; stage->slots && i < vertical->slots; i++)
            kith_graph_close(stage->slots[i].network);
    }
    kith_loader_close(vertical->loader);
    free(vertical->own_rows);
}

/* Inputs and labels are copied out of the loader, whose buffers hold one batch:
 * several are in the pipeline. */
void sim_vertical_load(struct sim_central *run, uint32_t slot)
{
    KITH_ASSERT(slot < ((struct vertical *)run->state)->slots);
    struct vertical *vertical = run->state;
    struct vertical_batch *own = &vertical->batches[slot];
    own->batch = (struct kith_batch){.rows = vertical->rows,
                                     .seed = run->experiment->seed,
                                     .step = vertical->begun};
    if (!vertical->loader)
        return;
    struct kith_batch next = {.rows = 1};
    kith_loader_next(vertical->loader, &next);
    memcpy(own->inputs, next.inputs, vertical->input_bytes);
    memcpy(own->labels, next.labels,
           vertical->label_count * sizeof *own->labels);
    own->batch.inputs = own->inputs;
    own->batch.labels = own->labels;
    own->batch.rows = next.rows;
}
