/* Goal: tokens are drawn as often as the softmax says, the largest alone where
 * that is asked for, and never from scores that are no numbers; a text that
 * grows past the model's context slides, and a short network scores as the full
 * one does. Method: known scores, many draws; a small gpt. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "kith/sample.h"

enum { N = 6, DRAWS = 40000 };

static const double scores[N] = {0.5, 2, -1, 2, 0, 1};

static struct kith_rng stream(uint64_t seed)
{
    struct kith_rng rng;
    kith_rng_init(&rng, seed, KITH_STREAM_SAMPLE, 0);
    return rng;
}

/* Draws against the shares of exp(s / temperature) over `kept`. */
static void check_shares(struct kith_sampling how, const bool kept[N])
{
    struct kith_rng rng = stream(7);
    double scratch[N], sum = 0;
    unsigned found[N] = {0};
    for (unsigned i = 0; i < N; i++)
        sum += kept[i] ? exp(scores[i] / how.temperature) : 0;
    for (unsigned i = 0; i < DRAWS; i++) {
        int32_t token = -1;
        assert_int_equal(kith_sample(&how, N, scores, scratch, &rng, &token),
                         KITH_OK);
        assert_in_range(token, 0, N - 1);
        found[token]++;
    }
    for (unsigned i = 0; i < N; i++) {
        const double p = kept[i] ? exp(scores[i] / how.temperature) / sum : 0;
        /* Five deviations of a binomial. */
        const double slack = 5 * sqrt(p * (1 - p) / DRAWS);
        assert_true(fabs((double)found[i] / DRAWS - p) <= slack);
    }
}

static void test_shares(void **state)
{
    (void)state;
    const bool all[N] = {true, true, true, true, true, true};
    const bool three[N] = {false, true, false, true, false, true};
    check_shares((struct kith_sampling){1, 0}, all);
    check_shares((struct kith_sampling){0.5, 0}, all);
    check_shares((struct kith_sampling){3, N + 1}, all);
    check_shares((struct kith_sampling){1, 3}, three);
    /* Two are equal: the first one is the largest. */
    const bool one[N] = {false, true, false, false, false, false};
    check_shares((struct kith_sampling){1, 1}, one);
}

/* Nothing is drawn at temperature 0: the stream stays where it was. */
static void test_greedy(void **state)
{
    (void)state;
    struct kith_rng rng = stream(7), before = rng;
    const struct kith_sampling how = {0, 3};
    double scratch[N];
    int32_t token = -1;

    assert_int_equal(kith_sample(&how, N, scores, scratch, &rng, &token),
                     KITH_OK);

    assert_int_equal(token, 1);
    assert_int_equal(kith_rng_u32(&rng), kith_rng_u32(&before));
}

/* Differences that no float holds still give the largest. */
static void test_extremes(void **state)
{
    (void)state;
    const double far[3] = {-1e308, 1e308, 0}, near[3] = {0, 1e-300, 0};
    struct kith_rng rng = stream(7);
    double scratch[3];
    int32_t token = -1;
    assert_int_equal(kith_sample(&(struct kith_sampling){1e-300, 0}, 3, far,
                                 scratch, &rng, &token),
                     KITH_OK);
    assert_int_equal(token, 1);
    assert_int_equal(kith_sample(&(struct kith_sampling){1e-305, 2}, 3, near,
                                 scratch, &rng, &token),
                     KITH_OK);
    assert_int_equal(token, 1);
}

static void test_nonfinite(void **state)
{
    (void)state;
    const double bad[] = {(double)NAN, (double)INFINITY, -(double)INFINITY};
    struct kith_rng rng = stream(7);
    double scratch[N], broken[N];
    int32_t token = -1;
    for (unsigned i = 0; i < 3; i++) {
        for (unsigned top = 0; top < 3; top++) {
            memcpy(broken, scores, sizeof broken);
            broken[N - 1] = bad[i];
            assert_int_equal(kith_sample(&(struct kith_sampling){1, top}, N,
                                         broken, scratch, &rng, &token),
                             KITH_ENONFINITE);
            assert_int_equal(token, -1);
        }
    }
    assert_int_equal(kith_sample(&(struct kith_sampling){1, 0}, N, scores,
                                 scratch, &rng, &token),
                     KITH_OK);
}

/* ---- a model */

enum { CONTEXT = 40, VOCABULARY = 11 };

static const struct kith_model_config small = {.depth = 2,
                                               .heads = 2,
                                               .width = 12,
                                               .context = CONTEXT,
                                               .vocabulary = VOCABULARY};

static double *weights(const struct kith_backend *backend)
{
    const struct kith_graph_options options = {.backend = backend, .rows = 1};
    struct kith_graph *network;
    char error[KITH_MODEL_ERROR_BYTES];
    assert_int_equal(kith_graph_open(kith_model_find("gpt"), &small, &options,
                                     &network, error),
                     KITH_OK);
    const size_t dim = kith_graph_layout(network)->dim;
    double *z = malloc(dim * sizeof *z);
    assert_non_null(z);
    kith_graph_start(network, 5, 0, z);
    /* Far from the start, where every score is about the same. */
    for (size_t i = 0; i < dim; i++)
        z[i] *= 12;
    kith_graph_close(network);
    return z;
}

static struct kith_generator *open_generator(const char *backend,
                                             const double *z,
                                             struct kith_sampling how,
                                             uint64_t seed)
{
    const struct kith_generator_config config = {
        .model = kith_model_find("gpt"),
        .config = &small,
        .backend = kith_backend_find(backend),
        .z = z,
        .how = how,
        .seed = seed};
    struct kith_generator *generator;
    char error[KITH_MODEL_ERROR_BYTES];
    if (kith_generator_open(&config, &generator, error) != KITH_OK)
        fail_msg("%s", error);
    return generator;
}

static void draw(struct kith_generator *generator, size_t count, int32_t *text)
{
    char error[KITH_MODEL_ERROR_BYTES];
    for (size_t i = 0; i < count; i++)
        if (kith_generator_next(generator, &text[i], error) != KITH_OK)
            fail_msg("%s", error);
}

/* The largest score by a network of full length, from the last tokens. */
static int32_t by_hand(const double *z, const int32_t *text, size_t count)
{
    const struct kith_backend *backend = kith_backend_find("naive64");
    const struct kith_graph_options options = {.backend = backend, .rows = 1};
    struct kith_graph *network;
    char error[KITH_MODEL_ERROR_BYTES];
    int32_t inputs[CONTEXT] = {0};
    const size_t kept = count < CONTEXT ? count : CONTEXT;
    memcpy(inputs, text + count - kept, kept * sizeof *inputs);
    assert_int_equal(kith_graph_open(kith_model_find("gpt"), &small, &options,
                                     &network, error),
                     KITH_OK);
    const struct kith_batch batch = {.inputs = inputs, .rows = 1};
    const double *found = kith_graph_scores(network, z, &batch);
    found += (kept - 1) * VOCABULARY;
    int32_t best = 0;
    for (int32_t i = 1; i < VOCABULARY; i++)
        best = found[i] > found[best] ? i : best;
    kith_graph_close(network);
    return best;
}

/* naive64's elements are float64: its networks read z as it is. */
static void test_slides(void **state)
{
    (void)state;
    int32_t text[1 + 3 * CONTEXT] = {4};
    double *z = weights(kith_backend_find("naive64"));
    struct kith_generator *generator =
        open_generator("naive64", z, (struct kith_sampling){0, 0}, 1);
    assert_int_equal(kith_generator_push(generator, VOCABULARY), KITH_EINVAL);
    assert_int_equal(kith_generator_push(generator, -1), KITH_EINVAL);
    assert_int_equal(kith_generator_push(generator, text[0]), KITH_OK);

    draw(generator, 3 * CONTEXT, text + 1);

    for (size_t i = 1; i <= 3 * CONTEXT; i++)
        assert_int_equal(text[i], by_hand(z, text, i));
    kith_generator_close(generator);
    free(z);
}

static void test_repeats(void **state)
{
    (void)state;
    int32_t a[50], b[50], c[50];
    double *z = weights(kith_backend_find("cpu"));
    const uint64_t seeds[3] = {3, 3, 4};
    int32_t *const texts[3] = {a, b, c};
    for (unsigned i = 0; i < 3; i++) {
        struct kith_generator *generator =
            open_generator("cpu", z, (struct kith_sampling){1, 5}, seeds[i]);
        assert_int_equal(kith_generator_push(generator, 0), KITH_OK);
        draw(generator, 50, texts[i]);
        kith_generator_close(generator);
    }
    assert_memory_equal(a, b, sizeof a);
    assert_memory_not_equal(a, c, sizeof a);
    free(z);
}

static void test_refuses(void **state)
{
    (void)state;
    char error[KITH_MODEL_ERROR_BYTES];
    int32_t token;
    double *z = weights(kith_backend_find("cpu"));
    struct kith_generator *generator;
    const struct kith_model_config flat = {.layers = {4, 2}, .layer_count = 2};
    const struct kith_generator_config config = {
        .model = kith_model_find("mlp"),
        .config = &flat,
        .backend = kith_backend_find("cpu"),
        .z = z};
    assert_int_equal(kith_generator_open(&config, &generator, error),
                     KITH_EINVAL);
    assert_non_null(strstr(error, "gpt does"));
    assert_null(generator);

    z[0] = (double)NAN;
    generator = open_generator("cpu", z, (struct kith_sampling){1, 0}, 1);
    assert_int_equal(kith_generator_push(generator, 0), KITH_OK);
    assert_int_equal(kith_generator_next(generator, &token, error),
                     KITH_ENONFINITE);
    assert_non_null(strstr(error, "not finite"));
    kith_generator_close(generator);
    free(z);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_shares),   cmocka_unit_test(test_greedy),
        cmocka_unit_test(test_extremes), cmocka_unit_test(test_nonfinite),
        cmocka_unit_test(test_slides),   cmocka_unit_test(test_repeats),
        cmocka_unit_test(test_refuses),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
