/* An experiment: one file for `sim`, `lab` and `train`.
 *
 * Loading checks everything it can, refuses unknown keys, wrong types and
 * impossible combinations with line, key and the allowed values, and expands
 * every random choice of `faults:` into a flat list of timed atoms. */
#ifndef KITH_EXPERIMENT_H
#define KITH_EXPERIMENT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "kith/algorithm.h"
#include "kith/central.h"
#include "kith/classes.h"
#include "kith/compressor.h"
#include "kith/format.h"
#include "kith/guard.h"
#include "kith/data.h"
#include "kith/err.h"
#include "kith/limits.h"
#include "kith/link_law.h"
#include "kith/loader.h"
#include "kith/model.h"
#include "kith/optimiser.h"
#include "kith/latencies.h"
#include "kith/topology.h"
#include "kith/types.h"
#include "kith/zones.h"
#include "kith/worker.h"

enum kith_wire_mode { KITH_WIRE_SIZED, KITH_WIRE_FULL };
enum kith_sharing { KITH_SHARING_QUEUE, KITH_SHARING_FAIR };
enum kith_same_host { KITH_SAME_HOST_TCP, KITH_SAME_HOST_MEMORY };

struct kith_fault; /* its kind's record: kith/fault.h */
struct kith_sides; /* the links of a statement: kith/fault.h */
/* One timed atom: an effect of a fault begins or ends, on a peer, on a link or
 * on all links between two sides. Sorted by (at_ns, statement, order of
 * expansion). */
struct kith_atom {
    kith_ns at_ns;
    const struct kith_fault *fault;
    bool begins;
    bool arrives; /* an end: of a peer that was not there before */
    kith_id peer;
    kith_id other; /* of a link, from `peer` to `other`; or KITH_NOBODY */
    const struct kith_sides
        *sides;         /* these links, the first is that; or NULL */
    double factor;      /* of a fault that takes one; 1 ends it */
    uint32_t statement; /* index in `faults:`; UINT32_MAX: compute.slow */
    uint32_t models;    /* it is over after so many; 0: at an atom of its own */
    enum kith_lie_kind lie; /* of the effect LIE */
};

enum kith_check_when {
    KITH_CHECK_ALWAYS,
    KITH_CHECK_FINALLY,
    KITH_CHECK_WITHIN
};
/* "always finite(model)", "finally accuracy >= 0.85": see
 * src/experiment/check/. */
struct kith_check {
    enum kith_check_when when;
    char quantity[KITH_NAME_MAX]; /* "finite(model)", "accuracy", "loss",
                                     "consensus_distance", "torn" ... */
    char relation[3];             /* ">=", "<=", ">", "<", "==", "" */
    double bound;
    bool times_before; /* the bound is a multiple of what was before */
    /* WITHIN: of the last time that this fault begins or ends. */
    kith_ns within_ns;
    const struct kith_fault *fault;
    bool begins;
    char text[128]; /* as written */
};

enum kith_best { KITH_BEST_LOSS, KITH_BEST_ACCURACY };

/* When a run is evaluated on its way. At its end it always is, on all of the
 * test set. */
enum kith_evaluations {
    KITH_EVALUATE_CURVE, /* 20 times within a share of it: kith/curve.h */
    KITH_EVALUATE_FULL,  /* as often on all of the test set, at any cost */
    KITH_EVALUATE_END,   /* never */
    KITH_EVALUATE_EVERY, /* evaluate_ns or, in kith train, evaluate_steps */
};

#define KITH_HOSTS_TEXT_BYTES 400

struct kith_experiment {
    char name[KITH_NAME_MAX];
    uint64_t seed;
    uint32_t peers;

    struct {
        double epochs;   /* 0: not given */
        uint64_t steps;  /* per peer; 0: not given */
        kith_ns time_ns; /* 0: not given */
        /* Evaluations without a better one before an early stop; 0: none. Not
         * part of the hash: it changes no step. */
        uint32_t patience;
    } stop;
    enum kith_best best; /* what makes an evaluation better */
    /* Time is taken to the first evaluation of the averaged model with this
     * test loss or less; 0: not given. Not part of the hash. */
    double target_loss;

    const struct kith_model *model;
    struct kith_model_config model_config;
    struct { /* kith lab: whose processes are the peers; "": kith's own */
        char command[KITH_PATH_BYTES_MAX];
        char folder[KITH_PATH_BYTES_MAX]; /* of the file: where it runs */
    } run;
    const struct kith_backend *backend; /* default: cpu */

    struct {
        bool present;
        struct kith_data_config config; /* for kith_dataset_open */
        struct kith_split split;
    } data;

    struct kith_training train;

    struct {
        const struct kith_algorithm *algorithm;
        const struct kith_topology_kind *topology;
        struct kith_topology_options options; /* as given */
        char path[KITH_PATH_BYTES_MAX];       /* topology file: its edges */
        struct kith_topology graph;           /* built when the file was read */
        void *graph_memory;
        uint64_t edges_hash; /* topology file: of what it held */
        uint32_t every;
        uint32_t retries;
        uint32_t exchanges;  /* swaps at a time, on each side */
        kith_ns deadline_ns; /* 0: measured; KITH_NEVER: `never`, sim only */
        char compressor[KITH_NAME_MAX]; /* none */
        struct kith_compressor_config compression;
        const struct kith_format *format; /* gossip.wire */
        double wire_share;                /* of the blocks of a modular one */
        double chance;                    /* of an exchange where one is due */
        double coefficients[KITH_GOSSIP_KEY_COUNT]; /* the algorithm's */
        char guard[KITH_NAME_MAX];                  /* none */
        struct kith_guard_config guarded;
    } gossip;

    struct kith_central central; /* in place of gossip; simulator only */

    struct {
        struct kith_link_terms link; /* of each, while no fault acts on it;
                                        where they differ, the least latency,
                                        and the rate of the whole's line out */
        uint64_t rate_bits, up_bits, down_bits; /* as given; 0: no limit */
        struct kith_classes classes; /* what peers have of their own */
        struct kith_zones zones;     /* and share with all of a place */
        struct {                     /* files of network.matrix ...; or "" */
            char matrix[KITH_PATH_BYTES_MAX], matrix_p90[KITH_PATH_BYTES_MAX],
                coordinates[KITH_PATH_BYTES_MAX],
                zone_rates[KITH_PATH_BYTES_MAX];
        } files;
        struct kith_latencies latencies;
        double drop_push; /* share of whole push messages lost (tests of T4);
                             simulator only */
        enum kith_sharing sharing; /* of lines; simulator only */
        enum kith_wire_mode wire;
        char suite[KITH_NAME_MAX];     /* a suite's word, or auto */
        enum kith_same_host same_host; /* how real peers send models there */
        uint32_t cores; /* of a real peer, that seal and open models; 0: the
                           command says, else one */
    } network;

    struct {
        kith_ns step_ns;  /* sim: cost of a step; lab: its minimum period */
        kith_ns merge_ns; /* sim: cost of SNAPSHOT, MERGE, UNDO; default 0 */
        bool exponential; /* sim: steps last Exp(step_ns), drawn for each */
        struct kith_speeds speeds; /* of peers: network.classes has the draws */
        bool all_cores; /* no peer keeps to a share of them: kith/affinity.h */
        /* How arithmetic is done here: no part of the hash, each machine has
         * its own. A run keeps them in its database and checkpoints. */
        const char *products; /* kith_backend_product() */
        uint32_t threads;     /* of kith train and kith peer; 0: all cores */
        double peak; /* FLOP/s, kith_backend_measure_peak(); 0: not measured */
        double core_peak; /* with one thread: of a lab's peers */
    } compute;

    /* Machines whose cores peers share, in the simulator (sim/hosts.h). */
    struct {
        char file[KITH_PATH_BYTES_MAX];    /* kith/machine.h; "": none */
        char taken[KITH_HOSTS_TEXT_BYTES]; /* what of it is used; "": nothing */
        uint32_t cores, peers;             /* of each; 0: none; 0: all peers */
        kith_ns step_ns, message_ns;       /* processor time */
        kith_ns handover_ns; /* the same, of an item's beginning and end
                                between a peer's two threads */
        kith_ns wake_ns;     /* an idle core is asleep so long */
        kith_ns slice_ns;    /* so long a thread keeps others from its core */
        uint64_t merge_bits, wire_bits; /* per second of a core; 0: no time */
    } hosts;

    kith_ns save_period_ns; /* default 5 s */
    enum kith_evaluations evaluations;
    kith_ns evaluate_ns;     /* EVERY: between two evaluations; else 0 */
    uint64_t evaluate_steps; /* the same in steps, `kith train` alone; 0: no */

    struct kith_atom *atoms; /* (atom_count), sorted */
    uint32_t atom_count;
    struct kith_sides *sides; /* a ring; NULL: no statement has any */
    struct kith_check checks[KITH_CHECKS_MAX];
    uint32_t check_count;

    char *source; /* the file as read, --set applied, for the run database */
    size_t source_bytes;
};

#define KITH_EXPERIMENT_ERROR_BYTES 1024

/* Where a machine's file says what a step takes (hosts.file) and compute.step
 * is not given it is that: for the simulator, whose steps last as long as that
 * says. A real peer's take what they take. */
void kith_experiment_steps_of_hosts(struct kith_experiment *experiment);

/* overrides: "gossip.algorithm=dpsgd" strings (--set). On error `error`
 * (KITH_EXPERIMENT_ERROR_BYTES) holds one line: file:line: key: what was
 * found; what is allowed. Nothing needs closing then. */
KITH_MUST_CHECK enum kith_err
kith_experiment_load(const char *path, const char *const *overrides,
                     uint32_t override_count,
                     struct kith_experiment *experiment, char *error);
/* The same from memory; `name` stands in messages. What the fuzzer feeds. */
KITH_MUST_CHECK enum kith_err
kith_experiment_parse(const char *name, const char *text, size_t size,
                      const char *const *overrides, uint32_t override_count,
                      struct kith_experiment *experiment, char *error);
void kith_experiment_close(struct kith_experiment *experiment);

/* A file of another program's names (kith/names.h), errors as above; from
 * memory, `path` stands in messages. kith_names_close() on KITH_OK. */
struct kith_names;
KITH_MUST_CHECK enum kith_err
kith_names_load(const char *path, struct kith_names *names, char *error);
KITH_MUST_CHECK enum kith_err kith_names_parse(const char *path,
                                               const char *text, size_t size,
                                               struct kith_names *names,
                                               char *error);

/* Steps per peer: stop.steps, or floor(epochs * rows / (peers * batch)), or
 * UINT64_MAX where stop is a time alone. */
uint64_t kith_experiment_steps(const struct kith_experiment *experiment,
                               size_t train_rows);
/* 64-bit hash over the keys that all peers must agree on: travels in the first
 * sealed frame. */
uint64_t kith_experiment_hash(const struct kith_experiment *experiment);
/* The rules by which it is made; part of what is hashed. */
#define KITH_EXPERIMENT_HASH_VERSION 2u
/* As files keep it: "VERSION:HEX". */
#define KITH_EXPERIMENT_HASH_BYTES 32
void kith_experiment_hash_text(const struct kith_experiment *experiment,
                               char text[KITH_EXPERIMENT_HASH_BYTES]);
/* The same over what files say that no peer needs to know and the simulator is
 * a function of: hosts.file, network.zone_rates, the trace of churn. Their
 * paths do not count. Cost: the atoms of faults. */
uint64_t kith_experiment_files_hash(const struct kith_experiment *experiment);
/* Is a file of this experiment? `hash` and `yaml`, the experiment's text, are
 * what the file keeps; either may be NULL. A hash of another version (before 2
 * it had none) says nothing: the text decides. false: `what` says why, such as
 * the first key that is another one: "its seed is 7, this run's is 8". */
bool kith_experiment_is(const struct kith_experiment *here, const char *hash,
                        const char *yaml, char *what, size_t size);
/* What a runner of work items (kith/worker.h) is told of it. `named`: whose
 * hash and text its checkpoints carry where `experiment` is cut down to one
 * process
 * (`kith train`); NULL: experiment, and it is a peer. Both are lent. */
struct kith_task;
/* Swaps at a time on each side: gossip.exchanges, or what fits 1 GiB. */
uint32_t kith_experiment_exchanges(const struct kith_experiment *experiment);
struct kith_task kith_experiment_task(const struct kith_experiment *experiment,
                                      const struct kith_experiment *named);
/* Compression of vectors of `dim` elements that are gossiped. */
struct kith_compression
kith_experiment_compression(const struct kith_experiment *experiment,
                            size_t dim);
/* Are an exchange's messages bytes that its merge checks? Else they are
 * numbers, and the gate sees to it that all are finite. */
bool kith_experiment_opaque(const struct kith_experiment *experiment);
/* Bytes of an exchange's message: an algorithm may send more than x, or less.
 * `slice`: of a round that is not whole; 0: all are. */
size_t kith_experiment_payload(const struct kith_experiment *experiment,
                               size_t dim);
/* What its algorithm needs, for words of a refusal; NULL: nothing. */
const char *kith_experiment_wants(const struct kith_experiment *experiment,
                                  size_t dim);
size_t kith_experiment_slice(const struct kith_experiment *experiment,
                             size_t dim);
/* What only one world can do (`deadline: never` and `drop_push` need virtual
 * time). KITH_EINVAL with text in `error`. */
enum kith_world {
    KITH_WORLD_TRAIN,
    KITH_WORLD_SIM,
    KITH_WORLD_LAB,
    KITH_WORLD_PEER,        /* a real peer, built in */
    KITH_WORLD_PROGRAM,     /* a real peer, of a program's (kith/kith.h) */
    KITH_WORLD_PROGRAM_SIM, /* a program's own peers in virtual time */
    KITH_WORLD_VISIT        /* a look at real peers of either kind (doctor) */
};
const char *kith_world_name(enum kith_world world);
KITH_MUST_CHECK enum kith_err
kith_experiment_check_world(const struct kith_experiment *experiment,
                            enum kith_world world, char *error);
/* Evaluations during a lab run read the peers' saves, which must be as fresh:
 * sets save_period_ns and evaluate_ns as its peers have them. */
void kith_experiment_lab_periods(struct kith_experiment *experiment);
/* What can be checked only once the training set is known: features and
 * classes against the model, a batch for every peer, at least one step, and
 * no fault after the predicted end. set: NULL where the model needs no data. */
KITH_MUST_CHECK enum kith_err
kith_experiment_check_data(const struct kith_experiment *experiment,
                           const struct kith_examples *set, char *error);
/* terms <- those of from -> to while no fault acts on it: kith/classes.h and
 * kith/latencies.h say what is each link's own. */
void kith_experiment_link(const struct kith_experiment *experiment,
                          kith_id from, kith_id to,
                          struct kith_link_terms *terms);
/* With the most latency and the most jitter of any two peers: a bound. */
struct kith_link_terms
kith_experiment_slowest_link(const struct kith_experiment *experiment);
/* Latency and jitter of a link between two peers, in the mean, in seconds. */
double kith_experiment_mean_latency(const struct kith_experiment *experiment);
/* This peer's compute.step: of whole nanoseconds, at least one where that is
 * not 0. Longer than virtual time goes: KITH_TIME_MAX + 1. */
kith_ns kith_experiment_step_ns(const struct kith_experiment *experiment,
                                kith_id peer);

/* The core's view of it. *topology is a copy of gossip.graph, whose memory is
 * the experiment's; where another kind was put in since, it is opened here. */
struct kith_node_config;
KITH_MUST_CHECK enum kith_err
kith_experiment_node_config(const struct kith_experiment *experiment,
                            uint64_t steps, struct kith_topology *topology,
                            struct kith_node_config *config);

/* Kinds of plug-ins that declare which keys they read. */
enum kith_reader {
    KITH_READER_ALGORITHM,
    KITH_READER_COMPRESSOR,
    KITH_READER_GUARD,
    KITH_READER_TOPOLOGY,
    KITH_READER_MODEL,
    KITH_READER_OPTIMISER,
};
/* "density, block": the keys of that kind in a record's mask. */
void kith_experiment_keys_read(enum kith_reader reader, unsigned mask,
                               char *text, size_t size);
#define KITH_KEY_ALLOWED_BYTES 512
/* Every key of an experiment file, in the order of its table. */
struct kith_experiment_key {
    const char *path, *initial; /* initial: the default; NULL: none */
    bool is_required;
    bool is_local; /* peers may differ in it, and the hash leaves it out */
    char allowed[KITH_KEY_ALLOWED_BYTES];
    char help[512]; /* "who reads it: what it is" */
};
/* false: past the last. */
bool kith_experiment_key(unsigned index, struct kith_experiment_key *key);

/* A peer's own file (`kith peer`). */
struct kith_peer_file {
    char identity[KITH_PATH_BYTES_MAX]; /* folder: node.key, node.crt, ... */
    char listen[KITH_NAME_MAX * 4];     /* "[::]:7117" */
    char advertise[KITH_NAME_MAX * 4];  /* "auto" | HOST:PORT */
    char experiment[KITH_PATH_BYTES_MAX];
    char save[KITH_PATH_BYTES_MAX];
    uint32_t rank; /* own place in `members` */
    struct {
        uint32_t members; /* training starts with so many, this one included */
        kith_ns for_ns;
    } wait;
    uint32_t member_count;
    struct {
        char address[KITH_NAME_MAX * 4]; /* HOST:PORT */
        char fingerprint[65];            /* of its X25519 key, hex; may be "" */
    } * members; /* (member_count), rank order: the member list */
};
KITH_MUST_CHECK enum kith_err
kith_peer_file_load(const char *path, struct kith_peer_file *file, char *error);
void kith_peer_file_close(struct kith_peer_file *file);

#endif
