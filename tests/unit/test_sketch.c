/* Goal: a count sketch is linear (T3.1), its hashes are those of its formula
 * and as independent as it says. Method: places written a second time from the
 * coefficients with 128-bit remainders; chi-square over families of many
 * seeds; merges in many orders. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include <cmocka.h>

#include "kith/hash.h"
#include "sketch_cases.h"
#include "src/gossip/sketch/sketch_hash.h"

#define COUNT(array) (sizeof(array) / sizeof((array)[0]))
__extension__ typedef unsigned __int128 wide;

/* ((c_n x + c_n-1) x + ...) mod p, each step by a remainder. */
static uint64_t polynomial(const uint64_t *c, unsigned degree, uint64_t x)
{
    wide state = c[degree];
    while (degree-- > 0)
        state = (state * x + c[degree]) % SKETCH_PRIME;
    return (uint64_t)state;
}

static uint32_t place_of(const struct kith_sketch_family *family, uint32_t row,
                         uint64_t index)
{
    const struct kith_sketch_config *config = &family->config;
    const uint64_t period = (config->dim + config->blocks - 1) / config->blocks;
    const uint64_t x = index % period, block = index / period;
    const uint32_t turn = family->turns[row * config->blocks + block];
    const uint64_t h = polynomial(family->bucket[row], 1, x);
    const uint64_t s = polynomial(family->sign[row], 3, x);
    const uint64_t column =
        ((uint64_t)((wide)h * config->columns >> 61) + turn / 2) %
        config->columns;
    return (uint32_t)(2 * column + ((s + turn) & 1));
}

static void places_are_those_of_the_formula(void **state)
{
    static const struct {
        uint64_t dim;
        uint32_t columns, blocks;
    } cases[] = {{1, 2, 1},       {300, 7, 1},    {1000, 4096, 3},
                 {1001, 100, 10}, {130, 50, 130}, {UINT64_C(1) << 31, 999, 1}};
    uint64_t hash = KITH_HASH_START;
    (void)state;
    for (size_t c = 0; c < COUNT(cases); c++)
        for (int cached = 0; cached < 2; cached++) {
            struct kith_sketch_config config = sketch_config(
                cases[c].dim, cases[c].columns, KITH_SKETCH_FLOAT32);
            config.blocks = cases[c].blocks;
            if (cached && config.dim > 10000)
                continue;
            struct kith_sketch_family family = family_open(&config, cached);
            const uint64_t step = config.dim / 1000 + 1;
            for (uint64_t i = 0; i < config.dim; i += step)
                for (uint32_t row = 0; row < config.rows; row++) {
                    const uint32_t place = kith_sketch_place(&family, row, i);
                    assert_int_equal(place, place_of(&family, row, i));
                    assert_true(place / 2 < config.columns);
                    hash = kith_hash_word(hash, place);
                }
            family_close(&family);
        }
    /* Peers of two releases add each other's sketches: another value here is
     * another version of the family. */
    print_message("  hash of places: %016llx\n", (unsigned long long)hash);
    assert_true(hash == UINT64_C(0x4968166f4015d046));
}

static void halves_are_the_product(void **state)
{
    struct kith_rng rng;
    (void)state;
    kith_rng_init(&rng, 1, KITH_STREAM_TEST, 0);
    for (int i = 0; i < 100000; i++) {
        const uint64_t a = kith_rng_u64(&rng) >> 3, b = kith_rng_u64(&rng) >> 3;
        const uint64_t coefficients[2] = {b, i % 2 ? a : SKETCH_PRIME - 1};
        const uint32_t x = i % 3 ? kith_rng_u32(&rng) : UINT32_MAX;
        const uint64_t expected = polynomial(coefficients, 1, x);
        assert_true(sketch_residue(sketch_step(coefficients[1], x, b)) ==
                    expected);
        assert_true(sketch_residue(sketch_step_by_halves(coefficients[1], x,
                                                         b)) == expected);
    }
}

/* sum (seen - expected)^2 / expected, in standard deviations of what it is of
 * a uniform draw. */
static double chi_square(const unsigned *seen, size_t cells, double draws)
{
    double sum = 0;
    for (size_t i = 0; i < cells; i++) {
        const double off = seen[i] - draws / (double)cells;
        sum += off * off / (draws / (double)cells);
    }
    return (sum - (double)(cells - 1)) / sqrt(2.0 * (double)(cells - 1));
}

/* Over families: the buckets of two coordinates are every pair alike, and so
 * are the signs of four; with blocks those of three, for the product of the
 * signs of x and y in two blocks is 1. */
static void hashes_are_independent(void **state)
{
    enum { SEEDS = 4000, COLUMNS = 7 };
    static const struct {
        const char *what;
        uint32_t blocks, signs;
        uint32_t at[4];
    } cases[] = {{"neighbours", 1, 4, {10, 11, 12, 13}},
                 {"in arithmetic progression", 1, 4, {0, 100, 200, 300}},
                 {"x and y in two blocks", 4, 3, {3, 9, 103, 109}},
                 {"the same x in four blocks", 4, 4, {5, 105, 205, 305}}};
    (void)state;
    for (size_t c = 0; c < COUNT(cases); c++) {
        unsigned pairs[COLUMNS * COLUMNS] = {0}, signs[16] = {0};
        for (uint64_t seed = 0; seed < SEEDS; seed++) {
            struct kith_sketch_config config =
                sketch_config(400, COLUMNS, KITH_SKETCH_FLOAT32);
            config.seed = seed;
            config.rows = KITH_SKETCH_ROWS_MAX;
            config.blocks = cases[c].blocks;
            struct kith_sketch_family family = family_open(&config, false);
            for (uint32_t row = 0; row < config.rows; row++) {
                uint32_t place[4];
                for (unsigned i = 0; i < 4; i++)
                    place[i] = kith_sketch_place(&family, row, cases[c].at[i]);
                pairs[place[0] / 2 * COLUMNS + place[2] / 2]++;
                uint32_t pattern = 0;
                for (unsigned i = 0; i < cases[c].signs; i++)
                    pattern |= (place[i] & 1) << i;
                signs[pattern]++;
            }
            family_close(&family);
        }
        const double draws = (double)SEEDS * KITH_SKETCH_ROWS_MAX;
        const double of_pairs = chi_square(pairs, COUNT(pairs), draws);
        const double of_signs =
            chi_square(signs, (size_t)1 << cases[c].signs, draws);
        char what[60];
        (void)snprintf(what, sizeof what, "2 buckets, %s", cases[c].what);
        said(what, "< 4 deviations", of_pairs);
        (void)snprintf(what, sizeof what, "%u signs, %s", cases[c].signs,
                       cases[c].what);
        said(what, "< 4 deviations", of_signs);
        assert_true(fabs(of_pairs) < 4 && fabs(of_signs) < 4);
    }
}

enum { DIM = 50000, PEERS = 8 };
static double shares[PEERS][DIM], total[DIM];

/* Values on a grid of 2^-bits; 0: as they are. */
static void make_shares(unsigned bits)
{
    memset(total, 0, sizeof total);
    for (size_t peer = 0; peer < PEERS; peer++) {
        normal(peer, DIM, shares[peer]);
        for (size_t i = 0; i < DIM; i++) {
            double *value = &shares[peer][i];
            if (bits > 0)
                *value = rint(ldexp(*value, (int)bits)) * ldexp(1, -(int)bits);
            total[i] += *value;
        }
    }
}

/* The sketch of all, merged in an order of the seed. */
static struct kith_sketch merged(const struct kith_sketch_family *family,
                                 uint64_t seed)
{
    struct kith_sketch of[PEERS];
    uint32_t order[PEERS];
    struct kith_rng rng;
    kith_rng_init(&rng, seed, KITH_STREAM_TEST, 0);
    for (uint32_t peer = 0; peer < PEERS; peer++) {
        order[peer] = peer;
        of[peer] = sketch_open(family);
        assert_int_equal(kith_sketch_add(&of[peer], 0, DIM, shares[peer]),
                         KITH_OK);
    }
    kith_rng_shuffle(&rng, order, PEERS);
    /* A random tree: two of those that are left become one. */
    for (uint32_t left = PEERS; left > 1; left--) {
        const uint32_t i = kith_rng_below(&rng, left - 1);
        assert_int_equal(kith_sketch_merge(&of[order[i]], &of[order[left - 1]]),
                         KITH_OK);
        sketch_close(&of[order[left - 1]]);
    }
    return of[order[0]];
}

static void t31_merges_are_the_sketch_of_the_sum(void **state)
{
    static const char *const names[] = {"float32", "float64"};
    static const double bounds[] = {5e-6, 1e-14};
    (void)state;
    make_shares(0);
    for (uint32_t blocks = 1; blocks <= 16; blocks *= 16)
        for (unsigned cells = 0; cells < 2; cells++) {
            struct kith_sketch_config config =
                sketch_config(DIM, 1000, (enum kith_sketch_cells)cells);
            config.blocks = blocks;
            struct kith_sketch_family family = family_open(&config, true);
            struct kith_sketch sum = merged(&family, 1);
            struct kith_sketch of_sum = sketch_open(&family);
            double largest = 0, worst = 0;
            assert_int_equal(kith_sketch_add(&of_sum, 0, DIM, total), KITH_OK);
            for (size_t i = 0; i < sketch_cell_count(&config); i++) {
                const double a = sketch_cell(&sum, i, 1);
                const double b = sketch_cell(&of_sum, i, 1);
                largest = fmax(largest, fabs(b));
                worst = fmax(worst, fabs(a - b));
            }
            char what[60], expected[40];
            (void)snprintf(what, sizeof what, "T3.1 %s, %u blocks: worst cell",
                           names[cells], blocks);
            (void)snprintf(expected, sizeof expected, "<= %g of the largest",
                           bounds[cells]);
            said(what, expected, worst / largest);
            assert_true(worst <= bounds[cells] * largest);
            sketch_close(&sum);
            sketch_close(&of_sum);
            family_close(&family);
        }
}

static void t31_fixed_point_is_equal_to_the_bit(void **state)
{
    struct kith_sketch_config config =
        sketch_config(DIM, 1000, KITH_SKETCH_FIXED64);
    struct kith_sketch_family family = family_open(&config, true);
    const size_t bytes = kith_sketch_size(&config);
    unsigned differ = 0;
    (void)state;
    make_shares(0);
    struct kith_sketch first = merged(&family, 0);
    for (uint64_t seed = 1; seed <= 20; seed++) {
        struct kith_sketch other = merged(&family, seed);
        differ += memcmp(first.cells, other.cells, bytes) != 0 ||
                  first.mass != other.mass;
        sketch_close(&other);
    }
    said("T3.1 fixed point, of 20 orders other tables", "0", differ);
    assert_int_equal(differ, 0);
    sketch_close(&first);

    make_shares(20); /* whole units: the sum's own sketch, too */
    first = merged(&family, 0);
    struct kith_sketch of_sum = sketch_open(&family);
    assert_int_equal(kith_sketch_add(&of_sum, 0, DIM, total), KITH_OK);
    assert_memory_equal(first.cells, of_sum.cells, bytes);
    sketch_close(&first);
    sketch_close(&of_sum);
    family_close(&family);
}

/* In one go, in pieces, of float32, as a list, with and without a cache: the
 * same cells; and a query is what the fast path says. */
static void every_way_in_is_the_same(void **state)
{
    enum { SMALL = 1000 };
    static double v[SMALL], estimates[SMALL];
    static float narrow[SMALL];
    static struct kith_top_entry entries[SMALL];
    (void)state;
    normal(9, SMALL, v);
    for (uint32_t i = 0; i < SMALL; i++) {
        narrow[i] = (float)v[i];
        v[i] = (double)narrow[i];
        entries[i] = (struct kith_top_entry){v[i], i};
    }
    const struct kith_top_list list = {entries, SMALL, SMALL};
    for (unsigned cells = 0; cells < 3; cells++) {
        struct kith_sketch_config config =
            sketch_config(SMALL, 37, (enum kith_sketch_cells)cells);
        config.blocks = 3;
        const size_t bytes = kith_sketch_size(&config);
        struct kith_sketch_family cached = family_open(&config, true);
        struct kith_sketch_family hashed = family_open(&config, false);
        struct kith_sketch of[4] = {sketch_open(&cached), sketch_open(&hashed),
                                    sketch_open(&cached), sketch_open(&hashed)};
        assert_int_equal(kith_sketch_add(&of[0], 0, SMALL, v), KITH_OK);
        assert_int_equal(kith_sketch_add(&of[1], 0, 333, v), KITH_OK);
        assert_int_equal(kith_sketch_add(&of[1], 333, SMALL - 333, v + 333),
                         KITH_OK);
        assert_int_equal(kith_sketch_add_float32(&of[2], 0, SMALL, narrow),
                         KITH_OK);
        assert_int_equal(kith_sketch_add_list(&of[3], &list), KITH_OK);
        for (unsigned i = 1; i < 4; i++)
            assert_memory_equal(of[0].cells, of[i].cells, bytes);
        kith_sketch_estimate(&of[0], 0, SMALL, estimates);
        for (uint32_t i = 0; i < SMALL; i++)
            assert_true(kith_sketch_query(&of[1], i) == estimates[i]);
        for (unsigned i = 0; i < 4; i++)
            sketch_close(&of[i]);
        family_close(&cached);
        family_close(&hashed);
    }
}

/* To the nearest unit, ties to even. */
static void fixed_point_rounds_to_the_nearest(void **state)
{
    static const double cases[][2] = {{0.25, 0},  {0.5, 0},  {0.75, 1},
                                      {1.5, 2},   {2.5, 2},  {-0.75, -1},
                                      {-1.5, -2}, {-2.5, -2}};
    const struct kith_sketch_config config =
        sketch_config(1, 2, KITH_SKETCH_FIXED64);
    const double unit = ldexp(1, -(int)config.fraction);
    struct kith_sketch_family family = family_open(&config, false);
    struct kith_sketch sketch = sketch_open(&family);
    (void)state;
    for (size_t c = 0; c < COUNT(cases); c++) {
        const double value = cases[c][0] * unit;
        kith_sketch_init(sketch.cells, &family, &sketch);
        assert_int_equal(kith_sketch_add(&sketch, 0, 1, &value), KITH_OK);
        assert_true(kith_sketch_query(&sketch, 0) == cases[c][1] * unit);
        assert_true(sketch.mass == (uint64_t)fabs(cases[c][1]));
    }
    sketch_close(&sketch);
    family_close(&family);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(places_are_those_of_the_formula),
        cmocka_unit_test(halves_are_the_product),
        cmocka_unit_test(hashes_are_independent),
        cmocka_unit_test(t31_merges_are_the_sketch_of_the_sum),
        cmocka_unit_test(t31_fixed_point_is_equal_to_the_bit),
        cmocka_unit_test(every_way_in_is_the_same),
        cmocka_unit_test(fixed_point_rounds_to_the_nearest),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
