/* Goal: a machine's file is read as it was measured, what is wrong in it is
 * refused with line and key, and steps between and beyond those measured lie on
 * a line.
 * Method: texts, right and wrong. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "kith/experiment.h"
#include "kith/machine.h"

static char error[KITH_EXPERIMENT_ERROR_BYTES];
static struct kith_machine machine;

#define HEAD "model: mlp\nvalues: 2410\ncores: 2\n"
#define STEPS "steps: [{batch: 16, threads: 1, time: 60us}]\n"

static enum kith_err parse(const char *text)
{
    return kith_machine_parse("m.yaml", text, strlen(text), &machine, error);
}

static void refused(const char *text, const char *words)
{
    assert_true(parse(text) != KITH_OK);
    printf("  %s\n", error);
    if (strstr(error, words) == NULL)
        fail_msg("expected: %s", words);
}

static void test_read(void **state)
{
    (void)state;
    assert_int_equal(
        parse(HEAD "steps:\n  - {batch: 16, threads: 1, time: 60us}\n"
                   "  - {batch: 32, threads: 1, time: 100us}\n"
                   "  - {batch: 16, threads: 2, time: 50us}\n"
                   "example: 1184\n"
                   "suites:\n  - {suite: AESGCM, seal: 5GB, open: 6.5GB}\n"
                   "socket: 1.5GB\nmerge: 6GB\nhandshake: 310us\n"),
        KITH_OK);
    assert_string_equal(machine.model, "mlp");
    assert_int_equal(machine.values, 2410);
    assert_int_equal(machine.step_count, 3);
    assert_int_equal(machine.suite_count, 1);
    assert_string_equal(machine.suites[0].name, "AESGCM");
    assert_true(machine.suites[0].open_bits == UINT64_C(52000000000));
    assert_true(machine.socket_bits == UINT64_C(12000000000));
    assert_int_equal(machine.handshake_ns, 310000);
    assert_int_equal(machine.example_bytes, 1184);
}

static void is(double expected_us, uint32_t batch, uint32_t threads)
{
    const double found_us = 1e6 * kith_machine_step_s(&machine, batch, threads);
    printf("  batch %u, %u threads: expected %g us, measured %.9g\n",
           (unsigned)batch, (unsigned)threads, expected_us, found_us);
    assert_true(fabs(found_us - expected_us) < 1e-6);
}

static void test_steps(void **state)
{
    test_read(state);
    is(60, 16, 1);
    is(80, 24, 1);
    is(100, 32, 1);
    is(180, 64, 1);
    is(40, 8, 1);
    is(100, 32, 2); /* one measurement: as many times as examples */
    assert_true(isnan(kith_machine_step_s(&machine, 16, 4)));
    assert_int_equal(parse(HEAD "steps:\n  - {batch: 16, threads: 1, time: 9us}"
                                "\n  - {batch: 17, threads: 1, time: 90us}\n"),
                     KITH_OK);
    is(9.0 / 16, 1, 1); /* the line is below nothing there */
    assert_int_equal(parse(HEAD
                           "steps:\n  - {batch: 16, threads: 1, time: 61us}"
                           "\n  - {batch: 32, threads: 1, time: 60us}\n"),
                     KITH_OK);
    is(60.5, 24, 1);
    is(60, 4096, 1); /* a falling line ends */
    is(61, 8, 1);
    assert_int_equal(
        parse(HEAD "steps: [{batch: 16, threads: 1, time: 1000000s}]\n"),
        KITH_OK);
    assert_true(kith_machine_step_s(&machine, 16, 1) <= 1e6);
}

static void test_refused(void **state)
{
    (void)state;
    refused("", "m.yaml");
    refused("model: mlp\nvalues: 2410\ncores: 2\n", "steps");
    refused(HEAD "steps: 3\n", "a list of 1 to 64 entries");
    refused(HEAD "steps: []\n", "a list of 1 to 64 entries");
    refused(HEAD "steps: [{batch: 16, threads: 1}]\n", "m.yaml:4: steps");
    refused(HEAD "steps: [{batch: 0, threads: 1, time: 1s}]\n", "from 1");
    refused(HEAD "steps: [{batch: 1, threads: 1, time: 0s}]\n", "above 0");
    refused(HEAD "steps: [{batch: 1, threads: 1, time: 1}]\n", "above 0");
    refused(HEAD STEPS "suites: [{suite: AESGCM, seal: 1, open: 1GB}]\n",
            "two rates above 0");
    refused(HEAD STEPS "sockets: 1GB\n", "did you mean \"socket\"?");
    refused(HEAD STEPS "example: 1000000000001\n", "0 to 1000000000000");
    refused(HEAD STEPS "merge: fast\n", "m.yaml:5: merge");
    refused("model: mlp\nvalues: nan\ncores: 2\n" STEPS, "m.yaml:2: values");
    assert_int_equal(parse(HEAD STEPS), KITH_OK); /* good again */
}

static void test_no_file(void **state)
{
    (void)state;
    assert_int_equal(kith_machine_load("none/there.yaml", &machine, error),
                     KITH_ENOENT);
    assert_non_null(strstr(error, "none/there.yaml"));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_read),
        cmocka_unit_test(test_steps),
        cmocka_unit_test(test_refused),
        cmocka_unit_test(test_no_file),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
