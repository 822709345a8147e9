/* A central run in progress, shared by the files of this folder.
 *
 *   central_run.c         options to summary
 *   central_engine.c      virtual time: events, messages over access links,
 * steps central_vectors.c        vectors: gradients, means, the shared model
 *   staged_exchange.c  patterns in which every machine has a script of its own
 *   naive_exchange.c, tree_allreduce.c, scatter.c, doubling_allreduce.c,
 * ring_allreduce.c    those scripts sync.c        all workers in step; SparkNet
 *   server.c      one gradient at a time: async, ssp, essp, value bound
 *   staleness_bound.c      who must wait there, and what is sent unasked
 *   quorum.c      the first so many gradients of a step
 *   easgd.c, treeeasgd.c, mpca.c, vertical.c    methods
 *   central_result.c      evaluation, rows, summary
 *
 * Machines ("nodes") are the workers, then those of servers, replicas, proxies
 * and masters. A message has as many bytes as its payload: the baselines are
 * charged for no headers, so that their delays are the lower bounds of the
 * literature. Everything runs on one thread. */
#ifndef KITH_SIM_CENTRAL_CENTRAL_STATE_H
#define KITH_SIM_CENTRAL_CENTRAL_STATE_H

#include <stdio.h>

#include "kith/check.h"
#include "kith/sim.h"
#include "sim/queue.h"

#define CENTRAL_NOBODY UINT32_MAX

enum central_event {
    CENTRAL_STEP,     /* peer: a worker's step is over */
    CENTRAL_ARRIVE,   /* value: parcel; its first bit is here */
    CENTRAL_DELIVER,  /* value: parcel; its last bit is here */
    CENTRAL_COMPUTED, /* peer: a node's processor; value: what for */
    CENTRAL_SENT,     /* peer: its stage's message has left */
    CENTRAL_RECEIVED, /* peer: its stage's message is here */
    CENTRAL_STAGE,    /* peer: its stage's sums are done */
    CENTRAL_RUN,      /* value: enum central_own */
};

enum central_own { CENTRAL_EVALUATE, CENTRAL_STOP, CENTRAL_ATOM };

struct central_node {
    kith_ns up_ns, down_ns; /* its access link is free from then on */
    kith_ns cpu_ns;         /* and its processor */
    uint64_t bytes_sent, bytes_received;
    uint64_t sequence; /* of the events it causes */
    uint32_t draws;    /* of the stream LINK, where it sends */
};

struct central_worker {
    struct kith_worker *desk; /* NULL without parameters */
    void *gradient;           /* of the step under way or just done */
    double loss, slow;
    uint64_t steps;           /* done */
    uint64_t version;         /* of the model that the step works on */
    kith_ns busy_ns, idle_ns; /* training; idle_ns: since when it waits */
    kith_ns waited_ns, finished_ns;
    uint64_t stale_sum, stale_max, stale_count;
    bool stepping;
};

/* A message under way. What else it means is the method's. */
struct sim_central_parcel {
    uint32_t from, to;
    uint32_t kind;    /* the method's */
    uint32_t subject; /* a worker, a shard: the method's */
    uint64_t bytes, version, clock;
    void *block;   /* a vector that travels along, or NULL */
    uint32_t next; /* free list: 1 + index */
};

/* One stage of a machine's part in a pattern: a message out, one in, at the
 * same time; then sums. CENTRAL_NOBODY: none. Bytes in are the sender's. */
struct central_stage {
    uint32_t to, from;
    uint64_t send_bytes, reduce_bytes, update_bytes;
};

/* What a pattern needs to know. */
struct central_shape {
    uint32_t workers, servers;
    bool on_workers;
    uint32_t proxies;
    uint64_t bytes; /* of a model */
};

struct central_exchange {
    /* Stage `index` of `node`'s script; false: past its end. Pure. */
    bool (*stage)(const struct central_shape *shape, uint32_t node,
                  uint32_t index, struct central_stage *stage);
};

/* A machine's place in its script. */
struct central_script {
    struct central_stage stage;
    uint32_t index;
    bool running, sending, receiving, computing;
    bool matched_out, matched_in;
    kith_ns ready_ns; /* of the stage */
};

struct central;

/* How a family of baselines works: what happens at each event. */
struct central_method {
    /* Workers hold parts of one model: no copy of any of them can differ. */
    bool one_model;
    /* Machines beside the workers. */
    uint32_t (*machines)(const struct kith_experiment *experiment);
    enum kith_err (*open)(struct central *run); /* may be NULL */
    void (*close)(struct central *run);         /* may be NULL */
    void (*start)(struct central *run);
    void (*stepped)(struct central *run, uint32_t worker);
    void (*delivered)(struct central *run,
                      const struct sim_central_parcel *parcel);
    void (*computed)(struct central *run, uint32_t node, uint32_t value);
    void (*exchanged)(struct central *run, uint32_t node); /* script ended */
};

struct central {
    struct sim_options options;
    const struct kith_experiment *experiment;
    const struct kith_central *config;
    const struct central_method *method;
    const struct central_exchange *exchange;
    struct central_shape shape;
    uint32_t worker_count, node_count;
    uint64_t steps; /* of each worker; UINT64_MAX: until a time */
    kith_ns now_ns;
    struct sim_queue queue;
    uint64_t sequence; /* of the run's own events */
    uint64_t events, messages;
    struct central_node *nodes;         /* (node_count) */
    struct central_worker *workers;     /* (worker_count) */
    struct central_script *scripts;     /* (node_count), or NULL */
    struct sim_central_parcel *parcels; /* (parcel_capacity) */
    uint32_t parcel_capacity, parcel_used, parcel_free;
    uint32_t loss_threshold;
    uint32_t atom; /* the next one */
    uint32_t faults;

    /* The shared model: what `averaged` means in results. NULL without
     * parameters. */
    struct kith_worker *server;
    size_t dim, trained, vector_bytes;
    void *sum;        /* (dim) on the backend */
    void *blocks;     /* free vectors, chained through their first bytes */
    uint64_t updates; /* of the shared model */
    uint64_t applied; /* gradients or models that it has taken in */
    uint64_t refused; /* gradients that came too late */
    void *state;      /* the method's own */

    uint64_t trace_hash;
    FILE *trace;
    struct kith_checks checks;
    struct kith_values values;
    bool nonfinite, over, completed;
    double *mean, *z; /* (dim) */
    enum kith_err err;
    char *error; /* (SIM_ERROR_BYTES) */
    double wall_start_s, wall_shown_s;
};

/* By enum kith_central_method and enum kith_central_exchange. */
const struct central_method *
sim_central_method_of(const struct kith_central *c);
extern const struct central_exchange *const sim_central_exchanges[];
extern const struct central_exchange sim_central_naive, sim_central_tree,
    sim_central_scatter, sim_central_doubling, sim_central_ring;
extern const struct central_method sim_central_sync, sim_central_server,
    sim_central_easgd, sim_central_treeeasgd, sim_central_mpca,
    sim_central_vertical;

/* central_engine.c */
void sim_central_fail(struct central *run, enum kith_err err,
                      const char *format, ...) KITH_PRINTF(3, 4);
void sim_central_schedule(struct central *run, uint32_t by, uint32_t peer,
                          kith_ns at_ns, enum central_event kind,
                          uint32_t value);
void sim_central_schedule_run(struct central *run, kith_ns at_ns,
                              enum central_own what);
/* Train one step: its gradient is taken now, at the worker's model, and its
 * time passes; method->stepped comes then. */
void sim_central_step(struct central *run, uint32_t worker);
/* The worker has nothing to do until its next step: counted as waiting. */
void sim_central_finish(struct central *run, uint32_t worker);
bool sim_central_finished(const struct central *run, uint32_t worker);
/* A parcel to fill in and send; never NULL after which the run goes on. */
struct sim_central_parcel *sim_central_parcel(struct central *run);
void sim_central_send(struct central *run, struct sim_central_parcel *parcel);
/* `node`'s processor works for so long, after what it has to do already. */
void sim_central_compute(struct central *run, uint32_t node, kith_ns cost_ns,
                         uint32_t value);
/* Latency with mishaps of a message of `bytes` from this node. */
kith_ns sim_central_latency(struct central *run, uint32_t from, uint32_t to,
                            uint64_t bytes);
kith_ns sim_central_wire(const struct central *run, uint64_t bytes);
kith_ns sim_central_reduce_time(const struct central *run, uint64_t bytes);
kith_ns sim_central_update_time(const struct central *run, uint64_t bytes);
void sim_central_loop(struct central *run);
/* A decision: folded into the trace hash, told where there is a trace. */
void sim_central_mark(struct central *run, const char *what, uint32_t node,
                      uint32_t other, uint64_t value);
enum kith_err sim_central_engine_open(struct central *run);
void sim_central_engine_close(struct central *run);

/* central_vectors.c */
enum kith_err sim_central_desks_open(struct central *run);
void sim_central_desks_close(struct central *run);
/* What messages carry: NULL where the model has no parameters. */
void *sim_central_block_take(struct central *run);
void sim_central_block_free(struct central *run, void *block);
void *sim_central_block_copy(struct central *run, const void *vector);
void *sim_central_x(struct kith_worker *desk);
/* The worker goes on from this vector, version `version` of the model. */
void sim_central_adopt(struct central *run, uint32_t worker, const void *vector,
                       uint64_t version);
/* The sum of these workers' gradients, / divisor, in rank order, applied to the
 * shared model as step `step` of the schedule. members NULL: of all. */
void sim_central_update(struct central *run, const bool *members,
                        double divisor, uint64_t step);
/* One gradient, which is used up. */
void sim_central_apply(struct central *run, void *gradient, uint64_t step);
/* The worker's own optimiser along its own gradient. */
void sim_central_descend(struct central *run, uint32_t worker);
/* The shared model <- the mean of all workers' models, in rank order. */
void sim_central_average(struct central *run);
/* The gradient of `worker` has missed so many updates. */
void sim_central_stale(struct central *run, uint32_t worker, uint64_t updates);

/* staged_exchange.c: the node's script from its beginning. */
void sim_central_enter(struct central *run, uint32_t node);
void sim_central_sent(struct central *run, uint32_t node);
void sim_central_received(struct central *run, uint32_t node);
void sim_central_staged(struct central *run, uint32_t node);
/* Of `parts` nearly equal parts of `bytes`, part i. */
uint64_t sim_central_part(uint64_t bytes, uint32_t parts, uint32_t i);

/* central_run.c */
uint32_t
sim_central_collective_machines(const struct kith_experiment *experiment);

/* central_result.c */
void sim_central_evaluate(struct central *run);
void sim_central_progress(struct central *run);
void sim_central_summarise(struct central *run, struct kith_summary *summary,
                           struct sim_report *report);
double sim_wall(void);

#endif
