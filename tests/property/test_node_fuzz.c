/* Goal: nothing that an authenticated peer sends reaches an assertion of the
 * core or makes effects overflow; the node keeps its invariants, which
 * kith_node_step checks after every event. Method: nodes of every algorithm on
 * every graph that its mode allows hear messages of all kinds, drawn near what
 * they said last or far from it, while items end, deadlines pass, links break
 * and models arrive late. KITH_FUZZ_MESSAGES sets how many messages in all; a
 * failing case prints the seed that KITH_SEED repeats. */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "kith/node.h"
#include "kith/rng.h"

enum { PEERS = 8, HEARD = 32, LATE = 4, MESSAGES = 500000 };

/* A model whose inbox was asked for and whose bytes are under way. */
struct late {
    struct kith_message message;
    kith_id from;
    bool used;
};

struct victim {
    struct kith_node_config config;
    struct kith_topology topology;
    struct kith_node *node;
    struct kith_effects effects;
    struct kith_rng rng;
    struct kith_send heard[HEARD]; /* what it said last */
    uint32_t said;
    struct late late[LATE];
    struct kith_work work;
    bool working;
    kith_id self;
    kith_ns now_ns;
    uint64_t messages, taken;
};

static struct victim victim;
static uint64_t marks[KITH_MARK_COUNT]; /* of all: what was reached */
static char repeat[160];

/* An assertion ends the process: say first how to repeat it. */
static void on_abort(int number)
{
    (void)number;
    const ssize_t written = write(2, repeat, strlen(repeat));
    _exit(written < 0 ? 3 : 2);
}

static uint32_t below(uint32_t n)
{
    return kith_rng_below(&victim.rng, n);
}

static void step(struct kith_event event)
{
    struct victim *v = &victim;
    event.now_ns = v->now_ns;
    kith_node_step(v->node, &event, &v->effects);
    assert_true(v->effects.send_count <= KITH_EFFECT_SENDS);
    assert_true(v->effects.mark_count <= KITH_EFFECT_MARKS);
    for (uint32_t i = 0; i < v->effects.send_count; i++) {
        assert_true(v->effects.sends[i].to < PEERS);
        v->heard[v->said++ % HEARD] = v->effects.sends[i];
    }
    for (uint32_t i = 0; i < v->effects.mark_count; i++)
        marks[v->effects.marks[i].kind]++;
    if (v->effects.has_work) {
        assert_false(v->working);
        v->working = true;
        v->work = v->effects.work;
    }
}

/* The worker ends its item: it writes what MERGE found. */
static void end_work(void)
{
    struct kith_work_result result = {.kind = victim.work.kind};
    if (!victim.working)
        return;
    victim.working = false;
    result.finite = result.kind != KITH_WORK_TRAIN || below(50) != 0;
    result.recovered =
        (!result.finite || result.kind == KITH_WORK_MERGE) && below(2) != 0;
    for (uint32_t e = 0; e < victim.work.edge_count; e++)
        victim.work.edges[e].refused =
            result.kind == KITH_WORK_MERGE && below(8) == 0;
    step((struct kith_event){.kind = KITH_EVENT_WORK_DONE, .result = &result});
}

static uint64_t far_number(void)
{
    static const uint64_t far[] = {0,          UINT64_MAX,     UINT64_MAX - 1,
                                   1ull << 63, UINT64_MAX / 2, 1ull << 32};
    return below(2) != 0 ? far[below(6)] : kith_rng_u64(&victim.rng);
}

/* Near a number that it knows, or anywhere. */
static uint64_t number_near(uint64_t number)
{
    const uint32_t chance = below(16);
    return chance < 10   ? number
           : chance < 15 ? number + below(8) - 4
                         : far_number();
}

static double scalar(void)
{
    static const double odd[] = {0, -1, 0.5, 1e300, 5e-324};
    return below(4) != 0 ? kith_rng_double(&victim.rng) : odd[below(5)];
}

/* What an honest peer may say to a message of that kind. */
static enum kith_message_kind answer_to(enum kith_message_kind kind)
{
    switch (kind) {
    case KITH_MESSAGE_REQUEST:
        return below(4) != 0 ? KITH_MESSAGE_ACCEPT : KITH_MESSAGE_BUSY;
    case KITH_MESSAGE_ACCEPT:
        return KITH_MESSAGE_MODEL;
    case KITH_MESSAGE_MODEL:
        return below(2) != 0 ? KITH_MESSAGE_MODEL
               : below(2)    ? KITH_MESSAGE_READY
                             : KITH_MESSAGE_ACK;
    case KITH_MESSAGE_READY:
        return KITH_MESSAGE_ACK;
    case KITH_MESSAGE_ABORT:
        return KITH_MESSAGE_ABORTED;
    case KITH_MESSAGE_PROBE:
        return below(2) != 0 ? KITH_MESSAGE_ACCEPT : KITH_MESSAGE_PROBE;
    case KITH_MESSAGE_BUSY:
    case KITH_MESSAGE_ACK:
    case KITH_MESSAGE_ABORTED:
    case KITH_MESSAGE_BYE:
    case KITH_MESSAGE_COUNT:
        break;
    }
    return below(KITH_MESSAGE_COUNT);
}

/* Out of the blue: a REQUEST, or a MODEL of the round at hand. */
static struct kith_message begin_something(kith_id *from)
{
    struct kith_node_counters counters;
    const enum kith_pattern own = victim.config.algorithm->pattern;
    const bool round = own == KITH_PATTERN_ROUND && below(4) != 0;
    kith_node_counters(victim.node, &counters);
    *from = below(PEERS);
    return (struct kith_message){
        .kind = round ? KITH_MESSAGE_MODEL : KITH_MESSAGE_REQUEST,
        .pattern = below(8) == 0 ? KITH_PATTERN_PULL : own,
        .id = {.counter = round ? counters.rounds + below(2) : below(100)},
        .mine = !round || *from < victim.self,
        .step = round ? counters.rounds : counters.steps};
}

static struct kith_message answer_something(kith_id *from)
{
    const uint32_t count = victim.said < HEARD ? victim.said : HEARD;
    const uint32_t age = below(below(2) != 0 ? count : count < 4 ? count : 4);
    const struct kith_send *about =
        &victim.heard[(victim.said - 1 - age) % HEARD];
    struct kith_message message = about->message;
    *from = about->to;
    message.mine = !message.mine;
    message.kind = answer_to(message.kind);
    return message;
}

/* Likely or not: any field may be wrong. */
static struct kith_message draw_message(kith_id *from)
{
    struct kith_message message = victim.said > 0 && below(4) != 0
                                      ? answer_something(from)
                                      : begin_something(from);
    if (below(4) == 0)
        message.kind = below(KITH_MESSAGE_COUNT);
    if (below(16) == 0)
        *from = below(PEERS + 1);
    if (below(16) == 0)
        message.pattern = below(KITH_PATTERN_COUNT);
    if (below(16) == 0)
        message.mine = below(2) != 0;
    if (below(8) == 0)
        message.id.counter = number_near(message.id.counter);
    if (below(16) == 0)
        message.id.incarnation = below(3);
    if (below(8) == 0)
        message.step = number_near(message.step);
    message.payload_bytes =
        below(16) == 0 ? kith_rng_u64(&victim.rng)
                       : kith_node_payload(&victim.config, message.pattern,
                                           message.id.counter);
    message.scalar_count = below(16) == 0
                               ? below(KITH_SCALARS_MAX + 1)
                               : victim.config.algorithm->scalar_count;
    for (uint32_t i = 0; i < KITH_SCALARS_MAX; i++)
        message.scalars[i] = scalar();
    message.slot = KITH_SLOT_NONE;
    message.finite = true;
    return message;
}

static void deliver(const struct kith_message *message, kith_id from)
{
    victim.messages++;
    victim.taken += message->slot != KITH_SLOT_NONE;
    step((struct kith_event){
        .kind = KITH_EVENT_MESSAGE, .from = from, .message = message});
}

/* A model's header asks for its inbox; its bytes come now or later. */
static void say(void)
{
    kith_id from;
    struct kith_message message = draw_message(&from);
    if (message.kind != KITH_MESSAGE_MODEL) {
        deliver(&message, from);
        return;
    }
    message.slot = kith_node_inbox(victim.node, from, &message);
    message.finite = below(8) != 0;
    struct late *late = &victim.late[below(LATE)];
    if (below(2) == 0 || late->used)
        deliver(&message, from);
    else
        *late = (struct late){.message = message, .from = from, .used = true};
}

static void arrive(void)
{
    struct late *late = &victim.late[below(LATE)];
    if (!late->used)
        return;
    late->used = false;
    deliver(&late->message, late->from);
}

static kith_id neighbour(void)
{
    return (victim.self + 1 + below(PEERS - 1)) % PEERS;
}

static void act(void)
{
    const uint32_t chance = below(100);
    victim.now_ns += below(3) * (kith_ns)below(1000000);
    if (chance < 55) {
        say();
    } else if (chance < 65) {
        arrive();
    } else if (chance < 90) {
        end_work();
    } else if (chance < 96) {
        if (victim.effects.deadline_ns != KITH_NEVER &&
            victim.effects.deadline_ns > victim.now_ns)
            victim.now_ns = victim.effects.deadline_ns;
        step((struct kith_event){.kind = KITH_EVENT_WAKE});
    } else if (chance < 99) {
        step((struct kith_event){.kind = below(2) ? KITH_EVENT_LINK_DOWN
                                                  : KITH_EVENT_LINK_UP,
                                 .from = neighbour()});
    } else if (below(200) == 0) {
        step((struct kith_event){.kind = KITH_EVENT_LEAVE});
    } else {
        step((struct kith_event){.kind = below(4) ? KITH_EVENT_GO_ON
                                                  : KITH_EVENT_PAUSE});
    }
}

static bool opens(const struct kith_algorithm *algorithm,
                  const struct kith_topology_kind *kind, uint64_t seed)
{
    const bool rounds = algorithm->pattern == KITH_PATTERN_ROUND;
    if (kith_topology_open(kind, PEERS, &victim.topology) != KITH_OK)
        return false;
    victim.topology.seed = seed;
    /* What the experiment's rules refuse never reaches a node. */
    return !rounds || (!kith_topology_is_any_pair(kind) &&
                       (algorithm->wait != KITH_WAIT_NO || kind->is_static));
}

static void fuzz(const struct kith_algorithm *algorithm,
                 const struct kith_topology_kind *kind, uint64_t seed,
                 uint64_t messages)
{
    struct victim *v = &victim;
    memset(v, 0, sizeof *v);
    if (!opens(algorithm, kind, seed))
        return;
    snprintf(repeat, sizeof repeat,
             "%s on %s: repeat with KITH_SEED=%llu KITH_FUZZ_MESSAGES=...\n",
             algorithm->name, kind->name, (unsigned long long)seed);
    kith_rng_init(&v->rng, seed, KITH_STREAM_TEST, 0);
    v->config = (struct kith_node_config){
        .algorithm = algorithm,
        .topology = &v->topology,
        .seed = seed,
        .steps = below(4) == 0 ? UINT64_MAX : 20 + below(400),
        .every = 1 + below(3),
        .phases = below(3),
        .payload_bytes = 32,
        .model_bytes = below(2) * 64,
        .slice_bytes = 16,
        .period = below(3),
        .save_period_ns = below(2) * KITH_S,
        .retries = below(4)};
    v->self = below(PEERS);
    v->node = kith_node_init(calloc(1, kith_node_size(&v->config)), &v->config,
                             v->self, below(2), 0, below(4) == 0);
    v->now_ns = KITH_S;
    step((struct kith_event){.kind = KITH_EVENT_START});
    while (v->messages < messages)
        act();
    free(v->node);
}

static void test_any_message(void **state)
{
    (void)state;
    const char *only = getenv("KITH_SEED");
    const char *count = getenv("KITH_FUZZ_MESSAGES");
    const uint64_t all = count != NULL ? strtoull(count, NULL, 10) : MESSAGES;
    const uint64_t seed = only != NULL ? strtoull(only, NULL, 10) : 1;
    enum { EACH = 500 };
    uint64_t heard = 0, taken = 0;
    for (uint64_t s = seed; heard < all; s++)
        for (unsigned a = 0; kith_algorithms[a] != NULL; a++)
            for (unsigned k = 0; kith_topology_kinds[k] != NULL; k++) {
                victim.messages = victim.taken = 0;
                fuzz(kith_algorithms[a], kith_topology_kinds[k], s, EACH);
                heard += victim.messages;
                taken += victim.taken;
            }
    printf("%llu messages, %llu models taken\n", (unsigned long long)heard,
           (unsigned long long)taken);
    /* Those from CLIPPED on are written by drivers. */
    for (unsigned kind = 0; kind < KITH_MARK_CLIPPED; kind++) {
        printf("%s %llu\n", kith_mark_name(kind),
               (unsigned long long)marks[kind]);
        assert_true(marks[kind] > 0);
    }
    assert_true(taken > heard / 100);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_any_message)};
    signal(SIGABRT, on_abort);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
