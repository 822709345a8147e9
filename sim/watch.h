/* Liveness, and how often each mark was reached. Every call accepts a world
 * that is not watched. Owner: watch.c. */
#ifndef KITH_SIM_WATCH_H
#define KITH_SIM_WATCH_H

#include "kith/check.h"
#include "kith/node.h"

struct kith_liveness;
struct sim_world;

struct sim_watch {
    struct kith_liveness *liveness; /* NULL: nobody watches */
    kith_ns until_ns;               /* the run winds up; 0: not yet */
};

enum kith_err sim_watch_open(struct sim_world *world);
void sim_watch_close(struct sim_world *world);
/* Not of a run that is winding up: nothing is promised of it. */
void sim_watch_mark(struct sim_world *world, kith_id peer,
                    const struct kith_mark *mark);
/* A message arrives at another time than the law of links says. */
void sim_watch_unlawful(struct sim_world *world, kith_id from, kith_id to,
                        kith_ns arrives_ns);
/* From now on nothing is promised. */
void sim_watch_wind_up(struct sim_world *world);
/* As far as it is known. */
double sim_watch_live(const struct sim_world *world);
/* The run is over: into the report. True when the law of links was broken, or
 * nobody asserted `live`, and it was not. */
bool sim_watch_finish(struct sim_world *world, struct kith_values *values);

#endif
