/* Of each ordered pair (peer, source) the rounds of both when it last merged:
 * an edge is late when both ends have closed more rounds since than it may
 * take. Asked at its next merge, and at the end for those that never come.
 *
 * Source: the healed phase of TigerBeetle's VOPR: safety while faults go on,
 * liveness after them. */
#include "kith/liveness.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "kith/assert.h"
#include "kith/check.h"
#include "kith/fault.h"

/* A slower end is met after two rounds in silence and five that double the
 * deadline. A liar's claims cost an edge a quarter of its rounds. */
#define ROUNDS_MORE 6u
#define RANDOM_ROUNDS 8u
#define LOSS_PATIENCE 8u
/* A connection is dialled anew, a restarted peer adopts a model: rounds that
 * nobody waits in may be shorter than that. */
#define SETTLE_NS (5 * KITH_S)
#define SETTLE_TRIPS 20
#define TRIES_PER_NEIGHBOUR 10u
/* Nothing is promised about losses in a row that are so rare. */
#define RARE 1e-8
#define STANDSTILL_NS (60 * KITH_S)
#define STANDSTILL_STEPS 400

struct edge {
    kith_id source;
    uint32_t own, theirs; /* rounds of both at the last merge */
    kith_ns merged_ns;    /* 0: since the last fault never */
    bool cut;             /* for good */
};

/* Small: asked at every mark of a large run. */
struct watched {
    kith_ns step_ns;
    kith_ns came_ns; /* 0: nothing did since the last fault */
    uint32_t misses; /* attempts, or rounds, since something came of one */
    uint32_t degree; /* two-party methods */
    uint32_t gone;   /* for good, a bit for each fault that says so */
    bool exempt, finished;
    bool cut; /* some link is, for good */
};

/* Of a peer whose method has rounds. */
struct closed {
    uint32_t edge_first, edge_count;
    uint32_t rounds; /* since the last fault */
    uint64_t others; /* rounds of all others when something last came */
};

struct kith_liveness {
    const struct kith_node_config *config;
    uint32_t peers;
    uint32_t edge_rounds; /* without a merge; 0: edges are drawn for ever */
    uint32_t patience;    /* so many times as long */
    bool lied_to;
    kith_ns settle_ns; /* of any silence: no violation */
    uint64_t rounds;   /* of all */
    kith_ns from_ns, standstill_ns, now_ns;
    struct watched *watched; /* (peers) */
    struct closed *closed;   /* (peers) */
    struct edge *edges;
    char text[KITH_LIVENESS_TEXT_BYTES];
};

static bool rounds(const struct kith_liveness *liveness)
{
    return liveness->config->algorithm->pattern == KITH_PATTERN_ROUND;
}

static bool broken(const struct kith_liveness *liveness)
{
    return liveness->text[0] != '\0';
}

/* ---- what there is to watch */

/* compute.slow is no fault: it was so from the start. */
bool kith_liveness_wanted(const struct kith_experiment *experiment)
{
    for (uint32_t i = 0; i < experiment->atom_count; i++)
        if (experiment->atoms[i].statement != UINT32_MAX)
            return true;
    return kith_checks_ask(experiment, "live");
}

static int by_source(const void *a, const void *b)
{
    const kith_id left = ((const struct edge *)a)->source;
    const kith_id right = ((const struct edge *)b)->source;
    return (left > right) - (left < right);
}

/* Sources of `peer` over one period, ascending, behind edges[first]; room for
 * KITH_LINKS_MAX more is there. */
static uint32_t list_sources(const struct kith_topology *topology, kith_id peer,
                             struct edge *list)
{
    const uint64_t period = kith_topology_period(topology);
    kith_id ids[KITH_DEGREE_MAX];
    double weights[KITH_DEGREE_MAX];
    uint32_t count = 0;
    for (uint64_t round = 0; round < period; round++) {
        const uint32_t found =
            kith_topology_sources(topology, peer, round, ids, weights);
        const uint32_t before = count;
        for (uint32_t k = 0; k < found && count < KITH_LINKS_MAX; k++) {
            const struct edge edge = {.source = ids[k]};
            if (!bsearch(&edge, list, before, sizeof edge, by_source))
                list[count++] = edge;
        }
        qsort(list, count, sizeof *list, by_source);
    }
    return count;
}

static enum kith_err list_edges(struct kith_liveness *liveness)
{
    const struct kith_topology *topology = liveness->config->topology;
    uint32_t used = 0, room = 0;
    for (kith_id peer = 0; peer < liveness->peers; peer++) {
        if (room - used < KITH_LINKS_MAX) {
            room = 2 * room + KITH_LINKS_MAX;
            struct edge *more =
                realloc(liveness->edges, room * sizeof *liveness->edges);
            if (!more)
                return KITH_ENOMEM;
            liveness->edges = more;
        }
        struct closed *closed = &liveness->closed[peer];
        closed->edge_first = used;
        closed->edge_count =
            list_sources(topology, peer, liveness->edges + used);
        used += closed->edge_count;
    }
    return KITH_OK;
}

static struct edge *find_edge(const struct kith_liveness *liveness,
                              kith_id peer, kith_id source)
{
    KITH_ASSERT(peer < liveness->peers);
    const struct closed *closed = &liveness->closed[peer];
    const struct edge key = {.source = source};
    return closed->edge_count == 0
               ? NULL
               : bsearch(&key, liveness->edges + closed->edge_first,
                         closed->edge_count, sizeof key, by_source);
}

/* Contention counts: who shares its partner with many may be told BUSY by it
 * as often. */
static void set_degrees(struct kith_liveness *liveness)
{
    const struct kith_topology *topology = liveness->config->topology;
    kith_id ids[KITH_LINKS_MAX];
    for (kith_id peer = 0; peer < liveness->peers; peer++) {
        uint32_t count =
            kith_topology_links(topology, peer, ids, KITH_LINKS_MAX);
        const bool any = count == KITH_LINKS_ANY;
        if (any)
            count = liveness->peers - 1;
        if (count > liveness->watched[peer].degree)
            liveness->watched[peer].degree = count;
        for (uint32_t k = 0; !any && k < count && k < KITH_LINKS_MAX; k++)
            if (liveness->watched[ids[k]].degree < count)
                liveness->watched[ids[k]].degree = count;
    }
}

/* Whoever is slower goes on, and whose lie ends with so many models will. */
static bool goes_on(const struct kith_atom *atom)
{
    return atom->fault->effect == KITH_EFFECT_LIE
               ? kith_atom_lie(atom).models > 0
               : kith_fault_has_factor(atom->fault);
}

/* Faults of several kinds may overlap. Of whoever lies to the end nobody may
 * merge anything. */
static void set_gone(struct watched *watched, const struct kith_atom *atom)
{
    unsigned k = 0;
    while (kith_faults[k] != atom->fault)
        k++;
    KITH_ASSERT(k < 32);
    if (goes_on(atom))
        return;
    watched->gone &= ~(UINT32_C(1) << k);
    watched->gone |= (uint32_t)atom->begins << k;
    watched->exempt = watched->gone != 0;
}

/* Atoms in the order of time: what the last one of its kind leaves. */
static void take_atoms(struct kith_liveness *liveness,
                       const struct kith_experiment *experiment)
{
    for (uint32_t i = 0; i < experiment->atom_count; i++) {
        const struct kith_atom *atom = &experiment->atoms[i];
        KITH_ASSERT(atom->peer < liveness->peers);
        liveness->from_ns = atom->at_ns;
        if (atom->sides == NULL)
            set_gone(&liveness->watched[atom->peer], atom);
    }
}

/* Links that a statement without an end has, of whoever stands on its sides. */
static void take_sides(struct kith_liveness *liveness,
                       const struct kith_sides *sides)
{
    for (kith_id peer = 0; peer < liveness->peers; peer++) {
        const struct closed *closed = &liveness->closed[peer];
        liveness->watched[peer].cut |= sides->side[peer] != 0;
        for (uint32_t k = 0; k < closed->edge_count; k++) {
            struct edge *edge = &liveness->edges[closed->edge_first + k];
            edge->cut |= kith_sides_hold(sides, peer, edge->source) ||
                         kith_sides_hold(sides, edge->source, peer);
        }
    }
}

static void take_faults(struct kith_liveness *liveness,
                        const struct kith_experiment *experiment)
{
    const struct kith_sides *sides = experiment->sides;
    take_atoms(liveness, experiment);
    if (sides == NULL)
        return;
    do {
        if (sides->to_ns == KITH_NEVER)
            take_sides(liveness, sides);
        sides = sides->next;
    } while (sides != experiment->sides);
}

static enum kith_err fill_in(struct kith_liveness *liveness)
{
    const struct kith_topology *topology = liveness->config->topology;
    const uint64_t period =
        rounds(liveness) ? kith_topology_period(topology) : 0;
    liveness->watched = calloc(liveness->peers, sizeof *liveness->watched);
    liveness->closed = calloc(liveness->peers, sizeof *liveness->closed);
    if (!liveness->watched || !liveness->closed)
        return KITH_ENOMEM;
    if (!rounds(liveness))
        set_degrees(liveness);
    if (period == 0)
        return KITH_OK;
    /* A trigger may go through the graph's rounds several times. */
    const uint64_t phases = liveness->config->phases;
    liveness->edge_rounds =
        (uint32_t)(2 * (phases > period ? phases : period)) + ROUNDS_MORE;
    return list_edges(liveness);
}

enum kith_err kith_liveness_open(const struct kith_node_config *config,
                                 const struct kith_experiment *experiment,
                                 struct kith_liveness **liveness)
{
    *liveness = NULL;
    if (config->algorithm->pattern == KITH_PATTERN_NONE ||
        config->topology->peers < 2)
        return KITH_OK;
    struct kith_liveness *made = calloc(1, sizeof *made);
    if (!made)
        return KITH_ENOMEM;
    made->config = config;
    made->peers = config->topology->peers;
    const struct kith_link_terms link =
        kith_experiment_slowest_link(experiment);
    made->patience = link.loss > 0 ? LOSS_PATIENCE : 1;
    made->settle_ns =
        SETTLE_NS + SETTLE_TRIPS * (link.latency_ns + 3 * link.jitter_ns);
    if (rounds(made))
        made->settle_ns *= made->patience;
    else
        made->settle_ns += kith_link_stall(&link, RARE);
    made->standstill_ns = kith_ns_add(
        STANDSTILL_NS,
        kith_ns_from(STANDSTILL_STEPS * (double)experiment->compute.step_ns *
                     experiment->network.classes.pace_most));
    const enum kith_err err = fill_in(made);
    if (err != KITH_OK) {
        kith_liveness_close(made);
        return err;
    }
    take_faults(made, experiment);
    for (kith_id peer = 0; peer < made->peers; peer++)
        made->watched[peer].step_ns = made->from_ns;
    *liveness = made;
    return KITH_OK;
}

void kith_liveness_close(struct kith_liveness *liveness)
{
    if (!liveness)
        return;
    free(liveness->edges);
    free(liveness->watched);
    free(liveness->closed);
    free(liveness);
}

void kith_liveness_exempt(struct kith_liveness *liveness, kith_id peer)
{
    KITH_ASSERT(peer < liveness->peers);
    liveness->watched[peer].exempt = true;
    liveness->lied_to = true;
}

/* ---- what is promised */

/* Too short a time to tell? */
static bool settling(const struct kith_liveness *liveness, kith_ns since_ns)
{
    if (since_ns < liveness->from_ns)
        since_ns = liveness->from_ns;
    return liveness->now_ns - since_ns < liveness->settle_ns;
}

static uint32_t allowed(const struct kith_liveness *liveness, uint32_t rounds)
{
    KITH_ASSERT(liveness->patience >= 1);
    return (liveness->lied_to ? 4 * rounds / 3 : rounds) * liveness->patience;
}

static void check_edge(struct kith_liveness *liveness, kith_id peer,
                       const struct edge *edge)
{
    const struct watched *own = &liveness->watched[peer];
    const struct watched *theirs = &liveness->watched[edge->source];
    if (settling(liveness, edge->merged_ns) || edge->cut || own->exempt ||
        theirs->exempt || broken(liveness))
        return;
    const uint32_t mine = liveness->closed[peer].rounds - edge->own;
    const uint32_t other = liveness->closed[edge->source].rounds - edge->theirs;
    const uint32_t slower = mine < other ? mine : other;
    const uint32_t most = allowed(liveness, liveness->edge_rounds);
    if (slower > most)
        snprintf(liveness->text, sizeof liveness->text,
                 "peer %" PRIu32 " merged nothing of peer %" PRIu32
                 " in %" PRIu32 " rounds of both by %.3f s; allowed: %" PRIu32,
                 peer, edge->source, slower, 1e-9 * (double)liveness->now_ns,
                 most);
}

static void check_misses(struct kith_liveness *liveness, kith_id peer,
                         uint32_t most, const char *what)
{
    const struct watched *watched = &liveness->watched[peer];
    if (watched->misses <= most || settling(liveness, watched->came_ns) ||
        watched->exempt || watched->cut || broken(liveness))
        return;
    snprintf(liveness->text, sizeof liveness->text,
             "nothing came of %" PRIu32 " %s of peer %" PRIu32
             " by %.3f s; allowed: %" PRIu32,
             watched->misses, what, peer, 1e-9 * (double)liveness->now_ns,
             most);
}

static void check_steps(struct kith_liveness *liveness, kith_id peer)
{
    const struct watched *watched = &liveness->watched[peer];
    const kith_ns stood_ns = liveness->now_ns - watched->step_ns;
    if (stood_ns > liveness->standstill_ns && !watched->exempt &&
        !watched->finished && !broken(liveness))
        snprintf(liveness->text, sizeof liveness->text,
                 "peer %" PRIu32 " took no step for %.3f s by %.3f s; "
                 "allowed: %.3f s",
                 peer, 1e-9 * (double)stood_ns, 1e-9 * (double)liveness->now_ns,
                 1e-9 * (double)liveness->standstill_ns);
}

/* Is anybody there in this round of a graph that is drawn for ever? */
static bool has_source(const struct kith_liveness *liveness, kith_id peer,
                       uint64_t round)
{
    kith_id ids[KITH_DEGREE_MAX];
    double weights[KITH_DEGREE_MAX];
    const uint32_t count = kith_topology_sources(liveness->config->topology,
                                                 peer, round, ids, weights);
    for (uint32_t k = 0; k < count; k++)
        if (!liveness->watched[ids[k]].exempt &&
            !liveness->watched[ids[k]].finished)
            return true;
    return false;
}

/* Closed by another peer on average since this one merged something. */
static uint64_t others_rounds(const struct kith_liveness *liveness,
                              kith_id peer)
{
    const struct closed *closed = &liveness->closed[peer];
    return (liveness->rounds - closed->rounds - closed->others) /
           (liveness->peers - 1);
}

static void step_round(struct kith_liveness *liveness, kith_id peer,
                       const struct kith_mark *mark)
{
    struct watched *watched = &liveness->watched[peer];
    struct closed *closed = &liveness->closed[peer];
    if (mark->kind == KITH_MARK_ROUND) {
        closed->rounds += !watched->finished;
        liveness->rounds += !watched->finished;
        if (liveness->edge_rounds == 0 && !watched->finished &&
            has_source(liveness, peer, mark->value)) {
            watched->misses++;
            if (others_rounds(liveness, peer) > RANDOM_ROUNDS)
                check_misses(liveness, peer, allowed(liveness, RANDOM_ROUNDS),
                             "rounds");
        }
    } else if (mark->kind == KITH_MARK_MERGED) {
        struct edge *edge = find_edge(liveness, peer, mark->peer);
        watched->misses = 0;
        watched->came_ns = liveness->now_ns;
        closed->others = liveness->rounds - closed->rounds;
        if (!edge)
            return;
        check_edge(liveness, peer, edge);
        edge->own = closed->rounds;
        edge->merged_ns = liveness->now_ns;
        edge->theirs = liveness->closed[mark->peer].rounds;
    }
}

static void step_attempt(struct kith_liveness *liveness, kith_id peer,
                         const struct kith_mark *mark)
{
    struct watched *watched = &liveness->watched[peer];
    if (mark->kind == KITH_MARK_DONE) { /* asked, or served */
        watched->misses = 0;
        watched->came_ns = liveness->now_ns;
    } else if (mark->kind == KITH_MARK_ATTEMPT && mark->peer != KITH_NOBODY &&
               !liveness->watched[mark->peer].exempt) {
        check_misses(liveness, peer, TRIES_PER_NEIGHBOUR * watched->degree,
                     "attempts");
        watched->misses++;
    }
}

void kith_liveness_mark(struct kith_liveness *liveness, kith_ns now_ns,
                        kith_id peer, const struct kith_mark *mark)
{
    KITH_ASSERT(peer < liveness->peers);
    struct watched *watched = &liveness->watched[peer];
    if (mark->kind == KITH_MARK_FINISHED)
        watched->finished = true;
    if (now_ns <= liveness->from_ns)
        return;
    liveness->now_ns = now_ns;
    if (mark->kind == KITH_MARK_STEP) {
        check_steps(liveness, peer);
        watched->step_ns = now_ns;
    } else if (rounds(liveness)) {
        step_round(liveness, peer, mark);
    } else {
        step_attempt(liveness, peer, mark);
    }
}

void kith_liveness_finish(struct kith_liveness *liveness, kith_ns now_ns)
{
    if (now_ns <= liveness->from_ns)
        return;
    liveness->now_ns = now_ns;
    for (kith_id peer = 0; peer < liveness->peers; peer++) {
        const struct closed *closed = &liveness->closed[peer];
        check_steps(liveness, peer);
        for (uint32_t e = 0; e < closed->edge_count; e++)
            check_edge(liveness, peer,
                       &liveness->edges[closed->edge_first + e]);
    }
}

double kith_liveness_value(const struct kith_liveness *liveness)
{
    return liveness->now_ns == 0 ? (double)NAN : broken(liveness) ? 0 : 1;
}

const char *kith_liveness_text(const struct kith_liveness *liveness)
{
    return liveness->text;
}
