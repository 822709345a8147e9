/* See round_costs.h. */
#include "tests/support/round_costs.h"

#include <string.h>

#include "kith/assert.h"
#include "kith/compressor.h"
#include "kith/format.h"
#include "kith/link_law.h"

/* Of a step: who is there first computes while others still hear. */
#define STEP_NS KITH_MS

/* ---- rounds and bytes */

static const char *schedule_of(const struct round_plan *plan)
{
    const char *const own = plan->algorithm->schedule;
    return own != NULL ? own : plan->method->pairs;
}

static bool open_graph(struct round_plan *plan)
{
    size_t size = 0;
    const uint32_t members = plan->method->members;
    const struct kith_topology_options options = {
        .regions = members > 0 ? plan->peers / members : 0};
    if (kith_topology_prepare(kith_topology_find(schedule_of(plan)),
                              plan->peers, 1, &options, &plan->graph, &size,
                              plan->error) != KITH_OK)
        return false;
    KITH_ASSERT(size == 0);
    return true;
}

/* Shards alone, and a ring of them: twice as many rounds between sites. */
static void ring_between(struct round_plan *plan, size_t dim)
{
    const uint32_t members = plan->method->members;
    const uint64_t sites = plan->peers / members;
    plan->whole = (dim + members - 1) / members * sizeof(float);
    plan->slice = (plan->whole + sites - 1) / sites;
    plan->rounds += sites - 1;
}

static void open_doubling(struct round_plan *plan, size_t dim)
{
    while (1u << plan->rounds < plan->peers)
        plan->rounds++;
    plan->whole =
        (uint64_t)(plan->method->share * (double)dim) * 2 * sizeof(float);
}

const char *round_plan_open(struct round_plan *plan,
                            const struct round_method *method, uint32_t peers,
                            size_t dim)
{
    *plan = (struct round_plan){.method = method, .peers = peers};
    KITH_ASSERT(peers <= ROUND_PEERS_MAX);
    if (method->algorithm == NULL) {
        open_doubling(plan, dim);
        return NULL;
    }
    plan->algorithm = kith_algorithm_find(method->algorithm);
    if (!open_graph(plan))
        return plan->error;
    const struct kith_backend *const backend = kith_backend_find("cpu");
    struct kith_compression compression = {
        .config = kith_compressor_defaults(), .backend = backend, .dim = dim};
    double given[KITH_GOSSIP_KEY_COUNT];
    memcpy(given, plan->algorithm->initial, sizeof given);
    if (method->compressor != NULL) {
        compression.compressor = kith_compressor_find(method->compressor);
        compression.config.density = method->share;
    } else if (method->share > 0)
        given[KITH_GOSSIP_SHARE] = method->share;
    const struct kith_algebra algebra = {.backend = backend,
                                         .dim = dim,
                                         .peers = peers,
                                         .coefficients = given,
                                         .compression = &compression,
                                         .graph = &plan->graph};
    if (method->compressor != NULL && plan->algorithm->wants != NULL &&
        plan->algorithm->wants(&algebra) != NULL)
        return plan->algorithm->wants(&algebra);
    plan->rounds = kith_topology_period(&plan->graph);
    plan->whole = kith_format_bytes(
        method->wire == NULL ? NULL : kith_format_find(method->wire), 0,
        backend, kith_algorithm_payload(plan->algorithm, &algebra));
    plan->slice = plan->algorithm->slice == NULL
                      ? plan->whole
                      : plan->algorithm->slice(&algebra);
    if (method->rings_between)
        ring_between(plan, dim);
    return NULL;
}

/* Where a round stands in the schedule: a ring between sites has each of its
 * rounds twice, and pairs are others in each step. */
static uint64_t scheduled(const struct round_plan *plan, unsigned step,
                          uint64_t round)
{
    if (plan->rounds == 0)
        return step;
    if (!plan->method->rings_between)
        return round;
    const uint64_t first = plan->method->members - 1;
    const uint64_t between = plan->peers / plan->method->members - 1;
    if (round < first)
        return round;
    return round < first + 2 * between ? first : round - between;
}

static uint64_t bytes_at(const struct round_plan *plan, uint64_t round)
{
    if (plan->algorithm == NULL)
        return plan->whole << round;
    return plan->slice == plan->whole ||
                   kith_algorithm_is_whole(plan->algorithm, &plan->graph,
                                           plan->rounds, round)
               ? plan->whole
               : plan->slice;
}

static kith_id receiver_of(const struct round_plan *plan, kith_id self,
                           uint64_t round)
{
    kith_id to[KITH_DEGREE_MAX];
    if (plan->algorithm == NULL)
        return self ^ (kith_id)(UINT64_C(1) << round);
    return kith_topology_neighbours(&plan->graph, self, round, to, NULL) > 0
               ? to[0]
               : KITH_NOBODY;
}

/* ---- time */

/* Messages of a round. */
struct round_state {
    kith_ns clock[ROUND_PEERS_MAX];
    kith_id to[ROUND_PEERS_MAX];
    uint32_t leaving[ROUND_PEERS_MAX]; /* of a machine */
    uint64_t bytes;                    /* sent so far, of all */
};

static void route(struct round_state *state, const struct round_plan *plan,
                  const struct round_network *network, uint64_t round)
{
    const uint32_t machine = network->machine;
    memset(state->leaving, 0, sizeof state->leaving);
    for (kith_id i = 0; i < plan->peers; i++) {
        state->to[i] = receiver_of(plan, i, round);
        state->leaving[i / machine] += state->to[i] != KITH_NOBODY &&
                                       state->to[i] / machine != i / machine;
    }
}

static void run_round(struct round_state *state, const struct round_plan *plan,
                      const struct round_network *network, uint64_t round)
{
    const uint64_t bytes = bytes_at(plan, round);
    const uint32_t machine = network->machine;
    kith_ns next[ROUND_PEERS_MAX];
    memcpy(next, state->clock, sizeof next);
    route(state, plan, network, round);
    for (kith_id from = 0; from < plan->peers; from++) {
        const kith_id to = state->to[from];
        if (to == KITH_NOBODY)
            continue;
        const bool inside = from / machine == to / machine;
        const struct kith_link_terms terms = {
            .latency_ns = inside ? network->in_ns : network->out_ns,
            .rate_bits =
                inside ? network->in_bits
                       : network->out_bits / state->leaving[from / machine]};
        const kith_ns begins = state->clock[from] +
                               (plan->method->asks ? 2 * terms.latency_ns : 0);
        struct kith_link_flow flow;
        struct kith_link_piece piece = {
            .begins_ns = begins, .ends_ns = begins, .bytes = bytes};
        kith_link_flow_init(&flow, &terms, 1, from, to);
        (void)kith_line_take(&piece.ends_ns, terms.rate_bits, begins, bytes);
        const kith_ns there = kith_link_arrival(&flow, &piece);
        next[to] = there > next[to] ? there : next[to];
        if (there + terms.latency_ns > next[from])
            next[from] = there + terms.latency_ns;
        state->bytes += bytes;
    }
    memcpy(state->clock, next, sizeof next);
}

struct round_cost round_cost_of(const struct round_plan *plan,
                                const struct round_network *network,
                                unsigned steps)
{
    struct round_state state = {.bytes = 0};
    kith_ns first = 0, last = 0;
    const uint64_t rounds = plan->rounds > 0 ? plan->rounds : 1;
    const double every = plan->method->every > 0 ? plan->method->every : 1;
    KITH_ASSERT(steps >= 2);
    for (unsigned step = 0; step < steps; step++) {
        for (uint32_t i = 0; i < plan->peers; i++)
            state.clock[i] += STEP_NS;
        for (uint64_t round = 0; round < rounds; round++)
            run_round(&state, plan, network, scheduled(plan, step, round));
        for (uint32_t i = 0; i < plan->peers; i++)
            last = state.clock[i] > last ? state.clock[i] : last;
        first = step == 0 ? last : first;
    }
    return (struct round_cost){
        .ms = (double)((last - first) / (steps - 1) - STEP_NS) * 1e-6 / every,
        .bytes = (double)state.bytes / (double)steps / plan->peers / every};
}
