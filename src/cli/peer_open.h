/* One peer of a cluster, as `kith peer` and `kith doctor` open it. */
#ifndef KITH_CLI_PEER_OPEN_H
#define KITH_CLI_PEER_OPEN_H

#include "cli.h"
#include "kith/member_file.h"

/* 0, or an exit code with the error printed and nothing to close. */
int kith_cli_member_open(const struct cli_arguments *arguments,
                         const char *path, enum kith_world world,
                         struct kith_member_file *member);
/* What a visit of that member's others needs; a HELLO as theirs. */
struct kith_doctor_options
kith_cli_doctor_options(const struct kith_member_file *member);

#endif
