/* The way into this folder; sim.h says what the arguments are. */
#ifndef KITH_SIM_CENTRAL_RUN_H
#define KITH_SIM_CENTRAL_RUN_H

#include "kith/sim.h"

KITH_MUST_CHECK enum kith_err sim_central_run(const struct sim_options *options,
                                              struct kith_summary *summary,
                                              struct sim_report *report,
                                              char *error);

/* The same, and the models that the run ends with: what tests compare. */
struct sim_central_models {
    size_t dim;
    double *shared;  /* (dim): room for the experiment's parameters */
    double *workers; /* (peers, dim) */
};
KITH_MUST_CHECK enum kith_err
sim_central_probe(const struct sim_options *options,
                  struct kith_summary *summary, struct sim_report *report,
                  struct sim_central_models *models, char *error);

#endif
