/* A machine of a run: one cache line, because peers of a large run are never in
 * the cache. Its fields belong to the parts that are named beside them. */
#ifndef KITH_SIM_SIM_PEER_H
#define KITH_SIM_SIM_PEER_H

#include "kith/types.h"

/* sim_faults.c */
enum sim_peer_state {
    SIM_PEER_RUNS,
    SIM_PEER_PAUSED, /* its events are held */
    SIM_PEER_CRASHED,
};

/* jobs.c */
enum sim_work_state {
    SIM_WORK_NONE,
    SIM_WORK_OUT,       /* WORK_DONE comes */
    SIM_WORK_IMMEDIATE, /* it costs no time: done within the event */
};

/* nodes.c: what the end of the run waits for. */
#define SIM_FINISHED 1u /* counted as finished */
#define SIM_EXEMPT 2u   /* crashed once: does not hold up the end */
#define SIM_RESTLESS 4u /* counted as not quiet while the run winds up */
/* peer_totals.c: an exchange of its is open. Here, as each event asks. */
#define SIM_EXCHANGING 8u

struct sim_peer {
    uint64_t sequence; /* engine.c: of the events that it causes */
    struct {
        kith_ns deadline_ns;       /* asked for by the node */
        kith_ns wake_ns, later_ns; /* the earliest WAKE pending, one more */
    } timer;                       /* nodes.c */
    uint64_t bytes_sent;           /* delivery.c */
    struct {
        uint32_t first;       /* chain of its links, 1 + index */
        kith_id recent;       /* the last one it spoke with, */
        uint32_t recent_link; /* and their link */
    } links;                  /* links.c */
    uint32_t fault;           /* sim_faults.c: 1 + index of its state, 0 */
    uint32_t incarnation;     /* sim_faults.c */
    uint8_t state;            /* enum sim_peer_state */
    uint8_t work;             /* enum sim_work_state */
    uint8_t item;             /* jobs.c: kind of the item that is out */
    uint8_t ending;           /* SIM_FINISHED... */
};
_Static_assert(sizeof(struct sim_peer) == 64, "a cache line");

#endif
