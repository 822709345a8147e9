/* Goal: what guard clip lets in, withholds and keeps of it is booked where it
 * belongs, comes home with a share that never arrives, and goes on from a save.
 * Method: by hand, on a worker of 37 and of 26,122 values: own movement,
 * coordinates, weights of shares, UNDO; saves that are whole and such as are
 * not. */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include <math.h>

#include "experiment_base.h"
#include "kith/archive.h"
#include "src/training/worker/worker_state.h"
#include "worker_run.h"

struct pair {
    struct kith_worker *worker;
    struct kith_work_edge edge;
    size_t dim;
};

static struct pair open_pair(const char *algorithm)
{
    struct kith_experiment experiment =
        fixture_experiment("quadratic", algorithm, 9);
    (void)snprintf(experiment.gossip.guard, sizeof experiment.gossip.guard,
                   "clip");
    struct pair pair = {.worker = open_worker(&experiment, NULL, 0, 100)};
    pair.dim = kith_worker_dim(pair.worker);
    return pair;
}

/* What comes is x but for one value, `off` more. */
static void merge(struct pair *pair, kith_id peer, double off)
{
    double *inbox = kith_worker_slot(pair->worker, KITH_SLOT_ANSWERED_INBOX);
    memcpy(inbox, kith_worker_slot(pair->worker, KITH_SLOT_LIVE),
           pair->dim * sizeof *inbox);
    inbox[peer] += off;
    pair->edge = (struct kith_work_edge){.peer = peer,
                                         .weight = 0.5,
                                         .sent = KITH_SLOT_ANSWERED_SENT,
                                         .inbox = KITH_SLOT_ANSWERED_INBOX};
    (void)run(pair->worker, (struct kith_work){.kind = KITH_WORK_MERGE,
                                               .pattern = KITH_PATTERN_SWAP,
                                               .snapshot_first = true,
                                               .edges = &pair->edge,
                                               .edge_count = 1});
}

static double value(const struct pair *pair, size_t index)
{
    return ((double *)kith_worker_slot(pair->worker, KITH_SLOT_LIVE))[index];
}

static void close_to(double found, double expected)
{
    if (!(fabs(found - expected) <= 1e-12 * fmax(1, fabs(expected))))
        fail_msg("found %.17g, expected %.17g", found, expected);
}

/* delta_sum is of the whole exchange, and UNDO takes back what was let in. */
static void test_books(void **state)
{
    (void)state;
    struct pair pair = open_pair("adpsgd");
    struct kith_mark mark;
    train(pair.worker, 1);
    const double before = value(&pair, 1);
    merge(&pair, 1, 1e9);
    close_to(value(&pair, 1), before);
    close_to(pair.edge.delta_sum, 5e8);
    close_to(kith_worker_withheld(pair.worker, &pair.edge), 5e8);
    assert_true(kith_worker_guarded(pair.worker, &pair.edge, &mark));
    assert_int_equal(mark.kind, KITH_MARK_REJECTED);
    assert_int_equal(mark.peer, 1);
    close_to(mark.sum, 1e9);

    for (kith_id peer = 2; peer < 6; peer++) {
        train(pair.worker, 1);
        merge(&pair, peer, 1e-3);
    }
    assert_false(kith_worker_guarded(pair.worker, &pair.edge, &mark));
    close_to(kith_worker_withheld(pair.worker, &pair.edge), 0);
    const double then = value(&pair, 6);
    merge(&pair, 6, 2.4e-3); /* the lower median is 1e-3 */
    close_to(value(&pair, 6), then + 1e-3);
    close_to(pair.edge.delta_sum, 1.2e-3);
    close_to(kith_worker_withheld(pair.worker, &pair.edge), 2e-4);
    assert_true(kith_worker_guarded(pair.worker, &pair.edge, &mark));
    assert_int_equal(mark.kind, KITH_MARK_CLIPPED);
    assert_int_equal(mark.value, 833);

    struct kith_work undo = {.kind = KITH_WORK_UNDO,
                             .pattern = KITH_PATTERN_SWAP,
                             .edges = &pair.edge,
                             .edge_count = 1};
    (void)run(pair.worker, undo);
    close_to(value(&pair, 6), then);
    close_to(kith_worker_withheld(pair.worker, &pair.edge), -2e-4);
    merge(&pair, 7, 1);
    const double rejected = value(&pair, 7);
    undo.edges = &pair.edge;
    (void)run(pair.worker, undo);
    close_to(value(&pair, 7), rejected);
    kith_worker_close(pair.worker);
}

/* A share of z but for one value, `off` more, and its weight. */
static void give(struct pair *pair, kith_id peer, double weight, double off)
{
    const bool divides = kith_worker_factor_of(pair->worker, &weight) != 1;
    double *inbox = kith_worker_slot(pair->worker, KITH_SLOT_ANSWERED_INBOX);
    kith_worker_read(pair->worker, inbox);
    inbox[peer] += off;
    for (size_t i = 0; i < pair->dim && divides; i++)
        inbox[i] *= weight;
    pair->edge = (struct kith_work_edge){.peer = peer,
                                         .scalars_received = {weight},
                                         .sent = KITH_SLOT_NONE,
                                         .inbox = KITH_SLOT_ANSWERED_INBOX};
    (void)run(pair->worker, (struct kith_work){.kind = KITH_WORK_MERGE,
                                               .pattern = KITH_PATTERN_PUSH,
                                               .edges = &pair->edge,
                                               .edge_count = 1});
}

static double z_of(const struct pair *pair, size_t index)
{
    double z[64];
    assert_true(pair->dim <= 64);
    kith_worker_read(pair->worker, z);
    return z[index];
}

static double sum_of_x(const struct pair *pair)
{
    double sum = 0;
    for (size_t i = 0; i < pair->dim; i++)
        sum += value(pair, i);
    return sum;
}

/* A share's weight is taken whatever becomes of its values: z moves by what is
 * let in, the rest of the share counts as z; delta_sum is of all that came. */
static void check_weights(const char *algorithm, double whole)
{
    struct pair pair = open_pair(algorithm);
    struct kith_mark mark;
    const double *const w = kith_worker_scalars(pair.worker);
    const bool divides = whole <= 1;
    train(pair.worker, 1);
    close_to(*w, whole);
    const double before = z_of(&pair, 1), sum = sum_of_x(&pair);
    give(&pair, 1, whole / 2, 1e9);
    close_to(z_of(&pair, 1), before);
    close_to(*w, 1.5 * whole);
    assert_true(kith_worker_guarded(pair.worker, &pair.edge, &mark));
    assert_int_equal(mark.kind, KITH_MARK_REJECTED);
    close_to(mark.sum, 1e9);
    /* x = w z took half of (z + 1e9), or a third of it came to the mean. */
    close_to(kith_worker_withheld(pair.worker, &pair.edge),
             divides ? 5e8 : 1e9 / 3);
    close_to(pair.edge.delta_sum,
             sum_of_x(&pair) - sum + (divides ? 5e8 : 1e9 / 3));

    for (kith_id peer = 2; peer < 6; peer++) {
        train(pair.worker, 1);
        give(&pair, peer, whole / 4, 1e-3);
        assert_false(kith_worker_guarded(pair.worker, &pair.edge, &mark));
    }
    close_to(*w, 2.5 * whole);
    const double then = z_of(&pair, 6), old = sum_of_x(&pair);
    give(&pair, 6, whole / 2, 2.4e-3); /* the lower median is 1e-3 */
    assert_true(kith_worker_guarded(pair.worker, &pair.edge, &mark));
    assert_int_equal(mark.kind, KITH_MARK_CLIPPED);
    assert_int_equal(mark.value, 833);
    assert_true(fabs(z_of(&pair, 6) - (then + 2e-3 / 6)) < 1e-12);
    const double withheld = kith_worker_withheld(pair.worker, &pair.edge);
    assert_true(fabs(withheld - 4e-4 / (divides ? 2 : 6)) < 1e-12);
    assert_true(fabs(pair.edge.delta_sum - withheld - (sum_of_x(&pair) - old)) <
                1e-11);
    kith_worker_close(pair.worker);
}

/* A share that never arrives comes home, though its inbox was never looked at;
 * and one that is refused for its weight changes and books nothing. */
static void check_comes_home(const char *algorithm, double whole)
{
    struct pair pair = open_pair(algorithm);
    const double *const w = kith_worker_scalars(pair.worker);
    train(pair.worker, 1);
    const double z = z_of(&pair, 3);
    struct kith_work_edge edge = {.weight = 0.5,
                                  .sent = KITH_SLOT_INITIATED_SENT,
                                  .inbox = KITH_SLOT_INITIATED_INBOX};
    struct kith_work work = {.kind = KITH_WORK_SNAPSHOT,
                             .pattern = KITH_PATTERN_PUSH,
                             .edges = &edge,
                             .edge_count = 1};
    (void)run(pair.worker, work);
    close_to(*w, whole / 2);
    work.kind = KITH_WORK_UNDO;
    (void)run(pair.worker, work);
    close_to(*w, whole);
    close_to(z_of(&pair, 3), z);
    close_to(kith_worker_withheld(pair.worker, &edge), 0);

    const double sum = sum_of_x(&pair);
    give(&pair, 2, 18 * whole, 1e9); /* nine peers have at most 18 */
    assert_true(pair.edge.refused);
    close_to(*w, whole);
    close_to(sum_of_x(&pair), sum);
    close_to(pair.edge.delta_sum, 0);
    close_to(kith_worker_withheld(pair.worker, &pair.edge), 0);
    kith_worker_close(pair.worker);
}

static void test_shares_come_home(void **state)
{
    (void)state;
    check_comes_home("sgp", 1);
    check_comes_home("gosgd", 0x1p40);
}

static void test_weights_stay(void **state)
{
    (void)state;
    check_weights("sgp", 1);
    check_weights("gosgd", 0x1p40);
}

/* Own movement, of all values where there are few: what is further than 15
 * times that is rejected, what is nearer is not. */
static void test_own_movement(void **state)
{
    (void)state;
    struct pair pair = open_pair("adpsgd");
    double before[64], moved = 0;
    struct kith_mark mark;
    for (size_t i = 0; i < pair.dim; i++)
        before[i] = value(&pair, i);
    train(pair.worker, 3);
    for (size_t i = 0; i < pair.dim; i++)
        moved += pow(value(&pair, i) - before[i], 2);
    merge(&pair, 1, 14.9 * sqrt(moved));
    assert_true(kith_worker_guarded(pair.worker, &pair.edge, &mark));
    assert_int_equal(mark.kind, KITH_MARK_CLIPPED);
    merge(&pair, 1, 15.1 * sqrt(moved)); /* no step between: as before */
    assert_true(kith_worker_guarded(pair.worker, &pair.edge, &mark));
    assert_int_equal(mark.kind, KITH_MARK_REJECTED);
    kith_worker_close(pair.worker);
}

static const double *before_of(const struct kith_worker *worker)
{
    const struct kith_guarding *guarding = &worker->guarding;
    return guarding->guard->before(guarding->state, guarding->coordinates);
}

/* Where four are known nobody asks for it any more, and what it was measured
 * from has given its place to one of them. */
static void test_own_movement_ends(void **state)
{
    (void)state;
    struct pair pair = open_pair("adpsgd");
    const struct kith_guarding *const guarding = &pair.worker->guarding;
    for (kith_id peer = 1; peer <= 5; peer++) {
        train(pair.worker, 3);
        merge(&pair, peer, 0.01);
        assert_true(guarding->has_before == (peer < 4));
        assert_true((before_of(pair.worker) != NULL) == guarding->has_before);
    }
    kith_worker_close(pair.worker);
}

struct bytes {
    char *start;
    size_t at, size;
};

static bool count(void *arg, void *bytes, size_t size)
{
    struct bytes *buffer = arg;
    (void)bytes;
    buffer->size += size;
    return true;
}

static bool put(void *arg, void *bytes, size_t size)
{
    struct bytes *buffer = arg;
    memcpy(buffer->start + buffer->at, bytes, size);
    buffer->at += size;
    return true;
}

static bool take(void *arg, void *bytes, size_t size)
{
    struct bytes *buffer = arg;
    if (buffer->size - buffer->at < size)
        return false;
    memcpy(bytes, buffer->start + buffer->at, size);
    buffer->at += size;
    return true;
}

/* Inboxes are the worker's own here. */
static void stay(struct kith_archive *archive, void **vector)
{
    (void)archive;
    (void)vector;
}

static const char *carry_over(struct kith_worker *from, struct kith_worker *to)
{
    struct bytes buffer = {NULL, 0, 0};
    struct kith_archive out = {.move = count, .vector = stay, .arg = &buffer};
    kith_worker_archive(from, &out);
    buffer.start = malloc(buffer.size);
    assert_non_null(buffer.start);
    out.move = put;
    kith_worker_archive(from, &out);
    assert_null(out.failed);
    buffer.at = 0;
    struct kith_archive in = {
        .reads = true, .move = take, .vector = stay, .arg = &buffer};
    kith_worker_archive(to, &in);
    free(buffer.start);
    return in.failed;
}

/* From a save, too, it is there for as long as it is asked for; what cannot be
 * a guard's is refused. */
static void test_saved(void **state)
{
    (void)state;
    struct pair one = open_pair("adpsgd"), few = open_pair("adpsgd"),
                many = open_pair("adpsgd"), bad = open_pair("adpsgd");
    const struct kith_guarding *const guarding = &one.worker->guarding;
    for (kith_id peer = 1; peer <= 3; peer++) {
        train(one.worker, 1);
        merge(&one, peer, 0.01);
    }
    assert_true(guarding->has_before);
    assert_null(carry_over(one.worker, few.worker));
    assert_true(few.worker->guarding.has_before);
    assert_memory_equal(before_of(few.worker), before_of(one.worker),
                        guarding->coordinates * sizeof(double));
    merge(&one, 4, 0.01);
    assert_false(guarding->has_before);
    assert_null(carry_over(one.worker, many.worker));
    assert_false(many.worker->guarding.has_before);
    assert_null(before_of(many.worker));

    memset((char *)guarding->state, 0xff, guarding->state_bytes);
    assert_string_equal(carry_over(one.worker, bad.worker),
                        "a guard's memory is damaged");
    kith_worker_close(one.worker);
    kith_worker_close(few.worker);
    kith_worker_close(many.worker);
    kith_worker_close(bad.worker);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_books),
        cmocka_unit_test(test_weights_stay),
        cmocka_unit_test(test_shares_come_home),
        cmocka_unit_test(test_own_movement),
        cmocka_unit_test(test_own_movement_ends),
        cmocka_unit_test(test_saved),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
