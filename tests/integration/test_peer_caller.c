/* Goal: a loop of the caller's own is a peer: what it does to its vectors
 * travels, what comes back stands in them after step(), for every method that
 * needs nothing but models; a run that ends, and one that is killed, never
 * leaves it waiting. Method: real peers (support/peers.h) whose loop goes down
 * |x - rank|^2 / 2: alone each ends at its rank, together near their mean. */
#include <math.h>
#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>

#include <cmocka.h>

#include "kith/algorithm.h"
#include "kith/caller.h"
#include "tests/support/peers.h"

enum { PEERS = 4, DIM = 3000, STEPS = 300, LAST = STEPS - 20 };
#define MEAN 1.5 /* of ranks 0 to 3 */

/* What the children leave behind. */
struct results {
    double x[PEERS];     /* the mean of its values at the end */
    double apart[PEERS]; /* and how far its values are from it at most */
    double moved[PEERS]; /* the most that a value came back otherwise */
    struct kith_caller_counts counts[PEERS];
    double after; /* an exchange of what was swapped in behind the last step */
    volatile uint64_t steps[PEERS];
    volatile bool ended[PEERS];
};
static struct results *results;

/* Of the one peer of this process. */
static float vector_a[DIM / 3], vector_b[DIM - DIM / 3];
static struct kith_outside vectors[] = {
    {vector_a, DIM / 3, KITH_OUTSIDE_FLOAT32},
    {vector_b, DIM - DIM / 3, KITH_OUTSIDE_FLOAT32}};
static struct kith_caller *caller;
static pthread_t loop;
static kith_id self;
static uint64_t share_of_0; /* 0: as many steps as the others */
static bool is_silent;      /* it does not know its loss */
static bool is_hasty; /* its steps take less than the loop needs, and it does
                       * not wait long */

static void each_value(void (*visit)(float *value, double *state),
                       double *state)
{
    for (size_t i = 0; i < DIM / 3; i++)
        visit(&vector_a[i], state);
    for (size_t i = 0; i < DIM - DIM / 3; i++)
        visit(&vector_b[i], state);
}

static void descend(float *value, double *loss)
{
    const double apart = *value - (double)self;
    *loss += apart * apart / 2;
    *value -= 0.1f * (float)apart;
}

static void add(float *value, double *sum)
{
    *sum += *value;
}

static void widest(float *value, double *state)
{
    state[1] = fmax(state[1], fabs(*value - state[0]));
}

/* While it trains: who has ended follows those who have not. */
static void look(void)
{
    double sum = 0, state[2] = {0, 0};
    each_value(add, &sum);
    state[0] = sum / DIM;
    each_value(widest, state);
    results->x[self] = state[0];
    results->apart[self] = state[1];
}

static enum kith_turn patiently(enum kith_turn turn)
{
    while (turn == KITH_TURN_LATE)
        turn = kith_caller_wait(caller, 100 * KITH_MS);
    return turn;
}

/* What a caller puts into its vectors once its share is done, as an average of
 * its own: the first value that an exchange makes of it. One that was under way
 * adds the little that it brings. */
static double swap_in(float value)
{
    for (size_t i = 0; i < DIM / 3; i++)
        vector_a[i] = value;
    for (size_t i = 0; i < DIM - DIM / 3; i++)
        vector_b[i] = value;
    for (int i = 0; i < 1000 && vector_b[7] > 0.9f * value; i++)
        (void)kith_caller_wait(caller, 20 * KITH_MS);
    return vector_b[7];
}

/* Who trains more has more of the mean, and a busy machine would decide who
 * does: nobody is two steps further than another. */
static void keep_step(void)
{
    for (kith_id i = 0; i < PEERS; i++)
        while (!results->ended[i] &&
               results->steps[i] + 2 < results->steps[self])
            (void)kith_caller_wait(caller, KITH_MS);
}

static void *run_loop(void *arg)
{
    enum kith_turn turn = patiently(KITH_TURN_LATE);
    (void)arg;
    while (turn != KITH_TURN_OVER) {
        double loss = 0;
        each_value(descend, &loss);
        results->steps[self]++;
        if (!is_hasty) {
            keep_step();
            nanosleep(&(struct timespec){.tv_nsec = 300000}, NULL);
        }
        look();
        const float before = vector_b[7];
        turn = patiently(kith_caller_step(caller, is_silent ? NAN : loss / DIM,
                                          is_hasty ? 100000 : 100 * KITH_MS));
        results->moved[self] =
            fmax(results->moved[self], fabs((double)vector_b[7] - before));
    }
    if (share_of_0 > 0 && self == 0) { /* its share is done: it serves */
        results->steps[self] = LAST;   /* those that go on until then */
        results->after = swap_in(1000);
    }
    results->counts[self] = kith_caller_counts(caller);
    results->ended[self] = true;
    /* The others may still ask. */
    for (kith_id i = 0; i < PEERS; i++)
        while (!results->ended[i])
            (void)kith_caller_wait(caller, 20 * KITH_MS);
    return NULL;
}

static kith_ns ready(void *user)
{
    struct timespec t;
    (void)user;
    if (!kith_caller_ready(caller))
        abort();
    if (pthread_create(&loop, NULL, run_loop, NULL) != 0 ||
        pthread_detach(loop) != 0)
        abort();
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (kith_ns)t.tv_sec * KITH_S + t.tv_nsec;
}

static void change(struct kith_peer_options *options, void *arg)
{
    (void)arg;
    self = options->self;
    if (kith_caller_open(vectors, 2, NULL, &caller) != KITH_OK)
        abort();
    options->caller = caller;
    options->save = NULL;
    options->on_ready = ready;
    options->share = self == 0 ? share_of_0 : 0;
    options->wait_members = PEERS; /* a common start */
    options->wait_ns = 60 * KITH_S;
}

static void open_peers(struct peers *peers, const char *algorithm,
                       const char *more)
{
    char yaml[600];
    (void)snprintf(yaml, sizeof yaml,
                   "name: caller\npeers: %d\nstop: {steps: %d}\n"
                   "model: {kind: program, dim: %d}\n"
                   "gossip: {algorithm: %s%s}\n",
                   PEERS, STEPS, DIM, algorithm, more);
    memset(results, 0, sizeof *results);
    peers_open(peers, yaml);
    peers->change = change;
}

/* Until all have done their shares and said what came of it. */
static void run_out(struct peers *peers)
{
    peers_start_all(peers);
    for (kith_id i = 0; i < PEERS; i++)
        assert_true(peers_wait_finished(peers, i, 20));
    for (kith_id i = 0; i < PEERS; i++)
        while (!results->ended[i])
            nanosleep(&(struct timespec){.tv_nsec = 1000000}, NULL);
    assert_true(peers_stop(peers, 10));
}

static void run(const char *algorithm, const char *more, double within)
{
    struct peers peers;
    double mean = 0, least = INFINITY;
    uint64_t items = 0;
    open_peers(&peers, algorithm, more);
    run_out(&peers);
    for (kith_id i = 0; i < PEERS; i++) {
        mean += results->x[i] / PEERS;
        least = fmin(least, results->moved[i]);
        items += results->counts[i].items;
        assert_int_equal(results->counts[i].steps, STEPS);
        assert_int_equal(peers.shared[i].marks[KITH_MARK_NONFINITE], 0);
        assert_true(results->apart[i] <
                    PEERS - 1); /* none of its values is wild */
    }
    printf("%-10s expected: mean %.1f within %.2f, all moved by others; "
           "measured: %.3f, %.6f, %llu items\n",
           algorithm, MEAN, within, mean, least, (unsigned long long)items);
    assert_true(items > 0);
    assert_true(fabs(mean - MEAN) <= within);
    assert_true(least > 1e-6);
    peers_close(&peers);
}

static void test_methods(void **state)
{
    (void)state;
    run("adpsgd", ", every: 2", 0.3);
    run("dpsgd", ", topology: ring", 0.05);
    /* Steps of push-sum count by weights, which differ at any time. */
    run("sgp", ", every: 2, topology: ring", 1);
    run("gosgd", "", 1);
    run("diloco", ", every: 10, topology: complete", 0.3);
    run("noloco", ", every: 10, topology: random-matching", 0.5);
    run("sparta", ", every: 2, share: 0.3, topology: complete", 0.4);
    run("clipped", ", topology: complete", 0.4);
    run("choco", ", topology: ring", 0.4);
}

static void test_a_loss_that_is_not_known(void **state)
{
    (void)state;
    is_silent = true;
    run("adpsgd", ", every: 2", 0.3);
    is_silent = false;
}

/* Steps ahead of the loop are counted once each, and an exchange is of the
 * model after as many as its trigger says. */
static void test_steps_ahead(void **state)
{
    (void)state;
    is_hasty = true;
    run("diloco", ", every: 20, topology: complete", 0.3);
    run("clipped", ", every: 7, topology: complete", 0.5);
    run("diloco", ", every: 90, topology: complete", 0.5);
    is_hasty = false;
}

static void test_changed_behind_the_last_step(void **state)
{
    (void)state;
    struct peers peers;
    share_of_0 = 50;
    open_peers(&peers, "adpsgd", ", every: 2");
    run_out(&peers);
    printf("expected: means of 1000 and less than 4; measured: %.1f\n",
           results->after);
    assert_true(results->after > 8 && results->after < 1000);
    peers_close(&peers);
    share_of_0 = 0;
}

static void test_refused(void **state)
{
    (void)state;
    static const struct {
        const char *name;
        bool works;
    } methods[] = {{"adpsgd", true},    {"dpsgd", true},     {"sgp", true},
                   {"gosgd", true},     {"diloco", true},    {"noloco", true},
                   {"sparta", true},    {"clipped", true},   {"choco", true},
                   {"gt", false},       {"sync-sgd", false}, {"acid", false},
                   {"qg-dsgdm", false}, {"local", false},    {"extra", true}};
    for (size_t i = 0; i < sizeof methods / sizeof *methods; i++) {
        const char *why =
            kith_outside_misses(kith_algorithm_find(methods[i].name));
        printf("%s: %s\n", methods[i].name, why == NULL ? "works" : why);
        assert_int_equal(why == NULL, methods[i].works);
    }
}

static int set_up(void **state)
{
    (void)state;
    results = mmap(NULL, sizeof *results, PROT_READ | PROT_WRITE,
                   MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    return results == MAP_FAILED ? -1 : 0;
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_refused),
        cmocka_unit_test(test_methods),
        cmocka_unit_test(test_a_loss_that_is_not_known),
        cmocka_unit_test(test_steps_ahead),
        cmocka_unit_test(test_changed_behind_the_last_step),
    };
    return cmocka_run_group_tests(tests, set_up, NULL);
}
