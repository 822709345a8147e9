/* A run in progress: parts, each with an owner that alone touches its fields
 * (tests/fences/check_sim_parts.sh). What others need is asked for by the
 * functions of the part's header.
 *
 *   sim_run.c        a run from its options to its summary
 *   sim_saves.c      a run is saved, and goes on from there
 *   sim_ranks.c      several processes that carry it out together
 *   rank_log.c       what they tell each other of their peers
 *   rank_models.c    models on their way between them
 *   engine.c         the clock, the events to come, the loop
 *   windows.c        events on several threads, a window of time at once
 *   divisions.c      the worlds of those threads
 *   mail.c           what they send to each other
 *   notes.c          what they say to what is one for the run, in order
 *   nodes.c          peers that gossip: steps, timers, the end of the run
 *   central/         central methods in their place
 *   delivery.c       messages over access links: latency, rate, loss
 *   fair_sharing.c   the same lines, shared by all that is under way at once
 *   packets.c        what is under way
 *   hosts.c          cores that peers share
 *   outbox.c         what has just been sent, until its link is at hand
 *   links.c          connections: dial, handshake, up, dead
 *   directions.c     when what leaves over them arrives; loss, cuts
 *   full_channel.c   wire `full`: real sessions at both ends
 *   model_copies.c   vectors under way
 *   workers.c        the peers' workers, and the vectors that they are lent
 *   jobs.c           their items, which threads run ahead (work_pool.c)
 *   aside.c          peers that wait for a merge, while others go on
 *   sim_faults.c     crash, restart, pause, slow, cut
 *   dump.c           models and mixing matrices, for NumPy
 *   timeline.c       what some peers did when, for a viewer
 *   trace.c          the hash of all decisions, and the story as text
 *   ledger.c         conservation
 *   dishonest.c      peers whose word is not true
 *   watch.c          liveness after the last fault
 *   peer_totals.c    staleness and utilisation of each peer
 *   zone_traffic.c   exchanges and bytes by place and time
 *   points.c         when a run is evaluated on its way
 *   scores.c         how good models are, on threads
 *   sim_result.c     rows, checks, summary
 *
 * Nothing is allocated per event: packets, model copies and links come from
 * pools that grow by doubling. What a part has for the whole run is taken with
 * sim_alloc() and freed with the world, so that a part closes only what is more
 * than memory. */
#ifndef KITH_SIM_WORLD_H
#define KITH_SIM_WORLD_H

#include "sim/aside.h"
#include "sim/points.h"
#include "sim/delivery.h"
#include "sim/directions.h"
#include "sim/dishonest.h"
#include "sim/dump.h"
#include "sim/engine.h"
#include "sim/fair_sharing.h"
#include "sim/full_channel.h"
#include "sim/hosts.h"
#include "sim/jobs.h"
#include "sim/ledger.h"
#include "sim/links.h"
#include "sim/model_copies.h"
#include "sim/nodes.h"
#include "sim/outbox.h"
#include "sim/packets.h"
#include "sim/sim_peer.h"
#include "sim/peer_totals.h"
#include "sim/rank_log.h"
#include "sim/rank_models.h"
#include "sim/scores.h"
#include "sim/sim_ranks.h"
#include "sim/sim_faults.h"
#include "sim/sim_result.h"
#include "sim/sim_saves.h"
#include "sim/timeline.h"
#include "sim/trace.h"
#include "sim/watch.h"
#include "sim/windows.h"
#include "sim/workers.h"
#include "sim/zone_traffic.h"

struct sim_block;

struct sim_world {
    struct sim_options options;
    const struct kith_experiment *experiment;
    const struct sim_protocol *protocol;
    uint32_t peer_count;    /* that train */
    uint32_t machine_count; /* the peers, then servers of a central method */
    uint64_t steps;         /* of each peer; UINT64_MAX: until a time */
    size_t dim;             /* of a whole model; 0: it has no parameters */
    size_t vector_bytes;    /* of the longest vector that is ever sent */
    /* Of all flights of a responder, of an initiator. */
    size_t handshake_bytes[2];
    struct sim_peer *peers; /* (machine_count) */

    struct sim_ranks *ranks;   /* NULL: this process has all vectors */
    struct sim_log *log;       /* likewise */
    struct sim_models *models; /* likewise */
    struct sim_saves *saves;   /* NULL: nobody asked */
    /* Peers whose vectors are here. */
    struct {
        kith_id first;
        uint32_t count;
    } here;

    struct sim_engine engine;
    struct sim_nodes nodes;
    struct sim_packets packets;
    struct sim_network network;
    struct sim_outbox outbox;
    struct sim_links links;
    struct sim_directions directions;
    struct sim_copies copies;
    struct sim_faults faults;
    struct sim_trace trace;
    struct sim_hosts *hosts;       /* NULL: nothing computed hinders another */
    struct sim_sharing *sharing;   /* NULL: messages one after another */
    struct sim_channels *channels; /* NULL: wire `sized` */
    struct sim_workers *workers;
    struct sim_work *work;
    struct sim_aside *aside;   /* NULL: each event is over before the next */
    struct sim_ledger *ledger; /* NULL: nobody asked */
    struct sim_timeline *timeline; /* NULL: nobody asked */
    struct sim_dump *dump;         /* NULL: nobody asked */
    struct sim_watch watch;
    struct sim_totals *totals;
    struct sim_zone_traffic *zone_traffic; /* NULL: there is no map */
    struct sim_points points;
    struct sim_scores *scores; /* NULL: the model has no parameters */
    struct sim_results *results;
    struct sim_central *central; /* NULL: peers gossip */
    struct sim_windows *windows; /* NULL: one thread takes all events */
    /* NULL: all peers are this world's; else it is one of several threads',
     * with parts of its own for those (windows.c). */
    struct sim_division *division;
    struct sim_block *blocks; /* sim_run.c: list of what was allocated */
    /* Counted by the parts that it is about, read by sim_result.c. */
    struct sim_report report;
    uint64_t events, steps_done;
    uint32_t faults_done;
    uint32_t unfinished; /* healthy peers with steps to do */
    uint32_t kept;       /* the database has every so manieth peer; 0: none */
    bool nonfinite;      /* a model is not */
};

/* Zeroed memory that lives as long as the world, on cache lines and huge pages
 * as sim_pages() gives them. NULL: there is none. */
void *sim_alloc(struct sim_world *world, size_t count, size_t size);

static inline kith_ns sim_time(const struct sim_world *world)
{
    return world->engine.clock.now_ns;
}

/* Of a division's event in hand: sim/notes.c. */
static inline kith_id sim_rank(const struct sim_world *world)
{
    return world->engine.at.peer;
}

/* Are this peer's events this world's? */
SIM_INLINE bool sim_is_mine(const struct sim_world *world, kith_id peer)
{
    return !world->division ||
           world->division->of[peer] == world->division->number;
}

static inline bool sim_is_here(const struct sim_world *world, kith_id peer)
{
    return peer - world->here.first < world->here.count;
}

/* Is there a log of what engines need to know of vectors? */
static inline bool sim_is_logged(const struct sim_world *world)
{
    return world->log || world->saves;
}

/* Is there a database of the run? Of several ranks the first one writes it. */
static inline bool sim_is_stored(const struct sim_world *world)
{
    return world->options.store || world->ranks;
}

/* Are this peer's rows and marks kept, here? */
static inline bool sim_is_kept(const struct sim_world *world, kith_id peer)
{
    return world->options.store && world->kept > 0 && peer % world->kept == 0;
}

/* The i-th of `count` peers at equal distances, one of those that are kept
 * where there are enough. */
static inline kith_id sim_sampled(const struct sim_world *world, uint64_t i,
                                  uint64_t count)
{
    const uint64_t id = i * world->peer_count / count;
    const bool rounds =
        world->kept > 1 && count * world->kept <= world->peer_count;
    return (kith_id)(rounds ? id - id % world->kept : id);
}

/* Will it be due within so many steps? */
static inline bool sim_points_come(const struct sim_world *world,
                                   uint64_t steps)
{
    return world->steps_done + steps >= world->points.due_step ||
           sim_time(world) >= world->points.due_ns;
}

/* Asked after every event. */
static inline bool sim_points_is_due(const struct sim_world *world)
{
    return sim_points_come(world, 0);
}

/* Is there anything that hears of marks, sim/watch.c? */
static inline bool sim_is_watched(const struct sim_world *world)
{
    return world->watch.liveness != NULL;
}

static inline struct kith_node *sim_node_at(const struct sim_world *world,
                                            kith_id peer)
{
    KITH_DEBUG_ASSERT(peer < world->peer_count);
    return (struct kith_node *)(void *)(world->nodes.memory +
                                        peer * world->nodes.stride);
}

/* A node's first lines, as many as its steps mostly touch. */
SIM_INLINE void sim_nodes_fetch(const struct sim_world *world, kith_id peer)
{
    const uint8_t *node = world->nodes.memory + peer * world->nodes.stride;
    for (size_t line = 0; line < SIM_NODE_LINES && world->nodes.stride > 0;
         line++)
        sim_fetch(node + line * 64);
}

static inline const struct sim_link_table *
sim_link_table_of(const struct sim_world *world)
{
    return &world->links.table;
}

static inline uint32_t sim_link_count(const struct sim_world *world)
{
    return world->links.table.count;
}

/* Records may move when the table grows: a link is named by its index, and
 * looked up again after each call that may dial. */
static inline struct sim_link *sim_link_at(const struct sim_world *world,
                                           uint32_t link)
{
    KITH_DEBUG_ASSERT(link < world->links.table.count);
    return &world->links.table.links[link];
}

/* Nothing was ever broken or is cut: no packet can be stopped, which spares a
 * cache miss for each. */
static inline bool sim_links_are_clear(const struct sim_world *world)
{
    return world->links.resets == 0 && world->directions.cuts == 0;
}

static inline struct sim_packet *sim_packet_at(const struct sim_world *world,
                                               uint32_t packet)
{
    KITH_DEBUG_ASSERT(packet > 0 && packet <= world->packets.used);
    return &world->packets.packets[packet - 1];
}

static inline struct sim_payload *sim_payload_at(const struct sim_world *world,
                                                 uint32_t packet)
{
    KITH_ASSERT(packet > 0 && packet <= world->packets.used);
    return &world->packets.payloads[packet - 1];
}

/* Soon, of a packet; and, once that is here, its copy's head and first line. */
SIM_INLINE void sim_payload_fetch(const struct sim_world *world,
                                  uint32_t packet)
{
    if (world->packets.payloads)
        sim_fetch(&world->packets.payloads[packet - 1]);
}

SIM_INLINE void sim_payload_fetch_vector(const struct sim_world *world,
                                         uint32_t packet)
{
    const char *const vector = world->packets.payloads
                                   ? world->packets.payloads[packet - 1].vector
                                   : NULL;
    if (vector) {
        sim_fetch(vector - 64);
        sim_fetch(vector);
    }
}

#endif
