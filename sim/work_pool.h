/* Threads that run items of workers, first in, first out. The thread that has
 * the pool is the first of them. While they have no item they look at what will
 * be asked about, and make pages that will be written. */
#ifndef KITH_SIM_WORK_POOL_H
#define KITH_SIM_WORK_POOL_H

#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>

#include "kith/sim.h"
#include "kith/worker.h"
#include "sim/losses.h"

/* WAITING: nothing has been lent for it, and no other thread knows of it. */
enum sim_job_state { JOB_FREE, JOB_WAITING, JOB_QUEUED, JOB_RUNNING, JOB_DONE };

/* The item that a peer's worker runs. */
struct sim_job {
    struct kith_worker *worker;
    struct kith_work work;
    struct kith_work_result result;
    struct sim_job *next, *previous; /* in the queue */
    enum sim_job_state state; /* under the lock, where there are threads */
    /* jobs.c: */
    bool is_ahead;   /* other threads have it: state is theirs */
    bool is_early;   /* and it was not due when they got it */
    uint32_t number; /* of its items: which one waits */
    struct sim_losses losses;
};

/* So much may wait to be looked at. */
#define SIM_SIGHTS_MAX 1024u

struct sim_work_pool {
    struct kith_worker *const *lenders; /* (count) or NULL each: workers.c */
    void (*look)(const void *owner, void *sight);
    const void *owner;
    uint64_t *counts; /* (count) items run by each; 0 is the event loop */
    unsigned count;   /* of threads: all of these are the caller's */

    pthread_mutex_t lock;
    pthread_cond_t queued, done;
    struct sim_job *first, *last;  /* the queue */
    char *page, *pages_end;        /* huge ones, to be made */
    char *making[SIM_THREADS_MAX]; /* (count) by each now, or NULL */
    void *sights[SIM_SIGHTS_MAX];  /* a ring; NULL: withdrawn */
    uint64_t sight, sights_end;
    void *looking[SIM_THREADS_MAX]; /* (count) at what each now, or NULL */
    pthread_t threads[SIM_THREADS_MAX];
    unsigned started, running;
    bool stop;
};

/* Of zeros and the caller's fields. Behind it close must be called. */
void sim_work_pool_open(struct sim_work_pool *pool);
/* Threads begin; false: the system has no more than `started` and this one. */
KITH_MUST_CHECK bool sim_work_pool_start(struct sim_work_pool *pool);
/* Items that are queued are not run any more; whoever runs one ends it. */
void sim_work_pool_close(struct sim_work_pool *pool);
/* On this thread, now. */
void sim_work_pool_run(struct sim_work_pool *pool, struct sim_job *job);
/* To the other threads. Until it has been awaited nobody else may touch it. */
void sim_work_pool_put(struct sim_work_pool *pool, struct sim_job *job);
/* This thread writes the huge page `now`, and will write those behind it up to
 * `end`, in this order: others make them while they have no item. Instead of
 * those that they were told before. */
void sim_work_pool_make(struct sim_work_pool *pool, char *now, char *end);
/* look(owner, sight) by a thread that has nothing else to do, before it is
 * withdrawn: where it waits, or 0: there is no room, nobody will. */
uint32_t sim_work_pool_show(struct sim_work_pool *pool, void *sight);
/* Nobody looks any more, at what waits there: somebody has, or nobody will. */
void sim_work_pool_withdraw(struct sim_work_pool *pool, void *sight,
                            uint32_t place);
/* It has run: on this thread, if on no other yet. */
void sim_work_pool_await(struct sim_work_pool *pool, struct sim_job *job);
/* Whichever is queued longest runs on this thread; false: there is none. */
bool sim_work_pool_help(struct sim_work_pool *pool);

#endif
