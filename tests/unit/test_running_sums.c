/* Goal: push-sum by running sums is exact whatever is lost, plain push-sum
 * loses mass as predicted (T4).
 * Method: the hooks in float64 in a bare loop whose messages are lost by
 * chance, 16 peers, 80 rounds over the edges of the exponential graph in turn;
 * one number per peer. */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include <math.h>

#include "kith/algorithm.h"
#include "tests/support/graph.h"

enum { N = 16, TAU = 4, ROUNDS = 80, RUNS = 400 };

struct peer {
    double x, w;
    double totals[TAU][2][2]; /* out and in edges: given, taken, one each */
    double weights[TAU][KITH_EDGE_SCALARS * 2];
};

struct world {
    const struct kith_algorithm *algorithm;
    struct peer peers[N];
    struct kith_rng rng;
    double lost; /* chance */
};

static struct kith_algebra algebra_of(struct peer *peer, unsigned edge,
                                      unsigned side, void **vectors)
{
    vectors[0] = &peer->totals[edge][side][0];
    vectors[1] = &peer->totals[edge][side][1];
    return (struct kith_algebra){
        .backend = kith_backend_find("naive64"),
        .dim = 1,
        .live = &peer->x,
        .scalars = &peer->w,
        .edges = vectors,
        .edge_vectors = 2,
        .edge_count = 1,
        .edge_scalars = &peer->weights[edge][side * KITH_EDGE_SCALARS]};
}

/* Everybody gives half to the one 2^k on; some of it arrives. */
static void round_of(struct world *world, unsigned k)
{
    double sent[N], scalars[N];
    for (unsigned i = 0; i < N; i++) {
        void *vectors[2];
        struct kith_algebra algebra =
            algebra_of(&world->peers[i], k, 0, vectors);
        struct kith_work_edge edge = {.weight = 0.5};
        algebra.sent = &sent[i];
        world->algorithm->make(&algebra, &edge);
        scalars[i] = edge.scalars_sent[0];
    }
    for (unsigned i = 0; i < N; i++) {
        void *vectors[2];
        struct kith_algebra algebra =
            algebra_of(&world->peers[(i + (1u << k)) % N], k, 1, vectors);
        struct kith_work_edge edge = {.scalars_received = {scalars[i]}};
        algebra.received = &sent[i];
        if (kith_rng_double(&world->rng) >= world->lost)
            world->algorithm->merge(&algebra, &edge);
    }
}

struct outcome {
    double mass, mass_x, error; /* of w and x, per peer; rms of x / w */
};

static struct outcome run(const char *name, double lost, unsigned rounds)
{
    struct outcome outcome = {0, 0, 0};
    for (unsigned r = 0; r < RUNS; r++) {
        static struct world world;
        memset(&world, 0, sizeof world);
        world.algorithm = kith_algorithm_find(name);
        world.lost = lost;
        kith_rng_init(&world.rng, r, KITH_STREAM_TEST, 0);
        double mean = 0, squares = 0;
        for (unsigned i = 0; i < N; i++) {
            world.peers[i].x = kith_rng_double(&world.rng) - 0.5;
            world.peers[i].w = 1;
            mean += world.peers[i].x / N;
        }
        for (unsigned i = 0; i < N; i++)
            squares += pow(world.peers[i].x - mean, 2) / N;
        for (unsigned i = 0; i < N; i++)
            world.peers[i].x = (world.peers[i].x - mean) / sqrt(squares);
        for (unsigned t = 0; t < rounds; t++)
            round_of(&world, t % TAU);
        for (unsigned i = 0; i < N; i++) {
            outcome.mass += world.peers[i].w / N / RUNS;
            outcome.mass_x += world.peers[i].x / N / RUNS;
            outcome.error +=
                pow(world.peers[i].x / world.peers[i].w, 2) / N / RUNS;
        }
    }
    outcome.error = sqrt(outcome.error);
    return outcome;
}

static void test_no_loss(void **state)
{
    static const char *const names[] = {"sgp-sync", "overlap-sgp",
                                        "running-sums"};
    (void)state;
    for (unsigned i = 0; i < 3; i++) {
        const struct outcome four = run(names[i], 0, TAU);
        const struct outcome many = run(names[i], 0, ROUNDS);
        char text[64];
        (void)snprintf(text, sizeof text, "T4 %s, no loss: error after 4",
                       names[i]);
        graph_check(text, 0, four.error, 1e-12);
        graph_check("   mean w after 80", 1, many.mass, 1e-12);
        graph_check("   mean x after 80", 0, many.mass_x, 1e-12);
    }
}

static void test_loss(void **state)
{
    static const double lost[] = {0.01, 0.05, 0.1, 0.3};
    static const double mass[] = {0.6696, 0.1319, 0.0165, 2.26e-6};
    static const double plain[] = {0.017, 0.036, 0.054, 0.095};
    static const double exact[] = {2.6e-16, 1e-11, 4e-9, 5e-5};
    (void)state;
    for (unsigned q = 0; q < 4; q++) {
        const struct outcome push = run("sgp-sync", lost[q], ROUNDS);
        const struct outcome sums = run("running-sums", lost[q], ROUNDS);
        const struct outcome later = run("running-sums", lost[q], 4 * ROUNDS);
        printf("  T4 %2.0f %% lost: mass expected %.3g (1 - q / 2)^80, "
               "measured %.3g; error expected about %.3f, measured %.4f; "
               "running sums expected about %.0e, measured %.1e; after 320 "
               "rounds %.1e\n",
               100 * lost[q], mass[q], push.mass, plain[q], push.error,
               exact[q], sums.error, later.error);
        assert_true(fabs(push.mass / pow(1 - lost[q] / 2, ROUNDS) - 1) <
                    (q < 3 ? 0.05 : 0.5));
        assert_true(fabs(push.error / plain[q] - 1) < 0.25);
        assert_true(sums.error < 20 * exact[q]);
        assert_true(later.error < 1e-12);
    }
}

/* A sender that starts over counts from 0: all it says is new. */
static void test_starts_over(void **state)
{
    static struct world world;
    (void)state;
    memset(&world, 0, sizeof world);
    world.algorithm = kith_algorithm_find("running-sums");
    for (unsigned i = 0; i < N; i++)
        world.peers[i].x = world.peers[i].w = 1;
    for (unsigned t = 0; t < 40; t++)
        round_of(&world, t % TAU);
    memset(&world.peers[3], 0, sizeof world.peers[3]);
    world.peers[3].x = world.peers[3].w = 1;
    for (unsigned t = 0; t < 40; t++)
        round_of(&world, t % TAU);
    double worst = 0;
    for (unsigned i = 0; i < N; i++)
        worst = fmax(worst, fabs(world.peers[i].x / world.peers[i].w - 1));
    graph_check("   |z - 1| after a restart", 0, worst, 1e-9);
}

/* Who hears nothing halves its weight with each gift, but not for ever: what is
 * left stays a number that x can be divided by, and no weight is lost. */
static void test_keeps_some_weight(void **state)
{
    (void)state;
    static const char *const names[] = {"running-sums", "sgp"};
    for (unsigned n = 0; n < 2; n++) {
        const struct kith_algorithm *algorithm = kith_algorithm_find(names[n]);
        double x = 1, w = 1, sent, totals[2] = {0}, given = 0;
        double weights[KITH_EDGE_SCALARS] = {0};
        void *edges[] = {&totals[0], &totals[1]};
        struct kith_work_edge edge = {.weight = 0.5};
        struct kith_algebra algebra = {.backend = kith_backend_find("naive64"),
                                       .dim = 1,
                                       .peers = 2,
                                       .live = &x,
                                       .sent = &sent,
                                       .scalars = &w,
                                       .edges = edges,
                                       .edge_scalars = weights,
                                       .edge_count = 1,
                                       .edge_vectors = 2};
        for (unsigned gift = 1; gift <= 200; gift++) {
            algorithm->make(&algebra, &edge);
            if (n == 0)
                given = edge.scalars_sent[0]; /* a running sum */
            else
                given += edge.scalars_sent[0];
            if (gift <= 40)
                assert_true(w == ldexp(1, -(int)gift) && x == w);
        }
        assert_true(w > 0x0.fffp-40 && w <= 0x1p-40);
        assert_true(n > 0 || w == 0x1p-40);
        assert_true(fabs(w + given - 1) < 1e-15);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_no_loss),
        cmocka_unit_test(test_loss),
        cmocka_unit_test(test_starts_over),
        cmocka_unit_test(test_keeps_some_weight),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
