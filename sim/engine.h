/* Virtual time: the clock, the events to come and the loop that takes them one
 * by one, whoever they happen to. Owner of everything here: engine.c. */
#ifndef KITH_SIM_ENGINE_H
#define KITH_SIM_ENGINE_H

#include "kith/assert.h"
#include "kith/sim.h"
#include "sim/queue.h"

enum sim_event_kind {
    SIM_EVENT_WAKE,      /* the node's deadline */
    SIM_EVENT_WORK_DONE, /* value: the peer's incarnation, SIM_VALUE_MAX */
    SIM_EVENT_ARRIVE,    /* value: packet; its first bit is here */
    SIM_EVENT_DELIVER,   /* value: packet; its last bit is here */
    SIM_EVENT_COMPUTED,  /* a central machine's processor; value: what for */
    SIM_EVENT_STAGE,     /* value: enum sim_stage_event of a central exchange */
    SIM_EVENT_HOST,      /* a job of its host may end; value: hosts.c */
    SIM_EVENT_RUN,       /* nobody's; value: enum sim_run_event */
};

enum sim_run_event {
    SIM_RUN_ATOM,     /* the next fault */
    SIM_RUN_EVALUATE, /* the averaged model is due */
    SIM_RUN_STOP,     /* stop.time has come */
    SIM_RUN_FLOWS,    /* flows begin or end: fair_sharing.c */
    SIM_RUN_GRACE,    /* nobody may hold up the end any longer */
};

/* Read by all, written by sim_clock_advance() alone, which only the loop calls:
 * an event that found the clock later than itself would have been decided with
 * knowledge of its future. tests/fences/check_sim_parts.sh */
struct sim_clock {
    kith_ns now_ns;
};

static inline void sim_clock_advance(struct sim_clock *clock, kith_ns to_ns)
{
    KITH_ASSERT(to_ns >= clock->now_ns);
    clock->now_ns = to_ns;
}

/* Among the events of a world, all that come before it: (time, peer). */
struct sim_moment {
    kith_ns time_ns;
    kith_id peer;
};

struct sim_engine {
    struct sim_clock clock;
    struct sim_moment at; /* of a division: the time of the event in hand, and
                             the highest rank of an event at that time so far */
    struct sim_queue queue;
    uint64_t sequence;       /* of the run's own events */
    uint64_t prefetched_day; /* of the queue, when it was last looked through */
    bool over, ending;       /* ending: the protocol says when it is over */
    enum kith_err err;       /* the first operating fault; ends the run */
    char *error;             /* (SIM_ERROR_BYTES) */
};

struct sim_world;

KITH_MUST_CHECK enum kith_err sim_engine_open(struct sim_world *world);
void sim_engine_close(struct sim_world *world);
/* The first failure is kept, and ends the run. Returns `err`. */
enum kith_err sim_fail(struct sim_world *world, enum kith_err err,
                       const char *format, ...) KITH_PRINTF(3, 4);
enum kith_err sim_failure(const struct sim_world *world);
const char *sim_failure_text(const struct sim_world *world);
/* The run has come to its end: no event is taken any more. */
void sim_end(struct sim_world *world);
/* The end is near: the protocol is asked before each event from now on. */
void sim_ending(struct sim_world *world);
bool sim_ended(const struct sim_world *world);
/* A time beyond KITH_TIME_MAX may be asked for, KITH_NEVER among them: the run
 * fails if it ever gets there.
 * `by` is the machine that causes the event: equal times are ordered by its
 * rank and its own counter, so that nothing of the other one is touched now. */
void sim_schedule(struct sim_world *world, kith_id by, kith_id peer,
                  kith_ns at_ns, enum sim_event_kind kind, uint32_t value);
/* The last bit of a packet of `from` will be in: said where it is received, and
 * nothing of the sender is touched. */
void sim_schedule_delivery(struct sim_world *world, kith_id from, kith_id to,
                           kith_ns at_ns, uint32_t packet);
void sim_schedule_run(struct sim_world *world, kith_ns at_ns,
                      enum sim_run_event what);
/* ---- of divisions, windows.c */

/* Of an event that `by` causes, to be put elsewhere: by << 40 and a count. */
uint64_t sim_sequence(struct sim_world *world, kith_id by);
void sim_engine_put(struct sim_world *world, const struct sim_event *event);
/* The first one pending, without taking it. False: there is none. */
bool sim_engine_first(struct sim_world *world, struct sim_event *event);
/* The first one leaves, to be put elsewhere. False: there is none. */
bool sim_engine_empty(struct sim_world *world, struct sim_event *event);
/* It is taken at once: what a loop asks after each event is the caller's. */
void sim_engine_take(struct sim_world *world);
/* Nothing is pending; events of any time from now on may be put. */
KITH_MUST_CHECK enum kith_err sim_engine_renew(struct sim_world *world);
/* No event before this is left; it is behind as another world of the run is. */
void sim_engine_reach(struct sim_world *world, kith_ns now_ns);
/* Take the events before `until`; no more once the last of its peers has
 * finished, unless they go on past it. */
void sim_engine_run(struct sim_world *world, struct sim_moment until,
                    bool past_end);
bool sim_is_ending(const struct sim_world *world);
struct sim_moment sim_moment(const struct sim_world *world);

/* Until all is done, time is up, or somebody pressed Ctrl-C. Returns whether
 * the run came to its own end. */
bool sim_loop(struct sim_world *world, bool *stalled);

#endif
