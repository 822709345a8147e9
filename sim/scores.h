/* How good the models of a run are at a point in time: of the average and of
 * peers, on all of the test set or on the curve's part. Owner: scores.c. */
#ifndef KITH_SIM_SCORES_H
#define KITH_SIM_SCORES_H

#include "kith/evaluation.h"
#include "kith/sim.h"

struct sim_world;
struct sim_scores; /* NULL: the model has no parameters */

/* What is looked at. */
struct sim_look {
    uint32_t peers; /* so many, spread evenly over the ranks */
    uint32_t own;   /* of those that live, likewise: scored, not only measured;
                       all where there are no more */
    bool part;      /* on the curve's part of the test set */
};
struct sim_scored {
    kith_id peer;
    bool own;                /* its model was scored */
    double squared;          /* |x_i - mean|^2 */
    struct kith_score score; /* NaN where it was not */
};

enum kith_err sim_scores_open(struct sim_world *world);
void sim_scores_close(struct sim_world *world);
/* All items have run: mean <- mean of z over live peers, whose count it is. */
uint32_t sim_scores_average(struct sim_world *world);
/* After it. Of the model that all share; without one of the mean, with running
 * statistics of its own. */
struct kith_score sim_scores_averaged(struct sim_world *world, bool part);
/* And of the live ones among the peers of the look, by rank, valid until the
 * next call. By as many threads as the run may have; the numbers are the same
 * with any. */
const struct sim_scored *sim_scores_peers(struct sim_world *world,
                                          const struct sim_look *look,
                                          uint32_t *count);
double sim_scores_correlation(struct sim_world *world,
                              double consensus_distance, uint32_t peers);

#endif
