/* Goal: a peer's file is read, its paths start at its folder, and bad ones are
 * refused with the place. Method: files in a temporary folder. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <cmocka.h>

#include "kith/experiment.h"

#define COUNT(array) (sizeof(array) / sizeof((array)[0]))
#define HEX64 "00112233445566778899aabbccddeeff00112233445566778899aabbccddeeff"

static char folder[64];

static int make_folder(void **state)
{
    (void)state;
    snprintf(folder, sizeof folder, "/tmp/kith-peer-file-XXXXXX");
    return mkdtemp(folder) == NULL;
}

static int remove_folder(void **state)
{
    (void)state;
    return rmdir(folder);
}

static enum kith_err load(const char *text, struct kith_peer_file *file,
                          char *error)
{
    char path[96];
    snprintf(path, sizeof path, "%s/peer.yaml", folder);
    FILE *out = fopen(path, "w");
    assert_non_null(out);
    assert_true(fputs(text, out) >= 0);
    assert_int_equal(fclose(out), 0);
    const enum kith_err err = kith_peer_file_load(path, file, error);
    assert_int_equal(unlink(path), 0);
    return err;
}

static void test_good(void **state)
{
    (void)state;
    static const char text[] =
        "identity: id\nexperiment: /etc/kith/demo.yaml\nrank: 1\n"
        "advertise: \"[2001:db8::1]:7117\"\n"
        "members:\n"
        "  - {address: \"a.example:7117\"}\n"
        "  - {address: \"[2001:db8::1]:7117\", fingerprint: " HEX64 "}\n"
        "  - 10.0.0.3:7000\n"
        "wait: {members: 3, for: 90s}\n";
    struct kith_peer_file file;
    char error[KITH_EXPERIMENT_ERROR_BYTES] = "", path[128];

    if (load(text, &file, error) != KITH_OK)
        fail_msg("%s", error);

    snprintf(path, sizeof path, "%s/id", folder);
    assert_string_equal(file.identity, path);
    snprintf(path, sizeof path, "%s/save", folder);
    assert_string_equal(file.save, path);
    assert_string_equal(file.experiment, "/etc/kith/demo.yaml");
    assert_string_equal(file.listen, "[::]:7117");
    assert_string_equal(file.advertise, "[2001:db8::1]:7117");
    assert_int_equal(file.rank, 1);
    assert_int_equal(file.member_count, 3);
    assert_int_equal(file.wait.members, 3);
    assert_int_equal(file.wait.for_ns, 90 * KITH_S);
    assert_string_equal(file.members[0].address, "a.example:7117");
    assert_string_equal(file.members[0].fingerprint, "");
    assert_string_equal(file.members[1].fingerprint, HEX64);
    assert_string_equal(file.members[2].address, "10.0.0.3:7000");
    kith_peer_file_close(&file);
}

static void test_bad(void **state)
{
    (void)state;
#define HEAD "identity: a\nexperiment: b\nrank: 0\n"
    static const struct {
        const char *text, *word;
    } bad[] = {
        {"identity: a\n", "experiment: not given"},
        {HEAD, "members: not given"},
        {HEAD "members: []\n", "every peer"},
        {HEAD "members: a:1\n", "found \"a:1\""},
        {HEAD "members: [a]\n", "HOST:PORT"},
        {HEAD "members: [\"a:0\"]\n", "HOST:PORT"},
        {HEAD "members: [\"a:65536\"]\n", "HOST:PORT"},
        {HEAD "members: [\":1\"]\n", "HOST:PORT"},
        {HEAD "members: [\"::1:7117\"]\n", "HOST:PORT"},
        {HEAD "members: [\"[::1:7117\"]\n", "HOST:PORT"},
        {HEAD "members: [[\"a:1\"]]\n", "found a list"},
        {HEAD "members: [{address: \"a:1\", name: x}]\n", "allowed keys"},
        {HEAD "members: [{fingerprint: " HEX64 "}]\n", "allowed keys"},
        {HEAD "members: [{address: \"a:1\", fingerprint: 12}]\n", "64 hexa"},
        {HEAD "members: [\"a:1\"]\nlisten: 7117\n", "listen: found \"7117\""},
        {HEAD "members: [\"a:1\"]\nadvertise: me\n", "advertise"},
        {HEAD "members: [\"a:1\"]\nlisten: \"\"\n", "found nothing"},
        {HEAD "members: [\"a:1\"]\nwait: {members: 2}\n",
         "wait.members: found 2; allowed: 1 to 1"},
        {HEAD "members: [\"a:1\"]\nwait: {members: 1, for: 10}\n", "unit"},
        {HEAD "members: [\"a:1\"]\nwait: 2\n", "wait"},
        {HEAD "members: [\"a:1\"]\nsedes: []\n", "unknown key"},
        {"identity: a\nexperiment: b\nrank: 1\nmembers: [\"a:1\"]\n",
         "peer.yaml:3: rank: found 1"},
        {"identity: a\nexperiment: b\nrank: -1\nmembers: [\"a:1\"]\n",
         "whole number"},
    };
    for (size_t i = 0; i < COUNT(bad); i++) {
        struct kith_peer_file file;
        char error[KITH_EXPERIMENT_ERROR_BYTES] = "";
        assert_true(load(bad[i].text, &file, error) != KITH_OK);
        assert_null(strchr(error, '\n'));
        if (strstr(error, bad[i].word) == NULL)
            fail_msg("%s: %s", bad[i].text, error);
    }
}

static void test_missing(void **state)
{
    (void)state;
    struct kith_peer_file file;
    char error[KITH_EXPERIMENT_ERROR_BYTES] = "";
    assert_int_equal(kith_peer_file_load("/nonexistent/p.yaml", &file, error),
                     KITH_ENOENT);
    assert_non_null(strstr(error, "/nonexistent/p.yaml"));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_good),
        cmocka_unit_test(test_bad),
        cmocka_unit_test(test_missing),
    };
    return cmocka_run_group_tests(tests, make_folder, remove_folder);
}
