/* One peer of a cluster, as `kith peer` and `kith doctor` open it. */
#ifndef KITH_CLI_PEER_OPEN_H
#define KITH_CLI_PEER_OPEN_H

#include "cli.h"
#include "kith/member_file.h"

/* 0, or an exit code with the error printed and nothing to close. */
int kith_cli_member_open(struct kith_member_file *member, enum kith_world world,
                         const struct cli_arguments *arguments);

#endif
