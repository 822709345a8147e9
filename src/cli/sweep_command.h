/* Many simulations from one command: what to run, and running it. */
#ifndef KITH_SRC_CLI_SWEEP_COMMAND_H
#define KITH_SRC_CLI_SWEEP_COMMAND_H

#include "cli.h"
#include "kith/sweep.h"

/* Data sets that are open while a plan is checked; forked children use them. */
#define CLI_CACHE_SETS 4u
struct cli_dataset_cache {
    struct {
        struct kith_data_config config;
        struct kith_dataset set;
        bool open;
    } entries[CLI_CACHE_SETS];
    unsigned next; /* the entry that is replaced next */
};
/* The set of this experiment, *set NULL where it needs none. On an error
 * `error` (KITH_EXPERIMENT_ERROR_BYTES) says why. The cache keeps it open. */
KITH_MUST_CHECK enum kith_err
kith_cli_dataset_cache_get(struct cli_dataset_cache *cache,
                           const struct kith_experiment *experiment,
                           struct kith_dataset **set, char *error);
void kith_cli_dataset_cache_close(struct cli_dataset_cache *cache);

/* What is swept: a key, or a section whose values are mappings. */
#define CLI_VALUES_MAX 256u
struct cli_axis {
    char key[sizeof((struct kith_setting *)0)->key];
    char values[CLI_VALUES_MAX][KITH_SETTING_BYTES]; /* (count) */
    uint32_t count;
};
struct cli_axes {
    const struct cli_arguments *arguments;
    struct cli_axis list[KITH_SETTINGS_MAX]; /* (count) */
    uint32_t count;
};
/* Reads all --sweep. 0, or KITH_EXIT_USAGE with the error printed.
 * Test: tests/integration/test_sim_sweep.sh. */
int kith_cli_axes_read(const struct cli_arguments *arguments,
                       struct cli_axes *axes);
/* Do --sweep or --set say this key? */
bool kith_cli_axes_set(const struct cli_axes *axes, const char *key);

/* Files x grid: every cell is loaded and checked before anything runs. 0, or an
 * exit code with the error printed and nothing to free. */
int kith_cli_plan_open(const struct cli_arguments *arguments,
                       struct cli_dataset_cache *cache, struct kith_plan *plan);

struct sim_options;
/* --sweep, --seeds, --all-cells and --resume of `kith sim`. */
int kith_cli_sweep(const struct cli_arguments *arguments,
                   const struct sim_options *options);

#endif
