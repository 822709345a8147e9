/* A peer file, opened; what is wrong becomes an exit code. */
#include "peer_open.h"

int kith_cli_member_open(const struct cli_arguments *arguments,
                         const char *path, enum kith_world world,
                         struct kith_member_file *member)
{
    char error[KITH_EXPERIMENT_ERROR_BYTES] = "";
    const enum kith_err err = kith_member_file_open(path, world, member, error);
    if (err == KITH_OK)
        return KITH_EXIT_OK;
    return kith_cli_fail(arguments,
                         member->is_of_keys   ? KITH_EXIT_KEYS
                         : err == KITH_ENOMEM ? KITH_EXIT_RESOURCES
                                              : KITH_EXIT_EXPERIMENT,
                         "%s", error);
}

struct kith_doctor_options
kith_cli_doctor_options(const struct kith_member_file *member)
{
    struct kith_doctor_options options = {
        .experiment = &member->experiment,
        .identity = &member->identity,
        .trust = &member->trust,
        .self = member->file.rank,
        .members = member->members,
        .dim = kith_model_size_of(member->experiment.model,
                                  &member->experiment.model_config)
                   .dim,
    };
    kith_peer_limits_default(&options.limits);
    return options;
}
