/* Goal: the analyser of models within a host says which vectors travel, from
 * where, and how many copies each took (T6.5 of the papers' tests): on workload
 * W1 all that is sent lies in shared memory, so once a neighbour has mapped it,
 * from the second exchange on, nothing is copied; packed messages (top-k) are
 * announced as what they are.
 * Method: eight real peers on a ring, dense and top-k, and what they log; the
 * count of the first exchange is test_shared_models'. Prints expected and
 * measured. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>
#include <cmocka.h>

#include "tests/support/peers.h"

#define PEERS 8u
#define LINKS (2 * PEERS) /* of a ring, each way */
#define STEPS 60u

#define W1                                                                     \
    "name: w1\nseed: 1\npeers: 8\nstop: {steps: 60}\n"                         \
    "model: {kind: mlp, layers: [100, 64, 10]}\n"                              \
    "data: {kind: gaussian, rows: 8000, spread: 0.28}\n"                       \
    "train: {learning_rate: 0.05, batch: 16}\n"                                \
    "compute: {step: 20ms}\nsave: never\n"                                     \
    "network: {same_host: shared-memory}\n"

/* Sums over the peers, of their lines. */
struct travelled {
    unsigned long long models, memory, channel, outside;
    unsigned told, of_static, of_dynamic; /* slots, for their first model */
    unsigned long long bytes;             /* of the last one named */
};

static void read_lines(const struct peers_shared *shared, struct travelled *sum)
{
    for (uint32_t i = 0; i < shared->line_count; i++) {
        const char *line = strstr(shared->lines[i], "travelled ");
        unsigned slots, slot, step, copies;
        unsigned long long memory, channel, outside, bytes;
        char length[16], from[16];
        if (line != NULL &&
            sscanf(line,
                   "travelled slots=%u memory=%llu channel=%llu outside=%llu",
                   &slots, &memory, &channel, &outside) == 4) {
            sum->models += memory + channel + outside;
            sum->memory += memory;
            sum->channel += channel;
            sum->outside += outside;
        }
        line = strstr(shared->lines[i], "travels ");
        if (line == NULL ||
            sscanf(line,
                   "travels slot=%u length=%15s bytes=%llu step=%u "
                   "from=%15s copies=%u",
                   &slot, length, &bytes, &step, from, &copies) != 6)
            continue;
        assert_int_equal(copies, strcmp(from, "memory") != 0);
        sum->told++;
        sum->of_static += strcmp(length, "static") == 0;
        sum->of_dynamic += strcmp(length, "dynamic") == 0;
        sum->bytes = bytes;
    }
}

static struct travelled travel(const char *gossip)
{
    struct travelled sum = {0};
    struct peers peers;
    char yaml[1024];
    snprintf(yaml, sizeof yaml, W1 "gossip: {%s}\n", gossip);
    peers_open(&peers, yaml);
    peers_start_all(&peers);
    for (kith_id i = 0; i < PEERS; i++)
        assert_true(peers_wait_finished(&peers, i, 60));
    assert_true(peers_stop(&peers, 20));
    for (kith_id i = 0; i < PEERS; i++)
        read_lines(&peers.shared[i], &sum);
    peers_close(&peers);
    return sum;
}

/* How many go before the neighbour has mapped our memory is a matter of time:
 * one a link where nothing else keeps the machine busy. */
static void report(const char *name, const struct travelled *sum)
{
    printf("# %s: %llu of %llu messages went before the memory was mapped\n",
           name, sum->channel, sum->models);
    printf("T6.5 W1, %s: copies of messages of %llu bytes once the neighbour "
           "has the memory: expected 0, measured %llu of %llu\n",
           name, sum->bytes, sum->outside, sum->memory + sum->outside);
    assert_int_equal(sum->outside, 0);
    assert_true(sum->models > LINKS * STEPS / 2);
    assert_true(sum->memory > sum->models / 2);
}

static void dense_models_lie_in_memory(void **state)
{
    (void)state;
    const struct travelled sum = travel("algorithm: dpsgd, topology: ring");
    report("dpsgd", &sum);
    printf("T6.5 W1, dpsgd: vectors told of as static, as dynamic: expected "
           "%u and 0, measured %u and %u\n",
           sum.told, sum.of_static, sum.of_dynamic);
    assert_int_equal(sum.bytes, 7114 * 4);
    assert_true(sum.told > 0 && sum.of_static == sum.told);
}

static void packed_messages_are_dynamic(void **state)
{
    (void)state;
    const struct travelled sum =
        travel("algorithm: choco, topology: ring, compressor: top-k, "
               "density: 0.01, consensus: 0.05");
    report("top-k", &sum);
    printf("T6.5 W1, top-k: vectors told of as static, as dynamic: expected 0 "
           "and %u, measured %u and %u\n",
           sum.told, sum.of_static, sum.of_dynamic);
    assert_true(sum.told > 0 && sum.of_dynamic == sum.told);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(dense_models_lie_in_memory),
        cmocka_unit_test(packed_messages_are_dynamic),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
