/* Goal: what kith/format.h promises of every format: bytes that depend on n
 * alone, Q(v) as near to v as the format says, the same bits from every backend
 * and every instruction set, and nothing that is not finite passes the gate or
 * unpacks. Method: lengths around blocks, values of many magnitudes, and wires
 * in which every byte is spoilt in turn. */
#include <float.h>
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "kith/format.h"
#include "kith/rng.h"
#include "src/training/backend/cpu.h"

enum { N_MAX = 1030, WIRE_MAX = 4 * N_MAX + 64, PART = 64 };
static const size_t sizes[] = {0,   1,   2,   15,  16,  17,   255,
                               256, 257, 511, 512, 777, N_MAX};
#define SIZES (sizeof sizes / sizeof sizes[0])

static _Alignas(64) float values[N_MAX], read_back[N_MAX];
static _Alignas(64) uint8_t wire[WIRE_MAX], other[WIRE_MAX];

/* Modular ones have a test of their own. */
static bool packs_whole(const struct kith_format *format)
{
    return !format->raw && format->residue_bits == 0;
}

/* Magnitudes from 2^-20 to 2^20, some 0, of both signs. */
static void draw(uint64_t seed, size_t n)
{
    struct kith_rng rng;
    kith_rng_init(&rng, seed, KITH_STREAM_TEST, n);
    for (size_t i = 0; i < n; i++) {
        const int power = (int)kith_rng_below(&rng, 40) - 20;
        const double sign = kith_rng_below(&rng, 2) == 0 ? 1 : -1;
        values[i] = kith_rng_below(&rng, 16) == 0
                        ? 0
                        : (float)(sign * ldexp(kith_rng_double(&rng), power));
    }
}

static size_t bytes_of(const struct kith_format *format, size_t n)
{
    return kith_format_bytes(format, 1, kith_backend_find("naive32"),
                             n * sizeof(float));
}

/* As the channel asks: part by part. */
static bool passes(const struct kith_format *format, size_t bytes)
{
    bool sane = true;
    for (size_t at = 0; at < bytes; at += PART) {
        const size_t left = bytes - at, length = left < PART ? left : PART;
        const bool part = kith_format_passes(
            format, kith_backend_find("naive32"), bytes, at, length, wire + at);
        sane = sane && part;
    }
    return sane;
}

/* Half a step: of a value's own, or of its block's largest. */
static double allowed(const struct kith_format *format, size_t n, size_t i)
{
    double most = 0;
    if (strcmp(format->name, "bfloat16") == 0)
        return ldexp(fabs((double)values[i]), -8);
    const size_t first = i - i % 256;
    for (size_t k = first; k < n && k < first + 256; k++)
        most = fmax(most, fabs((double)values[k]));
    return most / 127 / 2 * (1 + 1e-5);
}

static void test_near(void **state)
{
    (void)state;
    const struct kith_backend *backend = kith_backend_find("cpu");
    for (unsigned f = 0; kith_formats[f] != NULL; f++) {
        const struct kith_format *format = kith_formats[f];
        for (size_t s = 0; s < SIZES && packs_whole(format); s++) {
            const size_t n = sizes[s], bytes = bytes_of(format, n);
            draw(s, n);
            memset(wire, 0xa5, sizeof wire);
            format->pack(backend, n, values, wire);
            for (size_t i = bytes; i < sizeof wire; i++)
                assert_int_equal(wire[i], 0xa5);
            assert_true(passes(format, bytes));
            format->unpack(backend, n, wire, 0, n, read_back);
            for (size_t i = 0; i < n; i++)
                assert_true(fabs((double)read_back[i] - (double)values[i]) <=
                            allowed(format, n, i));
        }
    }
}

/* What rounding adds, of values anywhere between two levels: 4,000 draws tell
 * it to 3 %. */
static void test_rounding(void **state)
{
    (void)state;
    const struct kith_backend *backend = kith_backend_find("cpu");
    for (unsigned f = 0; kith_formats[f] != NULL; f++) {
        const struct kith_format *format = kith_formats[f];
        double found = 0;
        if (!packs_whole(format))
            continue;
        struct kith_rng rng;
        kith_rng_init(&rng, 4, KITH_STREAM_TEST, 0);
        for (size_t i = 0; i < N_MAX; i++)
            values[i] = (float)(kith_rng_double(&rng) - .5);
        format->pack(backend, N_MAX, values, wire);
        format->unpack(backend, N_MAX, wire, 0, N_MAX, read_back);
        for (size_t i = 3; i < N_MAX; i++)
            found += pow((double)read_back[i] - (double)values[i], 2);
        const double told = format->rounding(N_MAX, wire, 3, N_MAX - 3);
        printf("  %s: %.3g, told %.3g\n", format->name, found, told);
        assert_true(fabs(found / told - 1) < 0.1);
        assert_true(format->rounding(N_MAX, wire, 7, 0) == 0);
    }
}

static void test_bytes(void **state)
{
    (void)state;
    const struct kith_format *bf16 = kith_format_find("bfloat16");
    const struct kith_format *int8 = kith_format_find("int8");
    assert_int_equal(bytes_of(kith_format_find("float32"), 1000), 4000);
    assert_int_equal(bytes_of(bf16, 0), 0);
    assert_int_equal(bytes_of(bf16, 1000), 2000);
    assert_int_equal(bytes_of(int8, 0), 0);
    assert_int_equal(bytes_of(int8, 1), 5);
    assert_int_equal(bytes_of(int8, 256), 260);
    assert_int_equal(bytes_of(int8, 257), 265);
    assert_null(kith_format_find("bfloat"));
    assert_string_equal(kith_formats[0]->name, "float32");
}

/* naive32, naive64 and all variants of cpu write the same wire, and read the
 * same values of it. */
static void test_same_bits(void **state)
{
    (void)state;
    static _Alignas(64) double wide[N_MAX], wide_back[N_MAX];
    static _Alignas(64) float back[N_MAX];
    const struct kith_backend *naive = kith_backend_find("naive32");
    const struct kith_backend *exact = kith_backend_find("naive64");
    const struct kith_backend *cpu = kith_backend_find("cpu");
    for (unsigned f = 0; kith_formats[f] != NULL; f++)
        for (size_t s = 0; s < SIZES && packs_whole(kith_formats[f]); s++) {
            const struct kith_format *format = kith_formats[f];
            const size_t n = sizes[s], bytes = bytes_of(format, n);
            draw(100 + s, n);
            for (size_t i = 0; i < n; i++)
                wide[i] = (double)values[i];
            format->pack(naive, n, values, wire);
            format->unpack(naive, n, wire, 0, n, read_back);
            format->pack(exact, n, wide, other);
            assert_memory_equal(other, wire, bytes);
            format->unpack(exact, n, wire, 0, n, wide_back);
            for (size_t i = 0; i < n; i++)
                assert_true(wide_back[i] == (double)read_back[i]);
            for (size_t k = 0; kith_cpu_loops[k] != NULL; k++) {
                if (!kith_cpu_loops[k]->supported())
                    continue;
                kith_cpu_choose(kith_cpu_loops[k]);
                memset(other, 0, sizeof other);
                format->pack(cpu, n, values, other);
                assert_memory_equal(other, wire, bytes);
                format->unpack(cpu, n, wire, 0, n, back);
                assert_memory_equal(back, read_back, n * sizeof *back);
            }
            kith_cpu_choose(NULL);
        }
}

/* Infinity, NaN and what is beyond the format: never merged, whichever part of
 * the wire it stands in. */
static void test_not_finite(void **state)
{
    (void)state;
    const float bad[] = {INFINITY, -INFINITY, NAN};
    const char *const backends[] = {"naive32", "cpu"};
    for (unsigned f = 0; kith_formats[f] != NULL; f++)
        for (size_t at = 0; at < N_MAX; at += 103)
            for (unsigned b = 0; b < 6; b++) {
                const struct kith_format *format = kith_formats[f];
                const struct kith_backend *backend =
                    kith_backend_find(backends[b / 3]);
                if (format->residue_bits > 0)
                    continue;
                draw(at, N_MAX);
                values[at] = bad[b % 3];
                if (format->raw) {
                    memcpy(wire, values, sizeof values);
                    assert_false(passes(format, sizeof values));
                    continue;
                }
                format->pack(backend, N_MAX, values, wire);
                assert_false(passes(format, bytes_of(format, N_MAX)));
            }
    const float large[] = {FLT_MAX, -FLT_MAX, 0x1p127f, FLT_MIN / 2, -0.0f};
    for (unsigned f = 0; kith_formats[f] != NULL; f++)
        for (size_t i = 0; i < sizeof large / sizeof *large; i++) {
            const struct kith_format *format = kith_formats[f];
            const struct kith_backend *backend = kith_backend_find("cpu");
            if (!packs_whole(format))
                continue;
            format->pack(backend, 1, &large[i], wire);
            const bool sane = passes(format, bytes_of(format, 1));
            format->unpack(backend, 1, wire, 0, 1, read_back);
            assert_true(!sane || isfinite(read_back[0]));
        }
}

/* A peer says no more was rounded than who packs these very numbers does: a
 * scale of 1e30 that no level uses is none. What is below 2^-119 becomes 0. */
static void says_no_more(const struct kith_format *format, size_t n)
{
    const struct kith_backend *backend = kith_backend_find("cpu");
    format->pack(backend, n, read_back, other);
    const double most = format->rounding(n, other, 0, n);
    const double told = format->rounding(n, wire, 0, n);
    if (!(told <= most * (1 + 1e-5) + 1e-60))
        fail_msg("%s tells %g, of %g", format->name, told, most);
}

static void test_rounding_of_liars(void **state)
{
    (void)state;
    const struct kith_format *int8 = kith_format_find("int8");
    draw(5, N_MAX);
    int8->pack(kith_backend_find("cpu"), N_MAX, values, wire);
    const double told = int8->rounding(N_MAX, wire, 0, N_MAX);
    const size_t scales = int8->bytes(N_MAX) - N_MAX;
    const float scale = 1e30f;
    memcpy(wire + sizeof scale, &scale, sizeof scale);
    memset(wire + scales + 256, 0, 256);
    assert_true(passes(int8, int8->bytes(N_MAX)));
    assert_true(int8->rounding(N_MAX, wire, 0, N_MAX) < told);
    assert_true(int8->rounding(N_MAX, wire, 300, 8) == 0);
}

/* Whatever a peer sends: what passes the gate unpacks, to finite values. */
static void test_hostile(void **state)
{
    (void)state;
    struct kith_rng rng;
    kith_rng_init(&rng, 3, KITH_STREAM_TEST, 0);
    const struct kith_backend *backend = kith_backend_find("cpu");
    for (unsigned f = 0; kith_formats[f] != NULL; f++)
        for (unsigned round = 0; round < 3000 && packs_whole(kith_formats[f]);
             round++) {
            const struct kith_format *format = kith_formats[f];
            const size_t n = 1 + kith_rng_below(&rng, 600);
            const size_t bytes = bytes_of(format, n);
            draw(round, n);
            format->pack(backend, n, values, wire);
            for (unsigned k = kith_rng_below(&rng, 4); k > 0; k--)
                wire[kith_rng_below(&rng, (uint32_t)bytes)] =
                    (uint8_t)kith_rng_below(&rng, 256);
            if (round % 3 == 0)
                for (size_t i = 0; i < bytes; i++)
                    wire[i] = (uint8_t)kith_rng_below(&rng, 256);
            const bool sane = passes(format, bytes);
            format->unpack(backend, n, wire, 0, n, read_back);
            for (size_t i = 0; sane && i < n; i++)
                assert_true(isfinite(read_back[i]));
            if (sane)
                says_no_more(format, n);
        }
}

/* What was rounded once is not rounded again. */
static void test_bf16_idempotent(void **state)
{
    (void)state;
    const struct kith_format *format = kith_format_find("bfloat16");
    const struct kith_backend *backend = kith_backend_find("cpu");
    draw(9, N_MAX);
    format->pack(backend, N_MAX, values, wire);
    format->unpack(backend, N_MAX, wire, 0, N_MAX, read_back);
    format->pack(backend, N_MAX, read_back, other);
    assert_memory_equal(other, wire, bytes_of(format, N_MAX));
    const float tie[] = {1 + 0x1p-8f, 1 + 3 * 0x1p-8f, -1 - 0x1p-8f};
    const float want[] = {1, 1 + 0x1p-6f, -1};
    format->pack(backend, 3, tie, wire);
    format->unpack(backend, 3, wire, 0, 3, read_back);
    assert_memory_equal(read_back, want, sizeof want);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_near),
        cmocka_unit_test(test_rounding),
        cmocka_unit_test(test_bytes),
        cmocka_unit_test(test_same_bits),
        cmocka_unit_test(test_not_finite),
        cmocka_unit_test(test_rounding_of_liars),
        cmocka_unit_test(test_hostile),
        cmocka_unit_test(test_bf16_idempotent),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
