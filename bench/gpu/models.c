/* Steps of whole models: GPT-2 124M and ResNet-50 on values that are made up,
 * forward, backward and optimiser, through the network that training uses; and
 * GPT-2 with an exchange every ten steps, its neighbour a thread that answers
 * from the host's memory. reference.py times PyTorch on the same. */
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "bench_gpu.h"
#include "kith/model.h"
#include "kith/optimiser.h"
#include "kith/rng.h"

struct trainer {
    const struct kith_backend *on;
    struct kith_graph *network;
    const struct kith_layout *layout;
    const struct kith_optimiser *optimiser;
    struct kith_optimiser_config config;
    struct kith_batch batch;
    void *inputs, *x, *gradient, *state[2];
    int32_t *labels;
    uint64_t step;
    double loss;
};

static bool trainer_open(struct trainer *t, const char *model,
                         const struct kith_model_config *config, size_t rows,
                         const char *optimiser)
{
    const struct kith_backend *on = t->on;
    char error[KITH_MODEL_ERROR_BYTES];
    const struct kith_model *kind = kith_model_find(model);
    const struct kith_graph_options options = {
        .backend = on, .rows = rows, .training = true};
    if (kith_graph_open(kind, config, &options, &t->network, error) !=
        KITH_OK) {
        printf("%s, %s, %zu rows: %s\n", on->name, model, rows, error);
        return false;
    }
    t->layout = kith_graph_layout(t->network);
    const size_t dim = t->layout->dim, bytes = dim * sizeof(float);
    double *const start = malloc(dim * sizeof *start);
    t->x = on->alloc(bytes, false);
    t->gradient = on->alloc(bytes, false);
    t->state[0] = on->alloc(bytes, false);
    t->state[1] = on->alloc(bytes, false);
    if (start == NULL || t->state[1] == NULL || t->state[0] == NULL ||
        t->gradient == NULL || t->x == NULL) {
        printf("%s, %s: no memory\n", on->name, model);
        return false;
    }
    kith_graph_start(t->network, 1, 0, start);
    on->write(dim, start, t->x);
    free(start);
    t->optimiser = kith_optimiser_find(optimiser);
    t->config = (struct kith_optimiser_config){.learning_rate = 1e-4,
                                               .momentum = 0.9,
                                               .weight_decay = 0.1,
                                               .beta1 = 0.9,
                                               .beta2 = 0.95,
                                               .epsilon = 1e-8};
    return true;
}

static void trainer_close(struct trainer *t)
{
    void *const all[] = {t->inputs,   t->x,        t->gradient,
                         t->state[0], t->state[1], t->labels};
    for (size_t i = 0; i < sizeof all / sizeof all[0]; i++)
        t->on->release(all[i]);
    kith_graph_close(t->network);
}

static void train(void *argument)
{
    struct trainer *t = argument;
    struct kith_found found;
    const struct kith_pass pass = {
        .x = t->x, .gradient = t->gradient, .batch = &t->batch, .scale = 1};
    const struct kith_optimiser_step step = {.config = &t->config,
                                             .backend = t->on,
                                             .layout = t->layout,
                                             .rate = 1e-4,
                                             .step = t->step++,
                                             .gradient = t->gradient,
                                             .state = t->state,
                                             .x = t->x};
    t->on->step_begin();
    (void)kith_graph_loss(t->network, &pass, NULL);
    (void)t->optimiser->step(&step);
    t->on->step_end(&found);
    t->loss = found.loss;
    if (!found.finite) {
        fprintf(stderr, "bench_gpu: a step's loss is %g\n", found.loss);
        exit(1);
    }
}

static const struct kith_model_config gpt2 = {.depth = 12,
                                              .heads = 12,
                                              .width = 768,
                                              .context = 1024,
                                              .vocabulary = 50304};

static bool gpt_open(struct trainer *t, const struct kith_backend *on,
                     size_t rows)
{
    *t = (struct trainer){.on = on};
    if (!trainer_open(t, "gpt", &gpt2, rows, "adamw"))
        return false;
    struct kith_rng rng;
    const size_t n = rows * gpt2.context;
    int32_t *const tokens = on->alloc(n * sizeof *tokens, true);
    t->labels = on->alloc(n * sizeof *t->labels, true);
    t->inputs = on->alloc(n * sizeof *tokens, false);
    kith_rng_init(&rng, 1, KITH_STREAM_TEST, 0);
    for (size_t i = 0; i < n; i++)
        tokens[i] = t->labels[i] = (int32_t)kith_rng_below(&rng, 50257);
    on->copy(n, t->inputs, tokens);
    finish(on);
    on->release(tokens);
    t->batch = (struct kith_batch){
        .inputs = t->inputs, .labels = t->labels, .rows = rows, .seed = 1};
    return true;
}

/* The step's own operations: six for each weight and token, and attention's
 * two products of tokens x tokens, half of each, three times over. */
static double gpt_flops(const struct trainer *t, size_t tokens)
{
    const double attention =
        6.0 * gpt2.depth * (double)gpt2.context * gpt2.width;
    return (double)tokens * (6.0 * (double)t->layout->trained + attention);
}

static void gpt(const struct machine *m, const struct kith_backend *on,
                size_t rows)
{
    struct trainer t;
    char name[96];
    if (!gpt_open(&t, on, rows))
        return;
    const size_t tokens = rows * gpt2.context;
    const double peak = on == m->half ? m->half_flops : m->single_flops;
    const double took = seconds_of(on, train, &t);
    const double flops = gpt_flops(&t, tokens) / took;
    (void)snprintf(name, sizeof name, "%s, GPT-2 124M, %zu x 1024", on->name,
                   rows);
    line(name, took, (double)tokens / took, "tokens/s", 0);
    printf("  MFU %.1f %% of the largest product's rate, loss %.4f, "
           "activations %.2f GiB\n",
           100 * flops / peak, t.loss,
           (double)kith_graph_bytes(t.network) / (1u << 30));
    trainer_close(&t);
}

static void resnet(const struct kith_backend *on, size_t rows)
{
    static const struct kith_model_config config = {
        .image = {224, 224, 3}, .classes = 1000, .depth = 50};
    struct trainer t = {.on = on};
    char name[96];
    if (!trainer_open(&t, "resnet", &config, rows, "sgd"))
        return;
    t.inputs = elements(on, rows * 224 * 224 * 3, 1);
    t.labels = on->alloc(rows * sizeof *t.labels, true);
    for (size_t i = 0; i < rows; i++)
        t.labels[i] = (int32_t)(i * 37 % 1000);
    t.batch = (struct kith_batch){
        .inputs = t.inputs, .labels = t.labels, .rows = rows, .seed = 1};
    const double took = seconds_of(on, train, &t);
    (void)snprintf(name, sizeof name, "%s, ResNet-50, %zu images", on->name,
                   rows);
    line(name, took, (double)rows / took, "images/s", 0);
    trainer_close(&t);
}

/* ---- an exchange every ten steps */

struct neighbour {
    const struct kith_backend *on;
    size_t n;
    float *sent, *inbox;
    atomic_int asked, answered;
    atomic_bool stop;
};

/* Waits for the snapshot, answers with it, and says that it has come. */
static void *answer(void *argument)
{
    struct neighbour *n = argument;
    const struct timespec nap = {0, 50000};
    while (!atomic_load(&n->stop)) {
        if (atomic_load(&n->asked) == atomic_load(&n->answered)) {
            (void)nanosleep(&nap, NULL);
            continue;
        }
        (void)n->on->settled(n->sent, true);
        memcpy(n->inbox, n->sent, n->n * sizeof(float));
        n->on->arrived(n->inbox, n->n * sizeof(float));
        (void)atomic_fetch_add(&n->answered, 1);
    }
    return NULL;
}

/* Seconds of 100 steps. */
static double hundred(struct trainer *t, struct neighbour *n)
{
    const double start = now();
    for (int i = 0; i < 100; i++) {
        const int asked = n == NULL ? 0 : atomic_load(&n->asked);
        if (n != NULL && i % 10 == 0) {
            t->on->copy(n->n, n->sent, t->x);
            atomic_store(&n->asked, asked + 1);
        }
        train(t);
        if (n != NULL && i % 10 == 8 && asked == atomic_load(&n->answered))
            (void)t->on->mix(n->n, 0.5, n->inbox, n->sent, t->x);
    }
    finish(t->on);
    return now() - start;
}

static void exchange(const struct kith_backend *on, size_t rows)
{
    struct trainer t;
    pthread_t thread;
    if (!gpt_open(&t, on, rows))
        return;
    struct neighbour n = {.on = on, .n = t.layout->gossiped};
    n.sent = on->alloc(n.n * sizeof(float), true);
    n.inbox = on->alloc(n.n * sizeof(float), true);
    if (n.sent == NULL || n.inbox == NULL ||
        pthread_create(&thread, NULL, answer, &n) != 0) {
        printf("%s, exchange: no memory\n", on->name);
        return;
    }
    (void)hundred(&t, &n);
    double cost[3];
    for (int round = 0; round < 3; round++) {
        const double alone = hundred(&t, NULL);
        cost[round] = hundred(&t, &n) / alone - 1;
    }
    const double low = cost[0] < cost[1] ? cost[0] : cost[1];
    const double high = cost[0] < cost[1] ? cost[1] : cost[0];
    claim("exchange of 124M every 10 steps, cost",
          cost[2] < low    ? low
          : cost[2] > high ? high
                           : cost[2],
          "<=", 0.02);
    atomic_store(&n.stop, true);
    (void)pthread_join(thread, NULL);
    on->release(n.sent);
    on->release(n.inbox);
    trainer_close(&t);
}

void bench_models(const struct machine *m)
{
    /* What is listed is what networks can run on. */
    const bool narrow = kith_backend_find("cuda-bf16") != NULL;
    if (narrow) {
        gpt(m, m->half, 8);
        gpt(m, m->half, 16);
        gpt(m, m->half, 32);
        resnet(m->half, 256);
    }
    gpt(m, m->single, 8);
    resnet(m->single, 64);
    exchange(narrow ? m->half : m->single, narrow ? 16 : 8);
}
