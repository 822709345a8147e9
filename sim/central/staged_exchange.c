/* Patterns in which every machine has a script: stages of one message out and
 * one in at the same time, then sums. A machine does one stage after another
 * (blocking send-receive, as MPI programs are written); a message needs both
 * ends at that stage.
 *
 *   its last bit arrives  max(sender ready + latency, receiver ready) + bytes/B
 *   the sender goes on    a latency before that: its link is free again
 *
 * A pattern is a pure function of (node, index): nothing is kept per stage. */
#include "kith/assert.h"
#include "sim/central/central_state.h"

uint64_t sim_central_part(uint64_t bytes, uint32_t parts, uint32_t i)
{
    /* Without an intermediate above 64 bits. */
    const uint64_t whole = bytes / parts, rest = bytes % parts;
    return whole +
           ((uint64_t)(i + 1) * rest / parts - (uint64_t)i * rest / parts);
}

static void stage_next(struct central *run, uint32_t node);

/* The stage's messages are over on this side: its sums. */
static void stage_sums(struct central *run, uint32_t node)
{
    struct central_script *script = &run->scripts[node];
    if (script->sending || script->receiving) {
        return;
    }
    const kith_ns cost_ns =
        sim_central_reduce_time(run, script->stage.reduce_bytes) +
        sim_central_update_time(run, script->stage.update_bytes);
    script->computing = true;
    sim_central_schedule(run, node, node, run->now_ns + cost_ns, CENTRAL_STAGE,
                         0);
}

/* Both ends stand at the stage in which this message travels. */
static void match(struct central *run, uint32_t from, uint32_t to)
{
    if (from >= run->node_count || to >= run->node_count) {
        return;
    }
    struct central_script *sender = &run->scripts[from];
    struct central_script *receiver = &run->scripts[to];
    if (!sender->running || !receiver->running || sender->computing ||
        receiver->computing || sender->matched_out || receiver->matched_in ||
        sender->stage.to != to || receiver->stage.from != from) {
        return;
    }
    sender->matched_out = receiver->matched_in = true;
    const uint64_t bytes = sender->stage.send_bytes;
    const kith_ns latency_ns = sim_central_latency(run, from, to, bytes);
    kith_ns first_ns = sender->ready_ns + latency_ns;
    first_ns = first_ns > receiver->ready_ns ? first_ns : receiver->ready_ns;
    const kith_ns last_ns = first_ns + sim_central_wire(run, bytes);
    const kith_ns free_ns = last_ns - latency_ns;
    run->nodes[from].bytes_sent += bytes;
    run->nodes[to].bytes_received += bytes;
    run->messages++;
    sim_central_schedule(run, from, to, last_ns, CENTRAL_RECEIVED, 0);
    sim_central_schedule(run, from, from,
                         free_ns > run->now_ns ? free_ns : run->now_ns,
                         CENTRAL_SENT, 0);
}

/* Stages without messages or sums are passed at once. */
static void stage_next(struct central *run, uint32_t node)
{
    struct central_script *script = &run->scripts[node];
    struct central_stage *stage = &script->stage;
    for (;;) {
        *stage = (struct central_stage){.to = CENTRAL_NOBODY,
                                        .from = CENTRAL_NOBODY};
        if (!run->exchange->stage(&run->shape, node, script->index++, stage)) {
            script->running = false;
            sim_central_mark(run, "exchanged", node, CENTRAL_NOBODY,
                             script->index);
            run->method->exchanged(run, node);
            return;
        }
        if (stage->to != CENTRAL_NOBODY || stage->from != CENTRAL_NOBODY) {
            break;
        }
        if (stage->reduce_bytes > 0 || stage->update_bytes > 0) {
            script->sending = script->receiving = false;
            stage_sums(run, node);
            return;
        }
    }
    script->ready_ns = run->now_ns;
    script->sending = stage->to != CENTRAL_NOBODY;
    script->receiving = stage->from != CENTRAL_NOBODY;
    script->matched_out = script->matched_in = false;
    match(run, node, stage->to);
    match(run, stage->from, node);
}

void sim_central_enter(struct central *run, uint32_t node)
{
    struct central_script *script = &run->scripts[node];
    KITH_ASSERT(!script->running);
    *script = (struct central_script){.running = true};
    stage_next(run, node);
}

void sim_central_sent(struct central *run, uint32_t node)
{
    run->scripts[node].sending = false;
    stage_sums(run, node);
}

void sim_central_received(struct central *run, uint32_t node)
{
    run->scripts[node].receiving = false;
    sim_central_mark(run, "<", node, run->scripts[node].stage.from,
                     run->scripts[node].index);
    stage_sums(run, node);
}

void sim_central_staged(struct central *run, uint32_t node)
{
    run->scripts[node].computing = false;
    stage_next(run, node);
}
