/* Key files, as `kith keys` uses them.
 *
 * Method: a temporary folder plays authority and two nodes (key_files.h); what
 * was made loads and shakes hands; then every way of being wrong on disk: loose
 * modes, files in the way, damage, other authorities. What a cluster says of
 * suites and members: test_keys_trust.c. */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include <cmocka.h>

#include "key_files.h"

static unsigned mode_of(const char *name)
{
    struct stat status;
    assert_int_equal(0, stat(in(name), &status));
    return status.st_mode & 0777;
}

static void test_cluster_shakes_hands(void **state)
{
    (void)state;
    make_cluster();
    assert_int_equal(0600, mode_of("ca/ca.key"));
    assert_int_equal(0600, mode_of("a/node.key"));
    assert_int_equal(0700, mode_of("a"));
    assert_true(shake_hands("a", "b"));
}

static void test_loose_modes(void **state)
{
    (void)state;
    make_cluster();
    static const mode_t loose[] = {0640, 0604, 0660, 0602, 0666, 0610};
    for (size_t i = 0; i < sizeof loose / sizeof *loose; i++) {
        chmod(in("a/node.key"), loose[i]);
        refused(KITH_EPERM, "chmod 600", load("a"));
        chmod(in("ca/ca.key"), loose[i]);
        refused(KITH_EPERM, "chmod 600",
                kith_keys_certify(in("ca"), in("a/node.request"), in("x.crt"),
                                  1, KITH_ROLE_TRAIN, KITH_NOBODY, error));
    }
    chmod(in("a/node.key"), 0400);
    assert_int_equal(KITH_OK, load("a"));
}

static void test_nothing_is_overwritten(void **state)
{
    (void)state;
    make_cluster();
    refused(KITH_EEXIST, "never overwritten",
            kith_keys_new_authority(in("ca"), KITH_SUITE_ANY, error));
    refused(KITH_EEXIST, "never overwritten",
            kith_keys_new_node(in("a"), "alice", error));
    refused(KITH_EEXIST, "never overwritten",
            kith_keys_certify(in("ca"), in("a/node.request"), in("a/node.crt"),
                              1, KITH_ROLE_TRAIN, KITH_NOBODY, error));
    unlink(in("a/node.key")); /* A request alone is in the way too, */
    refused(KITH_EEXIST, "node.request",
            kith_keys_new_node(in("a"), "alice", error));
    assert_int_not_equal(0, access(in("a/node.key"), F_OK)); /* undone. */
}

static void test_bad_arguments(void **state)
{
    (void)state;
    make_cluster();
    static const char *const names[] = {"", "a b", "../a", "a/b", "\xc3\xa9"};
    for (size_t i = 0; i < sizeof names / sizeof *names; i++)
        refused(KITH_EINVAL, "will not do",
                kith_keys_new_node(in("c"), names[i], error));
    static const unsigned days[] = {0, 91, 10000};
    for (size_t i = 0; i < 3; i++)
        refused(KITH_EINVAL, "1 to 90 days",
                kith_keys_certify(in("ca"), in("a/node.request"), in("x"),
                                  days[i], KITH_ROLE_TRAIN, KITH_NOBODY,
                                  error));
    refused(KITH_EINVAL, "roles",
            kith_keys_certify(in("ca"), in("a/node.request"), in("x"), 1, 0,
                              KITH_NOBODY, error));
    refused(KITH_EINVAL, "roles",
            kith_keys_certify(in("ca"), in("a/node.request"), in("x"), 1, 8,
                              KITH_NOBODY, error));
    refused(KITH_EPARSE, "not a request",
            kith_keys_certify(in("ca"), in("ca/ca.pub"), in("x"), 1, 1,
                              KITH_NOBODY, error));
    refused(KITH_ENOENT, "kith keys new DIR --authority",
            kith_keys_certify(in("nowhere"), in("a/node.request"), in("x"), 1,
                              1, KITH_NOBODY, error));
    refused(KITH_ENOENT, "make folder",
            kith_keys_new_authority(in("no/such"), KITH_SUITE_ANY, error));
}

/* The authority never gives one place to two names, and remembers. */
static void test_ranks(void **state)
{
    struct kith_identity identity;
    struct kith_certificate c;
    struct kith_trust trust;
    const char *a = "a/node.request";
    (void)state;
    make_cluster();
    OK(kith_keys_load(in("b"), &identity, &trust, error));
    OK(kith_certificate_decode(identity.certificate, identity.certificate_bytes,
                               &c));
    assert_int_equal(c.rank, 1);
    kith_keys_free(&identity, &trust);
    OK(kith_keys_certify(in("ca"), in(a), in("again.crt"), 1, KITH_ROLE_TRAIN,
                         KITH_NOBODY, error));
    OK(kith_keys_certify(in("ca"), in(a), in("same.crt"), 1, KITH_ROLE_TRAIN, 0,
                         error));
    refused(KITH_EEXIST, "gives rank 0 to alice",
            kith_keys_certify(in("ca"), in(a), in("x.crt"), 1, KITH_ROLE_TRAIN,
                              2, error));
    OK(kith_keys_new_node(in("c"), "carol", error));
    refused(KITH_EEXIST, "gives rank 1 to bob",
            kith_keys_certify(in("ca"), in("c/node.request"), in("x.crt"), 1,
                              KITH_ROLE_TRAIN, 1, error));
    refused(KITH_EINVAL, "give --rank N",
            kith_keys_certify(in("ca"), in("c/node.request"), in("x.crt"), 1,
                              KITH_ROLE_TRAIN, KITH_NOBODY, error));
    OK(kith_keys_certify(in("ca"), in("c/node.request"), in("watch.crt"), 1,
                         KITH_ROLE_OBSERVE, KITH_NOBODY, error));
    assert_int_not_equal(0, access(in("x.crt"), F_OK));
    write_text("ca/ranks", "kith-ranks-v1\n1 bob\n-1 eve\n");
    refused(KITH_EPARSE, "expected \"RANK NAME\"",
            kith_keys_certify(in("ca"), in(a), in("x.crt"), 1, KITH_ROLE_TRAIN,
                              KITH_NOBODY, error));
}

static void test_missing_and_foreign(void **state)
{
    (void)state;
    make_cluster();
    OK(kith_keys_new_authority(in("other"), KITH_SUITE_ANY, error));
    copy("other/ca.pub", "a/ca.pub");
    refused(KITH_EAUTH, "is refused", load("a"));
    unlink(in("a/ca.pub"));
    refused(KITH_ENOENT, "neither ca.pub nor allow", load("a"));
    copy("ca/ca.pub", "a/ca.pub");
    copy("b/node.crt", "a/node.crt"); /* Another key's. */
    refused(KITH_EAUTH, "is refused", load("a"));
    unlink(in("a/node.crt"));
    refused(KITH_ENOENT, "kith keys certify", load("a"));
    refused(KITH_ENOENT, "node.key is missing: kith keys new", load("nowhere"));
    assert_int_equal(KITH_OK, load("b"));
}

/* A roll: two authorities, either certificate. */
static void test_two_authorities(void **state)
{
    (void)state;
    char text[4096], line[256];
    make_cluster();
    OK(kith_keys_new_authority(in("next"), KITH_SUITE_ANY, error));
    FILE *file = fopen(in("next/ca.pub"), "rb");
    assert_non_null(fgets(text, sizeof text, file));
    assert_non_null(fgets(line, sizeof line, file));
    fclose(file);
    file = fopen(in("a/ca.pub"), "ab");
    fprintf(file, "# the next one\n\n%s", line);
    fclose(file);
    assert_int_equal(KITH_OK, load("a"));
    assert_true(shake_hands("a", "b"));
    file = fopen(in("a/ca.pub"), "ab");
    fputs(line, file);
    fclose(file);
    refused(KITH_ELIMIT, "more than two", load("a"));
}

static void test_damage(void **state)
{
    (void)state;
    static const struct {
        const char *file, *text, *words;
        enum kith_err err;
    } rows[] = {
        {"a/ca.pub", "", "first line", KITH_EPARSE},
        {"a/ca.pub", "kith-cluster-v1\n", "first line", KITH_EPARSE},
        {"a/ca.pub", "kith-cluster-v1 AAAA\n", "first line", KITH_EPARSE},
        {"a/node.crt", "kith-certificate-v1\n", "no usable line", KITH_EPARSE},
        {"a/node.crt", "kith-certificate-v1\ncertificate: AAAA\n", "damaged",
         KITH_EPARSE},
        {"a/node.crt", "kith-certificate-v2\n", "not a certificate",
         KITH_EPARSE},
        {"a/crl", "kith-crl-v1\ncrl: AAAA\n", "damaged", KITH_EPARSE},
        {"a/crl", "hello", "not a revocation list", KITH_EPARSE},
        {"a/node.key", "kith-key-v1\nname: a\n", "no usable line", KITH_EPARSE},
        {"a/node.key",
         "kith-key-v1\nkey: AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA=\n"
         "secret: AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA=\n",
         "do not belong together", KITH_EPARSE},
        {"a/node.key", "kith-key-v1\nsecret: AAAA\n", "32 bytes", KITH_EPARSE},
    };
    make_cluster();
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        const bool there = access(in(rows[i].file), F_OK) == 0;
        if (there)
            copy(rows[i].file, "kept");
        write_text(rows[i].file, rows[i].text);
        refused(rows[i].err, rows[i].words, load("a"));
        unlink(in(rows[i].file));
        if (there)
            copy("kept", rows[i].file);
        chmod(in("a/node.key"), 0600);
        assert_int_equal(KITH_OK, load("a"));
    }
    FILE *file = fopen(in("a/ca.pub"), "ab");
    for (int i = 0; i < (1 << 16); i++)
        fputs("# far too long a file\n", file);
    fclose(file);
    refused(KITH_ELIMIT, "larger than any key file", load("a"));
}

static void add_line(void *user, const struct kith_key_fact *fact)
{
    char *text = user;
    const size_t at = strlen(text);
    assert_non_null(fact->key);
    snprintf(text + at, 4096 - at, "%s %s%s\n", fact->label ? fact->label : "",
             fact->value ? fact->value : "", fact->note);
}

static void show(const char *name, const char *words)
{
    char text[4096] = "";
    OK(kith_keys_show(in(name), add_line, text, error));
    if (!strstr(text, words))
        fail_msg("%s: \"%s\" lacks \"%s\"", name, text, words);
    assert_null(strstr(text, "secret: "));
}

static void test_show(void **state)
{
    (void)state;
    char text[4096] = "";
    make_cluster();
    OK(kith_keys_revoke(in("ca"), in("b/node.crt"), error));
    OK(kith_keys_allow(in("c"), in("b/node.request"), error));
    show("ca/ca.key", "an authority's secret key");
    show("ca/ca.pub", "whom a cluster trusts");
    show("ca/ca.pub", "suite no policy");
    OK(kith_keys_new_authority(in("fast"), KITH_SUITE_AEGIS256X2, error));
    show("fast/ca.pub", "AEGIS256X2, signed by the authority; unaudited");
    show("ca/crl", "1 certificate\n");
    show("a/node.key", "alice");
    show("a/node.request", "alice");
    show("a/node.crt", " train\n");
    show("c/allow", "1 key\n");
    chmod(in("a/node.key"), 0644);
    refused(KITH_EPERM, "chmod 600",
            kith_keys_show(in("a/node.key"), add_line, text, error));
    write_text("x", "hello\n");
    refused(KITH_EPARSE, "not a key file",
            kith_keys_show(in("x"), add_line, text, error));
    refused(KITH_EINVAL, "not a plain file",
            kith_keys_show(in("a"), add_line, text, error));
    assert_string_equal(text, ""); /* A refusal tells nothing. */
}

int main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)
    const struct CMUnitTest tests[] = {
        TEST(test_cluster_shakes_hands),
        TEST(test_loose_modes),
        TEST(test_nothing_is_overwritten),
        TEST(test_bad_arguments),
        TEST(test_ranks),
        TEST(test_missing_and_foreign),
        TEST(test_two_authorities),
        TEST(test_damage),
        TEST(test_show),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
