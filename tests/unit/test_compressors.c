/* Goal: what compressors put on the wire (T10 of the acceptance tests): sizes
 * byte for byte, formats, ties, edge cases; nothing that is not finite leaves,
 * nothing malformed comes in. Method: every compressor of the registry on both
 * element types; sizes and bytes written out by hand. */
#include <float.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include <cmocka.h>

#include "compressor_cases.h"

#define COUNT(array) (sizeof(array) / sizeof((array)[0]))

static const char *const backends[] = {"naive32", "naive64"};
static const size_t dims[] = {1,   2,   3,   8,   63,   64,   255,
                              256, 257, 512, 513, 4096, 4097, 10000};

static size_t whole_bytes(size_t bits)
{
    return bits / 8 + (bits % 8 > 0);
}

static size_t kept_of(double density, size_t n)
{
    const size_t kept = (size_t)(density * (double)n + 0.5);
    return kept == 0 ? 1 : kept;
}

static size_t bytes_of_none(const struct kith_compression *how, size_t n)
{
    return n * how->backend->element_bytes;
}

static size_t bytes_of_random_k(const struct kith_compression *how, size_t n)
{
    return kept_of(how->config.density, n) * how->backend->element_bytes;
}

static size_t bytes_of_top_k(const struct kith_compression *how, size_t n)
{
    const size_t kept = kept_of(how->config.density, n);
    const size_t low = (size_t)floor(log2((double)(n / kept)));
    return kept * how->backend->element_bytes + whole_bytes(kept * low) +
           whole_bytes(kept + ((n - 1) >> low));
}

static size_t bytes_of_top_k_2bit(const struct kith_compression *how, size_t n)
{
    const size_t kept = kept_of(how->config.density, n);
    const size_t element = how->backend->element_bytes;
    return 2 * element + whole_bytes(2 * kept) +
           (bytes_of_top_k(how, n) - kept * element);
}

static size_t bytes_of_sign(const struct kith_compression *how, size_t n)
{
    return how->backend->element_bytes + whole_bytes(n);
}

static size_t bytes_of_int8(const struct kith_compression *how, size_t n)
{
    return how->backend->element_bytes + n;
}

static size_t bytes_of_qsgd(const struct kith_compression *how, size_t n)
{
    const size_t bits = (size_t)(1 + ceil(log2(how->config.levels + 1.0)));
    return how->backend->element_bytes + whole_bytes(n * bits);
}

/* What the first comments of these files promise beyond what holds for every
 * compressor; one that is not here is held to its declared properties. */
struct promise {
    const char *name;
    size_t block; /* values; 0: all */
    size_t (*bytes)(const struct kith_compression *how, size_t n);
    bool equal_values_stay; /* of a block whose values are all the same */
    bool the_largest_stays;
    size_t bad_numbers; /* that may not stand first on its wire */
};
static const struct promise promises[] = {
    {"none", 0, bytes_of_none, true, true, 3},
    {"top-k", 0, bytes_of_top_k, false, true, 3},
    {"ms-top-k", 0, bytes_of_top_k, false, true, 3},
    {"top-k-2bit", 4096, bytes_of_top_k_2bit, false, false, 4},
    {"random-k", 0, bytes_of_random_k, false, false, 3},
    {"sign", 4096, bytes_of_sign, true, false, 3},
    {"qsgd", 512, bytes_of_qsgd, false, false, 3},
    /* 127 times the largest number is none. */
    {"int8", 256, bytes_of_int8, false, true, 4},
};

/* NULL: nothing beyond. */
static const struct promise *
promise_of(const struct kith_compressor *compressor)
{
    for (size_t i = 0; i < COUNT(promises); i++)
        if (strcmp(promises[i].name, compressor->name) == 0)
            return &promises[i];
    return NULL;
}

static size_t formula(const struct kith_compression *how)
{
    const struct promise *const promise = promise_of(how->compressor);
    if (promise == NULL)
        return kith_compression_bytes(how);
    size_t block = promise->block, bytes = 0;
    if (how->config.block > 0 &&
        (how->compressor->keys & KITH_COMPRESSOR_READS(BLOCK)))
        block = how->config.block;
    if (block == 0)
        block = how->dim;
    for (size_t from = 0; from < how->dim; from += block)
        bytes += promise->bytes(how, how->dim - from < block ? how->dim - from
                                                             : block);
    return bytes;
}

/* Encodes over two different fillings: what differs was not written. */
static void whole_wire(struct trip *trip)
{
    uint8_t *first = malloc(trip->bytes);
    assert_non_null(first);
    memset(trip->wire, 0xff, trip->bytes);
    trip_send(trip, 7);
    memcpy(first, trip->wire, trip->bytes);
    memset(trip->wire, 0, trip->bytes);
    trip_send(trip, 7);
    assert_memory_equal(first, trip->wire, trip->bytes);
    free(first);
}

static void sizes(const struct kith_compressor *compressor, const char *backend,
                  const struct kith_compressor_config *config)
{
    double values[10000];
    gaussian(3, COUNT(values), values);
    for (size_t i = 0; i < COUNT(dims); i++) {
        struct kith_compression how =
            compression(compressor->name, backend, dims[i]);
        how.config = *config;
        struct trip trip = trip_open(how);
        if (trip.bytes != formula(&how))
            fail_msg("%s, %zu values: %zu bytes, not %zu", compressor->name,
                     dims[i], trip.bytes, formula(&how));
        trip_write(&trip, values);
        whole_wire(&trip);
        if (dims[i] == COUNT(values) && config->block == 0 &&
            promise_of(compressor) != NULL)
            print_message("  T10 %-8s %s, %zu values: bytes expected %zu, "
                          "measured %zu\n",
                          compressor->name, backend, dims[i], formula(&how),
                          trip.bytes);
        trip_close(&trip);
    }
}

static void t10_sizes_equal_the_formula(void **state)
{
    static const struct kith_compressor_config configs[] = {
        {.density = 0.01, .levels = 15},
        {.density = 0.015625, .levels = 1, .block = 4096},
        {.density = 0.1, .levels = 3, .block = 100, .unbiased = true},
        {.density = 0.5, .levels = 127, .block = 1},
        {.density = 1, .levels = 100, .block = 7, .unbiased = true},
        {.density = 1e-9,
         .levels = KITH_COMPRESSOR_LEVELS_MAX,
         .block = KITH_COMPRESSOR_BLOCK_MAX},
    };
    (void)state;
    for (unsigned i = 0; kith_compressors[i] != NULL; i++)
        for (size_t j = 0; j < COUNT(backends); j++)
            for (size_t k = 0; k < COUNT(configs); k++)
                sizes(kith_compressors[i], backends[j], &configs[k]);
}

static void wire_is(const char *name, size_t dim, const double *values,
                    double density, const uint8_t *bytes, size_t size)
{
    struct kith_compression how = compression(name, "naive32", dim);
    how.config.density = density;
    how.config.levels = 3;
    struct trip trip = trip_open(how);
    trip_write(&trip, values);
    trip_send(&trip, 1);
    assert_int_equal(trip.bytes, size);
    assert_memory_equal(trip.wire, bytes, size);
    trip_close(&trip);
}

static void formats_are_what_is_written_down(void **state)
{
    /* Two of eight, l = 2: indices 1 = 0|01 and 4 = 1|00; bits 0 and 2. */
    static const double sparse[] = {0, 3, 0, 0, -4, 0, 0, 0};
    static const uint8_t top[] = {0, 0, 0x40, 0x40, 0, 0, 0x80, 0xc0, 1, 5};
    /* Mean 2. */
    static const double signs[] = {1, -1, 4, -4, 0, 3, -3, 0, -2};
    static const uint8_t sign[] = {0, 0, 0, 0x40, 0x4a, 1};
    /* Norm 3, all levels exact; 3 bits each: 3, then 0. */
    static const double one[] = {0, -3, 0};
    static const uint8_t qsgd[] = {0, 0, 0x40, 0x40, 0x38, 0};
    static const double steps[] = {127, -127, 1.6, 0.4};
    static const uint8_t int8[] = {0, 0, 0x80, 0x3f, 127, 129, 2, 0};
    (void)state;
    wire_is("top-k", 8, sparse, 0.25, top, sizeof top);
    wire_is("sign", 9, signs, 1, sign, sizeof sign);
    wire_is("qsgd", 3, one, 1, qsgd, sizeof qsgd);
    wire_is("int8", 4, steps, 1, int8, sizeof int8);
}

static void t10_top_k_is_idempotent(void **state)
{
    double values[2000];
    (void)state;
    gaussian(11, COUNT(values), values);
    values[5] = -0.0;
    for (size_t j = 0; j < COUNT(backends); j++) {
        struct kith_compression how =
            compression("top-k", backends[j], COUNT(values));
        for (int d = 0; d < 3; d++) {
            how.config.density = d == 0 ? 0.01 : d == 1 ? 0.3 : 1;
            how.config.block = d == 1 ? 128 : 0;
            struct trip trip = trip_open(how);
            trip_write(&trip, values);
            trip_send(&trip, 0);
            const size_t size = how.dim * how.backend->element_bytes;
            memcpy(trip.v, trip.out, size);
            trip_send(&trip, 0);
            size_t differ = 0;
            for (size_t i = 0; i < size; i++)
                differ += ((uint8_t *)trip.v)[i] != ((uint8_t *)trip.out)[i];
            print_message("  T10 top-k of top-k, %s, density %g: bytes that "
                          "differ expected 0, measured %zu\n",
                          backends[j], how.config.density, differ);
            assert_int_equal(differ, 0);
            trip_close(&trip);
        }
    }
}

/* Ties go to the first: of equal sizes, and of zeros. */
static void t10_top_k_ties_by_index(void **state)
{
    static const double values[] = {1, -2, 2, 0, 2, -2, 1, 0};
    double out[8];
    (void)state;
    for (size_t j = 0; j < COUNT(backends); j++) {
        struct kith_compression how = compression("top-k", backends[j], 8);
        how.config.density = 3.0 / 8;
        struct trip trip = trip_open(how);
        trip_write(&trip, values);
        trip_send(&trip, 0);
        how.backend->read(8, trip.out, out);
        for (int i = 0; i < 8; i++)
            assert_true(out[i] == (i == 1 || i == 2 || i == 4 ? values[i] : 0));
        trip_close(&trip);
    }
}

/* Sizes by a sort, the first of equal ones first. */
struct sized {
    double size;
    size_t place;
};

static int by_size(const void *a, const void *b)
{
    const struct sized *first = a, *second = b;
    if (first->size != second->size)
        return first->size < second->size ? 1 : -1;
    return first->place < second->place ? -1 : 1;
}

enum { LONG = 150000 };

/* What a sample of every 65th says is right, useless, or wrong: then all digits
 * are counted. */
static double long_value(unsigned kind, size_t i, double x)
{
    switch (kind) {
    case 0:
        return x;
    case 1: /* ties */
        return floor(8 * x) / 8;
    case 2: /* the sample sees the small ones alone */
        return i % 65 == 0 ? 1e-3 * x : x;
    case 3: /* the large ones alone */
        return i % 65 == 0 ? 1e3 * x : x;
    case 4:
        return fabs(x) < 2.9 ? 0 : x;
    case 5: /* a wide range */
        return x * exp(15 * x);
    default:
        return -3;
    }
}

static void long_is_exact(const char *backend, unsigned kind, double density)
{
    static double values[LONG], out[LONG];
    static struct sized sized[LONG];
    static bool kept[LONG];
    struct kith_compression how = compression("top-k", backend, LONG);
    how.config.density = density;
    struct trip trip = trip_open(how);
    gaussian(kind, LONG, values);
    for (size_t i = 0; i < LONG; i++)
        values[i] = long_value(kind, i, values[i]);
    trip_write(&trip, values);
    how.backend->read(LONG, trip.v, values);
    for (size_t i = 0; i < LONG; i++)
        sized[i] = (struct sized){fabs(values[i]), i};
    qsort(sized, LONG, sizeof sized[0], by_size);
    for (size_t i = 0; i < LONG; i++)
        kept[sized[i].place] = i < kept_of(density, LONG);
    trip_send(&trip, 0);
    how.backend->read(LONG, trip.out, out);
    for (size_t i = 0; i < LONG; i++)
        if (out[i] != (kept[i] ? values[i] : 0))
            fail_msg("%s, kind %u, density %g: place %zu", backend, kind,
                     density, i);
    trip_close(&trip);
}

static void t10_top_k_of_a_long_vector_is_exact(void **state)
{
    static const double densities[] = {1e-5, 0.001, 0.01, 0.1, 0.5, 0.999, 1};
    (void)state;
    for (unsigned kind = 0; kind < 7; kind++)
        for (size_t d = 0; d < COUNT(densities); d++) {
            long_is_exact("cpu", kind, densities[d]);
            long_is_exact("naive64", kind, densities[d]);
        }
}

/* The same floats on every backend of one element type, any key but for those
 * who draw: ms-top-k does of equal sizes, so there are some. */
static void both_sides_agree(void **state)
{
    double values[3000];
    (void)state;
    gaussian(21, COUNT(values), values);
    for (size_t i = 0; i < COUNT(values); i++)
        values[i] = floor(4 * values[i]) / 4;
    for (unsigned i = 0; kith_compressors[i] != NULL; i++) {
        const char *name = kith_compressors[i]->name;
        struct trip plain =
            trip_open(compression(name, "naive32", COUNT(values)));
        struct trip fast = trip_open(compression(name, "cpu", COUNT(values)));
        trip_write(&plain, values);
        trip_write(&fast, values);
        trip_send(&plain, 5);
        trip_send(&fast, 5);
        assert_memory_equal(plain.wire, fast.wire, plain.bytes);
        assert_memory_equal(plain.out, fast.out, sizeof(float[3000]));
        trip_send(&fast, 6);
        assert_true((memcmp(plain.wire, fast.wire, plain.bytes) != 0) ==
                    plain.how.compressor->keyed);
        trip_close(&plain);
        trip_close(&fast);
    }
}

static void edge(const struct kith_compression *how, const double *values,
                 bool exact, double *out)
{
    struct trip trip = trip_open(*how);
    trip_write(&trip, values);
    trip_send(&trip, 9);
    if (exact)
        assert_memory_equal(trip.v, trip.out,
                            how->dim * how->backend->element_bytes);
    how->backend->read(how->dim, trip.out, out);
    trip_close(&trip);
}

static void edges(const char *name, const char *backend)
{
    static const double zero[5] = {0}, outlier[5] = {1e-6, 0, -1e30, 1, 2};
    static const double constant[5] = {3, 3, 3, 3, 3}, single[1] = {-2.5};
    static const double tiny[5] = {1e-45, -1e-45, 0, 1e-44, 0};
    struct kith_compression how = compression(name, backend, 5);
    const struct promise *const promise = promise_of(how.compressor);
    const bool raw = how.compressor->raw;
    const bool equal = promise != NULL && promise->equal_values_stay;
    double out[5];
    how.config.density = 0.01; /* of five: none, so one */
    edge(&how, zero, true, out);
    edge(&how, tiny, raw, out);
    edge(&how, constant, equal, out);
    edge(&how, outlier, raw, out);
    if (promise != NULL && promise->the_largest_stays)
        assert_true(fabs(out[2] / -1e30 - 1) < 1e-6);
    if (promise == NULL)
        return;
    const bool sparse =
        (how.compressor->keys & KITH_COMPRESSOR_READS(DENSITY)) != 0;
    how.dim = 1;
    edge(&how, single, equal || sparse, out);
    assert_true(fabs(out[0] / -2.5 - 1) < 0.01);
}

static void edge_cases_are_right(void **state)
{
    (void)state;
    for (unsigned i = 0; kith_compressors[i] != NULL; i++)
        for (size_t j = 0; j < COUNT(backends); j++)
            edges(kith_compressors[i]->name, backends[j]);
}

/* The largest numbers: refused or right, never infinite on the other side. */
static void the_largest_numbers_are_refused_or_right(void **state)
{
    double values[300];
    (void)state;
    for (unsigned i = 0; kith_compressors[i] != NULL; i++)
        for (size_t j = 0; j < COUNT(backends); j++)
            for (int unbiased = 0; unbiased < 2; unbiased++) {
                struct trip trip = trip_open(
                    compression(kith_compressors[i]->name, backends[j], 300));
                const bool wide = trip.how.backend->element_bytes == 8;
                for (size_t k = 0; k < 300; k++)
                    values[k] = (k % 2 == 0 ? 1 : -1) *
                                (wide ? DBL_MAX : (double)FLT_MAX);
                trip.how.config.unbiased = unbiased;
                trip_write(&trip, values);
                if (kith_compress(&trip.how, trip.v, 1, trip.wire))
                    assert_true(
                        kith_decompress(&trip.how, trip.wire, 1, trip.out));
                trip_close(&trip);
            }
}

static void nothing_that_is_not_finite_leaves(void **state)
{
    const double bad[] = {NAN, INFINITY, -INFINITY};
    static const size_t places[] = {0, 299, 511, 512, 599};
    double values[600];
    (void)state;
    gaussian(5, COUNT(values), values);
    for (unsigned i = 0; kith_compressors[i] != NULL; i++)
        for (size_t j = 0; j < COUNT(backends); j++)
            for (size_t k = 0; k < COUNT(bad) * COUNT(places); k++) {
                struct trip trip = trip_open(compression(
                    kith_compressors[i]->name, backends[j], COUNT(values)));
                const size_t place = places[k % COUNT(places)];
                const double kept = values[place];
                values[place] = bad[k / COUNT(places)];
                trip_write(&trip, values);
                assert_false(kith_compress(&trip.how, trip.v, 1, trip.wire));
                values[place] = kept;
                trip_write(&trip, values);
                trip_send(&trip, 1);
                trip_close(&trip);
            }
}

/* A sound wire of `dim` values with one byte changed is refused. */
static void refused(const char *name, size_t dim, double density, size_t at,
                    uint8_t byte)
{
    static const double values[] = {1, -2, 3, -4, 5, -6, 7, -8, 9};
    struct kith_compression how = compression(name, "naive32", dim);
    how.config.density = density;
    how.config.levels = 4;
    struct trip trip = trip_open(how);
    trip_write(&trip, values);
    trip_send(&trip, 1);
    assert_true(at < trip.bytes);
    const uint8_t sound = trip.wire[at];
    assert_int_not_equal(sound, byte);
    trip.wire[at] = byte;
    if (kith_decompress(&trip.how, trip.wire, 1, trip.out))
        fail_msg("%s: byte %zu = 0x%02x was taken", name, at, byte);
    trip.wire[at] = sound;
    assert_true(kith_decompress(&trip.how, trip.wire, 1, trip.out));
    trip_close(&trip);
}

static void malformed_bytes_are_refused(void **state)
{
    (void)state;
    /* Two of nine, 7 = 01|11 and 8 = 10|00: values, low bits 0x3, then bits
     * 1 and 3 of 4. */
    refused("top-k", 9, 0.2, 8, 0x13); /* bits behind the low ones */
    refused("top-k", 9, 0.2, 9, 0x1a); /* a third index */
    refused("top-k", 9, 0.2, 9, 0x2);  /* one only */
    refused("top-k", 9, 0.2, 9, 0x6);  /* 7 and 4: out of order */
    refused("top-k", 9, 0.2, 9, 0x12); /* 7 and 12: outside */
    refused("top-k", 9, 0.2, 8, 0x7);  /* 7 and 9: outside */
    refused("top-k", 9, 0.2, 8, 0xf);  /* 7 and 11: outside */
    refused("sign", 9, 1, 3, 0xc0);    /* a negative mean */
    refused("sign", 9, 1, 5, 0x80);    /* a tenth sign */
    refused("int8", 9, 1, 3, 0xbf);    /* a negative scale */
    refused("int8", 9, 1, 5, 0x80);    /* -128 */
    refused("qsgd", 9, 1, 3, 0xc1);    /* a negative norm */
    refused("qsgd", 9, 1, 8, 0x80);    /* bits behind the last level */
    refused("qsgd", 9, 1, 4, 0x07);    /* level 7 of 4 */
    refused("qsgd", 9, 1, 4, 0x08);    /* -0 */
}

/* The first number of a wire: a value, a mean, a norm or a scale. */
static void nothing_that_is_not_finite_comes_in(void **state)
{
    static const float bad[] = {NAN, INFINITY, -INFINITY, FLT_MAX};
    double values[300];
    (void)state;
    gaussian(8, COUNT(values), values);
    for (size_t i = 0; i < COUNT(promises); i++) {
        struct trip trip =
            trip_open(compression(promises[i].name, "naive32", COUNT(values)));
        const size_t count = promises[i].bad_numbers;
        trip_write(&trip, values);
        for (size_t k = 0; k < count; k++) {
            trip_send(&trip, 1);
            memcpy(trip.wire, &bad[k], sizeof bad[k]);
            assert_false(kith_decompress(&trip.how, trip.wire, 1, trip.out));
        }
        trip_close(&trip);
    }
}

/* Any one bit: refused, or a finite vector. */
static void a_flipped_bit_does_no_harm(void **state)
{
    double values[300];
    (void)state;
    gaussian(8, COUNT(values), values);
    for (unsigned i = 0; kith_compressors[i] != NULL; i++) {
        struct trip trip = trip_open(
            compression(kith_compressors[i]->name, "naive32", COUNT(values)));
        trip.how.config.density = 0.01;
        trip_write(&trip, values);
        trip_send(&trip, 1);
        for (size_t bit = 0; bit < 8 * trip.bytes; bit++) {
            trip.wire[bit / 8] ^= (uint8_t)(1u << bit % 8);
            if (kith_decompress(&trip.how, trip.wire, 1, trip.out))
                assert_true(trip.how.backend->finite(COUNT(values), trip.out));
            trip.wire[bit / 8] ^= (uint8_t)(1u << bit % 8);
        }
        trip_close(&trip);
    }
}

static void properties_are_declared(void **state)
{
    (void)state;
    for (unsigned i = 0; kith_compressors[i] != NULL; i++) {
        const struct kith_compressor *compressor = kith_compressors[i];
        struct kith_compression how =
            compression(compressor->name, "naive64", 1000);
        assert_ptr_equal(kith_compressor_find(compressor->name), compressor);
        assert_true(compressor->paper != NULL && compressor->summary != NULL);
        assert_true(kith_compression_contraction(&how) > 0);
        assert_true(kith_compression_contraction(&how) <= 1);
        how.config.unbiased = true;
        if (compressor->keys & KITH_COMPRESSOR_READS(UNBIASED)) {
            assert_true(kith_compression_unbiased(&how));
            assert_false(kith_compression_needs_feedback(&how));
        }
    }
    assert_null(kith_compressor_find("top_k"));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(t10_sizes_equal_the_formula),
        cmocka_unit_test(formats_are_what_is_written_down),
        cmocka_unit_test(t10_top_k_is_idempotent),
        cmocka_unit_test(t10_top_k_ties_by_index),
        cmocka_unit_test(t10_top_k_of_a_long_vector_is_exact),
        cmocka_unit_test(both_sides_agree),
        cmocka_unit_test(edge_cases_are_right),
        cmocka_unit_test(the_largest_numbers_are_refused_or_right),
        cmocka_unit_test(nothing_that_is_not_finite_leaves),
        cmocka_unit_test(malformed_bytes_are_refused),
        cmocka_unit_test(nothing_that_is_not_finite_comes_in),
        cmocka_unit_test(a_flipped_bit_does_no_harm),
        cmocka_unit_test(properties_are_declared),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
