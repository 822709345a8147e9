/* Goal: a message of update-sets is looked at before any of it is used; a file
 * that it cannot run is refused by name; it learns what pairs of whole models
 * do.
 * Method: a peer of four by hand, messages that are spoilt in one place each;
 * experiments that are wrong in one place each; the bundled digits. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

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

enum { SMALL = 2000, VECTORS = 6, WINDOW = 14, MASKS = 2 };

/* One of four, and the message that it made itself, as if it were another's. */
struct hand {
    struct kith_topology graph;
    struct kith_compression how;
    double coefficients[KITH_GOSSIP_KEY_COUNT];
    double x[SMALL], own[VECTORS][SMALL];
    void *vectors[VECTORS];
    _Alignas(64) unsigned char scratch[4 * SMALL * sizeof(double)];
    unsigned char sent[SMALL], received[SMALL];
    struct kith_algebra algebra;
    struct kith_work_edge edge;
};

static const struct kith_algorithm *update_sets(void)
{
    return kith_algorithm_find("update-sets");
}

static void open_hand(struct hand *hand)
{
    memset(hand, 0, sizeof *hand);
    assert_int_equal(kith_topology_open(kith_topology_find("random-matching"),
                                        4, &hand->graph),
                     KITH_OK);
    hand->how = (struct kith_compression){
        kith_compressor_find("top-k-2bit"), kith_compressor_defaults(),
        kith_backend_find("naive64"), SMALL, NULL};
    hand->coefficients[KITH_GOSSIP_SHARE] = 0.01;
    hand->coefficients[KITH_GOSSIP_RATE] = 1;
    for (unsigned i = 0; i < VECTORS; i++)
        hand->vectors[i] = hand->own[i];
    hand->algebra = (struct kith_algebra){.backend = hand->how.backend,
                                          .dim = SMALL,
                                          .trained = SMALL,
                                          .peers = 4,
                                          .coefficients = hand->coefficients,
                                          .graph = &hand->graph,
                                          .compression = &hand->how,
                                          .live = hand->x,
                                          .vectors = hand->vectors,
                                          .scratch = hand->scratch,
                                          .sent = hand->sent,
                                          .received = hand->received};
    assert_true(update_sets()->scratch_bytes(&hand->algebra) <=
                sizeof hand->scratch);
    assert_true(update_sets()->payload(&hand->algebra) <= sizeof hand->sent);
    assert_null(update_sets()->wants(&hand->algebra));
    hand->x[7] = -3;
    update_sets()->make(&hand->algebra, &hand->edge);
    memcpy(hand->received, hand->sent, sizeof hand->sent);
    kith_id partner[KITH_DEGREE_MAX];
    assert_int_equal(
        kith_topology_neighbours(&hand->graph, 0, 0, partner, NULL), 1);
    hand->edge.peer = partner[0];
    /* Of rank 0, round 0: as if its partner had made it. */
    assert_int_equal(hand->received[0], 1);
    hand->received[MASKS + 8 * WINDOW] = (unsigned char)partner[0];
}

static void test_refuses(void **state)
{
    enum { UPDATE = MASKS + 8 * WINDOW };
    static struct hand hand, before;
    (void)state;
    open_hand(&hand);
    const unsigned each = 2 + (unsigned)kith_compression_bytes(&hand.how);
    const struct {
        const char *what;
        unsigned at, byte;
        bool refused;
    } cases[] = {
        {"as it should be", 1, 0, false},
        {"more updates than there is room for", 0, 6, true},
        {"neither young nor old", 1, 2, true},
        {"an update of rank n", UPDATE, 4, true},
        {"one of a round before all", UPDATE + 1, 1, true},
        {"one that is older than the log", UPDATE + 1, 200, true},
        {"one with a size that is no number", UPDATE + 2 + 7, 0xff, true},
        {"one with places that none has", UPDATE + each - 1, 0xff, true},
        {"values that are none", UPDATE + 5 * each + 7, 0x7f, true}};
    for (size_t n = 0; n < sizeof cases / sizeof *cases; n++) {
        open_hand(&hand);
        hand.received[cases[n].at] = (unsigned char)cases[n].byte;
        if (cases[n].byte == 0x7f)
            hand.received[cases[n].at - 1] = 0xf0; /* infinite */
        before = hand;
        update_sets()->merge(&hand.algebra, &hand.edge);
        const bool same = memcmp(hand.x, before.x, sizeof hand.x) == 0 &&
                          memcmp(hand.own, before.own, sizeof hand.own) == 0;
        printf("  %s: %s, expected %s; what it keeps is %s\n", cases[n].what,
               hand.edge.refused ? "refused" : "taken",
               cases[n].refused ? "refused" : "taken",
               same ? "as it was" : "changed");
        assert_true(hand.edge.refused == cases[n].refused);
        assert_true(same == cases[n].refused);
    }
}

/* What a partner says that it knows of ranks that there are not is nothing. */
static void test_ranks_that_are_none(void **state)
{
    static struct hand hand, other;
    (void)state;
    open_hand(&hand);
    open_hand(&other);
    other.received[MASKS + 1] |= 0x21;
    other.received[MASKS] |= 0xf0;
    update_sets()->merge(&hand.algebra, &hand.edge);
    update_sets()->merge(&other.algebra, &other.edge);
    assert_false(hand.edge.refused || other.edge.refused);
    assert_memory_equal(hand.own, other.own, sizeof hand.own);
}

/* Both know the same two updates, of 3 at one place: so is the mean. */
static void test_mean(void **state)
{
    static struct hand hand;
    (void)state;
    open_hand(&hand);
    update_sets()->merge(&hand.algebra, &hand.edge);
    const double changed = update_sets()->finish(&hand.algebra);
    printf("  x: expected -3, measured %g; changed by: expected 0, measured "
           "%g\n",
           hand.x[7], changed);
    assert_true(hand.x[7] == -3 && changed == 0);
    hand.algebra.round = 1; /* and stays, where nothing is new */
    update_sets()->make(&hand.algebra, &hand.edge);
    (void)update_sets()->finish(&hand.algebra);
    assert_true(hand.x[7] == -3);
}

/* ---- files */

static void test_rules(void **state)
{
    static const struct {
        const char *train, *gossip, *says;
        unsigned peers;
    } cases[] = {
        {"cpu", "compressor: top-k-2bit", NULL, 4},
        {"cpu", "compressor: top-k-2bit, density: 0.03", NULL, 8},
        {"cpu", "compressor: none", "fit three models", 4},
        {"cpu", "compressor: int8", "fit three models", 4},
        {"cpu", "compressor: top-k-2bit, density: 0.3", "fit three models", 8},
        {"cpu", "compressor: top-k-2bit, density: 1e-9", "64 peers or fewer",
         65},
        {"cpu", "compressor: top-k-2bit, topology: ring",
         "algorithm update-sets needs", 4},
        {"cpu", "compressor: top-k-2bit, topology: complete",
         "allowed: random-matching", 4},
        {"cpu", "compressor: top-k-2bit, wire: int8",
         "what gossip.compressor makes", 4},
        {"cpu", "compressor: top-k-2bit, guard: clip",
         "none: what it receives is not a model", 4},
        {"cuda", "compressor: top-k-2bit", "a backend of the host", 4}};
    (void)state;
    for (unsigned n = 0; n < sizeof cases / sizeof *cases; n++) {
        char text[512], error[KITH_EXPERIMENT_ERROR_BYTES] = "accepted";
        struct kith_experiment experiment;
        (void)snprintf(text, sizeof text,
                       "name: e\npeers: %u\nstop: {steps: 9}\n"
                       "model: {kind: mlp, layers: [64, 64, 10]}\n"
                       "data: {path: /data}\ntrain: {backend: %s}\n"
                       "gossip: {algorithm: update-sets, every: 3, %s}\n",
                       cases[n].peers, cases[n].train, cases[n].gossip);
        const bool loads =
            kith_experiment_parse("e", text, strlen(text), NULL, 0, &experiment,
                                  error) == KITH_OK;
        printf("  %s, %s: %s\n", cases[n].train, cases[n].gossip, error);
        assert_true(loads == (cases[n].says == NULL));
        assert_true(loads || strstr(error, cases[n].says) != NULL);
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
    double accuracy;
    uint64_t dense_bytes, bytes;
    (void)state;
    const double dense =
        digits_loss("algorithm: local-sgd, topology: random-matching",
                    &accuracy, &dense_bytes);
    printf("  local-sgd of pairs: loss %.4f, accuracy %.4f\n", dense, accuracy);
    const double loss = digits_loss(
        "algorithm: update-sets, compressor: top-k-2bit, density: 0.03",
        &accuracy, &bytes);
    printf("  update-sets: loss %.4f, %.3f times that, expected below 1.2; "
           "accuracy %.4f; bytes %.4f of them, expected below 0.1\n",
           loss, loss / dense, accuracy, (double)bytes / (double)dense_bytes);
    assert_true(loss < 1.2 * dense && accuracy > 0.9);
    assert_true((double)bytes < 0.1 * (double)dense_bytes);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_refuses),
        cmocka_unit_test(test_ranks_that_are_none),
        cmocka_unit_test(test_mean),
        cmocka_unit_test(test_rules),
        cmocka_unit_test(test_learns),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
