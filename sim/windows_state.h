/* Of windows.c, divisions.c and mail.c alone. */
#ifndef KITH_SIM_WINDOWS_STATE_H
#define KITH_SIM_WINDOWS_STATE_H

#include <pthread.h>
#include <stdatomic.h>

#include "sim/world.h"

/* What a thread says to the others at the end of a window. */
struct sim_window_state {
    /* Of what it has and of what it has sent; KITH_NEVER: there is none. */
    _Alignas(64) kith_ns next_ns;
    kith_ns now_ns;
    struct sim_moment at;
    bool ending, over;
    /* In this window. */
    uint64_t events, steps_done, messages, handshakes, bulk_bytes;
    /* By the run's thread: the next window is so long, or there is none. */
    kith_ns length_ns;
    bool leaves;
};

struct sim_windows {
    unsigned count; /* of divisions, and of threads */
    kith_ns lookahead_ns;
    kith_ns length_ns; /* of the next window, lookahead_ns at most */
    kith_ns until_ns;  /* the run's own next event */
    uint8_t *of;       /* (peers) whose division */
    struct sim_world *whole;
    struct sim_world *divisions[SIM_THREADS_MAX];
    struct sim_window_state states[2][SIM_THREADS_MAX];
    atomic_uint_fast64_t told; /* windows of which the run's notes were told */
    /* Of the windows that are looked at together: the run's number of the first
     * one, and what they have had so far. */
    uint64_t looked_from, events;
    bool leaves; /* after this window */
    bool is_off; /* for good */
    /* Threads; the first one is the run's. */
    pthread_t threads[SIM_THREADS_MAX];
    atomic_uint arrived, meeting; /* of all threads: how many, which one */
    unsigned patience;            /* before a thread sleeps until they meet */
    pthread_mutex_t lock;         /* for those that sleep until then */
    pthread_cond_t met, begins;
    uint64_t stretch; /* that has begun: windows one after another */
    bool stop;
    unsigned started;
    bool has_threads;
};

/* All that was posted for the division of this number on this side. */
void sim_mail_take(struct sim_windows *windows, unsigned number, unsigned side);
/* Those that have peers; 0: there are none. */
uint32_t sim_regions(const struct sim_world *world);
/* Whose division the peer is of, once there is a count. */
unsigned sim_division_of(const struct sim_world *world, kith_id peer);
/* All of them; closing accepts what was opened of them. */
KITH_MUST_CHECK enum kith_err sim_divisions_open(struct sim_world *world);
void sim_divisions_close(struct sim_world *world);
/* Is there anything to divide? What ends the run must be seen by all. */
bool sim_divisions_are_worth(const struct sim_world *world);
/* Everything that happens to peers goes to the divisions, and what is left of
 * it comes back, with the first failure of any. */
KITH_MUST_CHECK enum kith_err sim_divide(struct sim_world *world);
void sim_join(struct sim_world *world);

#endif
