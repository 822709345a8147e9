/* What a link does to what is sent over it: one law for both worlds.
 *
 *   terms of i -> j  =  the network's, and the forces of the faults that act
 *                       between i and j
 *   arrival          =  when the last byte of a message, or of a piece of one,
 *                       is there: the law of docs/links.md
 *
 * The simulator gives a message whole (sim/links.c), the lab's sockets give it
 * in the pieces that they write (src/peer/socket.c): packets are counted by
 * message, so that both meet the same losses. All times are arguments, all
 * draws those of (seed, link, count). A new effect on links is a fault of its
 * own and what its force does in link_law.c; it makes no link faster.
 * Test: unit/test_link_law.c. */
#ifndef KITH_LINK_LAW_H
#define KITH_LINK_LAW_H

#include <stdbool.h>
#include <stdint.h>

#include "kith/types.h"

/* Bytes of a full packet: Ethernet's 1,500 less the headers of IPv4 and of TCP
 * with timestamps. */
#define KITH_PACKET_BYTES 1448u

/* Room for a force of each line of faults.def. */
#define KITH_LINK_FORCES 8u

struct kith_link_terms {
    kith_ns latency_ns, jitter_ns; /* one way; jitter: exponential mean */
    uint64_t rate_bits; /* the peer's line, each direction; 0: no limit */
    double loss;        /* share of packets that need a retransmission */
    /* How strongly each fault acts, in the order of faults.def: its factor, or
     * 1; 0 while it does not. */
    double force[KITH_LINK_FORCES];
};

/* What is sent stalls, in order, until it is no longer so. */
bool kith_link_is_cut(const struct kith_link_terms *terms);

/* Does what is sent pass at once, unchanged? */
bool kith_link_is_plain(const struct kith_link_terms *terms);

/* What one direction remembers: of TCP's sender, and which draws are used. */
struct kith_link_flow {
    struct kith_link_terms terms;
    uint64_t seed; /* of its draws */
    kith_id from, to;
    kith_ns left_ns, window_ns; /* what left before; what the window allows */
    uint64_t until_loss;        /* packets that pass before one is lost */
    uint32_t losses, messages;  /* so far */
    uint32_t begun_bytes;       /* of the packet that the last piece ends in */
    bool is_drawn;              /* until_loss is */
};
void kith_link_flow_init(struct kith_link_flow *flow,
                         const struct kith_link_terms *terms, uint64_t seed,
                         kith_id from, kith_id to);

/* On the sender's line from begins_ns to ends_ns. */
struct kith_link_piece {
    kith_ns begins_ns, ends_ns;
    uint64_t bytes, rest; /* rest: of the same message, to come */
};
kith_ns kith_link_arrival(struct kith_link_flow *flow,
                          const struct kith_link_piece *piece);
/* Is it what the law says of this flow, as it was before this piece? For who
 * watches what another piece of code makes of it. */
bool kith_link_agrees(const struct kith_link_flow *before,
                      const struct kith_link_piece *piece, kith_ns arrives_ns);
/* How long the n-th message of i -> j is under way where none is lost: all
 * that there is to know of a link with jitter alone. */
kith_ns kith_link_delay(const struct kith_link_terms *terms, uint64_t seed,
                        kith_id from, kith_id to, uint32_t message);

/* What losses in a row hold a packet up, T + 2 T + ..., but for a share `rare`
 * of all packets. */
kith_ns kith_link_stall(const struct kith_link_terms *terms, double rare);

/* bytes * 8 s / rate, rounded up; rate <= 10^15, 0: no time at all. Here as in
 * all that adds to it: KITH_NEVER where that does not fit. */
kith_ns kith_line_time(uint64_t bytes, uint64_t rate_bits);
/* A line is busy until *free_ns: what comes later waits (a queue without loss).
 * Returns when these bytes begin; they end at *free_ns. */
kith_ns kith_line_take(kith_ns *free_ns, uint64_t rate_bits, kith_ns at_ns,
                       uint64_t bytes);

#endif
