/* `hosts: {file: machine.yaml}`: what a machine's file says of the experiment's
 * model, for what the experiment does not say itself. Read where the experiment
 * is, so that what follows is a function of it; only the simulator uses it. */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "kith/assert.h"
#include "kith/experiment.h"
#include "kith/machine.h"
#include "kith/text.h"
#include "key_table.h"
#include "read_file.h"
#include "yaml_tree.h"

/* As good as without limit, and a whole number. */
#define RATE_BITS_MAX 1e18
/* As hosts.step takes it. */
#define STEP_S_MAX 3600

struct taking {
    const struct tree *tree;
    struct kith_experiment *experiment;
    size_t at;         /* of hosts.taken */
    char measure[128]; /* the command */
};

/* Without the file, which would have to be right before it is written; how many
 * peers are on a machine is asked for all the same. */
static void set_measure(struct taking *taking)
{
    const uint32_t peers = taking->experiment->hosts.peers;
    char hosts[32] = "";
    if (peers > 0)
        (void)snprintf(hosts, sizeof hosts, "cores: 1, peers: %u", peers);
    (void)snprintf(taking->measure, sizeof taking->measure,
                   "kith plan EXPERIMENT.yaml --measure --machine FILE --set "
                   "'hosts={%s}'",
                   hosts);
}

/* Words for what was taken, such as "cores: 2, step: 61us". */
static void tell(struct taking *taking, const char *key, const char *value)
{
    char *taken = taking->experiment->hosts.taken;
    taking->at =
        kith_text_add(taken, KITH_HOSTS_TEXT_BYTES, taking->at, "%s%s: %s",
                      taking->at > 0 ? ", " : "", key, value);
}

static bool is_given(const struct taking *taking, const char *key)
{
    char path[KITH_NAME_MAX];
    (void)snprintf(path, sizeof path, "hosts.%s", key);
    return kith_yaml_find(taking->tree, path) != NULL;
}

static void take_time(struct taking *taking, const char *key, kith_ns time_ns,
                      kith_ns *out)
{
    char words[32];
    KITH_ASSERT(time_ns >= 0);
    if (is_given(taking, key) || time_ns == 0)
        return;
    *out = time_ns;
    kith_text_from_time(time_ns, words, sizeof words);
    tell(taking, key, words);
}

static void take_rate(struct taking *taking, const char *key, double bytes_s,
                      uint64_t *out)
{
    char words[32];
    if (is_given(taking, key) || !(bytes_s > 0))
        return;
    *out = (uint64_t)fmin(RATE_BITS_MAX, fmax(1000, 8 * bytes_s));
    (void)snprintf(words, sizeof words, "%.3gGB", 1e-9 * bytes_s);
    tell(taking, key, words);
}

static void take_cores(struct taking *taking, uint32_t cores)
{
    char words[16];
    if (is_given(taking, "cores"))
        return;
    taking->experiment->hosts.cores = cores;
    (void)snprintf(words, sizeof words, "%u", cores);
    tell(taking, "cores", words);
}

/* A program's steps are its own: compute.step says what they take. */
static enum kith_err take_step(struct taking *taking,
                               const struct kith_machine *machine)
{
    struct kith_experiment *experiment = taking->experiment;
    if (experiment->model->reports)
        return KITH_OK;
    const struct kith_model_size size =
        kith_model_size_of(experiment->model, &experiment->model_config);
    if (size.dim != machine->values ||
        strcmp(machine->model, experiment->model->name) != 0)
        return kith_yaml_refuse(
            taking->tree, "hosts.file",
            "found a model %s of %llu values in it, the experiment's is %s of "
            "%zu; measure again: %s",
            machine->model, (unsigned long long)machine->values,
            experiment->model->name, size.dim, taking->measure);
    if (is_given(taking, "step"))
        return KITH_OK;
    const double step_s =
        kith_machine_step_cpu_s(machine, experiment->train.batch);
    if (isnan(step_s))
        return kith_yaml_refuse(taking->tree, "hosts.file",
                                "its steps have none with threads: 1; measure "
                                "again: %s",
                                taking->measure);
    if (step_s > STEP_S_MAX)
        return kith_yaml_refuse(
            taking->tree, "hosts.file",
            "its steps say %.4g s of train.batch %u; allowed: up to %d s; "
            "measure again: %s",
            step_s, experiment->train.batch, STEP_S_MAX, taking->measure);
    take_time(taking, "step", (kith_ns)fmax(1, 1e9 * step_s),
              &experiment->hosts.step_ns);
    return KITH_OK;
}

/* Real peers' where they were measured in this format; else the sum of what
 * sealing, sockets and a merge take by themselves, which is less: caches are
 * warm there. */
static void take_rates(struct taking *taking,
                       const struct kith_machine *machine)
{
    struct kith_experiment *experiment = taking->experiment;
    const struct kith_machine_suite *suite =
        kith_machine_suite_of(machine, experiment->network.suite);
    double wire = kith_machine_wire_rate(machine, suite);
    double merge = (double)machine->merge_bits / 8;
    for (uint32_t i = 0; i < machine->wire_count; i++)
        if (strcmp(machine->wires[i].name, experiment->gossip.format->name) ==
            0) {
            wire = (double)machine->wires[i].link_bits / 8;
            merge = (double)machine->wires[i].merge_bits / 8;
        }
    take_rate(taking, "wire", wire, &experiment->hosts.wire_bits);
    take_rate(taking, "merge", merge, &experiment->hosts.merge_bits);
}

enum kith_err kith_experiment_read_hosts(const struct tree *tree,
                                         struct kith_experiment *experiment)
{
    struct kith_machine machine;
    char error[KITH_EXPERIMENT_ERROR_BYTES];
    struct taking taking = {.tree = tree, .experiment = experiment};
    if (experiment->hosts.file[0] == '\0')
        return KITH_OK;
    set_measure(&taking);
    enum kith_err err = kith_experiment_resolve_path(tree, "hosts.file",
                                                     experiment->hosts.file);
    if (err == KITH_OK &&
        kith_machine_load(experiment->hosts.file, &machine, error) != KITH_OK)
        return kith_yaml_refuse(tree, "hosts.file",
                                "%.600s; it is written by %s", error,
                                taking.measure);
    if (err == KITH_OK) {
        take_cores(&taking, machine.cores);
        err = take_step(&taking, &machine);
    }
    if (err != KITH_OK)
        return err;
    take_time(&taking, "handover", machine.handover_ns,
              &experiment->hosts.handover_ns);
    take_time(&taking, "message", machine.message_ns,
              &experiment->hosts.message_ns);
    take_rates(&taking, &machine);
    take_time(&taking, "wake", machine.wake_ns, &experiment->hosts.wake_ns);
    take_time(&taking, "slice", machine.slice_ns, &experiment->hosts.slice_ns);
    return KITH_OK;
}

void kith_experiment_steps_of_hosts(struct kith_experiment *experiment)
{
    KITH_ASSERT(experiment->hosts.step_ns >= 0);
    if (experiment->hosts.file[0] != '\0' && experiment->compute.step_ns == 0)
        experiment->compute.step_ns = experiment->hosts.step_ns;
}
