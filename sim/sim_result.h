/* Evaluation, rows, checks and the summary. Owner: sim_result.c. */
#ifndef KITH_SIM_SIM_RESULT_H
#define KITH_SIM_SIM_RESULT_H

#include "kith/sim.h"

struct sim_world;
struct sim_results;

enum kith_err sim_results_open(struct sim_world *world);
/* The average on all of the test set, and the checks that look at it. */
void sim_evaluate(struct sim_world *world);
/* The average and so many peers on the curve's part of the test set. */
void sim_result_point(struct sim_world *world, uint32_t peers);
/* Rows of so many peers, and of all, without evaluating any. */
void sim_result_rows(struct sim_world *world, uint32_t peers);
void sim_progress(struct sim_world *world);
/* The summary, and what of the report is not counted on the way. */
void sim_summarise(struct sim_world *world, struct kith_summary *summary);

#endif
