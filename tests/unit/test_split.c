/* Goal: a split gives every row to exactly one peer and every peer a row, the
 * same on each peer, as uneven as it was asked to be. Method: all peers' rows
 * of a synthetic set of ten classes, for many (kind, peers). */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "kith/data.h"

enum { ROWS = 5000, CLASSES = 10, PEERS_MAX = 200 };
static int32_t set_labels[ROWS];
static struct kith_examples set = {
    .labels = set_labels, .count = ROWS, .features = 1, .classes = CLASSES};

/* held[peer][class]: rows, after checking that they tile the set. */
static uint32_t held[PEERS_MAX][CLASSES];

static void divide(const char *text, uint64_t seed, uint32_t peers,
                   bool complete)
{
    struct kith_split split;
    static uint8_t owners[ROWS];
    struct kith_shares shares;
    assert_int_equal(kith_split_parse(text, &split), KITH_OK);
    assert_int_equal(kith_split_shares(&split, &set, seed, peers, &shares),
                     KITH_OK);
    assert_int_equal(shares.first[0], 0);
    memset(held, 0, sizeof held);
    memset(owners, 0, sizeof owners);
    for (uint32_t peer = 0; peer < peers; peer++) {
        uint32_t *rows;
        size_t count;
        assert_int_equal(
            kith_split_rows(&split, &set, seed, peers, peer, &rows, &count),
            KITH_OK);
        assert_true(count > 0);
        /* One's own are a part of what says all. */
        assert_int_equal(shares.first[peer + 1] - shares.first[peer], count);
        assert_memory_equal(shares.rows + shares.first[peer], rows,
                            count * sizeof *rows);
        for (size_t i = 0; i < count; i++) {
            assert_true(rows[i] < ROWS);
            assert_true(i == 0 || rows[i - 1] < rows[i]);
            owners[rows[i]]++;
            held[peer][set_labels[rows[i]]]++;
        }
        free(rows);
    }
    kith_shares_free(&shares);
    for (size_t i = 0; i < ROWS; i++)
        assert_true(owners[i] == 1 || (!complete && owners[i] == 0));
}

static uint32_t total_of(uint32_t peer)
{
    uint32_t total = 0;
    for (unsigned class = 0; class < CLASSES; class ++)
        total += held[peer][class];
    return total;
}

static unsigned classes_of(uint32_t peer)
{
    unsigned classes = 0;
    for (unsigned class = 0; class < CLASSES; class ++)
        classes += held[peer][class] > 0;
    return classes;
}

static void test_parse(void **state)
{
    (void)state;
    struct kith_split split;
    assert_int_equal(kith_split_parse("iid", &split), KITH_OK);
    assert_int_equal(split.kind, KITH_SPLIT_IID);
    assert_int_equal(kith_split_parse("dirichlet(0.1)", &split), KITH_OK);
    assert_int_equal(split.kind, KITH_SPLIT_DIRICHLET);
    assert_true(fabs(split.alpha - 0.1) < 1e-15);
    assert_int_equal(kith_split_parse("classes(2)", &split), KITH_OK);
    assert_int_equal(split.kind, KITH_SPLIT_CLASSES);
    assert_int_equal(split.classes, 2);
    const char *const bad[] = {"",
                               "IID",
                               "iid()",
                               "dirichlet",
                               "dirichlet()",
                               "dirichlet(0)",
                               "dirichlet(-1)",
                               "dirichlet(nan)",
                               "dirichlet(0.1",
                               "dirichlet(0.1) ",
                               "dirichlet(1e9)",
                               "classes(0)",
                               "classes(1.5)",
                               "classes(257)",
                               "classes(-1)",
                               ")",
                               "(",
                               "dirichlet(00000000000000000000000000000001)"};
    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++)
        assert_int_equal(kith_split_parse(bad[i], &split), KITH_EPARSE);
}

static void test_iid(void **state)
{
    (void)state;
    const uint32_t sizes[] = {1, 2, 7, 8, 200};
    for (size_t i = 0; i < 5; i++) {
        divide("iid", 7, sizes[i], true);
        for (uint32_t peer = 0; peer < sizes[i]; peer++)
            assert_in_range(total_of(peer), ROWS / sizes[i],
                            ROWS / sizes[i] + 1);
    }
}

static void test_dirichlet(void **state)
{
    (void)state;
    const char *const alphas[] = {"dirichlet(0.01)", "dirichlet(0.1)",
                                  "dirichlet(1)", "dirichlet(1000)"};
    const uint32_t sizes[] = {1, 3, 8, 200};
    for (size_t a = 0; a < 4; a++)
        for (size_t i = 0; i < 4; i++)
            divide(alphas[a], 7, sizes[i], true);
    /* A large alpha is nearly even: shares have relative deviation about
     * 1 / sqrt(alpha) = 3 %, so 20 % is six of them. */
    divide("dirichlet(1000)", 7, 8, true);
    for (uint32_t peer = 0; peer < 8; peer++)
        for (unsigned class = 0; class < CLASSES; class ++)
            assert_in_range(held[peer][class], 50, 75);
    /* A small one is not: E sum_j p_j^2 = (alpha + 1) / (8 alpha + 1) = 0.61
     * at 0.1, against 1/8 when even; averaged over 40 seeds x 10 classes. */
    double concentration = 0;
    for (uint64_t seed = 0; seed < 40; seed++) {
        divide("dirichlet(0.1)", seed, 8, true);
        for (unsigned class = 0; class < CLASSES; class ++) {
            for (uint32_t peer = 0; peer < 8; peer++) {
                const double share = held[peer][class] / (ROWS / 10.0);
                concentration += share * share / (40 * CLASSES);
            }
        }
    }
    assert_true(fabs(concentration - 1.1 / 1.8) < 0.05);
}

static void test_classes(void **state)
{
    (void)state;
    divide("classes(2)", 7, 5, true);
    for (uint32_t peer = 0; peer < 5; peer++) {
        assert_int_equal(classes_of(peer), 2);
        assert_int_equal(total_of(peer), 2 * ROWS / CLASSES);
    }
    divide("classes(3)", 7, 7, true);
    for (uint32_t peer = 0; peer < 7; peer++)
        assert_int_equal(classes_of(peer), 3);
    divide("classes(10)", 7, 4, true);
    for (uint32_t peer = 0; peer < 4; peer++)
        assert_int_equal(classes_of(peer), 10);
    /* Six of ten classes are dealt; the other rows are left out. */
    divide("classes(2)", 7, 3, false);
    unsigned rows = 0;
    for (uint32_t peer = 0; peer < 3; peer++) {
        assert_int_equal(classes_of(peer), 2);
        rows += total_of(peer);
    }
    assert_int_equal(rows, 6 * ROWS / CLASSES);
}

static void test_seeds_and_refusals(void **state)
{
    (void)state;
    uint32_t *rows, *other;
    size_t count, others;
    struct kith_split split = {.kind = KITH_SPLIT_DIRICHLET, .alpha = 0.5};
    assert_int_equal(kith_split_rows(&split, &set, 1, 8, 3, &rows, &count),
                     KITH_OK);
    assert_int_equal(kith_split_rows(&split, &set, 1, 8, 3, &other, &others),
                     KITH_OK);
    assert_int_equal(count, others);
    assert_memory_equal(rows, other, count * sizeof *rows);
    free(other);
    assert_int_equal(kith_split_rows(&split, &set, 2, 8, 3, &other, &others),
                     KITH_OK);
    assert_true(count != others ||
                memcmp(rows, other, count * sizeof *rows) != 0);
    free(rows);
    free(other);

    assert_int_equal(
        kith_split_rows(&split, &set, 1, ROWS + 1, 0, &rows, &count),
        KITH_EINVAL);
    assert_int_equal(kith_split_rows(&split, &set, 1, 0, 0, &rows, &count),
                     KITH_EINVAL);
    split = (struct kith_split){.kind = KITH_SPLIT_CLASSES, .classes = 11};
    assert_int_equal(kith_split_rows(&split, &set, 1, 4, 0, &rows, &count),
                     KITH_EINVAL);
    assert_null(rows);
    /* A window of text has no class. */
    const struct kith_examples windows = {.input = KITH_INPUT_TOKENS,
                                          .count = ROWS,
                                          .features = 8,
                                          .tokens = 8 * ROWS + 1,
                                          .classes = CLASSES};
    split.classes = 2;
    assert_int_equal(kith_split_rows(&split, &windows, 1, 4, 0, &rows, &count),
                     KITH_EINVAL);
    split.kind = KITH_SPLIT_IID;
    assert_int_equal(kith_split_rows(&split, &windows, 1, 4, 0, &rows, &count),
                     KITH_OK);
    assert_int_equal(count, ROWS / 4);
    free(rows);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_parse),
        cmocka_unit_test(test_iid),
        cmocka_unit_test(test_dirichlet),
        cmocka_unit_test(test_classes),
        cmocka_unit_test(test_seeds_and_refusals),
    };
    for (size_t i = 0; i < ROWS; i++)
        set_labels[i] = (int32_t)(i % CLASSES);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
