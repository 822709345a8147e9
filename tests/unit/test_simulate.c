/* Goal: a program's own training in virtual time decides and computes what the
 * engine does: same trace, same bits, with crashes, pauses and partitions; what
 * is wrong, or fails on the way, ends the run by name with everything closed.
 * Method: the program is a twin: it trains its vectors by a worker of the
 * built-in model, one for each rank, made anew where a peer restarts. */
#include <inttypes.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "kith/backend.h"
#include "kith/kith.h"
#include "tests/support/dataset.h"
#include "tests/support/simulate.h"

enum { PEERS = 6, DIM = 64 * 32 + 32 + 32 * 10 + 10, STRIDE = 2432 };
_Static_assert(STRIDE > DIM && STRIDE % 16 == 0, "aligned, and one to spare");

static char digits[512];
static char text[4096], json[4096], error[1024];
static char path[] = "/tmp/kith-simulate.XXXXXX";

/* A guard would hold what comes against steps, which a program's are not. */
static const char pairs[] =
    "algorithm: adpsgd, every: 3, topology: random, guard: none";

/* What both runs say but for their models. No rate: a handshake carries the
 * model's kind, and `program` is four bytes longer than `mlp`. */
static const char *write_experiment(const char *model, const char *gossip)
{
    const int length =
        snprintf(text, sizeof text,
                 "name: twin\nseed: 7\npeers: %d\nstop: {steps: 60}\n%s\n"
                 "train: {learning_rate: 0.05, momentum: 0.9, batch: 16}\n"
                 "gossip: {%s}\n"
                 "compute: {step: 5ms, spread: exponential}\n"
                 "network: {latency: 1ms}\n"
                 "faults:\n  - {at: 62ms, crash: \"peer(1)\", restart: 60ms}\n"
                 "  - {at: 81ms, for: 50ms, partition: \"peer(0..2) <-> "
                 "peer(3..5)\"}\n"
                 "  - {at: 103ms, for: 40ms, pause: \"peer(4)\"}\n",
                 PEERS, model, gossip);
    assert_in_range(length, 1, sizeof text - 1);
    return text;
}

/* ---- the built-in run, and what is left of it */

static float built_in[PEERS][DIM];

static void keep(const struct sim_world *world, kith_id peer, void *arg)
{
    (void)peer;
    (void)arg;
    for (kith_id id = 0; id < PEERS; id++)
        if (sim_alive(world, id))
            memcpy(built_in[id],
                   kith_worker_slot(sim_worker(world, id), KITH_SLOT_LIVE),
                   sizeof built_in[id]);
}

/* ---- the twin */

struct twin {
    struct kith_experiment experiment;
    struct kith_dataset dataset;
    struct kith_worker *workers[PEERS];
    uint64_t begun, ended, steps, evaluated;
    uint64_t fails_at; /* step of all that fails; 0: none does */
    bool shifts;       /* its vectors are not aligned */
};
static _Alignas(64) float vectors[PEERS][STRIDE];

static float *begin(void *user, uint32_t rank)
{
    struct twin *twin = user;
    const struct kith_worker_config config = {
        .task = kith_experiment_task(&twin->experiment, NULL),
        .backend = twin->experiment.backend,
        .train = &twin->dataset.train,
        .self = rank,
        .steps = 60,
        .peers = PEERS,
        .keeps = true};
    assert_null(twin->workers[rank]);
    twin->begun++;
    if (kith_worker_open(&config, &twin->workers[rank], error) != KITH_OK)
        fail_msg("%s", error);
    memcpy(vectors[rank], kith_worker_slot(twin->workers[rank], KITH_SLOT_LIVE),
           DIM * sizeof(float));
    return vectors[rank] + (twin->shifts ? 1 : 0);
}

static int step(void *user, uint32_t rank, uint64_t number, double *loss)
{
    struct twin *twin = user;
    struct kith_worker *worker = twin->workers[rank];
    struct kith_work work = {.kind = KITH_WORK_TRAIN, .step = number};
    struct kith_work_result result;
    assert_true(isnan(*loss));
    twin->steps++;
    assert_true(twin->fails_at == 0 || twin->steps <= twin->fails_at);
    if (twin->steps == twin->fails_at)
        return 1;
    memcpy(kith_worker_slot(worker, KITH_SLOT_LIVE), vectors[rank],
           DIM * sizeof(float));
    kith_worker_run(worker, &work, &result);
    memcpy(vectors[rank], kith_worker_slot(worker, KITH_SLOT_LIVE),
           DIM * sizeof(float));
    *loss = result.loss;
    return 0;
}

static void end(void *user, uint32_t rank)
{
    struct twin *twin = user;
    twin->ended++;
    kith_worker_close(twin->workers[rank]);
    twin->workers[rank] = NULL;
}

static int evaluate(void *user, const float *values, double *loss,
                    double *accuracy)
{
    static double z[DIM];
    struct twin *twin = user;
    struct kith_score score;
    for (size_t i = 0; i < DIM; i++)
        z[i] = (double)values[i];
    twin->evaluated++;
    assert_int_equal(kith_evaluate(&twin->experiment, twin->experiment.backend,
                                   &twin->dataset.test, z, &score),
                     KITH_OK);
    *loss = score.loss;
    *accuracy = score.accuracy;
    return 0;
}

static void open_twin(struct twin *twin, const char *yaml)
{
    *twin = (struct twin){.begun = 0};
    if (kith_experiment_parse("twin", yaml, strlen(yaml), NULL, 0,
                              &twin->experiment, error) != KITH_OK ||
        kith_dataset_open(&twin->experiment.data.config, &twin->dataset,
                          error) != KITH_OK)
        fail_msg("%s", error);
}

static void close_twin(struct twin *twin)
{
    assert_int_equal(twin->begun, twin->ended);
    kith_dataset_close(&twin->dataset);
    kith_experiment_close(&twin->experiment);
}

static int simulate_twin(struct twin *twin, const char *yaml,
                         const char *setting)
{
    FILE *file = fopen(path, "w");
    assert_non_null(file);
    fputs(yaml, file);
    assert_int_equal(fclose(file), 0);
    const struct kith_simulation simulation = {.size = sizeof simulation,
                                               .setting_count = setting != NULL,
                                               .experiment = path,
                                               .settings = &setting,
                                               .count = DIM,
                                               .user = twin,
                                               .begin = begin,
                                               .step = step,
                                               .end = end,
                                               .evaluate = evaluate};
    return kith_simulate(&simulation, json, sizeof json, error, sizeof error);
}

/* A number of the summary. */
static uint64_t told(const char *key, int base)
{
    const char *at = strstr(json, key);
    assert_non_null(at);
    return strtoull(at + strlen(key), NULL, base);
}

static const char *model(void)
{
    static char words[600];
    (void)snprintf(words, sizeof words,
                   "model: {kind: mlp, layers: [64, 32, 10]}\n"
                   "data: {kind: idx, path: %s, split: iid}",
                   digits);
    return words;
}

static void check_equal(const char *gossip)
{
    struct twin twin;
    const struct sim_options options = {.observe = keep};
    open_twin(&twin, write_experiment(model(), gossip));
    const struct simulated run =
        simulate(write_experiment(model(), gossip), &options);
    if (simulate_twin(&twin, write_experiment("model: {kind: program}", gossip),
                      NULL) != 0)
        fail_msg("%s", error);
    const uint64_t hash = told("\"trace_hash\": \"", 16);
    const uint64_t steps = told("\"steps\": ", 10);
    printf("%s: expected: hash %016" PRIx64 ", %" PRIu64
           " steps, 7 begun; measured: %016" PRIx64 ", %" PRIu64 ", %" PRIu64
           "\n",
           gossip, run.summary.trace_hash, run.summary.steps, hash, steps,
           twin.begun);
    assert_true(hash == run.summary.trace_hash);
    assert_true(steps == run.summary.steps);
    assert_int_equal(twin.begun, PEERS + 1);
    for (int i = 0; i < PEERS; i++)
        assert_memory_equal(vectors[i], built_in[i], DIM * sizeof(float));
    close_twin(&twin);
}

static void test_equal(void **state)
{
    (void)state;
    check_equal(pairs);
    check_equal("algorithm: sgp, every: 2, topology: random");
    check_equal("algorithm: dpsgd, every: 4, topology: ring");
}

/* ---- what goes wrong */

static const char program[] = "model: {kind: program}";

static void refused(struct twin *twin, const char *yaml, const char *setting,
                    const char *what)
{
    assert_int_equal(simulate_twin(twin, yaml, setting), KITH_FAILED);
    printf("expected: %s; measured: %s\n", what, error);
    assert_non_null(strstr(error, what));
}

static void test_refused(void **state)
{
    (void)state;
    struct twin twin;
    open_twin(&twin, write_experiment(model(), pairs));
    refused(&twin, write_experiment(model(), pairs), NULL,
            "model.kind: found mlp");
    refused(&twin, write_experiment("model: {kind: program, dim: 3}", pairs),
            NULL, "the vectors have 2410 values");
    const char *yaml = write_experiment(program, pairs);
    refused(&twin, yaml, "gossip={algorithm: acid, mixing: 0.1, strength: 0.5}",
            "gossip.algorithm: acid does not work");
    refused(&twin, yaml, "train.backend=naive64", "train.backend: found");
    refused(&twin, yaml, "no.such=1", "no");
    assert_int_equal(twin.begun, 0);
    twin.shifts = true;
    refused(&twin, yaml, NULL, "peer 0: begin() gave a vector at");
    assert_int_equal(kith_simulate(NULL, NULL, 0, error, sizeof error),
                     KITH_FAILED);
    close_twin(&twin);
}

/* No step and no evaluation after the one that failed (step() asserts it). */
static void test_fails(void **state)
{
    (void)state;
    struct twin twin;
    open_twin(&twin, write_experiment(model(), pairs));
    twin.fails_at = 200;
    refused(&twin, write_experiment(program, pairs), NULL,
            "step() failed at step");
    assert_int_equal(twin.steps, 200);
    assert_int_equal(twin.evaluated, 0);
    close_twin(&twin);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_equal),
        cmocka_unit_test(test_refused),
        cmocka_unit_test(test_fails),
    };
    const char *top = getenv("srcdir");
    (void)snprintf(digits, sizeof digits, "%s/examples/data/digits",
                   top != NULL ? top : "..");
    const int fd = mkstemp(path);
    if (fd < 0)
        return 99;
    (void)close(fd);
    const int code = cmocka_run_group_tests(tests, NULL, NULL);
    (void)unlink(path);
    return code;
}
