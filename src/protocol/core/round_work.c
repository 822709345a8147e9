/* A round's work items: the snapshot that it opens with, the merge that it
 * closes with, and, of a step in parts, what its buckets wait for. */
#include "src/protocol/core/round.h"

#include <string.h>

#include "kith/bucket.h"

/* Buckets of the open cycle whose rounds are over. */
static uint32_t shared(const struct kith_node *node)
{
    const uint32_t phases = kith_round_phases(node);
    KITH_ASSERT(phases % node->config->buckets == 0);
    return (uint32_t)(node->round->round % phases /
                      (phases / node->config->buckets));
}

/* The slot of what is sent over edge `e`: one snapshot for all, or its own. */
static uint32_t sent_slot(const struct kith_node *node, uint32_t e)
{
    KITH_ASSERT(e < KITH_DEGREE_MAX);
    return kith_node_has(node, KITH_SENDS_EDGE_MESSAGES) ? kith_slot_outbox(e)
                                                         : KITH_SLOT_ROUND_SENT;
}

/* The edges of an item are the node's memory: the worker writes into them
 * what it found. */
static void put_work(struct kith_node *node, enum kith_work_kind kind,
                     uint32_t count)
{
    struct kith_round *round = node->round;
    KITH_ASSERT(!kith_round_is_running(node) && count <= KITH_DEGREE_MAX);
    kith_node_work(node, OWNER_ROUND,
                   (struct kith_work){.kind = kind,
                                      .pattern = KITH_PATTERN_ROUND,
                                      .round = round->round,
                                      .edges = round->work,
                                      .edge_count = count});
}

static void schedule_snapshot(struct kith_node *node)
{
    struct kith_round *round = node->round;
    const struct kith_round_list *list = kith_round_current(node);
    const bool shared = sent_slot(node, 0) == KITH_SLOT_ROUND_SENT;
    KITH_ASSERT(round->state == ROUND_SNAPSHOT);
    uint32_t count = 0;
    for (uint32_t e = 0; e < list->count; e++) {
        struct kith_round_edge *edge = &list->edges[e];
        kith_edge_plan(node, edge);
        if (!shared && edge->flags & EDGE_MADE)
            round->work[count++] =
                (struct kith_work_edge){.peer = edge->peer,
                                        .weight = edge->share,
                                        .sent = sent_slot(node, e),
                                        .inbox = KITH_SLOT_NONE};
    }
    /* One snapshot for all, though nobody may be there to send it to:
     * `finish` reads it. */
    if (shared)
        round->work[count++] =
            (struct kith_work_edge){.peer = KITH_NOBODY,
                                    .sent = KITH_SLOT_ROUND_SENT,
                                    .inbox = KITH_SLOT_NONE};
    put_work(node, KITH_WORK_SNAPSHOT, count);
}

static void schedule_merge(struct kith_node *node)
{
    struct kith_round *round = node->round;
    const struct kith_round_list *list = kith_round_current(node);
    KITH_ASSERT(round->state == ROUND_MERGE && !round->merged);
    uint32_t count = 0;
    for (uint32_t e = 0; e < list->count; e++) {
        struct kith_round_edge *edge = &list->edges[e];
        if (!node->mode->is_merged(edge))
            continue;
        const uint32_t sent = sent_slot(node, e);
        struct kith_work_edge *work = &round->work[count++];
        /* What comes meanwhile goes into the other inbox. */
        edge->merging = edge->held;
        *work = (struct kith_work_edge){
            .peer = edge->peer,
            .weight = edge->weight,
            .sent = sent == KITH_SLOT_ROUND_SENT || edge->flags & EDGE_MADE
                        ? sent
                        : KITH_SLOT_NONE,
            .inbox = kith_slot_inbox(e, edge->held)};
        memcpy(work->scalars_received, edge->scalars,
               sizeof work->scalars_received);
    }
    if (count < list->count)
        round->work[count].peer = KITH_NOBODY; /* step_merged reads so far */
    put_work(node, KITH_WORK_MERGE, count);
}

/* Those that are open before the first bucket is are the step before's. */
bool kith_round_is_complete(const struct kith_node *node)
{
    const struct kith_node_config *config = node->config;
    KITH_ASSERT(node->round->complete == 0 || node->round->part > 0);
    return node->round->complete == 0 ||
           kith_bucket_at(config->buckets, config->urgent, shared(node)) <
               node->round->complete;
}

void kith_round_trained(struct kith_node *node,
                        const struct kith_work_result *result)
{
    struct kith_round *round = node->round;
    KITH_ASSERT(result->finite || !result->is_part);
    KITH_ASSERT(result->complete <= node->config->buckets);
    round->part = result->is_part ? round->part + 1 : 0;
    round->complete = result->is_part ? result->complete : 0;
    round->needs = result->needs;
}

/* A step in parts waits for what the next of them needs. */
bool kith_round_holds_training(const struct kith_node *node)
{
    KITH_ASSERT(node->round->part == 0 || node->config->buckets > 1);
    return node->config->buckets > 1
               ? kith_round_is_open(node) && shared(node) < node->round->needs
               : kith_round_holds(node);
}

bool kith_round_schedule(struct kith_node *node)
{
    KITH_ASSERT(!kith_round_is_running(node));
    const uint8_t state = node->round->state;
    if (state == ROUND_SNAPSHOT && kith_round_is_complete(node))
        schedule_snapshot(node);
    else if (state == ROUND_MERGE)
        schedule_merge(node);
    return kith_round_is_running(node);
}

/* In a cycle those that wait for us ask. */
static kith_ns speaks_at(const struct kith_node *node)
{
    KITH_ASSERT(node->round->state != ROUND_CLOSED);
    return kith_round_phases(node) > 1 ? KITH_NEVER
                                       : node->now_ns + kith_late_wait(node, 0);
}

/* Our snapshot is taken. */
static void step_snapshot(struct kith_node *node)
{
    struct kith_round *round = node->round;
    const struct kith_round_list *list = kith_round_current(node);
    KITH_ASSERT(round->state == ROUND_SNAPSHOT);
    /* The time until our own snapshot was taken is not the neighbours'. */
    round->opened_ns = node->now_ns;
    round->came_ns = 0;
    round->longer = 0;
    round->noted &= (uint8_t)~NOTED_QUESTION;
    round->deadline_ns = kith_late_deadline(node);
    round->speak_ns = speaks_at(node);
    if (kith_round_is_first(node))
        kith_edge_ask_again(node);
    for (uint32_t e = 0; e < list->count; e++)
        kith_edge_open(node, &list->edges[e]);
    round->deserted =
        kith_round_phases(node) == 1 && kith_round_is_deserted(node);
    node->mode->opened(node);
}

static void step_merged(struct kith_node *node)
{
    struct kith_round *round = node->round;
    const struct kith_round_list *list = kith_round_current(node);
    KITH_ASSERT(round->state == ROUND_MERGE);
    uint32_t count = 0;
    for (uint32_t e = 0; e < list->count; e++) {
        struct kith_round_edge *edge = &list->edges[e];
        const struct kith_work_edge *work = &round->work[count];
        /* Items keep the order of the list, so one pass finds each edge's
         * result. */
        if (work->peer != edge->peer)
            continue;
        count++;
        node->gated += work->refused;
        kith_edge_mark(node, work->refused ? KITH_MARK_GATED : KITH_MARK_MERGED,
                       edge, work->delta_sum);
    }
    round->merged = true;
    node->mode->merged(node);
}

void kith_round_worked(struct kith_node *node, enum kith_work_kind kind)
{
    KITH_ASSERT(kith_round_is_open(node));
    KITH_ASSERT(kind == KITH_WORK_SNAPSHOT || kind == KITH_WORK_MERGE);
    (kind == KITH_WORK_SNAPSHOT ? step_snapshot : step_merged)(node);
}
