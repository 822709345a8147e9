/* Goal: the measured peak is a rate, and so is that of each product; every
 * variant's loop counts its FLOP and ends with finite numbers. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "kith/backend.h"
#include "src/training/backend/cpu.h"

static void test_loops(void **state)
{
    (void)state;
    for (size_t i = 0; kith_cpu_loops[i] != NULL; i++) {
        float sink[16];
        for (int k = 0; k < 16; k++)
            sink[k] = 1;
        if (!kith_cpu_loops[i]->supported())
            continue;

        const double one = kith_cpu_loops[i]->fuse(1, sink);
        const double ten = kith_cpu_loops[i]->fuse(10, sink);

        assert_true(one > 0);
        assert_true(fabs(ten - 10 * one) < 1);
        for (int k = 0; k < 16; k++)
            assert_true(isfinite(sink[k]) && sink[k] > 1);
    }
}

static void test_backends(void **state)
{
    (void)state;
    kith_backend_threads(1);
    const double cpu = kith_backend_measure_peak(kith_backend_find("cpu"));
    const double slow = kith_backend_measure_peak(kith_backend_find("naive64"));
    double gflops[KITH_PRODUCTS];
    (void)kith_backend_measure_products(gflops);

    /* How fast is a benchmark's business; here, that it is a rate. */
    assert_true(cpu > 0 && isfinite(cpu));
    assert_true(slow > 0 && isfinite(slow));
    assert_true(gflops[0] > 0);
    /* A peak that products of the same kernels pass is none; the other half is
     * for what else runs on the machine meanwhile. */
    assert_true(1e9 * gflops[0] < 2 * cpu);
    for (int i = 0; i < KITH_PRODUCTS; i++)
        assert_true(gflops[i] >= 0 && isfinite(gflops[i]));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_loops),
        cmocka_unit_test(test_backends),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
