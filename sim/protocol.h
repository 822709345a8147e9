/* What the machines of a run do, as the engine and the results see it. Two
 * records: sim_gossip_protocol (nodes.c) and sim_central_protocol
 * (central/central_run.c). */
#ifndef KITH_SIM_PROTOCOL_H
#define KITH_SIM_PROTOCOL_H

#include "kith/node.h"
#include "sim/engine.h"

struct sim_central_message;

struct sim_protocol {
    /* Before any part is opened: world->machine_count, vector_bytes. */
    enum kith_err (*configure)(struct sim_world *world);
    /* After all parts; may be NULL. */
    enum kith_err (*open)(struct sim_world *world);
    void (*close)(struct sim_world *world); /* may be NULL */
    void (*start)(struct sim_world *world);
    /* A machine's event that is not of the network. */
    void (*step)(struct sim_world *world, const struct sim_event *event);
    /* Only where SIM_PACKET_CENTRAL is sent. */
    void (*delivered)(struct sim_world *world,
                      const struct sim_central_message *message);
    void (*stop)(struct sim_world *world); /* stop.time has come */
    /* After sim_ending(), before each event: all is done. May be NULL. */
    bool (*ended)(struct sim_world *world);

    /* For results. The peer's model, NULL: none now; KITH_NOBODY: the one that
     * all share, NULL: their mean stands for it. */
    struct kith_worker *(*worker)(const struct sim_world *world, kith_id peer);
    /* KITH_NOBODY: sums over all, whatever has crashed included. */
    void (*counters)(const struct sim_world *world, kith_id peer,
                     struct kith_node_counters *counters);
    /* Mean since the last call, or NaN. */
    double (*take_loss)(struct sim_world *world, kith_id peer);
    /* Staleness and utilisation are known without a run database, and rows of
     * peers are written though nobody has a model. */
    bool always_counts;
};

extern const struct sim_protocol sim_gossip_protocol, sim_central_protocol;

#endif
