/* --calibrate: what this machine can do, measured once and written down, so
 * that no simulation and no run that goes on depends on a clock. */
#ifndef KITH_SRC_CLI_CALIBRATE_H
#define KITH_SRC_CLI_CALIBRATE_H

#include "cli.h"

/* kith sim: trains for about a second and writes the median step into the file
 * as compute.step, where none is given. 0, or an exit code. */
int kith_cli_calibrate_step(const struct cli_arguments *arguments);
/* kith train, lab, peer: measures who multiplies matrices fastest, with how
 * many threads (lab: one), and the peaks, and writes compute.products,
 * .threads, .peak and .core_peak into the file of the experiment, where no
 * peak is given; products and threads that are given stay. */
int kith_cli_calibrate_compute(const struct cli_arguments *arguments,
                               const char *path, bool lab);
/* The same where `arguments` ask for it; a run that goes on (--resume) has its
 * choice in its checkpoint: KITH_EXIT_USAGE. */
int kith_cli_calibrate_if(const struct cli_arguments *arguments, bool lab);
/* The median step of the experiment's peer, with so many threads. train: NULL
 * where its model needs no data. 0, or an exit code. */
int kith_cli_measure_step(const struct cli_arguments *arguments,
                          const struct kith_experiment *experiment,
                          const struct kith_examples *train, uint32_t threads,
                          kith_ns *step_ns);

#endif
