/* Goal: a machine's file is read as it was measured, what is wrong in it is
 * refused with line and key, steps between and beyond those measured lie on a
 * line, and an experiment takes from it what it does not say itself.
 * Method: texts, right and wrong; a file that an experiment names. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

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
    /* Between two measurements, though the next nearest is below both. */
    assert_int_equal(parse(HEAD
                           "steps:\n  - {batch: 16, threads: 1, time: 10us}"
                           "\n  - {batch: 32, threads: 1, time: 20us}"
                           "\n  - {batch: 64, threads: 1, time: 100us}\n"),
                     KITH_OK);
    is(40, 40, 1);
    is(15, 24, 1);
    is(140, 80, 1);
    is(5, 8, 1);
    assert_int_equal(
        parse(HEAD "steps: [{batch: 16, threads: 1, time: 1000000s}]\n"),
        KITH_OK);
    assert_true(kith_machine_step_s(&machine, 16, 1) <= 1e6);
}

/* What labs of real peers have measured. */
static void test_peers(void **state)
{
    (void)state;
    assert_int_equal(
        parse(HEAD
              "steps:\n  - {batch: 16, threads: 1, time: 60us, cpu: 70us}\n"
              "  - {batch: 32, threads: 1, time: 100us, cpu: 90us}\n"
              "  - {batch: 48, threads: 1, time: 110us}\n"
              "wires:\n  - {wire: float32, link: 1GB, merge: 3GB}\n"
              "  - {wire: int8, link: 500MB, merge: 1GB}\n"
              "message: 21us\nhandover: 25us\nwake: 40us\nslice: 4ms\n"),
        KITH_OK);
    assert_int_equal(machine.steps[0].cpu_ns, 70000);
    assert_int_equal(machine.steps[2].cpu_ns, 0);
    assert_int_equal(machine.wire_count, 2);
    assert_string_equal(machine.wires[1].name, "int8");
    assert_true(machine.wires[0].link_bits == UINT64_C(8000000000));
    assert_true(machine.wires[1].merge_bits == UINT64_C(8000000000));
    assert_int_equal(machine.message_ns, 21000);
    assert_int_equal(machine.handover_ns, 25000);
    assert_int_equal(machine.wake_ns, 40000);
    assert_int_equal(machine.slice_ns, 4000000);
    is(60, 16, 1); /* cpu is no part of the wall's clock */
    assert_true(fabs(1e6 * kith_machine_step_cpu_s(&machine, 24) - 80) < 1e-6);
    /* Its time where cpu was not measured. */
    assert_true(fabs(1e6 * kith_machine_step_cpu_s(&machine, 40) - 100) < 1e-6);
}

static void test_links(void **state)
{
    (void)state;
    assert_int_equal(
        parse(HEAD STEPS
              "links:\n  - {rank: 3, latency: 20ms, jitter: 0s, rate: 1Gbit, "
              "loss: 0}\n  - {rank: 0, latency: 100.6us, jitter: 1.5ms, rate: "
              "19931kbit, loss: 1.5e-3}\n"),
        KITH_OK);
    const struct kith_machine_link *link = kith_machine_slowest_link(&machine);
    assert_int_equal(machine.link_count, 2);
    assert_int_equal(machine.links[0].rank, 3);
    assert_int_equal(machine.links[0].latency_ns, 20000000);
    assert_int_equal(link->rank, 0);
    assert_int_equal(link->latency_ns, 100600);
    assert_int_equal(link->jitter_ns, 1500000);
    assert_true(link->rate_bits == UINT64_C(19931000) && link->loss == 0.0015);
#define LINK(rank, latency, rate, loss)                                        \
    HEAD STEPS "links: [{rank: " rank ", latency: " latency                    \
               ", jitter: 0s, rate: " rate ", loss: " loss "}]\n"
    assert_int_equal(parse(LINK("0", "60s", "1Mbit", "0.5")), KITH_OK);
    refused(LINK("-1", "1s", "1Mbit", "0"), "m.yaml:5: links");
    refused(LINK("4294967296", "1s", "1Mbit", "0"), "m.yaml:5: links");
    refused(LINK("0", "61s", "1Mbit", "0"), "times up to 60s");
    refused(LINK("0", "-1s", "1Mbit", "0"), "times up to 60s");
    refused(LINK("0", "1s", "0Mbit", "0"), "m.yaml:5: links");
    refused(LINK("0", "1s", "999bit", "0"), "1kbit to 1000Tbit");
    refused(LINK("0", "1s", "1001Tbit", "0"), "1kbit to 1000Tbit");
    refused(LINK("0", "1s", "1Mbit", "1"), "m.yaml:5: links");
    refused(LINK("0", "1s", "1Mbit", "nan"), "m.yaml:5: links");
    refused(HEAD STEPS "links: []\n", "a list of 1 to 64 entries");
#undef LINK
    assert_int_equal(parse(HEAD STEPS), KITH_OK);
    assert_null(kith_machine_slowest_link(&machine));
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
    refused(HEAD "steps: [3]\n", "m.yaml:4: steps");
    refused(HEAD "steps: [{batch: 1, threads: 1, time: 1s, cpu: 0s}]\n",
            "above 0");
    refused(HEAD "steps: [{batch: 1, threads: 1, time: 1s, cpu: -1s}]\n",
            "above 0");
    refused(HEAD "steps: [{batch: 1, threads: 1, time: 1s, cup: 1s}]\n",
            "m.yaml:4: steps");
    refused(HEAD STEPS "wires: []\n", "a list of 1 to 16 entries");
    refused(HEAD STEPS "wires: [float32]\n", "m.yaml:5: wires");
    refused(HEAD STEPS "wires: [{wire: float32, link: 1GB}]\n",
            "two rates above 0");
    refused(HEAD STEPS "wires: [{wire: flaot32, link: 1GB, merge: 1GB}]\n",
            "kith list wire");
    refused(HEAD STEPS "wires: [{wire: float32, link: 0GB, merge: 1GB}]\n",
            "two rates above 0");
    refused(HEAD STEPS "wires: [{wire: float32, link: 1GB, merge: [1]}]\n",
            "two rates above 0");
    refused(HEAD STEPS "message: -1us\n", "m.yaml:5: message");
    refused(HEAD STEPS "wake: 61s\n", "m.yaml:5: wake");
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

/* ---- hosts.file of an experiment */

static char path[] = "machine-XXXXXX";

static int setup(void **state)
{
    const int file = mkstemp(path);
    (void)state;
    return file < 0 ? -1 : close(file);
}

static int teardown(void **state)
{
    (void)state;
    return unlink(path);
}

/* An MLP of 2410 values whose machine's file is `text`. */
static enum kith_err take(const char *text, const char *more,
                          struct kith_experiment *experiment)
{
    char yaml[1024];
    FILE *file = fopen(path, "w");
    assert_non_null(file);
    assert_true(fputs(text, file) >= 0 && fclose(file) == 0);
    const int length = snprintf(
        yaml, sizeof yaml,
        "name: t\npeers: 4\nstop: {steps: 5}\n"
        "model: {kind: mlp, layers: [64, 32, 10]}\ndata: {path: /data}\n"
        "train: {learning_rate: 0.1, batch: 16}\nhosts: {file: %s%s}\n",
        path, more);
    return kith_experiment_parse("t.yaml", yaml, (size_t)length, NULL, 0,
                                 experiment, error);
}

static void take_refused(const char *text, const char *words)
{
    struct kith_experiment experiment;
    assert_true(take(text, "", &experiment) != KITH_OK);
    printf("  %s\n", error);
    assert_non_null(strstr(error, "--set 'hosts={}'"));
    if (strstr(error, "t.yaml:7: hosts.file") == NULL ||
        strstr(error, words) == NULL)
        fail_msg("expected: %s", words);
}

#define PEERS                                                                  \
    HEAD "steps: [{batch: 16, threads: 1, time: 60us, cpu: 70us}]\n"           \
         "message: 21us\nhandover: 25us\nwake: 40us\nslice: 4ms\n"             \
         "socket: 8GB\nmerge: 5GB\n"
#define WIRES "wires: [{wire: float32, link: 1GB, merge: 3GB}]\n"

/* Each number that a file may say counts. */
static void assert_hashes_of_files(const struct kith_experiment *experiment)
{
    static const char *const lines[] = {
        "cores: 2",   "cpu: 70us",  "message: 21us", "handover: 25us",
        "wake: 40us", "slice: 4ms", "link: 1GB",     "merge: 3GB",
    };
    const uint64_t hash = kith_experiment_files_hash(experiment);
    for (size_t i = 0; i < sizeof lines / sizeof lines[0]; i++) {
        struct kith_experiment other;
        char text[512];
        (void)snprintf(text, sizeof text, "%s", PEERS WIRES);
        char *const at = strstr(text, lines[i]);
        assert_non_null(at);
        *strpbrk(at, "123457") = '6';
        assert_int_equal(take(text, "", &other), KITH_OK);
        assert_true(kith_experiment_files_hash(&other) != hash);
        kith_experiment_close(&other);
    }
}

static void test_taken(void **state)
{
    (void)state;
    struct kith_experiment experiment;
    assert_int_equal(take(PEERS WIRES, "", &experiment), KITH_OK);
    assert_int_equal(experiment.hosts.cores, 2);
    assert_int_equal(experiment.hosts.step_ns, 70000);
    assert_int_equal(experiment.hosts.message_ns, 21000);
    assert_int_equal(experiment.hosts.handover_ns, 25000);
    assert_int_equal(experiment.hosts.wake_ns, 40000);
    assert_int_equal(experiment.hosts.slice_ns, 4000000);
    assert_true(experiment.hosts.wire_bits == UINT64_C(8000000000));
    assert_true(experiment.hosts.merge_bits == UINT64_C(24000000000));
    assert_non_null(strstr(experiment.hosts.taken, "cores: 2"));
    assert_int_equal(experiment.compute.step_ns, 0);
    /* A stop.time needs to know how long a step is: the file says so. */
    experiment.stop.time_ns = KITH_S;
    assert_int_equal(
        kith_experiment_check_world(&experiment, KITH_WORLD_SIM, error),
        KITH_OK);
    experiment.hosts.step_ns = 0;
    assert_int_equal(
        kith_experiment_check_world(&experiment, KITH_WORLD_SIM, error),
        KITH_EINVAL);
    experiment.hosts.step_ns = 70000;
    kith_experiment_steps_of_hosts(&experiment);
    assert_int_equal(experiment.compute.step_ns, 70000);
    assert_hashes_of_files(&experiment);
    kith_experiment_close(&experiment);
    /* Without labs in this format: sockets and merges by themselves. */
    assert_int_equal(take(PEERS, "", &experiment), KITH_OK);
    /* Rounded down. */
    assert_in_range(experiment.hosts.wire_bits, UINT64_C(127999999999),
                    UINT64_C(128000000000));
    assert_true(experiment.hosts.merge_bits == UINT64_C(40000000000));
    kith_experiment_close(&experiment);
}

/* What the experiment says comes first. */
static void test_given(void **state)
{
    (void)state;
    struct kith_experiment experiment;
    assert_int_equal(take(PEERS WIRES,
                          ", cores: 3, step: 1ms, message: 0s, wake: 1us, "
                          "wire: unlimited, merge: 1GB, handover: 2us, "
                          "slice: 1ms",
                          &experiment),
                     KITH_OK);
    assert_int_equal(experiment.hosts.cores, 3);
    assert_int_equal(experiment.hosts.step_ns, KITH_MS);
    assert_int_equal(experiment.hosts.message_ns, 0);
    assert_int_equal(experiment.hosts.handover_ns, 2000);
    assert_int_equal(experiment.hosts.wake_ns, 1000);
    assert_int_equal(experiment.hosts.slice_ns, KITH_MS);
    assert_true(experiment.hosts.wire_bits == 0);
    assert_true(experiment.hosts.merge_bits == UINT64_C(8000000000));
    assert_string_equal(experiment.hosts.taken, "");
    kith_experiment_close(&experiment);
}

static void test_take_refused(void **state)
{
    (void)state;
    struct kith_experiment experiment;
    take_refused("", path);
    take_refused("model: cnn\nvalues: 2410\ncores: 2\n" STEPS, "measure again");
    take_refused("model: mlp\nvalues: 2411\ncores: 2\n" STEPS,
                 "the experiment's is mlp of 2410");
    take_refused(HEAD "steps: [{batch: 16, threads: 2, time: 60us}]\n",
                 "threads: 1");
    take_refused(HEAD "steps: [{batch: 1, threads: 1, time: 1000000s}]\n",
                 "up to 3600 s");
    assert_int_equal(take(PEERS, "", &experiment), KITH_OK); /* good again */
    kith_experiment_close(&experiment);
}

/* hosts: {}, as the advice for a file that is yet to be measured says. */
static void test_no_hosts(void **state)
{
    (void)state;
    struct kith_experiment experiment;
    const char *const set = "hosts={}";
    static const char yaml[] =
        "name: t\npeers: 4\nstop: {steps: 5}\nmodel: {kind: quadratic, "
        "dim: 3}\nhosts: {file: none-there.yaml}\n";
    assert_true(kith_experiment_parse("t.yaml", yaml, strlen(yaml), NULL, 0,
                                      &experiment, error) != KITH_OK);
    assert_non_null(strstr(error, set));
    assert_int_equal(kith_experiment_parse("t.yaml", yaml, strlen(yaml), &set,
                                           1, &experiment, error),
                     KITH_OK);
    assert_int_equal(experiment.hosts.cores, 0);
    kith_experiment_close(&experiment);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_read),         cmocka_unit_test(test_steps),
        cmocka_unit_test(test_peers),        cmocka_unit_test(test_links),
        cmocka_unit_test(test_refused),      cmocka_unit_test(test_no_file),
        cmocka_unit_test(test_taken),        cmocka_unit_test(test_given),
        cmocka_unit_test(test_take_refused), cmocka_unit_test(test_no_hosts),
    };
    return cmocka_run_group_tests(tests, setup, teardown);
}
