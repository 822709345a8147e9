/* Goal: the simulator obeys the law of stragglers (T11): with one of n peers s
 * times slower and communication hidden, rounds without a deadline run at
 * n / (s T), pairwise averaging at (n - 1 + 1/s) / T.
 * Method: both in virtual time for 10^4 steps of a healthy peer; the ratio of
 * their throughputs is (s (n - 1) + 1) / n to 0.5 %. Source: Lian et al. 2018,
 * section 5. */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "kith/sim.h"

static double throughput(const char *algorithm, const char *topology,
                         unsigned peers, unsigned slower, unsigned time_s)
{
    char text[1024], error[KITH_EXPERIMENT_ERROR_BYTES];
    const int length = snprintf(
        text, sizeof text,
        "name: straggler\nseed: 1\npeers: %u\nstop: {time: %us}\n"
        "model: {kind: none}\n"
        "gossip: {algorithm: %s, every: 1, topology: %s, deadline: %s}\n"
        "network: {latency: 1us}\n"
        "compute: {step: 1ms, slow: [{peers: \"peer(0)\", by: %u}]}\n",
        peers, time_s, algorithm, topology,
        strcmp(algorithm, "dpsgd") == 0 ? "never" : "measured", slower);
    struct kith_experiment experiment;
    if (kith_experiment_parse("straggler", text, (size_t)length, NULL, 0,
                              &experiment, error) != KITH_OK)
        fail_msg("%s", error);
    const struct sim_options options = {.experiment = &experiment,
                                        .trace_path = getenv("TR")};
    struct kith_summary summary;
    char sim_error[SIM_ERROR_BYTES];
    if (sim_run(&options, &summary, NULL, sim_error) != KITH_OK)
        fail_msg("%s", sim_error);
    kith_experiment_close(&experiment);
    return (double)summary.steps / summary.virtual_s;
}

static void straggler(unsigned peers, unsigned slower)
{
    const double together =
        throughput("dpsgd", "ring", peers, slower, 10 * slower);
    const double alone = throughput("adpsgd", "random", peers, slower, 10);
    const double expected = (slower * (peers - 1.0) + 1) / peers;
    printf("  T11 n=%u s=%u: expected %.4f measured %.4f (%.0f and %.0f "
           "steps/s)\n",
           peers, slower, expected, alone / together, alone, together);
    assert_true(fabs(alone / together / expected - 1) < 0.005);
}

static void test_t11_straggler(void **state)
{
    (void)state;
    straggler(16, 2);
    straggler(16, 10);
    straggler(8, 10);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_t11_straggler)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
