/* Goal: with guard clip a liar costs what its silence would, and nothing where
 * there is none; what a guard decides is no decision of the protocol.
 * Method: ten peers learn the bundled digits in the simulator; two of them hold
 * others' models with the sign turned, ten times as large (by hand, after every
 * event), or send values of 2 (the fault `huge`). Without a guard that ruins
 * all. Own movement, coordinates, what is withheld and UNDO: by hand, on a
 * worker of 37 and of 26,122 values. */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include <math.h>

#include "experiment_base.h"
#include "kith/archive.h"
#include "src/training/worker/worker_state.h"
#include "tests/support/probe.h"
#include "worker_run.h"

static const char *const digits =
    "name: liars\nseed: 3\npeers: 10\nstop: {epochs: 5}\n"
    "model: {kind: mlp, layers: [64, 32, 10]}\n"
    "data: {kind: idx, path: %s/examples/data/digits, split: %s}\n"
    "train: {learning_rate: 0.05, momentum: 0.9, batch: 16}\n"
    "gossip: {algorithm: %s, guard: %s}\n"
    "network: {latency: 200us, rate: 1Gbit}\ncompute: {step: 5ms}\n%s";

/* Peers 8 and 9: what 0 and 1 have learnt, against them. */
static void turn(const struct sim_world *world, kith_id peer, void *arg)
{
    (void)peer;
    (void)arg;
    for (kith_id liar = 8; liar < 10; liar++) {
        struct kith_worker *bad = sim_worker(world, liar);
        struct kith_worker *good = sim_worker(world, liar - 8);
        if (bad == NULL || good == NULL)
            continue;
        const size_t dim = kith_worker_dim(bad);
        float *x = kith_worker_slot(bad, KITH_SLOT_LIVE);
        const float *y = kith_worker_slot(good, KITH_SLOT_LIVE);
        for (size_t k = 0; k < dim; k++)
            x[k] = -10 * y[k];
    }
}

static const char *source(void)
{
    const char *const folder = getenv("srcdir");
    return folder != NULL ? folder : ".";
}

struct outcome {
    double worst; /* accuracy of honest peers */
    uint64_t hash, clipped, rejected;
};

static double worst_of(const char *yaml, const struct probe *probe)
{
    char words[KITH_EXPERIMENT_ERROR_BYTES];
    struct kith_experiment experiment;
    struct kith_dataset set;
    double worst = 1;
    assert_int_equal(parse(yaml, NULL, &experiment, words), KITH_OK);
    assert_int_equal(fixture_digits(&set, words), KITH_OK);
    for (uint32_t peer = 0; peer < 8; peer++) {
        struct kith_score score;
        assert_int_equal(kith_evaluate(&experiment, experiment.backend,
                                       &set.test, probe->z + peer * probe->dim,
                                       &score),
                         KITH_OK);
        worst = fmin(worst, score.accuracy);
    }
    kith_dataset_close(&set);
    kith_experiment_close(&experiment);
    return worst;
}

/* `lies`: "flip", or faults. */
static struct outcome learn(const char *algorithm, const char *split,
                            const char *guard, const char *lies)
{
    char yaml[1024];
    const bool flips = strcmp(lies, "flip") == 0;
    const struct sim_options options = {.watch = true};
    struct probe probe = {.options = &options, .meddle = flips ? turn : NULL};
    snprintf(yaml, sizeof yaml, digits, source(), split, algorithm, guard,
             flips ? "" : lies);
    probe_must(&probe, "%s", yaml);
    const struct outcome found = {worst_of(yaml, &probe),
                                  probe.summary.trace_hash,
                                  probe.report.marks[KITH_MARK_CLIPPED],
                                  probe.report.marks[KITH_MARK_REJECTED]};
    printf("  %-24s %-14s %-4s %s: worst %.3f, %llu clipped, %llu rejected\n",
           algorithm, split, guard,
           *lies == '\0' ? "-"
           : flips       ? lies
                         : "huge",
           found.worst, (unsigned long long)found.clipped,
           (unsigned long long)found.rejected);
    probe_close(&probe);
    return found;
}

#define HUGE "faults: [{at: 20ms, huge: \"peer(8..9)\", by: 2}]\n"

static void test_liars(void **state)
{
    (void)state;
    static const char *const algorithms[] = {
        "adpsgd, every: 2", "dpsgd, topology: torus",
        "noloco, topology: complete, every: 4", "gosgd",
        "sgp-sync, topology: torus"};
    static const char *const lies[] = {"flip", HUGE};
    for (unsigned i = 0; i < 10; i++) {
        const char *const algorithm = algorithms[i / 2], *lie = lies[i % 2];
        const struct outcome open = learn(algorithm, "iid", "none", lie);
        const struct outcome held = learn(algorithm, "iid", "clip", lie);
        assert_true(open.worst < 0.5);
        /* Pairs of gosgd meet at 64 steps out of 320: the worst of eight has
         * .78 on the average of 20 seeds. */
        const bool is_rare = i / 2 == 3;
        assert_true(held.worst > (is_rare ? 0.75 : 0.82));
        assert_int_equal(open.rejected + open.clipped, 0);
        assert_true(held.rejected > (is_rare ? 25 : 50));
    }
}

static void test_nobody_lies(void **state)
{
    (void)state;
    static const char *const algorithms[] = {
        "adpsgd, every: 2", "dpsgd, topology: torus",
        "diloco, topology: complete, every: 4", "sgp",
        "overlap-sgp, topology: complete"};
    for (unsigned i = 0; i < 5; i++) {
        const struct outcome open = learn(algorithms[i], "iid", "none", "");
        const struct outcome held = learn(algorithms[i], "iid", "clip", "");
        assert_true(held.worst >= open.worst - 0.02);
        assert_true(held.hash == open.hash);
    }
}

/* What an int8 wire rounds is half of what is left between models that agree:
 * an honest peer with data of its own stood out, and 5,462 of 19,152 models
 * were rejected, of this seed; its class was forgotten, .89 for .96. */
static void test_wire_rounds(void **state)
{
    (void)state;
    static const char *const wires[] = {"bfloat16", "int8"};
    for (unsigned i = 0; i < 2; i++) {
        double means[2];
        uint64_t rejected = 0;
        for (unsigned guarded = 0; guarded < 2; guarded++) {
            const struct sim_options options = {.watch = true};
            struct probe probe = {.options = &options};
            probe_must(
                &probe,
                "name: rounds\nseed: 11\npeers: 10\nstop: {epochs: 60}\n"
                "model: {kind: mlp, layers: [64, 32, 10]}\n"
                "data: {kind: idx, path: %s/examples/data/digits, "
                "split: dirichlet(0.1)}\n"
                "train: {learning_rate: 0.05, momentum: 0.9, batch: 16, "
                "schedule: linear}\n"
                "gossip: {algorithm: dpsgd-atc, topology: complete, wire: %s, "
                "guard: %s}\n"
                "network: {latency: 200us}\ncompute: {step: 5ms}\n",
                source(), wires[i], guarded ? "clip" : "none");
            means[guarded] = probe.summary.accuracy.mean;
            rejected = probe.report.marks[KITH_MARK_REJECTED];
            probe_close(&probe);
        }
        printf("  %s: %.3f, with clip %.3f, %llu rejected\n", wires[i],
               means[0], means[1], (unsigned long long)rejected);
        assert_true(means[1] > means[0] - 0.02);
        assert_true(rejected < 2500);
    }
}

/* Two halves of sixteen come together again, though most neighbours of each
 * peer were on its own side: less guard none, their mean accuracy. */
static double parted(const char *gossip)
{
    double means[2];
    uint64_t clipped = 0;
    for (unsigned guarded = 0; guarded < 2; guarded++) {
        const struct sim_options options = {.watch = true};
        struct probe probe = {.options = &options};
        char yaml[1024];
        snprintf(
            yaml, sizeof yaml,
            "name: parted\nseed: 3\npeers: 16\nstop: {epochs: 60}\n"
            "model: {kind: mlp, layers: [64, 32, 10]}\n"
            "data: {kind: idx, path: %s/examples/data/digits, "
            "split: dirichlet(0.1)}\n"
            "train: {learning_rate: 0.05, momentum: 0.9, batch: 16}\n"
            "gossip: {algorithm: %s, guard: %s}\n"
            "network: {latency: 200us, rate: 1Gbit}\ncompute: {step: 5ms}\n"
            "faults: [{at: 450ms, for: 900ms, "
            "partition: \"peer(0..7) <-> peer(8..15)\"}]\n",
            source(), gossip, guarded ? "clip" : "none");
        probe_must(&probe, "%s", yaml);
        means[guarded] = probe.summary.accuracy.mean;
        clipped = probe.report.marks[KITH_MARK_CLIPPED];
        printf("  %s, %s: %.4f, %llu rejected\n", gossip,
               guarded ? "clip" : "none", means[guarded],
               (unsigned long long)probe.report.marks[KITH_MARK_REJECTED]);
        probe_close(&probe);
    }
    assert_true(clipped > 0);
    return means[1] - means[0];
}

static void test_parted(void **state)
{
    (void)state;
    assert_true(parted("dpsgd, topology: torus") >= -0.01);
    /* -.025 while who came nearer was spared for no longer. */
    assert_true(parted("diloco, topology: hypercube, every: 4") >= -0.01);
}

/* Peers crash with shares of weight under way: what comes home is booked. */
static void test_conserved(void **state)
{
    (void)state;
    const struct sim_options options = {.watch = true};
    struct probe probe = {.options = &options};
    char yaml[1024];
    snprintf(yaml, sizeof yaml,
             "name: home\nseed: 3\npeers: 8\nstop: {epochs: 60}\n"
             "model: {kind: mlp, layers: [64, 16, 10]}\n"
             "data: {kind: idx, path: %s/examples/data/digits}\n"
             "train: {learning_rate: 0.05, batch: 16, backend: naive64}\n"
             "gossip: {algorithm: sgp, guard: clip}\n"
             "network: {latency: 200us, rate: 10Mbit}\n"
             "compute: {step: 5ms}\nassert: [\"finally conserved\"]\n"
             "faults: [{at: 100ms, crash: \"peer(1)\", restart: 100ms}, "
             "{at: 500ms, crash: \"peer(2)\", restart: 100ms}, "
             "{at: 800ms, crash: \"peer(3)\", restart: 100ms}]\n",
             source());
    probe_must(&probe, "%s", yaml);
    assert_true(probe.report.marks[KITH_MARK_UNDONE] > 0);
    assert_int_equal(probe.summary.violations, 0);
    probe_close(&probe);
}

/* ---- one worker */

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

/* Where four are known nobody asks for it any more, and what it was measured
 * from is the system's memory again. */
static void test_own_movement_ends(void **state)
{
    (void)state;
    struct pair pair = open_pair("adpsgd");
    const struct kith_guarding *const guarding = &pair.worker->guarding;
    const double *const before = guarding->before;
    for (kith_id peer = 1; peer <= 5; peer++) {
        train(pair.worker, 3);
        merge(&pair, peer, 0.01);
        assert_true(guarding->has_before == (peer < 4));
        assert_true((before[0] != 0) == guarding->has_before);
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
    assert_memory_equal(few.worker->guarding.before, guarding->before,
                        guarding->coordinates * sizeof(double));
    merge(&one, 4, 0.01);
    assert_false(guarding->has_before);
    assert_null(carry_over(one.worker, many.worker));
    assert_false(many.worker->guarding.has_before);
    assert_true(*(const double *)many.worker->guarding.before == 0);

    memset((char *)guarding->state, 0xff, guarding->state_bytes);
    assert_string_equal(carry_over(one.worker, bad.worker),
                        "a guard's memory is damaged");
    kith_worker_close(one.worker);
    kith_worker_close(few.worker);
    kith_worker_close(many.worker);
    kith_worker_close(bad.worker);
}

static void test_refused_by_name(void **state)
{
    (void)state;
    static const char *const cases[][2] = {
        {"{algorithm: gossip-push, guard: clip}",
         "algorithm gossip-push needs none"},
        {"{algorithm: sgp-sync, topology: ring, guard: median}",
         "one that sees a model at a time"},
        {"{algorithm: sgp, guard: ubar}", "a share of a model"},
        {"{algorithm: choco, topology: ring, guard: clip}",
         "algorithm choco needs none"},
        {"{algorithm: adpsgd, guard: clap}", "did you mean \"clip\"?"}};
    for (unsigned i = 0; i < 5; i++) {
        char yaml[512], words[KITH_EXPERIMENT_ERROR_BYTES] = "";
        struct kith_experiment experiment;
        snprintf(yaml, sizeof yaml,
                 "name: no\nseed: 1\npeers: 8\nstop: {steps: 9}\n"
                 "model: {kind: quadratic, dim: 8}\ngossip: %s\n"
                 "compute: {step: 5ms}\n",
                 cases[i][0]);
        assert_int_equal(parse(yaml, NULL, &experiment, words), KITH_EINVAL);
        if (strstr(words, cases[i][1]) == NULL)
            fail_msg("%s: %s", cases[i][0], words);
    }
    char words[KITH_EXPERIMENT_ERROR_BYTES] = "";
    struct kith_experiment experiment;
    assert_int_equal(parse("name: no\nseed: 1\npeers: 8\nstop: {steps: 9}\n"
                           "model: {kind: consensus, dim: 8}\n"
                           "gossip: {guard: clip}\ncompute: {step: 5ms}\n",
                           NULL, &experiment, words),
                     KITH_EINVAL);
    assert_non_null(strstr(words, "model consensus does not learn"));
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
        cmocka_unit_test(test_liars),
        cmocka_unit_test(test_nobody_lies),
        cmocka_unit_test(test_wire_rounds),
        cmocka_unit_test(test_parted),
        cmocka_unit_test(test_conserved),
        cmocka_unit_test(test_refused_by_name),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
