/* kith plan --measure: what this machine is, as a file that people may read and
 * change (kith/machine.h). Measured once, so that no plan depends on a clock.
 */
#include <stdio.h>
#include <unistd.h>

#include "calibrate.h"
#include "channel_cost.h"
#include "kith/backend.h"
#include "kith/session.h"
#include "kith/text.h"
#include "plan_command.h"
#include "suite_speed.h"

#define TEXT_BYTES 16384u

struct file_text {
    char text[TEXT_BYTES];
    size_t at;
};

/* Half to four times the experiment's batch, as far as a peer's rows go. */
static int measure_steps(const struct cli_arguments *arguments,
                         const struct kith_experiment *experiment,
                         const struct kith_examples *train, uint32_t threads,
                         struct file_text *out)
{
    const uint32_t batch = experiment->train.batch;
    const uint32_t batches[] = {batch / 2, batch, 2 * batch, 4 * batch};
    for (size_t i = 0; i < sizeof batches / sizeof *batches; i++) {
        struct kith_experiment changed = *experiment; /* lends its memory */
        kith_ns step_ns = 0;
        changed.train.batch = batches[i];
        if (batches[i] == 0 || (i > 1 && train != NULL &&
                                batches[i] > train->count / experiment->peers))
            continue;
        kith_cli_progress("measuring steps: batch %u, %u threads", batches[i],
                          threads);
        const int code = kith_cli_measure_step(arguments, &changed, train,
                                               threads, &step_ns);
        if (code != KITH_EXIT_OK)
            return code;
        out->at = kith_text_add(out->text, sizeof out->text, out->at,
                                "  - {batch: %u, threads: %u, time: %lldns}\n",
                                batches[i], threads,
                                (long long)(step_ns > 0 ? step_ns : 1));
    }
    return KITH_EXIT_OK;
}

/* Models of the experiment's size, so that they lie in the cache as they will:
 * bytes per second. 0: no memory. */
static double merge_rate(const struct kith_experiment *experiment,
                         size_t values)
{
    const struct kith_backend *host = experiment->backend->host;
    const size_t bytes = values * host->element_bytes;
    void *vectors[3];
    double best_s = 0;
    bool has = true;
    for (int i = 0; i < 3; i++)
        has = (vectors[i] = host->alloc(bytes, false)) != NULL && has;
    const double begin = kith_cli_cpu_s();
    for (double now = begin; has && now - begin < 0.05;) {
        /* As many as a clock can see. */
        const unsigned times = 1 + (unsigned)(1000000 / values);
        for (unsigned i = 0; i < times; i++)
            (void)host->mix(values, 0.5, vectors[0], vectors[1], vectors[2]);
        const double after = kith_cli_cpu_s();
        const double one_s = (after - now) / times;
        if (one_s > 0 && (best_s <= 0 || one_s < best_s))
            best_s = one_s;
        now = after;
    }
    for (int i = 0; i < 3; i++)
        if (vectors[i] != NULL && host->release != NULL)
            host->release(vectors[i]);
    return best_s > 0 ? (double)bytes / best_s : 0;
}

static void add_rate(struct file_text *out, const char *key, double rate,
                     const char *words)
{
    if (rate > 0)
        out->at = kith_text_add(out->text, sizeof out->text, out->at,
                                "%s: %.0fkB # %s\n", key, 1e-3 * rate, words);
}

static void add_suites(struct file_text *out)
{
    const struct kith_suite_facts *facts;
    double seal, open;
    out->at = kith_text_add(out->text, sizeof out->text, out->at,
                            "suites: # a core, per second; full records\n");
    for (unsigned i = 0; (facts = kith_suite_at(i)) != NULL; i++)
        if (kith_cli_suite_best(facts->suite, &seal, &open))
            out->at =
                kith_text_add(out->text, sizeof out->text, out->at,
                              "  - {suite: %s, seal: %.3fGB, open: %.3fGB}\n",
                              kith_suite_word(facts->suite), seal, open);
}

static void add_head(struct file_text *out,
                     const struct kith_experiment *experiment,
                     const struct kith_model_size *size)
{
    out->at = kith_text_add(
        out->text, sizeof out->text, 0,
        "# What this machine is: written by kith plan --measure, read by\n"
        "# kith plan EXPERIMENT.yaml --machine FILE. Any number may be "
        "changed.\n"
        "model: %s # of %s\n"
        "values: %zu\n"
        "cores: %u\n"
        "steps: # medians, on the wall's clock\n",
        experiment->model->name, experiment->name, size->dim, kith_cli_cores());
}

static int measure_all(const struct cli_arguments *arguments,
                       struct kith_experiment *experiment,
                       const struct kith_examples *train, struct file_text *out)
{
    double example_bytes = 0;
    const struct kith_model_size size =
        kith_model_size_of(experiment->model, &experiment->model_config);
    const uint32_t cores = kith_cli_cores();
    add_head(out, experiment, &size);
    int code = measure_steps(arguments, experiment, train, 1, out);
    if (code == KITH_EXIT_OK && cores > 1)
        code = measure_steps(arguments, experiment, train, cores, out);
    if (code == KITH_EXIT_OK)
        code = kith_cli_check(
            arguments, kith_cli_example_bytes(experiment, &example_bytes),
            "what an example takes of memory");
    kith_cli_progress_end();
    if (code != KITH_EXIT_OK)
        return code;
    out->at = kith_text_add(out->text, sizeof out->text, out->at,
                            "example: %.0f # bytes of memory in a batch\n",
                            example_bytes);
    add_suites(out);
    add_rate(out, "socket", kith_cli_socket_rate(),
             "a core that sends and receives, loopback");
    add_rate(out, "merge", size.dim > 0 ? merge_rate(experiment, size.dim) : 0,
             "a core; models of this size");
    out->at = kith_text_add(out->text, sizeof out->text, out->at,
                            "handshake: %.0fus # processor time of both ends\n",
                            1e6 * kith_cli_handshake_s());
    return KITH_EXIT_OK;
}

/* An experiment is not to be written over by a slip of the pen. */
static int check_place(const struct cli_arguments *arguments, const char *path)
{
    struct kith_machine machine;
    char error[KITH_EXPERIMENT_ERROR_BYTES];
    if (access(path, F_OK) == 0 &&
        kith_machine_load(path, &machine, error) != KITH_OK)
        return kith_cli_fail(arguments, KITH_EXIT_WRITE,
                             "%.300s is there already and is no machine's "
                             "file: name another with --machine FILE",
                             path);
    return KITH_EXIT_OK;
}

int kith_cli_plan_measure(const struct cli_arguments *arguments,
                          struct kith_experiment *experiment, const char *path)
{
    struct file_text out = {.at = 0};
    struct kith_dataset dataset = {.close = NULL};
    bool has = false;
    int code = check_place(arguments, path);
    if (code == KITH_EXIT_OK &&
        (experiment->model->reports || !kith_model_learns(experiment->model)))
        code = kith_cli_fail(arguments, KITH_EXIT_EXPERIMENT,
                             "model.kind: found %s, whose steps are not ours "
                             "to measure: give compute.step",
                             experiment->model->name);
    if (code == KITH_EXIT_OK)
        code = kith_cli_compute_open(arguments, experiment, CLI_COMPUTE_ALL);
    if (code == KITH_EXIT_OK)
        code = kith_cli_dataset_open(arguments, experiment, &dataset, &has);
    if (code != KITH_EXIT_OK)
        return code;
    code =
        measure_all(arguments, experiment, has ? &dataset.train : NULL, &out);
    kith_dataset_close(&dataset);
    if (code == KITH_EXIT_OK)
        code = kith_cli_replace_file(arguments, path, out.text);
    if (code == KITH_EXIT_OK)
        fprintf(stderr, "measured this machine, written into %s\n", path);
    return code;
}
