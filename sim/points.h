/* Points of a simulated run on its way: when they are due, and of what they
 * are. Planned by work that is counted (kith/curve.h): neither a wall clock nor
 * the number of threads decides, and no event stands for a point, so that the
 * trace knows nothing of them. Owner: points.c. */
#ifndef KITH_SIM_POINTS_H
#define KITH_SIM_POINTS_H

#include "kith/curve.h"
#include "kith/sim.h"

struct sim_world;

/* The next point is due at a step of all peers together, or at a time. */
struct sim_points {
    struct kith_curve curve;
    uint64_t due_step;
    kith_ns due_ns;
};

enum kith_err sim_points_open(struct sim_world *world);
/* Rows of the test set that its points are of; 0: all. */
uint32_t sim_points_rows(const struct sim_world *world);
/* After an event, where one is due: takes the point. */
void sim_points_take(struct sim_world *world);
void sim_points_summary(const struct sim_world *world,
                        struct kith_summary *summary);

#endif
