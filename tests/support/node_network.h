/* A tiny network of nodes for tests: no sockets, no simulator, d = 4 doubles.
 *
 * Messages take a random time, stay in order per direction, and vanish when
 * their link is broken. Worse than any channel of ours, where a test asks for
 * it: they are lost one by one, come twice, or overtake each other. Every mark
 * is booked per exchange, so that a test can say which exchange left the sum of
 * all models unbalanced. */
#ifndef KITH_TESTS_SUPPORT_NODE_NETWORK_H
#define KITH_TESTS_SUPPORT_NODE_NETWORK_H

#include <stdbool.h>
#include <stdint.h>

#include "kith/node.h"

#define NET_DIM 4
#define NET_PEERS_MAX 16
#define NET_EVENTS_MAX 4096
#define NET_BOOKS_MAX 65536
/* Vectors that an algorithm keeps for each neighbour of a round. */
#define NET_COPIES_MAX 4

struct net_event {
    kith_ns at_ns;
    uint64_t order;
    enum kith_event_kind kind;
    kith_id to, from;
    uint32_t link_epoch;
    struct kith_message message;
    double payload[NET_DIM];
    enum kith_work_kind work;
    bool used;
};

struct net_peer {
    struct kith_node *node;
    double slots[KITH_SLOTS_MAX][NET_DIM];
    double scalars[KITH_SCALARS_MAX];
    double edges[NET_PEERS_MAX * NET_COPIES_MAX][NET_DIM];
    double edge_scalars[NET_PEERS_MAX * KITH_EDGE_SCALARS];
    uint32_t incarnation;
    double injected; /* sum over coordinates that TRAIN added */
    struct kith_work work;
    bool working;
    kith_ns deadline_ns;
    kith_ns paused_until_ns; /* everything that reaches it waits */
    struct net_event *wake;  /* its last WAKE, may have happened */
};

/* What each side of one exchange did to its model. */
struct net_book {
    kith_id initiator, passive;
    uint64_t counter;
    double initiator_sum, passive_sum;
    bool torn, used;
};

/* What one push did to the weights. */
struct net_share {
    uint64_t number; /* of the exchange: kith_work.round */
    kith_id from, to;
    double given, taken;
    bool torn;    /* written off by a mark */
    bool crashed; /* an end of it has crashed since */
    bool used;
};

struct net {
    struct kith_node_config config;
    struct kith_topology topology;
    struct net_peer peers[NET_PEERS_MAX];
    struct net_event events[NET_EVENTS_MAX];
    size_t events_end; /* none is used from here on */
    struct net_book books[NET_BOOKS_MAX];
    struct net_share shares[NET_BOOKS_MAX];
    uint32_t link_epoch[NET_PEERS_MAX][NET_PEERS_MAX];
    kith_ns link_free[NET_PEERS_MAX][NET_PEERS_MAX];
    uint64_t order, marks[KITH_MARK_COUNT];
    struct kith_rng rng;
    kith_ns now_ns, latency_ns, step_ns;
    bool trace;
    bool frozen;              /* TRAIN takes time but changes nothing */
    double loss, twice, late; /* chances of a message to be lost, to come
                                 twice, to be overtaken */
    uint64_t lost, doubled, delivered;
    double weight_crashed; /* scalar 0 of those that crashed, then */
    /* What `from` says in a message in place of `step`; NULL: the truth. */
    uint64_t (*claim)(const struct net *net, kith_id from, uint64_t step);
    kith_ns finished_ns;                           /* the last FINISHED */
    uint64_t merged[NET_PEERS_MAX][NET_PEERS_MAX]; /* by, from whom */
};

void net_open(struct net *net, const char *algorithm, const char *topology,
              uint32_t peers, uint64_t steps, uint32_t every, uint64_t seed);
void net_close(struct net *net);
/* Runs until `until_ns` or until nothing is left to happen. */
void net_run(struct net *net, kith_ns until_ns);
/* Drops what is under way between a and b, tells both. */
void net_break(struct net *net, kith_id a, kith_id b);
/* The peer forgets all and starts over; its neighbours hear of it. */
void net_restart(struct net *net, kith_id peer);
/* Sum over peers and coordinates of x. */
double net_sum(const struct net *net);
/* Sum at the start plus all that TRAIN added. */
double net_expected(const struct net *net);
/* Unbalanced halves over all exchanges; *silent counts the unbalanced ones
 * that nobody marked torn. */
double net_unbalanced(const struct net *net, uint32_t *silent);
bool net_quiet(const struct net *net);

#endif
