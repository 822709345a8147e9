/* kith plan --measure: what this machine is, as a file that people may read and
 * change (kith/machine.h). Measured once, so that no plan depends on a clock.
 */
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "calibrate.h"
#include "channel_cost.h"
#include "kith/backend.h"
#include "kith/session.h"
#include "kith/text.h"
#include "peer_cost.h"
#include "plan_command.h"
#include "suite_speed.h"

#define TEXT_BYTES 32768u
/* Of what took no time that a clock has seen. */
#define RATE_MAX 1e12

struct file_text {
    char text[TEXT_BYTES];
    size_t at;
};

/* What peers of the experiment take of its own batch and format. */
struct own_cost {
    kith_ns step_ns;
    double model_bytes;
    struct cli_wire_cost wire;
};

/* As a key takes it. */
#define BATCH_MAX 65536u

/* As far as a peer's rows go; of a batch in parts no other is possible. */
static bool can_take(const struct kith_experiment *experiment,
                     const struct kith_examples *train, uint32_t batch)
{
    const bool has_rows =
        train == NULL || batch <= train->count / experiment->peers;
    return batch == experiment->train.batch ||
           (batch > 0 && batch <= BATCH_MAX &&
            batch % experiment->train.accumulate == 0 &&
            (batch < experiment->train.batch || has_rows));
}

/* Half to four times the experiment's batch. */
static int measure_steps(const struct cli_arguments *arguments,
                         const struct kith_experiment *experiment,
                         const struct kith_examples *train, uint32_t threads,
                         const struct cli_peer_cost *cost,
                         struct file_text *out, struct own_cost *own)
{
    const uint32_t batch = experiment->train.batch;
    const uint32_t batches[] = {batch / 2, batch, 2 * batch, 4 * batch};
    for (size_t i = 0; i < sizeof batches / sizeof *batches; i++) {
        struct kith_experiment changed = *experiment; /* lends its memory */
        kith_ns step_ns = 0;
        changed.train.batch = batches[i];
        if (!can_take(experiment, train, batches[i]))
            continue;
        kith_cli_progress("measuring steps: batch %u, %u threads", batches[i],
                          threads);
        const int code = kith_cli_measure_step(arguments, &changed, train,
                                               threads, &step_ns);
        if (code != KITH_EXIT_OK)
            return code;
        out->at = kith_text_add(out->text, sizeof out->text, out->at,
                                "  - {batch: %u, threads: %u, time: %lldns",
                                batches[i], threads,
                                (long long)(step_ns > 0 ? step_ns : 1));
        kith_ns cpu_ns = 0;
        int lab = KITH_EXIT_OK;
        if (threads == 1 && batches[i] == batch) {
            lab = kith_cli_measure_own(arguments, experiment, step_ns,
                                       own->model_bytes, cost, &own->step_ns,
                                       &own->wire);
            cpu_ns = own->step_ns;
        } else if (threads == 1) {
            lab = kith_cli_measure_peer_step(arguments, &changed, step_ns, cost,
                                             &cpu_ns);
        }
        if (lab != KITH_EXIT_OK)
            return lab;
        if (cpu_ns > 0)
            out->at = kith_text_add(out->text, sizeof out->text, out->at,
                                    ", cpu: %lldns", (long long)cpu_ns);
        out->at = kith_text_add(out->text, sizeof out->text, out->at, "}\n");
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

static void add_time(struct file_text *out, const char *key, double time_s,
                     const char *words)
{
    if (time_s > 0)
        out->at = kith_text_add(out->text, sizeof out->text, out->at,
                                "%s: %.1fus # %s\n", key, 1e6 * time_s, words);
}

static void add_peers(const struct cli_peer_cost *cost, struct file_text *out)
{
    add_time(out, "message", cost->message_s,
             "processor time at each end, real peers");
    add_time(out, "handover", cost->handover_s,
             "of an item's way to the training thread and back");
    add_time(out, "wake", cost->wake_s,
             "until a thread whose period is over goes on");
    add_time(out, "slice", cost->slice_s,
             "a thread keeps its core so long while others wait");
}

static void add_wire(const char *name, const struct cli_wire_cost *wire,
                     struct file_text *out)
{
    out->at =
        kith_text_add(out->text, sizeof out->text, out->at,
                      "  - {wire: %s, link: %.0fkB, merge: %.0fkB}\n", name,
                      1e-3 * (wire->link > 0 ? wire->link : RATE_MAX),
                      1e-3 * (wire->merge > 0 ? wire->merge : RATE_MAX));
}

/* float32, and the experiment's own. */
static int add_wires(const struct cli_arguments *arguments,
                     const struct kith_experiment *experiment,
                     const struct own_cost *own,
                     const struct cli_peer_cost *cost, struct file_text *out)
{
    const char *name = experiment->gossip.format->name;
    const bool has_plain = strcmp(name, "float32") == 0;
    struct cli_wire_cost plain = {0};
    const int code =
        has_plain ? KITH_EXIT_OK
                  : kith_cli_measure_wire(arguments, experiment, "float32",
                                          own->step_ns, own->model_bytes, cost,
                                          &plain);
    if (code != KITH_EXIT_OK)
        return code;
    out->at = kith_text_add(out->text, sizeof out->text, out->at,
                            "wires: # a core, per second; real peers, models "
                            "of this size\n");
    if (!has_plain)
        add_wire("float32", &plain, out);
    add_wire(name, &own->wire, out);
    return KITH_EXIT_OK;
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
    const struct cli_own own = kith_cli_own(experiment);
    out->at = kith_text_add(
        out->text, sizeof out->text, 0,
        "# What this machine is: written by kith plan --measure, read by\n"
        "# kith plan EXPERIMENT.yaml --machine FILE. Any number may be "
        "changed.\n"
        "# By labs of %u peers that swap every %u steps, or sleep for %.0f "
        "ms.\n"
        "model: %s # of %s\n"
        "values: %zu\n"
        "cores: %u\n"
        "steps: # medians, on the wall's clock; cpu: of a real peer beside "
        "others\n",
        own.peers, own.every, 1e-6 * (double)own.pace_ns,
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
    struct cli_peer_cost cost;
    struct own_cost own = {
        .model_bytes = (double)size.dim *
                       (double)experiment->backend->host->element_bytes};
    add_head(out, experiment, &size);
    int code = kith_cli_measure_peers(arguments, experiment, &cost);
    if (code == KITH_EXIT_OK)
        code = measure_steps(arguments, experiment, train, 1, &cost, out, &own);
    if (code == KITH_EXIT_OK && cores > 1)
        code = measure_steps(arguments, experiment, train, cores, &cost, out,
                             &own);
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
    add_peers(&cost, out);
    code = add_wires(arguments, experiment, &own, &cost, out);
    if (code != KITH_EXIT_OK)
        return code;
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
    return kith_cli_check_folder(arguments, "--machine", path);
}

int kith_cli_plan_measure(const struct cli_arguments *arguments,
                          struct kith_experiment *experiment, const char *path)
{
    struct file_text out = {.at = 0};
    struct kith_machine ways; /* its links */
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
        code = kith_cli_measure_links(arguments, &ways);
    if (code == KITH_EXIT_OK)
        code = kith_cli_compute_open(arguments, experiment, CLI_COMPUTE_ALL);
    if (code == KITH_EXIT_OK)
        code = kith_cli_dataset_open(arguments, experiment, &dataset, &has);
    if (code != KITH_EXIT_OK)
        return code;
    code =
        measure_all(arguments, experiment, has ? &dataset.train : NULL, &out);
    kith_dataset_close(&dataset);
    out.at = kith_cli_add_links(&ways, out.text, sizeof out.text, out.at);
    if (code == KITH_EXIT_OK)
        code = kith_cli_replace_file(arguments, path, out.text);
    if (code == KITH_EXIT_OK)
        fprintf(stderr, "measured this machine, written into %s\n", path);
    return code;
}
