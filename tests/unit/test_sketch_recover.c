/* Goal: count sketches find the large coordinates of a sum that no peer has
 * (T3.2), estimate without bias, and show when they do not belong to a vector.
 * Method: power laws and Gaussians of fixed seeds; recall against sorting the
 * exact sum; means over hash families; a table with false cells, asked often.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include <cmocka.h>

#include "sketch_cases.h"

enum { DIM = 200000, PEERS = 8, KEPT = 200, CANDIDATES = 4 * KEPT };

static double shares[PEERS][DIM], total[DIM];

/* What each peer has: its part of the whole, and noise half as large. */
static void split(const double *whole)
{
    static double noise[DIM];
    memset(total, 0, sizeof total);
    for (size_t peer = 0; peer < PEERS; peer++) {
        normal(100 + peer, DIM, noise);
        for (size_t i = 0; i < DIM; i++) {
            shares[peer][i] = whole[i] / PEERS * (1 + 0.5 * noise[i]);
            total[i] += shares[peer][i];
        }
    }
}

static void largest_of(const double *values, struct kith_top_list *list)
{
    list->count = 0;
    for (size_t i = 0; i < DIM; i++)
        kith_top_list_offer(list, (uint32_t)i, values[i]);
    kith_top_list_finish(list);
}

/* Of the KEPT largest of the sum, the share that is among the KEPT largest of
 * the exact values at the candidates. */
static double recall(const struct kith_top_list *candidates)
{
    struct kith_top_entry fetched[KEPT], sorted[KEPT];
    struct kith_top_list found = kith_top_list_of(fetched, KEPT);
    struct kith_top_list truth = kith_top_list_of(sorted, KEPT);
    unsigned both = 0;
    for (uint32_t i = 0; i < candidates->count; i++) {
        const uint32_t index = candidates->entries[i].index;
        kith_top_list_offer(&found, index, total[index]);
    }
    kith_top_list_finish(&found);
    largest_of(total, &truth);
    for (uint32_t i = 0, j = 0; i < truth.count && j < found.count; i++) {
        while (j + 1 < found.count && sorted[i].index > fetched[j].index)
            j++;
        both += sorted[i].index == fetched[j].index;
    }
    return (double)both / KEPT;
}

/* Sketches of all peers, merged, and asked for candidates. */
static double recall_by(const struct kith_sketch_config *config, bool is_heavy)
{
    struct kith_sketch_family family = family_open(config, true);
    struct kith_sketch sum = sketch_open(&family), one = sketch_open(&family);
    struct kith_top_entry entries[CANDIDATES];
    struct kith_top_list list = kith_top_list_of(entries, CANDIDATES);
    for (size_t peer = 0; peer < PEERS; peer++) {
        kith_sketch_init(one.cells, &family, &one);
        assert_int_equal(kith_sketch_add(&one, 0, DIM, shares[peer]), KITH_OK);
        assert_true(kith_sketch_sane(&one, 1e6));
        assert_int_equal(kith_sketch_merge(&sum, &one), KITH_OK);
    }
    if (is_heavy)
        kith_sketch_heavy(&sum, KEPT, &list);
    else
        kith_sketch_largest(&sum, &list);
    assert_true(kith_top_list_sane(&list, DIM, 1e6));
    sketch_close(&one);
    sketch_close(&sum);
    family_close(&family);
    return recall(&list);
}

enum { SEEDS = 5 };

/* The least and the most of several families. */
static struct range {
    double least, most;
} recall_of(struct kith_sketch_config config, bool is_heavy)
{
    struct range range = {1, 0};
    for (config.seed = 0; config.seed < SEEDS; config.seed++) {
        const double found = recall_by(&config, is_heavy);
        range.least = fmin(range.least, found);
        range.most = fmax(range.most, found);
    }
    return range;
}

static void t32_a_power_law_comes_back(void **state)
{
    static double whole[DIM];
    static const struct {
        const char *what;
        uint32_t columns, blocks;
        enum kith_sketch_cells cells;
        bool is_heavy;
        const char *expected;
        double least;
    } rows[] = {
        {"T3.2 5 x 5000, float32, p2 = 4", 5000, 1, KITH_SKETCH_FLOAT32, false,
         ">= 0.99 (least of 5)", 0.99},
        {"T3.2 5 x 2000, float32, p2 = 4", 2000, 1, KITH_SKETCH_FLOAT32, false,
         ">= 0.90 (least of 5)", 0.90},
        {"T3.2 5 x 5000, fixed point, p2 = 4", 5000, 1, KITH_SKETCH_FIXED64,
         false, ">= 0.99 (least of 5)", 0.99},
        {"T3.2 5 x 5000, 20 blocks, p2 = 4", 5000, 20, KITH_SKETCH_FLOAT32,
         false, ">= 0.99 (least of 5)", 0.99},
        {"T3.2 5 x 2000, 20 blocks, p2 = 4", 2000, 20, KITH_SKETCH_FLOAT32,
         false, ">= 0.90 (least of 5)", 0.90},
        {"T3.2 5 x 5000, HEAVYMIX of k = 200", 5000, 1, KITH_SKETCH_FLOAT64,
         true, ">= 0.80 (no p2)", 0.80},
    };
    (void)state;
    power_law(1, 1, DIM, whole);
    split(whole);
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        struct kith_sketch_config config =
            sketch_config(DIM, rows[i].columns, rows[i].cells);
        config.blocks = rows[i].blocks;
        const double found = recall_of(config, rows[i].is_heavy).least;
        said(rows[i].what, rows[i].expected, found);
        assert_true(found >= rows[i].least);
    }
}

static void t32_a_dense_gaussian_does_not(void **state)
{
    static double whole[DIM];
    (void)state;
    normal(2, DIM, whole);
    split(whole);
    for (uint32_t columns = 2000; columns <= 5000; columns += 3000) {
        const struct kith_sketch_config config =
            sketch_config(DIM, columns, KITH_SKETCH_FLOAT32);
        const double found = recall_of(config, false).most;
        char what[60];
        (void)snprintf(what, sizeof what, "T3.2 dense Gaussian, 5 x %u",
                       columns);
        said(what, "<= 0.15 (most of 5)", found);
        assert_true(found <= 0.15);
    }
}

/* Truncated to k before sketching, the same Gaussian comes back as what it was
 * truncated to: the noise of all others is not in the table. */
static void what_is_truncated_comes_back(void **state)
{
    enum { COLUMNS = 5000 };
    static double whole[DIM];
    struct kith_sketch_config config =
        sketch_config(DIM, COLUMNS, KITH_SKETCH_FLOAT32);
    struct kith_sketch_family family = family_open(&config, false);
    struct kith_sketch sketch = sketch_open(&family);
    struct kith_top_entry head[KEPT], entries[CANDIDATES];
    struct kith_top_list truncated = kith_top_list_of(head, KEPT);
    struct kith_top_list list = kith_top_list_of(entries, CANDIDATES);
    (void)state;
    normal(2, DIM, whole);
    largest_of(whole, &truncated);
    assert_int_equal(kith_sketch_add_list(&sketch, &truncated), KITH_OK);
    kith_sketch_largest(&sketch, &list);
    memcpy(total, whole, sizeof total);
    const double found = recall(&list);
    said("dense Gaussian truncated to k, 5 x 5000", ">= 0.99 (least of 5)",
         found);
    assert_true(found >= 0.99);
    sketch_close(&sketch);
    family_close(&family);
}

/* All that are heavy where there is room, k where they are fewer, and never
 * more than there is room for; ties go to the lower index. */
static void heavy_ones_are_all_there(void **state)
{
    enum { SMALL = 1000, ROOM = 12 };
    struct kith_sketch_config config =
        sketch_config(SMALL, 4000, KITH_SKETCH_FLOAT64);
    struct kith_sketch_family family = family_open(&config, false);
    struct kith_sketch sketch = sketch_open(&family);
    struct kith_top_entry entries[ROOM];
    static double v[SMALL];
    (void)state;
    for (uint32_t i = 0; i < 8; i++)
        v[100 * i + 7] = i % 2 ? -1 : 1; /* norm^2 = 8 */
    assert_int_equal(kith_sketch_add(&sketch, 0, SMALL, v), KITH_OK);
    assert_true(kith_sketch_norm(&sketch) > 2.7 &&
                kith_sketch_norm(&sketch) < 2.9);

    struct kith_top_list list = kith_top_list_of(entries, ROOM);
    kith_sketch_heavy(&sketch, 9, &list); /* 1 >= 8 / 9: all, and one more */
    assert_int_equal(list.count, 9);
    assert_int_equal(entries[0].index, 0); /* of the zeros, the first */
    for (uint32_t i = 0; i < 8; i++)
        assert_int_equal(entries[i + 1].index, 100 * i + 7);

    list = kith_top_list_of(entries, 5);
    kith_sketch_heavy(&sketch, 3, &list); /* 1 < 8 / 3: three, by index */
    assert_int_equal(list.count, 3);
    assert_int_equal(entries[2].index, 207);

    list = kith_top_list_of(entries, 5);
    kith_sketch_heavy(&sketch, 5, &list); /* 1 < 8 / 5 */
    assert_int_equal(list.count, 5);
    kith_sketch_largest(&sketch, &list); /* eight are alike: five, by index */
    assert_int_equal(list.count, 5);
    assert_int_equal(entries[4].index, 407);
    sketch_close(&sketch);
    family_close(&family);
}

/* Where noise makes more than k heavy, all of them are candidates. */
static void heavy_ones_may_be_more_than_k(void **state)
{
    enum { ROOM = 6 };
    struct kith_sketch_config config =
        sketch_config(10, 2, KITH_SKETCH_FLOAT64);
    config.rows = 1;
    struct kith_sketch_family family = family_open(&config, false);
    struct kith_sketch sketch = sketch_open(&family);
    struct kith_top_entry entries[ROOM];
    struct kith_top_list list = kith_top_list_of(entries, ROOM);
    (void)state;
    /* norm^2 = 2, and every estimate is 1 or -1. */
    ((double *)sketch.cells)[0] = ((double *)sketch.cells)[1] = 1;
    kith_sketch_heavy(&sketch, 1, &list); /* 1 < 2 / 1 */
    assert_int_equal(list.count, 1);
    kith_sketch_heavy(&sketch, 2, &list); /* 1 >= 2 / 2 */
    assert_int_equal(list.count, ROOM);
    for (uint32_t i = 0; i < ROOM; i++)
        assert_int_equal(entries[i].index, i);
    sketch_close(&sketch);
    family_close(&family);
}

/* Over families the mean of an estimate is the value: of one row by the signs'
 * independence, of a median of five by symmetry. */
static void estimates_have_no_bias(void **state)
{
    enum { SMALL = 2000, FAMILIES = 4000, COLUMNS = 50, ASKED = 20 };
    static double v[SMALL];
    static const uint32_t row_counts[] = {1, 5};
    (void)state;
    normal(3, SMALL, v);
    for (size_t r = 0; r < 2; r++) {
        double sum[ASKED] = {0}, squares = 0, worst = 0;
        struct kith_sketch_config config =
            sketch_config(SMALL, COLUMNS, KITH_SKETCH_FLOAT64);
        config.rows = row_counts[r];
        config.blocks = 4;
        for (uint64_t seed = 0; seed < FAMILIES; seed++) {
            config.seed = seed;
            struct kith_sketch_family family = family_open(&config, false);
            struct kith_sketch sketch = sketch_open(&family);
            assert_int_equal(kith_sketch_add(&sketch, 0, SMALL, v), KITH_OK);
            for (uint32_t i = 0; i < ASKED; i++) {
                const double off =
                    kith_sketch_query(&sketch, 97 * i) - v[97 * i];
                sum[i] += off;
                squares += off * off / ASKED;
            }
            sketch_close(&sketch);
            family_close(&family);
        }
        const double error = sqrt(squares / FAMILIES / FAMILIES);
        for (uint32_t i = 0; i < ASKED; i++)
            worst = fmax(worst, fabs(sum[i] / FAMILIES) / error);
        char what[60];
        (void)snprintf(what, sizeof what, "largest mean error of 20, r = %u",
                       config.rows);
        said(what, "<= 4 standard errors", worst);
        assert_true(worst <= 4);
        if (config.rows == 1) { /* variance |v|^2 / c */
            double energy = 0;
            for (size_t i = 0; i < SMALL; i++)
                energy += v[i] * v[i];
            const double ratio = squares / FAMILIES / (energy / COLUMNS);
            said("variance of a row's estimate : |v|^2 / c", "1 +- 0.05",
                 ratio);
            assert_true(fabs(ratio - 1) < 0.05);
        }
    }
}

/* A share f of one row's cells is false: m random coordinates find it with
 * 1 - (1 - f)^m. */
static void false_cells_are_found(void **state)
{
    enum { SMALL = 20000, COLUMNS = 500, TRIALS = 4000, ASKED = 16 };
    static double v[SMALL];
    struct kith_sketch_config config =
        sketch_config(SMALL, COLUMNS, KITH_SKETCH_FLOAT64);
    struct kith_sketch_family family = family_open(&config, true);
    struct kith_sketch sketch = sketch_open(&family);
    const double tolerance = 0.5, shares_false[] = {0, 0.02, 0.1, 0.5};
    struct kith_rng rng;
    (void)state;
    for (size_t i = 0; i < SMALL; i++)
        v[i] = (i % 2 ? 1 : -1) * 1e-4;
    assert_int_equal(kith_sketch_add(&sketch, 0, SMALL, v), KITH_OK);
    kith_rng_init(&rng, 5, KITH_STREAM_TEST, 0);
    for (size_t s = 0; s < 4; s++) {
        const uint32_t count = (uint32_t)(shares_false[s] * COLUMNS);
        double *row = (double *)sketch.cells + 2 * COLUMNS;
        unsigned found = 0;
        for (uint32_t i = 0; i < count; i++)
            row[i] += 1;
        for (unsigned trial = 0; trial < TRIALS; trial++) {
            uint32_t indices[ASKED];
            double exact[ASKED];
            for (uint32_t i = 0; i < ASKED; i++) {
                indices[i] = kith_rng_below(&rng, SMALL);
                exact[i] = v[indices[i]];
            }
            found += kith_sketch_misses(&sketch, ASKED, indices, exact,
                                        tolerance) > 0;
        }
        for (uint32_t i = 0; i < count; i++)
            row[i] -= 1;
        const double expected = 1 - pow(1 - shares_false[s], ASKED);
        const double measured = (double)found / TRIALS;
        char what[60], number[40];
        (void)snprintf(what, sizeof what, "%g of a row false, 16 asked: found",
                       shares_false[s]);
        (void)snprintf(number, sizeof number, "%.4f +- 0.05", expected);
        said(what, number, measured);
        assert_true(fabs(measured - expected) <= 0.05);
    }
    sketch_close(&sketch);
    family_close(&family);
}

/* Chebyshev's bound on what an honest sketch misses. */
static void honest_sketches_miss_little(void **state)
{
    enum { SMALL = 20000, COLUMNS = 500 };
    static double v[SMALL];
    static uint32_t all[SMALL];
    double energy = 0;
    struct kith_sketch_config config =
        sketch_config(SMALL, COLUMNS, KITH_SKETCH_FLOAT32);
    struct kith_sketch_family family = family_open(&config, true);
    struct kith_sketch sketch = sketch_open(&family);
    (void)state;
    power_law(6, 0.5, SMALL, v);
    for (uint32_t i = 0; i < SMALL; i++) {
        all[i] = i;
        energy += v[i] * v[i];
    }
    assert_int_equal(kith_sketch_add(&sketch, 0, SMALL, v), KITH_OK);
    for (int times = 2; times <= 8; times *= 2) {
        const double tolerance = times * sqrt(energy / COLUMNS);
        const double share =
            (double)kith_sketch_misses(&sketch, SMALL, all, v, tolerance) /
            (5.0 * SMALL);
        char what[60], expected[40];
        (void)snprintf(what, sizeof what, "honest, tolerance %d |v| / sqrt(c)",
                       times);
        (void)snprintf(expected, sizeof expected, "<= %.4f",
                       1.0 / (times * times));
        said(what, expected, share);
        assert_true(share <= 1.0 / (times * times));
    }
    const double nan_value = NAN;
    assert_int_equal(kith_sketch_misses(&sketch, 1, all, &nan_value, 1), 5);
    sketch_close(&sketch);
    family_close(&family);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(t32_a_power_law_comes_back),
        cmocka_unit_test(t32_a_dense_gaussian_does_not),
        cmocka_unit_test(what_is_truncated_comes_back),
        cmocka_unit_test(heavy_ones_are_all_there),
        cmocka_unit_test(heavy_ones_may_be_more_than_k),
        cmocka_unit_test(estimates_have_no_bias),
        cmocka_unit_test(false_cells_are_found),
        cmocka_unit_test(honest_sketches_miss_little),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
