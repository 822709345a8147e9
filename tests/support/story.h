/* One node stepped by hand: the test plays worker and neighbours. Included by
 * the tests that tell its stories; the state is theirs. */
#ifndef KITH_TESTS_STORY_H
#define KITH_TESTS_STORY_H

#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "kith/node.h"

static struct kith_topology topology;
static struct kith_node_config config;
static struct kith_node *node;
static struct kith_effects effects;
static kith_ns now_ns;

static inline void open_node(const char *algorithm, const char *graph,
                             uint32_t peers, kith_id self, bool adopt)
{
    now_ns = KITH_S;
    assert_int_equal(
        kith_topology_open(kith_topology_find(graph), peers, &topology),
        KITH_OK);
    config =
        (struct kith_node_config){.algorithm = kith_algorithm_find(algorithm),
                                  .topology = &topology,
                                  .seed = 7,
                                  .steps = 10,
                                  .every = 1,
                                  .payload_bytes = 32,
                                  .save_period_ns = KITH_S,
                                  .retries = 1};
    free(node);
    node = kith_node_init(calloc(1, kith_node_size(&config)), &config, self, 0,
                          0, adopt);
}

static inline void step(const struct kith_event *event)
{
    struct kith_event copy = *event;
    copy.now_ns = now_ns;
    kith_node_step(node, &copy, &effects);
}

static inline void say(kith_id from, struct kith_message message)
{
    step(&(struct kith_event){
        .kind = KITH_EVENT_MESSAGE, .from = from, .message = &message});
}

static inline void worked(enum kith_work_kind kind)
{
    const struct kith_work_result result = {.kind = kind, .finite = true};
    assert_true(effects.has_work || kind == KITH_WORK_COUNT);
    step(&(struct kith_event){.kind = KITH_EVENT_WORK_DONE, .result = &result});
}

static inline void down(kith_id peer)
{
    step(&(struct kith_event){.kind = KITH_EVENT_LINK_DOWN, .from = peer});
}

static inline void start(void)
{
    step(&(struct kith_event){.kind = KITH_EVENT_START});
}

/* Jumps to the next deadline. */
static inline void expire(void)
{
    assert_true(effects.deadline_ns != KITH_NEVER);
    now_ns = effects.deadline_ns;
    step(&(struct kith_event){.kind = KITH_EVENT_WAKE});
}

static inline bool marked(enum kith_mark_kind kind)
{
    for (uint32_t i = 0; i < effects.mark_count; i++)
        if (effects.marks[i].kind == kind)
            return true;
    return false;
}

/* Exchanges that are torn, as a run's summary counts them. */
static inline uint64_t torn(void)
{
    struct kith_node_counters counters;
    kith_node_counters(node, &counters);
    return counters.torn;
}

static inline const struct kith_send *sent(enum kith_message_kind kind)
{
    for (uint32_t i = 0; i < effects.send_count; i++)
        if (effects.sends[i].message.kind == kind)
            return &effects.sends[i];
    return NULL;
}

static inline struct kith_message about(const struct kith_send *send,
                                        enum kith_message_kind kind)
{
    struct kith_message message = send->message;
    message.kind = kind;
    message.mine = !send->message.mine;
    message.slot = KITH_SLOT_NONE;
    message.finite = true;
    message.payload_bytes = kind == KITH_MESSAGE_MODEL ? 32 : 0;
    message.scalar_count =
        kind == KITH_MESSAGE_MODEL ? config.algorithm->scalar_count : 0;
    message.scalars[0] = 0.5;
    return message;
}

/* A model as the driver delivers it: received where the node wanted it. */
static inline void give_model(const struct kith_send *send)
{
    struct kith_message model = about(send, KITH_MESSAGE_MODEL);
    const kith_id from = send->to;
    model.slot = kith_node_inbox(node, from, &model);
    say(from, model);
}

/* Trains one step; the trigger snapshots and asks. Returns the REQUEST. */
static inline struct kith_send ask(void)
{
    start();
    worked(KITH_WORK_TRAIN);
    if (effects.has_work && effects.work.kind == KITH_WORK_SNAPSHOT)
        worked(KITH_WORK_SNAPSHOT);
    assert_non_null(sent(KITH_MESSAGE_REQUEST));
    return *sent(KITH_MESSAGE_REQUEST);
}

/* Peer 1 asks us; we play the passive side. */
static inline struct kith_send serve(enum kith_pattern pattern)
{
    struct kith_send request = {
        .to = 1,
        .message = {.kind = KITH_MESSAGE_REQUEST,
                    .pattern = pattern,
                    .id = {.counter = 5, .incarnation = 2},
                    .mine = false, /* `about` turns it round */
                    .payload_bytes = 32,
                    .overlap = pattern == KITH_PATTERN_SWAP}};
    struct kith_message message = about(&request, KITH_MESSAGE_REQUEST);
    message.payload_bytes = 32;
    say(1, message);
    assert_non_null(sent(KITH_MESSAGE_ACCEPT));
    say(1, message); /* repeated: accepted again, nothing more */
    assert_non_null(sent(KITH_MESSAGE_ACCEPT));
    struct kith_message other = message;
    other.id.counter = 6;
    say(2, other);
    assert_non_null(sent(KITH_MESSAGE_BUSY));
    return request;
}

/* The same of a swap, and our snapshot leaves: the worker had nothing to do. */
static inline struct kith_send serve_swap(void)
{
    const struct kith_send request = serve(KITH_PATTERN_SWAP);
    effects.has_work = true;
    worked(KITH_WORK_SNAPSHOT);
    assert_int_equal(sent(KITH_MESSAGE_MODEL)->message.slot,
                     KITH_SLOT_ANSWERED_SENT);
    return request;
}

#endif
