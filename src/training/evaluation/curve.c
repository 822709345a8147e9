/* What a run's evaluations on the way may cost. See kith/curve.h.
 *
 * Work is counted as FLOP of rows that go forward. One element of a model that
 * is read for a mean or a distance counts PASS_FLOP of them: memory is slower
 * than arithmetic, and on small models such reading is most of a point. */
#include "kith/curve.h"

#include <math.h>

#include "kith/assert.h"
#include "kith/evaluation.h"

#define PASS_FLOP 16.0
/* Peers scored beside the average, as many as a band needs. */
#define PEERS_MOST 16u
/* Models without data have a target for each peer. */
#define TARGETS_MOST 4096u
#define WAY (KITH_CURVE_POINTS - 1)
/* FLOP that a core does in a nanosecond: half of the floor's time is for them.
 */
#define CORE_FLOP_PER_NS (KITH_CURVE_FLOOR_FLOP / (0.5 * KITH_CURVE_FLOOR_NS))

/* Rows of a point: an accuracy of 90 % is 1, 2 and 4 points uncertain. Windows
 * of tokens have many scores each. */
struct rows {
    double least, wanted;
    double enough; /* for more points instead, where time is measured */
    double most;
};
static const struct rows of_images = {50, 200, 500, 1000},
                         of_tokens = {4, 16, 16, 64};

struct costs {
    double row;     /* of one model */
    double model;   /* of reading one */
    double average; /* of making it, and its running statistics */
    struct rows rows;
};

static struct costs costs_of(const struct kith_curve_run *run,
                             const struct kith_model_size *size)
{
    const struct kith_experiment *experiment = run->experiment;
    const bool tokens = experiment->model->input == KITH_INPUT_TOKENS;
    const double batch = fmax(experiment->train.batch, KITH_ESTIMATE_ROWS);
    const double all = run->test == NULL ? fmin(experiment->peers, TARGETS_MOST)
                                         : (double)run->test->count;
    struct costs costs = {.row = size->flops,
                          .model = PASS_FLOP * (double)size->dim,
                          .rows = tokens ? of_tokens : of_images};
    costs.rows.least = fmin(costs.rows.least, all);
    costs.rows.wanted = fmin(costs.rows.wanted, all);
    costs.rows.enough = fmin(costs.rows.enough, all);
    costs.rows.most = fmin(costs.rows.most, all);
    costs.average = costs.model * fmax(run->averaged, 1);
    if (run->averaged > 0 && size->gossiped > size->trained)
        costs.average += KITH_ESTIMATE_BATCHES * batch * size->flops;
    return costs;
}

/* What is left of a point's budget for the rows of each model. */
static double rows_of(const struct costs *costs, uint32_t peers, double budget)
{
    const double left = budget - costs->average - costs->model * peers;
    return costs->row > 0 ? left / (costs->row * (1.0 + peers))
           : left >= 0    ? INFINITY
                          : -INFINITY;
}

static void fit(struct kith_curve_plan *plan, const struct costs *costs,
                double budget, bool measured)
{
    if (measured &&
        rows_of(costs, plan->peers, budget / WAY) < costs->rows.enough)
        plan->points = WAY / 2;
    const double point = budget / plan->points;
    while (plan->peers > 1 &&
           rows_of(costs, plan->peers, point) < costs->rows.wanted)
        plan->peers /= 2;
    const double rows = rows_of(costs, plan->peers, point);
    plan->rows =
        (uint32_t)fmax(costs->rows.least, fmin(rows, costs->rows.most));
    if (rows >= costs->rows.least)
        return;
    const double least = costs->average + costs->model * plan->peers +
                         costs->row * (1.0 + plan->peers) * costs->rows.least;
    KITH_ASSERT(least > point);
    plan->points = (uint32_t)(budget / least);
}

struct kith_curve_plan kith_curve_plan(const struct kith_curve_run *run)
{
    const struct kith_experiment *experiment = run->experiment;
    const struct kith_model_size size =
        kith_model_size_of(experiment->model, &experiment->model_config);
    struct kith_curve_plan plan = {
        .points = WAY,
        .peers = run->averaged < PEERS_MOST ? run->averaged : PEERS_MOST};
    if (size.dim == 0 || experiment->evaluations == KITH_EVALUATE_END ||
        experiment->evaluations == KITH_EVALUATE_EVERY)
        return (struct kith_curve_plan){.points = 0};
    if (experiment->evaluations == KITH_EVALUATE_FULL ||
        experiment->stop.patience > 0)
        return plan;
    const struct costs costs = costs_of(run, &size);
    const double step = fmax(experiment->train.batch * size.training_flops +
                                 2 * PASS_FLOP * (double)size.dim,
                             CORE_FLOP_PER_NS * (double)run->step_ns);
    const double share =
        run->measured ? KITH_CURVE_SHARE / 2 : KITH_CURVE_SHARE;
    plan.bounded = true;
    if (run->steps > 0)
        fit(&plan, &costs,
            fmax(share * run->steps * step, KITH_CURVE_FLOOR_FLOP),
            run->measured);
    else
        plan.rows = (uint32_t)costs.rows.wanted;
    return plan;
}

struct kith_curve kith_curve_start(const struct kith_curve_plan *plan)
{
    KITH_ASSERT(plan->points <= WAY);
    return (struct kith_curve){.plan = *plan,
                               .next = 1,
                               .next_row = 1,
                               .left_out =
                                   plan->bounded ? WAY - plan->points : 0};
}

/* How many of so many parts' ends lie at or before here. */
static uint32_t passed(uint32_t points, const struct kith_progress *progress)
{
    const double parts = points + 1.0;
    double most = 0;
    if (progress->steps_total > 0)
        most = progress->steps * parts / progress->steps_total;
    if (progress->time_total_ns > 0)
        most = fmax(most, (double)progress->time_ns * parts /
                              (double)progress->time_total_ns);
    return (uint32_t)fmin(most, points);
}

/* Moves `next` behind what is passed; was there anything? */
static bool move_on(uint32_t *next, uint32_t points,
                    const struct kith_progress *progress)
{
    const uint32_t here = passed(points, progress);
    if (*next > here)
        return false;
    *next = here + 1;
    return true;
}

static bool affords(const struct kith_curve *curve, kith_ns run_ns)
{
    const double most =
        fmax(KITH_CURVE_SHARE * (double)run_ns, (double)KITH_CURVE_FLOOR_NS);
    return !curve->plan.bounded ||
           (double)(curve->spent_ns + curve->last_ns) <= most;
}

enum kith_curve_due kith_curve_look(struct kith_curve *curve,
                                    const struct kith_progress *progress,
                                    kith_ns run_ns)
{
    const struct kith_curve_plan *plan = &curve->plan;
    const uint32_t rows = plan->bounded ? WAY : plan->points;
    const bool row = move_on(&curve->next_row, rows, progress);
    const bool point = move_on(&curve->next, plan->points, progress);
    if (point && affords(curve, run_ns))
        return KITH_CURVE_POINT;
    curve->left_out += point ? 1 : 0;
    return row || point ? KITH_CURVE_ROW : KITH_CURVE_NOTHING;
}

double kith_curve_next(const struct kith_curve *curve)
{
    const struct kith_curve_plan *plan = &curve->plan;
    const uint32_t rows = plan->bounded ? WAY : plan->points;
    return fmin(fmin(curve->next, plan->points + 1.0) / (plan->points + 1.0),
                fmin(curve->next_row, rows + 1.0) / (rows + 1.0));
}

void kith_curve_pass(struct kith_curve *curve,
                     const struct kith_progress *progress)
{
    (void)move_on(&curve->next_row, WAY, progress);
    (void)move_on(&curve->next, curve->plan.points, progress);
}

void kith_curve_took(struct kith_curve *curve, kith_ns spent_ns)
{
    KITH_ASSERT(spent_ns >= 0);
    curve->done++;
    curve->spent_ns += spent_ns;
    curve->last_ns = spent_ns;
}
