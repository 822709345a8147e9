/* Goal: the sum of gradients by strips, each at the peer that owns it, its
 * optimiser's step there, and all strips handed round, give every peer the x of
 * a sum of all and a whole step, to the bit (T5.3): elementwise optimisers know
 * no strip. Their state is a strip's long then.
 * Method: five peers, a length that five does not divide and a border of weight
 * decay within a strip, 50 steps of each optimiser on two backends. A mean that
 * is added in another order is the counterexample. Prints expected and
 * measured. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "kith/optimiser.h"
#include "kith/rng.h"

enum { PEERS = 5, DIM = 1003, DECAYED = 702, STEPS = 50 };

static const struct {
    const char *backend, *optimiser, *words;
    struct kith_optimiser_config config;
} cases[] = {
    {"naive32", "sgd", "sgd", {.weight_decay = 1e-3}},
    {"cpu", "sgd", "sgd", {.weight_decay = 1e-3}},
    {"cpu", "sgd", "momentum", {.momentum = 0.9, .weight_decay = 1e-3}},
    {"cpu", "sgd", "nesterov", {.momentum = 0.9, .nesterov = true}},
    {"naive32",
     "adamw",
     "adamw",
     {.beta1 = 0.9, .beta2 = 0.999, .epsilon = 1e-8, .weight_decay = 0.01}},
    {"cpu",
     "adamw",
     "adamw",
     {.beta1 = 0.9, .beta2 = 0.999, .epsilon = 1e-8, .weight_decay = 0.01}},
};

/* A peer's x and state: of all, or of its strip behind `at`. */
struct replica {
    float x[DIM], first[DIM], second[DIM];
};
static struct replica whole, strips[PEERS];
static float gradients[PEERS][DIM], mean[DIM];

static size_t strip_at(unsigned peer)
{
    return (size_t)peer * DIM / PEERS;
}

/* mean <- of values [from, to), in the order of ranks from `first` on. */
static void reduce(const struct kith_backend *backend, size_t from, size_t to,
                   unsigned first)
{
    backend->copy(to - from, mean + from, gradients[first] + from);
    for (unsigned i = 1; i < PEERS; i++)
        backend->add(to - from, 1.0, gradients[(first + i) % PEERS] + from,
                     mean + from);
    backend->scale(to - from, 1.0 / PEERS, mean + from);
}

static void descend(size_t n, struct replica *replica, size_t from, size_t to,
                    uint64_t step)
{
    const size_t count = to - from;
    const size_t decayed = from < DECAYED ? DECAYED - from : 0;
    const struct kith_layout layout = {.dim = count,
                                       .decayed =
                                           decayed < count ? decayed : count,
                                       .trained = count,
                                       .gossiped = count};
    void *const state[2] = {replica->first + from, replica->second + from};
    const struct kith_optimiser_step descent = {
        .config = &cases[n].config,
        .backend = kith_backend_find(cases[n].backend),
        .layout = &layout,
        .rate = 0.01,
        .step = step,
        .gradient = mean + from,
        .state = state,
        .x = replica->x + from};
    assert_true(kith_optimiser_find(cases[n].optimiser)->step(&descent));
}

static void draw(struct kith_rng *rng)
{
    for (unsigned i = 0; i < PEERS; i++)
        for (size_t k = 0; k < DIM; k++)
            gradients[i][k] = (float)kith_rng_double(rng) - 0.4F;
}

/* Steps of all peers' strips, and each peer takes what the others have. */
static void step_in_strips(size_t n, uint64_t step, unsigned order)
{
    const struct kith_backend *backend = kith_backend_find(cases[n].backend);
    for (unsigned i = 0; i < PEERS; i++) {
        reduce(backend, strip_at(i), strip_at(i + 1), order);
        descend(n, &strips[i], strip_at(i), strip_at(i + 1), step);
    }
    for (unsigned i = 0; i < PEERS; i++)
        for (unsigned k = 0; k < PEERS; k++)
            if (i != k)
                backend->copy(strip_at(k + 1) - strip_at(k),
                              strips[i].x + strip_at(k),
                              strips[k].x + strip_at(k));
}

static size_t differences(size_t n, unsigned order)
{
    const struct kith_backend *backend = kith_backend_find(cases[n].backend);
    struct kith_rng rng;
    size_t differ = 0;
    memset(&whole, 0, sizeof whole);
    memset(strips, 0, sizeof strips);
    kith_rng_init(&rng, 5, KITH_STREAM_TEST, 0);
    for (size_t k = 0; k < DIM; k++) {
        whole.x[k] = (float)kith_rng_double(&rng);
        for (unsigned i = 0; i < PEERS; i++)
            strips[i].x[k] = whole.x[k];
    }
    for (uint64_t step = 0; step < STEPS; step++) {
        draw(&rng);
        step_in_strips(n, step, order);
        reduce(backend, 0, DIM, 0);
        descend(n, &whole, 0, DIM, step);
    }
    for (unsigned i = 0; i < PEERS; i++)
        for (size_t k = 0; k < DIM; k++)
            differ += memcmp(&strips[i].x[k], &whole.x[k], sizeof(float)) != 0;
    return differ;
}

static void strips_are_the_whole(void **state)
{
    (void)state;
    for (size_t n = 0; n < sizeof cases / sizeof *cases; n++) {
        const size_t differ = differences(n, 0);
        printf("T5.3 %s on %s, %u peers' strips, values other than of a whole "
               "step: expected 0, measured %zu\n",
               cases[n].words, cases[n].backend, PEERS, differ);
        assert_int_equal(differ, 0);
        assert_true(kith_optimiser_find(cases[n].optimiser)->is_elementwise);
    }
}

static void order_of_adding_matters(void **state)
{
    const size_t differ = differences(1, 2);
    (void)state;
    printf("# added in another order: %zu of %u values differ\n", differ,
           PEERS * DIM);
    assert_true(differ > 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(strips_are_the_whole),
        cmocka_unit_test(order_of_adding_matters),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
