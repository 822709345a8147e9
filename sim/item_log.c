/* See item_log.h. In the log a byte says what is not as it mostly is; only that
 * follows: a merge takes some twenty bytes, a step nine. Of one machine's
 * layout: ranks of one run are of one build, and so is who goes on with it. */
#include "sim/item_log.h"

#include <string.h>

#include "kith/archive.h"
#include "kith/assert.h"
#include "sim/work_pool.h"
#include "sim/world.h"

/* Of a result. */
enum {
    FINITE = 1,
    RECOVERED = 2,
    KEPT = 4,
    IS_PART = 8,
    LOSS = 16,
    PASSES = 32,
    MORE = 64
};
/* Of an edge. */
enum { REFUSED = 1, FAR = 2, SUM = 4, SCALARS = 8 };

/* As bits: -0 is not 0 there. */
static bool is_zero(const double *values, size_t count)
{
    static const double none[KITH_SCALARS_MAX];
    KITH_ASSERT(count <= KITH_SCALARS_MAX);
    return memcmp(values, none, count * sizeof *values) == 0;
}

/* The bytes of a field as they stand in memory, one after another: who reads
 * knows from the byte before which of them follow. */
#define PUT(field) sim_log_put(world, &(field), sizeof(field))
#define GET(field) sim_log_get(world, rank, &(field), sizeof(field))

/* Kind is not written: whoever reads has taken the same event, and knows
 * which item is over. Of a step mostly the loss alone follows. */
static void put_result(struct sim_world *world,
                       const struct kith_work_result *result)
{
    const bool more =
        result->more != 0 || result->complete != 0 || result->needs != 0;
    const bool loss = !is_zero(&result->loss, 1);
    const uint8_t what =
        (uint8_t)((result->finite ? FINITE : 0) |
                  (result->recovered ? RECOVERED : 0) |
                  (result->kept ? KEPT : 0) | (result->is_part ? IS_PART : 0) |
                  (loss ? LOSS : 0) | (result->passes > 0 ? PASSES : 0) |
                  (more ? MORE : 0));
    KITH_ASSERT(result->kind < KITH_WORK_COUNT);
    PUT(what);
    if (loss)
        PUT(result->loss);
    if (result->passes > 0)
        PUT(result->passes);
    if (!more)
        return;
    PUT(result->more);
    PUT(result->complete);
    PUT(result->needs);
}

/* Whatever stands there: each field that is not told is 0, and the booleans
 * are bits, so that no byte makes a result that is none. Once the run has
 * failed it is one that ended well. */
static void get_result(struct sim_world *world, uint32_t rank,
                       enum kith_work_kind kind,
                       struct kith_work_result *result)
{
    uint8_t what = FINITE;
    KITH_ASSERT(kind < KITH_WORK_COUNT);
    GET(what);
    *result = (struct kith_work_result){.kind = kind,
                                        .finite = (what & FINITE) != 0,
                                        .recovered = (what & RECOVERED) != 0,
                                        .kept = (what & KEPT) != 0,
                                        .is_part = (what & IS_PART) != 0};
    if (what & LOSS)
        GET(result->loss);
    if (what & PASSES)
        GET(result->passes);
    if (!(what & MORE))
        return;
    GET(result->more);
    GET(result->complete);
    GET(result->needs);
}

/* The weight always: a guard may have lessened it, and an algorithm may have
 * one of its own. Where the edge goes and what was received there is not
 * written, for the node has put it there everywhere. */
static void put_edge(struct sim_world *world, const struct kith_work_edge *edge)
{
    const bool sum = !is_zero(&edge->delta_sum, 1);
    const bool scalars = !is_zero(edge->scalars_sent, KITH_SCALARS_MAX);
    const uint8_t what = (uint8_t)((edge->refused ? REFUSED : 0) |
                                   (edge->far != KITH_FAR_UNKNOWN ? FAR : 0) |
                                   (sum ? SUM : 0) | (scalars ? SCALARS : 0));
    PUT(what);
    PUT(edge->weight);
    if (what & FAR)
        PUT(edge->far);
    if (sum)
        PUT(edge->delta_sum);
    if (scalars)
        PUT(edge->scalars_sent);
}

/* What an item left as it was is written over all the same: an edge of a
 * node is used again, and would hold what the last exchange came to. */
static void get_edge(struct sim_world *world, uint32_t rank,
                     struct kith_work_edge *edge)
{
    uint8_t what = 0;
    GET(what);
    GET(edge->weight);
    edge->refused = (what & REFUSED) != 0;
    edge->far = KITH_FAR_UNKNOWN;
    edge->delta_sum = 0;
    memset(edge->scalars_sent, 0, sizeof edge->scalars_sent);
    if (what & FAR)
        GET(edge->far);
    if (what & SUM)
        GET(edge->delta_sum);
    if (what & SCALARS)
        GET(edge->scalars_sent);
}

/* The edges are there on both sides: the node planned them. */
void sim_item_tell(struct sim_world *world, const struct sim_job *job)
{
    KITH_ASSERT(job->state == JOB_FREE && job->worker);
    KITH_ASSERT(job->work.edge_count == 0 || job->work.edges);
    put_result(world, &job->result);
    for (uint32_t i = 0; i < job->work.edge_count; i++)
        put_edge(world, &job->work.edges[i]);
}

void sim_item_hear(struct sim_world *world, kith_id peer, struct sim_job *job)
{
    const uint32_t rank = sim_rank_of(world, peer);
    KITH_ASSERT(job->worker == NULL && job->state == JOB_FREE);
    KITH_ASSERT(job->work.edge_count == 0 || job->work.edges);
    get_result(world, rank, job->work.kind, &job->result);
    for (uint32_t i = 0; i < job->work.edge_count; i++)
        get_edge(world, rank, &job->work.edges[i]);
    if (sim_failure(world) != KITH_OK)
        job->result =
            (struct kith_work_result){.kind = job->work.kind, .finite = true};
}

/* Of a mark the kind, and its two figures; the peer is the edge's. */
static void put_mark(struct sim_world *world, const struct kith_mark *mark)
{
    const uint8_t kind = mark ? (uint8_t)mark->kind : UINT8_MAX;
    _Static_assert(KITH_MARK_COUNT < UINT8_MAX, "a byte");
    PUT(kind);
    if (!mark)
        return;
    PUT(mark->value);
    PUT(mark->sum);
}

/* Marks of guards are rows of the database alone: no trace has them, nor
 * does any decision of a node depend on one. */
static bool get_mark(struct sim_world *world, uint32_t rank,
                     const struct kith_work_edge *edge, struct kith_mark *mark)
{
    uint8_t kind = UINT8_MAX;
    KITH_ASSERT(edge->peer < world->peer_count);
    GET(kind);
    if (sim_failure(world) != KITH_OK || kind >= KITH_MARK_COUNT)
        return false;
    *mark = (struct kith_mark){.kind = (enum kith_mark_kind)kind,
                               .peer = edge->peer};
    GET(mark->value);
    GET(mark->sum);
    return sim_failure(world) == KITH_OK;
}

static bool is_guarded(struct sim_world *world, kith_id peer,
                       const struct sim_job *job,
                       const struct kith_work_edge *edge,
                       struct kith_mark *mark)
{
    KITH_ASSERT((job->worker != NULL) == sim_is_here(world, peer));
    const bool is = job->worker && kith_worker_guarded(job->worker, edge, mark);
    if (!sim_is_logged(world))
        return is;
    if (!sim_is_here(world, peer))
        return get_mark(world, sim_rank_of(world, peer), edge, mark);
    put_mark(world, is ? mark : NULL);
    return is;
}

/* Beside the trace, which has no values of models. */
void sim_item_guarded(struct sim_world *world, kith_id peer,
                      const struct sim_job *job)
{
    struct kith_mark mark;
    KITH_ASSERT(job->work.kind == KITH_WORK_MERGE);
    for (uint32_t i = 0; i < job->work.edge_count; i++) {
        if (!is_guarded(world, peer, job, &job->work.edges[i], &mark))
            continue;
        if (sim_is_watched(world))
            world->report.marks[mark.kind]++;
        if (sim_is_kept(world, peer))
            sim_keep_mark(world, peer, &mark);
    }
}

static void move_result(struct kith_archive *archive,
                        struct kith_work_result *result)
{
    KITH_ARCHIVE(archive, *result);
    bool *const said[] = {&result->finite, &result->recovered, &result->kept,
                          &result->is_part};
    for (size_t i = 0; i < sizeof said / sizeof said[0]; i++)
        kith_archive_bool(archive, said[i]);
}

void sim_item_move(struct kith_archive *archive, struct sim_job *job)
{
    KITH_ASSERT(job->state == JOB_DONE || archive->reads);
    kith_archive_same(archive, job->work.edge_count, "another item was out");
    kith_archive_same(archive, job->work.kind, "another item was out");
    move_result(archive, &job->result);
    for (uint32_t i = 0; i < job->work.edge_count; i++) {
        struct kith_work_edge *edge = &job->work.edges[i];
        kith_archive_bool(archive, &edge->refused);
        KITH_ARCHIVE(archive, edge->far);
        KITH_ARCHIVE(archive, edge->weight);
        KITH_ARCHIVE(archive, edge->scalars_sent);
        KITH_ARCHIVE(archive, edge->delta_sum);
    }
}
