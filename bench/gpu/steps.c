/* Steps of whole models on made-up values: forward, backward and optimiser,
 * through the network that training uses. GPT-2 124M with the vocabulary as it
 * is (50,257) and padded to 50,304, ResNet-50; reference.py times PyTorch on
 * the same and reads the rates from steps.rates in the folder. */
#include <stdio.h>
#include <string.h>

#include "bench_gpu.h"
#include "probe.h"
#include "trainer.h"

enum { PROBED_STEPS = 3 };

/* What one batch size gave. */
struct measured {
    size_t rows;
    double rate; /* tokens or images a second; 0: it was not measured */
    struct probe_phases phases;     /* s */
    double kinds[PROBE_KIND_COUNT]; /* s */
};

/* `mode` of fopen: "w" for the first. */
static void keep_rate(const struct machine *m, const char *name, double rate,
                      const char *mode)
{
    char path[512];
    if (m->out == NULL)
        return;
    (void)snprintf(path, sizeof path, "%s/steps.rates", m->out);
    FILE *const file = fopen(path, mode);
    if (file == NULL)
        return;
    (void)fprintf(file, "%s\t%.6g\n", name, rate);
    (void)fclose(file);
}

static void measure_probed(struct trainer *t, struct measured *found)
{
    for (int i = 0; i < PROBED_STEPS; i++) {
        probe_start(PROBE_PHASES);
        trainer_step(t);
        const struct probe_phases p = probe_phases();
        found->phases.forward += p.forward / PROBED_STEPS;
        found->phases.backward += p.backward / PROBED_STEPS;
        found->phases.optimiser += p.optimiser / PROBED_STEPS;
    }
    for (int i = 0; i < PROBED_STEPS; i++) {
        probe_start(PROBE_KIND);
        trainer_step(t);
        for (int k = 0; k < PROBE_KIND_COUNT; k++)
            found->kinds[k] += probe_kinds()[k] / PROBED_STEPS;
    }
    probe_start(PROBE_OFF);
}

static void print_phases(const char *name, const struct measured *found)
{
    char text[192], share[64];
    const struct probe_phases *const p = &found->phases;
    const struct {
        const char *name;
        double seconds;
    } phases[] = {{"forward", p->forward},
                  {"backward", p->backward},
                  {"optimiser", p->optimiser}};
    const double all = p->forward + p->backward + p->optimiser;
    if (!(all > 0)) {
        (void)snprintf(text, sizeof text, "%s, phases", name);
        row_failed(text, "a step ended without a loss or a backward pass");
        return;
    }
    for (size_t i = 0; i < 3; i++) {
        (void)snprintf(text, sizeof text, "%s, %s", name, phases[i].name);
        (void)snprintf(share, sizeof share, "%.1f %% of %.2f ms",
                       100 * phases[i].seconds / all, 1e3 * all);
        row(text, 1e3 * phases[i].seconds, "ms", share, VERDICT_INFO);
    }
}

/* What is a smaller share than this has no row of its own. */
static const double share_least = 0.02;

static void print_kinds(const char *name, const struct measured *found)
{
    char text[192], share[64];
    double all = 0;
    for (int k = 0; k < PROBE_KIND_COUNT; k++)
        all += found->kinds[k];
    for (int k = 0; k < PROBE_KIND_COUNT; k++) {
        if (found->kinds[k] < share_least * all)
            continue;
        (void)snprintf(text, sizeof text, "%s: %s", name, probe_kind_names[k]);
        (void)snprintf(share, sizeof share, "%.1f %% of %.2f ms, one by one",
                       100 * found->kinds[k] / all, 1e3 * all);
        row(text, 1e3 * found->kinds[k], "ms", share, VERDICT_INFO);
    }
}

/* The phases of the batch size that was the fastest, and its rate. */
static void print_best(const struct machine *m, const char *key,
                       const char *name, const char *unit,
                       const struct measured *all, size_t count)
{
    char text[128];
    const struct measured *best = &all[0];
    for (size_t i = 1; i < count; i++)
        if (all[i].rate > best->rate)
            best = &all[i];
    if (best->rate == 0)
        return;
    (void)snprintf(text, sizeof text, "%s, best", name);
    char batch[32];
    (void)snprintf(batch, sizeof batch, "batch %zu", best->rows);
    row(text, best->rate, unit, batch, VERDICT_INFO);
    keep_rate(m, key, best->rate, "a");
    (void)snprintf(text, sizeof text, "%s, batch %zu", name, best->rows);
    print_phases(text, best);
    print_kinds(text, best);
}

/* ---- GPT-2 124M */

/* Operations for a token: six for each weight; and of attention's two products
 * of tokens x tokens half of each, three times over. */
static double gpt_flops(const struct kith_model_config *c, size_t weights)
{
    return 6.0 * (double)weights +
           6.0 * (double)c->depth * (double)c->context * (double)c->width;
}

/* 6N beside the nominal rate, and all that is computed beside the rate that our
 * own largest product reached in this run. */
static void print_gpt(const struct machine *m, const char *name,
                      const struct trainer *t,
                      const struct kith_model_config *config, double rate,
                      double took)
{
    char text[256], nominal[64] = "no nominal rate";
    const bool half = t->on->activation_bytes == 2;
    const double six = 6.0 * (double)t->layout->trained * rate;
    const double own = half ? m->half_flops : m->single_flops;
    if (half && m->nominal > 0)
        (void)snprintf(nominal, sizeof nominal,
                       "6N is %.1f %% of nominal %.0f TFLOP/s",
                       100 * six / m->nominal, 1e-12 * m->nominal);
    (void)snprintf(text, sizeof text,
                   "%.2f ms; %s, all operations %.1f %% of our product's %.4g; "
                   "loss %.3f; activations %.2f GiB",
                   1e3 * took, nominal,
                   100 * gpt_flops(config, t->layout->trained) * rate / own,
                   1e-12 * own, t->loss,
                   (double)kith_graph_bytes(t->network) / (1u << 30));
    row(name, rate, "tokens/s", text, VERDICT_INFO);
}

static struct measured gpt_batch(const struct machine *m,
                                 const struct kith_backend *on,
                                 uint32_t vocabulary, size_t rows)
{
    struct trainer t;
    struct measured found = {.rows = rows};
    char name[128], why[KITH_MODEL_ERROR_BYTES];
    const struct training what = {on, "gpt", "adamw",
                                  trainer_gpt(m, vocabulary), rows};
    (void)snprintf(name, sizeof name, "%s, %s, vocabulary %u, batch %zu",
                   on->name, trainer_gpt_name(m), vocabulary, rows);
    if (!trainer_open(&t, &what, why)) {
        row(name, 0, "tokens/s", why, VERDICT_INFO);
        return found;
    }
    if (trainer_tokens(&t, rows, &what.config)) {
        const double took = seconds_of(on, trainer_step, &t);
        found.rate = (double)(rows * what.config.context) / took;
        print_gpt(m, name, &t, &what.config, found.rate, took);
        measure_probed(&t, &found);
    }
    trainer_close(&t);
    return found;
}

static void gpt(const struct machine *m, const struct kith_backend *on,
                uint32_t vocabulary, const size_t *rows, size_t count)
{
    struct measured all[4] = {{0}};
    char name[128], key[64];
    for (size_t i = 0; i < count; i++)
        all[i] = gpt_batch(m, on, vocabulary, rows[i]);
    (void)snprintf(name, sizeof name, "%s, %s, vocabulary %u", on->name,
                   trainer_gpt_name(m), vocabulary);
    (void)snprintf(key, sizeof key, "gpt %s %u", on->name, vocabulary);
    print_best(m, key, name, "tokens/s", all, count);
}

/* ---- ResNet-50 */

static const char *resnet_name(const struct machine *m)
{
    return m->tiny ? "ResNet, tiny" : "ResNet-50";
}

static struct measured resnet_batch(const struct machine *m,
                                    const struct kith_backend *on, size_t rows)
{
    static const struct kith_model_config full = {
        .image = {224, 224, 3}, .classes = 1000, .depth = 50};
    static const struct kith_model_config tiny = {
        .image = {8, 8, 3}, .classes = 10, .depth = 20};
    struct trainer t;
    struct measured found = {.rows = rows};
    char name[96], why[KITH_MODEL_ERROR_BYTES];
    const struct training what = {on, "resnet", "sgd", m->tiny ? tiny : full,
                                  rows};
    (void)snprintf(name, sizeof name, "%s, %s, batch %zu", on->name,
                   resnet_name(m), rows);
    if (!trainer_open(&t, &what, why)) {
        row(name, 0, "images/s", why, VERDICT_INFO);
        return found;
    }
    if (trainer_images(&t, rows, &what.config)) {
        const double took = seconds_of(on, trainer_step, &t);
        const double flops =
            kith_model_size_of(kith_model_find("resnet"), &what.config)
                .training_flops;
        const double own = on == m->half ? m->half_flops : m->single_flops;
        found.rate = (double)rows / took;
        (void)snprintf(why, sizeof why,
                       "%.2f ms; %.1f %% of our product's %.4g", 1e3 * took,
                       100 * flops * found.rate / own, 1e-12 * own);
        row(name, found.rate, "images/s", why, VERDICT_INFO);
        measure_probed(&t, &found);
    }
    trainer_close(&t);
    return found;
}

static void resnet(const struct machine *m, const struct kith_backend *on,
                   const size_t *rows, size_t count)
{
    struct measured all[4] = {{0}};
    char name[64], key[64];
    for (size_t i = 0; i < count; i++)
        all[i] = resnet_batch(m, on, rows[i]);
    (void)snprintf(name, sizeof name, "%s, %s", on->name, resnet_name(m));
    (void)snprintf(key, sizeof key, "resnet %s", on->name);
    print_best(m, key, name, "images/s", all, count);
}

void bench_steps(const struct machine *m)
{
    /* One batch size of each first, so that a time limit leaves a figure. */
    static const size_t text[] = {32, 64, 16, 8}, few[] = {2},
                        images[] = {256, 128}, eight[] = {8}, wide[] = {64};
    const size_t many = m->tiny ? 1 : 4;
    keep_rate(m, "nominal FLOP/s", m->nominal, "w");
    if (m->half != NULL) {
        gpt(m, m->half, m->tiny ? 67 : 50257, m->tiny ? few : text, many);
        gpt(m, m->half, m->tiny ? 72 : 50304, m->tiny ? few : text, many);
    }
    gpt(m, m->single, m->tiny ? 72 : 50304, m->tiny ? few : eight, 1);
    if (m->half != NULL)
        resnet(m, m->half, m->tiny ? few : images, m->tiny ? 1 : 2);
    resnet(m, m->single, m->tiny ? few : wide, 1);
}
