/* Evaluation, rows, checks and the summary. Owner: sim_result.c. */
#ifndef KITH_SIM_SIM_RESULT_H
#define KITH_SIM_SIM_RESULT_H

#include "kith/sim.h"

struct sim_world;
struct sim_results;

enum kith_err sim_results_open(struct sim_world *world);
void sim_results_close(struct sim_world *world);
/* A step of training is done; a model is not finite. */
void sim_results_step(struct sim_world *world);
void sim_results_nonfinite(struct sim_world *world);
void sim_evaluate(struct sim_world *world);
void sim_progress(struct sim_world *world);
void sim_summarise(struct sim_world *world, struct kith_summary *summary,
                   struct sim_report *report);

#endif
