/* Serves a report that is followed to browsers of this machine, until a signal
 * comes. Prints the address, and when the runs have ended. */
#ifndef KITH_SRC_CLI_FOLLOW_SERVER_H
#define KITH_SRC_CLI_FOLLOW_SERVER_H

#include "cli.h"
#include "kith/follow.h"

/* An exit code. */
int kith_cli_follow_serve(const struct cli_arguments *arguments,
                          struct kith_follow *follow);

#endif
