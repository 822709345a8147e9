/* kith list topology NAME PEERS: one graph measured. Degrees, links, and what a
 * round, a cycle or a random round leaves of the disagreement: by the spectrum,
 * in closed form and by trying it. */
#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <jansson.h>

#include "cli.h"
#include "kith/json.h"
#include "kith/topology.h"

/* What a cycle leaves when it is exact, up to rounding. */
#define EXACT 1e-12
/* Edge visits of the tries, about: a second. */
#define TRY_VISITS 4e6
#define TRIES_MAX 4000u
#define TRIES_MIN 20u
/* Peers up to which closed forms that sum over all pairs are worth it. */
#define CLOSED_PEERS_MAX 4096u

/* What there is to say; NAN: does not apply. */
struct measured {
    uint32_t degree_least, degree_most, links; /* links: or KITH_LINKS_ANY */
    double edges; /* messages of a mean round, over all peers */
    double rho, rate;
    bool settled;
    double expected, worst, tried, error;
};

static const char *const placeholder =
    "name: list\npeers: 1\nseed: 1\nstop: {steps: 1}\nmodel: {kind: none}\n"
    "gossip: {algorithm: local}\n";

/* Rounds of an all-reduce are for its own algorithm alone. NULL: any will do.
 */
static const struct kith_algorithm *algorithm_for(const char *topology)
{
    for (unsigned i = 0; kith_algorithms[i] != NULL; i++)
        if (kith_algorithms[i]->schedule != NULL &&
            strcmp(kith_algorithms[i]->schedule, topology) == 0)
            return kith_algorithms[i];
    return NULL;
}

/* The experiment file's own rules say what fits what. */
static int open_graph(const struct cli_arguments *arguments,
                      struct kith_experiment *experiment)
{
    const char *sets[CLI_WORDS_MAX + 5];
    char name[KITH_NAME_MAX + 32], peers[64], algorithm[KITH_NAME_MAX + 32];
    char error[KITH_EXPERIMENT_ERROR_BYTES] = "";
    uint32_t count = 0;
    (void)snprintf(name, sizeof name, "gossip.topology=%s",
                   arguments->words[1]);
    (void)snprintf(peers, sizeof peers, "peers=%.40s", arguments->words[2]);
    for (unsigned i = 0; i < arguments->set_count; i++) {
        if (strncmp(arguments->sets[i], "gossip.", 7) != 0 &&
            strncmp(arguments->sets[i], "seed=", 5) != 0)
            return kith_cli_fail(arguments, KITH_EXIT_USAGE,
                                 "--set: found \"%.60s\"; allowed: gossip.KEY "
                                 "of a topology, or seed",
                                 arguments->sets[i]);
        sets[count++] = arguments->sets[i];
    }
    const struct kith_algorithm *const own = algorithm_for(arguments->words[1]);
    (void)snprintf(algorithm, sizeof algorithm, "gossip.algorithm=%s",
                   own == NULL ? "local" : own->name);
    if (own != NULL && (own->flags & KITH_SHARES_GRADIENTS) != 0) {
        /* Gradients want a model that learns; nobody opens its data. */
        sets[count++] = "model={kind: mlp, layers: [4096, 4096]}";
        sets[count++] = "data={path: /none}";
    }
    sets[count++] = algorithm;
    sets[count++] = name;
    sets[count++] = peers;
    const enum kith_err err =
        kith_experiment_parse("topology", placeholder, strlen(placeholder),
                              sets, count, experiment, error);
    return err == KITH_OK
               ? KITH_EXIT_OK
               : kith_cli_fail(arguments, KITH_EXIT_USAGE, "%s", error);
}

static uint64_t rounds_of(const struct kith_topology *topology)
{
    const uint64_t period = kith_topology_period(topology);
    return period == 0 ? TRIES_MIN : period;
}

static void measure_degrees(const struct kith_topology *topology,
                            struct measured *measured)
{
    kith_id ids[KITH_DEGREE_MAX];
    measured->degree_least = UINT32_MAX;
    for (kith_id i = 0; i < topology->peers; i++)
        for (uint64_t round = 0; round < rounds_of(topology); round++) {
            const uint32_t count =
                kith_topology_neighbours(topology, i, round, ids, NULL);
            if (count < measured->degree_least)
                measured->degree_least = count;
            if (count > measured->degree_most)
                measured->degree_most = count;
            measured->edges += count;
        }
    measured->edges /= (double)rounds_of(topology);
    for (kith_id i = 0; i < topology->peers; i++) {
        const uint32_t links = kith_topology_links(topology, i, NULL, 0);
        if (links > measured->links)
            measured->links = links;
    }
    if (kith_topology_is_any_pair(topology->kind))
        measured->links = KITH_LINKS_ANY;
}

/* x <- x less its mean; the sum of squares that is left. */
static double centre(double *x, uint32_t n)
{
    double mean = 0, squares = 0;
    for (uint32_t i = 0; i < n; i++)
        mean += x[i] / n;
    for (uint32_t i = 0; i < n; i++) {
        x[i] -= mean;
        squares += x[i] * x[i];
    }
    return squares;
}

/* x <- W x; one exchange of a random pair where anybody may meet anybody. */
static void mix(const struct kith_topology *topology, uint64_t round,
                struct kith_rng *rng, double *x, double *next)
{
    kith_id in[KITH_DEGREE_MAX];
    double weights[KITH_DEGREE_MAX], weight;
    if (kith_topology_is_any_pair(topology->kind)) {
        const kith_id i = kith_rng_below(rng, topology->peers);
        const kith_id j =
            kith_topology_partner(topology, i, round, rng, NULL, 0, &weight);
        x[i] = x[j] = (x[i] + x[j]) / 2;
        return;
    }
    for (kith_id i = 0; i < topology->peers; i++) {
        const uint32_t count =
            kith_topology_sources(topology, i, round, in, weights);
        next[i] = x[i];
        for (uint32_t k = 0; k < count; k++)
            next[i] += weights[k] * (x[in[k]] - x[i]);
    }
    memcpy(x, next, topology->peers * sizeof *x);
}

static void draw(double *x, uint32_t n, struct kith_rng *rng)
{
    for (uint32_t i = 0; i < n; i++)
        x[i] = kith_rng_double(rng) - 0.5;
    (void)centre(x, n);
}

/* One random round after another, each from a random start. */
static void try_rounds(const struct kith_topology *topology, double *x,
                       double *next, struct measured *measured)
{
    const uint32_t n = topology->peers;
    const double wanted = TRY_VISITS / n;
    const uint64_t tries = wanted > TRIES_MAX   ? TRIES_MAX
                           : wanted < TRIES_MIN ? TRIES_MIN
                                                : (uint64_t)wanted;
    struct kith_rng rng;
    double sum = 0, squares = 0;
    kith_rng_init(&rng, topology->seed, KITH_STREAM_TEST, n);
    for (uint64_t round = 0; round < tries; round++) {
        draw(x, n, &rng);
        const double before = centre(x, n);
        mix(topology, round, &rng, x, next);
        const double left = centre(x, n) / before;
        sum += left;
        squares += left * left;
    }
    measured->tried = sum / (double)tries;
    measured->error = sqrt(
        fmax(0, squares / (double)tries - measured->tried * measured->tried) /
        (double)tries);
}

/* What a cycle leaves in the end: the mean of many, after as many more. */
static void try_cycles(const struct kith_topology *topology, double *x,
                       double *next, struct measured *measured)
{
    const uint64_t period = rounds_of(topology);
    const double wanted = TRY_VISITS / topology->peers / (double)period;
    const int cycles = wanted > 1000 ? 1000 : wanted < 20 ? 20 : (int)wanted;
    struct kith_rng rng;
    double squares = 0;
    kith_rng_init(&rng, topology->seed, KITH_STREAM_TEST, topology->peers);
    draw(x, topology->peers, &rng);
    for (int cycle = 0; cycle < cycles; cycle++) {
        const double before = sqrt(centre(x, topology->peers));
        for (uint32_t i = 0; i < topology->peers; i++)
            x[i] /= before;
        for (uint64_t round = 0; round < period; round++)
            mix(topology, round, &rng, x, next);
        if (cycle >= cycles / 2)
            squares += log(centre(x, topology->peers));
    }
    measured->rate = exp(squares / 2 / (cycles - cycles / 2));
}

static int measure(const struct cli_arguments *arguments,
                   const struct kith_topology *topology,
                   struct measured *measured)
{
    const size_t count = KITH_RHO_SCRATCH(topology->peers);
    double *scratch = malloc(count * sizeof *scratch);
    if (scratch == NULL)
        return kith_cli_fail(arguments, KITH_EXIT_RESOURCES,
                             "out of memory: %zu bytes",
                             count * sizeof *scratch);
    *measured = (struct measured){.rho = NAN,
                                  .rate = NAN,
                                  .expected = NAN,
                                  .worst = NAN,
                                  .tried = NAN,
                                  .error = NAN};
    measure_degrees(topology, measured);
    const bool repeats = kith_topology_period(topology) > 0;
    if (repeats && topology->doubly)
        measured->rho =
            kith_topology_rho(topology, scratch, &measured->settled);
    if (topology->peers > 1 && !repeats)
        try_rounds(topology, scratch, scratch + topology->peers, measured);
    if (repeats && !topology->kind->is_static && measured->rho > EXACT)
        try_cycles(topology, scratch, scratch + topology->peers, measured);
    if (topology->kind->contraction != NULL &&
        topology->peers <= CLOSED_PEERS_MAX && topology->peers > 1) {
        const struct kith_topology_contraction left =
            topology->kind->contraction(topology);
        measured->expected = left.mean;
        measured->worst = left.worst;
    }
    free(scratch);
    return KITH_EXIT_OK;
}

static const char *weights_of(const struct kith_topology *topology)
{
    if (kith_topology_is_any_pair(topology->kind))
        return "a half each";
    if (topology->kind->keys & KITH_TOPOLOGY_READS(WEIGHTS))
        return kith_weights_name(topology->options.weights);
    return topology->kind->weighted ? "its own" : "equal shares";
}

static const char *schedule_of(const struct kith_topology *topology)
{
    if (kith_topology_is_any_pair(topology->kind))
        return "any pair";
    if (topology->kind->is_static)
        return "static";
    return kith_topology_period(topology) > 0 ? "periodic" : "random";
}

static void print_json(const struct kith_topology *topology,
                       const struct measured *measured)
{
    const uint64_t period = kith_topology_period(topology);
    const uint64_t links =
        measured->links == KITH_LINKS_ANY ? UINT64_MAX : measured->links;
    kith_json_print(
        json_pack(
            "{s:s, s:I, s:I, s:s, s:b, s:b, s:s, s:I, s:{s:I, s:o, s:I}, s:o, "
            "s:o, s:o, s:b, s:o, s:o, s:o, s:o, s:o, s:o}",
            "name", topology->kind->name, "peers", (json_int_t)topology->peers,
            "seed", (json_int_t)topology->seed, "schedule",
            schedule_of(topology), "directed", topology->kind->directed,
            "doubly_stochastic", topology->doubly, "weights",
            weights_of(topology), "period", (json_int_t)period, "degree",
            "least", (json_int_t)measured->degree_least, "mean",
            kith_json_real(measured->edges / topology->peers), "most",
            (json_int_t)measured->degree_most, "links", kith_json_whole(links),
            "rho", kith_json_real(measured->rho), "spectral_gap",
            kith_json_real(1 - measured->rho), "rho_is_bound",
            !isnan(measured->rho) && !measured->settled, "rate",
            kith_json_real(measured->rate), "exact_rounds",
            kith_json_real(measured->rho <= EXACT ? (double)period
                                                  : (double)NAN),
            "expected_contraction", kith_json_real(measured->expected),
            "worst_contraction", kith_json_real(measured->worst),
            "measured_contraction", kith_json_real(measured->tried),
            "standard_error", kith_json_real(measured->error)),
        17);
}

static void KITH_PRINTF(2, 3) line(const char *key, const char *format, ...)
{
    va_list list;
    printf("  %-20s ", key);
    va_start(list, format);
    vprintf(format, list);
    va_end(list);
    putchar('\n');
}

static void print_spectrum(const struct kith_topology *topology,
                           const struct measured *measured)
{
    const uint64_t period = kith_topology_period(topology);
    const char *bound = measured->settled ? "" : "at least ";
    if (topology->kind->collective) {
        line("rho", "none: parts of an all-reduce travel, nothing is averaged");
        return;
    }
    if (!topology->doubly) {
        line("rho", "none: columns of W do not sum to 1, so averages drift; "
                    "for algorithms that weigh");
        return;
    }
    if (topology->kind->is_static) {
        line("rho", "%s%.9f", bound, measured->rho);
        line("spectral gap", "%s%.9f", measured->settled ? "" : "at most ",
             1 - measured->rho);
        if (measured->rho <= EXACT)
            line("exact", "after 1 round");
        return;
    }
    if (measured->rho <= EXACT)
        line("exact", "after %llu rounds, from round 0 on",
             (unsigned long long)period);
    line("rho of a cycle", "%s%.9f", bound, measured->rho);
    line("spectral gap", "%.9f a cycle", 1 - measured->rho);
    if (!isnan(measured->rate))
        line("rate of a cycle", "%.9f in the end; %.9f a round", measured->rate,
             pow(measured->rate, 1 / (double)period));
}

static void print_text(const struct kith_topology *topology,
                       const struct measured *measured)
{
    const char *each = kith_topology_is_any_pair(topology->kind)
                           ? "an exchange"
                           : "a random round";
    printf("%s, %u peers\n", topology->kind->name, topology->peers);
    line("schedule", "%s%s", schedule_of(topology),
         topology->kind->directed ? ", directed" : "");
    if (kith_topology_period(topology) > 0)
        line("period", "%llu",
             (unsigned long long)kith_topology_period(topology));
    if (!kith_topology_is_any_pair(topology->kind))
        line("degree", "%u to %u, %.3g on average", measured->degree_least,
             measured->degree_most, measured->edges / topology->peers);
    if (measured->links == KITH_LINKS_ANY)
        line("links", "everybody");
    else
        line("links", "%u at most", measured->links);
    line("weights", "%s", weights_of(topology));
    if (kith_topology_period(topology) > 0) {
        print_spectrum(topology, measured);
        return;
    }
    if (topology->peers == 1)
        return;
    if (!isnan(measured->expected))
        line("left expected", "%.9f of the spread after %s", measured->expected,
             each);
    if (!isnan(measured->worst) && measured->worst > measured->expected + EXACT)
        line("left at worst", "%.9f, from the slowest start", measured->worst);
    line("left measured", "%.6f +- %.6f", measured->tried, measured->error);
}

int kith_cli_list_topology(const struct cli_arguments *arguments)
{
    struct kith_experiment experiment;
    struct measured measured;
    int code = open_graph(arguments, &experiment);
    if (code != KITH_EXIT_OK)
        return code;
    const struct kith_topology *topology = &experiment.gossip.graph;
    code = measure(arguments, topology, &measured);
    if (code == KITH_EXIT_OK) {
        if (kith_cli_given(arguments, CLI_JSON))
            print_json(topology, &measured);
        else
            print_text(topology, &measured);
    }
    kith_experiment_close(&experiment);
    return code;
}
