/* kith doctor: which layer fails between this peer and each other one. */
#include <stdio.h>

#include <jansson.h>

#include "kith/json.h"
#include "peer_open.h"

/* Who is asked, and what was found so far. */
struct examination {
    const struct kith_member *members;
    kith_id self, heading; /* whose lines are being written; KITH_NOBODY */
    json_t *found;         /* an array of members; NULL: lines are printed */
};

/* Columns line up: layer, verdict, what was found. */
static void show_check(void *user, const struct kith_doctor_check *check)
{
    struct examination *all = user;
    if (all->heading != check->rank && check->rank == all->self)
        printf("own identity, rank %u\n", check->rank);
    else if (all->heading != check->rank)
        printf("member %u, %s\n", check->rank,
               all->members[check->rank].address);
    all->heading = check->rank;
    printf("  %-11s %-5s %s%s%s\n", check->layer, check->ok ? "ok" : "FAIL",
           check->found, check->ok ? "" : "; ", check->ok ? "" : check->advice);
    fflush(stdout);
}

static json_t *link_json(const struct kith_link_measure *link)
{
    json_t *out = json_object();
    kith_json_set_real(out, "latency_s", 1e-9 * (double)link->latency_ns);
    kith_json_set_real(out, "jitter_s", 1e-9 * (double)link->jitter_ns);
    kith_json_set_real(out, "bits_per_s", (double)link->rate_bits);
    kith_json_set_real(out, "loss", link->loss);
    return out;
}

static void add_check(void *user, const struct kith_doctor_check *check)
{
    struct examination *all = user;
    if (all->heading != check->rank)
        (void)json_array_append_new(
            all->found,
            json_pack("{s:I, s:b, s:o, s:b, s:[]}", "rank",
                      (json_int_t)check->rank, "self",
                      (int)(check->rank == all->self), "address",
                      kith_json_text(all->members[check->rank].address), "ok",
                      1, "checks"));
    all->heading = check->rank;
    json_t *member =
        json_array_get(all->found, json_array_size(all->found) - 1);
    if (!check->ok)
        (void)json_object_set_new(member, "ok", json_false());
    json_t *entry =
        json_pack("{s:s, s:b, s:o, s:o}", "layer", check->layer, "ok",
                  (int)check->ok, "found", kith_json_text(check->found),
                  "advice", kith_json_text(check->advice));
    if (check->link != NULL)
        (void)json_object_set_new(entry, "link", link_json(check->link));
    (void)json_array_append_new(json_object_get(member, "checks"), entry);
}

int kith_cli_doctor(const struct cli_arguments *arguments)
{
    struct kith_member_file member;
    char error[KITH_PEER_ERROR_BYTES] = "";
    uint32_t failures = 0;
    const int code = kith_cli_member_open(arguments, arguments->words[0],
                                          KITH_WORLD_VISIT, &member);
    if (code != KITH_EXIT_OK)
        return code;
    struct examination all = {
        .members = member.members,
        .self = member.file.rank,
        .heading = KITH_NOBODY,
        .found = kith_cli_given(arguments, CLI_JSON) ? json_array() : NULL,
    };
    struct kith_doctor_options options = kith_cli_doctor_options(&member);
    options.links = kith_cli_given(arguments, CLI_LINKS);
    options.user = &all;
    options.on_check = all.found != NULL ? add_check : show_check;
    kith_cli_catch_signals();
    const enum kith_err err = kith_doctor_run(&options, &failures, error);
    kith_member_file_close(&member);
    if (err != KITH_OK) {
        json_decref(all.found);
        return kith_cli_check(arguments, err, error);
    }
    if (all.found != NULL)
        kith_json_print(json_pack("{s:b, s:o}", "ok", (int)(failures == 0),
                                  "members", all.found),
                        9);
    return kith_cli_flush(arguments,
                          failures == 0 ? KITH_EXIT_OK : KITH_EXIT_NETWORK);
}
