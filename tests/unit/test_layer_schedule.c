/* Goal: a step whose transfers overlap takes the time of the golden schedules
 * (T5.1), never less than its parts and never more than them one after another.
 * Method: the tables of T5.1; drawn layers against the bounds. Prints expected
 * and measured. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <math.h>
#include <stdio.h>

#include "kith/balance.h"
#include "kith/rng.h"

#define DRAWS 20000u
#define LAYERS_MAX 12u

static const char *const orders[] = {[KITH_SEND_ALONE] = "no overlap",
                                     [KITH_SEND_FIRST_READY] = "FIFO",
                                     [KITH_SEND_BY_LAYER] = "priority"};

/* Forward, weight and back of 2 ms each. */
static void test_golden(void **state)
{
    static const struct {
        double transfers_ms[4];
        enum kith_send_order order;
        bool weight_first;
        double expected_ms;
    } cases[] = {{{1, 3, 4, 10}, KITH_SEND_FIRST_READY, true, 28},
                 {{1, 3, 4, 10}, KITH_SEND_BY_LAYER, true, 24},
                 {{1, 3, 4, 10}, KITH_SEND_FIRST_READY, false, 30},
                 {{1, 3, 4, 10}, KITH_SEND_BY_LAYER, false, 26},
                 {{1, 3, 4, 10}, KITH_SEND_ALONE, true, 40},
                 {{1, 2, 12, 1}, KITH_SEND_FIRST_READY, true, 29},
                 {{1, 2, 12, 1}, KITH_SEND_BY_LAYER, true, 27},
                 {{1, 2, 12, 1}, KITH_SEND_FIRST_READY, false, 31},
                 {{1, 2, 12, 1}, KITH_SEND_BY_LAYER, false, 29},
                 {{1, 2, 12, 1}, KITH_SEND_ALONE, true, 38}};
    (void)state;
    for (size_t n = 0; n < sizeof cases / sizeof *cases; n++) {
        struct kith_layer_times layers[4];
        for (unsigned i = 0; i < 4; i++)
            layers[i] = (struct kith_layer_times){
                2e-3, 2e-3, 2e-3, 1e-3 * cases[n].transfers_ms[i]};
        const double found_ms =
            1e3 *
            kith_balance_step(layers, 4, cases[n].order, cases[n].weight_first);
        printf("T5.1 transfers %g %g %g %g, %s, %s first: expected %.1f ms, "
               "measured %.9f ms\n",
               cases[n].transfers_ms[0], cases[n].transfers_ms[1],
               cases[n].transfers_ms[2], cases[n].transfers_ms[3],
               orders[cases[n].order],
               cases[n].weight_first ? "weights" : "inputs",
               cases[n].expected_ms, found_ms);
        assert_true(fabs(found_ms - cases[n].expected_ms) < 1e-9);
    }
}

static void test_bounds(void **state)
{
    struct kith_rng rng;
    (void)state;
    kith_rng_init(&rng, 23, KITH_STREAM_SYNTHETIC, 0);
    for (unsigned n = 0; n < DRAWS; n++) {
        struct kith_layer_times layers[LAYERS_MAX];
        const uint32_t count = 1 + kith_rng_below(&rng, LAYERS_MAX);
        double computing = 0, sending = 0;
        for (uint32_t i = 0; i < count; i++) {
            layers[i] = (struct kith_layer_times){
                kith_rng_double(&rng), kith_rng_double(&rng),
                kith_rng_double(&rng), 3 * kith_rng_double(&rng)};
            computing += layers[i].forward_s + layers[i].weight_s +
                         (i > 0 ? layers[i].back_s : 0);
            sending += layers[i].transfer_s;
        }
        for (int first = 0; first < 2; first++)
            for (int order = KITH_SEND_FIRST_READY; order <= KITH_SEND_BY_LAYER;
                 order++) {
                const double found = kith_balance_step(
                    layers, count, (enum kith_send_order)order, first == 1);
                assert_true(found >= fmax(computing, sending) - 1e-9);
                assert_true(found <= computing + sending + 1e-9);
            }
        assert_true(
            fabs(kith_balance_step(layers, count, KITH_SEND_ALONE, true) -
                 computing - sending) < 1e-9);
    }
    printf("# %u drawn models within their bounds\n", DRAWS);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_golden),
                                       cmocka_unit_test(test_bounds)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
