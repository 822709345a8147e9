/* Key files, as `kith keys` uses them.
 *
 * Method: a temporary folder plays authority and two nodes; what was made loads
 * and shakes hands; then every way of being wrong on disk: loose modes, files
 * in the way, damage, other authorities, revoked, full lists. */
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

#include "kith/keys.h"
#include "tests/support/sessions.h"

static char root[64], error[KITH_KEYS_ERROR_BYTES];

static const char *in(const char *name)
{
    static char paths[8][160];
    static unsigned next;
    char *path = paths[next++ % 8];
    snprintf(path, 160, "%s/%s", root, name);
    return path;
}

static void copy(const char *from, const char *to)
{
    static char bytes[1 << 20];
    FILE *source = fopen(in(from), "rb");
    assert_non_null(source);
    const size_t n = fread(bytes, 1, sizeof bytes, source);
    fclose(source);
    FILE *target = fopen(in(to), "wb");
    assert_non_null(target);
    assert_int_equal(n, fwrite(bytes, 1, n, target));
    fclose(target);
}

static void write_text(const char *name, const char *text)
{
    FILE *file = fopen(in(name), "wb");
    assert_non_null(file);
    fputs(text, file);
    fclose(file);
}

#define OK(call)                                                               \
    do {                                                                       \
        const enum kith_err ok_err = (call);                                   \
        if (ok_err != KITH_OK)                                                 \
            fail_msg("%s", error);                                             \
    } while (0)

/* Refused with this code and a sentence that holds these words. */
static void refused(enum kith_err expected, const char *words,
                    enum kith_err found)
{
    if (found != expected || !strstr(error, words))
        fail_msg("expected %d \"%s\", found %d \"%s\"", (int)expected, words,
                 (int)found, error);
    error[0] = '\0';
}

static int setup(void **state)
{
    (void)state;
    snprintf(root, sizeof root, "/tmp/kith-keys-XXXXXX");
    return mkdtemp(root) ? 0 : -1;
}

static int teardown(void **state)
{
    (void)state;
    char command[128];
    snprintf(command, sizeof command, "rm -rf '%s'", root);
    return system(command);
}

/* An authority in ca/, nodes in a/ and b/ with certificates. */
static void with_policy(enum kith_suite suite)
{
    OK(kith_keys_new_authority(in("ca"), suite, error));
    for (int i = 0; i < 2; i++) {
        const char *node = i ? "b" : "a";
        char name[32];
        OK(kith_keys_new_node(in(node), i ? "bob" : "alice", error));
        snprintf(name, sizeof name, "%s/node.request", node);
        char out[32];
        snprintf(out, sizeof out, "%s/node.crt", node);
        OK(kith_keys_certify(in("ca"), in(name), in(out), 30, KITH_ROLE_TRAIN,
                             (uint32_t)i, error));
        snprintf(name, sizeof name, "%s/ca.pub", node);
        copy("ca/ca.pub", name);
    }
}

static void make_cluster(void)
{
    with_policy(KITH_SUITE_ANY);
}

static bool shake_hands(const char *one, const char *two)
{
    struct sessions pair;
    const char *folders[2] = {one, two};
    sessions_setup(&pair, KITH_SUITE_CHACHAPOLY, NULL, 9);
    for (int i = 0; i < 2; i++) {
        OK(kith_keys_load(in(folders[i]), &pair.ends[i].identity,
                          &pair.ends[i].trust, error));
        pair.ends[i].config.utc_s = (int64_t)time(NULL);
    }
    assert_true(sessions_start(&pair));
    const bool open = sessions_connect(&pair);
    for (int i = 0; i < 2; i++)
        kith_keys_free(&pair.ends[i].identity, &pair.ends[i].trust);
    sessions_close(&pair);
    return open;
}

static enum kith_err load(const char *folder)
{
    struct kith_identity identity;
    struct kith_trust trust;
    const enum kith_err err =
        kith_keys_load(in(folder), &identity, &trust, error);
    if (err == KITH_OK)
        kith_keys_free(&identity, &trust);
    return err;
}

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
    refused(KITH_ENOENT, "cannot open", load("nowhere"));
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
        TEST(test_policy),
        TEST(test_policy_is_the_authoritys),
        TEST(test_policy_of_a_roll),
        TEST(test_damage),
        TEST(test_revocation),
        TEST(test_allow_list),
        TEST(test_show),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
