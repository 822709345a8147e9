/* Goal: who waits for nobody learns although one peer of eight takes ten times
 * as long for a step, and so does that peer.
 * Method: every algorithm of the registry that waits for nobody, simulated with
 * and without the slow peer; the loss over all data of the averaged model and
 * of the worst peer against those of the run in which all are alike. */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include <math.h>
#include <stdio.h>

#include "kith/algorithm.h"
#include "tests/support/simulate.h"

/* The slow peer's steps are old when they are merged, and swift averages its
 * old model again and again: learning is behind, but not far. A peer that
 * pushes is alone at its end; in rounds all go on until the last one is done.
 */
#define AVERAGED_MOST 1.4
#define WORST_MOST 2.0
#define APART_MOST 1.01 /* in rounds: the worst over the averaged */

static struct simulated run(const struct kith_algorithm *algorithm,
                            const char *slow)
{
    const bool rounds = algorithm->pattern == KITH_PATTERN_ROUND;
    const bool directed = algorithm->flags & KITH_ALLOWS_DIRECTED_LINKS;
    char yaml[1024];
    snprintf(yaml, sizeof yaml,
             "name: stragglers\nseed: 1\npeers: 8\nstop: {steps: 600}\n"
             "model: {kind: mlp, layers: [100, 32, 10]}\n"
             "data: {kind: gaussian, rows: 4000, spread: 0.28}\n"
             "train: {learning_rate: 0.1, batch: 16, schedule: linear}\n"
             "gossip: {algorithm: %s, topology: %s}\n"
             "network: {latency: 200us, rate: 1Gbit}\n"
             "compute: {step: 5ms%s}\n",
             algorithm->name,
             directed ? rounds ? "exponential" : "one-peer-exponential"
                      : "ring",
             slow);
    return simulate(yaml, NULL);
}

static void test_slow_peer(void **state)
{
    (void)state;
    unsigned missed = 0;
    printf("  loss, averaged and worst; expected: slow <= %.2f, %.2f even\n",
           AVERAGED_MOST, WORST_MOST);
    for (size_t i = 0; kith_algorithms[i] != NULL; i++) {
        const struct kith_algorithm *algorithm = kith_algorithms[i];
        if (algorithm->wait != KITH_WAIT_NO ||
            algorithm->pattern == KITH_PATTERN_NONE)
            continue;
        const struct simulated even = run(algorithm, "");
        const struct simulated slow =
            run(algorithm, ", slow: [{peers: \"peer(3)\", by: 10}]");
        const double averaged =
            slow.summary.loss.averaged / even.summary.loss.averaged;
        const double worst = slow.summary.loss.worst / even.summary.loss.worst;
        const bool apart =
            algorithm->pattern == KITH_PATTERN_ROUND &&
            slow.summary.loss.worst > APART_MOST * slow.summary.loss.averaged;
        const bool held =
            averaged <= AVERAGED_MOST && worst <= WORST_MOST && !apart;
        printf("  %-14s even %.4f, %.4f; slow %.4f, %.4f: %.2f, %.2f%s\n",
               algorithm->name, even.summary.loss.averaged,
               even.summary.loss.worst, slow.summary.loss.averaged,
               slow.summary.loss.worst, averaged, worst,
               held ? "" : "  MISSED");
        missed += !held;
    }
    assert_int_equal(missed, 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_slow_peer),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
