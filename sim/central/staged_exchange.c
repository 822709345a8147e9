/* Patterns in which every machine has a script: stages of one message out and
 * one in at the same time, then sums. A machine does one stage after another
 * (blocking send-receive, as MPI programs are written); a message needs both
 * ends at that stage.
 *
 *   its last bit arrives  max(sender ready + latency, receiver ready) + bytes/B
 *   the sender goes on    a latency before that: its link is free again
 *
 * So a line carries one message at a time, and there is nothing to share:
 * `sharing: fair` is the same as a queue.
 *
 * A pattern is a pure function of (node, index): nothing is kept per stage. */
#include "kith/assert.h"
#include "sim/central/central_state.h"

/* The first parts are not always the larger ones: rounding spreads the rest
 * evenly, so no server is charged for all of it. */
uint64_t sim_central_part(uint64_t bytes, uint32_t parts, uint32_t i)
{
    KITH_ASSERT(i < parts);
    /* Without an intermediate above 64 bits. */
    const uint64_t whole = bytes / parts, rest = bytes % parts;
    return whole +
           ((uint64_t)(i + 1) * rest / parts - (uint64_t)i * rest / parts);
}

/* Group g: [first of g, first of g + 1). Groups differ by one worker at most.
 */
uint32_t sim_central_group_first(uint32_t workers, uint32_t groups,
                                 uint32_t group)
{
    KITH_ASSERT(group <= groups && groups <= workers);
    return (uint32_t)((uint64_t)workers * group / groups);
}

/* A guess by division, put right by the groups' own bounds: rounding may be off
 * by one. */
uint32_t sim_central_group_of(uint32_t workers, uint32_t groups,
                              uint32_t worker)
{
    KITH_ASSERT(worker < workers && groups > 0);
    uint32_t group = (uint32_t)((uint64_t)worker * groups / workers);
    while (sim_central_group_first(workers, groups, group + 1) <= worker)
        group++;
    return group;
}

static struct central_script *script_of(struct sim_central *run, uint32_t node)
{
    KITH_ASSERT(node < run->node_count);
    return &run->nodes[node].script;
}

/* The stage's messages are over on this side: its sums. */
static void stage_sums(struct sim_central *run, uint32_t node)
{
    KITH_ASSERT(script_of(run, node)->running);
    struct central_script *script = script_of(run, node);
    if (script->state & (CENTRAL_SENDING | CENTRAL_RECEIVING))
        return;
    const kith_ns cost_ns = sim_central_cost(run, script->stage.reduce_bytes,
                                             script->stage.update_bytes);
    script->state = CENTRAL_COMPUTING;
    sim_schedule(run->world, node, node,
                 kith_ns_add(sim_time(run->world), cost_ns), SIM_EVENT_STAGE,
                 SIM_STAGE_SUMMED);
}

/* Both ends stand at the stage in which this message travels. */
static bool matches(const struct sim_central *run, uint32_t from, uint32_t to)
{
    KITH_ASSERT(from < run->node_count && to < run->node_count);
    KITH_ASSERT(from != to);
    const struct central_script *sender = &run->nodes[from].script;
    const struct central_script *receiver = &run->nodes[to].script;
    return sender->running && receiver->running &&
           !(sender->state & (CENTRAL_COMPUTING | CENTRAL_MATCHED_OUT)) &&
           !(receiver->state & (CENTRAL_COMPUTING | CENTRAL_MATCHED_IN)) &&
           sender->stage.to == to && receiver->stage.from == from;
}

/* The later of the two ends calls: both are ready then, and the time at which
 * the first was ready decides when bits began to leave. */
static void match(struct sim_central *run, uint32_t from, uint32_t to)
{
    if (from == KITH_NOBODY || to == KITH_NOBODY || !matches(run, from, to))
        return;
    struct central_script *sender = script_of(run, from);
    struct central_script *receiver = script_of(run, to);
    sender->state |= CENTRAL_MATCHED_OUT;
    receiver->state |= CENTRAL_MATCHED_IN;
    const uint64_t bytes = sender->stage.send_bytes;
    const kith_ns now_ns = sim_time(run->world);
    const kith_ns latency_ns =
        sim_central_latency(run, from, to, sender->ready_ns, bytes);
    kith_ns first_ns = kith_ns_add(sender->ready_ns, latency_ns);
    first_ns = first_ns > receiver->ready_ns ? first_ns : receiver->ready_ns;
    const kith_ns last_ns = kith_ns_add(
        first_ns,
        kith_line_time(bytes, kith_class_rate(&run->experiment->network.classes,
                                              from, to)));
    const kith_ns free_ns = last_ns - latency_ns;
    KITH_ASSERT(last_ns >= now_ns && free_ns <= last_ns);
    KITH_ASSERT(first_ns - latency_ns >= run->nodes[from].out_ns);
    KITH_ASSERT(first_ns >= run->nodes[to].in_ns);
    run->nodes[from].out_ns = free_ns;
    run->nodes[to].in_ns = last_ns;
    sim_network_count(run->world, from, to, bytes);
    sim_schedule(run->world, from, to, last_ns, SIM_EVENT_STAGE,
                 SIM_STAGE_RECEIVED);
    sim_schedule(run->world, from, from, free_ns > now_ns ? free_ns : now_ns,
                 SIM_EVENT_STAGE, SIM_STAGE_SENT);
}

/* Stages without messages or sums are passed at once. */
static void stage_next(struct sim_central *run, uint32_t node)
{
    KITH_ASSERT(
        !(script_of(run, node)->state & (CENTRAL_SENDING | CENTRAL_RECEIVING)));
    struct central_script *script = script_of(run, node);
    struct central_stage *stage = &script->stage;
    script->state = 0;
    for (;;) {
        *stage = (struct central_stage){.to = KITH_NOBODY, .from = KITH_NOBODY};
        if (!run->stage_of(&run->shape, node, script->index++, stage)) {
            script->running = false;
            sim_trace_decision(run->world, "exchanged", node, KITH_NOBODY,
                               script->index);
            run->method->exchanged(run, node);
            return;
        }
        KITH_ASSERT(stage->to != node && stage->from != node);
        if (stage->to != KITH_NOBODY || stage->from != KITH_NOBODY)
            break;
        if (stage->reduce_bytes > 0 || stage->update_bytes > 0) {
            stage_sums(run, node);
            return;
        }
    }
    script->ready_ns = sim_time(run->world);
    script->state |= stage->to != KITH_NOBODY ? CENTRAL_SENDING : 0;
    script->state |= stage->from != KITH_NOBODY ? CENTRAL_RECEIVING : 0;
    match(run, node, stage->to);
    match(run, stage->from, node);
}

/* A machine may be in one script at a time: the next round is entered when the
 * last has ended. */
void sim_central_enter(struct sim_central *run, uint32_t node)
{
    struct central_script *script = script_of(run, node);
    KITH_ASSERT(!script->running);
    *script = (struct central_script){.running = true};
    stage_next(run, node);
}

/* Sums begin when both of the stage's messages are over on this side, whichever
 * was last. */
void sim_central_stage_event(struct sim_central *run, uint32_t node,
                             enum sim_stage_event event)
{
    struct central_script *script = script_of(run, node);
    KITH_ASSERT(script->running);
    if (event == SIM_STAGE_SUMMED) {
        stage_next(run, node);
        return;
    }
    const bool sent = event == SIM_STAGE_SENT;
    script->state &= (uint8_t) ~(sent ? CENTRAL_SENDING : CENTRAL_RECEIVING);
    if (!sent) {
        sim_trace_decision(run->world, "<", node, script->stage.from,
                           script->index);
    }
    stage_sums(run, node);
}
