/* Whom and what a cluster trusts, as its files say: the authority's word on the
 * suite, the list of the revoked, the list of the allowed.
 *
 * Method: key_files.h; each file as it should be, then older, another
 * authority's, damaged, full. */
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

/* The text of a file; kept until the next call. */
static const char *text_of(const char *name)
{
    static char text[4096];
    FILE *file = fopen(in(name), "rb");
    assert_non_null(file);
    text[fread(text, 1, sizeof text - 1, file)] = '\0';
    fclose(file);
    return text;
}

/* Cluster and authority, without the policy. */
static const char *head_of(const char *name)
{
    char *text = (char *)(uintptr_t)text_of(name);
    *strstr(text, "suite ") = '\0';
    return text;
}

/* Another character in the place of the one at `offset`. */
static void spoil(const char *name, long offset)
{
    FILE *file = fopen(in(name), "r+");
    assert_non_null(file);
    assert_int_equal(fseek(file, offset, SEEK_SET), 0);
    const int was = fgetc(file);
    assert_int_equal(fseek(file, offset, SEEK_SET), 0);
    fputc(was == 'A' ? 'B' : 'A', file);
    fclose(file);
}

static void append(const char *name, const char *text)
{
    FILE *file = fopen(in(name), "ab");
    assert_non_null(file);
    fputs(text, file);
    fclose(file);
}

/* The authority's word on the suite of its cluster. */
static void test_policy(void **state)
{
    struct kith_identity identity;
    struct kith_trust trust;
    (void)state;
    for (unsigned i = 0; kith_suite_at(i) != NULL; i++) {
        const enum kith_suite suite = kith_suite_at(i)->suite;
        with_policy(suite);
        OK(kith_keys_load(in("a"), &identity, &trust, error));
        assert_int_equal(suite, trust.suite);
        struct kith_trust copy_of;
        OK(kith_keys_copy_trust(&copy_of, &trust));
        assert_int_equal(suite, copy_of.suite);
        kith_keys_free(&identity, &trust);
        kith_keys_free(&identity, &copy_of);
        assert_int_equal(0, teardown(NULL));
        assert_int_equal(0, setup(NULL));
    }
    make_cluster(); /* a file without the line */
    OK(kith_keys_load(in("a"), &identity, &trust, error));
    assert_int_equal(KITH_SUITE_ANY, trust.suite);
    kith_keys_free(&identity, &trust);
}

/* By hand, or by a stranger. */
static void test_policy_is_the_authoritys(void **state)
{
    char line[128], other[192];
    (void)state;
    with_policy(KITH_SUITE_CHACHAPOLY);
    const char *at = strstr(text_of("a/ca.pub"), "suite ChaChaPoly ");
    assert_non_null(at);
    snprintf(line, sizeof line, "%s", at + strlen("suite ChaChaPoly "));

    static const char *const words[] = {"AESGCM", "AEGIS256X2", "aegis256x2"};
    for (size_t i = 0; i < 3; i++) { /* the signature of another suite */
        write_text("a/ca.pub", head_of("ca/ca.pub"));
        snprintf(other, sizeof other, "suite %s %s", words[i], line);
        append("a/ca.pub", other);
        refused(KITH_EAUTH, "not signed by the authority", load("a"));
    }
    static const struct {
        const char *line, *words;
        enum kith_err err;
    } rows[] = {
        {"suite ChaChaPoly\n", "not signed", KITH_EAUTH},
        {"suite ChaChaPoly AAAA\n", "not signed", KITH_EAUTH},
        {"suite ChaChaPoly ====\n", "not signed", KITH_EAUTH},
        {"suite \n", "knows no suite \"\"", KITH_EUNSUPPORTED},
        {"suite ROT13 AAAA\n", "knows no suite \"ROT13\"", KITH_EUNSUPPORTED},
        {"suite auto AAAA\n", "knows no suite \"auto\"", KITH_EUNSUPPORTED},
        {"suit ChaChaPoly AAAA\n", "expected \"authority KEY\"", KITH_EPARSE},
        {"suite\n", "expected \"authority KEY\"", KITH_EPARSE},
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        write_text("a/ca.pub", head_of("ca/ca.pub"));
        append("a/ca.pub", rows[i].line);
        refused(rows[i].err, rows[i].words, load("a"));
    }
    /* Twice is once; three times, and two that differ, are neither. */
    copy("ca/ca.pub", "a/ca.pub");
    snprintf(other, sizeof other, "suite chachapoly %s", line);
    append("a/ca.pub", other);
    assert_int_equal(KITH_OK, load("a"));
    append("a/ca.pub", other);
    refused(KITH_ELIMIT, "more than two lines", load("a"));
    /* An allow-list has no authority to sign it. */
    OK(kith_keys_new_node(in("n"), "nora", error));
    OK(kith_keys_allow(in("n"), in("n/node.request"), error));
    append("n/allow", other);
    refused(KITH_EPARSE, "an allow-list has no policy", load("n"));
}

/* A line of the policy's own after the first two. */
static void test_policy_of_a_roll(void **state)
{
    char next[1024];
    (void)state;
    with_policy(KITH_SUITE_CHACHAPOLY);
    OK(kith_keys_new_authority(in("next"), KITH_SUITE_CHACHAPOLY, error));
    snprintf(next, sizeof next, "%s", strchr(text_of("next/ca.pub"), '\n') + 1);
    append("a/ca.pub", next); /* signed for its own cluster, not for ours */
    refused(KITH_EAUTH, "not signed by the authority", load("a"));
    copy("ca/ca.pub", "a/ca.pub");
    *(strstr(next, "suite")) = '\0';
    append("a/ca.pub", next);
    assert_int_equal(KITH_OK, load("a"));
}

static void test_revocation(void **state)
{
    (void)state;
    char name[32];
    struct kith_identity identity;
    struct kith_trust trust;
    make_cluster();
    OK(kith_keys_revoke(in("ca"), in("b/node.crt"), error));
    refused(KITH_EEXIST, "already",
            kith_keys_revoke(in("ca"), in("b/node.crt"), error));

    copy("ca/crl", "a/crl");
    spoil("a/crl", 43); /* A byte of the cluster's key, in base64. */
    refused(KITH_EAUTH, "authority", load("a"));
    copy("ca/crl", "a/crl");
    OK(kith_keys_load(in("a"), &identity, &trust, error));
    assert_int_equal(1, trust.revoked_count);
    kith_keys_free(&identity, &trust);
    assert_false(shake_hands("a", "b"));

    for (int i = 0; i < 5; i++) { /* The list grows in order. */
        snprintf(name, sizeof name, "crt%d", i);
        OK(kith_keys_certify(in("ca"), in("b/node.request"), in(name), 1, 1,
                             KITH_NOBODY, error));
        OK(kith_keys_revoke(in("ca"), in(name), error));
    }
    copy("ca/crl", "b/crl");
    refused(KITH_EREVOKED, "not revoked", load("b"));
    copy("ca/crl", "a/crl");
    OK(kith_keys_load(in("a"), &identity, &trust, error));
    assert_true(trust.revoked_count == 6 && trust.revoked_sequence == 6);
    /* Of the first edition, rightly signed: what was revoked since stays so. */
    static uint8_t first[KITH_CRL_BYTES_MAX];
    memcpy(first, trust.list, trust.list_bytes);
    struct kith_crl older;
    trust.revoked_sequence = 0;
    assert_int_equal(kith_crl_verify(&trust, first, trust.list_bytes, &older),
                     KITH_OK);
    trust.revoked_sequence = 7;
    assert_int_equal(kith_keys_take_list(&trust, first, trust.list_bytes),
                     KITH_EEXPIRED);
    assert_true(trust.revoked_count == 6 && trust.revoked_sequence == 7);
    kith_keys_free(&identity, &trust);

    OK(kith_keys_new_authority(in("other"), KITH_SUITE_ANY, error));
    refused(KITH_EAUTH, "another cluster",
            kith_keys_revoke(in("other"), in("a/node.crt"), error));
    copy("ca/crl", "other/crl");
}

static void test_allow_list(void **state)
{
    (void)state;
    OK(kith_keys_new_node(in("a"), "alice", error));
    OK(kith_keys_new_node(in("b"), "bob", error));
    OK(kith_keys_allow(in("a"), in("a/node.request"), error));
    refused(KITH_EEXIST, "already",
            kith_keys_allow(in("a"), in("a/node.request"), error));
    copy("a/allow", "b/allow");
    assert_false(shake_hands("a", "b"));
    OK(kith_keys_allow(in("a"), in("b/node.request"), error));
    copy("a/allow", "b/allow");
    assert_true(shake_hands("a", "b"));
    write_text("b/allow", "kith-cluster-v1 "
                          "AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA=\n");
    refused(KITH_EPARSE, "allows nobody", load("b"));
    OK(kith_keys_allow(in("b"), in("a/node.request"), error)); /* Not ours. */
    assert_false(shake_hands("a", "b"));
}

int main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)
    const struct CMUnitTest tests[] = {
        TEST(test_policy),           TEST(test_policy_is_the_authoritys),
        TEST(test_policy_of_a_roll), TEST(test_revocation),
        TEST(test_allow_list),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
