/* Goal: what follows from an experiment is right: the model's configuration,
 * hash, steps, the core's configuration, what each world can do, what is kept.
 * Method: the base file with one --set. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "kith/backend.h"
#include "kith/node.h"
#include "experiment_base.h"

/* Every model's keys arrive where the model looks for them. */
static void test_models(void **state)
{
    (void)state;
    struct kith_experiment experiment;

    must_parse("model={kind: cnn, image: [28, 26, 1], classes: 10, "
               "channels: [16, 32], dropout: 0.25, frozen: conv1}",
               &experiment);
    const struct kith_model_config *config = &experiment.model_config;
    assert_int_equal(config->image[0], 28);
    assert_int_equal(config->image[1], 26);
    assert_int_equal(config->image[2], 1);
    assert_int_equal(config->classes, 10);
    assert_int_equal(config->channel_count, 2);
    assert_int_equal(config->channels[1], 32);
    assert_true(config->dropout == 0.25);
    assert_string_equal(config->frozen, "conv1");
    assert_int_equal(kith_model_size_of(experiment.model, config).features,
                     28 * 26);
    kith_experiment_close(&experiment);

    must_parse("model={kind: resnet, depth: 20, image: [32, 32, 3], "
               "classes: 10, norm: group}",
               &experiment);
    assert_int_equal(config->norm, KITH_MODEL_NORM_GROUP);
    assert_int_equal(config->depth, 20);
    assert_int_equal(kith_model_size_of(experiment.model, config).trained,
                     272474);
    kith_experiment_close(&experiment);

    must_parse("model={kind: vgg, depth: 8, image: [32, 32, 3], classes: 10}",
               &experiment);
    assert_int_equal(config->norm, KITH_MODEL_NORM_DEFAULT);
    assert_true(kith_model_size_of(experiment.model, config).dim >
                kith_model_size_of(experiment.model, config).trained);
    kith_experiment_close(&experiment);
}

static void test_gpt_keys(void **state)
{
    (void)state;
    static const char *const overrides[] = {
        "model={kind: gpt, depth: 4, heads: 4, width: 128, context: 64, "
        "vocabulary: 65, dropout: 0.1}",
        "data={kind: text, path: /data/text}"};
    struct kith_experiment experiment;
    char error[KITH_EXPERIMENT_ERROR_BYTES] = "";
    if (kith_experiment_parse("test", base, strlen(base), overrides, 2,
                              &experiment, error) != KITH_OK)
        fail_msg("%s", error);
    const struct kith_model_config *config = &experiment.model_config;
    assert_int_equal(config->depth, 4);
    assert_int_equal(config->heads, 4);
    assert_int_equal(config->width, 128);
    assert_int_equal(config->context, 64);
    assert_int_equal(config->vocabulary, 65);
    assert_int_equal(kith_model_size_of(experiment.model, config).classes, 65);
    assert_int_equal(experiment.data.config.context, 64);
    kith_experiment_close(&experiment);
}

/* What the database keeps repeats the run: same hash, same atoms. */
static void test_source(void **state)
{
    (void)state;
    static const char *const sets[] = {
        "gossip.every=4",
        "data.path=relative/folder",
        "faults=[{at: 1s, crash: \"n(1) - peer(0)\"}]",
        "assert=[\"finally accuracy >= 0.5\"]",
    };
    for (size_t i = 0; i < COUNT(sets); i++) {
        struct kith_experiment first, second;
        char error[KITH_EXPERIMENT_ERROR_BYTES] = "";
        must_parse(sets[i], &first);

        if (parse(first.source, NULL, &second, error) != KITH_OK)
            fail_msg("%s: %s", error, first.source);

        assert_int_equal(kith_experiment_hash(&first),
                         kith_experiment_hash(&second));
        assert_string_equal(first.data.config.path, second.data.config.path);
        assert_int_equal(first.data.config.path[0], '/');
        assert_int_equal(first.atom_count, second.atom_count);
        for (uint32_t k = 0; k < first.atom_count; k++) {
            assert_int_equal(first.atoms[k].peer, second.atoms[k].peer);
            assert_int_equal(first.atoms[k].at_ns, second.atoms[k].at_ns);
        }
        kith_experiment_close(&first);
        kith_experiment_close(&second);
    }
}

static void test_hash(void **state)
{
    (void)state;
    static const char *const same[] = {
        "name=other",
        "data.path=/elsewhere",
        "data.cache=/tmp/x",
        "compute.step=6ms",
        "network.latency=1ms",
        "save=1s",
        "stop.patience=3",
        "best=accuracy",
        "evaluate=500 steps",
        "gossip.retries=1",
        "train.recompute=true",
        "compute.threads=3",
        "compute.products=openblas",
        "compute.peak=1.5e11",
    };
    static const char *const other[] = {
        "seed=10",
        "peers=9",
        "stop.epochs=6",
        "model.layers=[784, 128, 10]",
        "model.dropout=0.1",
        "model.frozen=fc1",
        "data.split=iid",
        "data.kind=npy",
        "data.normalise=true",
        "train.augment={crop: 4}",
        "train.augment={flip: true}",
        "train.learning_rate=0.06",
        "train.batch=8",
        "train.schedule=cosine",
        "train.nesterov=true",
        "train.floor=0.1",
        "train.accumulate=2",
        "train.smoothing=0.1",
        "gossip.every=3",
        "gossip.topology=ring",
        "train.backend=naive64",
    };
    struct kith_experiment experiment;
    must_parse(NULL, &experiment);
    const uint64_t hash = kith_experiment_hash(&experiment);
    kith_experiment_close(&experiment);

    for (size_t i = 0; i < COUNT(same); i++) {
        must_parse(same[i], &experiment);
        assert_true(kith_experiment_hash(&experiment) == hash);
        kith_experiment_close(&experiment);
    }
    for (size_t i = 0; i < COUNT(other); i++) {
        must_parse(other[i], &experiment);
        assert_true(kith_experiment_hash(&experiment) != hash);
        kith_experiment_close(&experiment);
    }
}

static void test_steps(void **state)
{
    (void)state;
    struct kith_experiment experiment;
    must_parse(NULL, &experiment);
    /* floor(5 * 60000 / (8 * 16)) */
    assert_int_equal(kith_experiment_steps(&experiment, 60000), 2343);
    kith_experiment_close(&experiment);

    must_parse("stop={steps: 700}", &experiment);
    assert_int_equal(kith_experiment_steps(&experiment, 60000), 700);
    kith_experiment_close(&experiment);

    must_parse("stop={time: 60s}", &experiment);
    assert_true(kith_experiment_steps(&experiment, 60000) == UINT64_MAX);
    kith_experiment_close(&experiment);
}

static void test_node_config(void **state)
{
    (void)state;
    struct kith_experiment experiment;
    struct kith_topology topology;
    struct kith_node_config config;
    must_parse("train.backend=naive64", &experiment);

    assert_int_equal(
        kith_experiment_node_config(&experiment, 99, &topology, &config),
        KITH_OK);

    assert_int_equal(config.steps, 99);
    assert_int_equal(config.every, 2);
    assert_int_equal(config.payload_bytes,
                     8 * (784 * 256 + 256 + 256 * 10 + 10));
    assert_int_equal(topology.peers, 8);
    kith_experiment_close(&experiment);
}

static void test_worlds(void **state)
{
    (void)state;
    struct kith_experiment experiment;
    char error[KITH_EXPERIMENT_ERROR_BYTES];
    must_parse("gossip={algorithm: dpsgd, topology: ring, deadline: never}",
               &experiment);
    assert_int_equal(
        kith_experiment_check_world(&experiment, KITH_WORLD_SIM, error),
        KITH_OK);
    assert_int_equal(
        kith_experiment_check_world(&experiment, KITH_WORLD_LAB, error),
        KITH_EINVAL);
    assert_non_null(strstr(error, "kith sim"));
    kith_experiment_close(&experiment);
}

static char world_error[KITH_EXPERIMENT_ERROR_BYTES];

static enum kith_err check_world(const char *set, enum kith_world world)
{
    struct kith_experiment experiment;
    must_parse(set, &experiment);
    const enum kith_err err =
        kith_experiment_check_world(&experiment, world, world_error);
    kith_experiment_close(&experiment);
    return err;
}

/* Nobody sees all models of a lab at one instant. */
static void test_conserved(void **state)
{
    (void)state;
    assert_int_equal(
        check_world("assert=[\"always conserved\"]", KITH_WORLD_SIM), KITH_OK);
    assert_int_equal(
        check_world("assert=[\"always conserved\"]", KITH_WORLD_LAB),
        KITH_EINVAL);
    assert_non_null(strstr(world_error, "kith sim alone"));
}

/* Who evaluates how often, and who can stop early. */
static void test_evaluations(void **state)
{
    (void)state;
    struct kith_experiment experiment;
    must_parse("evaluate=500 steps", &experiment);
    assert_int_equal(experiment.evaluate_steps, 500);
    assert_int_equal(experiment.evaluate_ns, 0);
    assert_int_equal(experiment.best, KITH_BEST_LOSS);
    kith_experiment_close(&experiment);
    must_parse("evaluate=2s", &experiment);
    assert_int_equal(experiment.evaluate_steps, 0);
    assert_int_equal(experiment.evaluate_ns, 2 * KITH_S);
    kith_experiment_close(&experiment);
    assert_int_equal(check_world("evaluate=7steps", KITH_WORLD_TRAIN), KITH_OK);
    assert_int_equal(check_world("evaluate=7steps", KITH_WORLD_LAB),
                     KITH_EINVAL);
    assert_non_null(strstr(world_error, "found 7 steps"));
    assert_int_equal(
        check_world("stop={epochs: 5, patience: 2}", KITH_WORLD_TRAIN),
        KITH_OK);
    assert_int_equal(
        check_world("stop={epochs: 5, patience: 2}", KITH_WORLD_SIM),
        KITH_EINVAL);
    assert_non_null(strstr(world_error, "kith sim does not stop early"));
    assert_int_equal(
        check_world("stop={epochs: 5, patience: 2}", KITH_WORLD_LAB),
        KITH_EINVAL);
    assert_non_null(strstr(world_error, "--set evaluate=5s"));
    must_parse("evaluate=end", &experiment);
    experiment.stop.patience = 2;
    assert_int_equal(
        kith_experiment_check_world(&experiment, KITH_WORLD_TRAIN, world_error),
        KITH_EINVAL);
    assert_non_null(strstr(world_error, "stop.patience"));
    assert_non_null(strstr(world_error, "one alone"));
    experiment.evaluations = KITH_EVALUATE_CURVE;
    assert_int_equal(
        kith_experiment_check_world(&experiment, KITH_WORLD_TRAIN, world_error),
        KITH_OK);
    kith_experiment_close(&experiment);
}

static void test_late_fault(void **state)
{
    (void)state;
    struct kith_experiment experiment;
    char error[KITH_EXPERIMENT_ERROR_BYTES];

    /* 10 steps of 5 ms, the slow peer's of 50 ms: half a second. */
    assert_int_equal(parse(base, "stop={steps: 10}", &experiment, error),
                     KITH_EINVAL);
    assert_non_null(strstr(error, "base.yaml:12: faults: found a crash"));
    must_parse("stop={steps: 41}", &experiment);
    kith_experiment_close(&experiment);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_models),      cmocka_unit_test(test_gpt_keys),
        cmocka_unit_test(test_source),      cmocka_unit_test(test_hash),
        cmocka_unit_test(test_steps),       cmocka_unit_test(test_node_config),
        cmocka_unit_test(test_worlds),      cmocka_unit_test(test_conserved),
        cmocka_unit_test(test_evaluations), cmocka_unit_test(test_late_fault),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
