/* Goal: of a modular format, two peers that exchange move by exact opposites,
 * block by block, whatever each had trained in between; what one end cannot
 * read moves neither; they find together from afar, a step that is taken back
 * leaves nothing, a pulled model arrives as it is, a guard sees the distance of
 * what was read as if all were like it, and what is no message is refused.
 * Method: two workers, driven by hand, in float64 and in float32. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include "kith/format.h"
#include "worker_run.h"

enum { DIM = 3000, FORMATS = 2, BACKENDS = 3 };
static const char *const formats[FORMATS] = {"moniqua8", "moniqua4"};
static const char *const backends[BACKENDS] = {"naive64", "naive32", "cpu"};

static struct kith_experiment experiment;
static struct kith_worker *first, *second;
static double unit; /* of the element type */

static const struct kith_work_edge asks = {.peer = 1,
                                           .weight = 0.5,
                                           .sent = KITH_SLOT_INITIATED_SENT,
                                           .inbox = KITH_SLOT_INITIATED_INBOX};
static const struct kith_work_edge answers = {.peer = 0,
                                              .weight = 0.5,
                                              .sent = KITH_SLOT_ANSWERED_SENT,
                                              .inbox =
                                                  KITH_SLOT_ANSWERED_INBOX};

/* Workers keep pointers into the experiment. */
static double share = 1;
static uint64_t number; /* of the exchange */

static void open_pair(const char *format, const char *backend,
                      const char *guard)
{
    experiment = fixture_experiment("consensus", "adpsgd", 2);
    experiment.model_config.dim = DIM;
    experiment.backend = kith_backend_find(backend);
    experiment.gossip.format = kith_format_find(format);
    experiment.gossip.wire_share = share;
    (void)snprintf(experiment.gossip.guard, sizeof experiment.gossip.guard,
                   "%s", guard);
    first = open_worker(&experiment, NULL, 0, 10);
    second = open_worker(&experiment, NULL, 1, 10);
    unit = experiment.backend->element_bytes == 4 ? 0x1p-23 : 0x1p-52;
}

static void close_pair(void)
{
    kith_worker_close(first);
    kith_worker_close(second);
}

static void item(struct kith_worker *worker, enum kith_work_kind kind,
                 enum kith_pattern pattern, struct kith_work_edge *edge)
{
    (void)run(worker, (struct kith_work){.kind = kind,
                                         .pattern = pattern,
                                         .round = number,
                                         .edges = edge,
                                         .edge_count = 1});
}

static void carry_message(struct kith_worker *from, uint32_t sent,
                          struct kith_worker *to, uint32_t inbox)
{
    memcpy(kith_worker_slot(to, inbox), kith_worker_slot(from, sent),
           kith_worker_payload(from));
}

/* Of the first and of the second. */
struct exchange {
    struct kith_work_edge edges[2];
    double before[2][DIM], after[2][DIM];
};

static void exchange(struct exchange *both)
{
    struct kith_worker *const workers[2] = {first, second};
    number++;
    both->edges[0] = asks;
    both->edges[1] = answers;
    item(first, KITH_WORK_SNAPSHOT, KITH_PATTERN_SWAP, &both->edges[0]);
    item(second, KITH_WORK_SNAPSHOT, KITH_PATTERN_SWAP, &both->edges[1]);
    carry_message(first, asks.sent, second, answers.inbox);
    carry_message(second, answers.sent, first, asks.inbox);
    for (unsigned side = 0; side < 2; side++) {
        kith_worker_read(workers[side], both->before[side]);
        item(workers[side], KITH_WORK_MERGE, KITH_PATTERN_SWAP,
             &both->edges[side]);
        kith_worker_read(workers[side], both->after[side]);
        assert_false(both->edges[side].refused);
    }
}

/* How far apart they are at most. */
static double apart(double values[2][DIM])
{
    double most = 0;
    for (size_t i = 0; i < DIM; i++)
        most = fmax(most, fabs(values[1][i] - values[0][i]));
    return most;
}

/* From values of a normal distribution, four apart, to a thousandth. */
static void meet_on(const char *format, const char *backend)
{
    static struct exchange both;
    bool had_unread = false;
    open_pair(format, backend, "none");
    for (unsigned round = 0; round < 300; round++) {
        exchange(&both);
        assert_true(both.edges[0].delta_sum == -both.edges[1].delta_sum);
        for (size_t i = 0; i < DIM; i++) {
            const double moved = both.after[0][i] - both.before[0][i];
            const double other = both.after[1][i] - both.before[1][i];
            assert_true(fabs(moved + other) <= 32 * unit);
            had_unread |= moved == 0;
        }
    }
    assert_true(had_unread);
    assert_true(apart(both.after) < 1e-3);
    close_pair();
}

static void test_finds_together(void **state)
{
    (void)state;
    for (unsigned f = 0; f < FORMATS; f++)
        for (unsigned b = 0; b < BACKENDS; b++)
            meet_on(formats[f], backends[b]);
}

/* A quarter of the blocks at a time, others each time: the rest stays. */
static void test_share(void **state)
{
    (void)state;
    static struct exchange both;
    share = 0.25;
    for (unsigned f = 0; f < FORMATS; f++) {
        open_pair(formats[f], "naive64", "none");
        assert_int_equal(kith_worker_payload(first),
                         experiment.gossip.format->bytes(3 * 256));
        for (unsigned round = 0; round < 1200; round++) {
            size_t still = 0;
            exchange(&both);
            assert_true(both.edges[0].delta_sum == -both.edges[1].delta_sum);
            for (size_t i = 0; i < DIM; i++)
                still += both.after[0][i] == both.before[0][i];
            assert_true(still >= DIM - 3 * 256);
        }
        assert_true(apart(both.after) < 1e-3);
        close_pair();
    }
    share = 1;
}

/* What is taken back was added as it was read then, though grids have moved. */
static void test_undo(void **state)
{
    (void)state;
    static struct exchange both;
    for (unsigned f = 0; f < FORMATS; f++) {
        double x[DIM];
        open_pair(formats[f], "naive64", "none");
        for (unsigned round = 0; round < 12; round++) {
            exchange(&both);
            item(first, KITH_WORK_UNDO, KITH_PATTERN_SWAP, &both.edges[0]);
            kith_worker_read(first, x);
            for (size_t i = 0; i < DIM; i++)
                assert_true(fabs(x[i] - both.before[0][i]) <= 32 * unit);
            item(second, KITH_WORK_UNDO, KITH_PATTERN_SWAP, &both.edges[1]);
        }
        assert_true(apart(both.before) > 1);
        assert_true(both.edges[0].delta_sum != 0);
        close_pair();
    }
}

/* A slot that held a model holds a message again, which a pull does not. */
static void test_pull_is_whole(void **state)
{
    (void)state;
    for (unsigned f = 0; f < FORMATS; f++) {
        static struct exchange both;
        struct kith_work_edge a = asks, b = answers;
        double want[DIM], got[DIM];
        open_pair(formats[f], "cpu", "none");
        exchange(&both);
        kith_worker_read(second, want);
        item(second, KITH_WORK_SNAPSHOT, KITH_PATTERN_PULL, &b);
        memcpy(kith_worker_slot(first, a.inbox),
               kith_worker_slot(second, b.sent), kith_worker_bytes(first));
        item(first, KITH_WORK_ADOPT, KITH_PATTERN_PULL, &a);
        kith_worker_read(first, got);
        assert_memory_equal(got, want, sizeof want);
        /* Equal models stay where they are, but for grids that differ. */
        exchange(&both);
        assert_true(both.edges[0].delta_sum == -both.edges[1].delta_sum);
        close_pair();
    }
}

static void test_no_message(void **state)
{
    (void)state;
    for (unsigned f = 0; f < FORMATS; f++)
        for (unsigned kind = 0; kind < 2; kind++) {
            struct kith_work_edge a = asks;
            double before[DIM], after[DIM];
            open_pair(formats[f], "cpu", kind == 0 ? "none" : "clip");
            item(first, KITH_WORK_SNAPSHOT, KITH_PATTERN_SWAP, &a);
            kith_worker_read(first, before);
            /* No step; then steps that are, and no hash that fits. */
            memset(kith_worker_slot(first, a.inbox), 0xff,
                   kith_worker_payload(first));
            item(first, KITH_WORK_MERGE, KITH_PATTERN_SWAP, &a);
            assert_true(a.refused && a.delta_sum == 0);
            memset(kith_worker_slot(first, a.inbox), 0x77,
                   kith_worker_payload(first));
            item(first, KITH_WORK_MERGE, KITH_PATTERN_SWAP, &a);
            assert_true(!a.refused && a.delta_sum == 0);
            item(first, KITH_WORK_UNDO, KITH_PATTERN_SWAP, &a);
            kith_worker_read(first, after);
            assert_memory_equal(after, before, sizeof after);
            close_pair();
        }
}

/* The distance that a guard is told is near that of the models, whatever share
 * of the blocks was read. */
static void test_guard_sees_all(void **state)
{
    (void)state;
    static struct exchange both;
    unsigned told = 0;
    open_pair("moniqua4", "naive64", "balance");
    for (unsigned round = 0; round < 40; round++) {
        struct kith_mark mark = {.sum = 0};
        double squared = 0;
        exchange(&both);
        (void)kith_worker_guarded(first, &both.edges[0], &mark);
        for (size_t i = 0; i < DIM; i++) {
            const double off = both.before[1][i] - both.before[0][i];
            squared += off * off;
        }
        if (mark.sum == 0)
            continue; /* nothing could be read */
        told++;
        assert_true(mark.sum > 0.5 * sqrt(squared));
        assert_true(mark.sum < 2 * sqrt(squared));
    }
    assert_in_range(told, 10, 40);
    close_pair();
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_finds_together),
        cmocka_unit_test(test_share),
        cmocka_unit_test(test_undo),
        cmocka_unit_test(test_pull_is_whole),
        cmocka_unit_test(test_no_message),
        cmocka_unit_test(test_guard_sees_all),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
