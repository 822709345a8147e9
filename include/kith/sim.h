/* The simulator: an experiment in virtual time, with the same kith_node_step
 * object code that talks to sockets elsewhere.
 *
 * A run is a function of (experiment, seed): the same trace hash at every
 * repeat, for any compiler, thread count, queue and wire mode.
 * Test: property/test_sim_determinism.c. */
#ifndef KITH_SIM_H
#define KITH_SIM_H

#include <signal.h>
#include <stdbool.h>
#include <stdint.h>

#include "kith/data.h"
#include "kith/err.h"
#include "kith/evaluation.h"
#include "kith/experiment.h"
#include "kith/liveness.h"
#include "kith/node.h"
#include "kith/ranks.h"
#include "kith/rundb.h"
#include "kith/types.h"
#include "kith/worker.h"

#define SIM_ERROR_BYTES 1024
/* Threads of the work pool. */
#define SIM_THREADS_MAX 64u

/* Both pop the same events in the same order. */
enum sim_queue_kind { SIM_QUEUE_CALENDAR, SIM_QUEUE_HEAP };

/* Conservation, in two strengths.
 *   PAIRS  per exchange id, the two halves are exact negatives
 *   SUM    PAIRS, and after every event
 *          live + in doubt + lost = initial + gradient + restart */
enum sim_ledger_kind { SIM_LEDGER_NONE, SIM_LEDGER_PAIRS, SIM_LEDGER_SUM };

/* What the ledger found. Sums are over all coordinates of all peers' x. */
struct sim_balance {
    double live, in_doubt, lost, withheld, initial, gradient, restart;
    double error_max; /* of the equation, relative; over all events so far */
    double weight_live, weight_lost; /* push-sum's scalar */
    uint64_t pairs;                  /* ids of which both halves were seen */
    uint64_t mismatched; /* of those, halves that are no exact negatives */
    uint64_t torn;       /* ids written off by a TORN mark */
    uint64_t orphaned;   /* half done when the other side crashed */
    uint64_t dropped;    /* pushes lost under `drop_push` */
    uint64_t unsettled;  /* half done, and nobody says why: must end at 0 */
};

/* Dishonest peers. X(NAME, text): see sim/dishonest.c. */
#define SIM_CLAIMS(X)                                                          \
    X(NONE, "none")                                                            \
    X(ROUNDS, "rounds")                                                        \
    X(AHEAD, "ahead")                                                          \
    X(SILENT, "silent")                                                        \
    X(PROBES, "probes")                                                        \
    X(HUGE, "huge")
enum sim_claim {
#define KITH_X(name, text) SIM_CLAIM_##name,
    SIM_CLAIMS(KITH_X)
#undef KITH_X
};
/* "3=rounds,5=silent" into claims (peers); false: that is not the form. */
bool sim_claims_parse(const char *text, uint32_t peers, uint8_t *claims);

/* Peers and virtual time, ends included. */
struct sim_window {
    kith_id first, last;
    kith_ns from_ns, to_ns;
};
/* "0..7", "3", "0..7,1s..2s"; NULL: the first 16, all the time. false: that is
 * not the form. */
bool sim_window_parse(const char *text, struct sim_window *window);

struct sim_world; /* a run in progress */

struct sim_progress {
    kith_ns now_ns;
    uint64_t events, messages;
    uint64_t steps_done, steps_total; /* over peers; total 0: until a time */
    double wall_s;
    kith_ns target_ns; /* it runs again to its save, of then; 0: it does not */
};

/* Of which peers rows and marks are kept: AUTO is ALL up to 10,000 peers,
 * beyond that SAMPLED, some 64 of them at equal distances. The row of all, the
 * summary and the checks count everybody in any case. */
enum sim_rows { SIM_ROWS_AUTO, SIM_ROWS_NONE, SIM_ROWS_SAMPLED, SIM_ROWS_ALL };

/* A run that is saved on its way, and goes on from there to the trace, summary
 * and rows of one that was never interrupted. */
struct sim_saving {
    const char *folder;
    bool resume; /* go on from the save there; without one the run starts */
    kith_ns every_ns;     /* of wall time; a save takes a tenth of it at most */
    const char *database; /* that the store is, for who goes on; or NULL */
};

struct sim_options {
    const struct kith_experiment *experiment;
    const struct kith_dataset *dataset; /* NULL where the model needs none */
    /* This one included, 0 means 1: of the work pool; where no vectors are
     * computed, threads that share the events. */
    unsigned threads;
    unsigned cores; /* they are for; 0: not known */
    enum sim_queue_kind queue;
    enum kith_wire_mode wire;
    enum sim_rows rows;
    enum sim_ledger_kind ledger; /* raised by an `always conserved` check */
    bool watch; /* liveness, also where no fault and no check asks for it */
    const uint8_t *claims;    /* (peers) enum sim_claim; NULL: all are honest */
    struct kith_rundb *store; /* may be NULL */
    bool of_sweep; /* it is a part of a sweep's, which keeps no map of zones */
    /* About five times a second of wall time; may be NULL. */
    void (*progress)(const struct sim_progress *progress, void *arg);
    /* A line about saves that is neither an error nor a result; may be NULL. */
    void (*notice)(const char *line, void *arg);
    /* After every event, with the peer that it happened to (KITH_NOBODY: the
     * run itself); may be NULL. All work items have run to their end. */
    void (*observe)(const struct sim_world *world, kith_id peer, void *arg);
    /* After each evaluation the row of all, accuracy and loss of the average;
     * may be NULL. Where it is asked for, no peer's own model is scored. */
    void (*evaluated)(const struct kith_row *sum, void *arg);
    /* A model `program`: its steps, on one thread, and how good z, (dim)
     * float32, is; false: it failed. NULL score: nobody knows. */
    const struct kith_trainer *trainer;
    bool (*score)(const float *z, struct kith_score *score, void *arg);
    void *arg;                         /* of the callbacks above */
    const volatile sig_atomic_t *stop; /* non-zero: end now; may be NULL */
    const char *trace_path;    /* a line per mark, message and fault; or NULL */
    const char *timeline_path; /* of `window`, for Perfetto; or NULL */
    struct sim_window window;
    const char *dump_path; /* models and matrices of every step; or NULL */
    /* Processes that run this together, each with a block of the peers' vectors
     * and, but for the first, without store, paths and callbacks: the run and
     * all that comes of it is one process's. NULL: this one alone. */
    const struct kith_ranks *ranks;
    /* NULL: it is not saved. *stop saves it, too. Of several ranks each one has
     * files of its own in the folder. */
    const struct sim_saving *saves;
};

/* How the run went, beyond kith_summary. */
struct sim_report {
    struct sim_balance balance;
    uint64_t items[SIM_THREADS_MAX]; /* work items run by each thread */
    uint64_t messages;               /* delivered */
    uint64_t handshakes;             /* completed */
    uint64_t bulk_bytes;             /* payload bytes of delivered models */
    uint64_t vectors; /* under way or lent to workers, most at a time */
    /* Where liveness was watched: until the run wound up, how often each mark
     * was reached; and what did not happen, "" where all did. */
    uint64_t marks[KITH_MARK_COUNT];
    char not_live[KITH_LIVENESS_TEXT_BYTES];
    /* Events on several threads, or why not: a line where more than one were
     * asked for and no vectors are computed, else "". */
    char windows_text[160];
    uint64_t windows; /* of virtual time, each on all of them */
    uint64_t asides;  /* merges beside events of other peers: sim/aside.c */
    bool stalled; /* nothing was left to happen, yet peers had not finished */
};

/* Runs the experiment to its end, until stop.time, or until *stop.
 *
 *   summary  filled, also after an interruption (completed = false)
 *   report   may be NULL
 *   error    (SIM_ERROR_BYTES) one line when the answer is not KITH_OK
 *
 * Returns KITH_OK, or
 *   KITH_EINVAL  the experiment cannot run in virtual time, e.g. no cost of a
 *                step is known; or has nothing to dump that steps have in
 * common KITH_ENOMEM  too many peers or parameters for this machine KITH_EIO,
 * KITH_ENOSPC  the trace or the store could not be written */
KITH_MUST_CHECK enum kith_err sim_run(const struct sim_options *options,
                                      struct kith_summary *summary,
                                      struct sim_report *report, char *error);

/* KITH_EUNSUPPORTED, with a line: several ranks cannot run this together. */
KITH_MUST_CHECK enum kith_err sim_check_ranks(const struct sim_options *options,
                                              char *error);

/* The same, of what is not saved on its way. */
KITH_MUST_CHECK enum kith_err sim_check_saves(const struct sim_options *options,
                                              char *error);
/* The database that the save in `folder` was made beside, ""; KITH_ENOENT:
 * there is no save, or none that can be read. */
KITH_MUST_CHECK enum kith_err sim_saved_database(const char *folder,
                                                 char *database, size_t size);

/* For observers: what is true right now. */
kith_ns sim_now(const struct sim_world *world);
uint64_t sim_events(const struct sim_world *world);
uint64_t sim_trace_hash(const struct sim_world *world);
bool sim_alive(const struct sim_world *world, kith_id peer);
const struct kith_node *sim_node(const struct sim_world *world, kith_id peer);
/* NULL where the model has no parameters, or the peer is down. KITH_NOBODY: the
 * model that all share in a central method; NULL where peers gossip. */
struct kith_worker *sim_worker(const struct sim_world *world, kith_id peer);
void sim_balance(const struct sim_world *world, struct sim_balance *balance);
uint64_t sim_bytes_sent(const struct sim_world *world, kith_id peer);

#endif
