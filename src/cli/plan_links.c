/* kith plan --measure --to PEER.yaml: the ways from here to that peer's
 * members, as each running peer answers (kith doctor --links). */
#include <math.h>
#include <stdio.h>

#include "kith/machine.h"
#include "kith/text.h"
#include "peer_open.h"
#include "plan_command.h"

/* What is not well is said and left out: the others can be measured. */
static void on_check(void *user, const struct kith_doctor_check *check)
{
    struct kith_machine *machine = user; /* its links */
    if (!check->ok)
        fprintf(stderr, "kith plan: rank %u is not measured: %s: %s; %s\n",
                check->rank, check->layer, check->found, check->advice);
    if (check->link == NULL || machine->link_count == KITH_MACHINE_LINKS_MAX)
        return;
    fprintf(stderr, "rank %u: %s\n", check->rank, check->found);
    machine->links[machine->link_count++] =
        (struct kith_machine_link){.rank = check->rank,
                                   .latency_ns = check->link->latency_ns,
                                   .jitter_ns = check->link->jitter_ns,
                                   .rate_bits = check->link->rate_bits,
                                   .loss = check->link->loss};
}

int kith_cli_measure_links(const struct cli_arguments *arguments,
                           struct kith_machine *machine)
{
    const char *path = arguments->values[CLI_TO];
    struct kith_member_file member;
    char error[KITH_PEER_ERROR_BYTES] = "";
    uint32_t failures = 0;
    machine->link_count = 0;
    if (path == NULL)
        return KITH_EXIT_OK;
    const int code =
        kith_cli_member_open(arguments, path, KITH_WORLD_VISIT, &member);
    if (code != KITH_EXIT_OK)
        return code;
    struct kith_doctor_options options = kith_cli_doctor_options(&member);
    options.links = true;
    options.user = machine;
    options.on_check = on_check;
    const enum kith_err err = kith_doctor_run(&options, &failures, error);
    kith_member_file_close(&member);
    if (err != KITH_OK)
        return kith_cli_check(arguments, err, error);
    if (machine->link_count > 0)
        return KITH_EXIT_OK;
    return kith_cli_fail(arguments, KITH_EXIT_NETWORK,
                         "--to: no member of %.300s could be measured; start "
                         "their peers, or leave --to out",
                         path);
}

size_t kith_cli_add_links(const struct kith_machine *machine, char *text,
                          size_t size, size_t at)
{
    if (machine->link_count == 0)
        return at;
    at = kith_text_add(text, size, at,
                       "links: # from here to members whose peers ran\n");
    for (uint32_t i = 0; i < machine->link_count; i++) {
        const struct kith_machine_link *link = &machine->links[i];
        at = kith_text_add(text, size, at,
                           "  - {rank: %u, latency: %.1fus, jitter: %.1fus, "
                           "rate: %.0fkbit, loss: %.3g}\n",
                           link->rank, 1e-3 * (double)link->latency_ns,
                           1e-3 * (double)link->jitter_ns,
                           fmax(1, 1e-3 * (double)link->rate_bits), link->loss);
    }
    return at;
}
