/* A peer file, opened; what is wrong becomes an exit code. */
#include "peer_open.h"

int kith_cli_member_open(struct kith_member_file *member, enum kith_world world,
                         const struct cli_arguments *arguments)
{
    char error[KITH_EXPERIMENT_ERROR_BYTES] = "";
    const enum kith_err err =
        kith_member_file_open(arguments->words[0], world, member, error);
    if (err == KITH_OK)
        return KITH_EXIT_OK;
    return kith_cli_fail(arguments,
                         member->is_of_keys   ? KITH_EXIT_KEYS
                         : err == KITH_ENOMEM ? KITH_EXIT_RESOURCES
                                              : KITH_EXIT_EXPERIMENT,
                         "%s", error);
}
