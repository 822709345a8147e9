/* Goal: what makes no sense in `central:` is refused by name, and by every
 * world but the simulator. Method: one setting too many each, then a good file.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "kith/experiment.h"

#define FILE_TEXT                                                              \
    "name: t\npeers: 4\nstop: {steps: 10}\n"                                   \
    "model: {kind: mlp, layers: [100, 64, 10]}\n"                              \
    "data: {kind: gaussian}\ncompute: {step: 1ms}\n"                           \
    "central: {method: gradient}\n"

static char error[KITH_EXPERIMENT_ERROR_BYTES];

static enum kith_err parse(const char *set, struct kith_experiment *experiment)
{
    return kith_experiment_parse("t", FILE_TEXT, strlen(FILE_TEXT), &set,
                                 set == NULL ? 0 : 1, experiment, error);
}

static void test_refused(void **state)
{
    (void)state;
    static const struct {
        const char *set, *words;
    } cases[] = {
        {"gossip={algorithm: adpsgd}", "beside gossip"},
        {"central={method: gossip}", "gradient, sparknet, easgd"},
        {"central={exchange: star}", "naive, tree, scatter-reduce"},
        {"central={trigger: eager}", "sync, async, ssp"},
        {"central={method: easgd, trigger: ssp}", "has async alone"},
        {"central={method: sparknet, trigger: async}", "has sync alone"},
        {"central={exchange: ring, trigger: async}", "trigger sync"},
        {"central={exchange: ring, servers: 2}", "does not read it"},
        {"central={exchange: ring, placement: workers}", "does not read it"},
        {"central={trigger: sync, staleness: 3}", "does not read it"},
        {"central={trigger: ssp, bound: 3}", "does not read it"},
        {"central={trigger: async, every: 3}", "does not read it"},
        {"central={method: easgd, servers: 2}", "does not read it"},
        {"central={trigger: backup, backup: 4}", "allowed: fewer"},
        {"central={servers: 5}", "more servers than peers"},
        {"central={proxies: 2, servers: 2}", "take out servers"},
        {"central={trigger: essp, proxies: 2}", "allowed triggers"},
        {"central={trigger: async, replicas: 3, placement: workers}",
         "machines of their own"},
        {"central={method: vertical, micro_batches: 3}", "divide train.batch"},
        {"central={method: vertical, in_flight: 5}", "at most as many"},
        {"central={method: vertical, in_flight: 2, micro_batches: 2}",
         "one of them above 1"},
        {"central={payload: 5}", "says itself how many bytes"},
        {"faults=[{at: 1ms, crash: \"n(1)\"}]", "slow peers alone"},
        {"network={drop_push: 0.1}", "drop"},
        {"network={wire: full}", "allowed: sized"},
        {"model={kind: resnet, depth: 20, image: [32, 32, 3], classes: 10}",
         "norm: group"},
    };
    struct kith_experiment experiment;
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        if (parse(cases[i].set, &experiment) == KITH_OK)
            fail_msg("%s was let through", cases[i].set);
        if (strstr(error, cases[i].words) == NULL)
            fail_msg("%s: no \"%s\" in: %s", cases[i].set, cases[i].words,
                     error);
    }
    if (parse(NULL, &experiment) != KITH_OK)
        fail_msg("%s", error);
    kith_experiment_close(&experiment);
}

static void test_worlds(void **state)
{
    (void)state;
    struct kith_experiment experiment;
    assert_int_equal(parse(NULL, &experiment), KITH_OK);
    assert_int_equal(
        kith_experiment_check_world(&experiment, KITH_WORLD_SIM, error),
        KITH_OK);
    static const enum kith_world others[] = {KITH_WORLD_TRAIN, KITH_WORLD_LAB};
    for (size_t i = 0; i < 2; i++) {
        assert_int_equal(
            kith_experiment_check_world(&experiment, others[i], error),
            KITH_EINVAL);
        assert_non_null(strstr(error, "exist in the simulator only"));
    }
    const uint64_t hash = kith_experiment_hash(&experiment);
    kith_experiment_close(&experiment);
    assert_int_equal(parse("central={exchange: ring}", &experiment), KITH_OK);
    assert_true(kith_experiment_hash(&experiment) != hash);
    kith_experiment_close(&experiment);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_refused),
        cmocka_unit_test(test_worlds),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
