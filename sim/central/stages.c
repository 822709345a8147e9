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
    if (err != KITH_OK) {
        sim_fail(run->world, err, "%s", words);
    }
    return err;
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
                !kith_graph_edge(network, cut, true, 1, &bytes))) {
            cut++;
        }
        if (cut >= operations) {
            sim_fail(run->world, KITH_EINVAL,
                     "model %s cannot be cut into %u stages: between %u "
                     "operations a single tensor must cross each cut; take "
                     "fewer peers",
                     run->experiment->model->name, vertical->count, operations);
            return KITH_EINVAL;
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
    if (!run->world->options.dataset) {
        return KITH_OK;
    }
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
        sim_fail(run->world, err, "opening the data: %s",
                 words[0] ? words : kith_err_text(err));
        return err;
    }
    const bool tokens = train->input == KITH_INPUT_TOKENS;
    const size_t element =
        tokens ? sizeof(int32_t) : experiment->backend->element_bytes;
    vertical->input_bytes = vertical->rows * train->features * element;
    vertical->label_count = vertical->rows * (tokens ? train->features : 1);
    return KITH_OK;
}

/* Weights of its own for each slot: a part goes backward with the weights that
 * it went forward with, however often they have moved meanwhile. */
static enum kith_err open_slot(struct sim_central *run,
                               struct vertical_slot *slot)
{
    KITH_ASSERT(slot->network == NULL);
    slot->x = sim_copy_take(run->world);
    return slot->x ? open_network(run, &slot->network) : KITH_ENOMEM;
}

/* One label more than needed, and a line more of inputs: neither is empty, so
 * that NULL means that memory is out. */
static enum kith_err open_batch(const struct vertical *vertical,
                                struct vertical_batch *batch)
{
    KITH_ASSERT(batch->inputs == NULL);
    batch->inputs = aligned_alloc(64, (vertical->input_bytes + 64) / 64 * 64);
    batch->labels = malloc((vertical->label_count + 1) * sizeof *batch->labels);
    return batch->inputs && batch->labels ? KITH_OK : KITH_ENOMEM;
}

/* Slots times stages: memory grows with what is in the pipeline, as it does on
 * real machines. */
static enum kith_err open_memory(struct sim_central *run)
{
    KITH_ASSERT(((struct vertical *)run->state)->slots <= VERTICAL_SLOTS_MAX);
    struct vertical *vertical = run->state;
    enum kith_err err = KITH_OK;
    for (uint32_t s = 0; s < vertical->count && err == KITH_OK; s++) {
        struct vertical_stage *stage = &vertical->stages[s];
        stage->slots = calloc(vertical->slots, sizeof *stage->slots);
        err = stage->slots ? KITH_OK : KITH_ENOMEM;
        if (err == KITH_OK && run->server) {
            stage->gradient = sim_copy_take(run->world);
            err = stage->gradient ? KITH_OK : KITH_ENOMEM;
        }
        if (err == KITH_OK && stage->gradient) {
            memset(stage->gradient, 0, run->world->vector_bytes);
        }
        for (uint32_t i = 0;
             i < vertical->slots && err == KITH_OK && run->server; i++) {
            err = open_slot(run, &stage->slots[i]);
        }
    }
    for (uint32_t i = 0; i < vertical->slots && err == KITH_OK; i++) {
        err = open_batch(vertical, &vertical->batches[i]);
    }
    return err;
}

/* A network is opened once to see where it can be cut, and closed: stages open
 * their own. */
enum kith_err sim_vertical_open(struct sim_central *run)
{
    KITH_ASSERT(run->state == NULL);
    KITH_ASSERT(run->config->stages <= run->worker_count);
    const struct kith_central *config = run->config;
    struct vertical *vertical = calloc(1, sizeof *vertical);
    run->state = vertical;
    if (!vertical) {
        return KITH_ENOMEM;
    }
    vertical->count = config->stages > 0 ? config->stages : run->worker_count;
    vertical->slots = config->in_flight * config->micro_batches;
    vertical->rows = run->experiment->train.batch / config->micro_batches;
    vertical->edge_bytes = config->payload_bytes;
    vertical->cuts = calloc(vertical->count + 1, sizeof *vertical->cuts);
    vertical->stages = calloc(vertical->count, sizeof *vertical->stages);
    vertical->batches = calloc(vertical->slots, sizeof *vertical->batches);
    if (!vertical->cuts || !vertical->stages || !vertical->batches) {
        return KITH_ENOMEM;
    }
    enum kith_err err = open_loader(run);
    struct kith_graph *network = NULL;
    if (err == KITH_OK && run->server) {
        err = open_network(run, &network);
    }
    if (err == KITH_OK && run->server) {
        err = place_cuts(run, network);
    }
    kith_graph_close(network);
    return err == KITH_OK ? open_memory(run) : err;
}

/* Also of what sim_vertical_open() left half done. */
void sim_vertical_close(struct sim_central *run)
{
    KITH_ASSERT(run->method == &sim_central_vertical);
    struct vertical *vertical = run->state;
    if (!vertical) {
        return;
    }
    for (uint32_t s = 0; vertical->stages && s < vertical->count; s++) {
        struct vertical_stage *stage = &vertical->stages[s];
        for (uint32_t i = 0; stage->slots && i < vertical->slots; i++) {
            kith_graph_close(stage->slots[i].network);
            sim_copy_release(run->world, stage->slots[i].x);
            free(stage->slots[i].arriving[0]);
            free(stage->slots[i].arriving[1]);
        }
        sim_copy_release(run->world, stage->gradient);
        free(stage->slots);
    }
    for (uint32_t i = 0; vertical->batches && i < vertical->slots; i++) {
        free(vertical->batches[i].inputs);
        free(vertical->batches[i].labels);
    }
    kith_loader_close(vertical->loader);
    free(vertical->own_rows);
    free(vertical->cuts);
    free(vertical->stages);
    free(vertical->batches);
    free(vertical);
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
    if (!vertical->loader) {
        return;
    }
    struct kith_batch next = {.rows = 1};
    kith_loader_next(vertical->loader, &next);
    memcpy(own->inputs, next.inputs, vertical->input_bytes);
    memcpy(own->labels, next.labels,
           vertical->label_count * sizeof *own->labels);
    own->batch.inputs = own->inputs;
    own->batch.labels = own->labels;
    own->batch.rows = next.rows;
}
