/* Goal: every algorithm runs on a device, with the values of a host, no more
 * transfers for a larger model, and whatever the device does late; on every
 * wire and with every compressor that a host takes; those whose messages are
 * bytes of their own are refused there. Method: all of the registry, by file
 * and by hand on the CUDA module's emulation beside backend cpu. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "cuda_cases.h"
#include "kith/compressor.h"
#include "kith/format.h"
#include "worker_run.h"

enum { ROWS = 32, FEATURES = 12, CLASSES = 4, SMALL = 9, LARGE = 700 };
enum { EARLY, LATE, LATE_FETCH, ORDERS }; /* as in tests/cuda/emulate.h */

static const struct kith_backend *gpu;
/* As what messages travel. */
static const struct kith_format *wire;
static const struct kith_compressor *compressor;
static void (*set_order)(int order);
static void (*set_late)(long queries);
static unsigned long (*count_commands)(void);

static const char *topology_of(const struct kith_algorithm *algorithm)
{
    return algorithm->schedule != NULL            ? algorithm->schedule
           : (algorithm->flags & KITH_NEEDS_TREE) ? "path"
                                                  : "ring";
}

static enum kith_err parse(const struct kith_algorithm *algorithm,
                           const char *backend, unsigned hidden,
                           struct kith_experiment *experiment, char *line)
{
    char text[512];
    (void)snprintf(text, sizeof text,
                   "name: e\npeers: 3\nstop: {steps: 9}\n"
                   "model: {kind: mlp, layers: [%d, %u, %d]}\n"
                   "data: {path: /data}\n"
                   "train: {batch: 8, learning_rate: 0.01, backend: %s}\n"
                   "gossip: {algorithm: %s, topology: %s, every: 1, "
                   "guard: none, wire: %s, compressor: %s}\n",
                   FEATURES, hidden, CLASSES, backend, algorithm->name,
                   topology_of(algorithm), wire->name, compressor->name);
    return kith_experiment_parse("e.yaml", text, strlen(text), NULL, 0,
                                 experiment, line);
}

static bool is_host_only(const struct kith_algorithm *algorithm)
{
    return kith_algorithm_sends_bytes(algorithm) ||
           (algorithm->flags & KITH_NEEDS_HOST) != 0;
}

/* ---- by file */

/* On a device as on a host. */
static void test_wires_load(void **state)
{
    (void)state;
    char line[KITH_EXPERIMENT_ERROR_BYTES];
    struct kith_experiment experiment;
    for (size_t f = 0; kith_formats[f] != NULL; f++)
        for (size_t i = 0; kith_algorithms[i] != NULL; i++) {
            const struct kith_algorithm *algorithm = kith_algorithms[i];
            wire = kith_formats[f];
            if (is_host_only(algorithm))
                continue;
            if (parse(algorithm, "cpu", SMALL, &experiment, line) != KITH_OK)
                continue;
            kith_experiment_close(&experiment);
            if (parse(algorithm, "cuda", SMALL, &experiment, line) != KITH_OK)
                fail_msg("%s", line);
            kith_experiment_close(&experiment);
        }
    wire = kith_formats[0];
}

/* What a device does not take is refused there, by name. */
static void is_refused(const struct kith_algorithm *algorithm,
                       const char *backend)
{
    char line[KITH_EXPERIMENT_ERROR_BYTES] = "";
    struct kith_experiment experiment;
    assert_int_equal(parse(algorithm, backend, SMALL, &experiment, line),
                     KITH_EINVAL);
    assert_non_null(strstr(line, algorithm->name));
    assert_non_null(strstr(line, "a backend of the host"));
}

static void loads(const struct kith_algorithm *algorithm, const char *backend)
{
    char line[KITH_EXPERIMENT_ERROR_BYTES];
    struct kith_experiment experiment;
    if (parse(algorithm, backend, SMALL, &experiment, line) != KITH_OK)
        fail_msg("%s", line);
    kith_experiment_close(&experiment);
}

/* By the compressor's name, with what to do. */
static void refused(const struct kith_algorithm *algorithm, const char *backend)
{
    char line[KITH_EXPERIMENT_ERROR_BYTES];
    struct kith_experiment experiment;
    assert_int_not_equal(parse(algorithm, backend, SMALL, &experiment, line),
                         KITH_OK);
    assert_non_null(strstr(line, compressor->name));
    assert_non_null(strstr(line, "has no kernels"));
}

static bool compresses(const struct kith_algorithm *algorithm)
{
    return (algorithm->flags & KITH_TAKES_COMPRESSOR) != 0;
}

static void test_each_loads(void **state)
{
    (void)state;
    static const char *const names[] = {"cpu", "cuda", "cuda-bf16"};
    for (size_t i = 0; kith_algorithms[i] != NULL; i++)
        for (size_t k = 0; k < 3; k++)
            for (size_t c = 0; kith_compressors[c] != NULL; c++) {
                compressor = kith_compressors[c];
                const struct kith_algorithm *const algorithm =
                    kith_algorithms[i];
                const struct kith_backend *const backend =
                    kith_backend_find(names[k]);
                if ((!compressor->raw && !compresses(algorithm)) ||
                    algorithm->wants != NULL)
                    continue; /* those say what they need: update-sets */
                if (k > 0 && is_host_only(algorithm))
                    is_refused(algorithm, names[k]);
                else if (k == 0 || kith_compression_runs(compressor, backend))
                    loads(algorithm, names[k]);
                else
                    refused(algorithm, names[k]);
            }
    compressor = kith_compressor_find("none");
}

/* A compressor without kernels is one of a host's. */
static void test_without_kernels(void **state)
{
    (void)state;
    struct kith_compressor plain = *kith_compressor_find("sign");
    const struct kith_backend *const cuda = kith_backend_find("cuda");
    assert_true(kith_compression_runs(&plain, cuda));
    plain.pack = NULL;
    plain.unpack = NULL;
    assert_false(kith_compression_runs(&plain, cuda));
    assert_true(kith_compression_runs(&plain, cuda->host));
}

/* ---- by hand */

static struct kith_examples examples_of(void)
{
    static uint8_t images[ROWS * FEATURES];
    static int32_t labels[ROWS];
    for (size_t i = 0; i < sizeof images; i++)
        images[i] = (uint8_t)(i * 37 % 251);
    for (size_t i = 0; i < ROWS; i++)
        labels[i] = (int32_t)(i % CLASSES);
    return fixture_examples(images, labels, ROWS, FEATURES, CLASSES);
}

/* What a run leaves: every message that was sent, then the model. */
struct record {
    double *values;
    size_t count;
};

static void note(struct record *record, double value)
{
    record->values =
        realloc(record->values, (record->count + 1) * sizeof *record->values);
    assert_non_null(record->values);
    record->values[record->count++] = value;
}

/* Values of a message. */
static size_t count_of(const struct kith_format *format, size_t bytes)
{
    size_t n = bytes / sizeof(float);
    while (!format->raw && format->bytes(n) < bytes)
        n++;
    return n;
}

static void note_sent(struct record *record, struct kith_worker *worker,
                      const struct kith_format *format, uint32_t slot,
                      size_t bytes)
{
    assert_int_equal(kith_worker_outgoing(worker, slot, true),
                     KITH_OUTGOING_READY);
    const void *slot_memory = kith_worker_slot(worker, slot);
    const size_t n = count_of(format, bytes);
    float *const sent = malloc((n + 1) * sizeof *sent);
    assert_non_null(sent);
    if (format->raw)
        memcpy(sent, slot_memory, n * sizeof *sent);
    else
        format->unpack(gpu->host, n, slot_memory, 0, n, sent);
    for (size_t i = 0; i < n; i++)
        note(record, (double)sent[i]);
    free(sent);
}

/* A neighbour's, of any key: each of the vectors it is of is the same. */
static void receive_compressed(struct kith_worker *worker, uint32_t slot,
                               size_t bytes, uint64_t round)
{
    const struct kith_compression how = {.compressor = compressor,
                                         .config = kith_compressor_defaults(),
                                         .backend = gpu->host,
                                         .dim = kith_worker_dim(worker)};
    const size_t part = kith_compression_bytes(&how);
    float *const values = malloc(how.dim * sizeof *values);
    assert_non_null(values);
    for (size_t i = 0; i < how.dim; i++)
        values[i] = (float)((i + round) % 17) / 64;
    for (size_t at = 0; at < bytes; at += part)
        assert_true(kith_compress(&how, values, round,
                                  (char *)kith_worker_slot(worker, slot) + at));
    free(values);
    kith_worker_arrived(worker, slot);
}

static void receive(struct kith_worker *worker,
                    const struct kith_format *format, uint32_t slot,
                    size_t bytes, uint64_t round)
{
    void *const inbox = kith_worker_slot(worker, slot);
    if (format->residue_bits > 0) { /* what it says is another test's */
        memset(inbox, 0, bytes);
        kith_worker_arrived(worker, slot);
        return;
    }
    const size_t n = count_of(format, bytes);
    float *const values = malloc((n + 1) * sizeof *values);
    assert_non_null(values);
    for (size_t i = 0; i < n; i++)
        values[i] = (float)((i + round) % 17) / 64;
    if (format->raw)
        memcpy(inbox, values, n * sizeof *values);
    else
        format->pack(gpu->host, n, values, inbox);
    free(values);
    kith_worker_arrived(worker, slot);
}

/* What is received next has come, and so has its copy on the device. */
static void receive_more(struct kith_worker *worker, uint32_t slot,
                         size_t bytes)
{
    memset(kith_worker_slot(worker, slot), 0xff, bytes);
    kith_worker_arrived(worker, slot);
}

static void run_exchange(struct kith_worker *worker,
                         const struct kith_algorithm *algorithm, uint64_t round,
                         struct record *record)
{
    const enum kith_pattern pattern = algorithm->pattern;
    const bool rounds = pattern == KITH_PATTERN_ROUND;
    const size_t bytes = kith_worker_payload(worker);
    struct kith_work_edge edge = {
        .peer = 1,
        .weight = 0.25,
        .sent = !rounds ? KITH_SLOT_INITIATED_SENT
                : (algorithm->flags & KITH_SENDS_EDGE_MESSAGES)
                    ? kith_slot_outbox(0)
                    : KITH_SLOT_ROUND_SENT,
        .inbox = KITH_SLOT_NONE};
    struct kith_work work = {.kind = KITH_WORK_SNAPSHOT,
                             .pattern = pattern,
                             .step = round,
                             .round = round,
                             .edges = &edge,
                             .edge_count = 1};
    (void)run(worker, work);
    if (wire->residue_bits == 0 && compressor->raw)
        note_sent(record, worker, wire, edge.sent, bytes);
    edge.inbox = rounds ? kith_slot_inbox(0, round) : KITH_SLOT_INITIATED_INBOX;
    memcpy(edge.scalars_received,
           compresses(algorithm) ? edge.scalars_sent : algorithm->scalars_start,
           sizeof edge.scalars_received);
    if (compressor->raw)
        receive(worker, wire, edge.inbox, bytes, round);
    else
        receive_compressed(worker, edge.inbox, bytes, round);
    work.kind = KITH_WORK_MERGE;
    (void)run(worker, work);
    assert_true(isfinite(edge.delta_sum));
    assert_true(compressor->raw || !edge.refused);
    note(record, edge.refused);
    note(record, edge.far);
    receive_more(worker, edge.inbox, bytes);
    if (algorithm->undo == NULL || round % 2 == 0)
        return;
    receive(worker, wire, edge.inbox, bytes, round);
    work.kind = KITH_WORK_UNDO;
    (void)run(worker, work);
}

/* What a neighbour that starts over is given, and starting over. */
static void run_pull(struct kith_worker *worker,
                     const struct kith_algorithm *algorithm,
                     struct record *record)
{
    const size_t bytes = kith_worker_bytes(worker);
    struct kith_work_edge edge = {
        .peer = 1, .sent = KITH_SLOT_ANSWERED_SENT, .inbox = KITH_SLOT_NONE};
    struct kith_work work = {.kind = KITH_WORK_SNAPSHOT,
                             .pattern = KITH_PATTERN_PULL,
                             .edges = &edge,
                             .edge_count = 1};
    (void)run(worker, work);
    note_sent(record, worker, kith_formats[0], edge.sent, bytes);
    edge.sent = KITH_SLOT_INITIATED_SENT;
    edge.inbox = KITH_SLOT_INITIATED_INBOX;
    memcpy(edge.scalars_received, algorithm->scalars_start,
           sizeof edge.scalars_received);
    receive(worker, kith_formats[0], edge.inbox, bytes, 0);
    work.kind = KITH_WORK_ADOPT;
    (void)run(worker, work);
    receive_more(worker, edge.inbox, bytes);
}

static struct record run_all(const struct kith_algorithm *algorithm,
                             const struct kith_backend *backend,
                             unsigned hidden)
{
    struct record record = {NULL, 0};
    char line[KITH_EXPERIMENT_ERROR_BYTES];
    struct kith_experiment experiment;
    const struct kith_examples examples = examples_of();
    assert_int_equal(parse(algorithm, "cpu", hidden, &experiment, line),
                     KITH_OK);
    experiment.backend = backend;
    struct kith_worker *worker = open_worker(&experiment, &examples, 0, 100);
    for (uint64_t round = 0; round < 4; round++) {
        (void)run(worker,
                  (struct kith_work){.kind = KITH_WORK_TRAIN, .step = round});
        if (algorithm->pattern != KITH_PATTERN_NONE)
            run_exchange(worker, algorithm, round, &record);
    }
    if (algorithm->pattern != KITH_PATTERN_NONE)
        run_pull(worker, algorithm, &record);
    (void)run(worker, (struct kith_work){.kind = KITH_WORK_TRAIN, .step = 4});
    double *z = malloc(kith_worker_dim(worker) * sizeof *z);
    assert_non_null(z);
    kith_worker_read(worker, z);
    for (size_t i = 0; i < kith_worker_dim(worker); i++)
        note(&record, z[i]);
    free(z);
    assert_null(kith_worker_failed(worker));
    kith_worker_close(worker);
    kith_experiment_close(&experiment);
    return record;
}

/* Does a host's file load, and a device's? */
static bool takes(const struct kith_algorithm *algorithm)
{
    char line[KITH_EXPERIMENT_ERROR_BYTES];
    struct kith_experiment experiment;
    if (is_host_only(algorithm) ||
        parse(algorithm, "cpu", SMALL, &experiment, line) != KITH_OK)
        return false;
    kith_experiment_close(&experiment);
    return true;
}

static void same_as_host(const struct kith_algorithm *algorithm)
{
    /* A step of training in other last bits may round to another number. */
    const double tolerance = wire->raw ? 1e-4 : 1e-2;
    struct record want = run_all(algorithm, kith_backend_find("cpu"), SMALL);
    for (int order = EARLY; order < ORDERS; order++) {
        set_order(order);
        set_late(1000);
        struct record got = run_all(algorithm, gpu, SMALL);
        set_late(0);
        set_order(EARLY);
        assert_int_equal(got.count, want.count);
        for (size_t k = 0; k < want.count; k++) {
            const double off = fabs(got.values[k] - want.values[k]);
            if (!(off <= tolerance * (1 + fabs(want.values[k]))))
                fail_msg("%s, %s, order %d: value %zu of %zu is %g, not %g",
                         algorithm->name, wire->name, order, k, want.count,
                         got.values[k], want.values[k]);
        }
        free(got.values);
    }
    free(want.values);
}

static void test_same_as_host(void **state)
{
    (void)state;
    if (set_order == NULL)
        skip();
    for (size_t f = 0; kith_formats[f] != NULL; f++) {
        wire = kith_formats[f];
        for (size_t i = 0; kith_algorithms[i] != NULL; i++)
            if (wire->residue_bits == 0 && takes(kith_algorithms[i]))
                same_as_host(kith_algorithms[i]);
    }
    wire = kith_formats[0];
}

static unsigned long commands_of(const struct kith_algorithm *algorithm,
                                 unsigned hidden)
{
    const unsigned long before = count_commands();
    free(run_all(algorithm, gpu, hidden).values);
    return count_commands() - before;
}

/* Kernels, copies and fills for a model 75 times as large: a few more, where
 * products are cut otherwise. No guard: it reads a large model in short runs.
 */
static void same_commands(const struct kith_algorithm *algorithm)
{
    enum { MORE = 60 };
    const unsigned long few = commands_of(algorithm, SMALL);
    const unsigned long many = commands_of(algorithm, LARGE);
    if (!compressor->raw)
        print_message("%s with %s: %lu commands, %lu for a larger model\n",
                      algorithm->name, compressor->name, few, many);
    if (many > few + MORE)
        fail_msg("%s, %s, %s: %lu commands, %lu for a larger model",
                 algorithm->name, wire->name, compressor->name, few, many);
}

static void test_commands(void **state)
{
    (void)state;
    if (count_commands == NULL)
        skip();
    for (size_t f = 0; kith_formats[f] != NULL; f++) {
        wire = kith_formats[f];
        for (size_t i = 0; kith_algorithms[i] != NULL; i++)
            if (takes(kith_algorithms[i]))
                same_commands(kith_algorithms[i]);
    }
    wire = kith_formats[0];
    for (size_t c = 0; kith_compressors[c] != NULL; c++) {
        compressor = kith_compressors[c];
        for (size_t i = 0; kith_algorithms[i] != NULL; i++)
            if (compressor->pack != NULL && compresses(kith_algorithms[i]) &&
                !is_host_only(kith_algorithms[i]))
                same_commands(kith_algorithms[i]);
    }
    compressor = kith_compressor_find("none");
}

/* Seconds of this thread's CPU for some exchanges of a model of 204,000 values,
 * and what the device was told for them. */
static double exchanges(const char *name, unsigned long *commands)
{
    enum { HIDDEN = 12000, COUNT = 10 };
    const struct kith_algorithm *algorithm = kith_algorithm_find(name);
    char line[KITH_EXPERIMENT_ERROR_BYTES];
    struct kith_experiment experiment;
    const struct kith_examples examples = examples_of();
    assert_int_equal(parse(algorithm, "cpu", HIDDEN, &experiment, line),
                     KITH_OK);
    experiment.backend = gpu;
    struct kith_worker *worker = open_worker(&experiment, &examples, 0, 100);
    const size_t bytes = kith_worker_payload(worker);
    assert_int_equal(kith_worker_dim(worker), 204004);
    clock_t spent = 0;
    *commands = count_commands();
    for (uint64_t round = 0; round < COUNT; round++) {
        struct kith_work_edge edge = {.peer = 1,
                                      .weight = 0.5,
                                      .sent = KITH_SLOT_INITIATED_SENT,
                                      .inbox = KITH_SLOT_INITIATED_INBOX};
        struct kith_work work = {.kind = KITH_WORK_SNAPSHOT,
                                 .pattern = KITH_PATTERN_SWAP,
                                 .step = round,
                                 .round = round,
                                 .edges = &edge,
                                 .edge_count = 1};
        receive(worker, wire, edge.inbox, bytes, round);
        const clock_t begun = clock();
        (void)run(worker, work);
        assert_int_equal(kith_worker_outgoing(worker, edge.sent, true),
                         KITH_OUTGOING_READY);
        work.kind = KITH_WORK_MERGE;
        (void)run(worker, work);
        spent += clock() - begun;
        assert_true(edge.delta_sum < 0 || edge.delta_sum > 0);
    }
    *commands = count_commands() - *commands;
    kith_worker_close(worker);
    kith_experiment_close(&experiment);
    return (double)spent / CLOCKS_PER_SEC;
}

/* Minutes an exchange, when each coordinate was a copy and a wait. */
static void test_sparta_keeps_up(void **state)
{
    (void)state;
    unsigned long few, whole;
    if (count_commands == NULL)
        skip();
    const double sparta = exchanges("sparta", &few);
    const double adpsgd = exchanges("adpsgd", &whole);
    print_message("10 exchanges of 204,004 values: sparta %.4f s, %lu "
                  "commands; adpsgd %.4f s, %lu\n",
                  sparta, few, adpsgd, whole);
    assert_true(sparta <= 2 * adpsgd);
    assert_true(few <= 2 * whole);
}

int main(void)
{
    const struct kith_backend *half;
    wire = kith_formats[0];
    compressor = kith_compressor_find("none");
    if (cuda_module_found(&gpu, &half)) {
        cuda_find(&set_order, "kith_emulate_order");
        cuda_find(&set_late, "kith_emulate_late");
        cuda_find(&count_commands, "kith_emulate_commands");
    }
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_each_loads),
        cmocka_unit_test(test_without_kernels),
        cmocka_unit_test(test_wires_load),
        cmocka_unit_test(test_same_as_host),
        cmocka_unit_test(test_commands),
        cmocka_unit_test(test_sparta_keeps_up),
    };
    kith_backend_threads(1);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
