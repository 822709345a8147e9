/* kith doctor: which layer fails between this peer and each other one. */
#include <stdio.h>

#include "peer_open.h"

static void show_line(void *user, const char *line)
{
    (void)user;
    puts(line);
    fflush(stdout);
}

int kith_cli_doctor(const struct cli_arguments *arguments)
{
    struct kith_member_file member;
    char error[KITH_PEER_ERROR_BYTES] = "";
    uint32_t failures = 0;
    const int code = kith_cli_member_open(&member, arguments);
    if (code != KITH_EXIT_OK)
        return code;
    struct kith_doctor_options options = {
        .experiment = &member.experiment,
        .identity = &member.identity,
        .trust = &member.trust,
        .self = member.file.rank,
        .members = member.members,
        .dim = kith_model_size_of(member.experiment.model,
                                  &member.experiment.model_config)
                   .dim,
        .on_line = show_line,
    };
    kith_peer_limits_default(&options.limits);
    kith_cli_catch_signals();
    const enum kith_err err = kith_doctor_run(&options, &failures, error);
    kith_member_file_close(&member);
    if (err != KITH_OK)
        return kith_cli_check(arguments, err, error);
    return failures == 0 ? KITH_EXIT_OK : KITH_EXIT_NETWORK;
}
