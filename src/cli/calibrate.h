/* kith sim --calibrate: what a training step costs on this machine. */
#ifndef KITH_SRC_CLI_CALIBRATE_H
#define KITH_SRC_CLI_CALIBRATE_H

#include "cli.h"

/* Trains for about a second and writes the median step into the file as
 * compute.step, where none is given. 0, or an exit code. */
int cli_calibrate(const struct cli_arguments *arguments);
/* `text` with "compute: {step: VALUE}" added, malloc'd; NULL where `compute`
 * is written in a way that has no safe place for it. */
char *cli_add_step(const char *text, const char *value);

#endif
