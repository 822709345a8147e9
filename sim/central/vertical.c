/* One model cut between its layers, a stage on each peer, batches in a
 * pipeline.
 *
 *   micro_batches m  a batch in m parts; their gradients add up and are applied
 *                    when the last is back: no staleness (GPipe)
 *   in_flight k      k batches on their way; a stage applies each gradient as
 *                    soon as it is back, at the weights that it went forward
 *                    with (PipeDream): the first of S stages misses S - 1
 *                    updates where k = S
 *
 * A stage computes its own operations alone, on memory of its own: what it has
 * of the others' parameters it never reads. It does backward work first, costs
 * are the step's in equal parts, a third forward and two thirds back.
 * Source: Huang et al., NeurIPS 2019; Narayanan et al., SOSP 2019. */
#include "sim/central/vertical.h"

#include <stdlib.h>
#include <string.h>

#include "kith/assert.h"
#include "sim/delay.h"

/* What this method keeps; files of the other methods have states of their own
 * behind the same pointer. */
static struct vertical *state_of(struct sim_central *run)
{
    KITH_ASSERT(run->method == &sim_central_vertical);
    return run->state;
}

/* Slots are numbered alike at all stages: a part of a batch keeps its number
 * from the first to the last. */
static struct vertical_slot *slot_of(struct vertical *vertical, uint32_t stage,
                                     uint32_t slot)
{
    KITH_ASSERT(stage < vertical->count && slot < vertical->slots);
    return &vertical->stages[stage].slots[slot];
}

/* The stage's operations on what stands in its slot. Back, the gradient of
 * parts adds up in the stage's own vector: it is applied once a batch. */
static void compute(struct sim_central *run, uint32_t stage, uint32_t slot,
                    bool back)
{
    struct vertical *vertical = state_of(run);
    struct vertical_slot *own = slot_of(vertical, stage, slot);
    KITH_ASSERT(vertical->cuts[stage] < vertical->cuts[stage + 1] ||
                !run->server);
    if (!back)
        own->version = vertical->stages[stage].updates;
    if (!run->server)
        return;
    if (!back) {
        run->experiment->backend->copy(
            run->dim, own->x, sim_central_x(run->workers[stage].trainer));
    }
    const struct kith_part part = {.first = vertical->cuts[stage],
                                   .last = vertical->cuts[stage + 1],
                                   .back = back};
    const struct kith_pass pass = {.x = own->x,
                                   .gradient = vertical->stages[stage].gradient,
                                   .batch = &vertical->batches[slot].batch,
                                   .scale = 1.0 / run->config->micro_batches,
                                   .add = back && own->part > 0};
    const double loss =
        kith_graph_part(own->network, &pass, &part, NULL) * pass.scale;
    if (!back && stage + 1 == vertical->count)
        vertical->loss = own->part == 0 ? loss : vertical->loss + loss;
}

/* The tensor between two stages, in the memory of one of them. */
static void *edge_of(struct sim_central *run, uint32_t stage, uint32_t slot,
                     uint32_t cut, bool back, size_t *bytes)
{
    KITH_ASSERT(cut == stage || cut == stage + 1);
    const struct vertical *vertical = run->state;
    return kith_graph_edge(slot_of(run->state, stage, slot)->network,
                           vertical->cuts[cut], back, vertical->rows, bytes);
}

/* The tensor stands beside the message until it is here: a slot may be in use
 * again by then, where messages overtake each other. */
static void pass_on(struct sim_central *run, uint32_t from, uint32_t to,
                    uint32_t slot)
{
    KITH_ASSERT(from + 1 == to || to + 1 == from);
    struct vertical *vertical = state_of(run);
    const bool back = to < from;
    size_t bytes = vertical->edge_bytes;
    if (run->server) {
        struct vertical_slot *there = slot_of(vertical, to, slot);
        const void *edge =
            edge_of(run, from, slot, back ? from : to, back, &bytes);
        if (!there->edges[back])
            there->edges[back] = sim_alloc(run->world, 1, bytes);
        if (!there->edges[back]) {
            sim_fail(run->world, KITH_ENOMEM, "no memory for an activation");
            return;
        }
        memcpy(there->edges[back], edge, bytes);
        there->arriving[back] = true;
    }
    sim_central_send(run, &(struct sim_central_message){.from = from,
                                                        .to = to,
                                                        .kind = back,
                                                        .subject = slot,
                                                        .bytes = bytes});
}

static void work(struct sim_central *run, uint32_t stage);

/* Two queues, because work on its way back goes first: it frees a slot, and the
 * stage below waits for it. */
static void enqueue(struct sim_central *run, uint32_t stage, uint32_t slot,
                    bool back)
{
    KITH_ASSERT(state_of(run)->stages[stage].queues[back].count <
                VERTICAL_SLOTS_MAX);
    struct vertical_stage *own = &state_of(run)->stages[stage];
    struct vertical_queue *queue = &own->queues[back];
    queue->slots[(queue->first + queue->count++) % VERTICAL_SLOTS_MAX] = slot;
    work(run, stage);
}

/* Starts what the stage is to do next: what is on its way back first. */
static void work(struct sim_central *run, uint32_t stage)
{
    KITH_ASSERT(stage < state_of(run)->count);
    struct vertical *vertical = state_of(run);
    struct vertical_stage *own = &vertical->stages[stage];
    if (own->busy || sim_ended(run->world))
        return;
    const bool back = own->queues[true].count > 0;
    struct vertical_queue *queue = &own->queues[back];
    if (queue->count == 0)
        return;
    const uint32_t slot = queue->slots[queue->first];
    queue->first = (queue->first + 1) % VERTICAL_SLOTS_MAX;
    queue->count--;
    own->busy = true;
    compute(run, stage, slot, back);
    const kith_ns whole_ns =
        sim_step_time(run->experiment, stage, run->workers[stage].steps,
                      sim_fault_slow(run->world, stage));
    const kith_ns share_ns =
        whole_ns / (3 * vertical->count * run->config->micro_batches);
    const kith_ns cost_ns = back ? 2 * share_ns : share_ns;
    sim_totals_train(run->world, stage, sim_time(run->world) + cost_ns,
                     cost_ns);
    sim_central_compute(run, stage, cost_ns, slot * 2 + back);
}

/* All parts of a batch are back at this stage: its own parameters move. */
static void apply(struct sim_central *run, uint32_t stage, uint32_t slot)
{
    KITH_ASSERT(run->workers[stage].steps ==
                state_of(run)->stages[stage].updates);
    struct vertical *vertical = state_of(run);
    struct vertical_stage *own = &vertical->stages[stage];
    struct central_worker *worker = &run->workers[stage];
    const uint64_t missed =
        own->updates - slot_of(vertical, stage, slot)->version;
    if (run->server) {
        worker->gradient = own->gradient;
        sim_losses_add(&worker->losses, vertical->loss);
        const struct kith_part part = {.first = vertical->cuts[stage],
                                       .last = vertical->cuts[stage + 1]};
        if (!kith_worker_descend(worker->trainer, worker->steps, own->gradient))
            run->world->nonfinite = true;
        kith_graph_copy(slot_of(vertical, stage, 0)->network, &part,
                        sim_central_x(worker->trainer),
                        sim_central_x(run->server));
    }
    own->updates++;
    worker->steps++;
    run->world->steps_done++;
    sim_central_stale(run, stage, missed);
    sim_trace_decision(run->world, "update", stage, KITH_NOBODY, missed);
    if (sim_central_finished(run, stage)) {
        /* The first stage is the last to finish; who had no part ends then. */
        for (uint32_t i = vertical->count; stage == 0 && i < run->worker_count;
             i++)
            sim_central_finish(run, i);
        sim_central_finish(run, stage);
    }
}

/* Fills the pipeline with whole batches. */
static void inject(struct sim_central *run)
{
    KITH_ASSERT(state_of(run)->flying <= run->config->in_flight);
    struct vertical *vertical = state_of(run);
    const uint32_t parts = run->config->micro_batches;
    while (vertical->flying < run->config->in_flight &&
           vertical->begun < run->world->steps && !sim_ended(run->world)) {
        const uint32_t first =
            (uint32_t)(vertical->begun % run->config->in_flight) * parts;
        vertical->flying++;
        vertical->begun++;
        for (uint32_t i = 0; i < parts; i++) {
            sim_vertical_load(run, first + i);
            for (uint32_t s = 0; s < vertical->count; s++)
                slot_of(vertical, s, first + i)->part = i;
            enqueue(run, 0, first + i, false);
        }
    }
}

/* The gradient's tensor has left before this stage's own parameters move: the
 * stage below does not wait for the optimiser. */
static void back_done(struct sim_central *run, uint32_t stage, uint32_t slot)
{
    KITH_ASSERT(stage < state_of(run)->count);
    struct vertical *vertical = state_of(run);
    if (slot_of(vertical, stage, slot)->part + 1 < run->config->micro_batches)
        return;
    apply(run, stage, slot);
    if (stage == 0) {
        run->updates++;
        run->applied++;
        vertical->flying--;
        inject(run);
    }
}

/* One processor per stage: what it is to do next is looked for when it has
 * become free. The last stage turns round: its own backward work waits in its
 * own queue. */
static void computed(struct sim_central *run, uint32_t stage, uint32_t value)
{
    KITH_ASSERT(state_of(run)->stages[stage].busy);
    struct vertical *vertical = state_of(run);
    const uint32_t slot = value / 2;
    const bool back = value % 2 == 1;
    vertical->stages[stage].busy = false;
    if (back && stage > 0)
        pass_on(run, stage, stage - 1, slot);
    else if (!back && stage + 1 < vertical->count)
        pass_on(run, stage, stage + 1, slot);
    else if (!back)
        enqueue(run, stage, slot, true);
    if (back)
        back_done(run, stage, slot);
    work(run, stage);
}

static void delivered(struct sim_central *run,
                      const struct sim_central_message *message)
{
    KITH_ASSERT(message->kind <= true);
    const bool back = message->kind;
    struct vertical_slot *own =
        slot_of(run->state, message->to, message->subject);
    if (own->arriving[back]) {
        const uint32_t cut = back ? message->from : message->to;
        size_t bytes;
        void *edge =
            edge_of(run, message->to, message->subject, cut, back, &bytes);
        memcpy(edge, own->edges[back], bytes);
        own->arriving[back] = false;
    }
    enqueue(run, message->to, message->subject, back);
}

static void stepped(struct sim_central *run, uint32_t worker)
{
    (void)run;
    (void)worker; /* stages have no steps of their own */
}

const struct central_method sim_central_vertical = {
    .one_model = true,
    .state_bytes = sizeof(struct vertical),
    .open = sim_vertical_open,
    .close = sim_vertical_close,
    .start = inject,
    .stepped = stepped,
    .delivered = delivered,
    .computed = computed,
};
