/* What no simulator's loop can pass: kith_node_step and nothing else.
 *
 * Nodes of an experiment of swaps stand in an array. A period is a step of
 * each, in the order of ranks; whatever it says is there at once, in the order
 * in which it was said, and what is said to that. No queue of events, no
 * network, no trace, no totals; a work item is over when it begins, but for
 * training. */
#ifndef KITH_BENCH_STEPS_ALONE_H
#define KITH_BENCH_STEPS_ALONE_H

#include "bench/bench.h"
#include "kith/experiment.h"
#include "kith/node.h"

/* Messages under way, a power of two: few are, for each is answered before the
 * next step begins. */
#define ALONE_ROOM 256u

struct alone_message {
    kith_id from, to;
    struct kith_message message;
};

struct alone {
    struct kith_node_config config;
    struct kith_topology topology;
    char *nodes; /* (peers, stride) */
    size_t peers, stride;
    struct kith_effects effects;
    struct alone_message ring[ALONE_ROOM];
    uint64_t put, taken;
    kith_ns now_ns;
};

static inline struct kith_node *alone_node(const struct alone *alone,
                                           kith_id id)
{
    return (struct kith_node *)(void *)(alone->nodes + id * alone->stride);
}

/* One event, what it asks for that takes no time, and what is said on the way.
 */
static inline void alone_step(struct alone *alone, kith_id id,
                              struct kith_event event)
{
    struct kith_effects *const effects = &alone->effects;
    struct kith_work_result result = {.finite = true};
    for (;;) {
        event.now_ns = alone->now_ns;
        kith_node_step(alone_node(alone, id), &event, effects);
        for (uint32_t i = 0; i < effects->send_count; i++) {
            const struct kith_send *send = &effects->sends[i];
            if (alone->put - alone->taken == ALONE_ROOM)
                abort();
            alone->ring[alone->put++ % ALONE_ROOM] = (struct alone_message){
                .from = id, .to = send->to, .message = send->message};
        }
        if (!effects->has_work || effects->work.kind == KITH_WORK_TRAIN)
            return;
        result.kind = effects->work.kind;
        event = (struct kith_event){.kind = KITH_EVENT_WORK_DONE,
                                    .from = KITH_NOBODY,
                                    .result = &result};
    }
}

static inline void alone_hear(struct alone *alone)
{
    while (alone->taken != alone->put) {
        struct alone_message *heard = &alone->ring[alone->taken % ALONE_ROOM];
        struct kith_message message = heard->message;
        const kith_id from = heard->from, to = heard->to;
        alone->taken++;
        if (message.kind == KITH_MESSAGE_MODEL) {
            message.slot =
                kith_node_inbox(alone_node(alone, to), from, &message);
            message.finite = true;
        }
        alone_step(alone, to,
                   (struct kith_event){.kind = KITH_EVENT_MESSAGE,
                                       .from = from,
                                       .message = &message});
    }
}

/* *exchanges: of those done per message. */
static inline double alone_rate(const struct kith_experiment *experiment,
                                size_t periods, double *exchanges)
{
    static struct alone alone;
    alone = (struct alone){.peers = experiment->peers};
    if (kith_experiment_node_config(experiment, periods + 1, &alone.topology,
                                    &alone.config) != KITH_OK)
        abort();
    alone.config.topology = &alone.topology;
    alone.stride = (kith_node_size(&alone.config) + 63) / 64 * 64;
    const size_t bytes = alone.peers * alone.stride;
    alone.nodes = (char *)bench_alloc(bytes);
    for (kith_id id = 0; id < alone.peers; id++) {
        (void)kith_node_init(alone_node(&alone, id), &alone.config, id, 0, 0,
                             false);
        alone_step(
            &alone, id,
            (struct kith_event){.kind = KITH_EVENT_START, .from = KITH_NOBODY});
    }
    const struct kith_work_result trained = {.kind = KITH_WORK_TRAIN,
                                             .finite = true};
    const double start = bench_cpu();
    for (size_t period = 0; period < periods; period++)
        for (kith_id id = 0; id < alone.peers; id++) {
            alone.now_ns += KITH_S / (kith_ns)alone.peers;
            alone_step(&alone, id,
                       (struct kith_event){.kind = KITH_EVENT_WORK_DONE,
                                           .from = KITH_NOBODY,
                                           .result = &trained});
            alone_hear(&alone);
        }
    const double rate = (double)alone.taken / (bench_cpu() - start) * 1e-6;
    uint64_t done = 0;
    for (kith_id id = 0; id < alone.peers; id++) {
        struct kith_node_counters counters;
        kith_node_counters(alone_node(&alone, id), &counters);
        done += counters.done;
    }
    *exchanges = (double)done / (double)alone.taken;
    munmap(alone.nodes, bytes);
    return rate;
}

#endif
