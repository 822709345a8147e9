/* See trainer.h. */
#include "trainer.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "kith/rng.h"
#include "probe.h"

/* Drawing 124M normal numbers takes seconds, so they are kept. */
static struct {
    struct kith_model_config config;
    char model[32];
    double *values;
} start;

const double *trainer_start(const struct trainer *t)
{
    return t->network == NULL ? NULL : start.values;
}

static bool draw_start(const struct trainer *t, const struct training *what)
{
    if (start.values != NULL && strcmp(start.model, what->model) == 0 &&
        memcmp(&start.config, &what->config, sizeof start.config) == 0)
        return true;
    free(start.values);
    start.values = malloc(t->layout->dim * sizeof *start.values);
    if (start.values == NULL)
        return false;
    kith_graph_start(t->network, 1, 0, start.values);
    start.config = what->config;
    (void)snprintf(start.model, sizeof start.model, "%s", what->model);
    return true;
}

static bool take_vectors(struct trainer *t)
{
    const size_t dim = t->layout->dim, bytes = dim * sizeof(float);
    void **const all[] = {&t->x, &t->gradient, &t->state[0], &t->state[1]};
    for (size_t i = 0; i < sizeof all / sizeof all[0]; i++) {
        *all[i] = t->on->alloc(bytes, false);
        if (*all[i] == NULL)
            return false;
    }
    return true;
}

bool trainer_open(struct trainer *t, const struct training *what,
                  char why[KITH_MODEL_ERROR_BYTES])
{
    *t = (struct trainer){.on = probe_open(what->on)};
    const struct kith_graph_options options = {
        .backend = t->on, .rows = what->rows, .training = true};
    if (kith_graph_open(kith_model_find(what->model), &what->config, &options,
                        &t->network, why) != KITH_OK)
        return false;
    t->layout = kith_graph_layout(t->network);
    if (!take_vectors(t) || !draw_start(t, what)) {
        (void)snprintf(why, KITH_MODEL_ERROR_BYTES, "no memory for a vector");
        trainer_close(t);
        return false;
    }
    t->on->write(t->layout->dim, start.values, t->x);
    t->optimiser = kith_optimiser_find(what->optimiser);
    t->config = (struct kith_optimiser_config){.learning_rate = 1e-4,
                                               .momentum = 0.9,
                                               .weight_decay = 0.1,
                                               .beta1 = 0.9,
                                               .beta2 = 0.95,
                                               .epsilon = 1e-8};
    return true;
}

void trainer_close(struct trainer *t)
{
    void *const all[] = {t->x,
                         t->gradient,
                         t->state[0],
                         t->state[1],
                         (void *)(uintptr_t)t->batch.inputs,
                         (void *)(uintptr_t)t->batch.labels};
    for (size_t i = 0; i < sizeof all / sizeof all[0]; i++)
        t->on->release(all[i]);
    kith_graph_close(t->network);
    t->network = NULL;
}

static void pass(struct trainer *t)
{
    const struct kith_pass pass = {
        .x = t->x, .gradient = t->gradient, .batch = &t->batch, .scale = 1};
    (void)kith_graph_loss(t->network, &pass, NULL);
}

static void end(struct trainer *t)
{
    struct kith_found found;
    char text[64];
    t->on->step_end(&found);
    t->loss = found.loss;
    if (found.finite)
        return;
    (void)snprintf(text, sizeof text, "step %llu gives a loss of %g",
                   (unsigned long long)t->step, found.loss);
    row_failed("training", text);
    exit(1);
}

void trainer_pass(void *trainer)
{
    struct trainer *const t = trainer;
    t->on->step_begin();
    pass(t);
    end(t);
}

void trainer_step(void *trainer)
{
    struct trainer *const t = trainer;
    const struct kith_optimiser_step step = {.config = &t->config,
                                             .backend = t->on,
                                             .layout = t->layout,
                                             .rate = t->config.learning_rate,
                                             .step = t->step,
                                             .gradient = t->gradient,
                                             .state = t->state,
                                             .x = t->x};
    t->on->step_begin();
    pass(t);
    probe_backward();
    (void)t->optimiser->step(&step);
    end(t);
    t->step++;
}

struct kith_model_config trainer_gpt(const struct machine *m,
                                     uint32_t vocabulary)
{
    return m->tiny ? (struct kith_model_config){.depth = 2,
                                                .heads = 2,
                                                .width = 64,
                                                .context = 32,
                                                .vocabulary = vocabulary}
                   : (struct kith_model_config){.depth = 12,
                                                .heads = 12,
                                                .width = 768,
                                                .context = 1024,
                                                .vocabulary = vocabulary};
}

const char *trainer_gpt_name(const struct machine *m)
{
    return m->tiny ? "GPT-2, tiny" : "GPT-2 124M";
}

bool trainer_tokens(struct trainer *t, size_t rows,
                    const struct kith_model_config *config)
{
    struct kith_rng rng;
    const size_t n = rows * config->context;
    const struct kith_backend *const on = t->on;
    int32_t *const tokens = on->alloc(n * sizeof *tokens, true);
    int32_t *const labels = on->alloc(n * sizeof *labels, true);
    void *const inputs = on->alloc(n * sizeof *tokens, false);
    t->batch = (struct kith_batch){
        .inputs = inputs, .labels = labels, .rows = rows, .seed = 1};
    if (tokens == NULL || labels == NULL || inputs == NULL)
        return false;
    kith_rng_init(&rng, 1, KITH_STREAM_TEST, 0);
    for (size_t i = 0; i < n; i++)
        tokens[i] = labels[i] =
            (int32_t)kith_rng_below(&rng, config->vocabulary);
    on->copy(n, inputs, tokens);
    finish(on);
    on->release(tokens);
    return true;
}

bool trainer_images(struct trainer *t, size_t rows,
                    const struct kith_model_config *config)
{
    const size_t values =
        (size_t)config->image[0] * config->image[1] * config->image[2];
    int32_t *const labels = t->on->alloc(rows * sizeof *labels, true);
    void *const inputs = elements(t->on, rows * values, 0.5, 0.5);
    t->batch = (struct kith_batch){
        .inputs = inputs, .labels = labels, .rows = rows, .seed = 1};
    for (size_t i = 0; labels != NULL && i < rows; i++)
        labels[i] = (int32_t)(i * 37 % config->classes);
    return labels != NULL;
}
