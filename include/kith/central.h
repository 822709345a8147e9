/* Central baselines: parameter servers, collectives, masters and pipelines, as
 * `central:` of an experiment names them in place of `gossip:`.
 *
 * They exist in the simulator only (sim/central/): nothing here has a driver
 * with sockets. Choices follow the taxonomy of Langer et al., "Distributed
 * training of deep learning models", TPDS 2020: what is sent (method), by which
 * pattern (exchange), and when the next step may begin (trigger).
 * Test: unit/test_central_*.c. */
#ifndef KITH_CENTRAL_H
#define KITH_CENTRAL_H

#include <stdbool.h>
#include <stdint.h>

#include "kith/err.h"

/* X(NAME, "name", "paper", "summary") */
#define KITH_CENTRAL_METHODS(X)                                                \
    X(GRADIENT, "gradient", "Li et al., OSDI 2014",                            \
      "workers send gradients, the servers own the optimiser")                 \
    X(SPARKNET, "sparknet", "Moritz et al., ICLR 2016",                        \
      "some local steps, then the mean of all models")                         \
    X(EASGD, "easgd", "Zhang et al., NeurIPS 2015",                            \
      "local steps, elastic force to and from one master")                     \
    X(TREEEASGD, "treeeasgd", "Zhang et al., NeurIPS 2015",                    \
      "elastic force along a tree of masters")                                 \
    X(MPCA, "mpca-sgd", "Langer et al., DIDL 2018 (our reading)",              \
      "penalised loss towards an extrapolated shared model")                   \
    X(VERTICAL, "vertical", "Huang et al., NeurIPS 2019",                      \
      "one model cut between its layers, in a pipeline of peers")

#define KITH_CENTRAL_EXCHANGES(X)                                              \
    X(NAIVE, "naive", "Li et al., OSDI 2014",                                  \
      "every worker with every server, one after another")                     \
    X(TREE, "tree", "Iandola et al., CVPR 2016",                               \
      "binomial tree to the server and back")                                  \
    X(SCATTER, "scatter-reduce", "Zhang et al., SOSP 2017",                    \
      "workers sum a part each, servers see sums alone")                       \
    X(DOUBLING, "doubling", "Thakur et al., IJHPCA 2005",                      \
      "recursive doubling: all sums everywhere in log2 n rounds")              \
    X(RING, "ring", "Patarasuk and Yuan, JPDC 2009",                           \
      "parts of the sum travel around a ring twice")

#define KITH_CENTRAL_TRIGGERS(X)                                               \
    X(SYNC, "sync", "Valiant, CACM 1990", "all gradients of a step, then one") \
    X(ASYNC, "async", "Dean et al., NeurIPS 2012",                             \
      "each gradient is applied when it comes")                                \
    X(SSP, "ssp", "Ho et al., NeurIPS 2013",                                   \
      "async, but nobody leads the slowest by more than `staleness`")          \
    X(ESSP, "essp", "Dai et al., AAAI 2015",                                   \
      "ssp, and the servers send every new clock's model unasked")             \
    X(VALUE, "value-bound", "Wei et al., SoCC 2015",                           \
      "async, while no value moves `bound` unseen by the slowest")             \
    X(BACKUP, "backup", "Chen et al., ICLR workshop 2016",                     \
      "sync without the last `backup` gradients: thrown away")                 \
    X(QUORUM, "quorum", "Chen et al., ICLR workshop 2016",                     \
      "sync without the last `backup` gradients: they join the next step")

#define KITH_X(name, text, paper, summary) KITH_CENTRAL_##name,
enum kith_central_method {
    KITH_CENTRAL_METHODS(KITH_X) KITH_CENTRAL_METHOD_COUNT
};
enum kith_central_exchange {
    KITH_CENTRAL_EXCHANGES(KITH_X) KITH_CENTRAL_EXCHANGE_COUNT
};
enum kith_central_trigger {
    KITH_CENTRAL_TRIGGERS(KITH_X) KITH_CENTRAL_TRIGGER_COUNT
};
#undef KITH_X

struct kith_central_kind {
    const char *name, *paper, *summary;
};
/* By the enums above; the name is NULL past the last. */
extern const struct kith_central_kind kith_central_methods[];
extern const struct kith_central_kind kith_central_exchanges[];
extern const struct kith_central_kind kith_central_triggers[];

/* `central:` of an experiment. */
struct kith_central {
    bool present;
    enum kith_central_method method;
    enum kith_central_exchange exchange;
    enum kith_central_trigger trigger;
    bool on_workers;   /* servers have no machines of their own */
    uint32_t servers;  /* each holds a part of the model */
    uint32_t replicas; /* of each server; a majority confirms an update */
    uint32_t proxies;  /* between workers and servers; 0: none */
    uint32_t staleness, backup;
    double bound;       /* value-bound: max-norm */
    uint32_t every;     /* own steps between exchanges (tau) */
    double alpha, beta; /* elastic force on the worker, on the master; mpca-sgd:
                           alpha is its penalty. Below 0: not given */
    uint32_t degree;    /* treeeasgd: children of a master */
    uint32_t up, down;  /* treeeasgd: periods */
    uint32_t stages;    /* vertical: peers that work; 0: all of them */
    uint32_t micro_batches, in_flight; /* vertical */
    uint64_t payload_bytes;            /* of a model that has no parameters */
    uint64_t reduce_bits, update_bits; /* per second; 0: no time at all */
};

#endif
