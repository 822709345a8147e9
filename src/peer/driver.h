/* One running peer: loop, node, worker thread, transport.
 *
 *   gathering.c   waiting for members, before the start
 *   driver.c    effects -> actions, what happened -> events
 *   peer.c      setting up and running
 *   ending.c    from being told to stop to the last handle
 *   control_pipe.c   lines from the launcher
 *   senders.c   who sent what, for the log
 *   event_journal.c   what the node was given, for a replay
 *   series.c      series, CPU accounting, the report */
#ifndef KITH_PEER_DRIVER_H
#define KITH_PEER_DRIVER_H

#include <stdbool.h>
#include <uv.h>

#include "kith/journal.h"
#include "kith/node.h"
#include "kith/peer.h"
#include "kith/worker.h"
#include "training_thread.h"
#include "transport.h"

/* A stopping peer finishes its exchanges for at most this long after its node
 * has left, */
#define KITH_QUIET_NS (500 * KITH_MS)
/* and its sessions are closed in order for at most this long. */
#define KITH_CLOSE_GRACE_NS (500 * KITH_MS)
#define KITH_CONTROL_LINE_BYTES 128u

enum kith_driver_phase {
    KITH_DRIVER_WAITING,  /* listening, the start is to come */
    KITH_DRIVER_RUNNING,  /* also after the own share: others are answered */
    KITH_DRIVER_QUIETING, /* told to stop, exchanges end */
    KITH_DRIVER_LEAVING,  /* sessions close */
    KITH_DRIVER_ENDED,    /* handles close */
};

enum kith_driver_told {
    KITH_TOLD_NOTHING,
    KITH_TOLD_RESTLESS,
    KITH_TOLD_QUIET
};

/* How long models travelled while a step was taken. */
struct kith_overlap {
    bool exchanging, training; /* since then: */
    kith_ns since_ns;
    kith_ns exchange_ns, both_ns; /* sums before it */
    kith_ns training_ns;          /* since the start */
};

/* senders.c: whose models went into ours since it was known to be good. */
#define KITH_SENDERS 8u /* that came last; a line has no room for more */
struct kith_senders {
    struct kith_sender {
        kith_id peer;
        uint32_t merged;
        int16_t far;   /* the largest of kith_work_edge */
        uint64_t last; /* `clock` when it was named last; 0: unused */
        char name[KITH_NAME_MAX];
    } list[KITH_SENDERS];
    uint64_t clock;
};

struct kith_driver {
    const struct kith_peer_options *options;
    struct kith_peer_report *report;
    char *error;                               /* (KITH_PEER_ERROR_BYTES) */
    char difference[KITH_PEER_LINE_BYTES / 2]; /* what all others differ in */
    enum kith_err failed;
    enum kith_driver_phase phase;
    uv_loop_t loop;
    struct kith_transport transport;
    struct kith_thread thread;
    struct kith_own_curve curve; /* the thread's, until it has stopped */
    struct kith_score score;     /* of the next row; NaN: none */
    struct kith_shared shared;   /* the worker's vectors, where a host's peers
                                    read them */
    struct kith_worker *worker;
    struct kith_topology topology;
    struct kith_node_config config;
    struct kith_node *node;
    void *node_memory;
    struct kith_effects effects;
    bool stepping;

    kith_ns start_ns; /* uv_hrtime() of the run's zero */
    struct kith_timer deadline;
    uv_timer_t start, rows, limit, grace;
    uv_pipe_t control;
    kith_ns close_until_ns;
    char line[KITH_CONTROL_LINE_BYTES];
    size_t line_bytes;

    uint64_t gated, messages; /* models refused; messages from members */
    struct kith_senders senders;

    double loss_sum; /* of the steps since the last row */
    uint64_t loss_count;
    double last_loss;
    int64_t more_samples; /* of all steps, than their number says */
    double cpu_zero_s;    /* the process's before the run */

    bool pauses;                /* its caller */
    enum kith_driver_told told; /* on_quiet */
    bool has_save;
    uint64_t save_step; /* of the save */
    double peak; /* FLOP/s, of the checkpoint or the experiment; 0: unknown */
    struct kith_meter meter, whole; /* since looked_ns; of the run */
    kith_ns looked_ns;
    struct kith_speed speed; /* then */
    kith_ns trained_ns;      /* when the last step ended */
    struct kith_overlap overlap;
    struct {
        bool begun;
        uint64_t step, digest; /* of the save that it went on from */
        struct kith_journal_clock clock;
        size_t size;
        uint8_t bytes[KITH_JOURNAL_PART_BYTES + KITH_JOURNAL_ENTRY_BYTES_MAX];
    } journal; /* what has not been handed on yet */
    struct {
        uint64_t received; /* models that found a slot */
        uint64_t sum, max; /* own steps less the sender's */
    } staleness;
};

/* driver.c. Time since the start of the run. */
kith_ns kith_driver_now(const struct kith_driver *driver);
/* An event that is its kind, and perhaps a peer. */
void kith_driver_tell(struct kith_driver *driver, enum kith_event_kind kind,
                      kith_id peer);
/* From start_ns on, which is now. */
void kith_driver_begin(struct kith_driver *driver);
/* The functions that the transport and the thread call. */
struct kith_transport_user kith_driver_user(struct kith_driver *driver);
void kith_driver_worked(void *arg, const struct kith_work_result *result);
void kith_driver_saved(void *arg, const struct kith_saved *saved);

/* peer.c. The run begins: sets the timer of stop.time. */
void kith_driver_limit(struct kith_driver *driver);

/* ending.c. Told to stop: finish exchanges, save, say goodbye. */
void kith_driver_stop(struct kith_driver *driver);
/* The others will not have us: ends in order, with a save, and an error. */
void kith_driver_hopeless_later(struct kith_driver *driver, const char *why);
/* There is nobody to exchange with: the same, with KITH_EALONE. */
void kith_driver_alone_later(struct kith_driver *driver, const char *why);
/* The backend has failed for good: nothing that it computed leaves any more,
 * sessions close in order, and what was saved stays. Later: for calls that may
 * hold a link. */
void kith_driver_backend_failed(void *driver, const char *why);
void kith_driver_backend_failed_later(struct kith_driver *driver);
/* After every event: is a stopping peer quiet, an ending one alone? */
void kith_driver_check_end(struct kith_driver *driver);
/* Every handle that is open, whatever the phase. */
void kith_driver_close_all(struct kith_driver *driver);

/* gathering.c: begins the run when options->wait_members are connected. */
void kith_gathering_start(struct kith_driver *driver);

/* control_pipe.c */
KITH_MUST_CHECK enum kith_err kith_control_open(struct kith_driver *driver);

/* event_journal.c; all of it does nothing where no journal is kept. At the
 * opening, with the model that the run goes on from; before START; after a step
 * and before its effects; once the thread has stopped. */
KITH_MUST_CHECK enum kith_err kith_journal_restored(struct kith_driver *driver,
                                                    uint64_t step);
void kith_journal_starts(struct kith_driver *driver);
void kith_journal_stepped(struct kith_driver *driver,
                          const struct kith_event *event);
void kith_journal_lies(struct kith_driver *driver, const struct kith_lie *lie);
void kith_journal_ends(struct kith_driver *driver);
/* Hands on what there is. */
void kith_journal_flush(struct kith_driver *driver);

/* senders.c. What an item did with the models of its edges; what marks say of
 * senders. */
void kith_senders_worked(struct kith_driver *driver,
                         const struct kith_work_result *result);
void kith_senders_mark(struct kith_driver *driver,
                       const struct kith_mark *mark);

/* series.c. At the start, where the node stands; after every step of it. */
void kith_rows_start(struct kith_driver *driver);
void kith_rows_overlap(struct kith_driver *driver, kith_ns now_ns);
/* Before each message: how old is the model that has arrived? */
void kith_rows_model(struct kith_driver *driver,
                     const struct kith_message *message);
double kith_process_cpu(void);
void kith_rows_send(struct kith_driver *driver);
/* A row of its own for an evaluation: kith_thread_options.scored. */
void kith_rows_scored(void *driver, const struct kith_score *score);
void kith_rows_report(struct kith_driver *driver);

#endif
