/* Goal: a run whose members divide LARS' norms (`gossip.norms`) has the models
 * of one in which each finds all of them, to the bit; each does its part of the
 * work; where one dies the others finish, and find what it would have sent; a
 * file that cannot have it is refused by name (T4.6). Method: the simulator, a
 * network of 56 layers and one of a few, with and without; experiments that are
 * wrong in one place each. Prints expected and measured. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "kith/experiment.h"
#include "kith/lars_parts.h"
#include "kith/worker.h"
#include "tests/support/probe.h"

enum { MEMBERS = 4, STEPS = 8 };
static const char few[] = "kind: mlp, layers: [64, 20, 20, 20, 20, 10]";
static uint32_t layers;

/* Layers whose norms each member found. */
static void count(const struct sim_world *world, kith_id peer, void *arg)
{
    uint64_t *const found = arg;
    struct kith_worker *worker =
        peer == KITH_NOBODY ? NULL : sim_worker(world, peer);
    if (worker == NULL)
        return;
    found[peer] = kith_worker_norms_found(worker);
    layers = kith_lars_layers(kith_worker_content(worker).layout);
}

static void run(struct probe *probe, uint64_t *found, const char *model,
                const char *train, const char *gossip, const char *more)
{
    const char *const top = getenv("srcdir");
    *probe = (struct probe){.meddle = count, .arg = found};
    probe_must(probe,
               "name: norms\nseed: 7\npeers: %d\nstop: {steps: %d}\n"
               "model: {%s}\n"
               "data: {kind: idx, path: %s/examples/data/digits}\n"
               "train: {optimiser: lars, trust: 0.02, learning_rate: 0.5, "
               "batch: 2, weight_decay: 1e-4%s}\n"
               "gossip: {algorithm: two-level, regions: 1, deadline: 20ms%s}\n"
               "compute: {step: 1ms}\n%s",
               MEMBERS, STEPS, model, top == NULL ? ".." : top, train, gossip,
               more);
}

static unsigned differing(const struct probe *a, const struct probe *b)
{
    unsigned values = 0;
    assert_int_equal(a->dim, b->dim);
    for (size_t i = 0; i < a->peers * a->dim; i++)
        values += memcmp(&a->z[i], &b->z[i], sizeof *a->z) != 0;
    return values;
}

static void compare(const char *model, const char *train)
{
    struct probe parts, alone;
    uint64_t found[MEMBERS] = {0}, none[MEMBERS] = {0}, all = 0;
    run(&parts, found, model, train, ", norms: true", "");
    run(&alone, none, model, train, "", "");
    const unsigned values = differing(&parts, &alone);
    printf("  T4.6 simulator, 4 members, %u layers, %d steps%s, values of "
           "models that are not those of LARS: expected 0, measured %u\n",
           layers, STEPS, train, values);
    for (unsigned p = 0; p < MEMBERS; p++) {
        printf("  T4.6 simulator%s, member %u of 4, layers a step: expected a "
               "part of %u, measured %g\n",
               train, p, layers, (double)found[p] / STEPS);
        all += found[p];
        assert_true(found[p] < layers * STEPS);
        assert_int_equal(none[p], 0);
    }
    assert_int_equal(all, layers * STEPS);
    assert_int_equal(values, 0);
    probe_close(&parts);
    probe_close(&alone);
}

static void test_the_same_models(void **state)
{
    static const char deep[] = "kind: resnet, depth: 56, norm: group, "
                               "image: [8, 8, 1], classes: 10";
    (void)state;
    compare(deep, "");
    assert_true(layers >= 50);
    compare(few, ", clip: 0.5");
    compare(few, ", backend: naive32");
}

static void test_survivors_find_the_rest(void **state)
{
    struct probe gone;
    uint64_t found[MEMBERS] = {0};
    (void)state;
    run(&gone, found, few, "", ", norms: true",
        "faults: [{at: 4ms, crash: \"peer(1)\"}]\n");
    uint64_t all = 0;
    for (unsigned p = 0; p < MEMBERS; p++)
        all += p == 1 ? 0 : found[p];
    printf("  one of 4 dies: steps %llu, expected at least %d; layers that the "
           "rest found %llu\n",
           (unsigned long long)gone.summary.steps, (MEMBERS - 1) * STEPS,
           (unsigned long long)all);
    assert_true(gone.summary.steps >= (MEMBERS - 1) * STEPS);
    assert_true(all > layers * STEPS);
    probe_close(&gone);
}

static void test_refused_by_name(void **state)
{
    static const struct {
        const char *gossip, *train, *says;
        const char *layers; /* NULL: of a usual model */
    } cases[] = {
        {"algorithm: two-level, regions: 2", "optimiser: lars",
         "a single site: models of two sites may differ", NULL},
        {"algorithm: two-level, regions: 1", "optimiser: sgd",
         "train.optimiser lars", NULL},
        {"algorithm: two-level, regions: 1",
         "optimiser: lars, backend: naive64", "a backend of float32", NULL},
        {"algorithm: sync-sgd", "optimiser: lars", "gossip.norms", NULL},
        {"algorithm: adpsgd", "optimiser: lars", "gossip.norms", NULL},
        {"algorithm: two-level, regions: 1", "optimiser: lars",
         "fewer peers with it", "2, 1, 1, 1, 1, 1, 1, 2"},
        {"algorithm: two-level, regions: 1", "optimiser: lars", NULL, NULL},
    };
    (void)state;
    for (unsigned n = 0; n < sizeof cases / sizeof *cases; n++) {
        char text[512], error[KITH_EXPERIMENT_ERROR_BYTES] = "accepted";
        struct kith_experiment experiment;
        (void)snprintf(text, sizeof text,
                       "name: e\npeers: 4\nstop: {steps: 9}\n"
                       "model: {kind: mlp, layers: [%s]}\n"
                       "data: {path: /data}\ntrain: {%s}\n"
                       "gossip: {%s, norms: true}\n",
                       cases[n].layers != NULL ? cases[n].layers : "64, 8, 10",
                       cases[n].train, cases[n].gossip);
        const bool loads =
            kith_experiment_parse("e", text, strlen(text), NULL, 0, &experiment,
                                  error) == KITH_OK;
        printf("  T4.6 {%s, %s}: %s\n", cases[n].gossip, cases[n].train, error);
        assert_true(loads == (cases[n].says == NULL));
        assert_true(loads || strstr(error, cases[n].says) != NULL);
        if (loads)
            kith_experiment_close(&experiment);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_the_same_models),
        cmocka_unit_test(test_survivors_find_the_rest),
        cmocka_unit_test(test_refused_by_name),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
