/* Goal: an exchange of the real protocol takes the time that the literature's
 * laws give it on links of a fixed rate (T12), and what it takes beyond them is
 * known to the nanosecond.
 *
 * Method: the simulator drives the nodes; the time of an exchange is what some
 * more of them add to a run, the steps taken away. L is a link's latency, 1 / B
 * its seconds per byte, S the bytes of a vector, M those of its message with
 * header, records and tags, c those of a READY or ACK. Steps cost 1 ms, merges
 * nothing. Three links: bytes count, latency counts, both do. Where bytes count
 * the laws must hold to 1 %; where latency counts the protocol pays for its
 * answers (an edge commits on READY and ACK), by the factor that is printed:
 *
 *            law                    protocol, from cycle to cycle
 *   ring     2 (n - 1) (L + S/nB)   2 (n - 1) (2 L + (M + c) / B)
 *   doubling log2(n) (L + S/B)      log2(n) (2 L + (M + c) / B)
 *   tree     2 log2(n) (L + S/B)    2 log2(n) (L + M/B) + (2 log2(n) - 1) c/B
 *   pair     L + S/B                2 L + (M + 2 c) / B
 *   swap     2 (L + S/B)            5 L + (2 M + 3 c) / B, its last ACK
 * included
 *
 * A sender of an all-reduce waits for its READY before the next round. In the
 * tree who is told first is done first, so its next sum is on its way before
 * the root asks for it: that hides all of the waits. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>

#include <cmocka.h>

#include "sim/world.h"
#include "tests/support/simulate.h"

#define STEP_S 1e-3
/* Rounds from 256 to 65535 take 3 bytes in a header. */
#define ROUND 256u
/* Cycles until the peers keep step, and cycles that are measured. */
#define WARM 8u
#define CYCLES 8u

static const struct link {
    const char *counts, *network;
    double latency_s, byte_s;
    unsigned dim;  /* of a message's vector, float32 */
    double within; /* of the law, relative; 0: no such claim */
} links[] = {
    {"bytes", "latency: 1us, rate: 100Mbit", 1e-6, 80e-9, 8192, 0.01},
    {"latency", "latency: 10ms, rate: 1Gbit", 10e-3, 8e-9, 16, 0},
    {"both", "latency: 5ms, rate: 100Mbit", 5e-3, 80e-9, 8192, 0},
};
#define LINKS (sizeof links / sizeof links[0])

static double end_of(const struct link *link, unsigned peers, unsigned dim,
                     unsigned steps, const char *rest)
{
    char text[1024];
    (void)snprintf(text, sizeof text,
                   "name: law\nseed: 1\npeers: %u\nstop: {steps: %u}\n"
                   "model: {kind: consensus, dim: %u}\nnetwork: {%s}\n%s\n",
                   peers, steps, dim, link->network, rest);
    return simulate(text, NULL).summary.virtual_s;
}

/* Seconds of a cycle of so many rounds, its training included. */
static double cycle(const struct link *link, unsigned peers, unsigned dim,
                    unsigned rounds, unsigned every, const char *rest)
{
    const unsigned first = (ROUND / rounds + WARM) * every;
    const double before = end_of(link, peers, dim, first, rest);
    const double after = end_of(link, peers, dim, first + CYCLES * every, rest);
    return (after - before) / CYCLES;
}

/* Seconds that a message takes of a link. */
static double on_wire(const struct link *link, enum kith_message_kind kind,
                      enum kith_pattern pattern, uint64_t payload,
                      unsigned scalars)
{
    const uint64_t number = pattern == KITH_PATTERN_ROUND ? ROUND : 1;
    const bool weighs =
        pattern == KITH_PATTERN_SWAP && kind != KITH_MESSAGE_ACK;
    const struct kith_message message = {.kind = kind,
                                         .pattern = pattern,
                                         .overlap = weighs,
                                         .id = {.counter = number},
                                         .step = number,
                                         .payload_bytes = payload,
                                         .scalar_count = scalars};
    return link->byte_s * (double)sim_message_bytes(&message);
}

static double ready_of(const struct link *link)
{
    return on_wire(link, KITH_MESSAGE_READY, KITH_PATTERN_ROUND, 0, 0);
}

static double model_of(const struct link *link, uint64_t payload,
                       unsigned scalars)
{
    return on_wire(link, KITH_MESSAGE_MODEL, KITH_PATTERN_ROUND, payload,
                   scalars);
}

static void holds(const char *what, unsigned peers, const struct link *link,
                  double expected, double measured, double law)
{
    const double apart = fabs(measured / expected - 1);
    printf("  T12 %-30s n = %-4u %-7s expected %.9f s, measured %.9f "
           "s, law %.9f s, measured / law %.4f\n",
           what, peers, link->counts, expected, measured, law, measured / law);
    assert_true(apart < 1e-9);
    if (link->within > 0)
        assert_true(fabs(measured / law - 1) < link->within);
}

static double collective(const struct link *link, const char *name,
                         unsigned peers, unsigned dim, unsigned rounds)
{
    char rest[256];
    (void)snprintf(rest, sizeof rest,
                   "compute: {step: 1ms}\n"
                   "gossip: {algorithm: allreduce-%s, every: 1, deadline: "
                   "never}",
                   name);
    return cycle(link, peers, dim, rounds, 1, rest) - STEP_S;
}

static void test_ring(void **state)
{
    (void)state;
    for (size_t i = 0; i < LINKS; i++)
        for (unsigned n = 2; n <= 16; n *= 2) {
            const struct link *link = &links[i];
            const unsigned rounds = 2 * (n - 1);
            const uint64_t part = 4 * (uint64_t)link->dim;
            const double L = link->latency_s, c = ready_of(link);
            holds("ring", n, link,
                  rounds * (2 * L + model_of(link, part, 1) + c),
                  collective(link, "ring", n, link->dim * n, rounds),
                  rounds * (L + (double)part * link->byte_s));
        }
}

static void test_doubling(void **state)
{
    (void)state;
    for (size_t i = 0; i < LINKS; i++)
        for (unsigned n = 2, rounds = 1; n <= 16; n *= 2, rounds++) {
            const struct link *link = &links[i];
            const uint64_t bytes = 4 * (uint64_t)link->dim;
            const double L = link->latency_s, c = ready_of(link);
            holds("recursive doubling", n, link,
                  rounds * (2 * L + model_of(link, bytes, 1) + c),
                  collective(link, "doubling", n, link->dim, rounds),
                  rounds * (L + (double)bytes * link->byte_s));
        }
}

static double tree(const struct link *link, unsigned n, unsigned height)
{
    const uint64_t bytes = 4 * (uint64_t)link->dim;
    const unsigned rounds = 2 * height;
    const double L = link->latency_s;
    const double measured = collective(link, "tree", n, link->dim, rounds);
    holds("tree", n, link,
          rounds * (L + model_of(link, bytes, 1)) +
              (rounds - 1) * ready_of(link),
          measured, rounds * (L + (double)bytes * link->byte_s));
    return measured;
}

static void test_tree(void **state)
{
    (void)state;
    for (size_t i = 0; i < LINKS; i++)
        for (unsigned n = 2, height = 1; n <= 16; n *= 2, height++)
            (void)tree(&links[i], n, height);
}

/* What a run's file says of its steps; `by` 1: nobody is slow. */
static const char *compute(char text[96], const char *step, unsigned peer,
                           unsigned by)
{
    char slow[64] = "";
    if (by > 1)
        (void)snprintf(slow, sizeof slow,
                       ", slow: [{peers: \"peer(%u)\", by: %u}]", peer, by);
    (void)snprintf(text, 96, "compute: {step: %s%s}", step, slow);
    return text;
}

/* Rounds of two peers, one of them slower. */
static double pair(const struct link *link, const char *algorithm,
                   unsigned every, unsigned slow, unsigned by)
{
    char steps[96], rest[256];
    (void)snprintf(rest, sizeof rest,
                   "%s\ngossip: {algorithm: %s, every: %u, topology: "
                   "random-matching, deadline: never}",
                   compute(steps, "1ms", slow, by), algorithm, every);
    return cycle(link, 2, link->dim, 1, every, rest);
}

/* Both send at once. The higher rank's READY and the lower one's ACK follow;
 * of these two latencies the next round hides one, for the lower rank begins
 * it while the ACK is on its way. */
static void test_pair(void **state)
{
    (void)state;
    for (size_t i = 0; i < LINKS; i++) {
        const struct link *link = &links[i];
        const uint64_t bytes = 4 * (uint64_t)link->dim;
        const double L = link->latency_s;
        holds("pair, full duplex (dpsgd-atc)", 2, link,
              2 * L + model_of(link, bytes, 0) + 2 * ready_of(link),
              pair(link, "dpsgd-atc", 1, 0, 1) - STEP_S,
              L + (double)bytes * link->byte_s);
    }
}

/* max(H c_i, H c_j) + L + 2 S/B. A slower peer finds the other's model there;
 * where it is the one that decides, no ACK is waited for. */
static void test_noloco(void **state)
{
    (void)state;
    static const struct {
        unsigned slow, by;
    } cases[] = {{0, 1}, {0, 60}, {1, 60}};
    const unsigned every = 4;
    for (size_t i = 0; i < LINKS; i++)
        for (size_t k = 0; k < 3; k++) {
            const struct link *link = &links[i];
            const unsigned slow = cases[k].slow, by = cases[k].by;
            const uint64_t bytes = 8 * (uint64_t)link->dim;
            const double L = link->latency_s, train = every * by * STEP_S;
            const double answers = slow == 0 && by > 1 ? 1 : 2;
            char what[64];
            (void)snprintf(what, sizeof what, "noloco, peer %u %ux as slow",
                           slow, by);
            holds(what, 2, link,
                  train + 2 * L + model_of(link, bytes, 0) +
                      answers * ready_of(link),
                  pair(link, "noloco", every, slow, by),
                  train + L + (double)bytes * link->byte_s);
        }
}

/* max_i(H c_i) + T: one of n peers is slower, so that the others have had their
 * exchanges; its own n - 1 models leave one after another, the last READY ends
 * its round. The law is that of models sent to all at once, T = L +
 * (n - 1) S/B; against a ring it is n / 2 times the bytes, 2 of 2 (n - 1)
 * latencies. */
static void test_diloco(void **state)
{
    (void)state;
    const unsigned every = 4, by = 100;
    char steps[96], rest[256];
    (void)snprintf(rest, sizeof rest,
                   "%s\ngossip: {algorithm: diloco, every: %u, topology: "
                   "complete, deadline: never}",
                   compute(steps, "1ms", 0, by), every);
    for (size_t i = 0; i < LINKS; i++)
        for (unsigned n = 2; n <= 16; n *= 2) {
            const struct link *link = &links[i];
            const uint64_t bytes = 4 * (uint64_t)link->dim;
            const double L = link->latency_s, train = every * by * STEP_S;
            holds("diloco less max(H c)", n, link,
                  2 * L + (n - 1) * model_of(link, bytes, 0) + ready_of(link),
                  cycle(link, n, link->dim, 1, every, rest) - train,
                  L + (n - 1) * (double)bytes * link->byte_s);
        }
}

/* Peers in step send in the order of ranks, so that the last rank is
 * everybody's last: more than n - 1 vectors' time, less than the 2 n - 3 of its
 * own wait.
 */
static void test_diloco_in_step(void **state)
{
    (void)state;
    const struct link *link = &links[0];
    for (unsigned n = 4; n <= 16; n *= 2) {
        const double vector = model_of(link, 4 * (uint64_t)link->dim, 0);
        const double measured =
            cycle(link, n, link->dim, 1, 1,
                  "compute: {step: 1ms}\ngossip: {algorithm: diloco, every: 1, "
                  "topology: complete, deadline: never}") -
            STEP_S;
        printf("  T12 diloco, peers in step, n = %-2u: expected from %u to %u "
               "M/B, measured %.2f\n",
               n, n - 1, 2 * n - 3, measured / vector);
        assert_true(measured > (n - 1) * vector);
        assert_true(measured < (2 * n - 3) * vector);
    }
}

/* At the end of the run one peer asks the other, or each the other. */
static void swap(const struct link *link, const char *algorithm, unsigned by)
{
    const unsigned steps = 8; /* the first exchange opens the link */
    const uint64_t bytes = 4 * (uint64_t)link->dim;
    const enum kith_pattern pattern = KITH_PATTERN_SWAP;
    const double L = link->latency_s;
    char spent[96], rest[256], what[64];
    (void)snprintf(rest, sizeof rest, "%s\ngossip: {algorithm: %s, every: 4}",
                   compute(spent, "1s", 1, by), algorithm);
    /* Of two exchanges each end sends an answer, too, before its own model; it
     * has the way of the ACCEPT to leave in. It names no overlap: a byte less.
     */
    const double model = on_wire(link, KITH_MESSAGE_MODEL, pattern, bytes, 0);
    const double late = by > 1 ? 0 : fmax(0, model - link->byte_s - L);
    (void)snprintf(what, sizeof what, "swap, %s (%s)",
                   by > 1 ? "one asks" : "both ask", algorithm);
    holds(what, 2, link,
          5 * L + on_wire(link, KITH_MESSAGE_REQUEST, pattern, bytes, 0) +
              on_wire(link, KITH_MESSAGE_ACCEPT, pattern, 0, 0) + model + late +
              2 * on_wire(link, KITH_MESSAGE_ACK, pattern, 0, 0),
          end_of(link, 2, link->dim, steps, rest) - by * steps,
          (by > 1 ? 1 : 2) * (L + (double)bytes * link->byte_s));
}

/* REQUEST, ACCEPT, a model each way at once, ACK from both: one crossing of a
 * vector where one asks, and two on each line where both do. */
static void test_swap(void **state)
{
    (void)state;
    for (size_t i = 0; i < LINKS; i++)
        for (unsigned by = 1; by <= 10; by += 9) {
            swap(&links[i], "adpsgd", by);
            swap(&links[i], "elastic", by);
        }
}

/* The law's ratio is 2 log2(n) = 20; a pair that commits takes two latencies,
 * which leaves the published 10. */
static void test_tree_against_pair(void **state)
{
    (void)state;
    const struct link *link = &links[1];
    const double ratio =
        tree(link, 1024, 10) / (pair(link, "dpsgd-atc", 1, 0, 1) - STEP_S);
    printf("  T12 tree / pair, n = 1024: expected 10 measured %.4f, law 20\n",
           ratio);
    assert_true(fabs(ratio / 10 - 1) < 1e-3);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_ring),
        cmocka_unit_test(test_doubling),
        cmocka_unit_test(test_tree),
        cmocka_unit_test(test_pair),
        cmocka_unit_test(test_noloco),
        cmocka_unit_test(test_diloco),
        cmocka_unit_test(test_diloco_in_step),
        cmocka_unit_test(test_swap),
        cmocka_unit_test(test_tree_against_pair),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
