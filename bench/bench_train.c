/* Training steps per second of six models: whole TRAIN items of a worker
 * (drawing the batch, forward, backward, optimiser), beside the rate of the
 * cores' multiply-adds and, where PyTorch is installed, beside its steps.
 *
 *   bench_train              every case on 1 and 2 threads, as shares of the
 *                            multiply-add rate, then train_torch.py
 *   bench_train serve CASE   for train_torch.py: answers a line "THREADS
 *                            SECONDS" with samples (gpt: tokens) per second and
 *                            bytes taken since just before the model was
 *                            opened; "product NAME" with whether it is here;
 *                            "peak THREADS" with FLOP/s
 *
 * BENCH_SECONDS per measurement (0.5). Source of the ceiling: bench/peak.h. */
#include "bench/bench.h"
#include "bench/peak.h"

#include <unistd.h>

#include "kith/evaluation.h"
#include "kith/worker.h"

#ifndef BENCH_FOLDER
#define BENCH_FOLDER "bench"
#endif

enum { ROWS = 4096, CLASSES = 10, CONTEXT = 128, VOCABULARY = 65 };

/* The same in train_torch.py. */
struct spec {
    const char *name, *optimiser, *backend;
    uint32_t batch;
    uint32_t shape[3]; /* of an image; tokens: 0 */
    const char *model;
    struct kith_model_config config;
};

#define WIDE                                                                   \
    {                                                                          \
        .depth = 4, .heads = 8, .width = 512, .context = CONTEXT,              \
        .vocabulary = VOCABULARY                                               \
    }

static const struct spec specs[] = {
    {"mlp64",
     "sgd",
     "cpu",
     64,
     {1, 1, 784},
     "mlp",
     {.layers = {784, 512, 512, CLASSES}, .layer_count = 4}},
    {"mlp256",
     "sgd",
     "cpu",
     256,
     {1, 1, 784},
     "mlp",
     {.layers = {784, 512, 512, CLASSES}, .layer_count = 4}},
    {"cnn",
     "sgd",
     "cpu",
     64,
     {28, 28, 1},
     "cnn",
     {.image = {28, 28, 1},
      .classes = CLASSES,
      .channels = {16, 32},
      .channel_count = 2}},
    {"resnet20",
     "sgd",
     "cpu",
     128,
     {32, 32, 3},
     "resnet",
     {.image = {32, 32, 3}, .classes = CLASSES, .depth = 20}},
    {"gpt",
     "adamw",
     "cpu",
     16,
     {0, 0, 0},
     "gpt",
     {.depth = 4,
      .heads = 4,
      .width = 128,
      .context = CONTEXT,
      .vocabulary = VOCABULARY}},
    {"gpt512", "adamw", "cpu", 8, {0, 0, 0}, "gpt", WIDE},
    {"gpt512-bf16", "adamw", "cpu-bf16", 8, {0, 0, 0}, "gpt", WIDE},
};
#undef WIDE
enum { SPECS = sizeof specs / sizeof specs[0] };

struct trainer {
    const struct spec *spec;
    struct kith_experiment experiment;
    struct kith_examples examples;
    struct kith_worker *worker;
    uint64_t step;
    size_t before; /* bytes of the process before the model was opened */
};

/* A line of /proc/self/status in bytes; 0 where there is none. */
static size_t status_bytes(const char *key)
{
    char line[256];
    size_t kilobytes = 0;
    FILE *file = fopen("/proc/self/status", "r");
    while (file != NULL && fgets(line, sizeof line, file) != NULL)
        if (strncmp(line, key, strlen(key)) == 0)
            kilobytes = strtoull(line + strlen(key), NULL, 10);
    if (file != NULL)
        (void)fclose(file);
    return kilobytes << 10;
}

/* The peak starts over from what is there now. */
static void forget_peak(void)
{
    FILE *file = fopen("/proc/self/clear_refs", "w");
    if (file == NULL)
        return;
    (void)fputs("5", file);
    (void)fclose(file);
}

static void draw_images(struct trainer *trainer, struct kith_rng *rng)
{
    const uint32_t *shape = trainer->spec->shape;
    const size_t features = (size_t)shape[0] * shape[1] * shape[2];
    uint8_t *images = bench_alloc(ROWS * features);
    int32_t *labels = bench_alloc(ROWS * sizeof *labels);
    trainer->examples =
        (struct kith_examples){.input = KITH_INPUT_IMAGES,
                               .element = KITH_ELEMENT_U8,
                               .values = images,
                               .labels = labels,
                               .shape = {shape[0], shape[1], shape[2]},
                               .deviation = {1, 1, 1, 1},
                               .count = ROWS,
                               .features = features,
                               .classes = CLASSES};
    kith_rng_fill(rng, images, ROWS * features);
    for (size_t i = 0; i < ROWS; i++)
        labels[i] = (int32_t)kith_rng_below(rng, CLASSES);
}

static void draw_tokens(struct trainer *trainer, struct kith_rng *rng)
{
    const size_t tokens = (size_t)ROWS * CONTEXT + 1;
    uint8_t *text = bench_alloc(tokens);
    for (size_t i = 0; i < tokens; i++)
        text[i] = (uint8_t)kith_rng_below(rng, VOCABULARY);
    trainer->examples = (struct kith_examples){.input = KITH_INPUT_TOKENS,
                                               .element = KITH_ELEMENT_U8,
                                               .values = text,
                                               .count = ROWS,
                                               .features = CONTEXT,
                                               .tokens = tokens,
                                               .classes = VOCABULARY};
}

static void set_experiment(struct trainer *trainer)
{
    const struct spec *spec = trainer->spec;
    struct kith_experiment *experiment = &trainer->experiment;
    experiment->seed = 1;
    experiment->peers = 1;
    experiment->model = kith_model_find(spec->model);
    experiment->model_config = spec->config;
    experiment->backend = kith_backend_find(spec->backend);
    experiment->gossip.algorithm = kith_algorithm_find("local");
    experiment->train.optimiser = kith_optimiser_find(spec->optimiser);
    experiment->train.config =
        (struct kith_optimiser_config){.learning_rate = 0.001,
                                       .momentum = 0.9,
                                       .beta1 = 0.9,
                                       .beta2 = 0.999,
                                       .epsilon = 1e-8};
    experiment->train.batch = spec->batch;
}

static void trainer_open(struct trainer *trainer, const struct spec *spec)
{
    char error[KITH_DATA_ERROR_BYTES];
    struct kith_rng rng;
    memset(trainer, 0, sizeof *trainer);
    trainer->spec = spec;
    kith_rng_init(&rng, 1, KITH_STREAM_TEST, 0);
    if (spec->shape[0] == 0)
        draw_tokens(trainer, &rng);
    else
        draw_images(trainer, &rng);
    set_experiment(trainer);
    forget_peak();
    trainer->before = status_bytes("VmRSS:");
    const struct kith_worker_config config = {
        .task = kith_experiment_task(&trainer->experiment, NULL),
        .backend = trainer->experiment.backend,
        .train = &trainer->examples,
        .steps = UINT64_MAX,
        .peers = 1};
    if (kith_worker_open(&config, &trainer->worker, error) != KITH_OK) {
        fprintf(stderr, "bench_train: %s\n", error);
        exit(1);
    }
}

/* Samples or tokens per second over at least so many seconds. */
static double train_for(struct trainer *trainer, double seconds)
{
    const size_t unit = trainer->spec->shape[0] == 0 ? CONTEXT : 1;
    const double start = bench_now();
    uint64_t steps = 0;
    double now = start;
    while (now - start < seconds) {
        struct kith_work work = {.kind = KITH_WORK_TRAIN,
                                 .step = trainer->step++};
        struct kith_work_result result;
        kith_worker_run(trainer->worker, &work, &result);
        if (!result.finite)
            abort();
        steps++;
        now = bench_now();
    }
    return (double)(steps * trainer->spec->batch * unit) / (now - start);
}

/* FLOP of training on a sample or token: three forward passes, less the
 * gradient of the pictures, which nobody asks for. */
static double flops_of(const struct spec *spec)
{
    const struct kith_model_config *config = &spec->config;
    const struct kith_model_size size =
        kith_model_size_of(kith_model_find(spec->model), config);
    const double pixels = (double)spec->shape[0] * spec->shape[1];
    const double values = pixels * spec->shape[2];
    if (spec->shape[0] == 0)
        return 3 * size.flops / CONTEXT;
    if (config->layer_count > 0)
        return 3 * size.flops - 2 * values * config->layers[1];
    /* 3 x 3 windows; ResNet begins with 16 channels. */
    return 3 * size.flops -
           2 * 9 * values *
               (config->channel_count > 0 ? config->channels[0] : 16);
}

static bool answer(struct trainer *trainer, const char *line)
{
    unsigned threads;
    double seconds;
    char name[32];
    if (sscanf(line, "product %31s", name) == 1) {
        printf("%d\n", kith_backend_product(name) == KITH_OK);
    } else if (sscanf(line, "peak %u", &threads) == 1 && threads > 0 &&
               threads <= KITH_POOL_THREADS_MAX) {
        kith_backend_threads(threads);
        printf("%.4g\n", peak_measure(threads));
    } else if (sscanf(line, "%u %lf", &threads, &seconds) == 2 && threads > 0 &&
               threads <= KITH_POOL_THREADS_MAX && seconds <= 60) {
        kith_backend_threads(threads);
        const double rate = train_for(trainer, seconds);
        const size_t peak = status_bytes("VmHWM:");
        printf("%.1f %zu\n", rate,
               peak > trainer->before ? peak - trainer->before : 0);
    } else {
        return false;
    }
    fflush(stdout);
    return true;
}

static int serve(const char *name)
{
    struct trainer trainer;
    char line[128];
    for (size_t i = 0; i < SPECS; i++) {
        if (strcmp(specs[i].name, name) != 0)
            continue;
        const char *missing = kith_backend_find(specs[i].backend)->missing();
        if (missing != NULL) {
            fprintf(stderr, "bench_train: %s: %s\n", name, missing);
            return 1;
        }
        trainer_open(&trainer, &specs[i]);
        printf("%.6g\n", flops_of(&specs[i]));
        fflush(stdout);
        while (fgets(line, sizeof line, stdin) != NULL)
            if (!answer(&trainer, line))
                return 1;
        return 0;
    }
    fprintf(stderr, "bench_train: no case \"%s\"\n", name);
    return 1;
}

static void measure(const struct spec *spec, unsigned threads)
{
    const double seconds = bench_setting("BENCH_SECONDS", 0.5);
    double rates[BENCH_ROUNDS], shares[BENCH_ROUNDS];
    struct trainer trainer;
    char name[64];
    if (kith_backend_find(spec->backend)->missing() != NULL)
        return;
    trainer_open(&trainer, spec);
    kith_backend_threads(threads);
    (void)train_for(&trainer, seconds / 4);
    for (int round = 0; round < BENCH_ROUNDS; round++) {
        const double peak = peak_measure(threads);
        rates[round] = train_for(&trainer, seconds);
        shares[round] =
            peak > 0 ? 100 * rates[round] * flops_of(spec) / peak : 0;
    }
    snprintf(name, sizeof name, "%s, threads %u", spec->name, threads);
    bench_print(name, rates, BENCH_ROUNDS,
                spec->shape[0] == 0 ? "tokens/s" : "samples/s");
    bench_print("of the multiply-add rate", shares, BENCH_ROUNDS, "%");
    kith_worker_close(trainer.worker);
}

int main(int argc, char **argv)
{
    if (argc == 3 && strcmp(argv[1], "serve") == 0)
        return serve(argv[2]);
    printf("# whole training steps, products by %s\n",
           kith_backend_product_name());
    for (unsigned threads = 1; threads <= 2; threads++)
        for (size_t i = 0; i < SPECS; i++)
            measure(&specs[i], threads);
    const char *script = BENCH_FOLDER "/train_torch.py";
    execlp("python3", "python3", script, argv[0], (char *)NULL);
    perror("bench_train: python3");
    return 0;
}
