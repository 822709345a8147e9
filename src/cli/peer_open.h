/* One peer of a cluster, as `kith peer` and `kith doctor` open it. */
#ifndef KITH_CLI_PEER_OPEN_H
#define KITH_CLI_PEER_OPEN_H

#include "cli.h"
#include "kith/peer.h"

struct cli_member {
    struct kith_peer_file file;
    struct kith_experiment experiment;
    struct kith_identity identity;
    struct kith_trust trust;
    struct kith_member *members; /* (file.member_count) */
};
/* 0, or an exit code with the error printed and nothing to close. */
int kith_cli_member_open(struct cli_member *member,
                         const struct cli_arguments *arguments);
void kith_cli_member_close(struct cli_member *member);

#endif
