/* Goal: LARS' rates that four workers of a site find in parts are those that
 * each finds alone, to the bit, and so are the models; each does a fourth of
 * the work, up to a layer; nothing is taken from another site (T4.6).
 * Method: 50 layers of many sizes and the vectors behind them, workers that are
 * vectors of this process, twenty steps beside LARS itself, on two backends.
 * Then a worker that is gone, and messages that are refused. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "kith/lars_parts.h"

enum { LAYERS = 50, WORKERS = 4, STEPS = 20, BIASES = 37, SITE = 3 };

static struct kith_model_view views[LAYERS + 1];
static struct kith_layout layout;
static size_t largest;

/* Sizes of a convolutional network: small first, large last, uneven. */
static int make_layout(void **state)
{
    size_t at = 0;
    (void)state;
    for (uint32_t i = 0; i < LAYERS; i++) {
        const size_t n = 27 + 61 * i + (i % 7) * (i % 5) * 113;
        views[i] = (struct kith_model_view){.kind = KITH_VIEW_WEIGHT,
                                            .offset = at,
                                            .elements = n,
                                            .shape = {(uint32_t)n, 1},
                                            .rank = 2};
        largest = n > largest ? n : largest;
        at += n;
    }
    views[LAYERS] = (struct kith_model_view){.kind = KITH_VIEW_VECTOR,
                                             .offset = at,
                                             .elements = BIASES,
                                             .shape = {BIASES},
                                             .rank = 1};
    layout = (struct kith_layout){.dim = at + BIASES,
                                  .decayed = at,
                                  .trained = at + BIASES,
                                  .gossiped = at + BIASES,
                                  .views = views,
                                  .view_count = LAYERS + 1};
    return 0;
}

static const struct kith_optimiser_config config = {
    .momentum = 0.9, .weight_decay = 1e-4, .trust = 0.02};

/* A worker's vectors. */
struct replica {
    float *x, *g, *v;
    float rates[LAYERS];
    void *state[1];
    struct kith_optimiser_step step;
    struct kith_lars_gather gather;
};

static void open_replica(struct replica *replica, const char *backend,
                         uint32_t worker)
{
    replica->x = malloc(layout.dim * sizeof(float));
    replica->g = malloc(layout.dim * sizeof(float));
    replica->v = calloc(layout.dim, sizeof(float));
    assert_true(replica->x && replica->g && replica->v);
    for (size_t i = 0; i < layout.dim; i++)
        replica->x[i] = (float)sin(0.37 * (double)i);
    replica->state[0] = replica->v;
    replica->step =
        (struct kith_optimiser_step){.config = &config,
                                     .backend = kith_backend_find(backend),
                                     .layout = &layout,
                                     .rate = 0.1,
                                     .gradient = replica->g,
                                     .state = replica->state,
                                     .x = replica->x};
    replica->gather = (struct kith_lars_gather){.step = &replica->step,
                                                .site = SITE,
                                                .workers = WORKERS,
                                                .worker = worker,
                                                .rates = replica->rates};
}

static void close_replica(struct replica *replica)
{
    free(replica->x);
    free(replica->g);
    free(replica->v);
}

/* The mean gradient, which all have; layer 7 has none at first. */
static void begin(struct replica *replica, uint64_t step)
{
    for (size_t i = 0; i < layout.dim; i++)
        replica->g[i] = (float)(0.1 * cos((double)i * (1.1 + (double)step)));
    if (step == 0)
        memset(replica->g + views[7].offset, 0,
               views[7].elements * sizeof(float));
    replica->step.step = step;
    replica->step.rates = NULL;
    replica->gather.have = 0;
    memset(replica->rates, 0, sizeof replica->rates);
}

static void take(struct replica *to, struct replica *from)
{
    char error[KITH_LARS_ERROR_BYTES] = "";
    const struct kith_lars_message message =
        kith_lars_gather_own(&from->gather);
    assert_int_equal(kith_lars_gather_take(&to->gather, &message, error),
                     KITH_OK);
}

static unsigned differing(const float *a, const float *b, size_t n)
{
    unsigned count = 0;
    for (size_t i = 0; i < n; i++)
        count += memcmp(&a[i], &b[i], sizeof *a) != 0;
    return count;
}

/* Workers [0, present) take part; what of the others is missing each finds. */
static void run(const char *backend, uint32_t present)
{
    const struct kith_optimiser *const lars = kith_optimiser_find("lars");
    struct replica of[WORKERS], alone;
    unsigned rates = 0, values = 0, found = 0;
    open_replica(&alone, backend, 0);
    alone.gather.workers = 1;
    for (uint32_t p = 0; p < present; p++)
        open_replica(&of[p], backend, p);
    for (uint64_t step = 0; step < STEPS; step++) {
        begin(&alone, step);
        (void)kith_lars_gather_compute(&alone.gather, 0);
        for (uint32_t p = 0; p < present; p++) {
            begin(&of[p], step);
            (void)kith_lars_gather_compute(&of[p].gather, p);
        }
        for (uint32_t p = 0; p < present; p++) {
            for (uint32_t q = 0; q < present; q++)
                if (q != p)
                    take(&of[p], &of[q]);
            found += kith_lars_gather_finish(&of[p].gather);
            rates += differing(of[p].rates, alone.rates, LAYERS);
            of[p].step.rates = of[p].rates;
        }
        assert_true(lars->step(&alone.step)); /* LARS itself */
        for (uint32_t p = 0; p < present; p++) {
            assert_true(lars->step(&of[p].step));
            values += differing(of[p].x, alone.x, layout.dim);
        }
    }
    printf("  T4.6 %s, %u of 4 workers, 50 layers, %d steps, rates that are "
           "not the replicated ones: expected 0, measured %u\n",
           backend, present, STEPS, rates);
    printf("  T4.6 %s, %u of 4 workers, %d steps, values of models that are "
           "not those of LARS: expected 0, measured %u\n",
           backend, present, STEPS, values);
    assert_int_equal(rates, 0);
    assert_int_equal(values, 0);
    assert_int_equal(found > 0, present < WORKERS);
    close_replica(&alone);
    for (uint32_t p = 0; p < present; p++)
        close_replica(&of[p]);
}

static void test_equal(void **state)
{
    (void)state;
    run("naive32", WORKERS);
    run("cpu", WORKERS);
    run("cpu", WORKERS - 1);
}

/* Parts join up and hold a P-th of all values each, up to a layer. */
static void test_work(void **state)
{
    (void)state;
    assert_int_equal(kith_lars_layers(&layout), LAYERS);
    for (uint32_t workers = 1; workers <= KITH_LARS_WORKERS_MAX; workers++) {
        const double fair = (double)layout.decayed / workers;
        uint32_t next = 0;
        for (uint32_t p = 0; p < workers; p++) {
            const struct kith_lars_part part =
                kith_lars_part(&layout, workers, p);
            const double off = fabs((double)part.elements - fair);
            assert_int_equal(part.first, next);
            assert_true(part.end >= part.first);
            assert_true(off <= (double)largest);
            next = part.end;
            if (workers == WORKERS)
                printf("  T4.6 worker %u of 4, norms of values: expected %.0f, "
                       "+- %zu of the largest layer, measured %zu of %u "
                       "layers\n",
                       p, fair, largest, part.elements, part.end - part.first);
        }
        assert_int_equal(next, LAYERS);
    }
}

static enum kith_err offer(struct replica *to, struct kith_lars_message message,
                           char *error)
{
    const uint64_t have = to->gather.have;
    float before[LAYERS];
    memcpy(before, to->rates, sizeof before);
    const enum kith_err err =
        kith_lars_gather_take(&to->gather, &message, error);
    if (err != KITH_OK) {
        assert_int_equal(to->gather.have, have);
        assert_memory_equal(before, to->rates, sizeof before);
    }
    return err;
}

static void test_refused(void **state)
{
    char error[KITH_LARS_ERROR_BYTES];
    float spoiled[LAYERS];
    struct replica here, there;
    (void)state;
    open_replica(&here, "cpu", 0);
    open_replica(&there, "cpu", 2);
    begin(&here, 5);
    begin(&there, 5);
    (void)kith_lars_gather_compute(&here.gather, 0);
    (void)kith_lars_gather_compute(&there.gather, 2);
    const struct kith_lars_message good = kith_lars_gather_own(&there.gather);

    struct kith_lars_message bad = good;
    bad.site = SITE + 1;
    assert_int_equal(offer(&here, bad, error), KITH_EMISMATCH);
    assert_non_null(strstr(error, "of site 4, here 3"));
    printf("  T4.6 rates of another site: expected refused, measured \"%s\"\n",
           error);
    bad = good, bad.step = 4;
    assert_int_equal(offer(&here, bad, error), KITH_EMISMATCH);
    bad = good, bad.worker = WORKERS;
    assert_int_equal(offer(&here, bad, error), KITH_EINVAL);
    bad = good, bad.count++;
    assert_int_equal(offer(&here, bad, error), KITH_EINVAL);
    memcpy(spoiled, good.rates, good.count * sizeof(float));
    bad = good, bad.rates = spoiled;
    const float wrong[] = {NAN, INFINITY, -1};
    for (unsigned i = 0; i < 3; i++) {
        spoiled[good.count - 1] = wrong[i];
        assert_int_equal(offer(&here, bad, error), KITH_ENONFINITE);
    }

    assert_int_equal(offer(&here, good, error), KITH_OK);
    assert_int_equal(offer(&here, good, error), KITH_EEXIST);
    close_replica(&here);
    close_replica(&there);
}

/* Which experiments could divide them at all. */
static void test_wanted(void **state)
{
    (void)state;
    const struct kith_algorithm *const two = kith_algorithm_find("two-level");
    assert_null(kith_lars_parts_want(two, 1));
    assert_null(kith_lars_parts_want(kith_algorithm_find("sync-sgd"), 1));
    assert_non_null(strstr(kith_lars_parts_want(two, 4), "single site"));
    assert_non_null(strstr(
        kith_lars_parts_want(kith_algorithm_find("adpsgd"), 1), "differ"));
    printf("  T4.6 two-level on 4 sites: expected refused, measured \"lars in "
           "parts needs %s\"\n",
           kith_lars_parts_want(two, 4));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_equal),
        cmocka_unit_test(test_work),
        cmocka_unit_test(test_refused),
        cmocka_unit_test(test_wanted),
    };
    return cmocka_run_group_tests(tests, make_layout, NULL);
}
