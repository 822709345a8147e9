/* A lab run in progress, shared by the files of this folder.
 *
 *   lab.c       the phases: open, start together, run, stop, results
 *   launcher.c  one turn of the loop: signals, records, deaths, clocks
 *   lab_faults.c     crash, restart, pause, slow, cut, as the clock says
 *   interrupted_run.c      what an interrupted run had, and an early stop
 *   scoring.c   evaluations on the way
 *   lab_result.c    evaluation, rows of the end, checks, summary
 *   process.c   a child and its pipes;  child.c  what runs in it
 *   program.c   the same where that is a program of the user's
 *   cluster.c   keys, ports, folder;    average.c  the averaged model
 *
 * One thread, one loop around poll(); nothing here waits for a peer longer than
 * a named bound. */
#ifndef KITH_LAB_LAUNCHER_H
#define KITH_LAB_LAUNCHER_H

#include <stdbool.h>
#include <stdint.h>

#include "kith/fault.h"
#include "kith/check.h"
#include "kith/lab.h"
#include "src/lab/average.h"
#include "src/lab/child.h"
#include "src/lab/cluster.h"
#include "src/lab/process.h"

/* Between the moment all are ready and the common start. */
#define LAB_LEAD_NS (20 * KITH_MS)
/* How long peers that crashed once may hold up the end: an exchange under way
 * can finish. Longer, and a restarted peer trains on while the others only
 * answer: its own data alone then pulls the average (digits, dirichlet(0.5):
 * 93.0 % after 2 s of it, where the simulator has 94.6 %). */
#define LAB_GRACE_NS (50 * KITH_MS)
/* When all have finished, how long exchanges under way may hold up the end, as
 * they do in the simulator: slow links and late answers are part of a run. */
#define LAB_WIND_UP_NS (60 * KITH_S)
/* How long a stopping peer may finish its exchanges and its save. Bytes of a
 * model are added at 50 MB/s, a slow disk. */
#define LAB_STOP_NS (10 * KITH_S)
#define LAB_STOP_BYTES_PER_S (50 * 1000 * 1000)
/* The last rounds may take so many times as long as their bytes do. */
#define LAB_ROUNDS 4
/* A peer that counts time itself, and does not end. */
#define LAB_LATE_NS (5 * KITH_S)
#define LAB_PROGRESS_NS KITH_S
/* Programs: how long a report of one's own and an interpreter's end may take
 * beyond that; an evaluation of the average; and how often one that has not
 * opened its peer is named. */
#define LAB_PROGRAM_STOP_NS (60 * KITH_S)
#define LAB_MEASURE_NS (600 * KITH_S)
#define LAB_REMIND_NS (30 * KITH_S)
/* Records are read together: a wake-up for each is time of the cores that the
 * peers train on. They carry their own times; faults come when they are due. */
#define LAB_GATHER_NS (5 * KITH_MS)

struct lab;

enum lab_peer_state {
    LAB_PEER_DOWN,    /* never started, or died */
    LAB_PEER_STARTED, /* a process of it runs */
    LAB_PEER_READY,   /* that process waits for `start`, or has it */
    LAB_PEER_LEFT,    /* it ended in order */
};

enum lab_peer_fault {
    LAB_FAULT_PAUSED = 1,   /* outlives a crash */
    LAB_FAULT_CRASHED = 2,  /* before a resume */
    LAB_FAULT_AFFECTED = 4, /* crashed or died once: does not hold up the end */
};

struct lab_peer {
    struct lab *lab;
    kith_id rank;
    struct lab_process process;
    struct lab_child child;
    enum lab_peer_state state;
    unsigned faults;             /* set of enum lab_peer_fault */
    bool finished;               /* own share done */
    bool quiet;                  /* and no exchange of its is under way */
    bool saved;                  /* its last save is complete */
    kith_ns finished_ns;         /* since the common start; 0: not yet */
    double slow;                 /* factor, 1: none */
    const struct kith_atom *lie; /* of what it sends, without end; or NULL */
    struct kith_row last; /* the latest row, earlier incarnations added */
    struct kith_row gone; /* sums of earlier incarnations */
    bool has_final;
    struct lab_final final;
    struct kith_score reported; /* by its program, last; NaN: not */
};

static inline bool kith_lab_peer_is_alive(const struct lab_peer *peer)
{
    return peer->state == LAB_PEER_STARTED || peer->state == LAB_PEER_READY;
}

struct lab {
    const struct kith_lab_options *options;
    struct kith_experiment experiment; /* a copy, with the save period */
    uint64_t steps;                    /* own share */
    struct lab_cluster cluster;
    struct lab_peer *peers; /* (peer_count) */
    uint32_t peer_count;    /* 0 until there are any */

    int signal_fd;
    uint32_t signals;                      /* SIGINT and SIGTERM so far */
    kith_ns opened_ns, start_ns, ended_ns; /* CLOCK_MONOTONIC; start 0: not */
    kith_ns marked_ns; /* since the start: the last mark of any peer */
    bool stopping;

    uint32_t atom; /* the next one */
    uint32_t faults;
    struct kith_piece_totals pieces; /* of all processes */
    kith_ns grace_ns, progress_ns;   /* next; 0: none */
    kith_ns wind_up_ns;              /* until then exchanges may end; 0: no */
    kith_ns read_ns; /* records were read; 0: none in the last turn */

    struct lab_process score; /* an evaluation under way */
    struct lab_child score_child;
    bool scoring;
    struct kith_score scored; /* the average, last */
    kith_ns remind_ns;
    kith_ns score_ns;   /* the next one; 0: none */
    double accuracy;    /* the latest */
    double best;        /* the best so far; NaN: none */
    uint32_t stale;     /* evaluations since then */
    bool early;         /* stop.patience is at its end */
    kith_ns resumed_ns; /* run time before a resume */

    bool nonfinite; /* a peer met a value that is not finite */
    struct {
        struct kith_topology topology;
        struct kith_node_config config;
        struct kith_liveness *watch; /* NULL: nobody watches */
    } live;
    struct kith_lab_report report;
    struct kith_checks checks;
    struct kith_values values;
    double correlation_lowest; /* NaN: never evaluated */
    double cpu_start_s;        /* the launcher's own */

    enum kith_err err; /* the first operating fault; ends the run */
    char *error;       /* (KITH_LAB_ERROR_BYTES) */
};

/* launcher.c */
/* Handles what has happened, or waits until `until_ns`, whichever is first. */
void kith_lab_turn(struct lab *lab, kith_ns until_ns);
/* Counts those that have come. */
void kith_lab_read_signals(struct lab *lab);
enum kith_err kith_lab_peer_start(struct lab_peer *peer);
/* After SIGKILL: collects the process and what it still had said. */
void kith_lab_peer_collect(struct lab_peer *peer);
void kith_lab_say(struct lab *lab, const char *format, ...) KITH_PRINTF(2, 3);
/* The same of a peer that ended as it should not: the first one is kept. */
void kith_lab_mourn(struct lab *lab, const char *format, ...) KITH_PRINTF(2, 3);
/* The first failure is kept; returns err. */
enum kith_err kith_lab_fail(struct lab *lab, enum kith_err err,
                            const char *format, ...) KITH_PRINTF(3, 4);
/* Of the run database, which has its own sentence: fails unless KITH_OK. */
enum kith_err kith_lab_stored(struct lab *lab, enum kith_err err);
/* What the average's row counts of all peers: samples at `step`; bytes and
 * exchanges as their latest rows say. */
void kith_lab_count_all(const struct lab *lab, uint64_t step,
                        struct kith_row *row);
/* Sums of the latest rows, for progress and checks. */
void kith_lab_values(struct lab *lab);
/* As in the simulator: at evaluations, where there are any, for a value from
 * before a fault says nothing about what comes after it. */
void kith_lab_check_values(struct lab *lab, kith_ns time_ns);

/* scoring.c: what one says; whether one is over, or due. */
void kith_lab_score_read(struct lab *lab);
void kith_lab_score_check(struct lab *lab, kith_ns now_ns);
/* An evaluation, unless one is under way: of that average, which a program gets
 * at the end, or of the saves as they are (NULL). */
void kith_lab_score_start(struct lab *lab, struct lab_average *average);

/* lab_liveness.c: fed by the launcher, asked by the checks. */
enum kith_err kith_lab_live_open(struct lab *lab);
void kith_lab_live_close(struct lab *lab);
void kith_lab_live_mark(struct lab_peer *peer, kith_ns time_ns,
                        const struct kith_mark *mark);
void kith_lab_live_row(struct lab_peer *peer, const struct kith_row *row);
double kith_lab_live_value(const struct lab *lab);
void kith_lab_live_finish(struct lab *lab);

/* lab_faults.c: carries out every atom that is due; the time of the next one,
 * or KITH_NEVER. */
kith_ns kith_lab_faults(struct lab *lab, kith_ns now_ns);
/* Is the end of this effect on this peer yet to come? */
bool kith_lab_fault_ends(const struct lab *lab, kith_id peer,
                         enum kith_effect effect);
/* What a process that starts now has to know: slow, cuts, pause. */
void kith_lab_faults_tell(struct lab_peer *peer);
/* Atoms of the time before a resume: their state, not their deeds. */
void kith_lab_faults_pass(struct lab *lab);

/* interrupted_run.c: counters and evaluations of the time before a resume;
 * whether an evaluation was the last that stop.patience allows. */
KITH_MUST_CHECK enum kith_err kith_lab_read_interrupted(struct lab *lab);
void kith_lab_check_patience(struct lab *lab, double loss, double accuracy);

/* program.c: are the peers processes of a program? */
bool kith_lab_is_program(const struct kith_experiment *experiment);
/* One has ended: did it leave in order? `text`: what is to be said of it, with
 * its last lines; "": nothing. */
bool kith_lab_program_ended(const struct lab_peer *peer, char *text,
                            size_t size);
/* Names one that is waited for, now and then. */
void kith_lab_program_wait(struct lab *lab);
/* What the program reports of the average, in a process of its own. */
struct kith_score kith_lab_program_measure(struct lab *lab,
                                           struct lab_average *average);

/* lab_result.c */
void kith_lab_result(struct lab *lab, struct kith_summary *summary);
double kith_lab_cpu_s(void);

#endif
