/* The closed forms of kith/plan.h at an experiment's facts, each figure with a
 * line that says what it is. */
#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "kith/optimiser.h"
#include "plan_command.h"

struct planning {
    const struct cli_arguments *arguments;
    struct plan_facts *facts;
    struct plan_answer *answer;
    char error[KITH_PLAN_ERROR_BYTES];
};

static void KITH_PRINTF(5, 6)
    add(struct planning *all, const char *name, double value,
        enum plan_unit unit, const char *format, ...)
{
    struct plan_answer *answer = all->answer;
    va_list list;
    if (answer->count == PLAN_FIGURES_MAX)
        return;
    struct plan_figure *figure = &answer->figures[answer->count++];
    figure->name = name;
    figure->value = value;
    figure->unit = unit;
    va_start(list, format);
    (void)vsnprintf(figure->why, sizeof figure->why, format, list);
    va_end(list);
}

/* What was refused is a fact of the experiment or of the machine's file. */
static int fail(struct planning *all)
{
    return kith_cli_fail(all->arguments, KITH_EXIT_EXPERIMENT,
                         "no plan can be made of this model, compute.step, "
                         "network.rate, network.latency and machine: %s",
                         all->error);
}

/* ---- What is known */

static void add_facts(struct planning *all)
{
    const struct plan_facts *facts = all->facts;
    const struct kith_plan_exchange *exchange = &facts->exchange;
    const struct kith_experiment *experiment = facts->experiment;
    add(all, "peers", experiment->peers, PLAN_COUNT, "%s on %s",
        experiment->gossip.algorithm->name, experiment->gossip.topology->name);
    add(all, "model", exchange->model_bytes, PLAN_BYTES, "S_p, as it is kept");
    add(all, "message", facts->message_bytes, PLAN_BYTES,
        "as it travels: %.3g of the model", exchange->share);
    add(all, "compute", exchange->step_s, PLAN_SECONDS, "T_C: %s",
        facts->step_from);
    add(all, "rate", fmin(exchange->up, exchange->down), PLAN_RATE,
        "B, the slower way: %s", facts->rate_from);
    add(all, "round_trips", exchange->latency_s, PLAN_SECONDS,
        "what an exchange waits for latency");
    add(all, "codec", exchange->codec_s, PLAN_SECONDS,
        "T_e: sealing, sockets, merges of an exchange");
}

/* ---- Parameter servers, to compare with */

/* A push goes up a line and a pull down, with a round trip for both, whatever
 * exchanges of gossip wait for. */
static int add_servers(struct planning *all)
{
    const struct kith_plan_exchange *exchange = &all->facts->exchange;
    const double bytes = exchange->model_bytes;
    const double peers = all->facts->experiment->peers;
    const double alpha = all->facts->efficiency;
    const double overhead_s =
        all->facts->trip_s + bytes / exchange->up + bytes / exchange->down;
    const double ratio = overhead_s / (peers * exchange->step_s);
    struct kith_plan_speedup speedup;
    double workers, servers;
    if (kith_plan_workers(alpha, ratio, &workers, all->error) != KITH_OK ||
        kith_plan_speedup(peers, ratio, &speedup, all->error) != KITH_OK ||
        kith_plan_servers(bytes, peers, fmin(exchange->up, exchange->down),
                          exchange->step_s, &servers, all->error) != KITH_OK)
        return fail(all);
    add(all, "overhead_ratio", ratio, PLAN_PLAIN,
        "R_O of servers: push and pull unhidden, over one worker's computing");
    add(all, "workers_max", floor(workers * (1 + 1e-9)), PLAN_COUNT,
        "G, Lemma 1: they keep an efficiency of %g so", alpha);
    add(all, "server_efficiency", speedup.efficiency, PLAN_SHARE,
        "Lemma 1 at these peers, nothing hidden");
    add(all, "servers", servers, PLAN_COUNT,
        "N_ps, Lemma 2: so many hide push and pull");
    return KITH_EXIT_OK;
}

/* ---- Gossip */

/* Of the exchanges that are due, those that find none under way; due by chance
 * while one is: p T_X / every. Several swaps of a peer may be open, and their
 * mean is closer. */
static double share_done(const struct plan_facts *facts, double interval)
{
    const struct kith_algorithm *algorithm =
        facts->experiment->gossip.algorithm;
    const double late = interval / facts->exchange.interval;
    if (facts->is_exclusive)
        return 1 / (1 + facts->chance * late);
    if (algorithm->pattern == KITH_PATTERN_SWAP)
        return fmin(1, 1 / (facts->chance * late));
    return 1 / (1 + facts->chance * (ceil(late) - 1));
}

/* A step waits for an exchange, or it does not. */
static struct plan_step step_of(const struct plan_facts *facts,
                                const struct kith_plan_hiding *hiding)
{
    const struct kith_plan_exchange *exchange = &facts->exchange;
    const double sent = facts->sent * facts->message_bytes / exchange->interval;
    return facts->is_waiting
               ? (struct plan_step){hiding->step_s, sent}
               : (struct plan_step){exchange->step_s,
                                    sent * share_done(facts, hiding->interval)};
}

enum kith_err kith_cli_plan_step(const struct plan_facts *facts,
                                 struct plan_step *out, char *error)
{
    struct kith_plan_hiding hiding;
    const enum kith_err err =
        kith_plan_hiding(&facts->exchange, &hiding, error);
    if (err == KITH_OK)
        *out = step_of(facts, &hiding);
    return err;
}

static int add_gossip(struct planning *all)
{
    const struct plan_facts *facts = all->facts;
    const struct kith_plan_exchange *exchange = &facts->exchange;
    struct kith_plan_hiding hiding;
    if (kith_plan_hiding(exchange, &hiding, all->error) != KITH_OK)
        return fail(all);
    const struct plan_step step = step_of(facts, &hiding);
    all->answer->step_s = step.step_s;
    add(all, "exchange", hiding.exchange_s, PLAN_SECONDS,
        "T_X, G1: of %g messages, %s", exchange->fan_out,
        exchange->is_push ? "and the ends of two steps"
                          : "where no line waits");
    const bool meets = facts->phases <= 1 &&
                       facts->experiment->network.sharing == KITH_SHARING_QUEUE;
    if (exchange->fan_out > 1 && meets)
        add(all, "exchange_most", hiding.exchange_most_s, PLAN_SECONDS,
            "where they meet on lines: of 2 f - 1 messages");
    add(all, "interval", hiding.interval, PLAN_COUNT,
        "tau, G1: least gossip.every that hides it; the file's: %g",
        exchange->interval);
    add(all, "fan_out_max", hiding.fan_out, PLAN_COUNT,
        "f, G3: messages that the file's interval hides");
    add(all, "efficiency", exchange->step_s / all->answer->step_s, PLAN_SHARE,
        facts->is_waiting ? "G2: computing, of a step's time"
                          : "no step waits for an exchange");
    if (!facts->is_waiting)
        add(all, "exchanges_done", share_done(facts, hiding.interval),
            PLAN_SHARE, "of those due: one after another, others are skipped");
    add(all, "step", all->answer->step_s, PLAN_SECONDS, "predicted, of a peer");
    if (facts->is_waiting && meets && hiding.step_most_s > hiding.step_s)
        add(all, "step_most", hiding.step_most_s, PLAN_SECONDS,
            "predicted at most, where messages meet on lines");
    add(all, "bytes_per_step", step.bytes, PLAN_BYTES,
        "predicted, sent by a peer");
    return KITH_EXIT_OK;
}

/* ---- Graphs */

/* What is left when models may be called alike. */
#define LEFT 0.01
/* Lanczos' iteration and contraction are for so many. */
#define MIXING_PEERS_MAX 4096u

/* Of one round, in the mean of a period; NaN: not known. */
static double rho_of(const struct kith_topology *topology)
{
    const uint64_t period = kith_topology_period(topology);
    double rho = (double)NAN;
    if (topology->peers < 2 || topology->peers > MIXING_PEERS_MAX)
        return rho;
    if (period > 0 && topology->doubly && !topology->kind->collective) {
        double *scratch =
            malloc(KITH_RHO_SCRATCH(topology->peers) * sizeof *scratch);
        if (scratch != NULL)
            rho = pow(kith_topology_rho(topology, scratch, NULL),
                      1 / (double)period);
        free(scratch);
    } else if (topology->kind->contraction != NULL) {
        /* Of |x - mean|^2; any pair: each peer asks once in a round. */
        const double left = topology->kind->contraction(topology).worst;
        rho = sqrt(kith_topology_is_any_pair(topology->kind)
                       ? pow(left, topology->peers)
                       : left);
    }
    return rho < 1e-12 ? 0 : rho;
}

static void add_rounds(struct planning *all, const char *name, double rho,
                       const char *what)
{
    double rounds = (double)NAN;
    if (!isnan(rho) &&
        kith_plan_rounds(rho, LEFT, &rounds, all->error) == KITH_OK)
        add(all, name, rounds, PLAN_COUNT,
            "G4: rounds to 1 %% of the disagreement, %s (gap %.3g)", what,
            1 - rho);
}

static void add_mixing(struct planning *all)
{
    const struct kith_topology *graph = &all->facts->experiment->gossip.graph;
    double rho;
    add_rounds(all, "mixing", rho_of(graph), graph->kind->name);
    if (kith_plan_ring(graph->peers, &rho, all->error) == KITH_OK)
        add_rounds(all, "mixing_ring", rho, "a ring");
    if (kith_plan_exponential(graph->peers, &rho, all->error) == KITH_OK)
        add_rounds(all, "mixing_exponential", rho,
                   "a static exponential graph");
}

/* The least eigenvalue of W, by Gershgorin: 2 min W_ii - 1. */
static double lowest_of(const struct kith_topology *graph)
{
    kith_id ids[KITH_DEGREE_MAX];
    double weights[KITH_DEGREE_MAX], least = 1;
    for (kith_id i = 0; i < graph->peers; i++) {
        const uint32_t count =
            kith_topology_neighbours(graph, i, 0, ids, weights);
        double own = 1;
        for (uint32_t k = 0; k < count; k++)
            own -= weights[k];
        least = fmin(least, own);
    }
    return fmax(-1, 2 * least - 1);
}

#define OMEGA_LEAST 0.01

/* What a compressor promises to keep of a vector, whatever stands in it, and
 * what the guess goes by: the share of values that it keeps, where it keeps
 * one. NaN: it promises less than a guess was ever measured at. */
static void omega_of(const struct kith_experiment *experiment, double *omega,
                     double *kept)
{
    const struct kith_compressor *compressor =
        kith_compressor_find(experiment->gossip.compressor);
    const struct kith_model_size size =
        kith_model_size_of(experiment->model, &experiment->model_config);
    const struct kith_compression how =
        kith_experiment_compression(experiment, size.gossiped);
    *omega = *kept = 1;
    if (strcmp(experiment->gossip.compressor, "none") == 0)
        return;
    *omega = kith_compression_contraction(&how);
    *kept = compressor->keys & KITH_COMPRESSOR_READS(DENSITY)
                ? experiment->gossip.compression.density
            : *omega >= OMEGA_LEAST ? *omega
                                    : NAN;
}

/* Of methods that keep public copies of what is compressed. */
static void add_gamma(struct planning *all)
{
    const struct kith_experiment *experiment = all->facts->experiment;
    const struct kith_algorithm *algorithm = experiment->gossip.algorithm;
    const struct kith_topology *graph = &experiment->gossip.graph;
    const double rho = rho_of(graph);
    double omega, kept;
    struct kith_plan_gamma gamma, guess;
    if ((algorithm->flags & KITH_TAKES_COMPRESSOR) == 0 ||
        (algorithm->keys & (1u << KITH_GOSSIP_CONSENSUS)) == 0 ||
        !graph->kind->is_static || isnan(rho))
        return;
    omega_of(experiment, &omega, &kept);
    if (kith_plan_gamma(1 - rho, lowest_of(graph), omega, &gamma, all->error) !=
        KITH_OK)
        return;
    if (!isnan(kept) && kith_plan_gamma(1 - rho, lowest_of(graph), kept, &guess,
                                        all->error) == KITH_OK)
        add(all, "gamma", guess.advise, PLAN_PLAIN,
            "G7: gossip.consensus to begin a sweep with; the file's: %g",
            experiment->gossip.coefficients[KITH_GOSSIP_CONSENSUS]);
    add(all, "gamma_safe", gamma.safe, PLAN_PLAIN,
        "G7: the theorem's, which always converges");
    add(all, "gamma_limit", gamma.limit, PLAN_PLAIN,
        "G7: above it even whole models diverge");
}

/* ---- Joining, memory */

static int add_joins(struct planning *all)
{
    const struct kith_plan_exchange *exchange = &all->facts->exchange;
    double peers;
    if (kith_plan_joins(1, exchange->model_bytes, exchange->up, &peers,
                        all->error) != KITH_OK)
        return fail(all);
    add(all, "join_peers", peers, PLAN_COUNT,
        "G5: lines taken where one peer joins a second");
    return KITH_EXIT_OK;
}

static int add_memory(struct planning *all)
{
    const struct plan_facts *facts = all->facts;
    const struct kith_experiment *experiment = facts->experiment;
    const struct kith_worker_memory *held = &facts->held;
    const double model = facts->exchange.model_bytes;
    add(all, "memory", kith_cli_plan_held(held), PLAN_BYTES,
        "G6: %.3g models to train, %.3g of messages, %.3g of the method; "
        "%.4g MB for a batch of %u",
        (double)held->training / model,
        (double)(held->slots + held->wire) / model,
        (double)held->algorithm / model, 1e-6 * (double)held->batch,
        experiment->train.batch);
    if (facts->memory_bytes <= 0)
        return KITH_EXIT_OK;
    struct kith_plan_bound bound;
    const double copies = 2 + experiment->train.optimiser->state_vectors;
    const struct kith_plan_memory memory = {
        .cap = facts->memory_bytes,
        .model_bytes = model,
        .copies = copies,
        .state_bytes = (double)held->algorithm +
                       fmax(0, (double)held->training - copies * model),
        .slot_bytes = (double)(held->slots + held->wire) +
                      fmax(0, (double)held->batch - experiment->train.batch *
                                                        facts->example_bytes),
        .sample_bytes = facts->example_bytes};
    const enum kith_err err = kith_plan_memory(&memory, &bound, all->error);
    if (err == KITH_ELIMIT)
        return kith_cli_fail(all->arguments, KITH_EXIT_RESOURCES, "--%s",
                             all->error);
    if (err != KITH_OK)
        return fail(all);
    if (memory.sample_bytes > 0)
        add(all, "batch_max",
            facts->example_is_own ? kith_cli_largest_batch(facts) : bound.batch,
            PLAN_COUNT, "G6: examples of a step that --memory still holds");
    return KITH_EXIT_OK;
}

static int add_batch(struct planning *all)
{
    struct plan_batch best;
    const enum kith_err err =
        kith_cli_plan_batch(all->facts, &best, all->error);
    if (err == KITH_ENOMEM)
        return kith_cli_fail(all->arguments, KITH_EXIT_RESOURCES,
                             "out of memory");
    if (err == KITH_EINVAL)
        return fail(all);
    if (err == KITH_OK)
        add(all, "batch", best.batch, PLAN_COUNT,
            "X: least time an example of those measured, %.3g us with %u "
            "threads; the file's: %u",
            1e6 * best.step_s / best.batch, best.threads,
            all->facts->experiment->train.batch);
    return KITH_EXIT_OK;
}

int kith_cli_plan_figures(const struct cli_arguments *arguments,
                          struct plan_facts *facts, struct plan_answer *answer)
{
    struct planning all = {
        .arguments = arguments, .facts = facts, .answer = answer};
    answer->count = 0;
    add_facts(&all);
    int code = add_servers(&all);
    if (code == KITH_EXIT_OK)
        code = add_gossip(&all);
    if (code != KITH_EXIT_OK)
        return code;
    add_mixing(&all);
    add_gamma(&all);
    code = add_joins(&all);
    if (code == KITH_EXIT_OK)
        code = add_memory(&all);
    if (code == KITH_EXIT_OK && facts->machine != NULL)
        code = add_batch(&all);
    return code;
}
