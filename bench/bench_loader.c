/* Batches through the loader beside a plain loop that converts as many
 * neighbouring examples: no shuffle, no augmentation, no windows. On one
 * thread, in CPU time: what preparing a batch costs. Then with the loader's own
 * thread, under a step that takes four times as long as its batch: what is left
 * of that cost, as a share of the step.
 * Gates: a third of the plain loop's examples per second on 28 x 28 bytes (rows
 * come in a random order, and byte / 255 is a true division here), an eighth on
 * 32 x 32 x 3 with crop and flip (two passes more), a third on tokens; waiting
 * at most 5 % of the time where there are two cores. */
#include "bench/bench.h"

#include "kith/backend.h"
#include "kith/loader.h"
#include "kith/rng.h"

enum { ROUNDS = 15, CASES = 3 };

struct scene {
    const char *name;
    struct kith_examples examples;
    struct kith_augment augment;
    size_t batch, batches; /* a round */
    double target;
};

/* The ceilings: what the compiler makes of the loops at its best. */
#if defined(__x86_64__) && defined(__GNUC__)
#ifndef __clang__
__attribute__((optimize("O3")))
#endif
__attribute__((target_clones("avx512f", "avx2", "default")))
#endif
static void
plain_bytes(size_t n, const uint8_t *restrict from, float *restrict to)
{
    for (size_t i = 0; i < n; i++)
        to[i] = (float)from[i] * (1.0F / 255);
}

#if defined(__x86_64__) && defined(__GNUC__)
#ifndef __clang__
__attribute__((optimize("O3")))
#endif
__attribute__((target_clones("avx512f", "avx2", "default")))
#endif
static void
plain_tokens(size_t n, const uint16_t *restrict from, int32_t *restrict to)
{
    for (size_t i = 0; i < n; i++)
        to[i] = from[i];
}

static void plain_batch(const struct scene *scene, size_t first, void *inputs,
                        int32_t *labels)
{
    const struct kith_examples *examples = &scene->examples;
    const size_t n = scene->batch * examples->features;
    const size_t at = first * examples->features;
    if (examples->input == KITH_INPUT_TOKENS) {
        const uint16_t *tokens = examples->values;
        plain_tokens(n, tokens + at, inputs);
        plain_tokens(n, tokens + at + 1, labels);
        return;
    }
    plain_bytes(n, (const uint8_t *)examples->values + at, inputs);
    memcpy(labels, examples->labels + first, scene->batch * sizeof *labels);
}

static struct kith_examples make_images(size_t count, uint32_t side,
                                        uint32_t channels)
{
    struct kith_examples examples = {.input = KITH_INPUT_IMAGES,
                                     .element = KITH_ELEMENT_U8,
                                     .count = count,
                                     .shape = {side, side, channels},
                                     .classes = 10,
                                     .deviation = {1, 1, 1, 1}};
    examples.features = (size_t)side * side * channels;
    uint8_t *images = bench_alloc(count * examples.features);
    int32_t *labels = bench_alloc(count * sizeof *labels);
    for (size_t i = 0; i < count * examples.features; i++)
        images[i] = (uint8_t)(i * 31 >> 3);
    for (size_t i = 0; i < count; i++)
        labels[i] = (int32_t)(i % 10);
    examples.values = images;
    examples.labels = labels;
    return examples;
}

static struct kith_examples make_tokens(size_t tokens, size_t context)
{
    uint16_t *values = bench_alloc(tokens * sizeof *values);
    for (size_t i = 0; i < tokens; i++)
        values[i] = (uint16_t)(i * 31 >> 3);
    return (struct kith_examples){.input = KITH_INPUT_TOKENS,
                                  .element = KITH_ELEMENT_U16,
                                  .values = values,
                                  .count = (tokens - 1) / context,
                                  .features = context,
                                  .tokens = tokens,
                                  .classes = 65536};
}

static struct kith_loader *open_loader(const struct scene *scene, bool ahead)
{
    const struct kith_loader_config config = {.examples = &scene->examples,
                                              .backend =
                                                  kith_backend_find("cpu"),
                                              .batch = scene->batch,
                                              .seed = 1,
                                              .augment = scene->augment,
                                              .shuffle = true,
                                              .ahead = ahead};
    struct kith_loader *loader;
    char error[KITH_DATA_ERROR_BYTES];
    if (kith_loader_open(&config, &loader, error) == KITH_OK)
        return loader;
    fprintf(stderr, "bench_loader: %s\n", error);
    exit(1);
}

/* The loader and the plain loop in turns; returns CPU seconds of one batch. */
static double run_alone(const struct scene *scene)
{
    double ours[ROUNDS], plain[ROUNDS], seconds[ROUNDS];
    struct kith_loader *loader = open_loader(scene, false);
    const size_t n = scene->batch * scene->examples.features;
    void *inputs = bench_alloc(n * sizeof(float));
    int32_t *labels = bench_alloc(n * sizeof *labels);
    const double rows = (double)(scene->batch * scene->batches);
    size_t first = 0;
    for (int round = -1; round < ROUNDS; round++) {
        struct kith_batch batch;
        const double start = bench_cpu();
        for (size_t i = 0; i < scene->batches; i++)
            kith_loader_next(loader, &batch);
        const double middle = bench_cpu();
        for (size_t i = 0; i < scene->batches; i++) {
            if (first + scene->batch > scene->examples.count)
                first = 0;
            plain_batch(scene, first, inputs, labels);
            first += scene->batch;
        }
        const double end = bench_cpu();
        if (round < 0)
            continue;
        seconds[round] = (middle - start) / (double)scene->batches;
        ours[round] = rows / (middle - start);
        plain[round] = rows / (end - middle);
    }
    char name[64];
    (void)snprintf(name, sizeof name, "%s: loader", scene->name);
    (void)bench_print(name, ours, ROUNDS, "examples/s");
    (void)snprintf(name, sizeof name, "%s: plain loop", scene->name);
    (void)bench_print(name, plain, ROUNDS, "examples/s");
    (void)snprintf(name, sizeof name, "%s: loader / plain", scene->name);
    (void)bench_ratio(name, ours, plain, ROUNDS, scene->target);
    kith_loader_close(loader);
    (void)munmap(inputs, n * sizeof(float));
    (void)munmap(labels, n * sizeof *labels);
    return bench_spread_of(seconds, ROUNDS).median;
}

/* A step: the CPU is kept busy for so long. */
static void step(double seconds)
{
    const double start = bench_cpu();
    while (bench_cpu() - start < seconds)
        continue;
}

static void run_ahead(const struct scene *scene, double batch_s)
{
    double shares[ROUNDS], left[ROUNDS];
    struct kith_loader *loader = open_loader(scene, true);
    for (int round = -1; round < ROUNDS; round++) {
        const uint64_t before_ns = kith_loader_waited(loader);
        const double start = bench_now();
        for (size_t i = 0; i < scene->batches; i++) {
            struct kith_batch batch;
            kith_loader_next(loader, &batch);
            step(4 * batch_s);
        }
        const double spent = bench_now() - start;
        if (round < 0)
            continue;
        shares[round] =
            1e-7 * (double)(kith_loader_waited(loader) - before_ns) / spent;
        left[round] = 100 - shares[round];
    }
    char name[64];
    (void)snprintf(name, sizeof name, "%s: waiting, of a step", scene->name);
    (void)bench_print(name, shares, ROUNDS, "%");
    double whole[ROUNDS];
    for (int i = 0; i < ROUNDS; i++)
        whole[i] = 100;
    (void)snprintf(name, sizeof name, "%s: not waiting", scene->name);
    (void)bench_ratio(name, left, whole, ROUNDS, 0.95);
    kith_loader_close(loader);
}

int main(void)
{
    const struct scene scenes[CASES] = {
        {.name = "28 x 28, batch 64",
         .examples = make_images(60000, 28, 1),
         .batch = 64,
         .batches = 400,
         .target = 0.33},
        {.name = "32 x 32 x 3, crop, flip, batch 128",
         .examples = make_images(50000, 32, 3),
         .augment = {.crop = 4, .flip = true},
         .batch = 128,
         .batches = 50,
         .target = 0.125},
        {.name = "tokens, context 1024, batch 8",
         .examples = make_tokens((size_t)20 << 20, 1024),
         .batch = 8,
         .batches = 400,
         .target = 0.33},
    };
    printf("# the loader beside a plain conversion loop\n");
    for (int i = 0; i < CASES; i++) {
        const double batch_s = run_alone(&scenes[i]);
        run_ahead(&scenes[i], batch_s);
    }
    return 0;
}
