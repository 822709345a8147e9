/* Threads that seal and open the records of a burst beside the loop thread:
 * what a session calls kith_session_threads.
 *
 * The loop takes part itself and goes on when all is done, so that nothing else
 * of a peer knows of them: order, nonces, back pressure and closing are those
 * of one thread. It waits for nobody who has not begun. What they cost is the
 * sealing's CPU time; they hold no key and no memory of their own. */
#ifndef KITH_PEER_RECORD_THREADS_H
#define KITH_PEER_RECORD_THREADS_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <uv.h>

#include "kith/err.h"
#include "kith/session.h"
#include "kith/types.h"

struct kith_record_threads {
    struct kith_session_threads session; /* what sessions are given */

    /* The job: written by the loop before `open` says so, read by whoever has
     * taken a part of it. */
    void (*part)(void *context, unsigned lane, size_t i);
    void *context;
    atomic_ullong open; /* its number, its parts, how many are taken */
    atomic_uint done;
    uint32_t number;

    atomic_uint sleepers;
    atomic_bool stopping;
    uv_mutex_t mutex;
    uv_cond_t wake;
    struct kith_record_helper {
        struct kith_record_threads *threads;
        unsigned lane;
        uv_thread_t thread;
    } helpers[KITH_LANES_MAX - 1];
    unsigned helper_count;
};

/* `lanes` threads, the loop's own among them: 1 starts none. At most
 * KITH_LANES_MAX. KITH_ENOMEM: nothing is left behind. The memory stays where
 * it is until stop(). */
KITH_MUST_CHECK enum kith_err
kith_record_threads_start(struct kith_record_threads *threads, unsigned lanes);
/* Waits until they have ended; sessions must not seal or open any more. */
void kith_record_threads_stop(struct kith_record_threads *threads);
/* CPU time of the helpers since their start. */
kith_ns kith_record_threads_cpu(const struct kith_record_threads *threads);

#endif
