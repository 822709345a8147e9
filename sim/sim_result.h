/* Evaluation, rows, checks and the summary. Owner: sim_result.c. */
#ifndef KITH_SIM_SIM_RESULT_H
#define KITH_SIM_SIM_RESULT_H

#include "kith/sim.h"

struct sim_world;
struct sim_results;

enum kith_err sim_results_open(struct sim_world *world);
void sim_results_close(struct sim_world *world);
void sim_evaluate(struct sim_world *world);
void sim_progress(struct sim_world *world);
/* The summary, and what of the report is not counted on the way. */
void sim_summarise(struct sim_world *world, struct kith_summary *summary);

#endif
