/* What must hold after the last fault of a run (kith/liveness.h), and what a
 * search calls coverage: how often each mark was reached. */
#include "sim/watch.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "kith/assert.h"
#include "kith/check.h"
#include "sim/world.h"

enum kith_err sim_watch_open(struct sim_world *world)
{
    KITH_ASSERT(world->watch.liveness == NULL);
    const struct kith_experiment *experiment = world->experiment;
    if (world->central || experiment->central.present ||
        !(world->options.watch || kith_liveness_wanted(experiment)))
        return KITH_OK;
    const enum kith_err err = kith_liveness_open(
        sim_node_config(world), experiment, &world->watch.liveness);
    for (kith_id peer = 0; world->watch.liveness && peer < world->peer_count;
         peer++)
        if (!sim_is_honest(world, peer))
            kith_liveness_exempt(world->watch.liveness, peer);
    return err;
}

void sim_watch_close(struct sim_world *world)
{
    kith_liveness_close(world->watch.liveness);
    world->watch.liveness = NULL;
}

/* Coverage counts marks of all runs, what is live is asked of some. */
void sim_watch_mark(struct sim_world *world, kith_id peer,
                    const struct kith_mark *mark)
{
    KITH_ASSERT(mark->kind < KITH_MARK_COUNT);
    world->report.marks[mark->kind]++;
    kith_liveness_mark(world->watch.liveness, sim_time(world), peer, mark);
}

/* The first one is told: those that follow are mostly its consequence. */
void sim_watch_unlawful(struct sim_world *world, kith_id from, kith_id to,
                        kith_ns arrives_ns)
{
    char *text = world->report.not_live;
    KITH_ASSERT(sim_is_watched(world));
    if (text[0] == '\0')
        (void)snprintf(text, sizeof world->report.not_live,
                       "a message of peer %" PRIu32 " for peer %" PRIu32
                       " arrives at %.6f s, which is not the law of links",
                       from, to, 1e-9 * (double)arrives_ns);
}

/* Nobody begins anything from now on: what has not come by then is late. */
void sim_watch_wind_up(struct sim_world *world)
{
    KITH_ASSERT(world->watch.until_ns == 0);
    world->watch.until_ns = sim_time(world);
    if (world->watch.liveness)
        kith_liveness_finish(world->watch.liveness, sim_time(world));
}

double sim_watch_live(const struct sim_world *world)
{
    return world->watch.liveness ? kith_liveness_value(world->watch.liveness)
                                 : (double)NAN;
}

bool sim_watch_finish(struct sim_world *world, struct kith_values *values)
{
    if (!world->watch.liveness)
        return false;
    if (world->watch.until_ns == 0) /* stopped, or nothing left to happen */
        sim_watch_wind_up(world);
    values->live = kith_liveness_value(world->watch.liveness);
    const bool is_lawful = world->report.not_live[0] == '\0';
    if (is_lawful)
        memcpy(world->report.not_live,
               kith_liveness_text(world->watch.liveness),
               sizeof world->report.not_live);
    return !is_lawful ||
           (values->live <= 0 && !kith_checks_ask(world->experiment, "live"));
}
