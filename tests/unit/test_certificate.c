/* Certificates, trust and revocation lists.
 *
 * Method: one good certificate, then one thing wrong at a time, each refused
 * with its code; every byte and every length altered; then the good one again.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "tests/support/sessions.h"

struct fixture {
    struct sessions_cluster cluster;
    struct kith_identity identity;
    struct kith_certificate certificate;
};

static int setup(void **state)
{
    struct fixture *f = malloc(sizeof *f);
    if (!f)
        return -1;
    sessions_cluster(&f->cluster, "home");
    sessions_identity(&f->identity, "alice", &f->cluster);
    f->certificate = sessions_certificate(&f->identity, "alice", &f->cluster);
    *state = f;
    return 0;
}

static int teardown(void **state)
{
    free(*state);
    return 0;
}

static enum kith_err check(const struct fixture *f,
                           const struct kith_trust *trust, int64_t utc_s)
{
    struct kith_certificate decoded;
    return kith_trust_check(trust, f->identity.certificate,
                            f->identity.certificate_bytes, f->identity.key,
                            utc_s, &decoded);
}

static void test_round_trip(void **state)
{
    struct fixture *f = *state;
    struct kith_certificate decoded;
    uint8_t again[KITH_CERTIFICATE_BYTES_MAX];
    f->certificate.quota_round_bytes = UINT64_MAX;
    f->certificate.quota_model_bytes = 1;
    f->certificate.roles = KITH_ROLE_TRAIN | KITH_ROLE_SEED;
    f->certificate.rank = 70000;
    memset(f->certificate.name, 'x', KITH_NAME_MAX - 1);
    sessions_certify(&f->identity, &f->certificate, &f->cluster);

    assert_int_equal(KITH_OK, kith_certificate_decode(
                                  f->identity.certificate,
                                  f->identity.certificate_bytes, &decoded));
    assert_memory_equal(decoded.cluster, f->certificate.cluster, 32);
    assert_memory_equal(decoded.key, f->identity.key, 32);
    assert_string_equal(decoded.name, f->certificate.name);
    assert_true(decoded.serial == 7 && decoded.roles == 5);
    assert_int_equal(decoded.rank, 70000);
    assert_true(decoded.not_before_s == f->certificate.not_before_s);
    assert_true(decoded.not_after_s == f->certificate.not_after_s);
    assert_true(decoded.quota_round_bytes == UINT64_MAX);
    assert_true(decoded.quota_model_bytes == 1);

    const size_t n = kith_certificate_sign(&decoded, f->cluster.secret, again);
    assert_int_equal(n, f->identity.certificate_bytes);
    assert_memory_equal(again, f->identity.certificate, n);
    assert_int_equal(KITH_OK, check(f, &f->cluster.trust, SESSIONS_UTC_S));
}

static void test_every_byte_counts(void **state)
{
    struct fixture *f = *state;
    const size_t n = f->identity.certificate_bytes;
    for (size_t i = 0; i < n; i++) {
        f->identity.certificate[i] ^= 0x01;
        const enum kith_err err = check(f, &f->cluster.trust, SESSIONS_UTC_S);
        assert_true(err == (i == 2 ? KITH_EVERSION : KITH_EPARSE) ||
                    err == KITH_EAUTH);
        f->identity.certificate[i] ^= 0x01;
    }
    for (size_t cut = 0; cut < n; cut++) {
        f->identity.certificate_bytes = cut;
        assert_int_equal(KITH_EPARSE,
                         check(f, &f->cluster.trust, SESSIONS_UTC_S));
    }
    f->identity.certificate[n] = 0;
    f->identity.certificate_bytes = n + 1;
    assert_int_equal(KITH_EPARSE, check(f, &f->cluster.trust, SESSIONS_UTC_S));
    f->identity.certificate_bytes = KITH_CERTIFICATE_BYTES_MAX + 1;
    struct kith_certificate decoded;
    uint8_t longer[KITH_CERTIFICATE_BYTES_MAX + 1] = {1, 1, 2};
    memset(&decoded, 0xff, sizeof decoded);
    assert_int_equal(KITH_EPARSE,
                     kith_certificate_decode(longer, sizeof longer, &decoded));
    /* No role and no key, for a caller that does not look. */
    static const struct kith_certificate nothing;
    assert_memory_equal(&decoded, &nothing, sizeof decoded);

    f->identity.certificate_bytes = n;
    assert_int_equal(KITH_OK, check(f, &f->cluster.trust, SESSIONS_UTC_S));
}

/* Signed by the right authority and still malformed. */
static void test_names_and_roles(void **state)
{
    struct fixture *f = *state;
    struct kith_certificate decoded;
    static const char *const bad[] = {"a b", "a\nb", "../x", "a\"b"};
    uint8_t *name = f->identity.certificate + 3 + 34 + 10 + 34 + 2;
    assert_memory_equal(name, "alice", 5);
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        memcpy(name, bad[i], strlen(bad[i]));
        assert_int_equal(KITH_EPARSE,
                         kith_certificate_decode(f->identity.certificate,
                                                 f->identity.certificate_bytes,
                                                 &decoded));
    }
    memcpy(name, "alice", 5);
    uint8_t *roles = name + 5 + 10 + 10 + 2;
    assert_int_equal(KITH_ROLE_TRAIN, roles[3]);
    roles[3] = 0;
    assert_int_equal(KITH_EPARSE, kith_certificate_decode(
                                      f->identity.certificate,
                                      f->identity.certificate_bytes, &decoded));
    roles[3] = 8;
    assert_int_equal(KITH_EPARSE, kith_certificate_decode(
                                      f->identity.certificate,
                                      f->identity.certificate_bytes, &decoded));
    roles[3] = KITH_ROLE_TRAIN;
    name[5 + 2] = 0x80; /* A date before 1970. */
    assert_int_equal(KITH_EPARSE, kith_certificate_decode(
                                      f->identity.certificate,
                                      f->identity.certificate_bytes, &decoded));
    name[5 + 2] = 0;
    assert_int_equal(KITH_OK, check(f, &f->cluster.trust, SESSIONS_UTC_S));
}

static void test_authorities(void **state)
{
    struct fixture *f = *state;
    struct sessions_cluster stranger;
    sessions_cluster(&stranger, "elsewhere");
    struct kith_trust trust = stranger.trust;
    assert_int_equal(KITH_EAUTH, check(f, &trust, SESSIONS_UTC_S));
    memcpy(trust.cluster, f->cluster.trust.cluster, 32); /* The id alone. */
    assert_int_equal(KITH_EAUTH, check(f, &trust, SESSIONS_UTC_S));

    memcpy(trust.authority[1], f->cluster.trust.authority[0], 32);
    assert_int_equal(KITH_EAUTH, check(f, &trust, SESSIONS_UTC_S));
    trust.authority_count = 2; /* A roll: either signs. */
    assert_int_equal(KITH_OK, check(f, &trust, SESSIONS_UTC_S));

    f->identity.key[0] ^= 1; /* Somebody else's certificate. */
    assert_int_equal(KITH_EAUTH, check(f, &trust, SESSIONS_UTC_S));
}

static void test_dates(void **state)
{
    struct fixture *f = *state;
    const struct kith_trust *trust = &f->cluster.trust;
    const int64_t from = f->certificate.not_before_s;
    const int64_t to = f->certificate.not_after_s;
    assert_int_equal(KITH_EEXPIRED, check(f, trust, from - 301));
    assert_int_equal(KITH_OK, check(f, trust, from - 300));
    assert_int_equal(KITH_OK, check(f, trust, to + 300));
    assert_int_equal(KITH_EEXPIRED, check(f, trust, to + 301));
    assert_int_equal(KITH_EEXPIRED, check(f, trust, INT64_MAX));
    assert_int_equal(KITH_EEXPIRED, check(f, trust, 0));
    assert_int_equal(KITH_EEXPIRED, check(f, trust, INT64_MIN));
}

static int compare(const void *a, const void *b)
{
    return memcmp(a, b, KITH_FINGERPRINT_BYTES);
}

/* count fingerprints, `one` among them, ascending. */
static void fill_list(uint8_t (*list)[32], uint32_t count, const uint8_t *one)
{
    for (uint32_t i = 0; i < count; i++)
        kith_fingerprint((const uint8_t *)&i, sizeof i, list[i]);
    if (one)
        memcpy(list[count / 2], one, 32);
    qsort(list, count, 32, compare);
}

static void test_revoked_and_allowed(void **state)
{
    struct fixture *f = *state;
    struct kith_trust trust = f->cluster.trust;
    uint8_t print[32], list[101][32];
    for (uint32_t count = 0; count <= 101; count++) {
        kith_fingerprint(f->identity.certificate, f->identity.certificate_bytes,
                         print);
        trust.revoked = (const uint8_t(*)[32])list;
        trust.revoked_count = count;
        fill_list(list, count, NULL);
        assert_int_equal(KITH_OK, check(f, &trust, SESSIONS_UTC_S));
        if (count == 0)
            continue;
        fill_list(list, count, print);
        assert_int_equal(KITH_EREVOKED, check(f, &trust, SESSIONS_UTC_S));
    }

    struct kith_trust allow = {.allowed = (const uint8_t(*)[32])list,
                               .allowed_count = 9};
    struct kith_certificate decoded;
    kith_fingerprint(f->identity.key, 32, print);
    fill_list(list, 9, NULL);
    assert_int_equal(
        KITH_EAUTH,
        kith_trust_check(&allow, NULL, 0, f->identity.key, 0, &decoded));
    fill_list(list, 9, print);
    assert_int_equal(KITH_OK, kith_trust_check(&allow, NULL, 0, f->identity.key,
                                               0, &decoded));
    assert_int_equal(16, strlen(decoded.name));
    assert_int_equal(KITH_EAUTH, check(f, &allow, SESSIONS_UTC_S));
    allow.allowed_count = 0; /* Nobody is trusted by nothing. */
    assert_int_equal(
        KITH_EAUTH,
        kith_trust_check(&allow, NULL, 0, f->identity.key, 0, &decoded));
}

static void test_crl(void **state)
{
    struct fixture *f = *state;
    struct kith_trust trust = f->cluster.trust;
    static uint8_t list[KITH_REVOKED_MAX][32], bytes[KITH_CRL_BYTES_MAX + 1];
    static const uint32_t counts[] = {0, 1, 5, KITH_REVOKED_MAX};
    struct kith_crl decoded;
    for (size_t i = 0; i < 4; i++) {
        struct kith_crl crl = {.sequence = 3,
                               .issued_s = SESSIONS_UTC_S,
                               .count = counts[i],
                               .fingerprints = (const uint8_t(*)[32])list};
        memcpy(crl.cluster, trust.cluster, 32);
        fill_list(list, counts[i], NULL);
        assert_int_equal(KITH_OK,
                         kith_crl_sign(&crl, f->cluster.secret, bytes));
        const size_t n = kith_crl_size(counts[i]);

        assert_int_equal(KITH_OK, kith_crl_verify(&trust, bytes, n, &decoded));
        assert_int_equal(counts[i], decoded.count);
        assert_int_equal(SESSIONS_UTC_S, decoded.issued_s);
        assert_memory_equal(decoded.fingerprints, list, 32 * counts[i]);
        assert_int_equal(KITH_EPARSE,
                         kith_crl_verify(&trust, bytes, n - 1, &decoded));
        assert_int_equal(KITH_EPARSE,
                         kith_crl_verify(&trust, bytes, n + 1, &decoded));
        trust.revoked_sequence = 3; /* The same edition again. */
        assert_int_equal(KITH_EEXPIRED,
                         kith_crl_verify(&trust, bytes, n, &decoded));
        trust.revoked_sequence = 4; /* An older one. */
        assert_int_equal(KITH_EEXPIRED,
                         kith_crl_verify(&trust, bytes, n, &decoded));
        trust.revoked_sequence = UINT64_MAX;
        assert_int_equal(KITH_EEXPIRED,
                         kith_crl_verify(&trust, bytes, n, &decoded));
        trust.revoked_sequence = 2;
        for (size_t at = 0; at < n; at += 1 + n / 200) {
            bytes[at] ^= 4;
            const enum kith_err err =
                kith_crl_verify(&trust, bytes, n, &decoded);
            assert_true(err == KITH_EPARSE || err == KITH_EAUTH);
            bytes[at] ^= 4;
        }
        assert_int_equal(KITH_OK, kith_crl_verify(&trust, bytes, n, &decoded));
    }
    struct kith_crl bad = {.count = 2,
                           .fingerprints = (const uint8_t(*)[32])list};
    memcpy(list[1], list[0], 32); /* Twice the same. */
    assert_int_equal(KITH_EINVAL,
                     kith_crl_sign(&bad, f->cluster.secret, bytes));
    bad.count = KITH_REVOKED_MAX + 1;
    assert_int_equal(KITH_EINVAL,
                     kith_crl_sign(&bad, f->cluster.secret, bytes));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(test_round_trip, setup, teardown),
        cmocka_unit_test_setup_teardown(test_every_byte_counts, setup,
                                        teardown),
        cmocka_unit_test_setup_teardown(test_names_and_roles, setup, teardown),
        cmocka_unit_test_setup_teardown(test_authorities, setup, teardown),
        cmocka_unit_test_setup_teardown(test_dates, setup, teardown),
        cmocka_unit_test_setup_teardown(test_revoked_and_allowed, setup,
                                        teardown),
        cmocka_unit_test_setup_teardown(test_crl, setup, teardown),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
