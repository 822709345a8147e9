/* Labs of --measure, and what they took. */
#ifndef KITH_SRC_CLI_MEASURE_LAB_H
#define KITH_SRC_CLI_MEASURE_LAB_H

#include <signal.h>

#include "cli.h"
#include "kith/lab.h"
#include "swap_cost.h"

/* Of two labs the longer one has so many times as many steps; what it takes
 * more has no start in it. */
#define CLI_LAB_STEPS 2000u /* of the shorter one, at most */
#define CLI_LAB_LONGER 3u
#define CLI_LAB_PEERS_MAX 64u

/* Where the labs of one measurement are, and what signals did before. */
struct cli_place {
    char folder[KITH_PATH_BYTES_MAX]; /* in $TMPDIR */
    sigset_t mask;
    struct sigaction actions[3];
};
/* From here on a signal ends the lab that runs. 0, or an exit code: no folder
 * could be made. */
int kith_cli_place_open(const struct cli_arguments *arguments,
                        struct cli_place *place);
void kith_cli_place_close(const struct cli_place *place);
/* The exit code of labs that ended so. */
int kith_cli_labs_ended(const struct cli_arguments *arguments,
                        enum kith_err err, const char *error);

/* Runs one. */
enum kith_err kith_cli_spend(const struct kith_experiment *experiment,
                             const struct kith_dataset *dataset,
                             const char *folder, struct cli_spent *spent,
                             char error[KITH_LAB_ERROR_BYTES]);

#endif
