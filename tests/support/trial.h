/* A trial: an algorithm in the simulator on a tiny model in float64, and what
 * every peer holds at the end.
 *
 *   f_i(x) = |x - b_i|^2 / 2      gradient x - b_i      all x start at 0
 *
 * Steps take 1 ms, messages nothing to speak of, so that a strict round t is
 * over before step t + 1, and a reference of a few lines can follow. */
#ifndef KITH_TESTS_TRIAL_H
#define KITH_TESTS_TRIAL_H

#include "kith/sim.h"

#define TRIAL_PEERS_MAX 64
#define TRIAL_DIM 4

struct trial {
    /* Of the experiment file; NULL: nothing, or what stands here. */
    const char *gossip; /* inside `gossip: {}`, e.g. "algorithm: d2, ..." */
    const char *train;  /* inside `train: {}` after naive64 and the rate */
    const char *rest;   /* further sections, each on a line of its own */
    const char *model;  /* {kind: quadratic, dim: 4} */
    unsigned peers, steps;
    double rate; /* 0: 0.05 */
    uint64_t seed;

    /* Found. */
    double z[TRIAL_PEERS_MAX][TRIAL_DIM];
    struct kith_summary summary;
    struct sim_report report;
    char error[KITH_EXPERIMENT_ERROR_BYTES];
};

/* KITH_OK, or what the experiment or the simulator said, with `error`. */
enum kith_err trial_run(struct trial *trial);
/* b_i of every peer: one isolated step at rate 1 arrives there. */
void trial_targets(unsigned peers, uint64_t seed,
                   double b[TRIAL_PEERS_MAX][TRIAL_DIM]);
/* max |z - x| over peers and coordinates, relative to the largest |x|. */
double trial_distance(const struct trial *trial,
                      double x[TRIAL_PEERS_MAX][TRIAL_DIM]);

#endif
