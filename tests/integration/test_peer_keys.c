/* Goal: a revocation list that has reached one peer reaches all, is in force
 * after a restart, whatever the folder's own list says, and ends the peer whom
 * it names; a certificate is renewed without a restart.
 * Method: an authority and three peers with key folders, which look into them
 * ten times a second. */
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
#include "tests/support/visit.h"

#define NODES 3

static const char yaml[] = "name: keys\nseed: 9\npeers: 3\n"
                           "stop: {time: 60s}\n"
                           "model: {kind: consensus, dim: 100}\n"
                           "gossip: {algorithm: adpsgd, every: 1}\n"
                           "compute: {step: 5ms}\n";

static char root[64], authority[80], error[KITH_KEYS_ERROR_BYTES],
    nodes[NODES][80];
static struct kith_identity identities[NODES];
static struct kith_trust trusts[NODES];
static struct peers peers;

static const char *in(const char *folder, const char *name)
{
    static char paths[8][400];
    static unsigned next;
    char *path = paths[next++ % 8];
    snprintf(path, 400, "%s/%s", folder, name);
    return path;
}

static void copy(const char *from, const char *to)
{
    char command[512];
    snprintf(command, sizeof command, "cp '%s' '%s.part' && mv '%s.part' '%s'",
             from, to, to, to);
    assert_int_equal(system(command), 0);
}

static void with_folder(struct kith_peer_options *options, void *arg)
{
    (void)arg;
    options->identity = &identities[options->self];
    options->trust = &trusts[options->self];
    options->keys_folder = nodes[options->self];
    options->limits.revoked_ns = 100 * KITH_MS;
    options->limits.renew_ns = 60 * KITH_S;
}

static enum kith_err load(int i)
{
    kith_keys_free(&identities[i], &trusts[i]);
    return kith_keys_load(nodes[i], &identities[i], &trusts[i], error);
}

static int setup(void **state)
{
    (void)state;
    peers_open(&peers, yaml);
    snprintf(root, sizeof root, "/tmp/kith-keys-XXXXXX");
    assert_non_null(mkdtemp(root));
    snprintf(authority, sizeof authority, "%s/ca", root);
    assert_int_equal(kith_keys_new_authority(authority, KITH_SUITE_ANY, error),
                     KITH_OK);
    for (uint32_t i = 0; i < NODES; i++) {
        char name[16];
        snprintf(name, sizeof name, "node-%u", i);
        snprintf(nodes[i], sizeof nodes[i], "%s/%s", root, name);
        peers.members[i].has_fingerprint = false;
        assert_int_equal(kith_keys_new_node(nodes[i], name, error), KITH_OK);
        assert_int_equal(kith_keys_certify(authority,
                                           in(nodes[i], "node.request"),
                                           in(nodes[i], "node.crt"), 7,
                                           KITH_ROLE_TRAIN, i, error),
                         KITH_OK);
        copy(in(authority, "ca.pub"), in(nodes[i], "ca.pub"));
        memset(&trusts[i], 0, sizeof trusts[i]);
        assert_int_equal(load((int)i), KITH_OK);
    }
    peers.change = with_folder;
    return 0;
}

static int teardown(void **state)
{
    char command[128];
    (void)state;
    peers_close(&peers);
    for (int i = 0; i < NODES; i++)
        kith_keys_free(&identities[i], &trusts[i]);
    snprintf(command, sizeof command, "rm -rf '%s'", root);
    return system(command);
}

static void revoke_file(const char *certificate)
{
    if (kith_keys_revoke(authority, certificate, error) != KITH_OK)
        fail_msg("%s", error);
}

static void lists_pass_on_and_stay(void **state)
{
    (void)state;
    peers_start_all(&peers);
    assert_true(visit_said(&peers, 0, "connected rank=1"));
    assert_true(visit_said(&peers, 0, "connected rank=2"));
    assert_true(visit_said(&peers, 1, "connected rank=2"));
    revoke_file(in(nodes[2], "node.crt"));
    copy(in(authority, "crl"), in(root, "first"));
    copy(in(root, "first"), in(nodes[0], "crl")); /* to rank 0 alone */
    assert_true(visit_said(&peers, 1, "revocations sequence=1 count=1"));
    assert_true(visit_said(&peers, 1, "refused kind=revoked"));
    assert_true(visit_said(&peers, 2, "hopeless"));
    for (int i = 0; i < 2000 && !peers.shared[2].ended; i++)
        nanosleep(&(struct timespec){.tv_nsec = 5000000}, NULL);
    assert_int_equal(peers.shared[2].err, KITH_EAUTH);
    const uint64_t step = peers.shared[0].step;
    assert_true(peers_wait_step(&peers, 0, step + 50, 10));
    peers_kill(&peers, 1); /* not in order: what it knows is on disk */

    /* Another list, to rank 0 again, while rank 1 is away. */
    assert_int_equal(kith_keys_certify(authority, in(nodes[2], "node.request"),
                                       in(root, "x.crt"), 1, KITH_ROLE_TRAIN,
                                       KITH_NOBODY, error),
                     KITH_OK);
    revoke_file(in(root, "x.crt"));
    copy(in(authority, "crl"), in(nodes[0], "crl"));
    assert_true(visit_said(&peers, 0, "revocations sequence=2 count=2"));
    unlink(in(nodes[1], "crl"));
    assert_int_equal(load(1), KITH_OK);
    assert_int_equal(trusts[1].revoked_sequence, 1);
    peers_start(&peers, 1, 1, false);
    assert_true(visit_said(&peers, 1, "revocations sequence=2 count=2"));
    (void)peers_stop(&peers, 10);
    if (getenv("PEERS_PRINT"))
        for (kith_id i = 0; i < 3; i++)
            peers_print(&peers, i);

    /* An older list put back changes nothing, a spoilt one is named. */
    copy(in(root, "first"), in(nodes[1], "crl"));
    assert_int_equal(load(1), KITH_OK);
    assert_int_equal(trusts[1].revoked_sequence, 2);
    copy(in(authority, "ca.pub"), in(nodes[1], "crl.seen"));
    assert_int_equal(load(1), KITH_EPARSE);
    assert_non_null(strstr(error, "crl.seen is not a revocation list"));
}

static void certificates_are_renewed(void **state)
{
    char line[128];
    (void)state;
    struct kith_certificate c;
    peers_start(&peers, 0, 0, false);
    peers_start(&peers, 1, 0, false);
    assert_true(visit_said(&peers, 0, "connected rank=1"));
    assert_int_equal(kith_keys_certify(authority, in(nodes[1], "node.request"),
                                       in(root, "new.crt"), 30, KITH_ROLE_TRAIN,
                                       KITH_NOBODY, error),
                     KITH_OK);
    revoke_file(in(nodes[1], "node.crt")); /* the new one has to do */
    copy(in(root, "new.crt"), in(nodes[1], "node.crt"));
    assert_int_equal(load(1), KITH_OK);
    assert_int_equal(kith_certificate_decode(identities[1].certificate,
                                             identities[1].certificate_bytes,
                                             &c),
                     KITH_OK);
    snprintf(line, sizeof line, "renewed name=node-1 serial=%016llx days_left=",
             (unsigned long long)c.serial);
    assert_true(visit_said(&peers, 1, line));
    assert_true(visit_said(&peers, 1, "renewing rank=0"));
    nanosleep(&(struct timespec){.tv_nsec = 500000000}, NULL);
    copy(in(authority, "crl"), in(nodes[0], "crl"));
    assert_true(visit_said(&peers, 0, "revocations sequence=1"));
    const uint64_t done = peers.shared[0].step;
    assert_true(peers_wait_step(&peers, 0, done + 100, 10));
    assert_true(peers_stop(&peers, 10));
    if (getenv("PEERS_PRINT"))
        for (kith_id i = 0; i < 2; i++)
            peers_print(&peers, i);
    assert_true(peers.shared[0].report.connected >= 2);
    assert_int_equal(peers.shared[0].report.refusals[KITH_REFUSAL_REVOKED], 0);
    assert_int_equal(peers.shared[0].report.counters.torn, 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(lists_pass_on_and_stay, setup,
                                        teardown),
        cmocka_unit_test_setup_teardown(certificates_are_renewed, setup,
                                        teardown),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
