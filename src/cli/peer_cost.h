/* What peers of this machine take beside their steps. */
#ifndef KITH_SRC_CLI_PEER_COST_H
#define KITH_SRC_CLI_PEER_COST_H

#include "cli.h"

struct cli_peer_cost {
    double handover_s; /* processor time of an item's way to the training thread
                          and back */
    double message_s;  /* processor time of a short message at each end */
    double loop_s;     /* of handover: on sockets, by the loop's account */
    double swap_link_s; /* of a swap's messages: sealing, sockets, opening */
    double wake_s;      /* until a thread whose period is over goes on */
    double slice_s;     /* a thread keeps its core so long while others wait; 0:
                           not known */
};

/* What labs of the experiment's own are like, for what they take depends on it.
 */
struct cli_own {
    uint32_t peers; /* as many as on a machine of it, from one to four a core */
    uint32_t every; /* steps between swaps: as many, from 4 to 16 */
    kith_ns pace_ns; /* of those that sleep: compute.step, from 2 to 10 ms */
};
struct cli_own kith_cli_own(const struct kith_experiment *experiment);

/* Runs labs of real peers with a model of a few numbers, some ten seconds. 0,
 * or an exit code. */
int kith_cli_measure_peers(const struct cli_arguments *arguments,
                           const struct kith_experiment *experiment,
                           struct cli_peer_cost *cost);
/* Processor time of a step of the experiment's own model and batch, by peers
 * that share all cores, its hand-over left out: with what prepares batches
 * meanwhile, and with caches that the others have used. alone_ns: what it takes
 * with nobody beside. */
int kith_cli_measure_peer_step(const struct cli_arguments *arguments,
                               const struct kith_experiment *experiment,
                               kith_ns alone_ns,
                               const struct cli_peer_cost *cost,
                               kith_ns *step_ns);

/* Bytes per second of a core, of models of the experiment's size. */
struct cli_wire_cost {
    double link;  /* of what travels: sealed and sent, or received and opened */
    double merge; /* of the model: an item copies, packs, reads and merges */
};
/* Both of the experiment's own batch and format: a step, and what a swap takes
 * beyond short messages and hand-overs. Together they are what peers that do
 * both take. */
int kith_cli_measure_own(const struct cli_arguments *arguments,
                         const struct kith_experiment *experiment,
                         kith_ns alone_ns, double model_bytes,
                         const struct cli_peer_cost *cost, kith_ns *step_ns,
                         struct cli_wire_cost *wire);
/* A swap in another format. step_ns: of kith_cli_measure_own(). */
int kith_cli_measure_wire(const struct cli_arguments *arguments,
                          const struct kith_experiment *experiment,
                          const char *wire, kith_ns step_ns, double model_bytes,
                          const struct cli_peer_cost *cost,
                          struct cli_wire_cost *out);

#endif
