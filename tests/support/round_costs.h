/* What a step waits for under an algorithm of rounds, without a vector or a
 * sum: rounds are the schedule that it runs on, bytes what its record says,
 * times the law of links.
 *
 *   a round ends for who receives when the message is there, and for who sends
 *   when it has heard so
 *
 * Peers lie in machines of neighbouring ranks. A machine has one line to the
 * others: of all its members' messages that go out in a round each has its
 * share of it. A prediction: no losses, nothing that is sent again, nothing
 * that overlaps with computing, no arithmetic. */
#ifndef KITH_TESTS_ROUND_COSTS_H
#define KITH_TESTS_ROUND_COSTS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "kith/algorithm.h"
#include "kith/topology.h"
#include "kith/types.h"

#define ROUND_PEERS_MAX 1024u

struct round_method {
    const char *name;
    const char *algorithm;  /* NULL: lists of all, by recursive doubling */
    const char *pairs;      /* topology of one without a schedule */
    const char *wire;       /* format of its numbers; NULL: float32 */
    const char *compressor; /* where it takes one, with `share` kept */
    double share;           /* of the values in a list */
    uint32_t members;       /* of a site, 0: there are none */
    uint32_t every;         /* steps between exchanges, 0: 1 */
    bool asks;              /* a question and its answer come first */
    bool rings_between;     /* sites: a ring of each shard in place of lists */
};

struct round_network {
    uint32_t machine; /* peers of one */
    uint64_t in_bits, out_bits;
    kith_ns in_ns, out_ns; /* latency */
};

struct round_plan {
    const struct round_method *method;
    const struct kith_algorithm *algorithm;
    struct kith_topology graph;
    uint64_t rounds, whole, slice; /* bytes */
    uint32_t peers;
    char error[KITH_TOPOLOGY_ERROR_BYTES];
};

/* NULL, or why it is refused: by its schedule, or by "wants" of the algorithm's
 * record. */
const char *round_plan_open(struct round_plan *plan,
                            const struct round_method *method, uint32_t peers,
                            size_t dim);

struct round_cost {
    double ms;    /* of a step, in the long run, less the step's own time */
    double bytes; /* that a peer sends in a step, in the mean */
};
/* steps: exchanges that are looked at, the first of which does not count; >= 2.
 */
struct round_cost round_cost_of(const struct round_plan *plan,
                                const struct round_network *network,
                                unsigned steps);

#endif
