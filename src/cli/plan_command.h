/* What the parts of kith plan share. */
#ifndef KITH_SRC_CLI_PLAN_COMMAND_H
#define KITH_SRC_CLI_PLAN_COMMAND_H

#include "cli.h"
#include "kith/machine.h"
#include "kith/plan.h"

/* Measures this machine with the experiment's model and writes `path`; a file
 * that is there and no machine's stays. 0, or an exit code. plan_measure.c */
int kith_cli_plan_measure(const struct cli_arguments *arguments,
                          struct kith_experiment *experiment, const char *path);
/* machine's links <- those to the members of --to's file; none without it. 0,
 * or an exit code where none could be measured. plan_links.c */
int kith_cli_measure_links(const struct cli_arguments *arguments,
                           struct kith_machine *machine);
/* `links:` of its file, behind `at`; returns where that ends. */
size_t kith_cli_add_links(const struct kith_machine *machine, char *text,
                          size_t size, size_t at);
/* Bytes of memory that one more example of a batch takes, between the file's
 * batch and twice that; 0: the model has no network. KITH_ENOMEM and the like.
 * plan_memory.c */
KITH_MUST_CHECK enum kith_err
kith_cli_example_bytes(const struct kith_experiment *experiment, double *bytes);
/* All of it. */
double kith_cli_plan_held(const struct kith_worker_memory *held);

#define PLAN_NOTES_MAX 8u

/* What is known before anything is computed. */
struct plan_facts {
    const struct kith_experiment *experiment;
    const struct kith_machine *machine; /* NULL: none was named */
    double efficiency;                  /* wanted */
    double memory_bytes;                /* of a peer; 0: not given */
    struct kith_plan_exchange exchange;
    double message_bytes, merge_bytes_s, wire_bytes_s; /* 0: free */
    double trip_s;                                     /* a round trip, mean */
    double phases;     /* rounds of an exchange; 1: it is one */
    double sent;       /* messages of a peer in an interval, mean */
    double chance;     /* that one which is due is begun */
    bool is_exclusive; /* one exchange at a time, begun by chance alone */
    bool is_waiting;   /* a step waits for an exchange that is late */
    struct kith_worker_config worker; /* of the peer with most neighbours */
    struct kith_worker_memory held;   /* by it */
    double example_bytes;
    bool example_is_own; /* not another one, of the machine's file */
    const char *step_from, *rate_from; /* words */
    /* What is missing or assumed, and what to do about it. */
    char notes[PLAN_NOTES_MAX][256];
    unsigned note_count;
};
/* The notes as text, and as a JSON array. command_plan.c */
typedef struct json_t json_t;
void kith_cli_plan_print_notes(const struct plan_facts *facts);
json_t *kith_cli_plan_notes(const struct plan_facts *facts);
/* plan_facts.c: is anything sent that could be planned? */
bool kith_cli_plan_gossips(const struct kith_experiment *experiment);
/* 0, or an exit code with the error printed. */
int kith_cli_plan_check_gossip(const struct cli_arguments *arguments,
                               const struct kith_experiment *experiment);
int kith_cli_plan_facts(const struct cli_arguments *arguments,
                        const struct kith_experiment *experiment,
                        const struct kith_machine *machine,
                        struct plan_facts *facts);
void kith_cli_plan_note(struct plan_facts *facts, const char *format, ...)
    KITH_PRINTF(2, 3);

/* The largest batch in facts->memory_bytes; 0: none. plan_memory.c */
double kith_cli_largest_batch(const struct plan_facts *facts);

/* The best of the machine's batches. KITH_ENOMEM, or what
 * kith_plan_minibatch() says; facts->machine is there. plan_batch.c */
struct plan_batch {
    uint32_t batch, threads;
    double step_s;
};
KITH_MUST_CHECK enum kith_err
kith_cli_plan_batch(const struct plan_facts *facts, struct plan_batch *out,
                    char *error);

/* What is known of these facts without a figure of its own: a step's time, and
 * bytes that a peer sends in it. plan_figures.c */
struct plan_step {
    double step_s, bytes;
};
KITH_MUST_CHECK enum kith_err kith_cli_plan_step(const struct plan_facts *facts,
                                                 struct plan_step *out,
                                                 char *error);
/* The same facts as keys: an experiment whose steps and messages take what the
 * machine's do. command_plan.c */
void kith_cli_plan_apply(const struct plan_facts *facts,
                         struct kith_experiment *experiment);
/* `kith sim` of this file with the machine's facts as keys: `more` goes behind
 * the command line's settings, `end` to the end; or why there is none.
 * command_plan.c */
#define PLAN_COMMAND_BYTES 4096u
void kith_cli_plan_check(const struct cli_arguments *arguments,
                         const struct plan_facts *facts, const char *more,
                         const char *end, char text[PLAN_COMMAND_BYTES]);

/* --search: simulates settings, and prints the best. 0, or an exit code with
 * the error printed. search.c */
int kith_cli_plan_search(const struct cli_arguments *arguments,
                         const struct plan_facts *facts);

/* One line of the answer. */
enum plan_unit {
    PLAN_COUNT,
    PLAN_SHARE,
    PLAN_SECONDS,
    PLAN_BYTES,
    PLAN_RATE,
    PLAN_PLAIN
};
struct plan_figure {
    const char *name; /* with '_', as a key of JSON */
    double value;     /* NaN: does not apply */
    enum plan_unit unit;
    char why[160];
};
#define PLAN_FIGURES_MAX 40u
struct plan_answer {
    struct plan_figure figures[PLAN_FIGURES_MAX];
    unsigned count;
    double step_s; /* predicted, of a peer */
};
/* The closed forms of the facts. 0, or an exit code. plan_figures.c */
int kith_cli_plan_figures(const struct cli_arguments *arguments,
                          struct plan_facts *facts, struct plan_answer *answer);

#endif
