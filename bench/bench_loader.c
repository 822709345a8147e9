/* Batches through the loader beside a plain loop that does the same: the rows
 * of a shuffle, each asked for while the one before it is converted, moved and
 * turned on the way, in one pass; what it draws is drawn before. On one thread,
 * in CPU time: what preparing a batch costs. Then with the loader's own thread,
 * under a step that takes four times as long as its batch: what is left of that
 * cost, as a share of the step.
 * Gates: 0.9 of the plain loop's examples per second for images, 28 x 28 as
 * they are and 32 x 32 x 3 with crop and flip; 0.7 for windows of tokens, which
 * the loader widens with the instructions that every CPU has; waiting at most
 * 5 % of the time where there are two cores. */
#include "bench/bench.h"

#include "kith/backend.h"
#include "kith/loader.h"
#include "kith/rng.h"

enum { ROUNDS = 15, CASES = 3, FETCH_BYTES = 1024 };

struct draw {
    int8_t down, right; /* where the crop begins, from the middle */
    bool turned;
};

struct scene {
    const char *name;
    struct kith_examples examples;
    struct kith_augment augment;
    uint32_t *order;       /* (count), as the loader's: at random */
    struct draw *draws;    /* (count), by place in the order */
    size_t batch, batches; /* a round */
    double target;
};

/* ---- the ceiling: the same rows, the same windows of them, one pass */

BENCH_BEST static void plain_bytes(size_t n, const uint8_t *restrict from,
                                   float *restrict to)
{
    for (size_t i = 0; i < n; i++)
        to[i] = (float)from[i] * (1.0F / 255);
}

/* Pixels of three bytes, the last one first. */
BENCH_BEST static void plain_turned(size_t width, const uint8_t *restrict from,
                                    float *restrict to)
{
    from += 3 * (width - 1);
    for (size_t i = 0; i < width; i++, from -= 3, to += 3)
        for (size_t c = 0; c < 3; c++)
            to[c] = (float)from[c] * (1.0F / 255);
}

BENCH_BEST static void plain_tokens(size_t n, const uint16_t *restrict from,
                                    int32_t *restrict to)
{
    for (size_t i = 0; i < n; i++)
        to[i] = from[i];
}

/* A row moved left by `shift` pixels, with zeros where there are none. */
static void plain_row(const uint8_t *row, ptrdiff_t width, ptrdiff_t shift,
                      bool turned, float *to)
{
    const ptrdiff_t away = shift < 0 ? -shift : shift, kept = width - away;
    const ptrdiff_t empty = (shift > 0) == turned ? 0 : kept;
    memset(to + 3 * empty, 0, (size_t)(3 * away) * sizeof *to);
    row += shift > 0 ? 3 * shift : 0;
    to += empty == 0 ? 3 * away : 0;
    if (turned)
        plain_turned((size_t)kept, row, to);
    else
        plain_bytes((size_t)(3 * kept), row, to);
}

static void plain_image(const struct scene *scene, size_t k, float *to)
{
    const struct kith_examples *examples = &scene->examples;
    const struct draw *draw = &scene->draws[k];
    const ptrdiff_t height = (ptrdiff_t)examples->shape[0];
    const ptrdiff_t width = (ptrdiff_t)examples->shape[1];
    const uint8_t *image = (const uint8_t *)examples->values +
                           scene->order[k] * examples->features;
    if (scene->augment.crop == 0) {
        plain_bytes(examples->features, image, to);
        return;
    }
    for (ptrdiff_t y = 0; y < height; y++, to += 3 * width) {
        const ptrdiff_t from = y + draw->down;
        if (from < 0 || from >= height)
            memset(to, 0, (size_t)(3 * width) * sizeof *to);
        else
            plain_row(image + from * width * 3, width, draw->right,
                      draw->turned, to);
    }
}

__attribute__((always_inline)) static inline void
fetch(const struct scene *scene, size_t k)
{
    const struct kith_examples *examples = &scene->examples;
    const size_t bytes =
        examples->features * (examples->element == KITH_ELEMENT_U8 ? 1 : 2);
    if (k == examples->count)
        return;
    const char *values =
        (const char *)examples->values + scene->order[k] * bytes;
    for (size_t at = 0; at < bytes && at < FETCH_BYTES; at += 64)
        __builtin_prefetch(values + at);
}

static void plain_batch(const struct scene *scene, size_t first, void *inputs,
                        int32_t *labels)
{
    const struct kith_examples *examples = &scene->examples;
    const size_t n = examples->features;
    for (size_t k = 0; k < scene->batch; k++) {
        const size_t row = scene->order[first + k];
        fetch(scene, first + k + 1);
        if (examples->input == KITH_INPUT_TOKENS) {
            const uint16_t *tokens =
                (const uint16_t *)examples->values + row * n;
            plain_tokens(n, tokens, (int32_t *)inputs + k * n);
            plain_tokens(n, tokens + 1, labels + k * n);
            continue;
        }
        plain_image(scene, first + k, (float *)inputs + k * n);
        labels[k] = examples->labels[row];
    }
}

/* ---- scenes */

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

static void draw_order(struct scene *scene)
{
    const size_t count = scene->examples.count;
    const uint32_t crop = scene->augment.crop;
    struct kith_rng rng;
    kith_rng_init(&rng, 2, KITH_STREAM_BATCH, 0);
    scene->order = bench_alloc(count * sizeof *scene->order);
    scene->draws = bench_alloc(count * sizeof *scene->draws);
    for (uint32_t i = 0; i < count; i++) {
        scene->order[i] = i;
        scene->draws[i] = (struct draw){
            .down =
                (int8_t)((int)kith_rng_below(&rng, 2 * crop + 1) - (int)crop),
            .right =
                (int8_t)((int)kith_rng_below(&rng, 2 * crop + 1) - (int)crop),
            .turned = scene->augment.flip && kith_rng_below(&rng, 2) == 1};
    }
    kith_rng_shuffle(&rng, scene->order, (uint32_t)count);
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
    struct scene scenes[CASES] = {
        {.name = "28 x 28, batch 64",
         .examples = make_images(60000, 28, 1),
         .batch = 64,
         .batches = 400,
         .target = 0.9},
        {.name = "32 x 32 x 3, crop, flip, batch 128",
         .examples = make_images(50000, 32, 3),
         .augment = {.crop = 4, .flip = true},
         .batch = 128,
         .batches = 50,
         .target = 0.9},
        {.name = "tokens, context 1024, batch 8",
         .examples = make_tokens((size_t)20 << 20, 1024),
         .batch = 8,
         .batches = 400,
         .target = 0.7},
    };
    printf("# the loader beside a plain loop over the same rows\n");
    for (int i = 0; i < CASES; i++) {
        draw_order(&scenes[i]);
        const double batch_s = run_alone(&scenes[i]);
        run_ahead(&scenes[i], batch_s);
    }
    return 0;
}
