/* A run in progress, shared by the files of this folder.
 *
 *   sim_run.c      a run from its options to its summary
 *   engine.c   the loop: pop an event, step the node, carry out its effects
 *   delivery.c  parcels over links: latency, rate, loss, cuts, in order
 *   links.c     connections: dial, handshake, up, dead
 *   full_channel.c  wire `full`: real sessions at both ends
 *   huge_pages.c   huge pages for the large tables
 *   queue.c    events to come; same_time.c: those due at once
 *   model_copies.c    vectors under way
 *   work_pool.c     work items on a pool of threads
 *   sim_faults.c    crash, restart, pause, slow, cut
 *   trace.c    the hash of all decisions, and the story as text
 *   ledger.c   conservation
 *   peer_totals.c    staleness and utilisation of each peer
 *   sim_result.c   evaluation, rows, summary
 *
 * Nothing is allocated per event: parcels, payload blocks and links come from
 * pools that grow by doubling. */
#ifndef KITH_SIM_WORLD_H
#define KITH_SIM_WORLD_H

#include <stdio.h>

#include "kith/check.h"
#include "kith/sim.h"
#include "sim/huge_pages.h"
#include "sim/queue.h"
#include "sim/link_table.h"

/* Virtual runs start at this second of UTC: certificates carry it. */
#define SIM_UTC_START 1767225600 /* 2026-01-01 */

enum sim_event_kind {
    SIM_EVENT_WAKE,      /* the node's deadline */
    SIM_EVENT_WORK_DONE, /* value: the peer's incarnation, SIM_VALUE_MAX */
    SIM_EVENT_ARRIVE,    /* value: parcel; its first bit is here */
    SIM_EVENT_DELIVER,   /* value: parcel; its last bit is here */
    SIM_EVENT_ATOM,      /* the next fault */
    SIM_EVENT_EVALUATE,  /* the averaged model is due */
    SIM_EVENT_STOP,      /* stop.time has come */
    SIM_EVENT_GRACE,     /* nobody may hold up the end any longer */
};

/* Peer flags. */
#define SIM_CRASHED 1u   /* down */
#define SIM_PAUSED 2u    /* its events are held */
#define SIM_FINISHED 4u  /* counted as finished */
#define SIM_AFFECTED 8u  /* crashed once: does not hold up the end */
#define SIM_RESTLESS 16u /* counted as not quiet while the run winds up */
#define SIM_WORKING 32u  /* an item is out */
#define SIM_INSTANT 64u  /* it costs no time: done within the event */

/* One cache line per peer beside its node. */
struct sim_peer {
    uint64_t sequence;
    kith_ns deadline_ns;       /* asked for by the node */
    kith_ns wake_ns, later_ns; /* the earliest WAKE pending, and one more */
    uint64_t bytes_sent;
    uint32_t links;     /* chain of its links, 1 + index */
    kith_id near;       /* the last one it spoke with, */
    uint32_t near_link; /* and their link */
    uint32_t extra;     /* 1 + index in world->extras, 0: none */
    uint32_t incarnation;
    uint16_t flags;
    uint8_t work; /* kind of the item that is out */
};
_Static_assert(sizeof(struct sim_peer) <= 64, "a cache line");

/* What only peers named by a fault need. */
struct sim_extra {
    double slow;
    kith_ns paused_ns, shift_ns; /* pause began; WORK_DONE is late by this */
    uint32_t held, held_last;    /* parcels kept while paused */
    bool restarts, saved, work_held;
    kith_ns work_ns; /* the WORK_DONE that was held */
    uint64_t step;   /* of the image */
    void *image;     /* last save: the vector */
    double scalars[KITH_SCALARS_MAX];
};

/* What the comparison of runs asks of each peer; only runs with a store. */
struct sim_tally {
    kith_ns trained_ns;  /* cost of the steps begun so far */
    kith_ns finished_ns; /* its share was done; 0: not yet */
    uint64_t received;   /* models that found a slot */
    uint64_t stale_sum, stale_max;
};

struct sim_lane {           /* one direction of a peer's access link */
    kith_ns up_ns, down_ns; /* free from then on */
};

/* Slots of snapshots: those of exchanges and that of rounds. */
#define SIM_SNAPSHOTS 3u

/* A peer's vectors; only where the model has parameters. */
struct sim_desk {
    struct kith_worker *worker;
    struct kith_work work;
    struct kith_work_result result;
    /* By snapshot: MODELs under way, chains of parcels, and what is sent to
     * whom asks for it before the snapshot is filled again. */
    uint32_t transfers[SIM_SNAPSHOTS];
    void *sent[SIM_SNAPSHOTS];
    struct sim_desk *next, *previous; /* in the pool's queue */
    uint32_t state;                   /* work_pool.c, under the pool's lock */
};

enum sim_parcel_kind {
    SIM_PARCEL_SYN,
    SIM_PARCEL_SYNACK,
    SIM_PARCEL_FIRST,  /* initiator: preface, message 1 */
    SIM_PARCEL_SECOND, /* responder: preface, message 2 */
    SIM_PARCEL_THIRD,  /* initiator: message 3, HELLO */
    SIM_PARCEL_HELLO,  /* responder: HELLO */
    SIM_PARCEL_MESSAGE,
    SIM_PARCEL_RESET,   /* the other end is gone */
    SIM_PARCEL_TIMEOUT, /* a dial took too long */
};

#define SIM_PARCEL_CANCELLED 1u /* its sender stopped sending it */
#define SIM_PARCEL_DROPPED 2u   /* `drop_push` took it */
#define SIM_PARCEL_LISTED 4u    /* stands in a desk's chain of transfers */
#define SIM_PARCEL_LADEN 8u     /* has cargo; the other ones' is zero */

/* One thing on its way from a peer to another. */
struct sim_parcel {
    _Alignas(128) struct kith_message message;
    kith_id from, to;
    uint32_t link;       /* index */
    uint32_t generation; /* of the link when it left */
    uint32_t next;       /* free list, waiting list: 1 + index */
    uint8_t kind, flags;
    uint64_t bytes; /* on the wire */
};
_Static_assert(sizeof(struct sim_parcel) == 128, "two cache lines");

/* What a parcel carries beyond its message; same index. Only runs with
 * parameters or with real bytes have it. */
struct sim_cargo {
    void *block;     /* MODEL: a copy of the vector, or NULL */
    uint8_t *sealed; /* wire `full`: the real bytes, malloc'd */
    size_t sealed_bytes;
    kith_ns left_ns; /* its last bit leaves the sender */
    uint32_t next_transfer;
};

struct sim_crew; /* threads */
struct sim_block;
struct sim_channels;
struct sim_ledger;

struct sim_world {
    struct sim_options options;
    const struct kith_experiment *experiment;
    struct kith_topology topology;
    struct kith_node_config config;
    uint32_t peer_count;
    kith_ns now_ns;
    struct sim_queue queue;
    struct sim_peer *peers;    /* (peer_count) */
    uint64_t *bytes_received;  /* (peer_count); NULL without a store */
    struct sim_tally *tallies; /* (peer_count); NULL without a store */
    uint8_t *nodes;            /* (peer_count) of node_stride bytes */
    size_t node_stride;
    struct kith_effects *effects;
    uint64_t sequence; /* of the run's own events */
    uint64_t events;
    uint64_t day; /* of the queue, when it was last looked ahead */

    /* Network. */
    struct sim_table links;
    struct sim_parcel *parcels; /* (parcel_capacity) */
    struct sim_cargo *cargo;    /* (parcel_capacity), or NULL */
    uint32_t parcel_capacity, parcel_used, parcel_free;
    struct sim_lane *lanes; /* (peer_count), NULL without a rate */
    uint64_t resets;        /* links broken so far: parcels may be stale */
    uint32_t cuts;          /* directions that are cut now */
    uint32_t loss_threshold, drop_threshold; /* of 2^32 */
    size_t handshake_bytes[2];               /* responder's, initiator's */
    struct sim_channels *channels;
    uint64_t handshakes, messages, bulk_bytes;
    /* While a receiver is told of a push that `drop_push` took. */
    const struct kith_message *lost;

    /* Work. */
    struct sim_desk *desks; /* (peer_count), NULL without parameters */
    struct sim_crew *crew;
    size_t dim;               /* of a whole model */
    size_t vector_bytes;      /* of the longest message's vector */
    struct sim_block *blocks; /* free vectors */

    /* Faults. */
    struct sim_extra *extras;
    uint32_t extra_count;
    uint32_t atom; /* the next one */
    uint32_t faults;
    struct kith_node_counters gone; /* of incarnations that crashed */

    /* The end. */
    uint32_t unfinished; /* healthy peers with steps to do */
    uint32_t restless;   /* healthy peers not quiet; while winding_up */
    bool winding_up, over;
    uint64_t steps_done; /* for the progress line */

    /* Results. */
    uint64_t trace_hash;
    FILE *trace;
    struct sim_ledger *ledger;
    struct kith_checks checks;
    struct kith_values values;
    double correlation_lowest; /* NaN: never evaluated */
    bool nonfinite;
    struct kith_evaluator *evaluator; /* NULL: not opened yet */
    double *mean, *z;                 /* (dim) */
    enum kith_err err; /* the first operating fault; ends the run */
    char *error;       /* (SIM_ERROR_BYTES) */
    double wall_start_s, wall_shown_s;
};

static inline struct kith_node *sim_node_at(const struct sim_world *world,
                                            kith_id peer)
{
    return (struct kith_node *)(void *)(world->nodes +
                                        peer * world->node_stride);
}

static inline struct sim_extra *sim_extra_of(const struct sim_world *world,
                                             kith_id peer)
{
    const uint32_t extra = world->peers[peer].extra;
    return extra == 0 ? NULL : &world->extras[extra - 1];
}

/* engine.c */
void sim_fail(struct sim_world *world, enum kith_err err, const char *format,
              ...) KITH_PRINTF(3, 4);
/* `by` is the peer that causes the event: equal times are ordered by its rank
 * and its own counter, so that nothing of the other peer is touched now. */
void sim_schedule(struct sim_world *world, kith_id by, kith_id peer,
                  kith_ns at_ns, enum sim_event_kind kind, uint32_t value);
void sim_schedule_run(struct sim_world *world, kith_ns at_ns,
                      enum sim_event_kind kind);
void sim_wake_at(struct sim_world *world, kith_id peer, kith_ns deadline_ns);
/* Step the peer's node with this event and carry out what it asks for. */
void sim_step(struct sim_world *world, kith_id peer, struct kith_event *event);
/* Put a fresh node in the peer's place and start it. */
void sim_start(struct sim_world *world, kith_id peer, uint64_t resume_step,
               bool adopt);
/* Until everybody is done, time is up, or somebody pressed Ctrl-C. Returns
 * whether the run came to its own end. */
bool sim_loop(struct sim_world *world, bool *stalled);
/* This peer crashed: from now on it does not hold up the end. */
void sim_affect(struct sim_world *world, kith_id peer);

/* delivery.c */
/* What a step sends, in three moves around the rest of it. Packed first: its
 * work item may fill the snapshots anew. Posted last: by then the cache lines
 * of the links have come. A chain of packets: 1 + index, 0: none. */
uint32_t sim_messages_pack(struct sim_world *world, kith_id from,
                           const struct kith_send *sends, uint32_t count);
void sim_messages_fetch(const struct sim_world *world, uint32_t messages);
void sim_messages_post(struct sim_world *world, uint32_t messages);
enum kith_err sim_network_open(struct sim_world *world);
void sim_network_close(struct sim_world *world);
/* 1 + index; 0 when memory ran out (the run is failed then). */
uint32_t sim_parcel_take(struct sim_world *world);
void sim_parcel_free(struct sim_world *world, uint32_t parcel);
void sim_cancel(struct sim_world *world, kith_id from, uint32_t slots);
/* The parcel's last bit leaves then. A MODEL that can be cancelled until then
 * stands in its sender's chain. */
void sim_transfer_list(struct sim_world *world, uint32_t parcel,
                       kith_ns left_ns);
/* A message whose link is up: size it, and put it on the wire. */
void sim_launch(struct sim_world *world, uint32_t parcel);
/* Put a parcel on its link's wire now. */
void sim_transmit(struct sim_world *world, uint32_t parcel);
void sim_launch_waiting(struct sim_world *world, uint32_t link, kith_id from);
void sim_arrive(struct sim_world *world, uint32_t parcel);
void sim_deliver(struct sim_world *world, uint32_t parcel);
/* Bytes of a message on the wire, its bulk records included. */
uint64_t sim_message_bytes(const struct kith_message *message);

/* links.c */
struct sim_link *sim_link_between(struct sim_world *world, kith_id a, kith_id b,
                                  uint32_t *index);
void sim_link_dial(struct sim_world *world, uint32_t link, kith_id from);
void sim_link_wait(struct sim_world *world, uint32_t link, unsigned side,
                   uint32_t parcel);
void sim_link_watch(struct sim_world *world, uint32_t link);
void sim_link_step(struct sim_world *world, uint32_t parcel);
/* All links of a crashed peer; the other ends learn it by a RESET. */
void sim_link_crash(struct sim_world *world, kith_id peer);
void sim_link_cut(struct sim_world *world, kith_id from, kith_id to, bool cut);

/* full_channel.c */
enum kith_err sim_channels_open(struct sim_world *world);
void sim_channels_close(struct sim_world *world);
void sim_channel_dial(struct sim_world *world, uint32_t link, kith_id from);
void sim_channel_reset(struct sim_world *world, uint32_t link);
/* Handshake: what the sender has to say now becomes the parcel's bytes. */
void sim_channel_say(struct sim_world *world, uint32_t parcel);
void sim_channel_hear(struct sim_world *world, uint32_t parcel);
/* Seals the parcel's message and block; returns the bytes on the wire. */
uint64_t sim_channel_seal(struct sim_world *world, uint32_t parcel);
/* Opens the sealed bytes into the parcel's message and block. */
void sim_channel_open(struct sim_world *world, uint32_t parcel);

/* model_copies.c: a block has holders, and is free when none is left. */
void sim_block_free(struct sim_world *world, void *block);
void sim_blocks_close(struct sim_world *world);
/* What stands in the peer's slot, to be sent; one more holder. NULL: no memory;
 * the run is failed then. */
void *sim_block_copy(struct sim_world *world, kith_id peer, uint32_t slot,
                     size_t bytes);
/* Before an item that may fill the peer's snapshots. */
void sim_block_forget(struct sim_world *world, kith_id peer);
bool sim_block_finite(const struct sim_world *world, void *block, size_t bytes);

/* work_pool.c */
enum kith_err sim_work_open(struct sim_world *world);
void sim_work_close(struct sim_world *world);
enum kith_err sim_desk_open(struct sim_world *world, kith_id peer);
void sim_desk_close(struct sim_world *world, kith_id peer);
void sim_work_start(struct sim_world *world, kith_id peer,
                    const struct kith_work *work);
/* Wait until the peer's item has run; its result is in the desk then. */
void sim_work_join(struct sim_world *world, kith_id peer);
void sim_work_join_all(struct sim_world *world);
void sim_work_counts(const struct sim_world *world, uint64_t *items);

/* sim_faults.c */
enum kith_err sim_fault_open(struct sim_world *world);
void sim_fault_close(struct sim_world *world);
void sim_fault_due(struct sim_world *world);
bool sim_fault_delays_work(struct sim_world *world, kith_id peer);
void sim_hold(struct sim_world *world, kith_id peer, uint32_t parcel);
void sim_save(struct sim_world *world, kith_id peer);

/* trace.c */
enum kith_err sim_trace_open(struct sim_world *world);
void sim_trace_close(struct sim_world *world);
void sim_trace_mark(struct sim_world *world, kith_id peer,
                    const struct kith_mark *mark);
void sim_trace_message(struct sim_world *world,
                       const struct sim_parcel *parcel);
void sim_trace_link(struct sim_world *world, kith_id peer, kith_id other,
                    bool up);
void sim_trace_fault(struct sim_world *world, const struct kith_atom *atom);

/* ledger.c: every call accepts a world without a ledger. */
enum kith_err sim_ledger_open(struct sim_world *world);
void sim_ledger_close(struct sim_world *world);
void sim_ledger_start(struct sim_world *world, kith_id peer, bool restarted);
void sim_ledger_crash(struct sim_world *world, kith_id peer);
void sim_ledger_before(struct sim_world *world, kith_id peer);
void sim_ledger_after(struct sim_world *world, kith_id peer,
                      enum kith_work_kind kind);
void sim_ledger_done(struct sim_world *world, kith_id peer);
void sim_ledger_mark(struct sim_world *world, kith_id peer,
                     const struct kith_mark *mark);
void sim_ledger_drop(struct sim_world *world, const struct sim_parcel *parcel);
void sim_ledger_check(struct sim_world *world);
void sim_ledger_finish(struct sim_world *world);

/* peer_totals.c: every call accepts a world without tallies. */
void sim_tally_train(struct sim_world *world, kith_id peer, kith_ns cost_ns);
void sim_tally_finished(struct sim_world *world, kith_id peer);
void sim_tally_model(struct sim_world *world, kith_id peer,
                     const struct kith_message *model);
/* staleness, received and training_s of a row; peer KITH_NOBODY: of all. */
void sim_tally_row(const struct sim_world *world, kith_id peer,
                   struct kith_row *row);
void sim_tally_summarise(const struct sim_world *world,
                         struct kith_summary *summary);

/* sim_result.c */
/* Adds what the peer's node has counted in this incarnation. */
void sim_count(const struct sim_world *world, kith_id peer,
               struct kith_node_counters *sum);
void sim_evaluate(struct sim_world *world);
void sim_progress(struct sim_world *world);
void sim_summarise(struct sim_world *world, struct kith_summary *summary,
                   struct sim_report *report);
double sim_wall(void);

#endif
