/* MATCHA: a graph's edges fall into M matchings; each round matching m is
 * active with probability p_m, drawn by all alike, and
 *
 *   W = I - a sum_m B_m L_m,   B_m ~ Bernoulli(p_m).
 *
 * p maximises lambda_2(sum p_m L_m) with sum p_m = budget M, 0 <= p <= 1, by
 * projected supergradients v^T L_m v, v the Fiedler vector. a minimises the
 * largest eigenvalue, off the mean, of
 *
 *   E W^2 = I - 2 a Lb + a^2 (Lb^2 + 2 Lt),
 *   Lb = sum p_m L_m,  Lt = sum p_m (1 - p_m) L_m,
 *
 * which is what a round leaves of Gamma at worst. Critical edges get more, the
 * others share what is left of the budget. */
#include "topology_kinds.h"

#include <math.h>
#include <string.h>

#define COLOURS (KITH_DEGREE_MAX + 1)
/* The probabilities are an eigenvalue problem, solved again and again. */
#define MATCHA_PEERS_MAX 1024u
#define ASCENT_STEPS_MIN 30u
#define ASCENT_STEPS_MAX 200u
/* Entries of the table that a step may read once, all steps together. */
#define ASCENT_ENTRIES 2000000u
/* Steps without a better one before the ascent ends. */
#define ASCENT_PATIENCE 25u
#define STEP_FIRST 0.2
#define GOLDEN_STEPS 40

struct matcha {
    const struct kith_topology *graph; /* behind the record */
    uint32_t colours, matchings;       /* places of a row; how many are used */
    double p[COLOURS];
    double constant; /* a */
    struct kith_topology_contraction contraction;
    kith_id *at; /* (peers, colours) */
};

/* Weighted sums of the matchings' Laplacians. */
struct sums {
    const struct matcha *matcha;
    const double *p;
    double constant;
    double *y; /* (n) */
};

static enum kith_err prepare(struct kith_topology *topology, char *error)
{
    if (topology->options.budget == 0)
        topology->options.budget = 0.5;
    if (topology->peers > MATCHA_PEERS_MAX)
        return kith_topology_refuse(
            error, KITH_ELIMIT, "found matcha with %u peers; allowed: up to %u",
            topology->peers, MATCHA_PEERS_MAX);
    return kith_beneath_prepare(topology, error);
}

static uint32_t colours_of(const struct kith_topology *topology)
{
    return topology->peers < COLOURS ? topology->peers : COLOURS;
}

/* The record, the graph beneath, the table, and four vectors and Lanczos'. */
static size_t size(const struct kith_topology *topology)
{
    const size_t table = (size_t)topology->peers * colours_of(topology);
    return sizeof(struct matcha) + kith_beneath_size(topology) +
           (table + 1) / 2 * sizeof(uint64_t) +
           (5 * (size_t)topology->peers + 2 * KITH_RHO_STEPS) * sizeof(double);
}

/* out <- sum_m p_m L_m x. */
static void laplacian(const struct matcha *matcha, const double *p,
                      const double *x, double *out)
{
    for (kith_id i = 0; i < matcha->graph->peers; i++) {
        const kith_id *row = matcha->at + (size_t)i * matcha->colours;
        out[i] = 0;
        for (uint32_t m = 0; m < matcha->matchings; m++)
            if (row[m] != KITH_NOBODY)
                out[i] += p[m] * (x[i] - x[row[m]]);
    }
}

static void apply_laplacian(const void *context, const double *x, double *out)
{
    const struct sums *sums = context;
    laplacian(sums->matcha, sums->p, x, out);
}

/* out <- E W^2 x. */
static void apply_square(const void *context, const double *x, double *out)
{
    const struct sums *sums = context;
    const struct matcha *matcha = sums->matcha;
    const uint32_t n = matcha->graph->peers;
    const double a = sums->constant;
    double spread[COLOURS], *const y = sums->y;
    for (uint32_t m = 0; m < matcha->matchings; m++)
        spread[m] = matcha->p[m] * (1 - matcha->p[m]);
    laplacian(matcha, matcha->p, x, y);
    laplacian(matcha, matcha->p, y, out);
    for (uint32_t i = 0; i < n; i++)
        out[i] = x[i] - 2 * a * y[i] + a * a * out[i];
    laplacian(matcha, spread, x, y);
    for (uint32_t i = 0; i < n; i++)
        out[i] += 2 * a * a * y[i];
}

/* p <- the nearest with sum p = total and 0 <= p <= 1: p_m - shift, clipped. */
static void project(double *p, uint32_t count, double total)
{
    double low = -1, high = 1;
    for (uint32_t m = 0; m < count; m++) {
        low = fmin(low, p[m] - 1);
        high = fmax(high, p[m]);
    }
    for (int step = 0; step < 100; step++) {
        const double shift = (low + high) / 2;
        double sum = 0;
        for (uint32_t m = 0; m < count; m++)
            sum += fmin(1, fmax(0, p[m] - shift));
        if (sum > total)
            low = shift;
        else
            high = shift;
    }
    for (uint32_t m = 0; m < count; m++)
        p[m] = fmin(1, fmax(0, p[m] - high));
}

/* gradient[m] <- v^T L_m v, to length 1. */
static void supergradient(const struct matcha *matcha, const double *v,
                          double *gradient)
{
    double squares = 0;
    for (uint32_t m = 0; m < matcha->matchings; m++) {
        gradient[m] = 0;
        for (kith_id i = 0; i < matcha->graph->peers; i++) {
            const kith_id j = matcha->at[(size_t)i * matcha->colours + m];
            if (j != KITH_NOBODY && j < i)
                gradient[m] += (v[i] - v[j]) * (v[i] - v[j]);
        }
        squares += gradient[m] * gradient[m];
    }
    for (uint32_t m = 0; m < matcha->matchings && squares > 0; m++)
        gradient[m] /= sqrt(squares);
}

static void ascend(struct matcha *matcha, double budget, double *scratch)
{
    const uint32_t n = matcha->graph->peers, count = matcha->matchings;
    double p[COLOURS], gradient[COLOURS], best = 0;
    const struct sums sums = {.matcha = matcha, .p = p};
    double *const v = scratch, *const lanczos = scratch + n;
    const uint32_t wanted = ASCENT_ENTRIES / (n * count);
    const uint32_t steps = wanted > ASCENT_STEPS_MAX   ? ASCENT_STEPS_MAX
                           : wanted < ASCENT_STEPS_MIN ? ASCENT_STEPS_MIN
                                                       : wanted;
    uint32_t since = 0;
    for (uint32_t m = 0; m < count; m++)
        p[m] = matcha->p[m] = budget;
    for (uint32_t t = 1; t <= steps && since < ASCENT_PATIENCE; t++) {
        const double value =
            kith_spectrum_lowest(n, apply_laplacian, &sums, lanczos, v);
        since++;
        if (value > best * (1 + 1e-9)) {
            best = value;
            since = 0;
            memcpy(matcha->p, p, sizeof p);
        }
        supergradient(matcha, v, gradient);
        for (uint32_t m = 0; m < count; m++)
            p[m] += STEP_FIRST / sqrt(t) * gradient[m];
        project(p, count, budget * count);
    }
}

static double left_at(struct sums *sums, double constant, double *scratch)
{
    const uint32_t n = sums->matcha->graph->peers;
    sums->constant = constant;
    return kith_spectrum_find(n, apply_square, sums, 8 * (uint64_t)n, scratch)
        .high;
}

/* a by golden sections: the largest eigenvalue is convex in it. */
static void choose_constant(struct matcha *matcha, double *scratch)
{
    const uint32_t n = matcha->graph->peers;
    const double golden = (sqrt(5) - 1) / 2;
    double *const lanczos = scratch + n;
    struct sums sums = {.matcha = matcha, .p = matcha->p, .y = scratch};
    const struct kith_spectrum ends =
        kith_spectrum_find(n, apply_laplacian, &sums, 8 * (uint64_t)n, lanczos);
    double low = 0, high = 2 / (ends.low + ends.high);
    double a = high - golden * high, b = golden * high;
    double left = left_at(&sums, a, lanczos),
           right = left_at(&sums, b, lanczos);
    for (int step = 0; step < GOLDEN_STEPS; step++) {
        if (left < right) {
            high = b;
            b = a;
            right = left;
            a = high - golden * (high - low);
            left = left_at(&sums, a, lanczos);
        } else {
            low = a;
            a = b;
            left = right;
            b = low + golden * (high - low);
            right = left_at(&sums, b, lanczos);
        }
    }
    matcha->constant = (low + high) / 2;
    matcha->contraction.worst = left_at(&sums, matcha->constant, lanczos);
}

/* (tr E W^2 - 1) / (n - 1). */
static double mean_left(const struct matcha *matcha)
{
    const double n = matcha->graph->peers, a = matcha->constant;
    double trace = n;
    for (kith_id i = 0; i < matcha->graph->peers; i++) {
        double own = 0;
        for (uint32_t m = 0; m < matcha->matchings; m++) {
            if (matcha->at[(size_t)i * matcha->colours + m] == KITH_NOBODY)
                continue;
            const double p = matcha->p[m];
            own += p;
            trace += -2 * a * p + a * a * (p * p + 2 * p * (1 - p));
        }
        trace += a * a * own * own;
    }
    return (trace - 1) / (n - 1);
}

static enum kith_err build(struct kith_topology *topology, void *memory,
                           char *error)
{
    struct matcha *matcha = memory;
    char *const beneath = (char *)(matcha + 1);
    memset(matcha, 0, sizeof *matcha);
    matcha->graph = (const struct kith_topology *)(void *)beneath;
    const enum kith_err err = kith_beneath_build(topology, beneath, error);
    if (err != KITH_OK || topology->peers == 1)
        return err;
    matcha->colours = colours_of(topology);
    matcha->at = (kith_id *)(void *)(beneath + kith_beneath_size(topology));
    const size_t table = (size_t)topology->peers * matcha->colours;
    double *scratch = (double *)(void *)(matcha->at + (table + 1) / 2 * 2);
    matcha->matchings =
        kith_colour_edges(matcha->graph, matcha->colours, matcha->at);
    ascend(matcha, topology->options.budget, scratch);
    choose_constant(matcha, scratch);
    matcha->contraction.mean = mean_left(matcha);
    return KITH_OK;
}

static uint32_t degree(const struct kith_topology *topology, kith_id self)
{
    const struct matcha *matcha = topology->built;
    return matcha->graph->kind->degree(matcha->graph, self);
}

static void neighbours(const struct kith_topology *topology,
                       struct kith_neighbours *list)
{
    const struct matcha *matcha = topology->built;
    const kith_id *row = matcha->at + (size_t)list->self * matcha->colours;
    struct kith_rng rng = kith_topology_stream(topology, list->round);
    for (uint32_t m = 0; m < matcha->matchings; m++)
        if (kith_rng_double(&rng) < matcha->p[m] && row[m] != KITH_NOBODY)
            kith_list_add(list, row[m], matcha->constant);
}

static uint32_t links(const struct kith_topology *topology, kith_id self,
                      kith_id out[KITH_DEGREE_MAX])
{
    const struct matcha *matcha = topology->built;
    return kith_topology_neighbours(matcha->graph, self, 0, out, NULL);
}

static struct kith_topology_contraction
contraction(const struct kith_topology *topology)
{
    const struct matcha *matcha = topology->built;
    return matcha->contraction;
}

const struct kith_topology_kind kith_topology_matcha = {
    .name = "matcha",
    .paper = "Wang et al., ICC 2019 (1905.09435)",
    .summary = "matchings of a `graph`, active by turns within a `budget`",
    .weighted = true,
    .keys = KITH_TOPOLOGY_READS(BUDGET) | KITH_TOPOLOGY_READS(GRAPH),
    .prepare = prepare,
    .size = size,
    .build = build,
    .degree = degree,
    .neighbours = neighbours,
    .links = links,
    .contraction = contraction,
};
