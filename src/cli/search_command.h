/* What the parts of kith plan --search share. */
#ifndef KITH_SRC_CLI_SEARCH_COMMAND_H
#define KITH_SRC_CLI_SEARCH_COMMAND_H

#include "kith/report.h"
#include "plan_command.h"
#include "sweep_command.h"

/* A simulation, up to its first evaluation with the target. */
struct search_outcome {
    bool reached;
    double time_s, bytes, steps; /* virtual; sent by a peer; of a peer */
    double best;                 /* of its evaluations; NaN: none */
};
enum search_state {
    SEARCH_OPEN,    /* not run: the last of --runs, or Ctrl-C, came before */
    SEARCH_REFUSED, /* its keys do not go together */
    SEARCH_SKIPPED, /* not run: by the closed forms it is behind the best */
    SEARCH_BEHIND,  /* ended when it was behind the best */
    SEARCH_SHORT,   /* not there at its end */
    SEARCH_REACHED
};
struct search_candidate {
    const struct kith_cell *cell;
    struct plan_step step; /* by the closed forms */
    uint32_t peers, batch;
    uint64_t hash; /* of the experiment */
    bool is_own;   /* what the file says */
    enum search_state state;
    double least;                  /* SKIPPED: of the goal, predicted */
    struct search_outcome outcome; /* with the file's seed */
    /* Of the last ones, over seeds: means, half of the range of the goal. */
    uint32_t seeds;
    double time_s, bytes, spread;
};

struct search {
    const struct cli_arguments *arguments;
    const struct plan_facts *facts; /* of the file's own settings */
    bool is_bytes;                  /* the goal */
    struct kith_target target;
    double price;         /* of a peer and hour; NaN: not given */
    uint64_t runs_most;   /* --runs */
    uint32_t seeds, runs; /* of the last ones; done */
    uint32_t threads;
    double look_steps; /* between two evaluations; 0: as the file says */
    /* Candidates are cells of a sweep: keys and values. */
    struct cli_arguments swept; /* with the search's own --sweep */
    char sweeps[KITH_SETTINGS_MAX][KITH_SETTING_BYTES];
    struct cli_axes *axes;
    struct kith_plan plan;
    struct cli_dataset_cache cache;
    /* Those of the plan, and behind them the file as it is, which is counted
     * where it is none of them. */
    struct search_candidate *candidates, *own; /* (plan.cell_count + 1) */
    uint32_t count;
    struct kith_cell own_cell;
    uint32_t best;    /* of the candidates; UINT32_MAX: none */
    bool is_unsteady; /* some came there with one seed, and not with another */
};

/* Keys and values around what the closed forms say; what stands in --sweep or
 * --set is left to it. Loads all, predicts a step of each. 0, or an exit code
 * with the error printed. search_candidates.c */
int kith_cli_search_open(struct search *search);
/* Of an outcome, a prediction of so many steps. */
static inline double search_goal(const struct search *search,
                                 const struct search_outcome *outcome)
{
    return search->is_bytes ? outcome->bytes : outcome->time_s;
}
static inline double search_step(const struct search *search,
                                 const struct search_candidate *candidate)
{
    return search->is_bytes ? candidate->step.bytes : candidate->step.step_s;
}
/* Opens a candidate's experiment with the machine's facts; *facts of it. */
int kith_cli_search_load(struct search *search, const struct kith_cell *cell,
                         uint64_t seed, struct kith_experiment *experiment,
                         struct plan_facts *facts);
/* Runs it, with the file's seed and so many more, until it is there, `bound` of
 * the goal is behind it, or the file's stop. 0, or an exit code. search_run.c
 */
int kith_cli_search_run(struct search *search,
                        const struct search_candidate *candidate, uint32_t seed,
                        double bound, struct search_outcome *outcome,
                        bool *behind);
/* How often runs are looked at, by what is known of the file's own; a time that
 * the file gives stays. search_run.c */
struct kith_dataset;
void kith_cli_search_evaluations(struct search *search,
                                 const struct kith_dataset *set);
/* Between two evaluations of this one. search_run.c */
kith_ns kith_cli_search_period(const struct search *search,
                               const struct search_candidate *candidate);
/* The answer, as text or JSON. search_show.c */
int kith_cli_search_show(struct search *search);

#endif
