/* Goal: a peer on a device and one on a CPU exchange packed and compressed
 * messages as two on CPUs do: the same messages, decisions and models, to the
 * last bit, deltas exact opposites. Method: pairs of workers by hand, on the
 * CUDA module's emulation and on backend cpu; their formats are
 * test_cuda_packing's, their compressors test_cuda_compressors's. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cuda_cases.h"
#include "kith/format.h"
#include "worker_run.h"

enum { EARLY, LATE, LATE_FETCH, ORDERS }; /* as in tests/cuda/emulate.h */
enum { DIM = 2500, EXCHANGES = 16 };
#define COUNT(list) (sizeof(list) / sizeof(list)[0])

static const struct kith_backend *gpu, *half, *cpu;
static void (*set_order)(int order);

static bool packs_whole(const struct kith_format *format)
{
    return !format->raw && format->residue_bits == 0;
}

/* ---- pairs */

/* What a pair did; messages are those of both ends, one after another. */
struct outcome {
    double first[2][DIM], models[2][DIM], sums[EXCHANGES][2];
    uint8_t *messages;
    size_t bytes;
    bool refused[EXCHANGES][2];
    int far[EXCHANGES][2];
    struct kith_mark marks[EXCHANGES][2];
};

struct way {
    const char *algorithm, *format, *guard;
    double share;
    uint64_t exchanges;     /* grids find together in some of them */
    const char *compressor; /* NULL: none */
};

static void note(struct outcome *outcome, const void *message, size_t bytes)
{
    outcome->messages = realloc(outcome->messages, outcome->bytes + bytes);
    assert_non_null(outcome->messages);
    memcpy(outcome->messages + outcome->bytes, message, bytes);
    outcome->bytes += bytes;
}

static void item(struct kith_worker *worker, enum kith_work_kind kind,
                 const struct kith_algorithm *algorithm, uint64_t number,
                 struct kith_work_edge *edge)
{
    (void)run(worker, (struct kith_work){.kind = kind,
                                         .pattern = algorithm->pattern,
                                         .step = number,
                                         .round = number,
                                         .edges = edge,
                                         .edge_count = 1});
}

static void carry_message(struct outcome *outcome, struct kith_worker *from,
                          const struct kith_work_edge *source,
                          struct kith_worker *to, struct kith_work_edge *target)
{
    const size_t bytes = kith_worker_payload(from);
    assert_int_equal(kith_worker_outgoing(from, source->sent, true),
                     KITH_OUTGOING_READY);
    const void *const message = kith_worker_slot(from, source->sent);
    note(outcome, message, bytes);
    memcpy(kith_worker_slot(to, target->inbox), message, bytes);
    memcpy(target->scalars_received, source->scalars_sent,
           sizeof target->scalars_received);
    kith_worker_arrived(to, target->inbox);
}

/* As member `self`, the first of whom asks. */
static struct kith_work_edge edge_of(const struct kith_algorithm *algorithm,
                                     unsigned self, uint64_t number)
{
    struct kith_work_edge edge = {.peer = 1 - self, .weight = 0.5};
    if (algorithm->pattern == KITH_PATTERN_ROUND) {
        edge.sent = (algorithm->flags & KITH_SENDS_EDGE_MESSAGES)
                        ? kith_slot_outbox(0)
                        : KITH_SLOT_ROUND_SENT;
        edge.inbox = kith_slot_inbox(0, number);
        return edge;
    }
    edge.sent = self == 0 ? KITH_SLOT_INITIATED_SENT : KITH_SLOT_ANSWERED_SENT;
    edge.inbox =
        self == 0 ? KITH_SLOT_INITIATED_INBOX : KITH_SLOT_ANSWERED_INBOX;
    return edge;
}

static void exchange(const struct way *way, struct kith_worker *workers[2],
                     uint64_t number, struct outcome *outcome)
{
    const struct kith_algorithm *algorithm =
        kith_algorithm_find(way->algorithm);
    const bool pushes = algorithm->pattern == KITH_PATTERN_PUSH;
    for (unsigned k = 0; k < 2; k++)
        (void)run(workers[k],
                  (struct kith_work){.kind = KITH_WORK_TRAIN, .step = number});
    struct kith_work_edge edges[2] = {edge_of(algorithm, 0, number),
                                      edge_of(algorithm, 1, number)};
    for (unsigned k = 0; k < (pushes ? 1u : 2u); k++)
        item(workers[k], KITH_WORK_SNAPSHOT, algorithm, number, &edges[k]);
    for (unsigned k = 0; k < (pushes ? 1u : 2u); k++)
        carry_message(outcome, workers[k], &edges[k], workers[1 - k],
                      &edges[1 - k]);
    for (unsigned k = pushes ? 1 : 0; k < 2; k++)
        item(workers[k], KITH_WORK_MERGE, algorithm, number, &edges[k]);
    for (unsigned k = 0; k < 2; k++) {
        outcome->sums[number][k] = edges[k].delta_sum;
        outcome->refused[number][k] = edges[k].refused;
        outcome->far[number][k] = edges[k].far;
        if (k == 1 || !pushes)
            (void)kith_worker_guarded(workers[k], &edges[k],
                                      &outcome->marks[number][k]);
    }
    /* Both take one back; what is compressed is never taken back. */
    const bool undoes = !(algorithm->flags & KITH_CHECKS_ITS_MESSAGES);
    for (unsigned k = 0; k < 2 && number % 4 == 1 && !pushes && undoes; k++)
        item(workers[k], KITH_WORK_UNDO, algorithm, number, &edges[k]);
}

/* Blocks, of which the last is short. */
static void compress(struct kith_experiment *experiment, const char *compressor)
{
    (void)snprintf(experiment->gossip.compressor,
                   sizeof experiment->gossip.compressor, "%s",
                   compressor == NULL ? "none" : compressor);
    experiment->gossip.compression = kith_compressor_defaults();
    experiment->gossip.compression.density = 0.1;
    experiment->gossip.compression.block = 600;
}

static void run_pair(const struct way *way, const struct kith_backend *first,
                     const struct kith_backend *second, struct outcome *outcome)
{
    const struct kith_backend *const backends[] = {first, second};
    struct kith_experiment experiments[2];
    struct kith_worker *workers[2];
    memset(outcome, 0, sizeof *outcome);
    for (unsigned k = 0; k < 2; k++) {
        struct kith_experiment *const experiment = &experiments[k];
        *experiment = fixture_experiment("consensus", way->algorithm, 2);
        experiment->model_config.dim = DIM;
        experiment->backend = backends[k];
        experiment->gossip.format = kith_format_find(way->format);
        experiment->gossip.wire_share = way->share;
        memcpy(experiment->gossip.coefficients,
               experiment->gossip.algorithm->initial,
               sizeof experiment->gossip.coefficients);
        experiment->gossip.coefficients[KITH_GOSSIP_ELASTICITY] = 0.3;
        experiment->gossip.coefficients[KITH_GOSSIP_CONSENSUS] = 0.2;
        compress(experiment, way->compressor);
        (void)snprintf(experiment->gossip.guard,
                       sizeof experiment->gossip.guard, "%s", way->guard);
        experiment->gossip.guarded.tolerance = 0.3;
        workers[k] = open_worker(experiment, NULL, k, 10);
        kith_worker_read(workers[k], outcome->first[k]);
    }
    for (uint64_t number = 0; number < way->exchanges; number++)
        exchange(way, workers, number, outcome);
    for (unsigned k = 0; k < 2; k++) {
        kith_worker_read(workers[k], outcome->models[k]);
        assert_null(kith_worker_failed(workers[k]));
        kith_worker_close(workers[k]);
    }
}

static void same_outcome(const struct way *way, const struct outcome *got,
                         const struct outcome *want)
{
    const char *what = NULL;
    if (memcmp(got->models, want->models, sizeof got->models) != 0)
        what = "other models";
    if (got->bytes != want->bytes ||
        memcmp(got->messages, want->messages, got->bytes) != 0)
        what = "other messages";
    for (unsigned e = 0; e < EXCHANGES; e++)
        for (unsigned k = 0; k < 2; k++) {
            const struct kith_mark *a = &got->marks[e][k];
            const struct kith_mark *b = &want->marks[e][k];
            if (got->refused[e][k] != want->refused[e][k] ||
                got->far[e][k] != want->far[e][k] || a->kind != b->kind ||
                a->value != b->value)
                what = "other decisions";
            if (!(fabs(a->sum - b->sum) <= 1e-12 * fabs(b->sum)))
                what = "other distances";
            if (!(fabs(got->sums[e][k] - want->sums[e][k]) <= 1e-9))
                what = "other sums";
        }
    if (what != NULL)
        fail_msg("%s, %s, %s, guard %s: %s", way->algorithm, way->format,
                 way->compressor == NULL ? "none" : way->compressor, way->guard,
                 what);
}

static void same_pairs(const struct way *way)
{
    static struct outcome want, mixed, both;
    run_pair(way, cpu, cpu, &want);
    double moved = 0;
    /* A guard may let nothing in, and books it. */
    for (unsigned e = 0; e < way->exchanges; e++)
        moved += fabs(want.sums[e][1]);
    for (unsigned i = 0; i < DIM; i++)
        moved += fabs(want.models[1][i] - want.first[1][i]);
    if (!(moved > 0))
        fail_msg("%s, %s: nothing moved", way->algorithm, way->format);
    for (int order = EARLY; order < ORDERS; order++) {
        if (set_order != NULL)
            set_order(order);
        run_pair(way, cpu, gpu, &mixed);
        same_outcome(way, &mixed, &want);
        run_pair(way, gpu, gpu, &both);
        same_outcome(way, &both, &want);
        if (set_order != NULL)
            set_order(EARLY);
        free(mixed.messages);
        free(both.messages);
    }
    free(want.messages);
}

/* A value's delta on one end is the other's, negative, as both have the CPU's
 * bits; and none of these moved by nothing. */
static void test_pairs(void **state)
{
    (void)state;
    static const struct way ways[] = {{"adpsgd", NULL, "none", 0, 0, NULL},
                                      {"adpsgd", NULL, "clip", 0, 0, NULL},
                                      {"elastic", NULL, "none", 0, 0, NULL},
                                      {"dpsgd", NULL, "none", 0, 0, NULL},
                                      {"dpsgd", NULL, "cs+", 0, 0, NULL},
                                      {"dpsgd-atc", NULL, "clip", 0, 0, NULL},
                                      /* Not of residues: */
                                      {"qg-adam", NULL, "none", 0, 0, NULL},
                                      {"swarm", NULL, "none", 0, 0, NULL},
                                      {"sgp", NULL, "none", 0, 0, NULL},
                                      {"gosgd", NULL, "none", 0, 0, NULL},
                                      {"sparta", NULL, "none", 0, 0, NULL}};
    enum { OF_RESIDUES = 6 };
    for (size_t f = 0; kith_formats[f] != NULL; f++) {
        const bool modular = kith_formats[f]->residue_bits > 0;
        for (size_t w = 0; w < (modular ? OF_RESIDUES : COUNT(ways)); w++) {
            struct way way = ways[w];
            way.format = kith_formats[f]->name;
            way.exchanges = modular ? EXCHANGES : 4;
            same_pairs(&way);
            way.share = 0.5;
            if (modular)
                same_pairs(&way);
        }
    }
}

/* Copies that begin apart start over, and then follow. */
static void test_compressed_pairs(void **state)
{
    (void)state;
    static const char *const algorithms[] = {"choco", "beer"};
    for (size_t a = 0; a < COUNT(algorithms); a++)
        for (size_t c = 0; kith_compressors[c] != NULL; c++) {
            const struct way way = {.algorithm = algorithms[a],
                                    .format = "float32",
                                    .guard = "none",
                                    .exchanges = 6,
                                    .compressor = kith_compressors[c]->name};
            if (kith_compressors[c]->raw || kith_compressors[c]->pack != NULL)
                same_pairs(&way);
        }
}

/* ---- what is not as it should be */

/* What passed the gate by mistake is left out, on a device too. */
static void test_spoilt_is_refused(void **state)
{
    (void)state;
    for (size_t f = 0; kith_formats[f] != NULL; f++) {
        if (!packs_whole(kith_formats[f]))
            continue;
        const struct kith_algorithm *adpsgd = kith_algorithm_find("adpsgd");
        struct kith_experiment experiment =
            fixture_experiment("consensus", "adpsgd", 2);
        static double before[DIM], after[DIM];
        experiment.model_config.dim = DIM;
        experiment.backend = gpu;
        experiment.gossip.format = kith_formats[f];
        struct kith_worker *const worker =
            open_worker(&experiment, NULL, 0, 10);
        struct kith_work_edge edge = edge_of(adpsgd, 0, 0);
        item(worker, KITH_WORK_SNAPSHOT, adpsgd, 0, &edge);
        memset(kith_worker_slot(worker, edge.inbox), 0xff,
               kith_worker_payload(worker));
        kith_worker_arrived(worker, edge.inbox);
        kith_worker_read(worker, before);
        item(worker, KITH_WORK_MERGE, adpsgd, 0, &edge);
        assert_true(edge.refused);
        kith_worker_read(worker, after);
        assert_memory_equal(after, before, sizeof after);
        kith_worker_close(worker);
    }
}

/* Who starts over takes a model as it is, through slots that held a packed
 * message; and one that lies sends what it says, packed. */
static void test_pull_and_huge(void **state)
{
    (void)state;
    const struct kith_algorithm *adpsgd = kith_algorithm_find("adpsgd");
    for (size_t f = 0; kith_formats[f] != NULL; f++) {
        const struct kith_format *format = kith_formats[f];
        struct kith_experiment experiment =
            fixture_experiment("consensus", "adpsgd", 2);
        static double want[DIM], got[DIM];
        static float huge[DIM];
        if (!packs_whole(format))
            continue;
        experiment.model_config.dim = DIM;
        experiment.backend = gpu;
        experiment.gossip.format = format;
        struct kith_worker *const a = open_worker(&experiment, NULL, 0, 10);
        struct kith_worker *const b = open_worker(&experiment, NULL, 1, 10);
        struct kith_work_edge asks = edge_of(adpsgd, 0, 0);
        struct kith_work_edge answers = edge_of(adpsgd, 1, 0);
        item(b, KITH_WORK_SNAPSHOT, adpsgd, 0, &answers);
        kith_worker_read(b, want);
        struct kith_work pull = {.kind = KITH_WORK_SNAPSHOT,
                                 .pattern = KITH_PATTERN_PULL,
                                 .edges = &answers,
                                 .edge_count = 1};
        (void)run(b, pull);
        assert_int_equal(kith_worker_outgoing(b, answers.sent, true),
                         KITH_OUTGOING_READY);
        memcpy(kith_worker_slot(a, asks.inbox),
               kith_worker_slot(b, answers.sent), kith_worker_bytes(a));
        kith_worker_arrived(a, asks.inbox);
        pull.kind = KITH_WORK_ADOPT;
        pull.edges = &asks;
        (void)run(a, pull);
        kith_worker_read(a, got);
        assert_memory_equal(got, want, sizeof want);

        const struct kith_lie lie = {.kind = KITH_LIE_HUGE, .by = 1e19};
        kith_worker_lie(b, &lie);
        item(b, KITH_WORK_SNAPSHOT, adpsgd, 0, &answers);
        assert_int_equal(kith_worker_outgoing(b, answers.sent, true),
                         KITH_OUTGOING_READY);
        format->unpack(cpu, DIM, kith_worker_slot(b, answers.sent), 0, DIM,
                       huge);
        for (size_t i = 0; i < DIM; i++)
            assert_true(fabs(fabs((double)huge[i]) - 1e19) <= 1e17);
        kith_worker_close(a);
        kith_worker_close(b);
    }
}

int main(void)
{
    if (!cuda_module_found(&gpu, &half))
        return 77;
    cuda_find(&set_order, "kith_emulate_order");
    cpu = kith_backend_find("cpu");
    kith_backend_threads(1);
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_pairs),
        cmocka_unit_test(test_compressed_pairs),
        cmocka_unit_test(test_spoilt_is_refused),
        cmocka_unit_test(test_pull_and_huge),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
