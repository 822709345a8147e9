/* Measures a step once and writes it down, so that the simulation is a
 * function of the file again. The median of many steps: the first ones warm
 * caches, others are disturbed. */
#include "calibrate.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "kith/text.h"
#include "kith/worker.h"

#define STEPS_MAX 2000u
#define STEPS_MIN 20u
#define SPAN_NS (2 * KITH_S)

static kith_ns now_ns(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (kith_ns)now.tv_sec * KITH_S + now.tv_nsec;
}

static int by_value(const void *a, const void *b)
{
    const kith_ns x = *(const kith_ns *)a, y = *(const kith_ns *)b;
    return (x > y) - (x < y);
}

/* The median of up to STEPS_MAX steps of a worker of rank 0. */
static kith_ns median_step(struct kith_worker *worker)
{
    kith_ns spans[STEPS_MAX];
    uint32_t count = 0;
    const kith_ns start = now_ns();
    while (count < STEPS_MAX &&
           (count < STEPS_MIN || now_ns() - start < SPAN_NS)) {
        struct kith_work work = {.kind = KITH_WORK_TRAIN, .step = count};
        struct kith_work_result result;
        const kith_ns before = now_ns();
        kith_worker_run(worker, &work, &result);
        spans[count++] = now_ns() - before;
    }
    qsort(spans, count, sizeof spans[0], by_value);
    return spans[count / 2];
}

static int measure(const struct cli_arguments *arguments,
                   const struct kith_experiment *experiment, kith_ns *step_ns)
{
    struct kith_dataset dataset;
    bool has;
    char error[KITH_DATA_ERROR_BYTES] = "";
    const int code = cli_dataset_open(arguments, experiment, &dataset, &has);
    if (code != KITH_EXIT_OK)
        return code;
    kith_backend_threads(1);
    const struct kith_worker_config config = {
        .experiment = experiment,
        .backend = experiment->backend,
        .train = has ? &dataset.train : NULL,
        .steps = STEPS_MAX,
        .peers = experiment->peers,
        .ahead = true,
    };
    struct kith_worker *worker;
    const enum kith_err err = kith_worker_open(&config, &worker, error);
    if (err == KITH_OK) {
        *step_ns = median_step(worker);
        kith_worker_close(worker);
    }
    if (has)
        kith_dataset_close(&dataset);
    return err == KITH_OK ? KITH_EXIT_OK
                          : cli_fail(arguments, cli_exit_of(err), "%s", error);
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

char *cli_add_step(const char *text, const char *value)
{
    const size_t room = strlen(text) + strlen(value) + 64;
    char *out = malloc(room);
    if (out == NULL)
        return NULL;
    const char *compute = find_compute(text);
    if (compute == NULL) {
        const size_t length = strlen(text);
        const bool ends = length == 0 || text[length - 1] == '\n';
        snprintf(out, room, "%s%scompute: {step: %s}\n", text, ends ? "" : "\n",
                 value);
        return out;
    }
    const char *after = compute + 8 + strspn(compute + 8, " ");
    if (*after == '{') {
        const char *first = after + 1 + strspn(after + 1, " ");
        snprintf(out, room, "%.*s{step: %s%s%s", (int)(after - text), text,
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
    snprintf(out, room, "%.*s\n%.*sstep: %s%s", (int)(after - text), text,
             (int)indent, after + 1, value, after);
    return out;
}

/* The whole file, at most KITH_YAML_BYTES_MAX: it was loaded before. */
static char *read_text(const char *path)
{
    FILE *file = fopen(path, "rb");
    char *text = calloc(1, KITH_YAML_BYTES_MAX + 1);
    if (file != NULL && text != NULL) {
        const size_t size = fread(text, 1, KITH_YAML_BYTES_MAX, file);
        text[size] = '\0';
    }
    if (file != NULL)
        (void)fclose(file);
    return text;
}

/* A temporary file, then rename: the file is never half written. */
static int replace(const struct cli_arguments *arguments, const char *path,
                   const char *text)
{
    char temporary[KITH_PATH_BYTES_MAX + 16];
    snprintf(temporary, sizeof temporary, "%s.new", path);
    FILE *file = fopen(temporary, "wb");
    bool good = file != NULL && fputs(text, file) >= 0;
    if (file != NULL && fclose(file) != 0)
        good = false;
    if (good && rename(temporary, path) == 0)
        return KITH_EXIT_OK;
    const int code = cli_fail(arguments, KITH_EXIT_WRITE, "cannot write %s: %s",
                              path, strerror(errno));
    unlink(temporary);
    return code;
}

static int write_step(const struct cli_arguments *arguments, kith_ns step_ns)
{
    const char *path = arguments->words[0];
    char value[32];
    snprintf(value, sizeof value, "%lluus",
             (unsigned long long)((step_ns + 999) / 1000));
    char *text = read_text(path);
    char *changed = text == NULL ? NULL : cli_add_step(text, value);
    int code;
    if (changed == NULL)
        code = cli_fail(arguments, KITH_EXIT_EXPERIMENT,
                        "%s: cannot add to compute: write it as `compute: "
                        "{step: %s}`",
                        path, value);
    else
        code = replace(arguments, path, changed);
    if (code == KITH_EXIT_OK)
        fprintf(stderr, "measured a step of %s, written into %s\n", value,
                path);
    free(changed);
    free(text);
    return code;
}

int cli_calibrate(const struct cli_arguments *arguments)
{
    struct kith_experiment experiment;
    kith_ns step_ns = 0;
    int code = cli_experiment_open(arguments, arguments->words[0], &experiment);
    if (code != KITH_EXIT_OK)
        return code;
    if (experiment.compute.step_ns > 0) {
        fprintf(stderr, "compute.step is given in %s: nothing to measure\n",
                arguments->words[0]);
        kith_experiment_close(&experiment);
        return KITH_EXIT_OK;
    }
    code = measure(arguments, &experiment, &step_ns);
    kith_experiment_close(&experiment);
    return code == KITH_EXIT_OK ? write_step(arguments, step_ns) : code;
}
