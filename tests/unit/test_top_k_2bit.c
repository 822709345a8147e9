/* Goal: top-k-2bit is a contraction, as it says for any vector and better than
 * that for those that training makes; it keeps the places that top-k keeps, and
 * takes nothing that it could not have written.
 * Method: vectors of several kinds, the worst one for two sizes among them;
 * messages that are spoilt in one place each; a wire written by hand. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include <cmocka.h>

#include "compressor_cases.h"

enum { DIM = 3 * 4096 + 500 };

static const char *const backends[] = {"naive32", "naive64"};

/* Values of a kind: how soon sizes fall. */
enum { GAUSSIAN, HEAVY, HALVED, EQUAL, ONE, KINDS };
static const char *const kinds[KINDS] = {"Gaussian", "cubes of Gaussian",
                                         "each half the one before", "equal",
                                         "one beside zeros"};

static void draw(unsigned kind, double values[DIM])
{
    gaussian(3, DIM, values);
    for (size_t i = 0; i < DIM; i++) {
        const double sign = values[i] < 0 ? -1 : 1;
        if (kind == HEAVY)
            values[i] *= values[i] * values[i];
        else if (kind == HALVED)
            values[i] = sign * exp2(-(double)(i % 4096 % 100));
        else if (kind == EQUAL)
            values[i] = sign * 0.25;
        else if (kind == ONE)
            values[i] = i == 7000 ? -3 : 0;
    }
}

static double error_of(const char *name, const char *backend, double density,
                       const double values[DIM], double *contraction)
{
    struct kith_compression how = compression(name, backend, DIM);
    how.config.density = density;
    how.config.block = 4096;
    struct trip trip = trip_open(how);
    trip_write(&trip, values);
    trip_send(&trip, 0);
    const double error = trip_error(&trip);
    *contraction = kith_compression_contraction(&how);
    trip_close(&trip);
    return error;
}

static void test_contracts(void **state)
{
    static const double densities[] = {0.001, 0.015625, 0.03, 0.3, 1};
    /* Of |v|^2 at 3 %, where what top-k keeps is 1. */
    static const double shares[KINDS] = {0.9, 0.7, 0.6, 0.999, 0.999};
    static double values[DIM];
    (void)state;
    for (unsigned kind = 0; kind < KINDS; kind++)
        for (size_t b = 0; b < 2; b++)
            for (size_t d = 0; d < sizeof densities / sizeof *densities; d++) {
                double w, exact;
                draw(kind, values);
                const double error = error_of("top-k-2bit", backends[b],
                                              densities[d], values, &w);
                const double all = error_of("top-k", backends[b], densities[d],
                                            values, &exact);
                const double share = (1 - error) / (1 - all);
                printf("  %s, %s, density %g: |v - C(v)|^2 / |v|^2: expected "
                       "at most %.6g, measured %.6g; top-k %.6g: %.3f of its "
                       "energy\n",
                       kinds[kind], backends[b], densities[d], 1 - w, error,
                       all, share);
                assert_true(error <= 1 - w + 1e-6);
                assert_true(error >= all - 1e-6);
                if (densities[d] == 0.03)
                    assert_true(share >= shares[kind]);
            }
}

/* The same places as top-k, and at most four different values a block. */
static void test_places(void **state)
{
    static double values[DIM], found[DIM], exact[DIM];
    (void)state;
    draw(GAUSSIAN, values);
    for (unsigned i = 0; i < 2; i++) {
        struct kith_compression how =
            compression(i == 0 ? "top-k-2bit" : "top-k", "naive32", DIM);
        how.config.density = 0.03;
        how.config.block = 4096;
        struct trip trip = trip_open(how);
        trip_write(&trip, values);
        trip_send(&trip, 0);
        how.backend->read(DIM, trip.out, i == 0 ? found : exact);
        trip_close(&trip);
    }
    unsigned wrong = 0, kept = 0;
    double lo = INFINITY, hi = 0; /* of the second block */
    for (size_t i = 0; i < DIM; i++) {
        wrong += (found[i] != 0) != (exact[i] != 0) ||
                 (found[i] < 0) != (exact[i] < 0);
        kept += found[i] != 0;
        if (i / 4096 == 1 && found[i] != 0) {
            lo = fmin(lo, fabs(found[i]));
            hi = fmax(hi, fabs(found[i]));
        }
    }
    unsigned others = 0;
    for (size_t i = 4096; i < (size_t)2 * 4096; i++)
        others += found[i] != 0 && fabs(found[i]) != lo && fabs(found[i]) != hi;
    printf("  places and signs that differ from top-k's: expected 0, measured "
           "%u of %u; sizes beside two: expected 0, measured %u\n",
           wrong, kept, others);
    assert_int_equal(wrong, 0);
    assert_int_equal(kept, 3 * 123 + 15);
    assert_int_equal(others, 0);
    assert_true(lo < hi);
}

/* Of eight values four, 1 to 4 at 1, 2, 5 and 6: sizes 1.5 and 3.5, codes
 * small, small negative, large, large negative = 0, 1, 2, 3; l = 1: indices
 * 0|1, 1|0, 2|1, 3|0 and bits 0 + 0, 1 + 1, 2 + 2, 3 + 3. */
static const double eight[8] = {0, 1, -2, 0, 0, 3, -4, 0};
static const uint8_t written[11] = {0,    0,    0xc0, 0x3f, 0,   0,
                                    0x60, 0x40, 0xe4, 5,    0x55};

static struct trip open_eight(void)
{
    struct kith_compression how = compression("top-k-2bit", "naive32", 8);
    how.config.density = 0.5;
    struct trip trip = trip_open(how);
    assert_int_equal(trip.bytes, sizeof written);
    trip_write(&trip, eight);
    trip_send(&trip, 0);
    return trip;
}

static void test_wire(void **state)
{
    struct trip trip = open_eight();
    double out[8];
    (void)state;
    assert_memory_equal(trip.wire, written, sizeof written);
    trip.how.backend->read(8, trip.out, out);
    printf("  values: expected 1.5 -1.5 3.5 -3.5, measured %g %g %g %g\n",
           out[1], out[2], out[5], out[6]);
    assert_true(out[1] == 1.5 && out[2] == -1.5 && out[5] == 3.5 &&
                out[6] == -3.5 && out[0] == 0);
    trip_close(&trip);
}

static void test_refuses(void **state)
{
    static const struct {
        const char *what;
        unsigned at;
        uint8_t byte;
        bool refused;
    } cases[] = {{"as it was written", 0, 0, false},
                 {"lo below 0", 3, 0xbf, true},
                 {"lo above hi", 3, 0x41, true},
                 {"lo that is no number", 3, 0x7f, true},
                 {"hi without end", 7, 0x7f, true},
                 {"three indices", 10, 0x15, true},
                 {"five indices", 10, 0x57, true},
                 {"an index twice", 9, 1, true},
                 {"bits behind the last index", 9, 0x15, true}};
    (void)state;
    for (size_t n = 0; n < sizeof cases / sizeof *cases; n++) {
        struct trip trip = open_eight();
        trip.wire[cases[n].at] = cases[n].byte;
        if (cases[n].at == 7)
            trip.wire[6] = 0x80;
        if (cases[n].at == 9 && cases[n].byte == 1)
            trip.wire[10] = 0x47; /* 1, 0 | 0, 0 | 0, 3 | 0 */
        const bool taken = kith_decompress(&trip.how, trip.wire, 0, trip.out);
        printf("  %s: %s, expected %s\n", cases[n].what,
               taken ? "taken" : "refused",
               cases[n].refused ? "refused" : "taken");
        assert_true(taken != cases[n].refused);
        trip_close(&trip);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_contracts),
        cmocka_unit_test(test_places),
        cmocka_unit_test(test_wire),
        cmocka_unit_test(test_refuses),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
