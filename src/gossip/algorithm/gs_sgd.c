/* gs-SGD: of all peers' steps the k largest sums, found by sketches that are
 * added up along a binomial tree, with momentum and error feedback.
 *
 *   u_i <- rho u_i + g;  x_i <- x_i - eta u_i      each own step
 *   v_i <- e_i + phi - x_i                         at each cycle
 *   1. up     S <- S + S_child, at first S = sketch(top_{p1 k}(v_i))
 *   2. down   S of the root; all find the same p2 k candidates in it
 *   3. up     L <- L + L_child, at first L = v_i at the candidates
 *   4. down   G, the k largest of the root's L; ties by the lower index
 *   e_i <- v_i less what of it is in G;  u_i <- 0 there
 *   phi <- phi - a G / n;  x_i <- phi
 *
 * k = `share` of d, a = `rate`, rho = `momentum` (train.momentum is 0), p1 =
 * `truncate`, p2 = `candidates`; the table: sketching.h; e, phi and the last
 * way: feedback.h. A step of one's own is in v already times eta, so that v is
 * the papers' times the rate of its time. Each cycle's message is one size
 * whatever n is, and nothing is dropped on the way, as gTop-k's lists drop.
 *
 * Without `truncate` (0) the residuals fill the table and training stalls.
 * `candidates: 0` has no exact values: 3. is empty, G are estimates, and what
 * is applied and what is left no longer sum up to what was learnt.
 *
 * Who has not heard S sends nothing on, so that those below it are left out of
 * G, and hear so by its bits. Whoever hears nothing of G changes nothing
 * (feedback.h).
 *
 * Cost: 4 ceil(log2 n) rounds, 4 (n - 1) messages in all: of r c cells in the
 * first half, of p2 k values in the other. Of 3, 5, 7, ... peers a child that
 * has no children of its own is two rounds ahead when values go up, and its
 * parent asks for them again.
 *
 * Source: Dai et al., "gs-SGD", arXiv 2108.06004; Rothchild et al., "FetchSGD",
 * ICML 2020, and Ivkin et al., "Sketched-SGD", NeurIPS 2019, for masking and
 * exact values; bits and blocks of phi are ours.
 * Test: unit/test_gs_sgd.c, unit/test_gs_sgd_message.c,
 * unit/test_gs_sgd_learns.c (T3.5). */
#include <math.h>
#include <string.h>

#include "sketching.h"

enum { MOMENTUM = SKETCHING_VECTORS, VECTORS };

_Static_assert(VECTORS <= KITH_ALGORITHM_VECTORS_MAX, "a worker's vectors");

/* The four ways, each of ceil(log2 n) rounds. */
enum way { UP, DOWN, VALUES_UP, SUMS_DOWN };

/* Rounds of a way. Who is alone has none, and is its root. */
static uint64_t height(const struct kith_algebra *algebra)
{
    return kith_collective_phases(algebra) / 4;
}

static enum way way_of(const struct kith_algebra *algebra)
{
    const uint64_t rounds = height(algebra);
    return rounds == 0 ? UP
                       : (enum way)(kith_collective_phase(algebra) / rounds);
}

/* Of the way. */
static uint64_t round_of_way(const struct kith_algebra *algebra)
{
    return kith_collective_phase(algebra) - way_of(algebra) * height(algebra);
}

/* Numbers of an earlier cycle are none: who comes late into one, or leaps
 * ahead, has begun nothing. Kept as `merged` is. */
enum state { BEGUN = 1, FOUND = 2 };
static double state_of(const struct kith_algebra *algebra, enum state state)
{
    const uint64_t cycle = algebra->round / kith_collective_phases(algebra);
    return 2 * (double)cycle + state;
}
static void enter(struct kith_algebra *algebra, enum state state)
{
    algebra->edge_scalars[1] = state_of(algebra, state);
}
static bool is_in(const struct kith_algebra *algebra, enum state state)
{
    return algebra->edge_scalars[1] == state_of(algebra, state);
}

static bool is_exact(const struct kith_algebra *algebra)
{
    return algebra->coefficients[KITH_GOSSIP_CANDIDATES] > 0;
}

static size_t slice(const struct kith_algebra *algebra)
{
    const size_t values = kith_sketching_value_bytes(algebra);
    const size_t list = kith_feedback_bytes(algebra);
    return is_exact(algebra) && values > list ? values : list;
}

static size_t payload(const struct kith_algebra *algebra)
{
    const size_t table = kith_sketching_bytes(algebra), other = slice(algebra);
    return table > other ? table : other;
}

static void direction(struct kith_algebra *algebra)
{
    const double rho = algebra->coefficients[KITH_GOSSIP_MOMENTUM];
    const struct kith_term gradient = {1, algebra->gradient, NULL};
    if (rho == 0)
        return;
    kith_algorithm_combine_only(algebra->backend, algebra->trained, rho,
                                algebra->vectors[MOMENTUM], 1, &gradient);
    algebra->backend->copy(algebra->trained, algebra->gradient,
                           algebra->vectors[MOMENTUM]);
}

static void begin(struct kith_algebra *algebra)
{
    const struct kith_top_list none = {.count = 0};
    kith_feedback_hold_own(algebra, &none);
    kith_sketching_begin(algebra);
    algebra->scalars[COLLECTIVE_COUNT] = 1;
    *kith_feedback_merged(algebra) = 0;
    enter(algebra, BEGUN);
}

/* S is there: own values at its candidates. Estimates are of all that are in S
 * already. */
static void begin_values(struct kith_algebra *algebra)
{
    if (!is_in(algebra, FOUND))
        algebra->scalars[COLLECTIVE_COUNT] = 0;
    if (algebra->scalars[COLLECTIVE_COUNT] == 0)
        return;
    const struct kith_top_list list = kith_sketching_find(algebra);
    for (uint32_t n = 0; n < list.count && is_exact(algebra); n++)
        list.entries[n].value =
            kith_feedback_claim(algebra, list.entries[n].index);
    kith_feedback_hold_own(algebra, &list);
    if (is_exact(algebra)) {
        algebra->scalars[COLLECTIVE_COUNT] = 1;
        *kith_feedback_merged(algebra) = 0;
    }
}

/* Who has heard nothing says so: numbers of nobody. */
static void make(struct kith_algebra *algebra, struct kith_work_edge *edge)
{
    const enum way way = way_of(algebra);
    if (kith_collective_phase(algebra) == 0)
        begin(algebra);
    else if (way == VALUES_UP && round_of_way(algebra) == 0)
        begin_values(algebra);
    const bool is_empty = (way == UP && !is_in(algebra, BEGUN)) ||
                          (way == VALUES_UP && !is_exact(algebra));
    edge->scalars_sent[0] = is_empty ? 0 : algebra->scalars[COLLECTIVE_COUNT];
    if (algebra->dim == 0 || !kith_feedback_sends(algebra))
        return;
    memset(algebra->sent, 0, way <= DOWN ? payload(algebra) : slice(algebra));
    if (edge->scalars_sent[0] == 0)
        return;
    if (way <= DOWN)
        kith_sketching_write(algebra);
    else if (way == VALUES_UP)
        kith_sketching_write_values(algebra);
    else
        kith_feedback_write_down(algebra);
}

static bool is_plausible(const struct kith_algebra *algebra,
                         const struct kith_work_edge *edge)
{
    const double models = edge->scalars_received[0];
    return models >= 1 && models <= kith_collective_most(algebra, edge->peer,
                                                         round_of_way(algebra));
}

static void merged(struct kith_algebra *algebra, double models)
{
    *kith_feedback_merged(algebra) +=
        (double)(UINT64_C(1) << round_of_way(algebra));
    algebra->scalars[COLLECTIVE_COUNT] += models;
}

static void merge_table(struct kith_algebra *algebra,
                        struct kith_work_edge *edge)
{
    const double models = edge->scalars_received[0];
    if (models == 0 || !is_in(algebra, BEGUN))
        return;
    edge->refused = !is_plausible(algebra, edge) ||
                    !kith_sketching_is_sane(algebra, models);
    if (edge->refused)
        return;
    kith_sketching_add(algebra);
    merged(algebra, models);
}

/* Where a parent has heard nothing its child hears nothing. */
static void take_table(struct kith_algebra *algebra,
                       struct kith_work_edge *edge)
{
    const double models = edge->scalars_received[0];
    if (models == 0)
        return;
    edge->refused = !(models >= 1 && models <= algebra->peers) ||
                    !kith_sketching_is_sane(algebra, models);
    if (edge->refused)
        return;
    kith_sketching_take(algebra);
    algebra->scalars[COLLECTIVE_COUNT] = models;
    enter(algebra, FOUND);
}

static void merge_values(struct kith_algebra *algebra,
                         struct kith_work_edge *edge)
{
    const double models = edge->scalars_received[0];
    if (models == 0 || algebra->scalars[COLLECTIVE_COUNT] == 0 ||
        !is_exact(algebra) || !kith_sketching_are_ours(algebra))
        return;
    edge->refused = !is_plausible(algebra, edge) ||
                    !kith_sketching_are_values_sane(algebra, models);
    if (edge->refused)
        return;
    kith_sketching_add_values(algebra);
    merged(algebra, models);
}

/* u <- 0 where this peer's part of v is in G. */
static void mask(struct kith_algebra *algebra)
{
    if (algebra->coefficients[KITH_GOSSIP_MOMENTUM] == 0)
        return;
    for (size_t i = 0; i < algebra->trained; i++)
        if (kith_feedback_get(algebra, algebra->vectors[FEEDBACK_BORN], i) ==
            FEEDBACK_OWN)
            kith_feedback_put(algebra, algebra->vectors[MOMENTUM], i, 0);
}

static void merge(struct kith_algebra *algebra, struct kith_work_edge *edge)
{
    edge->delta_sum = 0;
    if (algebra->dim == 0)
        return; /* its messages are empty */
    switch (way_of(algebra)) {
    case UP:
        merge_table(algebra, edge);
        return;
    case DOWN:
        take_table(algebra, edge);
        return;
    case VALUES_UP:
        merge_values(algebra, edge);
        return;
    case SUMS_DOWN:
        if (kith_feedback_merge_down(algebra, edge))
            mask(algebra);
        return;
    }
}

/* The root: G <- the k largest of L. */
static double choose(struct kith_algebra *algebra)
{
    struct kith_top_list list = kith_feedback_list(algebra, FEEDBACK_OURS);
    for (size_t i = 0; i < algebra->dim; i++) {
        const double sum =
            kith_feedback_get(algebra, algebra->vectors[FEEDBACK_LIST], i);
        if (sum != 0 && fabs(sum) <= FEEDBACK_VALUE_MAX)
            kith_top_list_offer(&list, (uint32_t)i, sum);
    }
    kith_top_list_finish(&list);
    kith_feedback_hold_own(algebra, &list);
    const double changed = kith_feedback_apply(algebra);
    mask(algebra);
    return changed;
}

/* At the end of a way up the root has the sum, and all others nothing. */
static double finish(struct kith_algebra *algebra)
{
    const enum way way = way_of(algebra);
    const bool is_alone = height(algebra) == 0;
    if (algebra->dim == 0 ||
        (!is_alone && round_of_way(algebra) + 1 != height(algebra)))
        return 0;
    if (way == UP && algebra->self == 0 && is_in(algebra, BEGUN))
        enter(algebra, FOUND);
    if (is_alone)
        begin_values(algebra);
    if ((is_alone || way == VALUES_UP) && algebra->self == 0 &&
        algebra->scalars[COLLECTIVE_COUNT] > 0)
        return choose(algebra);
    if ((way == UP || way == VALUES_UP) && algebra->self != 0)
        algebra->scalars[COLLECTIVE_COUNT] = 0;
    return 0;
}

const struct kith_algorithm kith_algorithm_gs_sgd = {
    .name = "gs-sgd",
    .paper = "Dai et al., 2021",
    .summary = "the k largest sums of all differences, found by sketches "
               "along a binomial tree, with momentum and error feedback",
    .differs = "what is not applied stays with its owner, told by bits; "
               "blocks of the outer point travel along",
    FEEDBACK,
    .schedule = "collective-tree-twice",
    .keys = KITH_GOSSIP_READS(SHARE) | KITH_GOSSIP_READS(RATE) |
            KITH_GOSSIP_READS(MOMENTUM) | KITH_GOSSIP_READS(ROWS) |
            KITH_GOSSIP_READS(COLUMNS) | KITH_GOSSIP_READS(TRUNCATE) |
            KITH_GOSSIP_READS(CANDIDATES),
    .initial = {[KITH_GOSSIP_SHARE] = 0.01,
                [KITH_GOSSIP_RATE] = 1,
                [KITH_GOSSIP_ROWS] = 5,
                [KITH_GOSSIP_COLUMNS] = 4,
                [KITH_GOSSIP_TRUNCATE] = 1,
                [KITH_GOSSIP_CANDIDATES] = 4},
    .vectors = VECTORS,
    .payload = payload,
    .slice = slice,
    .scratch_bytes = kith_sketching_scratch,
    .direction = direction,
    .make = make,
    .merge = merge,
    .finish = finish,
};
