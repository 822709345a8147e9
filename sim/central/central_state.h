/* A central run in progress, shared by the files of this folder.
 *
 *   central_run.c      the protocol record: from the experiment to the results
 *   central_steps.c    steps of the workers, messages, processors
 *   central_vectors.c  vectors: gradients, means, the shared model
 *   staged_exchange.c  patterns in which every machine has a script of its own
 *   naive_exchange.c, tree_allreduce.c, scatter.c, doubling_allreduce.c,
 *   ring_allreduce.c   those scripts
 *   sync.c             all workers in step; SparkNet
 *   server.c           one gradient at a time: async, ssp, essp, value bound
 *   staleness_bound.c  who must wait there, and what is sent unasked
 *   quorum.c           the first so many gradients of a step
 *   easgd.c, treeeasgd.c, mpca.c, vertical.c, stages.c   methods
 *
 * Machines ("nodes") are the workers, then those of servers, replicas, proxies
 * and masters. A message has as many bytes as its payload: the baselines are
 * charged for no headers and no connections, so that their delays are the lower
 * bounds of the literature. Clock, events, access links, faults, trace and
 * results are those of the engine (sim/world.h). One thread computes. */
#ifndef KITH_SIM_CENTRAL_CENTRAL_STATE_H
#define KITH_SIM_CENTRAL_CENTRAL_STATE_H

#include "sim/losses.h"
#include "sim/world.h"

/* Values of SIM_EVENT_STAGE. */
enum sim_stage_event {
    SIM_STAGE_SENT,     /* the stage's message has left */
    SIM_STAGE_RECEIVED, /* the stage's message is here */
    SIM_STAGE_SUMMED,   /* the stage's sums are done */
};

struct central_worker {
    struct kith_worker *trainer; /* NULL without parameters */
    void *gradient;              /* of the step under way or just done */
    struct sim_losses losses;
    uint64_t steps;             /* done */
    uint64_t version;           /* of the model that the step works on */
    uint64_t taken_in;          /* its gradients or models that count */
    kith_ns idle_ns, waited_ns; /* since when it waits; in all */
    bool stepping, finished;
};

/* One stage of a machine's part in a pattern: a message out, one in, at the
 * same time; then sums. KITH_NOBODY: none. Bytes in are the sender's. */
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

/* Stage `index` of `node`'s script; false: past its end. Pure. */
typedef bool sim_stage_of(const struct central_shape *shape, uint32_t node,
                          uint32_t index, struct central_stage *stage);

/* What a machine in its script still waits for. */
#define CENTRAL_SENDING 1u
#define CENTRAL_RECEIVING 2u
#define CENTRAL_COMPUTING 4u
/* Its message has found the other end at the same stage. */
#define CENTRAL_MATCHED_OUT 8u
#define CENTRAL_MATCHED_IN 16u

/* A machine's place in its script. */
struct central_script {
    struct central_stage stage;
    uint32_t index;
    bool running;
    uint8_t state;    /* CENTRAL_SENDING... */
    kith_ns ready_ns; /* of the stage */
};

struct central_node {
    kith_ns cpu_ns;             /* its processor is free from then on */
    kith_ns out_ns, in_ns;      /* its lines are, of stages */
    struct kith_link_flow flow; /* of all that it sends */
    struct central_script script;
};

struct sim_central;

/* How a family of baselines works: what happens at each event. NULL where
 * nothing does. */
struct central_method {
    /* Workers hold parts of one model: no copy of any of them can differ. */
    bool one_model;
    /* Machines beside the workers. */
    uint32_t (*machines)(const struct kith_experiment *experiment);
    /* Of `state`, zeros at first, and of what it ends with for each node. Its
     * memory is sim_alloc()'s, its vectors are sim_copy_take()'s: both go with
     * the world. */
    size_t state_bytes, node_bytes;
    enum kith_err (*open)(struct sim_central *run);
    void (*close)(struct sim_central *run);
    /* NULL: every worker trains its first step. */
    void (*start)(struct sim_central *run);
    void (*begins)(struct sim_central *run, uint32_t worker); /* a step */
    void (*stepped)(struct sim_central *run, uint32_t worker);
    void (*delivered)(struct sim_central *run,
                      const struct sim_central_message *message);
    void (*computed)(struct sim_central *run, uint32_t node, uint32_t value);
    void (*exchanged)(struct sim_central *run,
                      uint32_t node); /* script ended */
};

struct sim_central {
    struct sim_world *world;
    const struct kith_experiment *experiment;
    const struct kith_central *config;
    const struct central_method *method;
    sim_stage_of *stage_of;
    struct central_shape shape;
    uint32_t worker_count, node_count;
    struct central_node *nodes;     /* (node_count) */
    struct central_worker *workers; /* (worker_count) */

    /* The shared model: what `averaged` means in results. NULL without
     * parameters. */
    struct kith_worker *server;
    size_t dim, trained;
    void **vectors;   /* (worker_count) scratch: what a mean is of */
    void *sum;        /* (dim) on the backend */
    double *x, *y;    /* (dim) scratch */
    uint64_t updates; /* of the shared model */
    uint64_t applied; /* gradients or models that it has taken in */
    uint64_t refused; /* gradients that came too late */
    void *state;      /* the method's own */
};

sim_stage_of sim_central_naive, sim_central_tree, sim_central_scatter,
    sim_central_doubling, sim_central_ring;
extern const struct central_method sim_central_sync, sim_central_server,
    sim_central_easgd, sim_central_treeeasgd, sim_central_mpca,
    sim_central_vertical;

/* central_steps.c */
/* Train one step: its gradient is taken now, at the worker's model, and its
 * time passes; method->stepped comes then. */
void sim_central_step(struct sim_central *run, uint32_t worker);
void sim_central_step_done(struct sim_central *run, uint32_t worker);
bool sim_central_finished(const struct sim_central *run, uint32_t worker);
/* The worker has no step left: it counts as finished from now on. */
void sim_central_finish(struct sim_central *run, uint32_t worker);
/* One of the two. */
void sim_central_go_on(struct sim_central *run, uint32_t worker);
/* The vector is the message's from now on. */
void sim_central_send(struct sim_central *run,
                      const struct sim_central_message *message);
/* A whole model or gradient; NULL: the bytes of one. */
void sim_central_send_model(struct sim_central *run, uint32_t from, uint32_t to,
                            uint32_t kind, uint32_t subject, uint64_t version,
                            void *vector);
/* `node`'s processor works for so long, after what it has to do already. */
void sim_central_compute(struct sim_central *run, uint32_t node,
                         kith_ns cost_ns, uint32_t value);
/* Latency with mishaps of a message of `bytes` from this node to that. */
kith_ns sim_central_latency(struct sim_central *run, uint32_t from, uint32_t to,
                            kith_ns at_ns, uint64_t bytes);
/* To add so many bytes, and to apply so many. */
kith_ns sim_central_cost(const struct sim_central *run, uint64_t reduce_bytes,
                         uint64_t update_bytes);

/* central_vectors.c */
/* The live model of a trainer, and a copy of a whole one; of NULL: NULL. */
void *sim_central_x(struct kith_worker *trainer);
void *sim_central_copy(struct sim_central *run, const void *x);
/* The worker goes on from this vector, version `version` of the model. */
void sim_central_adopt(struct sim_central *run, uint32_t worker,
                       const void *vector, uint64_t version);
/* The sum of these workers' gradients, / divisor, in rank order, applied to the
 * shared model as step `step` of the schedule. members NULL: of all. */
void sim_central_update(struct sim_central *run, const bool *members,
                        double divisor, uint64_t step);
/* One gradient, which is used up. */
void sim_central_apply(struct sim_central *run, void *gradient, uint64_t step);
/* The worker's own optimiser along its own gradient. */
void sim_central_descend(struct sim_central *run, uint32_t worker);
/* mean <- the sum of run->vectors / divisor, in rank order, of the first
 * `size` values; NULL: left out. */
void sim_central_mean(struct sim_central *run, size_t size, double divisor,
                      void *mean);
/* The gradient of `worker` has missed so many updates. */
void sim_central_stale(struct sim_central *run, uint32_t worker,
                       uint64_t updates);

/* staged_exchange.c: the node's script from its beginning. */
void sim_central_enter(struct sim_central *run, uint32_t node);
void sim_central_stage_event(struct sim_central *run, uint32_t node,
                             enum sim_stage_event event);
/* Of `parts` nearly equal parts of `bytes`, part i. */
uint64_t sim_central_part(uint64_t bytes, uint32_t parts, uint32_t i);
/* Workers in nearly equal groups: the first of a group, and a worker's. */
uint32_t sim_central_group_first(uint32_t workers, uint32_t groups,
                                 uint32_t group);
uint32_t sim_central_group_of(uint32_t workers, uint32_t groups,
                              uint32_t worker);

/* central_run.c */
uint32_t
sim_central_collective_machines(const struct kith_experiment *experiment);

#endif
