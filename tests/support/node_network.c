/* The tests' in-memory network: see node_network.h. */
#include "tests/support/node_network.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "kith/assert.h"

static struct net_event *push(struct net *net, enum kith_event_kind kind,
                              kith_id to, kith_ns at_ns)
{
    for (size_t i = 0; i < NET_EVENTS_MAX; i++) {
        struct net_event *event = &net->events[i];
        if (event->used)
            continue;
        if (i >= net->events_end)
            net->events_end = i + 1;
        *event = (struct net_event){.used = true,
                                    .kind = kind,
                                    .to = to,
                                    .from = KITH_NOBODY,
                                    .at_ns = at_ns,
                                    .order = net->order++};
        return event;
    }
    KITH_ASSERT(false);
    return NULL;
}

static struct net_book *book(struct net *net, kith_id initiator,
                             kith_id passive, uint64_t counter)
{
    size_t at =
        (size_t)(counter * 31 + initiator * 7 + passive) % NET_BOOKS_MAX;
    for (;; at = (at + 1) % NET_BOOKS_MAX) {
        struct net_book *entry = &net->books[at];
        if (!entry->used)
            *entry = (struct net_book){.used = true,
                                       .initiator = initiator,
                                       .passive = passive,
                                       .counter = counter};
        if (entry->initiator == initiator && entry->passive == passive &&
            entry->counter == counter)
            return entry;
    }
}

static struct net_share *share(struct net *net, uint64_t number)
{
    size_t at = (size_t)(number * 31 + (number >> 36) * 7919) % NET_BOOKS_MAX;
    for (;; at = (at + 1) % NET_BOOKS_MAX) {
        struct net_share *entry = &net->shares[at];
        if (!entry->used)
            *entry = (struct net_share){.used = true, .number = number};
        if (entry->number == number)
            return entry;
    }
}

/* The exchange's number, as kith_work.round has it. */
static uint64_t number_of(kith_id initiator, const struct kith_exchange_id *id)
{
    return ((uint64_t)initiator << 44 ^ (uint64_t)id->incarnation << 36) +
           id->counter;
}

/* What a push did to the weights. */
static void book_share(struct net *net, kith_id self,
                       const struct kith_work *work,
                       const struct kith_work_edge *edge)
{
    if (work->pattern != KITH_PATTERN_PUSH)
        return;
    struct net_share *entry = share(net, work->round);
    if (work->kind == KITH_WORK_SNAPSHOT) {
        entry->from = self;
        entry->to = edge->peer;
        entry->given += edge->scalars_sent[0];
    } else if (work->kind == KITH_WORK_UNDO) {
        entry->given -= edge->scalars_sent[0];
    } else if (work->kind == KITH_WORK_MERGE) {
        entry->taken += edge->scalars_received[0];
    }
}

static void note(struct net *net, kith_id self, const struct kith_mark *mark)
{
    net->marks[mark->kind]++;
    if (mark->kind == KITH_MARK_FINISHED)
        net->finished_ns = net->now_ns;
    if (mark->kind == KITH_MARK_MERGED)
        net->merged[self][mark->peer]++;
    if (net->trace)
        printf("%10.3f ms  %2u %-9s %2d  #%llu%s  %llu %g\n",
               (double)net->now_ns / 1e6, self, kith_mark_name(mark->kind),
               (int)mark->peer, (unsigned long long)mark->id.counter,
               mark->initiator ? " >" : "", (unsigned long long)mark->value,
               mark->sum);
    if (mark->kind != KITH_MARK_MERGED && mark->kind != KITH_MARK_UNDONE &&
        mark->kind != KITH_MARK_SPLIT && mark->kind != KITH_MARK_TORN)
        return;
    struct net_book *entry =
        mark->initiator ? book(net, self, mark->peer, mark->id.counter)
                        : book(net, mark->peer, self, mark->id.counter);
    const uint64_t number =
        number_of(mark->initiator ? self : mark->peer, &mark->id);
    if (mark->kind == KITH_MARK_TORN)
        share(net, number)->torn = true;
    if (mark->kind == KITH_MARK_TORN)
        entry->torn = true;
    else if (mark->initiator)
        entry->initiator_sum += mark->sum;
    else
        entry->passive_sum += mark->sum;
}

static struct kith_algebra algebra_of(struct net *net, kith_id self,
                                      const struct kith_work_edge *edge)
{
    static void *edges[NET_PEERS_MAX * NET_COPIES_MAX];
    struct net_peer *peer = &net->peers[self];
    const uint32_t slot =
        edge->inbox != KITH_SLOT_NONE ? edge->inbox : edge->sent;
    for (size_t i = 0; i < NET_PEERS_MAX * NET_COPIES_MAX; i++)
        edges[i] = peer->edges[i];
    return (struct kith_algebra){
        .backend = kith_backend_find("naive64"),
        .dim = NET_DIM,
        .trained = NET_DIM,
        .peers = net->topology.peers,
        .self = self,
        .graph = &net->topology,
        .live = peer->slots[KITH_SLOT_LIVE],
        .scalars = peer->scalars,
        .every = net->config.every,
        .edges = edges,
        .edge_scalars = peer->edge_scalars,
        .edge_count = kith_node_edges(&net->config, self),
        .edge_vectors = net->config.algorithm->edge_vectors,
        .edge_index = slot >= KITH_SLOT_ROUND_EDGES && slot < KITH_SLOTS_MAX
                          ? kith_slot_edge(slot)
                          : 0,
        .sent = edge->sent == KITH_SLOT_NONE ? NULL : peer->slots[edge->sent],
        .received =
            edge->inbox == KITH_SLOT_NONE ? NULL : peer->slots[edge->inbox]};
}

static void finish(struct net *net, kith_id self)
{
    struct net_peer *peer = &net->peers[self];
    const void *inboxes[KITH_DEGREE_MAX];
    const struct kith_work_edge none = {.sent = KITH_SLOT_ROUND_SENT,
                                        .inbox = KITH_SLOT_NONE};
    struct kith_algebra algebra = algebra_of(net, self, &none);
    for (uint32_t i = 0; i < peer->work.edge_count; i++)
        inboxes[i] = peer->slots[peer->work.edges[i].inbox];
    algebra.inboxes = inboxes;
    algebra.merged = peer->work.edges;
    algebra.merged_count = peer->work.edge_count;
    (void)net->config.algorithm->finish(&algebra);
}

static void run_work(struct net *net, kith_id self)
{
    struct net_peer *peer = &net->peers[self];
    const struct kith_algorithm *algorithm = net->config.algorithm;
    struct kith_work *work = &peer->work;
    double *x = peer->slots[KITH_SLOT_LIVE];
    if (work->kind == KITH_WORK_TRAIN) {
        for (int k = 0; k < NET_DIM && !net->frozen; k++) {
            const double step = kith_rng_double(&net->rng) - 0.5;
            x[k] += step;
            peer->injected += step;
        }
        return;
    }
    double given = 0;
    for (uint32_t e = 0; e < work->edge_count; e++) {
        struct kith_work_edge *edge = &work->edges[e];
        struct kith_algebra algebra = algebra_of(net, self, edge);
        const bool plain =
            algorithm->make == NULL || work->pattern == KITH_PATTERN_PULL;
        algebra.given = given;
        algebra.round = work->round;
        if (work->kind == KITH_WORK_SNAPSHOT || work->snapshot_first) {
            if (plain)
                memcpy(algebra.sent, x, sizeof peer->slots[0]);
            else
                algorithm->make(&algebra, edge);
            if (plain)
                memcpy(edge->scalars_sent, peer->scalars, sizeof peer->scalars);
            given += edge->weight;
        }
        if (work->kind == KITH_WORK_MERGE)
            algorithm->merge(&algebra, edge);
        if (work->kind == KITH_WORK_UNDO)
            algorithm->undo(&algebra, edge);
        book_share(net, self, work, edge);
        if (work->kind == KITH_WORK_ADOPT)
            memcpy(x, algebra.received, sizeof peer->slots[0]);
    }
    if (work->kind == KITH_WORK_MERGE && algorithm->finish != NULL)
        finish(net, self);
}

static bool happens(struct net *net, double chance)
{
    return chance > 0 && kith_rng_double(&net->rng) < chance;
}

static void send(struct net *net, kith_id from, const struct kith_send *send)
{
    const kith_ns latency =
        1 + (kith_ns)kith_rng_below(&net->rng, (uint32_t)net->latency_ns);
    kith_ns at = net->now_ns + latency;
    kith_ns *const free_ns = &net->link_free[from][send->to];
    if (happens(net, net->late))
        at += 3 * net->latency_ns; /* and those behind it do not wait */
    else if (at <= *free_ns)
        at = *free_ns + 1;
    if (at < net->now_ns + 3 * net->latency_ns)
        *free_ns = at;
    if (happens(net, net->loss)) {
        net->lost++;
        return;
    }
    const unsigned copies = happens(net, net->twice) ? 2 : 1;
    net->doubled += copies - 1;
    for (unsigned copy = 0; copy < copies; copy++) {
        struct net_event *out =
            push(net, KITH_EVENT_MESSAGE, send->to, at + copy * KITH_MS);
        out->from = from;
        out->message = send->message;
        if (net->claim != NULL)
            out->message.step = net->claim(net, from, send->message.step);
        out->link_epoch = net->link_epoch[from][send->to];
        if (send->message.kind == KITH_MESSAGE_MODEL)
            memcpy(out->payload, net->peers[from].slots[send->message.slot],
                   sizeof out->payload);
    }
}

/* One WAKE for each peer. */
static void wake_at(struct net *net, kith_id id, kith_ns at_ns)
{
    struct net_peer *peer = &net->peers[id];
    if (peer->wake != NULL && peer->wake->used &&
        peer->wake->kind == KITH_EVENT_WAKE && peer->wake->to == id) {
        peer->wake->at_ns = at_ns;
        peer->wake->order = net->order++;
    } else {
        peer->wake = push(net, KITH_EVENT_WAKE, id, at_ns);
    }
}

static void deliver(struct net *net, kith_id to, struct kith_event *event)
{
    struct net_peer *peer = &net->peers[to];
    static struct kith_effects effects;
    event->now_ns = net->now_ns;
    net->delivered++;
    kith_node_step(peer->node, event, &effects);
    for (uint32_t i = 0; i < effects.mark_count; i++)
        note(net, to, &effects.marks[i]);
    for (uint32_t i = 0; i < effects.send_count; i++)
        send(net, to, &effects.sends[i]);
    if (effects.has_work) {
        KITH_ASSERT(!peer->working);
        peer->working = true;
        peer->work = effects.work;
        const kith_ns cost =
            effects.work.kind == KITH_WORK_TRAIN
                ? net->step_ns / 2 +
                      (kith_ns)kith_rng_below(&net->rng, (uint32_t)net->step_ns)
                : 1;
        push(net, KITH_EVENT_WORK_DONE, to, net->now_ns + cost)->work =
            effects.work.kind;
    }
    peer->deadline_ns = effects.deadline_ns;
    if (effects.deadline_ns != KITH_NEVER)
        wake_at(net, to,
                effects.deadline_ns > net->now_ns ? effects.deadline_ns
                                                  : net->now_ns + 1);
}

static void handle(struct net *net, struct net_event *at)
{
    struct net_peer *peer = &net->peers[at->to];
    struct kith_event event = {.kind = at->kind, .from = at->from};
    struct kith_message message = at->message;
    struct kith_work_result result = {.kind = at->work, .finite = true};
    if (at->kind == KITH_EVENT_WAKE && peer->deadline_ns > net->now_ns)
        return; /* replaced */
    if (at->kind == KITH_EVENT_MESSAGE) {
        if (at->link_epoch != net->link_epoch[at->from][at->to])
            return;
        if (message.kind == KITH_MESSAGE_MODEL) {
            message.slot = kith_node_inbox(peer->node, at->from, &message);
            message.finite = true;
            if (message.slot != KITH_SLOT_NONE)
                memcpy(peer->slots[message.slot], at->payload,
                       sizeof at->payload);
        }
        event.message = &message;
    }
    if (net->trace && at->kind == KITH_EVENT_MESSAGE)
        printf("%10.3f ms  %2u <- %-2u      #%llu message %d slot %d\n",
               (double)net->now_ns / 1e6, at->to, at->from,
               (unsigned long long)message.id.counter, (int)message.kind,
               (int)message.slot);
    if (at->kind == KITH_EVENT_WORK_DONE) {
        run_work(net, at->to);
        peer->working = false;
        event.result = &result;
    }
    deliver(net, at->to, &event);
}

void net_open(struct net *net, const char *algorithm, const char *topology,
              uint32_t peers, uint64_t steps, uint32_t every, uint64_t seed)
{
    memset(net, 0, sizeof *net);
    KITH_ASSERT(peers <= NET_PEERS_MAX);
    KITH_ASSERT(kith_topology_open(kith_topology_find(topology), peers,
                                   &net->topology) == KITH_OK);
    net->config =
        (struct kith_node_config){.algorithm = kith_algorithm_find(algorithm),
                                  .topology = &net->topology,
                                  .seed = seed,
                                  .steps = steps,
                                  .every = every,
                                  .payload_bytes = sizeof(double) * NET_DIM,
                                  .retries = 3};
    net->latency_ns = KITH_MS;
    net->step_ns = 5 * KITH_MS;
    kith_rng_init(&net->rng, seed, KITH_STREAM_TEST, 0);
    for (kith_id i = 0; i < peers; i++) {
        struct net_peer *peer = &net->peers[i];
        void *memory = calloc(1, kith_node_size(&net->config));
        peer->node = kith_node_init(memory, &net->config, i, 0, 0, false);
        peer->deadline_ns = KITH_NEVER;
        memcpy(peer->scalars, net->config.algorithm->scalars_start,
               sizeof peer->scalars);
        for (int k = 0; k < NET_DIM; k++)
            peer->slots[KITH_SLOT_LIVE][k] = i;
        push(net, KITH_EVENT_START, i, 0);
    }
}

void net_close(struct net *net)
{
    for (kith_id i = 0; i < net->topology.peers; i++)
        free(net->peers[i].node);
}

void net_run(struct net *net, kith_ns until_ns)
{
    for (;;) {
        struct net_event *first = NULL;
        while (net->events_end > 0 && !net->events[net->events_end - 1].used)
            net->events_end--;
        for (size_t i = 0; i < net->events_end; i++) {
            struct net_event *at = &net->events[i];
            if (at->used &&
                (first == NULL || at->at_ns < first->at_ns ||
                 (at->at_ns == first->at_ns && at->order < first->order)))
                first = at;
        }
        if (first == NULL || first->at_ns > until_ns)
            return;
        net->now_ns = first->at_ns;
        if (net->peers[first->to].paused_until_ns > net->now_ns) {
            first->at_ns = net->peers[first->to].paused_until_ns;
            continue;
        }
        struct net_event event = *first;
        first->used = false;
        handle(net, &event);
    }
}

void net_break(struct net *net, kith_id a, kith_id b)
{
    net->link_epoch[a][b]++;
    net->link_epoch[b][a]++;
    push(net, KITH_EVENT_LINK_DOWN, a, net->now_ns)->from = b;
    push(net, KITH_EVENT_LINK_DOWN, b, net->now_ns)->from = a;
}

/* Its links break, and what was to happen to it does not. */
/* What it gave or took in may be undone at the other end. */
static void book_crash(struct net *net, kith_id id)
{
    net->weight_crashed += net->peers[id].scalars[0];
    for (size_t i = 0; i < NET_BOOKS_MAX; i++) {
        struct net_share *entry = &net->shares[i];
        if (entry->used && (entry->from == id || entry->to == id))
            entry->crashed = true;
    }
}

void net_restart(struct net *net, kith_id id)
{
    struct net_peer *peer = &net->peers[id];
    book_crash(net, id);
    for (size_t i = 0; i < NET_EVENTS_MAX; i++)
        if (net->events[i].to == id)
            net->events[i].used = false;
    for (kith_id other = 0; other < net->topology.peers; other++) {
        if (other == id)
            continue;
        net->link_epoch[id][other]++;
        net->link_epoch[other][id]++;
        push(net, KITH_EVENT_LINK_DOWN, other, net->now_ns)->from = id;
    }
    struct kith_node_counters counters;
    kith_node_counters(peer->node, &counters);
    peer->node = kith_node_init(peer->node, &net->config, id,
                                ++peer->incarnation, counters.steps, true);
    peer->working = false;
    peer->deadline_ns = KITH_NEVER;
    peer->paused_until_ns = 0;
    peer->wake = NULL;
    memset(peer->edges, 0, sizeof peer->edges);
    memset(peer->edge_scalars, 0, sizeof peer->edge_scalars);
    memcpy(peer->scalars, net->config.algorithm->scalars_start,
           sizeof peer->scalars);
    push(net, KITH_EVENT_START, id, net->now_ns);
}

double net_sum(const struct net *net)
{
    double sum = 0;
    for (kith_id i = 0; i < net->topology.peers; i++)
        for (int k = 0; k < NET_DIM; k++)
            sum += net->peers[i].slots[KITH_SLOT_LIVE][k];
    return sum;
}

double net_expected(const struct net *net)
{
    double sum = 0;
    for (kith_id i = 0; i < net->topology.peers; i++)
        sum += (double)i * NET_DIM + net->peers[i].injected;
    return sum;
}

double net_unbalanced(const struct net *net, uint32_t *silent)
{
    double sum = 0;
    *silent = 0;
    for (size_t i = 0; i < NET_BOOKS_MAX; i++) {
        const struct net_book *entry = &net->books[i];
        if (!entry->used)
            continue;
        const double rest = entry->initiator_sum + entry->passive_sum;
        sum += rest;
        if (fabs(rest) > 1e-12 && !entry->torn)
            (*silent)++;
    }
    return sum;
}

bool net_quiet(const struct net *net)
{
    for (kith_id i = 0; i < net->topology.peers; i++)
        if (!kith_node_quiet(net->peers[i].node))
            return false;
    return true;
}
