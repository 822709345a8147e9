/* One run of kith plan --search: up to the first evaluation with the target, or
 * until it is behind. */
#include <math.h>

#include "kith/sim.h"
#include "search_command.h"

/* Evaluations of a run of which nothing is known yet; up to the file's target.
 */
#define EVALUATIONS 64.0
#define EVALUATIONS_TO_TARGET 50.0
/* An average of models that have not met is nobody's: a target counts once a
 * peer has sent what so many exchanges take. */
#define EXCHANGES_LEAST 4.0

struct watch {
    const struct search *search;
    struct search_outcome *outcome;
    double bound, peers;
    double bytes_least; /* before the target counts */
    bool behind;
    volatile sig_atomic_t stop;
};

static void look(const struct kith_row *sum, void *arg)
{
    struct watch *watch = arg;
    struct search_outcome *outcome = watch->outcome;
    const struct kith_target *target = &watch->search->target;
    const double score = target->is_accuracy ? sum->accuracy : sum->test_loss;
    if (watch->stop) /* the summary of one that was ended */
        return;
    outcome->time_s = 1e-9 * (double)sum->time_ns;
    outcome->bytes = (double)sum->bytes_sent / watch->peers;
    outcome->steps = (double)sum->step / watch->peers;
    outcome->best = target->is_accuracy ? fmax(outcome->best, score)
                                        : fmin(outcome->best, score);
    outcome->reached =
        outcome->bytes >= watch->bytes_least &&
        (target->is_accuracy ? score >= target->value : score <= target->value);
    watch->behind = search_goal(watch->search, outcome) > watch->bound;
    watch->stop = outcome->reached || watch->behind || kith_cli_stop;
}

static void look_for_signal(const struct sim_progress *progress, void *arg)
{
    struct watch *watch = arg;
    (void)progress;
    if (kith_cli_stop)
        watch->stop = 1;
}

static int simulate(struct search *search, struct kith_experiment *experiment,
                    struct watch *watch)
{
    char error[SIM_ERROR_BYTES] = "";
    struct kith_dataset *set = NULL;
    struct kith_summary summary;
    enum kith_err err =
        kith_experiment_check_world(experiment, KITH_WORLD_SIM, error);
    if (err == KITH_OK) {
        err =
            kith_cli_dataset_cache_get(&search->cache, experiment, &set, error);
        if (err != KITH_OK)
            return kith_cli_fail(search->arguments,
                                 err == KITH_ENOMEM ? KITH_EXIT_RESOURCES
                                                    : KITH_EXIT_DATA,
                                 "%s", error);
        err = kith_experiment_check_data(
            experiment, set == NULL ? NULL : &set->train, error);
    }
    if (err != KITH_OK)
        return kith_cli_check(search->arguments, err, error);
    const struct sim_options options = {.experiment = experiment,
                                        .dataset = set,
                                        .threads = search->threads,
                                        .wire = experiment->network.wire,
                                        .rows = SIM_ROWS_NONE,
                                        .progress = look_for_signal,
                                        .evaluated = look,
                                        .stop = &watch->stop,
                                        .arg = watch};
    return kith_cli_check(search->arguments,
                          sim_run(&options, &summary, NULL, error), error);
}

/* By steps, for those take less or more time in another setting: the first time
 * of the whole run, then of what the file's own takes to the target. Where the
 * file says a time, that. */
void kith_cli_search_evaluations(struct search *search,
                                 const struct kith_dataset *set)
{
    const struct kith_experiment *experiment = search->facts->experiment;
    const struct search_outcome *own = &search->own->outcome;
    const uint64_t count =
        kith_experiment_steps(experiment, set == NULL ? 0 : set->train.count);
    double steps = count == UINT64_MAX ? INFINITY : (double)count;
    if (experiment->evaluate_ns > 0)
        return;
    if (experiment->stop.time_ns > 0)
        steps = fmin(steps, 1e-9 * (double)experiment->stop.time_ns /
                                search->own->step.step_s);
    search->look_steps =
        fmax(1, own->reached ? own->steps / EVALUATIONS_TO_TARGET
                             : steps / EVALUATIONS);
}

/* Two digits, and a millisecond at least: it is a key that people may set. */
kith_ns kith_cli_search_period(const struct search *search,
                               const struct search_candidate *candidate)
{
    if (search->look_steps <= 0)
        return search->facts->experiment->evaluate_ns;
    const double ns =
        fmax(1, 1e9 * search->look_steps * candidate->step.step_s);
    const double unit = fmax(1, pow(10, floor(log10(ns)) - 1));
    return (kith_ns)fmax((double)KITH_MS, floor(ns / unit) * unit);
}

/* Up to the target, `bound` of the goal, or the file's stop. */
int kith_cli_search_run(struct search *search,
                        const struct search_candidate *candidate, uint32_t seed,
                        double bound, struct search_outcome *outcome,
                        bool *behind)
{
    struct kith_experiment experiment;
    struct plan_facts facts;
    int code =
        kith_cli_search_load(search, candidate->cell,
                             candidate->cell->seed + seed, &experiment, &facts);
    if (code != KITH_EXIT_OK)
        return code;
    struct watch watch = {.search = search,
                          .outcome = outcome,
                          .bound = bound,
                          .bytes_least = EXCHANGES_LEAST *
                                         experiment.gossip.every *
                                         candidate->step.bytes,
                          .peers = experiment.peers};
    *outcome = (struct search_outcome){.best = NAN};
    experiment.evaluations = KITH_EVALUATE_EVERY;
    experiment.evaluate_ns = kith_cli_search_period(search, candidate);
    experiment.evaluate_steps = 0;
    code =
        kith_cli_compute_open(search->arguments, &experiment, CLI_COMPUTE_ONE);
    if (code == KITH_EXIT_OK)
        code = simulate(search, &experiment, &watch);
    kith_experiment_close(&experiment);
    search->runs++;
    *behind = watch.behind;
    return code;
}
