/* The curve of a simulated run. See points.h. */
#include "sim/points.h"

#include <math.h>

#include "kith/assert.h"
#include "sim/world.h"

static struct kith_progress progress_of(const struct sim_world *world)
{
    const double peers = world->peer_count;
    return (struct kith_progress){
        .steps = (double)world->steps_done,
        .steps_total =
            world->steps == UINT64_MAX ? 0 : (double)world->steps * peers,
        .time_ns = sim_time(world),
        .time_total_ns = world->experiment->stop.time_ns};
}

/* Steps that all peers make, as far as the file says; where a time ends the
 * run, as many as fit into it. */
static double steps_of(const struct sim_world *world)
{
    const struct kith_experiment *experiment = world->experiment;
    const double peers = world->peer_count;
    double steps = INFINITY;
    if (world->steps != UINT64_MAX)
        steps = (double)world->steps * peers;
    if (experiment->stop.time_ns > 0)
        steps = fmin(steps, (double)experiment->stop.time_ns /
                                (double)experiment->compute.step_ns * peers);
    KITH_ASSERT(isfinite(steps));
    return steps;
}

/* Of whatever comes next, a point or a row; rounded down, for who asks early
 * asks again. */
static void set_due(struct sim_world *world)
{
    struct sim_points *points = &world->points;
    const struct kith_progress run = progress_of(world);
    const double next = kith_curve_next(&points->curve);
    points->due_step = UINT64_MAX;
    points->due_ns = KITH_NEVER;
    if (next >= 1)
        return;
    if (run.steps_total > 0)
        points->due_step = (uint64_t)(run.steps_total * next);
    if (run.time_total_ns > 0)
        points->due_ns = (kith_ns)((double)run.time_total_ns * next);
}

/* Nobody would see the points of a run without a database. */
enum kith_err sim_points_open(struct sim_world *world)
{
    const struct kith_dataset *dataset = world->options.dataset;
    struct kith_curve_plan plan = {.points = 0};
    if (sim_is_stored(world) && world->dim > 0) {
        const struct kith_curve_run run = {.experiment = world->experiment,
                                           .test =
                                               dataset ? &dataset->test : NULL,
                                           .steps = steps_of(world),
                                           .averaged = world->peer_count};
        plan = kith_curve_plan(&run);
    }
    world->points.curve = kith_curve_start(&plan);
    set_due(world);
    return KITH_OK;
}

uint32_t sim_points_rows(const struct sim_world *world)
{
    return world->points.curve.plan.rows;
}

/* Bytes count when they leave the outbox: rows are of what was sent by now, not
 * of what the queue has let go. */
void sim_points_take(struct sim_world *world)
{
    struct kith_curve *curve = &world->points.curve;
    const struct kith_progress progress = progress_of(world);
    KITH_ASSERT(!sim_ended(world));
    sim_outbox_flush(world);
    switch (kith_curve_look(curve, &progress, 0)) {
    case KITH_CURVE_NOTHING:
        break;
    case KITH_CURVE_ROW:
        sim_result_rows(world, curve->plan.peers);
        break;
    case KITH_CURVE_POINT:
        if (curve->plan.bounded)
            sim_result_point(world, curve->plan.peers);
        else
            sim_evaluate(world);
        kith_curve_took(curve, 0);
        break;
    }
    set_due(world);
}

void sim_points_summary(const struct sim_world *world,
                        struct kith_summary *summary)
{
    kith_summary_curve(summary, &world->points.curve);
}
