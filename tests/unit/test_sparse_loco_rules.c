/* Goal: a message of sparse-loco is looked at before any of it is used; a file
 * that gives it what it does not take is refused by name, pairs above all; it
 * learns what whole models do, in a hundredth of their bytes.
 * Method: a peer of three by hand, messages that are spoilt in one place each;
 * experiments that are wrong in one place each; the bundled digits. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <float.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "kith/algorithm.h"
#include "kith/compressor.h"
#include "kith/experiment.h"
#include "kith/topology.h"
#include "tests/support/probe.h"

/* ---- messages */

enum { SMALL = 8 };

/* Rank 1 of three, and what came of rank 0: four values, and four of phi. */
struct hand {
    struct kith_topology graph;
    struct kith_compression how;
    double coefficients[KITH_GOSSIP_KEY_COUNT], numbers[2 * KITH_EDGE_SCALARS];
    double x[SMALL], own[2][SMALL], scratch[2 * SMALL];
    void *vectors[2];
    unsigned char sent[128], received[128];
    const void *inboxes[1];
    struct kith_algebra algebra;
    struct kith_work_edge edge;
};

static const struct kith_algorithm *sparse_loco(void)
{
    return kith_algorithm_find("sparse-loco");
}

static void open_hand(struct hand *hand)
{
    memset(hand, 0, sizeof *hand);
    assert_int_equal(
        kith_topology_open(kith_topology_find("complete"), 3, &hand->graph),
        KITH_OK);
    hand->how = (struct kith_compression){
        kith_compressor_find("top-k-2bit"), kith_compressor_defaults(),
        kith_backend_find("naive64"), SMALL, NULL};
    hand->how.config.density = 0.5;
    hand->coefficients[KITH_GOSSIP_SHARE] = 0.5;
    hand->coefficients[KITH_GOSSIP_RATE] = 1;
    hand->coefficients[KITH_GOSSIP_DECAY] = 0.5;
    hand->vectors[0] = hand->own[0];
    hand->vectors[1] = hand->own[1];
    hand->edge.inbox = kith_slot_inbox(0, 0);
    hand->inboxes[0] = hand->received;
    hand->algebra = (struct kith_algebra){.backend = hand->how.backend,
                                          .dim = SMALL,
                                          .trained = SMALL,
                                          .peers = 3,
                                          .self = 1,
                                          .coefficients = hand->coefficients,
                                          .graph = &hand->graph,
                                          .compression = &hand->how,
                                          .live = hand->x,
                                          .vectors = hand->vectors,
                                          .scratch = hand->scratch,
                                          .edge_scalars = hand->numbers,
                                          .edge_count = 2,
                                          .merged = &hand->edge,
                                          .merged_count = 1,
                                          .inboxes = hand->inboxes,
                                          .sent = hand->sent,
                                          .received = hand->received};
    for (unsigned i = 0; i < SMALL; i++)
        hand->x[i] = i < 4 ? -4 : 0; /* v = 4, 4, 4, 4, 0, ... */
    sparse_loco()->make(&hand->algebra, &hand->edge);
    /* Of rank 0: q = 2 at 4 to 7, and phi = 1, 2, 3, 4 at 0 to 3. */
    static const double theirs[SMALL] = {0, 0, 0, 0, 2, 2, 2, 2};
    static const double phi[4] = {1, 2, 3, 4};
    assert_true(kith_compress(&hand->how, theirs, 0, hand->received));
    const size_t behind = kith_compression_bytes(&hand->how);
    assert_true(sparse_loco()->payload(&hand->algebra) == behind + sizeof phi);
    memcpy(hand->received + behind, phi, sizeof phi);
}

static void test_refuses(void **state)
{
    static const struct {
        const char *what;
        unsigned at;
        bool behind; /* q: of phi */
        double value;
        bool refused;
    } cases[] = {{"as it should be", 100, false, 0, false},
                 {"sizes that are none", 0, false, (double)NAN, true},
                 {"a size beyond the bound", 8, false, 1.1e30, true},
                 {"a size of 0 above", 8, false, 0, true},
                 {"phi that is none", 0, true, (double)NAN, true},
                 {"phi without end", 8, true, (double)-INFINITY, true},
                 {"phi beyond the bound", 24, true, 1.1e30, true}};
    static struct hand hand, before;
    (void)state;
    for (size_t n = 0; n < sizeof cases / sizeof *cases; n++) {
        open_hand(&hand);
        const size_t behind = kith_compression_bytes(&hand.how);
        /* Values are all equal: `lo` and `hi` both count. */
        memcpy(hand.received + (cases[n].behind ? behind : 0) + cases[n].at,
               &cases[n].value, sizeof cases[n].value);
        if (cases[n].at == 8 && cases[n].value == 1.1e30 && !cases[n].behind)
            memset(hand.received + 16, 0xff, 1); /* all of them large */
        before = hand;
        sparse_loco()->merge(&hand.algebra, &hand.edge);
        const bool refused = hand.edge.refused;
        (void)sparse_loco()->finish(&hand.algebra);
        const bool same = memcmp(hand.x, before.x, sizeof hand.x) == 0 &&
                          memcmp(hand.own, before.own, sizeof hand.own) == 0;
        printf("  %s: %s, expected %s; x, phi and e %s\n", cases[n].what,
               refused ? "refused" : "taken",
               cases[n].refused ? "refused" : "taken",
               same ? "as they were" : "changed");
        assert_true(refused == cases[n].refused && same == refused);
    }
}

/* By hand: of 4 at 0 to 3 here and 2 at 4 to 7 there phi falls by 2 and by 1,
 * its first half from what rank 0 says. */
static void test_mean(void **state)
{
    static const double expected[SMALL] = {-1, 0, 1, 2, -1, -1, -1, -1};
    static struct hand hand;
    double changed = 0, found;
    (void)state;
    open_hand(&hand);
    for (unsigned i = 0; i < SMALL; i++)
        changed += expected[i] - hand.x[i];
    sparse_loco()->merge(&hand.algebra, &hand.edge);
    found = sparse_loco()->finish(&hand.algebra);
    for (unsigned i = 0; i < SMALL; i++)
        printf("  phi %u: expected %g, measured %g; e: expected 0, measured "
               "%g\n",
               i, expected[i], hand.own[0][i], hand.own[1][i]);
    printf("  what x changed by: expected %g, measured %g\n", changed, found);
    assert_memory_equal(hand.own[0], expected, sizeof expected);
    assert_memory_equal(hand.x, expected, sizeof expected);
    assert_true(hand.own[1][0] == 0 && found == changed);
}

/* ---- files */

static void test_rules(void **state)
{
    static const struct {
        const char *train, *gossip, *says;
    } cases[] = {
        {"cpu", "topology: random-matching", "allowed: complete"},
        {"cpu", "topology: ring", "algorithm sparse-loco needs"},
        {"cpu", "compressor: top-k-2bit, wire: bfloat16",
         "what gossip.compressor makes"},
        {"cpu", "compressor: top-k-2bit, wire: moniqua8",
         "what gossip.compressor makes"},
        {"cpu", "guard: clip", "none: what it receives is not a model"},
        {"cpu", "momentum: 0.9", "algorithm sparse-loco does not read"},
        {"cpu", "share: 0", "share"},
        {"cuda", "compressor: top-k", "a backend of the host"},
        {"cuda", "compressor: top-k-2bit", "a backend of the host"},
        {"cpu", "compressor: top-k-2bit, density: 0.03, block: 1024", NULL},
        {"cpu", "compressor: int8", NULL},
        {"naive32", "share: 0.5, rate: 0.7, decay: 0", NULL}};
    (void)state;
    for (unsigned n = 0; n < sizeof cases / sizeof *cases; n++) {
        char text[512], error[KITH_EXPERIMENT_ERROR_BYTES] = "accepted";
        struct kith_experiment experiment;
        (void)snprintf(text, sizeof text,
                       "name: e\npeers: 4\nstop: {steps: 9}\n"
                       "model: {kind: mlp, layers: [64, 8, 10]}\n"
                       "data: {path: /data}\ntrain: {backend: %s}\n"
                       "gossip: {algorithm: sparse-loco, every: 3, %s}\n",
                       cases[n].train, cases[n].gossip);
        const bool loads =
            kith_experiment_parse("e", text, strlen(text), NULL, 0, &experiment,
                                  error) == KITH_OK;
        printf("  %s, %s: %s\n", cases[n].train, cases[n].gossip, error);
        assert_true(loads == (cases[n].says == NULL));
        assert_true(loads || (strstr(error, cases[n].says) != NULL &&
                              strstr(error, "e:") != NULL));
        if (loads)
            kith_experiment_close(&experiment);
    }
}

/* ---- what it learns */

static double digits_loss(const char *gossip, double *accuracy, uint64_t *bytes)
{
    struct probe probe = {.period = 0};
    const char *const source = getenv("srcdir");
    char *const path = realpath(source != NULL ? source : ".", NULL);
    assert_non_null(path);
    probe_must(&probe,
               "name: digits\nseed: 7\npeers: 5\nstop: {epochs: 20}\n"
               "model: {kind: mlp, layers: [64, 32, 10]}\n"
               "data: {kind: idx, path: %s/examples/data/digits, split: iid}\n"
               "train: {backend: naive32, learning_rate: 0.05, momentum: 0.9, "
               "schedule: linear, batch: 16}\n"
               "gossip: {every: 5, %s}\ncompute: {step: 1ms}\n",
               path, gossip);
    const double loss = probe.summary.loss.mean;
    *accuracy = probe.summary.accuracy.mean;
    *bytes = probe.report.bulk_bytes;
    probe_close(&probe);
    free(path);
    return loss;
}

static void test_learns(void **state)
{
    static const struct {
        const char *gossip;
        double most;   /* loss over that of whole models */
        double fewest; /* of whole models' bytes over its own */
    } cases[] = {
        {"algorithm: sparse-loco, compressor: top-k-2bit, density: 0.1", 1.2,
         36},
        {"algorithm: sparse-loco, compressor: top-k-2bit, density: 0.03", 1.3,
         90},
        {"algorithm: sparse-loco, compressor: top-k, density: 0.03", 1.3, 20},
        {"algorithm: sparse-loco, compressor: int8", 1.1, 3.5}};
    double accuracy;
    uint64_t dense_bytes, bytes;
    (void)state;
    const double dense = digits_loss("algorithm: local-sgd, topology: complete",
                                     &accuracy, &dense_bytes);
    printf("  local-sgd: loss %.4f, accuracy %.4f\n", dense, accuracy);
    for (unsigned n = 0; n < sizeof cases / sizeof *cases; n++) {
        const double loss = digits_loss(cases[n].gossip, &accuracy, &bytes);
        const double fewer = (double)dense_bytes / (double)bytes;
        printf("  %s: loss %.4f, %.3f times that, expected below %.2f; "
               "accuracy %.4f; bytes 1/%.1f, expected at most 1/%g\n",
               cases[n].gossip, loss, loss / dense, cases[n].most, accuracy,
               fewer, cases[n].fewest);
        assert_true(loss < cases[n].most * dense && accuracy > 0.9);
        assert_true(fewer > cases[n].fewest);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_refuses),
        cmocka_unit_test(test_mean),
        cmocka_unit_test(test_rules),
        cmocka_unit_test(test_learns),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
