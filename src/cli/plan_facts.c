/* What kith plan knows of an experiment and a machine: bytes from the node's
 * own configuration, times from the machine's file or the experiment's keys. */
#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "kith/node.h"
#include "kith/session.h"
#include "kith/text.h"
#include "plan_command.h"

void kith_cli_plan_note(struct plan_facts *facts, const char *format, ...)
{
    va_list list;
    if (facts->note_count == PLAN_NOTES_MAX)
        return;
    va_start(list, format);
    (void)vsnprintf(facts->notes[facts->note_count++], sizeof facts->notes[0],
                    format, list);
    va_end(list);
}

/* A look at so many peers and rounds says what a round is. */
#define PEERS_SEEN 1024u
#define ROUNDS_SEEN 64u

/* Messages of a mean round: of the peer that sends most, for whom the others
 * wait, and of a mean one. */
static void round_messages(const struct kith_topology *topology, double *most,
                           double *mean)
{
    kith_id ids[KITH_DEGREE_MAX];
    const uint64_t period = kith_topology_period(topology);
    const uint64_t rounds =
        period == 0 || period > ROUNDS_SEEN ? ROUNDS_SEEN : period;
    const uint32_t peers =
        topology->peers < PEERS_SEEN ? topology->peers : PEERS_SEEN;
    *most = *mean = 0;
    for (uint64_t round = 0; round < rounds; round++) {
        uint32_t largest = 0;
        for (kith_id i = 0; i < peers; i++) {
            const uint32_t count =
                kith_topology_neighbours(topology, i, round, ids, NULL);
            largest = count > largest ? count : largest;
            *mean += (double)count / (double)peers / (double)rounds;
        }
        *most += (double)largest / (double)rounds;
    }
}

/* How often a message crosses before an exchange is over, in round trips: swap
 * and push REQUEST, ACCEPT, MODEL, ACK; a round that only casts MODEL, ACK; one
 * on both sides MODEL, READY for the lower rank and ACK, too, for the higher
 * one, two and a half in the mean. */
static double round_trips(const struct kith_experiment *experiment)
{
    const struct kith_algorithm *algorithm = experiment->gossip.algorithm;
    if (algorithm->pattern != KITH_PATTERN_ROUND)
        return 2;
    return algorithm->flags & KITH_SPLITS_MASS ||
                   experiment->gossip.topology->directed
               ? 1
               : 1.25;
}

static void take_pattern(const struct kith_node_config *config,
                         struct plan_facts *facts)
{
    const struct kith_experiment *experiment = facts->experiment;
    const struct kith_algorithm *algorithm = experiment->gossip.algorithm;
    struct kith_plan_exchange *exchange = &facts->exchange;
    facts->trip_s = 2 * kith_experiment_mean_latency(experiment);
    facts->chance =
        experiment->gossip.chance > 0 ? experiment->gossip.chance : 1;
    facts->is_exclusive =
        (algorithm->flags & KITH_NEEDS_EXCLUSIVE_EXCHANGE) != 0;
    /* Who asks is asked as often; where there is one exchange at a time a peer
     * asks for half of its own. */
    exchange->fan_out =
        algorithm->pattern == KITH_PATTERN_SWAP && !facts->is_exclusive ? 2 : 1;
    facts->sent = exchange->fan_out;
    if (algorithm->pattern == KITH_PATTERN_ROUND)
        round_messages(config->topology, &exchange->fan_out, &facts->sent);
    /* Its rounds come one after another and are one exchange together. */
    facts->phases = config->phases > 1 ? config->phases : 1;
    exchange->fan_out *= facts->phases;
    facts->sent *= facts->phases * facts->chance;
    exchange->latency_s =
        facts->phases * round_trips(experiment) * facts->trip_s;
    exchange->interval = experiment->gossip.every;
    exchange->overlap = algorithm->wait == KITH_WAIT_STRICT ? 0 : 1;
    exchange->is_push = algorithm->pattern == KITH_PATTERN_PUSH;
    facts->is_waiting = algorithm->wait != KITH_WAIT_NO;
}

static int take_bytes(const struct cli_arguments *arguments,
                      struct plan_facts *facts)
{
    const struct kith_experiment *experiment = facts->experiment;
    struct kith_topology topology;
    struct kith_node_config config;
    enum kith_err err =
        kith_experiment_node_config(experiment, 1, &topology, &config);
    if (err == KITH_OK) {
        facts->worker = kith_cli_busiest_worker(experiment, &config);
        err = kith_worker_measure(&facts->worker, &facts->held);
    }
    if (err == KITH_OK)
        err = kith_cli_example_bytes(experiment, &facts->example_bytes);
    if (err != KITH_OK)
        return kith_cli_check(arguments, err, kith_err_text(err));
    if (experiment->backend->missing() != NULL)
        kith_cli_plan_note(facts,
                           "backend %s is not here: `memory` is without the "
                           "activations of a batch",
                           experiment->backend->name);
    facts->exchange.model_bytes = (double)config.model_bytes;
    facts->message_bytes = kith_cli_message_bytes(&config);
    facts->exchange.share = facts->message_bytes / facts->exchange.model_bytes;
    take_pattern(&config, facts);
    const double own = facts->example_bytes;
    if (facts->machine != NULL && facts->machine->example_bytes > 0)
        facts->example_bytes = (double)facts->machine->example_bytes;
    facts->example_is_own = fabs(facts->example_bytes - own) < 1;
    return KITH_EXIT_OK;
}

/* The machine's median, no shorter than the file's compute.step. */
static int take_step(const struct cli_arguments *arguments,
                     struct plan_facts *facts)
{
    const struct kith_experiment *experiment = facts->experiment;
    const struct kith_machine *machine = facts->machine;
    const double pace_s = (double)experiment->compute.step_ns / 1e9;
    double step_s = (double)NAN;
    if (machine != NULL)
        step_s = kith_machine_step_s(machine, experiment->train.batch, 1);
    if (machine != NULL && isnan(step_s))
        return kith_cli_fail(arguments, KITH_EXIT_EXPERIMENT,
                             "--machine: steps has none with threads: 1; "
                             "measure again: kith plan EXPERIMENT.yaml "
                             "--measure");
    facts->step_from = "the machine's median of one thread";
    if (isnan(step_s) || pace_s > step_s) {
        step_s = pace_s;
        facts->step_from = "compute.step of the file";
    }
    if (!(step_s > 0))
        return kith_cli_fail(arguments, KITH_EXIT_EXPERIMENT,
                             "how long a step takes is not known: measure it "
                             "with --measure, name --machine FILE, or give "
                             "compute.step");
    if (step_s > KITH_PLAN_SECONDS_MAX)
        return kith_cli_fail(arguments, KITH_EXIT_EXPERIMENT,
                             "--machine: steps says %.4g s at train.batch %u; "
                             "allowed: up to %g s; measure again at that "
                             "batch, or take a smaller one",
                             step_s, experiment->train.batch,
                             KITH_PLAN_SECONDS_MAX);
    facts->exchange.step_s = step_s;
    return KITH_EXIT_OK;
}

static void take_codec(struct plan_facts *facts)
{
    const struct kith_machine *machine = facts->machine;
    struct kith_plan_exchange *exchange = &facts->exchange;
    exchange->codec_s = 0;
    if (machine == NULL) {
        kith_cli_plan_note(facts, "sealing, sockets and merges take no time "
                                  "here: name --machine FILE, or --measure");
        return;
    }
    const struct kith_machine_suite *suite =
        kith_machine_suite_of(machine, facts->experiment->network.suite);
    if (suite == NULL)
        kith_cli_plan_note(facts,
                           "suites of --machine has no %s: sealing takes no "
                           "time here",
                           facts->experiment->network.suite);
    facts->wire_bytes_s = kith_machine_wire_rate(machine, suite);
    const double byte_s = facts->wire_bytes_s > 0 ? 1 / facts->wire_bytes_s : 0;
    facts->merge_bytes_s = (double)machine->merge_bits / 8;
    exchange->codec_s =
        exchange->fan_out * (2 * facts->message_bytes * byte_s +
                             (facts->merge_bytes_s > 0
                                  ? exchange->model_bytes / facts->merge_bytes_s
                                  : 0));
}

/* Which link an experiment has is not a machine's to say: it is offered. */
static void offer_link(struct plan_facts *facts)
{
    const struct kith_machine_link *link =
        facts->machine == NULL ? NULL
                               : kith_machine_slowest_link(facts->machine);
    if (link == NULL)
        return;
    kith_cli_plan_note(facts,
                       "the slowest link of --machine is to rank %u: --set "
                       "'network+={latency: %lldns, jitter: %lldns, rate: "
                       "%.0fkbit, loss: %.3g}'",
                       link->rank, (long long)link->latency_ns,
                       (long long)link->jitter_ns,
                       fmax(1, 1e-3 * (double)link->rate_bits), link->loss);
}

/* How much of a shared line a peer has depends on when others send. */
static void note_zones(struct plan_facts *facts)
{
    const struct kith_zones *zones = &facts->experiment->network.zones;
    const uint32_t count = zones->count;
    char rates[96] = "";
    if (kith_zones_limit(zones) == NULL)
        return;
    if (zones->pair_bits != NULL && count > 1) {
        double sum = 0, least = INFINITY;
        for (uint32_t i = 0; i < count * count; i++) {
            const double rate = 1e-6 * (double)zones->pair_bits[i];
            if (i / count == i % count)
                continue;
            sum += rate;
            least = fmin(least, rate);
        }
        (void)snprintf(rates, sizeof rates,
                       " (%.4g Mbit/s the slowest, %.4g in the mean)", least,
                       sum / ((double)count * (count - 1)));
    }
    kith_cli_plan_note(facts,
                       "%s: the lines that zones share%s are left out: bytes "
                       "take the time of a peer's own lines; kith sim shares "
                       "them",
                       kith_zones_limit(zones), rates);
}

static void take_network(struct plan_facts *facts)
{
    const struct kith_experiment *experiment = facts->experiment;
    const struct kith_class *usual = &experiment->network.classes.usual;
    const double up = (double)usual->up_bits / 8;
    const double down = (double)usual->down_bits / 8;
    facts->rate_from = up > down || up < down
                           ? "network.up and network.down of the file"
                           : "network.rate of the file";
    if (up <= 0 && down <= 0) {
        facts->rate_from = "not given: no limit";
        kith_cli_plan_note(facts, "network.rate is not given: bytes take no "
                                  "time on a link; --set network.rate=1Gbit");
    }
    if (up <= 0 && down <= 0)
        offer_link(facts);
    if (experiment->network.classes.count > 0 ||
        experiment->compute.speeds.kind != KITH_SPEEDS_EQUAL)
        kith_cli_plan_note(facts,
                           "classes, compute.speeds: lines and steps are those "
                           "of a peer in no class, at compute.step; peers that "
                           "wait do so for the slowest");
    note_zones(facts);
    if (kith_experiment_mean_latency(experiment) <= 0)
        kith_cli_plan_note(facts,
                           "network.latency is not given: 0; --set "
                           "network.latency=1ms, half of what ping says");
    facts->exchange.up = up > 0 ? up : KITH_PLAN_BYTES_MAX;
    facts->exchange.down = down > 0 ? down : KITH_PLAN_BYTES_MAX;
}

static int check_machine(const struct cli_arguments *arguments,
                         const struct plan_facts *facts)
{
    const struct kith_machine *machine = facts->machine;
    const struct kith_experiment *experiment = facts->experiment;
    if (machine == NULL)
        return KITH_EXIT_OK;
    const struct kith_model_size size =
        kith_model_size_of(experiment->model, &experiment->model_config);
    if (size.dim == machine->values &&
        strcmp(machine->model, experiment->model->name) == 0)
        return KITH_EXIT_OK;
    return kith_cli_fail(arguments, KITH_EXIT_EXPERIMENT,
                         "%.300s is of a model %s of %llu values, the "
                         "experiment's is %s of %zu: measure again with "
                         "--measure, or into another --machine FILE",
                         arguments->values[CLI_MACHINE] == NULL
                             ? "machine.yaml"
                             : arguments->values[CLI_MACHINE],
                         machine->model, (unsigned long long)machine->values,
                         experiment->model->name, size.dim);
}

bool kith_cli_plan_gossips(const struct kith_experiment *experiment)
{
    return !experiment->central.present && experiment->peers > 1 &&
           experiment->gossip.algorithm->pattern != KITH_PATTERN_NONE;
}

int kith_cli_plan_check_gossip(const struct cli_arguments *arguments,
                               const struct kith_experiment *experiment)
{
    const bool is_central = experiment->central.present;
    if (kith_cli_plan_gossips(experiment))
        return KITH_EXIT_OK;
    return kith_cli_fail(
        arguments, KITH_EXIT_EXPERIMENT,
        "%s%s: nothing is gossiped in this experiment%s; kith plan is of "
        "gossip.algorithm: kith list algorithms has those that exchange",
        is_central ? "central.method: found " : "gossip.algorithm: found ",
        is_central ? kith_central_methods[experiment->central.method].name
                   : experiment->gossip.algorithm->name,
        experiment->peers == 1 ? " of one peer" : "");
}

int kith_cli_plan_facts(const struct cli_arguments *arguments,
                        const struct kith_experiment *experiment,
                        const struct kith_machine *machine,
                        struct plan_facts *facts)
{
    facts->experiment = experiment;
    facts->machine = machine;
    const int gossip = kith_cli_plan_check_gossip(arguments, experiment);
    if (gossip != KITH_EXIT_OK)
        return gossip;
    if (kith_model_size_of(experiment->model, &experiment->model_config)
            .gossiped == 0)
        return kith_cli_fail(
            arguments, KITH_EXIT_EXPERIMENT,
            "model: found %s without parameters, of which nothing is sent; "
            "allowed: a model that has some%s",
            experiment->model->name,
            experiment->model->reports ? ": give model.dim" : "");
    int code = check_machine(arguments, facts);
    if (code == KITH_EXIT_OK)
        code = take_bytes(arguments, facts);
    if (code == KITH_EXIT_OK)
        code = take_step(arguments, facts);
    if (code != KITH_EXIT_OK)
        return code;
    take_network(facts);
    take_codec(facts);
    return KITH_EXIT_OK;
}
