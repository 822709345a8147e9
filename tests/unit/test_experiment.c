/* Goal: a good file becomes the struct it describes, and every bad one is one
 * line that names the place, what was found and what is allowed.
 * Method: one base file, and tables of --set overrides and broken texts. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "kith/backend.h"
#include "kith/check.h"
#include "experiment_base.h"

static void test_values(void **state)
{
    (void)state;
    struct kith_experiment experiment;

    must_parse(NULL, &experiment);

    assert_string_equal(experiment.name, "base");
    assert_int_equal(experiment.seed, 9);
    assert_int_equal(experiment.peers, 8);
    assert_string_equal(experiment.model->name, "mlp");
    assert_int_equal(experiment.model_config.layer_count, 3);
    assert_int_equal(experiment.model_config.layers[1], 256);
    assert_true(experiment.data.present);
    assert_string_equal(experiment.data.config.path, "/data");
    assert_int_equal(experiment.data.split.kind, KITH_SPLIT_DIRICHLET);
    assert_int_equal(experiment.train.schedule.kind, KITH_SCHEDULE_LINEAR);
    assert_int_equal(experiment.network.link.latency_ns, 200 * KITH_US);
    assert_int_equal(experiment.network.link.rate_bits, 10000000000);
    assert_int_equal(experiment.compute.step_ns, 5 * KITH_MS);
    assert_int_equal(experiment.check_count, 2);
    assert_int_equal(experiment.atom_count, 5);
    assert_int_equal(experiment.source_bytes, sizeof base - 1);
    assert_string_equal(experiment.source, base);
    kith_experiment_close(&experiment);
}

static void test_defaults(void **state)
{
    (void)state;
    struct kith_experiment experiment;

    must_parse(NULL, &experiment);

    assert_string_equal(experiment.backend->name, "cpu");
    assert_string_equal(experiment.train.optimiser->name, "sgd");
    assert_int_equal(experiment.train.batch, 16);
    assert_string_equal(experiment.gossip.algorithm->name, "adpsgd");
    assert_string_equal(experiment.gossip.topology->name, "random");
    assert_string_equal(experiment.gossip.compressor, "none");
    assert_string_equal(experiment.gossip.guard, "clip");
    assert_int_equal(experiment.gossip.deadline_ns, 0);
    assert_string_equal(experiment.network.suite, "auto");
    assert_int_equal(experiment.network.wire, KITH_WIRE_SIZED);
    assert_int_equal(experiment.save_period_ns, 5 * KITH_S);
    assert_int_equal(experiment.evaluate_ns, 0);
    kith_experiment_close(&experiment);
}

/* clip, where models are averaged and learn from data and all have neighbours
 * enough, unless the file says something else; quasi-global momentum has none.
 */
static void test_default_guard(void **state)
{
    (void)state;
    static const char *const cases[][2] = {
        {"gossip={algorithm: dpsgd, topology: complete}", "clip"},
        {"gossip={algorithm: dpsgd, topology: hypercube}", "none"},
        {"gossip={algorithm: noloco, topology: random-matching}", "clip"},
        {"gossip={algorithm: adpsgd, topology: star}", "none"},
        {"gossip={algorithm: adpsgd, topology: star, guard: clip}", "clip"},
        {"gossip={algorithm: dpsgd, topology: ring, guard: none}", "none"},
        {"gossip={algorithm: dpsgd, topology: ring, guard: median}", "median"},
        {"gossip={algorithm: qg-dsgdm, topology: ring}", "none"},
        {"gossip={algorithm: qg-dsgdm-n, topology: ring}", "none"},
        {"gossip={algorithm: qg-dsgdm, topology: ring, guard: clip}", "clip"},
        {"gossip={algorithm: dpsgd-atc, topology: exponential}", "none"},
        {"gossip={algorithm: sgp}", "none"},
        {"gossip={algorithm: choco, topology: complete}", "none"},
        {"gossip={algorithm: gossip-push, topology: ring}", "none"}};
    static const char quadratic[] =
        "name: q\nseed: 1\npeers: 8\nstop: {steps: 9}\n"
        "model: {kind: quadratic, dim: 8}\ncompute: {step: 5ms}\n";
    char error[KITH_EXPERIMENT_ERROR_BYTES];
    struct kith_experiment experiment;
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        must_parse(cases[i][0], &experiment);
        if (strcmp(experiment.gossip.guard, cases[i][1]) != 0)
            fail_msg("%s: %s", cases[i][0], experiment.gossip.guard);
        kith_experiment_close(&experiment);
    }
    assert_int_equal(kith_experiment_parse("q.yaml", quadratic,
                                           sizeof quadratic - 1, NULL, 0,
                                           &experiment, error),
                     KITH_OK);
    assert_string_equal(experiment.gossip.guard, "none");
    kith_experiment_close(&experiment);
}

/* Each override is refused, and the line holds these words. */
static void test_refused(void **state)
{
    (void)state;
    static const struct {
        const char *set, *words[3];
    } bad[] = {
        {"peers=0", {"peers", "found \"0\"", "from 1 to 1048576"}},
        {"peers=-1", {"found \"-1\"", "whole number"}},
        {"peers=nan", {"found \"nan\""}},
        {"peers=8.5", {"found \"8.5\""}},
        {"peers=99999999999999999999", {"peers"}},
        {"seed=x", {"seed", "whole number"}},
        {"name=a/b", {"name", "letters"}},
        {"name=", {"found nothing"}},
        {"gossip.evry=2", {"evry", "every", "did you mean \"every\""}},
        {"gosip.every=2", {"gosip", "did you mean \"gossip\""}},
        {"gossip=2", {"mapping", "algorithm"}},
        {"gossip.algorithm=adpsg", {"did you mean \"adpsgd\""}},
        {"gossip.algorithm=[a, b]", {"found a list"}},
        {"gossip.algorithm=dpsgd", {"schedule of rounds", "ring"}},
        {"gossip.topology=one-peer-exponential", {"undirected", "random"}},
        {"gossip={algorithm: sgp, topology: ring, deadline: 1s}",
         {"no rounds"}},
        {"gossip.every=0", {"from 1"}},
        {"gossip.deadline=soon", {"measured", "never"}},
        {"network.rate=-5Mbit", {"found \"-5Mbit\"", "unit"}},
        {"network.rate=5", {"unit"}},
        {"network.latency=5", {"found \"5\"", "unit"}},
        {"network.latency=-1ms", {"unit"}},
        {"network.loss=1", {"to below 1"}},
        {"network.loss=.nan", {"found \".nan\""}},
        {"network.loss=inf", {"number"}},
        {"network.drop_push=0.1", {"pushes nothing"}},
        {"network.suite=AEGIS128X2", {"AEGIS128X2", "AEGIS256X2"}},
        {"train.momentum=1", {"from 0 to 0.999999"}},
        {"train={optimiser: adamw, beta2: 0.9999999}", {"to 0.999999"}},
        {"train={optimiser: adamw, epsilon: 1e-30}",
         {"from 1e-20 to 1", "smaller gradients are 0 in float32"}},
        {"train.learning_rate=-0.1", {"from 0"}},
        {"train.batch=0", {"from 1 to 65536"}},
        {"train.schedule=linea", {"did you mean \"linear\""}},
        {"train.backend=gpu", {"naive64"}},
        {"train.optimiser=adamw",
         {"train.momentum", "optimiser adamw does not read it"}},
        {"train.beta1=0.5", {"optimiser sgd does not read it"}},
        {"train.trust=1", {"optimiser sgd does not read it"}},
        {"train.milestones=[0.5]", {"schedule linear does not read it"}},
        {"train.decay=0.5", {"schedule linear does not read it"}},
        {"train={schedule: step}", {"without train.milestones"}},
        {"train={schedule: step, milestones: [0.5, 0.4]}", {"ascending"}},
        {"train={schedule: step, milestones: 0.5}", {"a list of 1 to 4"}},
        {"train={nesterov: true}", {"without train.momentum"}},
        {"train.nesterov=yes", {"true or false"}},
        {"train.accumulate=3", {"does not divide train.batch, 16"}},
        {"train.smoothing=1", {"to below 1"}},
        {"model.layers=[784]", {"2 to 16"}},
        {"model.layers=[784, 0, 10]", {"found \"0\""}},
        {"model.layers=784", {"found \"784\"", "a list"}},
        {"model.layers=[784, 1]", {"found 1 classes", "2 to 65536"}},
        {"model.layers=[4000000000, 4000000000, 10]", {"parameters"}},
        {"model.dim=5", {"does not have it"}},
        {"model.image=[28, 28, 1]", {"model mlp does not have it"}},
        {"model.norm=group", {"model.norm", "does not have it"}},
        {"model.depth=20", {"does not have it"}},
        {"model.dropout=1", {"model.dropout", "to below 1"}},
        {"model.frozen=conv1", {"model.frozen", "no view"}},
        {"model.frozen=fc", {"nothing would train"}},
        {"model.frozen=a b", {"letters"}},
        {"model.kind=cnm", {"did you mean \"cnn\""}},
        {"model={kind: cnn, classes: 10, channels: [8]}",
         {"model.image", "height, width and channels"}},
        {"model={kind: cnn, classes: 10, image: [28, 28], channels: [8]}",
         {"model.image", "a list of 3"}},
        {"model={kind: cnn, classes: 10, image: [28, 28, 1]}",
         {"model.channels", "1 to 16"}},
        {"model={kind: cnn, classes: 10, image: [4, 4, 1], "
         "channels: [8, 8, 8]}",
         {"model.channels", "halves"}},
        {"model={kind: cnn, image: [28, 28, 1], channels: [8]}",
         {"model.classes", "2 to 65536"}},
        {"model={kind: vgg, depth: 12, image: [32, 32, 3], classes: 10}",
         {"model.depth", "8, 11, 13, 16, 19"}},
        {"model={kind: resnet, depth: 18, image: [32, 32, 3], classes: 10}",
         {"model.depth", "20, 32, 44, 56, 110"}},
        {"model={kind: resnet, depth: 20, image: [224, 224, 3], classes: 10}",
         {"model.depth", "18, 34, 50"}},
        {"model={kind: resnet, depth: 20, image: [32, 32, 3], classes: 10, "
         "norm: layer}",
         {"model.norm", "batch, group"}},
        {"model={kind: gpt, depth: 2, heads: 3, width: 8, context: 4, "
         "vocabulary: 9}",
         {"model.heads", "divides model.width"}},
        {"model={kind: gpt, depth: 2, heads: 2, width: 8, vocabulary: 9}",
         {"model.context"}},
        {"model={kind: quadratic}", {"model"}},
        {"data.split=dirichlet(0)", {"dirichlet(A)"}},
        {"data.kind=csv", {"idx, cifar, npy"}},
        {"data.kind=text",
         {"holds tokens", "model mlp learns from images", "npy, synthetic"}},
        {"data.rows=5", {"kind idx has as many rows as its files"}},
        {"data.spread=0.2", {"kind idx has no classes with means"}},
        {"data.test_share=0.2", {"kind idx has a test set of its own"}},
        {"data.normalise=maybe", {"true or false"}},
        {"data={kind: synthetic, path: x}", {"reads no files"}},
        {"data={kind: synthetic, cache: x}", {"reads no files"}},
        {"data={kind: cifar}", {"data.path", "not given"}},
        {"train.augment=4", {"found \"4\"", "{crop: 4, flip: true}"}},
        {"train.augment={crop: 65}", {"found crop: \"65\"", "1 to 64"}},
        {"train.augment={flip: yes}", {"found flip: \"yes\""}},
        {"train.augment={turn: true}", {"found turn: \"true\""}},
        {"stop={epochs: 5, steps: 5}", {"both epochs and steps"}},
        {"stop={}", {"stop", "not given"}},
        {"stop.epochs=0", {"above 0"}},
        {"stop.patience=-1", {"whole number from 0"}},
        {"best=acuracy", {"did you mean \"accuracy\""}},
        {"evaluate=5", {"found \"5\"", "at least 1ms", "500 steps"}},
        {"evaluate=0 steps", {"found \"0 steps\""}},
        {"evaluate=99999999999999999999 steps", {"found \"9999"}},
        {"evaluate=5 stepz", {"500 steps"}},
        {"assert=[maybe accuracy > 1]", {"always or finally"}},
        {"faults=[{at: 2s, crsh: \"n(1)\"}]", {"did you mean \"crash\""}},
        {"foo", {"KEY=VALUE"}},
        {"=5", {"KEY=VALUE"}},
        {"a..b=5", {"empty"}},
        {"peers.x=5", {"cannot hold"}},
        {"gossip={every: 1, every: 2}", {"given twice"}},
        {"gossip=[", {"not YAML"}},
        {"gossip={every: &a 1}", {"anchor"}},
    };

    for (size_t i = 0; i < COUNT(bad); i++) {
        struct kith_experiment experiment;
        char error[KITH_EXPERIMENT_ERROR_BYTES] = "";
        assert_true(parse(base, bad[i].set, &experiment, error) != KITH_OK);
        assert_null(strchr(error, '\n'));
        for (size_t k = 0; k < 3 && bad[i].words[k] != NULL; k++)
            if (strstr(error, bad[i].words[k]) == NULL)
                fail_msg("--set %s: no \"%s\" in: %s", bad[i].set,
                         bad[i].words[k], error);
    }
}

/* Whole texts that are refused, with the line at fault. */
static void test_texts(void **state)
{
    (void)state;
    static const struct {
        const char *text, *word;
    } bad[] = {
        {"", "no keys"},
        {"- a\n- b\n", "no keys"},
        {"plain", "no keys"},
        {"name: x\nname: y\n", "base.yaml:2: name: given twice"},
        {"name: &a x\n", "base.yaml:1: name: found an anchor"},
        {"name: *a\n", "anchor"},
        {"name: !!str x\n", "tag"},
        {"a: [[[[[[[[x]]]]]]]]\n", "deeper"},
        {"? [a]\n: b\n", "as a key"},
        {"name: x\n---\nname: y\n", "second document"},
        {"name: \"a\\0b\"\n", "control characters"},
        {"name: \"a\\nb\"\n", "control characters"},
        {"name: x\n\tpeers: 1\n", "base.yaml:2: not YAML"},
        {"name: x\nbogus: 1\n", "base.yaml:2: found the unknown key"},
        {"name: x\npeers: 3\n", "model.kind: not given"},
        {"name: x\npeers: 3\nmodel: {kind: none}\n", "stop"},
        {"name: x\npeers: 3\nmodel: {kind: none}\nstop: {epochs: 1}\n",
         "no data to count"},
        {"name: x\npeers: 3\nmodel: {kind: consensus}\nstop: {steps: 1}\n",
         "model.dim"},
        {"name: x\npeers: 3\nmodel: {kind: mlp}\nstop: {steps: 1}\n",
         "model.layers"},
        {"name: x\npeers: 3\nmodel: {kind: logistic, layers: [4, 2]}\n"
         "stop: {steps: 1}\n",
         "data.path"},
        {"name: x\npeers: 65\nmodel: {kind: none}\nstop: {steps: 9}\n"
         "gossip: {algorithm: dpsgd, topology: complete}\n"
         "train: {backend: naive64}\n"
         "assert: [\"finally accuracy > 0\"]\n",
         "model none does not have"},
        {"name: x\npeers: 66\nmodel: {kind: none}\nstop: {steps: 9}\n"
         "gossip: {algorithm: dpsgd, topology: complete}\n",
         "more than 64 neighbours"},
    };

    for (size_t i = 0; i < COUNT(bad); i++) {
        struct kith_experiment experiment;
        char error[KITH_EXPERIMENT_ERROR_BYTES] = "";
        assert_true(parse(bad[i].text, NULL, &experiment, error) != KITH_OK);
        if (strstr(error, bad[i].word) == NULL)
            fail_msg("%s: no \"%s\" in: %s", bad[i].text, bad[i].word, error);
    }
}

/* What a model does not have is never measured: said at once. */
static void test_quantities(void **state)
{
    (void)state;
    static const struct {
        const char *model, *fits; /* the others do not */
    } cases[] = {
        {"kind: none", "live done failed torn waiting_share"},
        {"kind: none, dim: 8", "live done failed torn waiting_share"},
        {"kind: consensus, dim: 8",
         "finite(model) live conserved consensus_distance correlation done "
         "failed torn waiting_share"},
        {"kind: quadratic, dim: 8",
         "finite(model) live conserved loss consensus_distance correlation "
         "done failed torn waiting_share"},
    };
    for (size_t i = 0; i < COUNT(cases); i++)
        for (size_t k = 0; kith_quantities[k].name != NULL; k++) {
            const struct kith_quantity *quantity = &kith_quantities[k];
            char yaml[512], name[64], fits[256], words[128];
            char error[KITH_EXPERIMENT_ERROR_BYTES] = "";
            struct kith_experiment experiment;
            snprintf(yaml, sizeof yaml,
                     "name: x\npeers: 3\nmodel: {%s}\nstop: {steps: 9}\n"
                     "assert: [\"finally live\",\n \"finally %s%s\"]\n",
                     cases[i].model, quantity->name,
                     quantity->predicate ? "" : " < 9");
            snprintf(name, sizeof name, " %s ", quantity->name);
            snprintf(fits, sizeof fits, " %s ", cases[i].fits);
            const enum kith_err err = parse(yaml, NULL, &experiment, error);
            if (strstr(fits, name) != NULL) {
                if (err != KITH_OK)
                    fail_msg("%s", error);
                kith_experiment_close(&experiment);
                continue;
            }
            snprintf(words, sizeof words,
                     "base.yaml:6: assert: found \"%s\", which model",
                     quantity->name);
            if (err != KITH_EINVAL || strstr(error, words) == NULL)
                fail_msg("%s: no \"%s\" in: %s", yaml, words, error);
            if (i == 0)
                assert_non_null(strstr(error, "does not have; allowed with it: "
                                              "live, done, failed, torn, "
                                              "waiting_share"));
        }
}

static void test_limits(void **state)
{
    (void)state;
    struct kith_experiment experiment;
    char error[KITH_EXPERIMENT_ERROR_BYTES];
    char *text = calloc(1, KITH_YAML_BYTES_MAX + 2);
    assert_non_null(text);

    memset(text, '#', KITH_YAML_BYTES_MAX + 1);
    assert_int_equal(kith_experiment_parse("x", text, KITH_YAML_BYTES_MAX + 1,
                                           NULL, 0, &experiment, error),
                     KITH_EPARSE);
    assert_non_null(strstr(error, "at most"));

    /* Half a million items in one list: stopped at the bound. */
    memcpy(text, "a: [", 4);
    for (size_t i = 4; i < KITH_YAML_BYTES_MAX; i += 2)
        memcpy(text + i, "1,", 2);
    assert_int_equal(kith_experiment_parse("x", text, KITH_YAML_BYTES_MAX, NULL,
                                           0, &experiment, error),
                     KITH_ELIMIT);
    free(text);
}

static void test_combinations(void **state)
{
    (void)state;
    static const char *const good[] = {
        "gossip={algorithm: dpsgd, topology: ring, deadline: never}",
        "gossip={algorithm: dpsgd, topology: complete, deadline: 1s}",
        "gossip={algorithm: sgp, topology: one-peer-exponential}",
        "gossip={algorithm: sgp, topology: exponential}",
        "gossip={algorithm: sgp, topology: random}",
        "gossip={algorithm: adpsgd, topology: ring}",
        "gossip={algorithm: local, topology: exponential}",
        "stop={steps: 700, time: 60s}",
        "peers=1",
        "peers=7",
        "gossip+={every: 4}",
        "train.backend=naive64",
        "faults=[]",
    };
    for (size_t i = 0; i < COUNT(good); i++) {
        struct kith_experiment experiment;
        char error[KITH_EXPERIMENT_ERROR_BYTES] = "";
        /* peers=1 has no peer(3) to slow. */
        const char *sets[] = {"compute={step: 5ms}", good[i]};
        if (kith_experiment_parse("base.yaml", base, strlen(base), sets, 2,
                                  &experiment, error) != KITH_OK)
            fail_msg("%s", error);
        kith_experiment_close(&experiment);
    }
}

static void test_data(void **state)
{
    (void)state;
    struct kith_experiment experiment;
    struct kith_examples set = {.input = KITH_INPUT_IMAGES,
                                .count = 60000,
                                .features = 784,
                                .classes = 10};
    char error[KITH_EXPERIMENT_ERROR_BYTES];
    must_parse(NULL, &experiment);

    assert_int_equal(kith_experiment_check_data(&experiment, &set, error),
                     KITH_OK);
    set.features = 64;
    assert_int_equal(kith_experiment_check_data(&experiment, &set, error),
                     KITH_EINVAL);
    assert_non_null(strstr(error, "784 inputs"));
    set.count = 7;
    set.features = 784;
    assert_int_equal(kith_experiment_check_data(&experiment, &set, error),
                     KITH_EINVAL);
    assert_non_null(strstr(error, "one for each"));
    experiment.data.config.path[0] = '\0';
    assert_int_equal(kith_experiment_check_data(&experiment, &set, error),
                     KITH_EINVAL);
    assert_non_null(strstr(error, "but the data in idx has only 7 rows"));
    /* Too few rows for a step: 5 * 20 < 8 * 16. */
    set.count = 20;
    assert_int_equal(kith_experiment_check_data(&experiment, &set, error),
                     KITH_EINVAL);
    assert_non_null(strstr(error, "less than one step"));
    /* 5 * 200 / 128 steps of 5 ms, ten times slower: over before 2 s. */
    set.count = 200;
    assert_int_equal(kith_experiment_check_data(&experiment, &set, error),
                     KITH_EINVAL);
    assert_non_null(strstr(error, "predicted end"));
    kith_experiment_close(&experiment);
}

/* Times are nanoseconds in 63 bits; sums of them are to stay below. */
static void test_longer_than_time(void **state)
{
    static const struct {
        const char *stop;
        enum kith_err err;
    } rows[] = {
        /* 3600 s, 1,000 times as slow: 1,281 steps are half of the range. */
        {"stop={steps: 1281}", KITH_OK},
        {"stop={steps: 1282}", KITH_EINVAL},
        {"stop={steps: 1282, time: 1h}", KITH_OK},
        {"stop={epochs: 1000000}", KITH_EINVAL},
    };
    struct kith_examples set = {.input = KITH_INPUT_IMAGES,
                                .count = 60000,
                                .features = 784,
                                .classes = 10};
    (void)state;
    for (size_t i = 0; i < COUNT(rows); i++) {
        const char *sets[] = {
            "compute={step: 3600s, slow: [{peers: peer(0), by: 1000}]}",
            "faults=[]", rows[i].stop};
        struct kith_experiment experiment;
        char error[KITH_EXPERIMENT_ERROR_BYTES] = "";
        if (kith_experiment_parse("base.yaml", base, strlen(base), sets,
                                  COUNT(sets), &experiment, error) != KITH_OK)
            fail_msg("%s", error);
        assert_int_equal(kith_experiment_check_data(&experiment, &set, error),
                         rows[i].err);
        if (rows[i].err != KITH_OK)
            assert_non_null(strstr(error, "or a stop.time"));
        kith_experiment_close(&experiment);
    }
}

static void test_missing_file(void **state)
{
    (void)state;
    struct kith_experiment experiment;
    char error[KITH_EXPERIMENT_ERROR_BYTES];
    assert_int_equal(
        kith_experiment_load("/nonexistent.yaml", NULL, 0, &experiment, error),
        KITH_ENOENT);
    assert_non_null(strstr(error, "/nonexistent.yaml"));
    assert_int_equal(kith_experiment_load("/", NULL, 0, &experiment, error),
                     KITH_EINVAL);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_values),
        cmocka_unit_test(test_defaults),
        cmocka_unit_test(test_refused),
        cmocka_unit_test(test_texts),
        cmocka_unit_test(test_quantities),
        cmocka_unit_test(test_limits),
        cmocka_unit_test(test_combinations),
        cmocka_unit_test(test_data),
        cmocka_unit_test(test_longer_than_time),
        cmocka_unit_test(test_missing_file),
        cmocka_unit_test(test_default_guard),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
