/* Goal: Philox4x32-10 as published, streams that do not disturb each other,
 * draws without bias. Method: the known-answer vectors of the authors' library
 * (Random123, kat_vectors), moments and chi-square with fixed seeds. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <cmocka.h>

#include "kith/rng.h"

static void test_known_answers(void **state)
{
    (void)state;
    static const struct {
        uint32_t counter[4], key[2], word[4];
    } vectors[] = {
        {{0, 0, 0, 0},
         {0, 0},
         {0x6627e8d5, 0xe169c58d, 0xbc57ac4c, 0x9b00dbd8}},
        {{0xffffffff, 0xffffffff, 0xffffffff, 0xffffffff},
         {0xffffffff, 0xffffffff},
         {0x408f276d, 0x41c83b0e, 0xa20bc7c6, 0x6d5451fd}},
        {{0x243f6a88, 0x85a308d3, 0x13198a2e, 0x03707344},
         {0xa4093822, 0x299f31d0},
         {0xd16cfe09, 0x94fdcceb, 0x5001e420, 0x24126ea1}},
    };

    for (size_t i = 0; i < sizeof vectors / sizeof vectors[0]; i++) {
        uint32_t word[4];
        kith_philox(vectors[i].key, vectors[i].counter, word);
        assert_memory_equal(word, vectors[i].word, sizeof word);
    }
}

/* The header's formula, word by word. */
static void test_stream_is_counter(void **state)
{
    (void)state;
    const uint64_t seed = UINT64_C(0x0123456789abcdef);
    const uint64_t entity = UINT64_C(5) << 32 | 9;
    const uint32_t key[2] = {0x89abcdef, 0x01234567};
    struct kith_rng rng;
    kith_rng_init(&rng, seed, KITH_STREAM_LINK, entity);

    for (uint32_t k = 0; k < 40; k++) {
        const uint32_t counter[4] = {k / 4, 9, 5, KITH_STREAM_LINK};
        uint32_t word[4];
        kith_philox(key, counter, word);
        assert_int_equal(kith_rng_u32(&rng), word[k % 4]);
    }
}

static void test_streams_differ(void **state)
{
    (void)state;
    struct kith_rng a, b, c, d;
    kith_rng_init(&a, 1, KITH_STREAM_BATCH, 3);
    kith_rng_init(&b, 1, KITH_STREAM_BATCH, 4);
    kith_rng_init(&c, 1, KITH_STREAM_TRIGGER, 3);
    kith_rng_init(&d, 2, KITH_STREAM_BATCH, 3);
    const uint64_t first = kith_rng_u64(&a);

    assert_int_not_equal(first, kith_rng_u64(&b));
    assert_int_not_equal(first, kith_rng_u64(&c));
    assert_int_not_equal(first, kith_rng_u64(&d));
}

/* Many at a time are the same draws: from the midst of a block, where some must
 * be drawn again, and where a stream carries. */
static void test_below_each(void **state)
{
    (void)state;
    static const uint32_t ranges[] = {1, 2, 200, 1u << 16, 3u << 24, 3u << 30};
    static uint32_t values[1000];
    for (size_t r = 0; r < sizeof ranges / sizeof *ranges; r++) {
        struct kith_rng one, many;
        kith_rng_init(&one, 5, KITH_STREAM_TEST, r);
        one.block = UINT32_MAX - 60;
        many = one;
        for (size_t count = 0; count < 1000; count += 37) {
            kith_rng_below_each(&many, ranges[r], values, count);
            for (size_t i = 0; i < count; i++)
                assert_int_equal(values[i], kith_rng_below(&one, ranges[r]));
        }
        assert_int_equal(kith_rng_u32(&many), kith_rng_u32(&one));
    }
}

/* A stream goes on past 2^32 blocks without starting again. */
static void test_block_carry(void **state)
{
    (void)state;
    struct kith_rng rng, start;
    kith_rng_init(&start, 1, KITH_STREAM_TEST, 0);
    rng = start;
    rng.block = UINT32_MAX;
    for (int i = 0; i < 4; i++)
        kith_rng_u32(&rng);

    assert_int_equal(rng.block, 0);
    assert_int_not_equal(kith_rng_u64(&rng), kith_rng_u64(&start));
}

/* 9 cells, 8 degrees of freedom: below 26.1 with probability 0.999. */
static void test_below_is_uniform(void **state)
{
    (void)state;
    enum { CELLS = 9, DRAWS = 90000 };
    uint32_t counts[CELLS] = {0};
    struct kith_rng rng;
    kith_rng_init(&rng, 11, KITH_STREAM_TEST, 0);
    for (int i = 0; i < DRAWS; i++) {
        const uint32_t draw = kith_rng_below(&rng, CELLS);
        assert_in_range(draw, 0, CELLS - 1);
        counts[draw]++;
    }

    double chi = 0;
    for (int i = 0; i < CELLS; i++) {
        const double gap = counts[i] - (double)DRAWS / CELLS;
        chi += gap * gap / ((double)DRAWS / CELLS);
    }
    assert_true(chi < 26.1);
    assert_int_equal(kith_rng_below(&rng, 1), 0);
}

static void test_double_is_in_unit(void **state)
{
    (void)state;
    enum { DRAWS = 100000 };
    struct kith_rng rng;
    kith_rng_init(&rng, 12, KITH_STREAM_TEST, 0);
    double sum = 0;
    for (int i = 0; i < DRAWS; i++) {
        const double draw = kith_rng_double(&rng);
        assert_true(draw >= 0 && draw < 1);
        sum += draw;
    }

    /* Four standard errors of the mean: 4 sqrt(1 / 12 / DRAWS). */
    assert_true(fabs(sum / DRAWS - 0.5) < 4 * sqrt(1.0 / 12 / DRAWS));
}

/* Mean, variance and tail of an exponential law with mean 1 ms. */
static void test_exponential(void **state)
{
    (void)state;
    enum { DRAWS = 200000 };
    struct kith_rng rng;
    kith_rng_init(&rng, 13, KITH_STREAM_TEST, 0);
    double sum = 0, squares = 0, tail = 0;
    for (int i = 0; i < DRAWS; i++) {
        const double x = (double)kith_rng_exponential(&rng, KITH_MS) / 1e6;
        assert_true(x >= 0);
        sum += x;
        squares += x * x;
        tail += x > 3;
    }

    /* Four standard errors: the variance of x is 1, of x^2 20. */
    assert_true(fabs(sum / DRAWS - 1) < 4 * sqrt(1.0 / DRAWS));
    assert_true(fabs(squares / DRAWS - 2) < 4 * sqrt(20.0 / DRAWS));
    assert_true(fabs(tail / DRAWS - exp(-3)) < 4 * sqrt(exp(-3) / DRAWS));
}

/* The table against libm, draw by draw: the bound that its header states. */
static void test_exponential_against_libm(void **state)
{
    (void)state;
    struct kith_rng rng, twin;
    kith_rng_init(&rng, 14, KITH_STREAM_TEST, 0);
    twin = rng;
    for (int i = 0; i < 20000; i++) {
        const double u = (double)(kith_rng_u64(&twin) | 1u) * 0x1p-64;
        const double want = -log(u);
        const double got = (double)kith_rng_exponential(&rng, KITH_S) / 1e9;
        assert_true(got > want - 3e-9);
        assert_true(got < want + 1.92e-6);
    }
}

static void test_exponential_edges(void **state)
{
    (void)state;
    struct kith_rng rng;
    kith_rng_init(&rng, 15, KITH_STREAM_TEST, 0);

    assert_int_equal(kith_rng_exponential(&rng, 0), 0);
    for (int i = 0; i < 1000; i++)
        assert_true(kith_rng_exponential(&rng, KITH_NEVER / 64) >= 0);
}

static void test_fill_and_shuffle(void **state)
{
    (void)state;
    uint8_t bytes[7];
    uint32_t values[100], seen[100] = {0}, moved = 0;
    struct kith_rng rng, twin;
    kith_rng_init(&rng, 16, KITH_STREAM_TEST, 0);
    twin = rng;
    for (uint32_t i = 0; i < 100; i++)
        values[i] = i;

    kith_rng_fill(&rng, bytes, sizeof bytes);
    const uint32_t word = kith_rng_u32(&twin);
    assert_int_equal(bytes[0], word & 0xff);
    assert_int_equal(bytes[3], word >> 24);

    kith_rng_shuffle(&rng, values, 100);
    for (uint32_t i = 0; i < 100; i++) {
        seen[values[i]]++;
        moved += values[i] != i;
    }
    for (uint32_t i = 0; i < 100; i++)
        assert_int_equal(seen[i], 1);
    assert_true(moved > 80);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_known_answers),
        cmocka_unit_test(test_stream_is_counter),
        cmocka_unit_test(test_streams_differ),
        cmocka_unit_test(test_below_each),
        cmocka_unit_test(test_block_carry),
        cmocka_unit_test(test_below_is_uniform),
        cmocka_unit_test(test_double_is_in_unit),
        cmocka_unit_test(test_exponential),
        cmocka_unit_test(test_exponential_against_libm),
        cmocka_unit_test(test_exponential_edges),
        cmocka_unit_test(test_fill_and_shuffle),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
