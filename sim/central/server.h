/* Servers that take gradients one by one: what server.c, which moves them, and
 * staleness_bound.c and quorum.c, which decide, share.
 *
 * A client is a worker, or a proxy for its group of them. Its gradient travels
 * in k parts to the k servers and counts once the last part is in, on a
 * majority of each server's replicas: servers hold parts, but act as one. */
#ifndef KITH_SIM_CENTRAL_SERVER_H
#define KITH_SIM_CENTRAL_SERVER_H

#include "sim/central/central_state.h"

/* A gradient on its way to the servers, or waiting there. */
struct server_gradient {
    void *vector;
    uint64_t version; /* of the model that it was taken at */
    uint32_t members; /* workers whose gradients are in it */
    struct server_gradient *next;
};

/* The model on its way to a client: one at a time under essp. */
enum server_sending {
    SERVER_SENDS_NONE,
    SERVER_SENDS_NEWEST,
    SERVER_SENDS_OUTDATED, /* a newer one is due */
};

struct server_client {
    uint32_t node;
    uint32_t member_first, member_count;  /* workers */
    struct server_gradient *first, *last; /* oldest first */
    uint64_t in;      /* gradients that have come in whole */
    uint64_t clock;   /* of those, taken into the model */
    uint64_t version; /* of the model sent to it last */
    void *seen;       /* value-bound: that model */
    bool waits;       /* for its reply: ssp, value-bound, quorum */
    uint64_t order;   /* in which it began to wait */
    /* The newest model that it has received. */
    void *inbox;
    uint64_t inbox_version, inbox_clock;
    uint32_t parts_out; /* of a model, received */
    enum server_sending sending;
    bool fresh;        /* inbox not adopted yet */
    bool idle;         /* essp: its worker waits for a clock */
    uint32_t gathered; /* proxy: gradients of its group */
    uint64_t gathered_version;
    void *gathering;
};

struct server {
    uint32_t count, servers, replicas;
    struct server_client *clients; /* (count) */
    uint64_t *parts;               /* (count, servers) gradients in */
    uint32_t *acks;                /* (count, servers) of the last one */
    uint64_t clock_min, order;
    bool *members; /* (workers) quorum: collected for this step */
    uint32_t collected, late;
    uint32_t updating; /* quorum: servers that still apply */
};

struct server *sim_server_of(struct sim_central *run);
/* server.c: the model as it is now goes to the client. */
void sim_server_reply(struct sim_central *run, uint32_t client);
/* The client's oldest gradient; the caller frees what is in it. */
struct server_gradient *sim_server_take(struct sim_central *run,
                                        uint32_t client);
void sim_server_drop(struct sim_central *run, struct server_gradient *gradient);
uint32_t sim_server_node(const struct sim_central *run, uint32_t server);
/* Its workers go on from the model in its inbox. */
void sim_server_release(struct sim_central *run, uint32_t client);
/* All gradients asked for are in: the run is over. */
bool sim_server_done(struct sim_central *run);

/* staleness_bound.c: async, ssp, essp, value-bound. */
void sim_bounds_in(struct sim_central *run, uint32_t client);
/* `outdated`: a newer model than the one received is due. */
void sim_bounds_received(struct sim_central *run, uint32_t client,
                         bool outdated);
void sim_bounds_stepped(struct sim_central *run, uint32_t client);

/* quorum.c: backup and quorum. */
kith_ns sim_quorum_cost(const struct sim_central *run, uint64_t bytes);
void sim_quorum_in(struct sim_central *run, uint32_t client);
void sim_quorum_updated(struct sim_central *run);

#endif
