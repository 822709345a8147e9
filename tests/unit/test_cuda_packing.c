/* Goal: what a device packs are the bytes that a CPU packs, whatever the values
 * are, what it unpacks are the CPU's values, and a peer on a device and one on
 * a CPU exchange as two on CPUs do: the same messages, decisions and models, to
 * the last bit, deltas exact opposites. Method: the CUDA module's emulation
 * beside backend cpu: formats alone, then pairs of workers by hand. */
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
#include "kith/rng.h"
#include "worker_run.h"

enum { EARLY, LATE, LATE_FETCH, ORDERS }; /* as in tests/cuda/emulate.h */
enum { DIM = 2500, EXCHANGES = 16, MOST = 65471 };
#define COUNT(list) (sizeof(list) / sizeof(list)[0])

static const struct kith_backend *gpu, *half, *cpu;
static void (*set_order)(int order);

static bool packs_whole(const struct kith_format *format)
{
    return !format->raw && format->residue_bits == 0;
}

/* ---- bytes */

enum { FINE, WILD, KINDS };

/* Magnitudes from 2^-140 to 2^127; WILD: some are infinite or no number, with
 * bits of their own. */
static void draw(size_t n, unsigned kind, float *values)
{
    struct kith_rng rng;
    kith_rng_init(&rng, 3 + kind, KITH_STREAM_TEST, n);
    const int span = n % 2 == 0 ? 30 : 267;
    for (size_t i = 0; i < n; i++) {
        const int power = (int)kith_rng_below(&rng, (uint32_t)span) - 140;
        const double sign = kith_rng_below(&rng, 2) == 0 ? 1 : -1;
        values[i] = kith_rng_below(&rng, 16) == 0
                        ? 0
                        : (float)(sign * ldexp(kith_rng_double(&rng), power));
        if (kind == WILD && kith_rng_below(&rng, 300) == 0) {
            const uint32_t bits =
                0x7f800000u | (kith_rng_u32(&rng) & 0x807fffffu);
            memcpy(values + i, &bits, sizeof bits);
        }
    }
}

/* Where memory of both is, and what stands there. */
struct room {
    float *v, *back;
    uint8_t *wire;
};

static struct room room_on(const struct kith_backend *on)
{
    return (struct room){.v = on->alloc((MOST + 8) * sizeof(float), false),
                         .back = on->alloc((MOST + 8) * sizeof(float), false),
                         .wire = on->alloc((MOST + 8) * sizeof(float), true)};
}

static void room_close(const struct kith_backend *on, const struct room *room)
{
    on->release(room->v);
    on->release(room->back);
    on->release(room->wire);
}

/* Bits, which `read` and `write` would carry through float64. */
static void put(const float *values, size_t n, float *on_device)
{
    float *const shared = gpu->alloc((n + 1) * sizeof *shared, true);
    memcpy(shared, values, n * sizeof *shared);
    gpu->copy(n, on_device, shared);
    gpu->release(shared);
}

static void get(const float *on_device, size_t n, float *values)
{
    float *const shared = gpu->alloc((n + 1) * sizeof *shared, true);
    gpu->copy(n, shared, on_device);
    assert_true(gpu->settled(shared, true));
    memcpy(values, shared, n * sizeof *values);
    gpu->release(shared);
}

static void same_bytes(const struct kith_format *format, size_t n,
                       unsigned kind, const struct room *device)
{
    const size_t bytes = format->bytes(n);
    struct room host = room_on(cpu);
    float *const got = malloc((n + 1) * sizeof *got);
    draw(n, kind, host.v);
    put(host.v, n, device->v);
    memset(device->wire, 0xa5, bytes + 64);
    format->pack(cpu, n, host.v, host.wire);
    format->pack(gpu, n, device->v, device->wire);
    assert_true(gpu->settled(device->wire, true));
    if (memcmp(device->wire, host.wire, bytes) != 0)
        fail_msg("%s of %zu values, kind %u: other bytes", format->name, n,
                 kind);
    for (size_t i = 0; i < 64; i++)
        assert_int_equal(device->wire[bytes + i], 0xa5);

    /* Received: the host writes, and a copy is fetched. */
    uint8_t *const inbox = gpu->alloc(bytes + 64, true);
    memcpy(inbox, host.wire, bytes);
    gpu->arrived(inbox, bytes);
    format->unpack(cpu, n, host.wire, 0, n, host.back);
    format->unpack(gpu, n, inbox, 0, n, device->back);
    memset(inbox, 0xff, bytes); /* what is received next */
    get(device->back, n, got);
    if (memcmp(got, host.back, n * sizeof *got) != 0)
        fail_msg("%s of %zu values, kind %u: read otherwise", format->name, n,
                 kind);
    gpu->release(inbox);
    free(got);
    room_close(cpu, &host);
}

static void test_bytes(void **state)
{
    (void)state;
    static const size_t sizes[] = {0,   1,    2,    7,    8,    255, 256,
                                   257, 1030, 2047, 8192, 8193, MOST};
    const struct room device = room_on(gpu);
    for (size_t f = 0; kith_formats[f] != NULL; f++)
        for (size_t s = 0; s < COUNT(sizes) && packs_whole(kith_formats[f]);
             s++)
            for (unsigned kind = 0; kind < KINDS; kind++)
                for (int order = EARLY; order < ORDERS; order++) {
                    if (set_order != NULL)
                        set_order(order);
                    same_bytes(kith_formats[f], sizes[s], kind, &device);
                    if (set_order != NULL)
                        set_order(EARLY);
                }
    room_close(gpu, &device);
}

/* ---- residues: messages, what is kept, what is read, how far apart */

/* Of one end; `wire`, `reach` and `apart` in memory that a host shares. */
struct end {
    float *v, *kept, *out, *reach, *apart;
    void *wire, *inbox;
    struct kith_modular_seen seen;
    float most;
};

static struct end end_on(const struct kith_backend *on, size_t n)
{
    const size_t bytes = (n + 512) * sizeof(float);
    return (struct end){.v = on->alloc(bytes, false),
                        .kept = on->alloc(bytes, false),
                        .out = on->alloc(bytes, false),
                        .reach = on->alloc(bytes, true),
                        .apart = on->alloc(bytes, true),
                        .wire = on->alloc(bytes, true),
                        .inbox = on->alloc(bytes, true)};
}

static void end_close(const struct kith_backend *on, const struct end *end)
{
    void *const all[] = {end->v,     end->kept, end->out,  end->reach,
                         end->apart, end->wire, end->inbox};
    for (size_t i = 0; i < COUNT(all); i++)
        on->release(all[i]);
}

/* Each end's own model, the same start; models come from `apart` apart. */
static void run_ends(const struct kith_format *format,
                     const struct kith_backend *on, size_t n, unsigned kind,
                     bool half_of_it, struct end ends[2])
{
    static float values[MOST], start[MOST];
    const size_t blocks = kith_modular_blocks(n);
    const size_t carried = kith_modular_carried(n, half_of_it ? 0.5 : 1);
    uint32_t *const chosen = on->alloc((blocks + 1) * sizeof *chosen, true);
    kith_modular_choose(7, 3, blocks, carried, chosen);
    const struct kith_modular_cover cover = {
        n, carried < blocks ? chosen : NULL, carried};
    const size_t bytes = format->bytes(carried * KITH_RESIDUE_BLOCK);
    draw(n, FINE, start);
    for (unsigned k = 0; k < 2; k++) {
        struct end *const end = &ends[k];
        *end = end_on(on, n);
        draw(n, kind, values);
        for (size_t i = 0; i < n; i++)
            values[i] += (float)((i * 7 + k * 3) % 5) * (i < n / 2 ? 0.01f : 3);
        if (on == gpu) {
            put(values, n, end->v);
            put(start, n, end->out);
        } else {
            memcpy(end->v, values, n * sizeof *values);
            memcpy(end->out, start, n * sizeof *values);
        }
        kith_modular_start(on, n, end->v, k == 0 ? end->out : NULL, end->reach);
        end->most = kith_modular_pack(format, on, &cover, end->v, end->reach,
                                      end->wire, end->kept);
        assert_true(on->settled == NULL || on->settled(end->wire, true));
    }
    for (unsigned k = 0; k < 2; k++) {
        struct end *const end = &ends[k];
        memcpy(end->inbox, ends[1 - k].wire, bytes);
        ((uint8_t *)end->inbox)[bytes - 1] ^= n % 3 == 0;
        if (on->arrived != NULL)
            on->arrived(end->inbox, bytes);
        const struct kith_modular_pair pair = {end->inbox, end->wire, end->kept,
                                               end->out};
        end->seen = kith_modular_unpack(format, on, &cover, &pair, end->apart);
    }
    on->release(chosen);
}

static void same_vector(const char *what, const float *device,
                        const float *host, size_t n)
{
    float *const got = malloc((n + 1) * sizeof *got);
    get(device, n, got);
    for (size_t i = 0; i < n; i++)
        if (memcmp(got + i, host + i, sizeof *got) != 0 &&
            !(isnan(got[i]) && isnan(host[i])))
            fail_msg("%s: value %zu is %g, not %g", what, i, (double)got[i],
                     (double)host[i]);
    free(got);
}

static void same_ends(const struct kith_format *format, size_t n, unsigned kind,
                      bool half_of_it)
{
    struct end host[2], device[2];
    const size_t blocks = kith_modular_blocks(n);
    const size_t bytes = format->bytes(
        kith_modular_carried(n, half_of_it ? 0.5 : 1) * KITH_RESIDUE_BLOCK);
    run_ends(format, cpu, n, kind, half_of_it, host);
    run_ends(format, gpu, n, kind, half_of_it, device);
    for (unsigned k = 0; k < 2; k++) {
        const struct end *a = &device[k], *b = &host[k];
        assert_memory_equal(a->reach, b->reach, blocks * sizeof(float));
        if (memcmp(a->wire, b->wire, bytes) != 0)
            fail_msg("%s of %zu values, kind %u: other bytes", format->name, n,
                     kind);
        same_vector("kept", a->kept, b->kept, n);
        same_vector("read", a->out, b->out, n);
        for (size_t i = 0; i < blocks; i++)
            assert_true(memcmp(a->apart + i, b->apart + i, 4) == 0 ||
                        (isnan(a->apart[i]) && isnan(b->apart[i])));
        assert_int_equal(a->seen.read, b->seen.read);
        assert_true(fabs(a->seen.beyond - b->seen.beyond) <=
                    1e-12 * b->seen.beyond);
        assert_true(memcmp(&a->most, &b->most, sizeof a->most) == 0);
        end_close(cpu, b);
        end_close(gpu, a);
    }
}

static void test_residues(void **state)
{
    (void)state;
    static const size_t sizes[] = {1, 255, 256, 257, 1030, 8193, MOST};
    for (size_t f = 0; kith_formats[f] != NULL; f++)
        for (size_t s = 0;
             s < COUNT(sizes) && kith_formats[f]->residue_bits > 0; s++)
            for (unsigned kind = 0; kind < 2 * KINDS; kind++)
                for (int order = EARLY; order < ORDERS; order++) {
                    if (sizes[s] == MOST && order != EARLY)
                        continue;
                    if (set_order != NULL)
                        set_order(order);
                    same_ends(kith_formats[f], sizes[s], kind / 2, kind % 2);
                    if (set_order != NULL)
                        set_order(EARLY);
                }
}

/* ---- pairs */

/* What a pair did; messages are those of both ends, one after another. */
struct outcome {
    double models[2][DIM], sums[EXCHANGES][2];
    uint8_t *messages;
    size_t bytes;
    bool refused[EXCHANGES][2];
    int far[EXCHANGES][2];
    struct kith_mark marks[EXCHANGES][2];
};

struct way {
    const char *algorithm, *format, *guard;
    double share;
    uint64_t exchanges; /* grids find together in some of them */
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
    /* Both take one back. */
    for (unsigned k = 0; k < 2 && number % 4 == 1 && !pushes; k++)
        item(workers[k], KITH_WORK_UNDO, algorithm, number, &edges[k]);
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
        experiment->gossip.coefficients[KITH_GOSSIP_ELASTICITY] = 0.3;
        (void)snprintf(experiment->gossip.guard,
                       sizeof experiment->gossip.guard, "%s", way->guard);
        experiment->gossip.guarded.tolerance = 0.3;
        workers[k] = open_worker(experiment, NULL, k, 10);
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
    /* Where x is scaled a CPU sums float32 differences. */
    const double tolerance = strcmp(way->algorithm, "gosgd") == 0 ? 1e-4 : 1e-9;
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
            if (!(fabs(got->sums[e][k] - want->sums[e][k]) <= tolerance))
                what = "other sums";
        }
    if (what != NULL)
        fail_msg("%s, %s, guard %s: %s", way->algorithm, way->format,
                 way->guard, what);
}

static void same_pairs(const struct way *way)
{
    static struct outcome want, mixed, both;
    run_pair(way, cpu, cpu, &want);
    double moved = 0;
    for (unsigned e = 0; e < way->exchanges; e++)
        moved += fabs(want.sums[e][1]);
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
    static const struct way ways[] = {{"adpsgd", NULL, "none", 0, 0},
                                      {"adpsgd", NULL, "clip", 0, 0},
                                      {"elastic", NULL, "none", 0, 0},
                                      {"dpsgd", NULL, "none", 0, 0},
                                      {"dpsgd", NULL, "cs+", 0, 0},
                                      {"dpsgd-atc", NULL, "clip", 0, 0},
                                      /* Not of residues: */
                                      {"swarm", NULL, "none", 0, 0},
                                      {"sgp", NULL, "none", 0, 0},
                                      {"gosgd", NULL, "none", 0, 0},
                                      {"sparta", NULL, "none", 0, 0}};
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

static void find(void *function, const char *name)
{
    void *const symbol = cuda_emulation(name);
    memcpy(function, &symbol, sizeof symbol);
}

int main(void)
{
    if (!cuda_module_found(&gpu, &half))
        return 77;
    find(&set_order, "kith_emulate_order");
    cpu = kith_backend_find("cpu");
    kith_backend_threads(1);
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_bytes),
        cmocka_unit_test(test_residues),
        cmocka_unit_test(test_pairs),
        cmocka_unit_test(test_spoilt_is_refused),
        cmocka_unit_test(test_pull_and_huge),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
