/* A step's loss and gradient in float32 and in bfloat16, and a curve of losses
 * in bfloat16, for torch_parity.py to hold PyTorch's against: the same weights,
 * tokens and optimiser. In the folder:
 *
 *   parity.layout          words: the model, the training, each view
 *   parity.start           float32 (dim): the weights before the first step
 *   parity.tokens          int32 (steps, rows, context + 1)
 *   parity.single, .half   float32 (trained): gradients of the first batch
 *   parity.losses          "single LOSS", "half LOSS", "step I LOSS" */
#include <stdio.h>
#include <stdlib.h>

#include "bench_gpu.h"
#include "kith/rng.h"
#include "trainer.h"

enum { STEPS = 100, LAST = 10, WARMUP = 10 };
static const double rate_most = 3e-4;

struct parity {
    const struct machine *m;
    struct kith_model_config config;
    size_t rows;
    struct text text;
    int32_t *tokens; /* (STEPS, rows, context + 1) */
    FILE *losses;
};

/* ---- files */

static FILE *create(const struct parity *p, const char *name)
{
    char path[512];
    (void)snprintf(path, sizeof path, "%s/parity.%s", p->m->out, name);
    FILE *const file = fopen(path, "wb");
    if (file == NULL)
        row_failed(path, "cannot be written");
    return file;
}

/* Closes it, too; a full disk is a failure. */
static bool finished(FILE *file, const char *name)
{
    const bool bad = ferror(file) != 0;
    if (fclose(file) == 0 && !bad)
        return true;
    row_failed(name, "cannot be written: is the disk full?");
    return false;
}

static bool put_floats(const struct parity *p, const char *name,
                       const double *values, size_t n)
{
    enum { PIECE = 16384 };
    float piece[PIECE];
    FILE *const file = create(p, name);
    if (file == NULL)
        return false;
    for (size_t at = 0; at < n; at += PIECE) {
        const size_t count = n - at < PIECE ? n - at : PIECE;
        for (size_t i = 0; i < count; i++)
            piece[i] = (float)values[at + i];
        (void)fwrite(piece, sizeof piece[0], count, file);
    }
    return finished(file, name);
}

static bool put_layout(const struct parity *p, const struct trainer *t)
{
    const struct kith_model_config *const c = &p->config;
    FILE *const file = create(p, "layout");
    if (file == NULL)
        return false;
    (void)fprintf(file, "model %u %u %u %u %u\n", c->depth, c->heads, c->width,
                  c->context, c->vocabulary);
    (void)fprintf(file, "training %zu %d %d %.17g %.17g %.17g %.17g %.17g\n",
                  p->rows, STEPS, WARMUP, rate_most, t->config.beta1,
                  t->config.beta2, t->config.epsilon, t->config.weight_decay);
    for (uint32_t i = 0; i < t->layout->view_count; i++) {
        const struct kith_model_view *const v = &t->layout->views[i];
        (void)fprintf(file, "view %s %zu %d", v->name, v->offset,
                      v->offset < t->layout->decayed);
        for (uint32_t k = 0; k < v->rank; k++)
            (void)fprintf(file, " %u", v->shape[k]);
        (void)fputc('\n', file);
    }
    return finished(file, "layout");
}

/* ---- tokens */

static bool draw_tokens(struct parity *p)
{
    struct kith_rng rng;
    const size_t length = p->config.context + 1, windows = STEPS * p->rows;
    if (!text_open(&p->text)) {
        row_failed("text", "none here: name one in GPU_TEXT");
        return false;
    }
    p->tokens = malloc(windows * length * sizeof *p->tokens);
    FILE *const file = p->tokens == NULL ? NULL : create(p, "tokens");
    if (file == NULL)
        return false;
    kith_rng_init(&rng, 1, KITH_STREAM_WINDOW, 0);
    for (size_t w = 0; w < windows; w++) {
        const size_t at =
            kith_rng_below(&rng, (uint32_t)(p->text.count - length));
        for (size_t i = 0; i < length; i++)
            p->tokens[w * length + i] = p->text.bytes[at + i];
    }
    (void)fwrite(p->tokens, sizeof *p->tokens, windows * length, file);
    return finished(file, "tokens");
}

/* Puts the step's windows where the batch reads them. */
static void place(const struct parity *p, const struct trainer *t,
                  int32_t *inputs, size_t step)
{
    const size_t context = p->config.context;
    int32_t *const labels = (int32_t *)(uintptr_t)t->batch.labels;
    for (size_t r = 0; r < p->rows; r++) {
        const int32_t *const window =
            p->tokens + (step * p->rows + r) * (context + 1);
        for (size_t i = 0; i < context; i++) {
            inputs[r * context + i] = window[i];
            labels[r * context + i] = window[i + 1];
        }
    }
    t->on->copy(p->rows * context, (void *)(uintptr_t)t->batch.inputs, inputs);
}

/* ---- what is computed */

static bool gradient(const struct parity *p, struct trainer *t, int32_t *inputs,
                     const char *name)
{
    char text[64];
    double *const values = malloc(t->layout->trained * sizeof *values);
    if (values == NULL)
        return false;
    place(p, t, inputs, 0);
    trainer_pass(t);
    t->on->read(t->layout->trained, t->gradient, values);
    finish(t->on);
    const bool good = put_floats(p, name, values, t->layout->trained);
    free(values);
    (void)fprintf(p->losses, "%s %.17g\n", name, t->loss);
    (void)snprintf(text, sizeof text, "%s, loss of the first batch",
                   t->on->name);
    row(text, t->loss, "", "see torch-parity", VERDICT_INFO);
    return good;
}

static void curve(const struct parity *p, struct trainer *t, int32_t *inputs)
{
    double mean = 0;
    char text[64];
    for (int i = 0; i < STEPS; i++) {
        place(p, t, inputs, (size_t)i);
        t->config.learning_rate =
            rate_most * (i < WARMUP ? (double)(i + 1) / WARMUP : 1);
        trainer_step(t);
        (void)fprintf(p->losses, "step %d %.17g\n", i, t->loss);
        mean += i >= STEPS - LAST ? t->loss / LAST : 0;
    }
    (void)snprintf(text, sizeof text, "%s, loss, mean of steps %d to %d",
                   t->on->name, STEPS - LAST + 1, STEPS);
    row(text, mean, "", "see torch-parity", VERDICT_INFO);
}

/* One backend: its gradient; and with `curves` the losses of a training. */
static bool compute(struct parity *p, const struct kith_backend *on,
                    const char *name, bool curves)
{
    struct trainer t;
    char why[KITH_MODEL_ERROR_BYTES];
    const struct training what = {on, "gpt", "adamw", p->config, p->rows};
    if (!trainer_open(&t, &what, why)) {
        row_failed(on->name, why);
        return false;
    }
    int32_t *const inputs =
        t.on->alloc(p->rows * p->config.context * sizeof *inputs, true);
    bool good = inputs != NULL && trainer_tokens(&t, p->rows, &p->config);
    if (!good)
        row_failed(on->name, "no memory for a batch");
    if (good && on == p->m->single)
        good = put_layout(p, &t) &&
               put_floats(p, "start", trainer_start(&t), t.layout->dim);
    good = good && gradient(p, &t, inputs, name);
    if (good && curves)
        curve(p, &t, inputs);
    t.on->release(inputs);
    trainer_close(&t);
    return good;
}

void bench_parity(const struct machine *m)
{
    struct parity p = {.m = m,
                       .config = trainer_gpt(m, m->tiny ? 256 : 50257),
                       .rows = m->tiny ? 2 : 8};
    if (m->out == NULL) {
        row_failed("folder", "none: give --out FOLDER");
        return;
    }
    p.losses = create(&p, "losses");
    if (p.losses == NULL)
        return;
    if (draw_tokens(&p)) {
        printf("# text: %s, %zu bytes\n", p.text.path, p.text.count);
        if (compute(&p, m->single, "single", m->half == NULL) &&
            m->half != NULL)
            (void)compute(&p, m->half, "half", true);
    }
    (void)finished(p.losses, "losses");
    free(p.tokens);
    free(p.text.bytes);
}
