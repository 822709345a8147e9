/* What takes time in a central run: steps of the workers, messages over the
 * engine's access links, and one processor per machine.
 *
 *   a message leaves when the sender's uplink is free, and arrives a latency
 *   with its mishaps later: nothing keeps two of them in order, because the
 *   methods are charged for no connection */
#include "kith/assert.h"
#include "sim/central/central_state.h"
#include "sim/delay.h"

/* Adding and applying take time by the byte: a server's processor may be what
 * the whole run waits for. */
kith_ns sim_central_cost(const struct sim_central *run, uint64_t reduce_bytes,
                         uint64_t update_bytes)
{
    KITH_ASSERT(reduce_bytes <= run->shape.bytes);
    KITH_ASSERT(update_bytes <= run->shape.bytes);
    return kith_ns_add(kith_line_time(reduce_bytes, run->config->reduce_bits),
                       kith_line_time(update_bytes, run->config->update_bits));
}

/* From its last bit leaving to that bit's arrival. Draws are counted by sender,
 * not by link: machines that send to thousands need no table of links, and no
 * message waits for another's time-out. */
kith_ns sim_central_latency(struct sim_central *run, uint32_t from, uint32_t to,
                            kith_ns at_ns, uint64_t bytes)
{
    KITH_ASSERT(from < run->node_count && to < run->node_count);
    struct kith_link_flow *flow = &run->nodes[from].flow;
    kith_experiment_link(run->experiment, from, to, &flow->terms);
    const kith_ns left_ns =
        kith_ns_add(at_ns, kith_line_time(bytes, flow->terms.rate_bits));
    flow->left_ns = flow->window_ns = 0;
    return kith_link_arrival(
               flow, &(struct kith_link_piece){at_ns, left_ns, bytes, 0}) -
           left_ns;
}

/* The gradient is computed now, at the model as it is; only its time passes
 * later. So a model that arrives meanwhile cannot get into it. */
void sim_central_step(struct sim_central *run, uint32_t id)
{
    struct central_worker *worker = &run->workers[id];
    struct sim_world *world = run->world;
    KITH_ASSERT(!worker->stepping && sim_time(world) >= worker->idle_ns);
    if (run->method->begins)
        run->method->begins(run, id);
    if (worker->trainer) {
        struct kith_work_result result;
        worker->gradient =
            kith_worker_gradient(worker->trainer, worker->steps, &result);
        sim_losses_add(&worker->losses, result.loss);
        if (!result.finite)
            world->nonfinite = true;
    }
    worker->stepping = true;
    worker->waited_ns += sim_time(world) - worker->idle_ns;
    const kith_ns cost_ns = sim_step_time(run->experiment, id, worker->steps,
                                          sim_fault_slow(world, id));
    const kith_ns ends_ns = sim_time(world) + cost_ns;
    sim_totals_train(world, id, ends_ns, cost_ns);
    sim_schedule(world, id, id, ends_ns, SIM_EVENT_WORK_DONE, 0);
}

/* The step counts before the method is told: what it decides, it decides
 * knowing its own step. */
void sim_central_step_done(struct sim_central *run, uint32_t id)
{
    struct central_worker *worker = &run->workers[id];
    KITH_ASSERT(worker->stepping);
    worker->steps++;
    worker->stepping = false;
    worker->idle_ns = sim_time(run->world);
    run->world->steps_done++;
    sim_trace_decision(run->world, "step", id, KITH_NOBODY, worker->steps);
    run->method->stepped(run, id);
}

bool sim_central_finished(const struct sim_central *run, uint32_t worker)
{
    KITH_ASSERT(worker < run->worker_count);
    KITH_ASSERT(run->workers[worker].steps <= run->world->steps);
    return run->workers[worker].steps >= run->world->steps;
}

/* Called again where a method answers a worker that has nothing left to do:
 * only the first time counts. */
void sim_central_finish(struct sim_central *run, uint32_t id)
{
    struct central_worker *worker = &run->workers[id];
    KITH_ASSERT(!worker->stepping);
    if (worker->finished)
        return;
    worker->finished = true;
    sim_totals_finished(run->world, id);
    KITH_ASSERT(run->world->unfinished > 0);
    if (--run->world->unfinished == 0)
        sim_end(run->world);
}

/* The pattern of all methods between two steps of a worker. */
void sim_central_go_on(struct sim_central *run, uint32_t worker)
{
    KITH_ASSERT(worker < run->worker_count);
    if (sim_central_finished(run, worker))
        sim_central_finish(run, worker);
    else
        sim_central_step(run, worker);
}

/* A node's message to itself never touches its link. */
void sim_central_send(struct sim_central *run,
                      const struct sim_central_message *message)
{
    KITH_ASSERT(message->from < run->node_count);
    KITH_ASSERT(message->to < run->node_count);
    struct sim_world *world = run->world;
    const uint32_t index = sim_packet_take(world);
    if (index == 0) {
        sim_copy_release(world, message->vector);
        return;
    }
    struct sim_packet *packet = sim_packet_at(world, index);
    const bool own = message->from == message->to;
    packet->central = *message;
    packet->from = message->from;
    packet->to = message->to;
    packet->kind = SIM_PACKET_CENTRAL;
    packet->bytes = packet->central.bytes = own ? 0 : message->bytes;
    if (message->vector) {
        packet->flags |= SIM_PACKET_CARRIES;
        sim_payload_at(world, index)->vector = message->vector;
    }
    kith_ns at_ns = sim_time(world), left_ns;
    if (world->sharing && packet->bytes > 0) {
        sim_sharing_send_alone(world, index,
                               sim_central_latency(run, message->from,
                                                   message->to, at_ns,
                                                   message->bytes));
        return;
    }
    if (!own) {
        at_ns = sim_uplink_take(world, message->from, at_ns, message->bytes,
                                &left_ns);
        at_ns = kith_ns_add(at_ns,
                            sim_central_latency(run, message->from, message->to,
                                                at_ns, message->bytes));
    }
    const bool takes_time = packet->bytes > 0 && sim_network_has_lines(world);
    sim_schedule(world, message->from, message->to, at_ns,
                 takes_time ? SIM_EVENT_ARRIVE : SIM_EVENT_DELIVER, index);
}

void sim_central_send_model(struct sim_central *run, uint32_t from, uint32_t to,
                            uint32_t kind, uint32_t subject, uint64_t version,
                            void *vector)
{
    KITH_ASSERT(version <= run->updates);
    sim_central_send(run,
                     &(struct sim_central_message){.from = from,
                                                   .to = to,
                                                   .kind = kind,
                                                   .subject = subject,
                                                   .version = version,
                                                   .vector = vector,
                                                   .bytes = run->shape.bytes});
}

/* One processor: what is asked of it stands in line behind what was asked
 * before. */
void sim_central_compute(struct sim_central *run, uint32_t node,
                         kith_ns cost_ns, uint32_t value)
{
    KITH_ASSERT(node < run->node_count);
    kith_ns *cpu_ns = &run->nodes[node].cpu_ns;
    const kith_ns now_ns = sim_time(run->world);
    KITH_ASSERT(cost_ns >= 0);
    *cpu_ns = kith_ns_add(*cpu_ns > now_ns ? *cpu_ns : now_ns, cost_ns);
    sim_schedule(run->world, node, node, *cpu_ns, SIM_EVENT_COMPUTED, value);
}
