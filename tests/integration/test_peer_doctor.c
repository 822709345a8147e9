/* Goal: `kith doctor` names the layer that fails, and a revocation list that is
 * replaced on disk closes the session it forbids within one tick.
 * Method: forked peers; the doctor runs in the test's own process as rank 2.
 * For the revocation: key folders as an operator makes them, the list read
 * again every 100 ms. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>
#include <cmocka.h>

#include "kith/keys.h"
#include "tests/support/peers.h"

static const char yaml[] = "name: doctor\nseed: 21\npeers: 3\n"
                           "stop: {time: 60s}\n"
                           "model: {kind: consensus, dim: 30}\n"
                           "gossip: {algorithm: adpsgd, every: 1}\n"
                           "compute: {step: 5ms}\n";

struct paper {
    char text[8192];
    size_t size;
};

static void on_check(void *user, const struct kith_doctor_check *check)
{
    struct paper *paper = user;
    const int count =
        snprintf(paper->text + paper->size, sizeof paper->text - paper->size,
                 "%u %s %s %s; %s\n", check->rank, check->layer,
                 check->ok ? "ok" : "FAIL", check->found,
                 check->advice == NULL ? "" : check->advice);
    paper->size += (size_t)count;
    assert_true(paper->size < sizeof paper->text);
}

static uint32_t examine(const struct peers *peers,
                        const struct kith_experiment *experiment, size_t dim,
                        struct paper *paper)
{
    char error[KITH_PEER_ERROR_BYTES];
    uint32_t failures = 99;
    struct kith_doctor_options options = {
        .experiment = experiment,
        .identity = &peers->identities[2],
        .trust = &peers->trust,
        .self = 2,
        .members = peers->members,
        .dim = dim,
        .user = paper,
        .on_check = on_check,
    };
    kith_peer_limits_default(&options.limits);
    paper->size = 0;
    assert_int_equal(kith_doctor_run(&options, &failures, error), KITH_OK);
    if (getenv("PEERS_PRINT"))
        fprintf(stderr, "%s", paper->text);
    return failures;
}

static void a_doctor_names_the_layer(void **state)
{
    struct peers peers;
    struct paper paper;
    (void)state;
    peers_open(&peers, yaml);
    close(peers.listen_fds[1]); /* rank 1 is not running */
    peers.listen_fds[1] = -1;
    peers_start(&peers, 0, 0, false);
    assert_true(peers_wait_step(&peers, 0, 3, 20));

    assert_int_equal(examine(&peers, &peers.experiment, 30, &paper), 1);
    assert_non_null(strstr(paper.text, "clock ok"));
    assert_non_null(strstr(paper.text, "model ok consensus, 30"));
    assert_non_null(strstr(paper.text, "tcp FAIL"));
    assert_non_null(strstr(paper.text, "nothing listens"));

    assert_int_equal(examine(&peers, &peers.experiment, 31, &paper), 2);
    assert_non_null(strstr(paper.text, "certificate ok peer-0"));
    assert_non_null(strstr(paper.text,
                           "model FAIL model size differs: peer has 30 "
                           "parameters, we have 31; give every peer the same "
                           "experiment file"));

    snprintf(peers.members[1].address, sizeof peers.members[1].address,
             "no.such.name.invalid:7117");
    struct kith_identity expired = peers.identities[2];
    peers_certify(&peers, &peers.identities[2], "peer-2", -90000, -3600);
    assert_int_equal(examine(&peers, &peers.experiment, 30, &paper), 3);
    assert_non_null(strstr(paper.text, "name FAIL"));
    assert_non_null(strstr(paper.text, "certificate FAIL"));
    peers.identities[2] = expired;
    assert_true(peers_stop(&peers, 10));
    peers_close(&peers);
}

/* ---- revocation */

struct folders {
    char authority[96], nodes[2][96];
    struct kith_identity identities[2];
    struct kith_trust trusts[2];
};

static void copy_file(const char *from_folder, const char *name,
                      const char *to_folder)
{
    char command[512];
    snprintf(command, sizeof command, "cp %s/%s %s/.new && mv %s/.new %s/%s",
             from_folder, name, to_folder, to_folder, to_folder, name);
    assert_int_equal(system(command), 0);
}

static void make_folders(const struct peers *peers, struct folders *folders)
{
    char error[KITH_KEYS_ERROR_BYTES], request[160], certificate[160];
    char command[512];
    snprintf(folders->authority, sizeof folders->authority, "%s/ca",
             peers->folder);
    for (int i = 0; i < 2; i++)
        snprintf(folders->nodes[i], sizeof folders->nodes[i], "%s/node%d",
                 peers->folder, i);
    snprintf(command, sizeof command, "mkdir %s %s %s", folders->authority,
             folders->nodes[0], folders->nodes[1]);
    assert_int_equal(system(command), 0);
    assert_int_equal(
        kith_keys_new_authority(folders->authority, KITH_SUITE_ANY, error),
        KITH_OK);
    for (int i = 0; i < 2; i++) {
        char name[16];
        snprintf(name, sizeof name, "node-%d", i);
        snprintf(request, sizeof request, "%s/node.request", folders->nodes[i]);
        snprintf(certificate, sizeof certificate, "%s/node.crt",
                 folders->nodes[i]);
        assert_int_equal(kith_keys_new_node(folders->nodes[i], name, error),
                         KITH_OK);
        assert_int_equal(kith_keys_certify(folders->authority, request,
                                           certificate, 7, KITH_ROLE_TRAIN,
                                           (uint32_t)i, error),
                         KITH_OK);
        copy_file(folders->authority, "ca.pub", folders->nodes[i]);
        assert_int_equal(kith_keys_load(folders->nodes[i],
                                        &folders->identities[i],
                                        &folders->trusts[i], error),
                         KITH_OK);
    }
}

static void with_folders(struct kith_peer_options *options, void *arg)
{
    struct folders *folders = arg;
    options->identity = &folders->identities[options->self];
    options->trust = &folders->trusts[options->self];
    options->keys_folder = folders->nodes[options->self];
    options->limits.revoked_ns = 100 * KITH_MS;
}

static bool wait_said(const struct peers *peers, kith_id rank, const char *text)
{
    for (int i = 0; i < 2000 && !peers_said(peers, rank, text); i++)
        nanosleep(&(struct timespec){.tv_nsec = 5000000}, NULL);
    return peers_said(peers, rank, text);
}

static void a_revoked_session_is_closed(void **state)
{
    static struct folders folders;
    struct peers peers;
    char error[KITH_KEYS_ERROR_BYTES], path[512];
    (void)state;
    peers_open(&peers, yaml);
    make_folders(&peers, &folders);
    for (int i = 0; i < 3; i++)
        peers.members[i].has_fingerprint = false;
    peers.change = with_folders;
    peers.arg = &folders;
    close(peers.listen_fds[2]);
    peers.listen_fds[2] = -1;
    peers_start(&peers, 0, 0, false);
    peers_start(&peers, 1, 0, false);
    assert_true(wait_said(&peers, 0, "connected rank=1 name=node-1"));

    snprintf(path, sizeof path, "%s/node.crt", folders.nodes[1]);
    assert_int_equal(kith_keys_revoke(folders.authority, path, error), KITH_OK);
    copy_file(folders.authority, "crl", folders.nodes[0]);

    assert_true(wait_said(&peers, 0, "refused kind=revoked"));
    assert_true(wait_said(&peers, 0, "closed rank=1 name=node-1"));
    const uint64_t step = peers.shared[0].step;
    assert_true(peers_wait_step(&peers, 0, step + 20, 10));
    assert_true(peers_stop(&peers, 10));
    snprintf(path, sizeof path, "rm -r %s/ca %s/node0 %s/node1", peers.folder,
             peers.folder, peers.folder);
    assert_int_equal(system(path), 0);
    for (int i = 0; i < 2; i++)
        kith_keys_free(&folders.identities[i], &folders.trusts[i]);
    peers_close(&peers);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_doctor_names_the_layer),
        cmocka_unit_test(a_revoked_session_is_closed),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
