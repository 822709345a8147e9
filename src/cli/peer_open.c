/* Peer file -> experiment, keys, member list. */
#include "peer_open.h"

#include <stdlib.h>
#include <string.h>

#include "kith/keys.h"
#include "kith/text.h"

static int open_members(struct cli_member *member,
                        const struct cli_arguments *arguments)
{
    const uint32_t count = member->file.member_count;
    if (count != member->experiment.peers)
        return kith_cli_fail(arguments, KITH_EXIT_EXPERIMENT,
                             "%.300s: members: found %u; allowed: %u, as many "
                             "as peers in %.300s",
                             arguments->words[0], count,
                             member->experiment.peers, member->file.experiment);
    member->members = calloc(count, sizeof *member->members);
    if (member->members == NULL)
        return kith_cli_fail(arguments, KITH_EXIT_RESOURCES, "out of memory");
    for (uint32_t i = 0; i < count; i++) {
        kith_text_copy(member->members[i].address, KITH_ADDRESS_BYTES,
                       member->file.members[i].address);
        /* The loader has checked the digits; "" is none. */
        member->members[i].has_fingerprint =
            kith_text_unhex(member->file.members[i].fingerprint,
                            member->members[i].fingerprint,
                            KITH_FINGERPRINT_BYTES) == KITH_OK;
    }
    return KITH_EXIT_OK;
}

/* Every peer would refuse us for it. */
static int check_rank(const struct cli_member *member,
                      const struct cli_arguments *arguments)
{
    const struct kith_identity *identity = &member->identity;
    struct kith_certificate own;
    if (identity->certificate_bytes == 0 ||
        kith_certificate_decode(identity->certificate,
                                identity->certificate_bytes, &own) != KITH_OK ||
        own.rank == member->file.rank)
        return KITH_EXIT_OK;
    return kith_cli_fail(arguments, KITH_EXIT_KEYS,
                         "%.300s/node.crt is for rank %d, %.300s says rank %u: "
                         "correct `rank`, or certify the request again with "
                         "--rank %u",
                         member->file.identity, (int)own.rank,
                         arguments->words[0], member->file.rank,
                         member->file.rank);
}

int kith_cli_member_open(struct cli_member *member,
                         const struct cli_arguments *arguments)
{
    char error[KITH_EXPERIMENT_ERROR_BYTES] = "";
    memset(member, 0, sizeof *member);
    if (kith_peer_file_load(arguments->words[0], &member->file, error) !=
        KITH_OK)
        return kith_cli_fail(arguments, KITH_EXIT_EXPERIMENT, "%s", error);
    int code = kith_cli_experiment_open(arguments, member->file.experiment,
                                        &member->experiment);
    if (code == KITH_EXIT_OK &&
        kith_experiment_check_world(&member->experiment, KITH_WORLD_LAB,
                                    error) != KITH_OK)
        code = kith_cli_fail(arguments, KITH_EXIT_EXPERIMENT, "%.300s: %s",
                             member->file.experiment, error);
    if (code == KITH_EXIT_OK && member->experiment.stop.patience > 0)
        code = kith_cli_fail(
            arguments, KITH_EXIT_EXPERIMENT,
            "%.300s: stop.patience: a peer does not see the averaged model and "
            "cannot stop early; take it out, or set it to 0",
            member->file.experiment);
    if (code == KITH_EXIT_OK)
        code = open_members(member, arguments);
    if (code == KITH_EXIT_OK &&
        kith_keys_load(member->file.identity, &member->identity, &member->trust,
                       error) != KITH_OK)
        code = kith_cli_fail(arguments, KITH_EXIT_KEYS, "%s", error);
    if (code == KITH_EXIT_OK)
        code = check_rank(member, arguments);
    if (code != KITH_EXIT_OK)
        kith_cli_member_close(member);
    return code;
}

void kith_cli_member_close(struct cli_member *member)
{
    kith_keys_free(&member->identity, &member->trust);
    free(member->members);
    kith_experiment_close(&member->experiment);
    kith_peer_file_close(&member->file);
}
