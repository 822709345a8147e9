/* Trains an experiment's model through the worker, as `kith train` does, and
 * writes down all that another program needs to do the same: starting weights,
 * every batch, every loss, the first gradient, the last weights.
 *
 *   dump EXPERIMENT STEPS OUT.safetensors [--set key=value | --weights FILE]
 *
 * --weights: start from these, of any safetensors file, and take no step.
 *
 * Tensors: start.NAME, gradient.NAME, final.NAME (F64), inputs (steps, rows,
 * features), labels (steps, rows or tokens), losses (steps), scores of the
 * first batch at the starting weights; all F64. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "kith/checkpoint.h"
#include "kith/experiment.h"
#include "kith/loader.h"
#include "kith/worker.h"

#define TENSORS_MAX 2048

/* What will be written, in order. */
static struct {
    struct kith_tensor_entry entries[TENSORS_MAX];
    double *values[TENSORS_MAX];
    size_t count;
} out;

static void die(const char *what)
{
    fprintf(stderr, "dump: %s\n", what);
    exit(1);
}

static void *need(size_t count, size_t bytes)
{
    void *memory = calloc(count > 0 ? count : 1, bytes);
    if (memory == NULL)
        die("no memory");
    return memory;
}

static double *add(const char *prefix, const char *name, uint32_t rank,
                   const uint64_t *shape)
{
    struct kith_tensor_entry *entry = &out.entries[out.count];
    size_t elements = 1;
    if (out.count == TENSORS_MAX)
        die("too many tensors");
    (void)snprintf(entry->name, sizeof entry->name, "%s%s", prefix, name);
    entry->dtype = KITH_DTYPE_F64;
    entry->rank = rank;
    for (uint32_t i = 0; i < rank; i++) {
        entry->shape[i] = shape[i];
        elements *= (size_t)shape[i];
    }
    return out.values[out.count++] = need(elements, sizeof(double));
}

static void add_views(const char *prefix, const struct kith_layout *layout,
                      size_t end, const double *x)
{
    for (uint32_t i = 0; i < layout->view_count; i++) {
        const struct kith_model_view *view = &layout->views[i];
        uint64_t shape[4] = {0};
        if (view->offset >= end)
            continue;
        for (uint32_t k = 0; k < view->rank; k++)
            shape[k] = view->shape[k];
        memcpy(add(prefix, view->name, view->rank, shape), x + view->offset,
               view->elements * sizeof *x);
    }
}

static void write_out(const char *path)
{
    uint8_t *header;
    size_t bytes;
    FILE *file = fopen(path, "wb");
    if (file == NULL || kith_safetensors_header(out.entries, out.count, NULL, 0,
                                                &header, &bytes) != KITH_OK)
        die("cannot write");
    bool ok = fwrite(header, 1, bytes, file) == bytes;
    for (size_t i = 0; i < out.count; i++)
        ok &= fwrite(out.values[i], 1, out.entries[i].bytes, file) ==
              out.entries[i].bytes;
    if (!ok || fclose(file) != 0)
        die("cannot write");
    free(header);
}

struct dump {
    struct kith_experiment experiment;
    struct kith_dataset set;
    uint32_t *rows;
    size_t row_count;
    struct kith_graph *network; /* for the first gradient and scores alone */
    const char *weights;        /* NULL: the seed's */
};

static struct kith_loader *open_loader(const struct dump *dump)
{
    const struct kith_loader_config config = {
        .examples = &dump->set.train,
        .backend = dump->experiment.backend,
        .rows = dump->rows,
        .row_count = dump->row_count,
        .batch = dump->experiment.train.batch,
        .seed = dump->experiment.seed,
        .shuffle = true};
    struct kith_loader *loader;
    char error[KITH_DATA_ERROR_BYTES];
    if (kith_loader_open(&config, &loader, error) != KITH_OK)
        die(error);
    return loader;
}

/* The batches that the worker will draw, from a loader like its own. */
static void dump_batches(const struct dump *dump, uint64_t steps)
{
    const struct kith_examples *train = &dump->set.train;
    const size_t rows = dump->experiment.train.batch;
    const size_t features = train->features;
    const bool tokens = train->input == KITH_INPUT_TOKENS;
    const size_t label_count = tokens ? rows * features : rows;
    double *inputs = add("", "inputs", 3, (uint64_t[]){steps, rows, features});
    double *labels = add("", "labels", 2, (uint64_t[]){steps, label_count});
    struct kith_loader *loader = open_loader(dump);
    for (uint64_t step = 0; step < steps; step++) {
        struct kith_batch batch = {.rows = 0};
        kith_loader_next(loader, &batch);
        for (size_t i = 0; i < rows * features && tokens; i++)
            *inputs++ = ((const int32_t *)batch.inputs)[i];
        if (!tokens) {
            dump->experiment.backend->read(rows * features, batch.inputs,
                                           inputs);
            inputs += rows * features;
        }
        for (size_t i = 0; i < label_count; i++)
            *labels++ = batch.labels[i];
    }
    kith_loader_close(loader);
}

static void first_scores(const struct dump *dump, void *x,
                         const struct kith_batch *batch)
{
    struct kith_model_size size;
    char error[KITH_MODEL_ERROR_BYTES];
    const struct kith_experiment *experiment = &dump->experiment;
    const bool tokens = dump->set.train.input == KITH_INPUT_TOKENS;
    if (kith_model_measure(experiment->model, &experiment->model_config, &size,
                           error) != KITH_OK)
        die(error);
    const uint64_t rows = batch->rows * (tokens ? size.features : 1);
    double *scores = add("", "scores", 2, (uint64_t[]){rows, size.classes});
    experiment->backend->read((size_t)rows * size.classes,
                              kith_graph_scores(dump->network, x, batch),
                              scores);
}

static void first_gradient(const struct dump *dump, const double *start)
{
    const struct kith_backend *backend = dump->experiment.backend;
    const struct kith_layout *layout = kith_graph_layout(dump->network);
    void *x = backend->alloc(layout->dim * backend->element_bytes, false);
    void *gradient =
        backend->alloc(layout->trained * backend->element_bytes, false);
    double *wide = need(layout->trained, sizeof *wide);
    struct kith_batch batch = {.seed = dump->experiment.seed};
    struct kith_loader *loader = open_loader(dump);
    if (x == NULL || gradient == NULL)
        die("no memory");
    kith_loader_next(loader, &batch);
    backend->write(layout->dim, start, x);
    const struct kith_pass pass = {
        .x = x, .gradient = gradient, .batch = &batch, .scale = 1};
    (void)kith_graph_loss(dump->network, &pass, NULL);
    backend->read(layout->trained, gradient, wide);
    add_views("gradient.", layout, layout->trained, wide);
    first_scores(dump, x, &batch);
    kith_loader_close(loader);
    backend->release(gradient);
    backend->release(x);
    free(wide);
}

static void train(const struct dump *dump, uint64_t steps)
{
    const struct kith_worker_config config = {
        .task = kith_experiment_task(&dump->experiment, NULL),
        .backend = dump->experiment.backend,
        .train = &dump->set.train,
        .steps = steps,
        .peers = 1};
    struct kith_worker *worker;
    char error[KITH_DATA_ERROR_BYTES];
    if (kith_worker_open(&config, &worker, error) != KITH_OK)
        die(error);
    const struct kith_layout *layout = kith_graph_layout(dump->network);
    double *x = need(layout->dim, sizeof *x);
    double *losses = add("", "losses", 1, &steps);
    kith_worker_read(worker, x);
    if (dump->weights != NULL &&
        kith_weights_read(dump->weights, NULL, layout, x, error) != KITH_OK)
        die(error);
    add_views("start.", layout, layout->dim, x);
    first_gradient(dump, x);
    for (uint64_t step = 0; step < steps; step++) {
        struct kith_work work = {.kind = KITH_WORK_TRAIN, .step = step};
        struct kith_work_result result;
        kith_worker_run(worker, &work, &result);
        losses[step] = result.loss;
    }
    kith_worker_read(worker, x);
    add_views("final.", layout, layout->dim, x);
    free(x);
    kith_worker_close(worker);
}

int main(int argc, char **argv)
{
    static struct dump dump;
    static char error[KITH_EXPERIMENT_ERROR_BYTES];
    const char *sets[32];
    uint32_t set_count = 0;
    if (argc < 4)
        die("usage: dump EXPERIMENT STEPS OUT.safetensors [--set key=value]");
    for (int i = 4; i + 1 < argc && set_count < 32; i += 2)
        if (strcmp(argv[i], "--weights") == 0)
            dump.weights = argv[i + 1];
        else
            sets[set_count++] = argv[i + 1];
    const uint64_t steps = strtoull(argv[2], NULL, 10);
    if (kith_experiment_load(argv[1], sets, set_count, &dump.experiment,
                             error) != KITH_OK ||
        kith_dataset_open(&dump.experiment.data.config, &dump.set, error) !=
            KITH_OK ||
        kith_split_rows(&dump.experiment.data.split, &dump.set.train,
                        dump.experiment.seed, 1, 0, &dump.rows,
                        &dump.row_count) != KITH_OK)
        die(error);
    const struct kith_graph_options options = {
        .backend = dump.experiment.backend,
        .rows = dump.experiment.train.batch,
        .training = true};
    if (kith_graph_open(dump.experiment.model, &dump.experiment.model_config,
                        &options, &dump.network, error) != KITH_OK)
        die(error);
    dump_batches(&dump, steps);
    train(&dump, steps);
    write_out(argv[3]);
    return 0;
}
