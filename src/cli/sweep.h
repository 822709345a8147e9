/* Many simulations from one command: what to run, and running it. */
#ifndef KITH_SRC_CLI_SWEEP_H
#define KITH_SRC_CLI_SWEEP_H

#include "cli.h"
#include "kith/sweep.h"

/* Data sets that are open while a plan is checked; forked children use them. */
#define CLI_DATASETS_MAX 4u
struct cli_datasets {
    struct {
        struct kith_data_config config;
        struct kith_dataset set;
        bool open;
    } places[CLI_DATASETS_MAX];
    unsigned next; /* the place that is given up next */
};
/* The set of this experiment, *set NULL where it needs none. On an error
 * `error` (KITH_EXPERIMENT_ERROR_BYTES) says why. It stays open. */
KITH_MUST_CHECK enum kith_err
kith_cli_datasets_get(struct cli_datasets *datasets,
                      const struct kith_experiment *experiment,
                      struct kith_dataset **set, char *error);
void kith_cli_datasets_close(struct cli_datasets *datasets);

/* Files x grid: every cell is loaded and checked before anything runs. 0, or an
 * exit code with the error printed and nothing to free. */
int kith_cli_plan_open(const struct cli_arguments *arguments,
                       struct cli_datasets *datasets, struct kith_plan *plan);

struct sim_options;
/* --sweep, --seeds, --all-cells and --resume of `kith sim`. */
int kith_cli_sweep(const struct cli_arguments *arguments,
                   const struct sim_options *options);

#endif
