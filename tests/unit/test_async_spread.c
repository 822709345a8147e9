/* Goal: where gradients are pure noise, pairs that average after H steps each
 * keep the disagreement that theory says (T8).
 * Method: the hooks of adpsgd and swarm in float64, random pairs of 16 peers,
 * both taking H steps of noise before they meet; the mean of Gamma over many
 * meetings against d (n - 1) (1 - 2 / n) H eta^2 s^2. */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include "kith/algorithm.h"
#include "tests/support/graph.h"

enum { N = 16, H = 5, WARM = 2000, BATCHES = 40, MEETINGS = 5000 };
static const double eta = 0.1;

static double x[N], published[N];
static struct kith_rng rng;

/* Box and Muller. */
static double normal(void)
{
    const double radius = sqrt(-2 * log(1 - kith_rng_double(&rng)));
    return radius * cos(2 * acos(-1) * kith_rng_double(&rng));
}

/* One side of an exchange of two, who are both at the end of their steps. */
static void side(const struct kith_algorithm *algorithm, kith_id i, bool merge,
                 double *sent, double *received)
{
    void *vectors[1] = {&published[i]};
    struct kith_algebra algebra = {.backend = kith_backend_find("naive64"),
                                   .dim = 1,
                                   .live = &x[i],
                                   .vectors = vectors,
                                   .sent = sent,
                                   .received = received};
    struct kith_work_edge edge = {.weight = 0.5,
                                  .sent = KITH_SLOT_INITIATED_SENT};
    if (merge)
        algorithm->merge(&algebra, &edge);
    else if (algorithm->make != NULL)
        algorithm->make(&algebra, &edge);
    else
        *sent = x[i];
}

static void meet(const struct kith_algorithm *algorithm)
{
    const kith_id i = kith_rng_below(&rng, N);
    const kith_id j = (i + 1 + kith_rng_below(&rng, N - 1)) % N;
    double mine, theirs;
    for (unsigned h = 0; h < H; h++) {
        x[i] -= eta * normal();
        x[j] -= eta * normal();
    }
    side(algorithm, i, false, &mine, NULL);
    side(algorithm, j, false, &theirs, NULL);
    side(algorithm, i, true, &mine, &theirs);
    side(algorithm, j, true, &theirs, &mine);
}

static void check(const char *name)
{
    const struct kith_algorithm *algorithm = kith_algorithm_find(name);
    double mean = 0, squares = 0;
    char text[64];
    memset(x, 0, sizeof x);
    memset(published, 0, sizeof published);
    kith_rng_init(&rng, 1, KITH_STREAM_TEST, 0);
    for (unsigned t = 0; t < WARM; t++)
        meet(algorithm);
    for (unsigned b = 0; b < BATCHES; b++) {
        double batch = 0;
        for (unsigned t = 0; t < MEETINGS; t++) {
            meet(algorithm);
            batch += graph_spread(x, N) / MEETINGS;
        }
        mean += batch / BATCHES;
        squares += batch * batch / BATCHES;
    }
    snprintf(text, sizeof text, "T8 Gamma, %s, n=16 H=5 eta=.1", name);
    graph_check(text, (N - 1) * (1 - 2.0 / N) * H * eta * eta, mean,
                3 * sqrt((squares - mean * mean) / BATCHES));
}

static void test_pairs(void **state)
{
    (void)state;
    check("adpsgd");
    check("swarm");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_pairs),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
