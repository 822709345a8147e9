/* Measures once and writes down, so that what follows is a function of the file
 * again. */
#include "calibrate.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "kith/backend.h"
#include "kith/worker.h"

int kith_cli_measure_step(const struct cli_arguments *arguments,
                          const struct kith_experiment *experiment,
                          const struct kith_examples *train, uint32_t threads,
                          kith_ns *step_ns)
{
    char error[KITH_DATA_ERROR_BYTES] = "";
    kith_backend_threads(threads);
    const struct kith_worker_config config = {
        .task = kith_experiment_task(experiment, NULL),
        .backend = experiment->backend,
        .train = train,
        .steps = KITH_MEASURED_STEPS,
        .peers = experiment->peers,
        .ahead = true,
    };
    struct kith_worker *worker;
    const enum kith_err err = kith_worker_open(&config, &worker, error);
    if (err == KITH_OK) {
        *step_ns = kith_worker_median_step(worker);
        kith_worker_close(worker);
    }
    return kith_cli_check(arguments, err, error);
}

static int measure(const struct cli_arguments *arguments,
                   const struct kith_experiment *experiment, kith_ns *step_ns)
{
    struct kith_dataset dataset = {.close = NULL};
    bool has;
    int code = kith_cli_dataset_open(arguments, experiment, &dataset, &has);
    if (code != KITH_EXIT_OK)
        return code;
    code = kith_cli_measure_step(arguments, experiment,
                                 has ? &dataset.train : NULL, 1, step_ns);
    kith_dataset_close(&dataset);
    return code;
}

/* Where a top-level line "compute:" begins, or NULL. */
static const char *find_compute(const char *text)
{
    while (text != NULL && *text != '\0') {
        if (strncmp(text, "compute:", 8) == 0)
            return text;
        text = strchr(text, '\n');
        text = text == NULL ? NULL : text + 1;
    }
    return NULL;
}

/* `text` with "KEY: VALUE" added to its `compute`, malloc'd; NULL where that is
 * written in a way that has no safe place for it. */
static char *add_compute(const char *text, const char *key, const char *value)
{
    const size_t room = strlen(text) + strlen(key) + strlen(value) + 64;
    char *out = malloc(room);
    if (out == NULL)
        return NULL;
    const char *compute = find_compute(text);
    if (compute == NULL) {
        const size_t length = strlen(text);
        const bool ends = length == 0 || text[length - 1] == '\n';
        snprintf(out, room, "%s%scompute: {%s: %s}\n", text, ends ? "" : "\n",
                 key, value);
        return out;
    }
    const char *after = compute + 8 + strspn(compute + 8, " ");
    if (*after == '{') {
        const char *first = after + 1 + strspn(after + 1, " ");
        snprintf(out, room, "%.*s{%s: %s%s%s", (int)(after - text), text, key,
                 value, *first == '}' ? "" : ", ", first);
        return out;
    }
    if (*after == '#')
        after += strcspn(after, "\n");
    const size_t indent = *after == '\n' ? strspn(after + 1, " ") : 0;
    if (indent == 0) {
        free(out);
        return NULL;
    }
    snprintf(out, room, "%.*s\n%.*s%s: %s%s", (int)(after - text), text,
             (int)indent, after + 1, key, value, after);
    return out;
}

/* The whole file, at most KITH_YAML_BYTES_MAX: it was loaded before. */
static char *read_text(const char *path)
{
    char *text = malloc(KITH_YAML_BYTES_MAX + 1);
    if (text != NULL)
        (void)kith_cli_read_text(path, text, KITH_YAML_BYTES_MAX + 1);
    return text;
}

/* Pairs of "key", "value" for `compute`. */
struct pair {
    const char *key, *value;
};

/* All of them, or nothing, and only what reads again. */
static int write_pairs(const struct cli_arguments *arguments, const char *path,
                       const struct pair *pairs, size_t count)
{
    char *text = read_text(path);
    for (size_t i = 0; i < count && text != NULL; i++) {
        char *changed = add_compute(text, pairs[i].key, pairs[i].value);
        free(text);
        text = changed;
    }
    struct kith_experiment experiment;
    char error[KITH_EXPERIMENT_ERROR_BYTES] = "no safe place for it";
    int code;
    if (text == NULL || kith_experiment_parse(path, text, strlen(text), NULL, 0,
                                              &experiment, error) != KITH_OK) {
        code = kith_cli_fail(
            arguments, KITH_EXIT_EXPERIMENT,
            "%s: cannot add to compute (%s): write it as `compute: {%s: %s}`",
            path, error, pairs[0].key, pairs[0].value);
    } else {
        kith_experiment_close(&experiment);
        code = kith_cli_replace_file(arguments, path, text);
    }
    free(text);
    return code;
}

static int write_step(const struct cli_arguments *arguments, kith_ns step_ns)
{
    const char *path = arguments->words[0];
    char value[32];
    snprintf(value, sizeof value, "%lluus",
             (unsigned long long)((step_ns + 999) / 1000));
    const struct pair pair = {"step", value};
    const int code = write_pairs(arguments, path, &pair, 1);
    if (code == KITH_EXIT_OK)
        fprintf(stderr, "measured a step of %s, written into %s\n", value,
                path);
    return code;
}

int kith_cli_calibrate_step(const struct cli_arguments *arguments)
{
    struct kith_experiment experiment;
    kith_ns step_ns = 0;
    int code =
        kith_cli_experiment_open(arguments, arguments->words[0], &experiment);
    if (code != KITH_EXIT_OK)
        return code;
    if (experiment.compute.step_ns > 0) {
        fprintf(stderr, "compute.step is given in %s: nothing to measure\n",
                arguments->words[0]);
        kith_experiment_close(&experiment);
        return KITH_EXIT_OK;
    }
    code = kith_cli_compute_open(arguments, &experiment, CLI_COMPUTE_ONE);
    if (code == KITH_EXIT_OK)
        code = measure(arguments, &experiment, &step_ns);
    kith_experiment_close(&experiment);
    return code == KITH_EXIT_OK ? write_step(arguments, step_ns) : code;
}

/* ---- products, threads, peaks */

struct chosen {
    const char *products;
    uint32_t threads;
    double gflops;
};

/* The fastest with so many threads. */
static struct chosen fastest(uint32_t threads)
{
    double gflops[KITH_PRODUCTS];
    kith_backend_threads(threads);
    struct chosen chosen = {.products = kith_backend_measure_products(gflops),
                            .threads = threads};
    for (int i = 0; i < KITH_PRODUCTS; i++) {
        if (gflops[i] > 0)
            fprintf(stderr, "%10s, %2u thread%s  %8.1f GFLOP/s\n",
                    kith_backend_products[i], (unsigned)threads,
                    threads == 1 ? " " : "s", gflops[i]);
        if (strcmp(kith_backend_products[i], chosen.products) == 0)
            chosen.gflops = gflops[i];
    }
    return chosen;
}

/* More threads have to be worth it. */
#define WORTH 1.05

/* threads 0: the fastest number of them, too. */
static struct chosen choose(uint32_t threads)
{
    struct chosen best = fastest(threads > 0 ? threads : 1);
    const uint32_t cores = threads > 0 ? 1 : kith_cli_cores();
    for (uint32_t n = 2; n < 2 * cores; n *= 2) {
        const struct chosen next = fastest(n < cores ? n : cores);
        if (next.gflops > WORTH * best.gflops)
            best = next;
    }
    return best;
}

/* Whether the text's `compute` has the key: the file was read without error, so
 * that only `compute` can have one of this name. */
static bool has_key(const char *text, const char *key)
{
    char wanted[32];
    const char *compute = text == NULL ? NULL : find_compute(text);
    snprintf(wanted, sizeof wanted, "%s:", key);
    return compute != NULL && strstr(compute, wanted) != NULL;
}

static int write_compute(const struct cli_arguments *arguments,
                         const char *path, const struct chosen *chosen,
                         bool lab, double peak, double core_peak)
{
    char threads[16], texts[2][32];
    struct pair pairs[4];
    size_t count = 0;
    char *text = read_text(path);
    snprintf(threads, sizeof threads, "%u", (unsigned)chosen->threads);
    snprintf(texts[0], sizeof texts[0], "%.4g", peak);
    snprintf(texts[1], sizeof texts[1], "%.4g", core_peak);
    pairs[count++] = (struct pair){"peak", texts[0]};
    if (!has_key(text, "core_peak"))
        pairs[count++] = (struct pair){"core_peak", texts[1]};
    if (!lab && !has_key(text, "threads"))
        pairs[count++] = (struct pair){"threads", threads};
    if (!has_key(text, "products"))
        pairs[count++] = (struct pair){"products", chosen->products};
    free(text);
    const int code = write_pairs(arguments, path, pairs, count);
    if (code == KITH_EXIT_OK)
        fprintf(stderr,
                "chose products: %s%s%s; peak %.4g GFLOP/s, of one core %.4g; "
                "written into %s\n",
                chosen->products, lab ? "" : ", threads: ", lab ? "" : threads,
                1e-9 * peak, 1e-9 * core_peak, path);
    return code;
}

int kith_cli_calibrate_compute(const struct cli_arguments *arguments,
                               const char *path, bool lab)
{
    struct kith_experiment experiment;
    const int code = kith_cli_experiment_open(arguments, path, &experiment);
    if (code != KITH_EXIT_OK)
        return code;
    const struct kith_backend *backend = experiment.backend;
    const bool known = experiment.compute.peak > 0;
    const uint32_t given = experiment.compute.threads;
    kith_experiment_close(&experiment);
    if (known) {
        fprintf(stderr, "compute.peak is given in %s: nothing to measure\n",
                path);
        return KITH_EXIT_OK;
    }
    const struct chosen chosen = choose(lab ? 1 : given);
    kith_backend_threads(1);
    const double core_peak = kith_backend_measure_peak(backend);
    kith_backend_threads(lab ? (given > 0 ? given : kith_cli_cores())
                             : chosen.threads);
    const double peak = kith_backend_measure_peak(backend);
    return write_compute(arguments, path, &chosen, lab, peak, core_peak);
}

int kith_cli_calibrate_if(const struct cli_arguments *arguments, bool lab)
{
    if (!kith_cli_given(arguments, CLI_CALIBRATE))
        return KITH_EXIT_OK;
    if (kith_cli_given(arguments, CLI_RESUME))
        return kith_cli_fail(arguments, KITH_EXIT_USAGE,
                             "--calibrate: a run that goes on keeps what it "
                             "began with; leave out --calibrate or --resume");
    return kith_cli_calibrate_compute(arguments, arguments->words[0], lab);
}
