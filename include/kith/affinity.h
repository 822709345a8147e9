/* Which of a machine's cores a peer keeps to: compute.affinity.
 *
 * Where the number of peers p on a machine and that of its cores c divide one
 * another, each core is for p / c peers, or each peer has c / p cores of its
 * own, by rank. A peer has two threads that wake each other twice an item; the
 * kernel would spread them over the cores and wait for one while another is
 * idle: two peers on two cores took 2.4 to 2.9 s so, 1.9 to 2.2 s with a core
 * each (docs/hosts.md). Where neither divides the other, with `none`, and with
 * a program, whose threads are its own affair, all peers share all cores.
 * Test: unit/test_sim_hosts.c, integration/test_lab_affinity.sh. */
#ifndef KITH_AFFINITY_H
#define KITH_AFFINITY_H

#include <stdint.h>

struct kith_experiment;

/* So many peers keep to so many cores. */
struct kith_core_share {
    uint32_t peers, cores;
};

/* peers, cores > 0: all on the machine. */
struct kith_core_share kith_core_share(const struct kith_experiment *experiment,
                                       uint32_t peers, uint32_t cores);

#endif
