/* Goal: whatever format messages have, two peers that exchange move by exact
 * opposites of what was rounded alike, a share that is given away loses nothing
 * to rounding, a pulled model arrives as it is, and what does not unpack is not
 * merged. Method: two workers, driven by hand, in float64 and in float32. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "worker_run.h"

enum { DIM = 5000, FORMATS = 3, BACKENDS = 3 };
static const char *const formats[FORMATS] = {"float32", "bfloat16", "int8"};
static const char *const backends[BACKENDS] = {"naive64", "naive32", "cpu"};

struct pair {
    struct kith_experiment experiment;
    struct kith_worker *a, *b;
    double unit; /* of the element type */
};

/* Workers keep pointers into the experiment. */
static void open_pair(struct pair *pair, const char *algorithm,
                      const char *format, const char *backend)
{
    struct kith_experiment *const experiment = &pair->experiment;
    *experiment = fixture_experiment("consensus", algorithm, 2);
    experiment->model_config.dim = DIM;
    experiment->backend = kith_backend_find(backend);
    experiment->gossip.format = kith_format_find(format);
    experiment->gossip.coefficients[KITH_GOSSIP_ELASTICITY] = 0.3;
    experiment->gossip.coefficients[KITH_GOSSIP_FRAGMENTS] = 3;
    pair->a = open_worker(experiment, NULL, 0, 10);
    pair->b = open_worker(experiment, NULL, 1, 10);
    pair->unit = experiment->backend->element_bytes == 4 ? 0x1p-23 : 0x1p-52;
}

static void close_pair(struct pair *pair)
{
    kith_worker_close(pair->a);
    kith_worker_close(pair->b);
}

/* Slots hold what travels. */
static void carry_message(struct kith_worker *from, uint32_t sent,
                          struct kith_worker *to, uint32_t inbox)
{
    memcpy(kith_worker_slot(to, inbox), kith_worker_slot(from, sent),
           kith_worker_payload(from));
}

/* Q(x), by the format alone. */
static void rounded(const struct pair *pair, const double *x, double *q)
{
    const struct kith_format *format = pair->experiment.gossip.format;
    const struct kith_backend *exact = kith_backend_find("naive64");
    static _Alignas(64) uint8_t wire[8 * DIM];
    if (format->raw) {
        memcpy(q, x, DIM * sizeof *q);
        return;
    }
    format->pack(exact, DIM, x, wire);
    format->unpack(exact, DIM, wire, 0, DIM, q);
}

static const struct kith_work_edge asks = {.peer = 1,
                                           .weight = 0.5,
                                           .sent = KITH_SLOT_INITIATED_SENT,
                                           .inbox = KITH_SLOT_INITIATED_INBOX};
static const struct kith_work_edge answers = {.peer = 0,
                                              .weight = 0.5,
                                              .sent = KITH_SLOT_ANSWERED_SENT,
                                              .inbox =
                                                  KITH_SLOT_ANSWERED_INBOX};

static void item(struct kith_worker *worker, enum kith_work_kind kind,
                 enum kith_pattern pattern, struct kith_work_edge *edge)
{
    (void)run(worker, (struct kith_work){.kind = kind,
                                         .pattern = pattern,
                                         .edges = edge,
                                         .edge_count = 1});
}

/* x_a += (Q(b) - Q(a)) / 2 and the opposite, although a has sent before b was
 * asked; undo takes a side back. */
static void swap_on(const char *algorithm, const char *format,
                    const char *backend)
{
    struct pair pair;
    open_pair(&pair, algorithm, format, backend);
    struct kith_work_edge a = asks, b = answers;
    double before[2][DIM], q[2][DIM], after[2][DIM];
    kith_worker_read(pair.a, before[0]);
    kith_worker_read(pair.b, before[1]);
    rounded(&pair, before[0], q[0]);
    rounded(&pair, before[1], q[1]);

    item(pair.a, KITH_WORK_SNAPSHOT, KITH_PATTERN_SWAP, &a);
    train(pair.a, 2);
    item(pair.b, KITH_WORK_SNAPSHOT, KITH_PATTERN_SWAP, &b);
    carry_message(pair.a, a.sent, pair.b, b.inbox);
    carry_message(pair.b, b.sent, pair.a, a.inbox);
    item(pair.b, KITH_WORK_MERGE, KITH_PATTERN_SWAP, &b);
    item(pair.a, KITH_WORK_MERGE, KITH_PATTERN_SWAP, &a);

    kith_worker_read(pair.a, after[0]);
    kith_worker_read(pair.b, after[1]);
    assert_true(a.delta_sum == -b.delta_sum && a.delta_sum != 0);
    for (size_t i = 0; i < DIM; i++)
        for (unsigned side = 0; side < 2; side++) {
            const double want =
                before[side][i] + 0.5 * (q[1 - side][i] - q[side][i]);
            assert_true(fabs(after[side][i] - want) <= 16 * pair.unit);
        }

    const double added = b.delta_sum;
    item(pair.b, KITH_WORK_UNDO, KITH_PATTERN_SWAP, &b);
    assert_true(b.delta_sum == added);
    kith_worker_read(pair.b, after[1]);
    for (size_t i = 0; i < DIM; i++)
        assert_true(fabs(after[1][i] - before[1][i]) <= 16 * pair.unit);
    close_pair(&pair);
}

/* adpsgd merges what stays packed, swarm vectors that were unpacked. */
static void swap_both(const char *format, const char *backend)
{
    swap_on("adpsgd", format, backend);
    swap_on("swarm", format, backend);
}

static void test_swap(void **state)
{
    (void)state;
    for (unsigned f = 0; f < FORMATS; f++)
        for (unsigned b = 0; b < BACKENDS; b++)
            swap_both(formats[f], backends[b]);
}

/* Weight times value, of one coordinate. */
static double mass(struct kith_worker *worker, double z)
{
    return kith_worker_scalars(worker)[0] * z;
}

/* A share leaves a for b, or comes home: the weighted sum stays, coordinate by
 * coordinate. */
static void push_on(const char *algorithm, const char *format, bool arrives)
{
    struct pair pair;
    open_pair(&pair, algorithm, format, "naive64");
    struct kith_work_edge a = asks, b = answers;
    double before[2][DIM], after[2][DIM], total[DIM];
    kith_worker_read(pair.a, before[0]);
    kith_worker_read(pair.b, before[1]);
    for (size_t i = 0; i < DIM; i++)
        total[i] = mass(pair.a, before[0][i]) + mass(pair.b, before[1][i]);

    item(pair.a, KITH_WORK_SNAPSHOT, KITH_PATTERN_PUSH, &a);
    if (arrives) {
        carry_message(pair.a, a.sent, pair.b, b.inbox);
        memcpy(b.scalars_received, a.scalars_sent, sizeof b.scalars_received);
        item(pair.b, KITH_WORK_MERGE, KITH_PATTERN_PUSH, &b);
        assert_false(b.refused);
    } else {
        item(pair.a, KITH_WORK_UNDO, KITH_PATTERN_PUSH, &a);
    }

    kith_worker_read(pair.a, after[0]);
    kith_worker_read(pair.b, after[1]);
    for (size_t i = 0; i < DIM; i++) {
        const double scale = fabs(kith_worker_scalars(pair.a)[0]) +
                             fabs(kith_worker_scalars(pair.b)[0]);
        const double now =
            mass(pair.a, after[0][i]) + mass(pair.b, after[1][i]);
        assert_true(fabs(now - total[i]) <= 64 * 0x1p-52 * scale * 4);
    }
    /* In sgp both ends book what left, to the last bit. */
    if (arrives && strcmp(algorithm, "sgp") == 0)
        assert_true(a.delta_sum == -b.delta_sum && a.delta_sum != 0);
    close_pair(&pair);
}

/* What is asked for at a step boundary and what is prepared for an answer is
 * one vector until x changes; a snapshot under way keeps its bytes. */
static void test_one_x_is_packed_once(void **state)
{
    (void)state;
    struct pair pair;
    open_pair(&pair, "adpsgd", "bfloat16", "cpu");
    struct kith_work_edge a = asks, b = answers;
    double x[DIM], q[DIM];
    uint8_t kept[2 * DIM];
    const struct kith_format *format = pair.experiment.gossip.format;
    const struct kith_backend *backend = pair.experiment.backend;

    item(pair.a, KITH_WORK_SNAPSHOT, KITH_PATTERN_SWAP, &a);
    item(pair.a, KITH_WORK_SNAPSHOT, KITH_PATTERN_SWAP, &b);
    const void *const first = kith_worker_slot(pair.a, a.sent);
    assert_ptr_equal(first, kith_worker_slot(pair.a, b.sent));
    memcpy(kept, first, sizeof kept);

    struct kith_work_edge other = asks;
    item(pair.b, KITH_WORK_SNAPSHOT, KITH_PATTERN_SWAP, &other);
    carry_message(pair.b, other.sent, pair.a, a.inbox);
    item(pair.a, KITH_WORK_MERGE, KITH_PATTERN_SWAP, &a);
    item(pair.a, KITH_WORK_SNAPSHOT, KITH_PATTERN_SWAP, &b);
    assert_ptr_equal(first, kith_worker_slot(pair.a, a.sent));
    assert_memory_equal(kept, first, sizeof kept);
    assert_ptr_not_equal(first, kith_worker_slot(pair.a, b.sent));

    item(pair.a, KITH_WORK_SNAPSHOT, KITH_PATTERN_PULL, &b);
    item(pair.a, KITH_WORK_SNAPSHOT, KITH_PATTERN_SWAP, &a);
    static _Alignas(64) float back[DIM];
    format->unpack(backend, DIM, kith_worker_slot(pair.a, a.sent), 0, DIM,
                   back);
    kith_worker_read(pair.a, x);
    rounded(&pair, x, q);
    for (size_t i = 0; i < DIM; i++)
        assert_true((double)back[i] == q[i]);
    close_pair(&pair);
}

static void test_push(void **state)
{
    (void)state;
    for (unsigned f = 0; f < FORMATS; f++)
        for (unsigned arrives = 0; arrives < 2; arrives++) {
            push_on("sgp", formats[f], arrives);
            push_on("gosgd", formats[f], arrives);
        }
}

/* Who starts over takes a model as it is, from a slot that held a packed
 * message before. */
static void test_pull_is_whole(void **state)
{
    (void)state;
    for (unsigned f = 0; f < FORMATS; f++) {
        struct pair pair;
        open_pair(&pair, "adpsgd", formats[f], "cpu");
        struct kith_work_edge a = asks, b = answers;
        double want[DIM], got[DIM];
        item(pair.b, KITH_WORK_SNAPSHOT, KITH_PATTERN_SWAP, &b);
        kith_worker_read(pair.b, want);
        item(pair.b, KITH_WORK_SNAPSHOT, KITH_PATTERN_PULL, &b);
        memcpy(kith_worker_slot(pair.a, a.inbox),
               kith_worker_slot(pair.b, b.sent), kith_worker_bytes(pair.a));
        item(pair.a, KITH_WORK_ADOPT, KITH_PATTERN_PULL, &a);
        kith_worker_read(pair.a, got);
        assert_memory_equal(got, want, sizeof want);
        /* And the slot packs again, without touching x. */
        item(pair.b, KITH_WORK_SNAPSHOT, KITH_PATTERN_SWAP, &b);
        kith_worker_read(pair.b, got);
        assert_memory_equal(got, want, sizeof want);
        close_pair(&pair);
    }
}

/* The gate is before the worker; what passes it by mistake changes nothing
 * where messages are unpacked whole. */
static void test_spoilt_is_refused(void **state)
{
    (void)state;
    for (unsigned f = 1; f < FORMATS; f++) {
        struct pair pair;
        open_pair(&pair, "swarm", formats[f], "cpu");
        struct kith_work_edge a = asks;
        double before[DIM], after[DIM];
        item(pair.a, KITH_WORK_SNAPSHOT, KITH_PATTERN_SWAP, &a);
        memset(kith_worker_slot(pair.a, a.inbox), 0xff,
               kith_worker_payload(pair.a));
        kith_worker_read(pair.a, before);
        item(pair.a, KITH_WORK_MERGE, KITH_PATTERN_SWAP, &a);
        assert_true(a.refused && a.delta_sum == 0);
        kith_worker_read(pair.a, after);
        assert_memory_equal(after, before, sizeof after);
        /* What was never added is not taken back. */
        item(pair.a, KITH_WORK_UNDO, KITH_PATTERN_SWAP, &a);
        kith_worker_read(pair.a, after);
        assert_memory_equal(after, before, sizeof after);
        close_pair(&pair);
    }
}

static double total(const double *values)
{
    double sum = 0;
    for (size_t i = 0; i < DIM; i++)
        sum += values[i];
    return sum;
}

/* A guard sees the numbers that are merged: its distance is theirs, and what it
 * withholds of a far one is booked. */
static void guarded_on(const char *guard, const char *format)
{
    struct pair pair;
    open_pair(&pair, "adpsgd", format, "naive64");
    kith_worker_close(pair.a);
    (void)snprintf(pair.experiment.gossip.guard,
                   sizeof pair.experiment.gossip.guard, "%s", guard);
    pair.experiment.gossip.guarded.tolerance = 0.3;
    pair.a = open_worker(&pair.experiment, NULL, 0, 10);
    struct kith_work_edge a = asks, b = answers;
    struct kith_mark mark;
    double x[2][DIM], q[2][DIM], after[DIM], squared = 0;
    kith_worker_read(pair.a, x[0]);
    kith_worker_read(pair.b, x[1]);
    rounded(&pair, x[0], q[0]);
    rounded(&pair, x[1], q[1]);
    for (size_t i = 0; i < DIM; i++)
        squared += (q[1][i] - q[0][i]) * (q[1][i] - q[0][i]);
    item(pair.a, KITH_WORK_SNAPSHOT, KITH_PATTERN_SWAP, &a);
    item(pair.b, KITH_WORK_SNAPSHOT, KITH_PATTERN_SWAP, &b);
    carry_message(pair.b, b.sent, pair.a, a.inbox);
    item(pair.a, KITH_WORK_MERGE, KITH_PATTERN_SWAP, &a);
    (void)kith_worker_guarded(pair.a, &a, &mark);
    assert_true(fabs(mark.sum - sqrt(squared)) <= 1e-9 * sqrt(squared));

    const struct kith_lie far = {.kind = KITH_LIE_SCALE, .by = -1000};
    a = asks;
    b = answers;
    kith_worker_lie(pair.b, &far);
    item(pair.a, KITH_WORK_SNAPSHOT, KITH_PATTERN_SWAP, &a);
    item(pair.b, KITH_WORK_SNAPSHOT, KITH_PATTERN_SWAP, &b);
    carry_message(pair.b, b.sent, pair.a, a.inbox);
    kith_worker_read(pair.a, x[0]);
    rounded(&pair, x[0], q[0]);
    for (size_t i = 0; i < DIM; i++)
        x[1][i] *= -1000;
    rounded(&pair, x[1], q[1]);
    item(pair.a, KITH_WORK_MERGE, KITH_PATTERN_SWAP, &a);
    assert_true(kith_worker_guarded(pair.a, &a, &mark));
    assert_int_equal(mark.kind, KITH_MARK_REJECTED);
    const double whole = 0.5 * (total(q[1]) - total(q[0]));
    assert_true(fabs(a.delta_sum - whole) <= 1e-9 * fabs(whole));
    assert_true(kith_worker_withheld(pair.a, &a) == a.delta_sum);
    kith_worker_read(pair.a, after);
    assert_memory_equal(after, x[0], sizeof after);
    close_pair(&pair);
}

static void test_guards_see_what_is_merged(void **state)
{
    (void)state;
    for (unsigned f = 0; f < FORMATS; f++) {
        guarded_on("clip", formats[f]);
        guarded_on("balance", formats[f]);
    }
}

/* A liar's message is packed like any other; it merges against the truth. */
static void test_lies_are_packed(void **state)
{
    (void)state;
    const struct kith_lie flip = {.kind = KITH_LIE_FLIP};
    for (unsigned f = 0; f < FORMATS; f++) {
        struct pair pair;
        open_pair(&pair, "adpsgd", formats[f], "naive64");
        struct kith_work_edge a = asks, b = answers;
        double x[2][DIM], q[DIM], got[DIM];
        kith_worker_read(pair.a, x[0]);
        kith_worker_read(pair.b, x[1]);
        rounded(&pair, x[1], q);
        kith_worker_lie(pair.a, &flip);
        item(pair.a, KITH_WORK_SNAPSHOT, KITH_PATTERN_SWAP, &a);
        item(pair.b, KITH_WORK_SNAPSHOT, KITH_PATTERN_SWAP, &b);
        carry_message(pair.a, a.sent, pair.b, b.inbox);
        carry_message(pair.b, b.sent, pair.a, a.inbox);
        item(pair.a, KITH_WORK_MERGE, KITH_PATTERN_SWAP, &a);
        item(pair.b, KITH_WORK_MERGE, KITH_PATTERN_SWAP, &b);
        kith_worker_read(pair.a, got);
        for (size_t i = 0; i < DIM; i++)
            assert_true(fabs(got[i] - (x[0][i] + 0.5 * (q[i] - x[0][i]))) <=
                        16 * pair.unit);
        double lie[DIM], own[DIM];
        for (size_t i = 0; i < DIM; i++)
            lie[i] = -x[0][i];
        rounded(&pair, lie, own);
        kith_worker_read(pair.b, got);
        for (size_t i = 0; i < DIM; i++)
            assert_true(fabs(got[i] - (x[1][i] + 0.5 * (own[i] - q[i]))) <=
                        16 * pair.unit);
        close_pair(&pair);
    }
}

/* Values of 1e19 from a member whose books are its own: both ends add exact
 * opposites, and what it keeps of a share is its own share's. */
static void test_huge_members(void **state)
{
    (void)state;
    const struct kith_lie huge = {
        .kind = KITH_LIE_HUGE, .by = 1e19, .models = 1};
    const struct kith_lie always = {.kind = KITH_LIE_HUGE, .by = 1e19};
    for (unsigned f = 0; f < FORMATS; f++) {
        struct pair pair;
        open_pair(&pair, "elastic", formats[f], "naive64");
        struct kith_work_edge a = asks, b = answers;
        kith_worker_lie(pair.b, &always);
        item(pair.a, KITH_WORK_SNAPSHOT, KITH_PATTERN_SWAP, &a);
        item(pair.b, KITH_WORK_SNAPSHOT, KITH_PATTERN_SWAP, &b);
        carry_message(pair.a, a.sent, pair.b, b.inbox);
        carry_message(pair.b, b.sent, pair.a, a.inbox);
        item(pair.a, KITH_WORK_MERGE, KITH_PATTERN_SWAP, &a);
        item(pair.b, KITH_WORK_MERGE, KITH_PATTERN_SWAP, &b);
        assert_true(a.delta_sum == -b.delta_sum && fabs(a.delta_sum) > 1e15);
        close_pair(&pair);

        open_pair(&pair, "sgp", formats[f], "naive64");
        a = asks;
        kith_worker_lie(pair.a, &huge);
        item(pair.a, KITH_WORK_SNAPSHOT, KITH_PATTERN_PUSH, &a);
        double x[DIM];
        kith_worker_read(pair.a, x);
        for (size_t i = 0; i < DIM; i++)
            assert_true(fabs(x[i]) < 1e3);
        close_pair(&pair);
    }
}

/* A message that is longer than what is said leaves with zeros behind it, not
 * with what stood there: whatever a peer sent before, it sends the same. */
static void test_no_remains(void **state)
{
    (void)state;
    for (unsigned f = 0; f < FORMATS; f++) {
        struct pair pair;
        open_pair(&pair, "streaming", formats[f], "cpu");
        kith_worker_close(pair.a);
        pair.experiment.gossip.topology = kith_topology_find("ring");
        pair.a = open_worker(&pair.experiment, NULL, 0, 10);
        struct kith_work_edge edge = {.peer = KITH_NOBODY,
                                      .sent = KITH_SLOT_ROUND_SENT,
                                      .inbox = KITH_SLOT_NONE};
        static uint8_t first[4 * DIM], again[4 * DIM];
        const size_t bytes = kith_worker_payload(pair.a);
        assert_true(bytes <= sizeof first);
        for (uint64_t round = 2; round < 6; round++) {
            (void)run(pair.a, (struct kith_work){.kind = KITH_WORK_SNAPSHOT,
                                                 .pattern = KITH_PATTERN_ROUND,
                                                 .round = round,
                                                 .edges = &edge,
                                                 .edge_count = 1});
            memcpy(round == 2 ? first : again,
                   kith_worker_slot(pair.a, KITH_SLOT_ROUND_SENT), bytes);
        }
        assert_memory_equal(again, first, bytes);
        close_pair(&pair);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_swap),
        cmocka_unit_test(test_one_x_is_packed_once),
        cmocka_unit_test(test_push),
        cmocka_unit_test(test_pull_is_whole),
        cmocka_unit_test(test_spoilt_is_refused),
        cmocka_unit_test(test_guards_see_what_is_merged),
        cmocka_unit_test(test_lies_are_packed),
        cmocka_unit_test(test_huge_members),
        cmocka_unit_test(test_no_remains),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
