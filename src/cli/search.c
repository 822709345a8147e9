/* kith plan --search: of settings around the closed forms those with the least
 * time, or bytes, to a target, by simulation.
 *
 * A run ends at the first evaluation with the target, or where it is behind the
 * best so far: none is shortened otherwise, for a learning rate's schedule is
 * that of the whole run. What would be behind by the closed forms is not begun:
 *
 *   step(c) x least steps to the target of any with its batch and peers
 *       >= MARGIN x best
 *
 * step(c) by G2 (or its bytes). Fewer steps than any so far are least to be
 * expected of those that send most in a step: such a one goes first, to its
 * end, for each batch and number of peers; then those that differ from the best
 * so far in the fewest keys, by step(c). The last two are run with more seeds,
 * the mean decides. The same file, seed and options give the same answer. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "kith/sim.h"
#include "kith/text.h"
#include "search_command.h"

/* What is within it of the best is run to its end: closed forms are off, and
 * seeds differ. */
#define MARGIN 1.15
#define RUNS 64u
#define RUNS_LEAST 8u
#define RUNS_MOST 100000u
#define SEEDS 2u
#define SEEDS_MAX 100u
#define LAST 2u
/* Evaluations of the file's own up to its target; else once more, closer. */
#define EVALUATIONS_LEAST 25.0
#define LOOKS_MAX 4u

/* ---- The search */

/* `left`: runs that are kept for later. */
static bool is_over(const struct search *search, uint32_t left)
{
    return kith_cli_stop || search->runs + left >= search->runs_most;
}

/* a before b: by the goal, and where that is the same by the other. */
static bool is_better(const struct search *search,
                      const struct search_outcome *a,
                      const struct search_outcome *b)
{
    const double goal = search_goal(search, a) - search_goal(search, b);
    return goal != 0          ? goal < 0
           : search->is_bytes ? a->time_s < b->time_s
                              : a->bytes < b->bytes;
}

static bool is_alike(const struct search_candidate *a,
                     const struct search_candidate *b)
{
    return a->peers == b->peers && a->batch == b->batch;
}

/* Least steps to the target with this batch and so many peers; NaN: none. */
static double least_steps(const struct search *search,
                          const struct search_candidate *candidate)
{
    double least = NAN;
    for (uint32_t i = 0; i < search->count; i++) {
        const struct search_candidate *other = &search->candidates[i];
        if (other->state == SEARCH_REACHED && is_alike(other, candidate))
            least = fmin(least, other->outcome.steps);
    }
    return least;
}

static double best_goal(const struct search *search)
{
    return search->best == UINT32_MAX
               ? INFINITY
               : search_goal(search, &search->candidates[search->best].outcome);
}

static void note(struct search *search, uint32_t at)
{
    struct search_candidate *candidate = &search->candidates[at];
    candidate->state = SEARCH_REACHED;
    if (search->best == UINT32_MAX ||
        is_better(search, &candidate->outcome,
                  &search->candidates[search->best].outcome))
        search->best = at;
}

static int try_candidate(struct search *search, uint32_t at, bool is_first)
{
    struct search_candidate *candidate = &search->candidates[at];
    const double best = best_goal(search);
    if (candidate->state != SEARCH_OPEN)
        return KITH_EXIT_OK;
    candidate->least =
        search_step(search, candidate) * least_steps(search, candidate);
    if (!is_first && candidate->least >= MARGIN * best) {
        candidate->state = SEARCH_SKIPPED;
        return KITH_EXIT_OK;
    }
    bool behind = false;
    if (is_over(search, LAST * (search->seeds - 1)))
        return KITH_EXIT_OK;
    kith_cli_progress("run %u of at most %llu: %s", (unsigned)search->runs + 1,
                      (unsigned long long)search->runs_most,
                      candidate->cell->label);
    const int code = kith_cli_search_run(
        search, candidate, 0, is_first ? (double)INFINITY : MARGIN * best,
        &candidate->outcome, &behind);
    if (code != KITH_EXIT_OK || (kith_cli_stop && !candidate->outcome.reached))
        return code;
    candidate->state = behind ? SEARCH_BEHIND : SEARCH_SHORT;
    if (candidate->outcome.reached)
        note(search, at);
    return code;
}

/* Of those with its batch and peers nobody sends more in a step. */
static bool is_first(const struct search *search, uint32_t at)
{
    const struct search_candidate *candidate = &search->candidates[at];
    for (uint32_t i = 0; i < search->count; i++) {
        const struct search_candidate *other = &search->candidates[i];
        if (other->cell->refused[0] == '\0' && is_alike(other, candidate) &&
            (other->step.bytes > candidate->step.bytes ||
             (other->step.bytes == candidate->step.bytes && i < at)))
            return false;
    }
    return true;
}

/* The one with the least of the goal in a step; of those the one that sends
 * more, for it learns in fewer steps, or takes less time. */
static bool is_sooner(const struct search *search,
                      const struct search_candidate *a,
                      const struct search_candidate *b)
{
    const double step = search_step(search, a) - search_step(search, b);
    return step != 0          ? step < 0
           : search->is_bytes ? a->step.step_s < b->step.step_s
                              : a->step.bytes > b->step.bytes;
}

/* Keys in which it is not what the best is. */
static uint32_t distance(const struct search *search, uint32_t at)
{
    const struct kith_cell *a = search->candidates[at].cell;
    uint32_t count = 0;
    if (search->best == UINT32_MAX)
        return 0;
    const struct kith_cell *b = search->candidates[search->best].cell;
    for (uint32_t i = 0; i < a->setting_count && i < b->setting_count; i++)
        count += strcmp(a->settings[i].value, b->settings[i].value) != 0;
    return count;
}

/* Next to the best first: whatever --runs leaves out is far from it. */
static uint32_t next_of(const struct search *search)
{
    const struct search_candidate *all = search->candidates;
    uint32_t next = UINT32_MAX, least = UINT32_MAX;
    for (uint32_t i = 0; i < search->count; i++) {
        if (all[i].state != SEARCH_OPEN)
            continue;
        const uint32_t keys = distance(search, i);
        if (keys < least ||
            (keys == least && is_sooner(search, &all[i], &all[next]))) {
            next = i;
            least = keys;
        }
    }
    return next;
}

static int try_all(struct search *search)
{
    int code = KITH_EXIT_OK;
    for (uint32_t i = 0; i < search->count && code == KITH_EXIT_OK; i++)
        if (search->candidates[i].state == SEARCH_OPEN && is_first(search, i))
            code = try_candidate(search, i, true);
    while (code == KITH_EXIT_OK) {
        const uint32_t next = next_of(search);
        if (next == UINT32_MAX)
            break;
        code = try_candidate(search, next, false);
        if (search->candidates[next].state == SEARCH_OPEN)
            break; /* runs are over */
    }
    return code;
}

/* The file's own: what others are compared with, and how often to look. */
static int try_own(struct search *search)
{
    const struct kith_experiment *experiment = search->facts->experiment;
    char error[KITH_EXPERIMENT_ERROR_BYTES] = "";
    struct search_outcome *outcome = &search->own->outcome;
    struct kith_dataset *set;
    bool behind;
    const enum kith_err err =
        kith_cli_dataset_cache_get(&search->cache, experiment, &set, error);
    if (err != KITH_OK)
        return kith_cli_fail(search->arguments, KITH_EXIT_DATA, "%s", error);
    for (unsigned i = 0; i < LOOKS_MAX; i++) {
        kith_cli_search_evaluations(search, set);
        kith_cli_progress("run %u of at most %llu: the file's own",
                          (unsigned)search->runs + 1,
                          (unsigned long long)search->runs_most);
        const int code = kith_cli_search_run(
            search, search->own, 0, (double)INFINITY, outcome, &behind);
        if (code == KITH_EXIT_OK && !kith_cli_stop && isnan(outcome->best))
            return kith_cli_fail(
                search->arguments, KITH_EXIT_EXPERIMENT,
                "--search: the model %s has no %s at any evaluation, so that "
                "nothing comes to --target",
                experiment->model->name,
                search->target.is_accuracy ? "accuracy" : "loss");
        if (code != KITH_EXIT_OK || !outcome->reached || kith_cli_stop ||
            outcome->steps >= EVALUATIONS_LEAST * search->look_steps)
            return code;
    }
    return KITH_EXIT_OK;
}

/* As a candidate, too. */
static void note_own(struct search *search)
{
    for (uint32_t i = 0; i < search->count; i++) {
        struct search_candidate *candidate = &search->candidates[i];
        if (!candidate->is_own && candidate != search->own)
            continue;
        candidate->outcome = search->own->outcome;
        candidate->state = SEARCH_SHORT;
        if (candidate->outcome.reached)
            note(search, i);
    }
}

/* ---- The last two */

/* With more seeds. One that does not come there leaves no finite mean. */
static int run_seeds(struct search *search, struct search_candidate *candidate)
{
    double low = search_goal(search, &candidate->outcome), high = low;
    candidate->seeds = 1;
    candidate->time_s = candidate->outcome.time_s;
    candidate->bytes = candidate->outcome.bytes;
    for (uint32_t k = 1; k < search->seeds && !is_over(search, 0); k++) {
        struct search_outcome outcome;
        bool behind;
        kith_cli_progress("run %u of at most %llu: seed %u of %s",
                          (unsigned)search->runs + 1,
                          (unsigned long long)search->runs_most,
                          (unsigned)k + 1, candidate->cell->label);
        const int code = kith_cli_search_run(
            search, candidate, k, (double)INFINITY, &outcome, &behind);
        if (code != KITH_EXIT_OK)
            return code;
        if (kith_cli_stop && !outcome.reached)
            break;
        if (!outcome.reached)
            outcome.time_s = outcome.bytes = INFINITY;
        candidate->seeds++;
        candidate->time_s +=
            (outcome.time_s - candidate->time_s) / candidate->seeds;
        candidate->bytes +=
            (outcome.bytes - candidate->bytes) / candidate->seeds;
        low = fmin(low, search_goal(search, &outcome));
        high = fmax(high, search_goal(search, &outcome));
    }
    candidate->spread = (high - low) / 2;
    return KITH_EXIT_OK;
}

/* The best that has come there, but for that one. */
static uint32_t best_but(const struct search *search, uint32_t that)
{
    uint32_t best = UINT32_MAX;
    for (uint32_t i = 0; i < search->count; i++) {
        const struct search_candidate *candidate = &search->candidates[i];
        if (candidate->state == SEARCH_REACHED && i != that &&
            (best == UINT32_MAX ||
             is_better(search, &candidate->outcome,
                       &search->candidates[best].outcome)))
            best = i;
    }
    return best;
}

/* Runs the best two with more seeds; *again: one of them has not come there
 * with each, and is none of the best. */
static int run_last(struct search *search, uint32_t last[LAST], bool *again)
{
    last[0] = search->best = best_but(search, UINT32_MAX);
    last[1] = best_but(search, search->best);
    *again = false;
    for (unsigned i = 0; i < LAST && last[i] != UINT32_MAX; i++) {
        struct search_candidate *candidate = &search->candidates[last[i]];
        if (candidate->seeds > 0)
            continue;
        const int code = run_seeds(search, candidate);
        if (code != KITH_EXIT_OK)
            return code;
        if (!isfinite(candidate->time_s)) {
            candidate->state = SEARCH_SHORT;
            search->is_unsteady = *again = true;
        }
    }
    return KITH_EXIT_OK;
}

static int choose(struct search *search)
{
    uint32_t last[LAST];
    bool again = true;
    while (again) {
        const int code = run_last(search, last, &again);
        if (code != KITH_EXIT_OK)
            return code;
    }
    if (last[0] == UINT32_MAX || last[1] == UINT32_MAX)
        return KITH_EXIT_OK;
    const struct search_candidate *a = &search->candidates[last[0]];
    const struct search_candidate *b = &search->candidates[last[1]];
    const bool is_same = a->seeds == b->seeds;
    if (is_same &&
        (search->is_bytes ? b->bytes < a->bytes : b->time_s < a->time_s))
        search->best = last[1];
    return KITH_EXIT_OK;
}

/* ---- Before and after */

/* What comes nearest, where nobody comes there. */
static int nobody(const struct search *search)
{
    const struct search_candidate *best = search->own;
    for (uint32_t i = 0; i < search->count; i++) {
        const struct search_candidate *candidate = &search->candidates[i];
        const double score = candidate->outcome.best;
        if (candidate->state != SEARCH_SHORT)
            continue;
        if (isnan(best->outcome.best) ||
            (search->target.is_accuracy ? score > best->outcome.best
                                        : score < best->outcome.best))
            best = candidate;
    }
    const char *what = search->target.is_accuracy ? "accuracy" : "loss";
    if (kith_cli_stop)
        return kith_cli_fail(search->arguments, KITH_EXIT_INTERRUPTED,
                             "ended in run %u, before any setting came to "
                             "%s=%g",
                             (unsigned)search->runs, what,
                             search->target.value);
    if (search->is_unsteady)
        return kith_cli_fail(
            search->arguments, KITH_EXIT_FAILED,
            "--target: no setting comes to %s=%g with each of %u seeds in %u "
            "runs; raise stop of the file, or ask for less",
            what, search->target.value, (unsigned)search->seeds,
            (unsigned)search->runs);
    return kith_cli_fail(
        search->arguments, KITH_EXIT_FAILED,
        "--target: no setting comes to %s=%g in %u runs; the best has %.4g "
        "(%s); raise stop of the file, or ask for less",
        what, search->target.value, (unsigned)search->runs, best->outcome.best,
        best == search->own ? "the file's own" : best->cell->label);
}

static int read_goal(const struct cli_arguments *arguments,
                     struct search *search)
{
    const struct kith_experiment *experiment = search->facts->experiment;
    const char *goal = arguments->values[CLI_SEARCH];
    const char *price = arguments->values[CLI_PRICE];
    uint64_t seeds = SEEDS, threads = 1;
    search->is_bytes = strcmp(goal, "bytes") == 0;
    if (!search->is_bytes && strcmp(goal, "time") != 0)
        return kith_cli_fail(arguments, KITH_EXIT_USAGE,
                             "--search: found \"%.60s\"; allowed: time, bytes",
                             goal);
    search->price = NAN;
    if (price != NULL && (kith_text_double(price, &search->price) != KITH_OK ||
                          !(search->price >= 0)))
        return kith_cli_fail(arguments, KITH_EXIT_USAGE,
                             "--price: found \"%.60s\"; allowed: a number from "
                             "0, of a peer and hour",
                             price);
    int code = kith_cli_target(arguments, &search->target);
    if (code == KITH_EXIT_OK)
        code = kith_cli_number(arguments, CLI_RUNS, RUNS_LEAST, RUNS_MOST,
                               &search->runs_most);
    if (code == KITH_EXIT_OK)
        code = kith_cli_number(arguments, CLI_SEEDS, 1, SEEDS_MAX, &seeds);
    if (code == KITH_EXIT_OK)
        code = kith_cli_number(arguments, CLI_THREADS, 1, SIM_THREADS_MAX,
                               &threads);
    search->seeds = (uint32_t)seeds;
    search->threads = (uint32_t)threads;
    if (code != KITH_EXIT_OK)
        return code;
    const uint64_t kept = LAST * (seeds - 1) + LOOKS_MAX;
    if (search->runs_most <= kept)
        return kith_cli_fail(arguments, KITH_EXIT_USAGE,
                             "--seeds %u: found --runs %llu, of which %llu are "
                             "for the last two settings and for the file's "
                             "own; allowed: more, or fewer seeds",
                             search->seeds,
                             (unsigned long long)search->runs_most,
                             (unsigned long long)kept);
    if (isnan(search->target.value) && experiment->target_loss > 0)
        search->target.value = experiment->target_loss;
    if (isnan(search->target.value))
        return kith_cli_fail(arguments, KITH_EXIT_USAGE,
                             "--search: to what? give --target accuracy=X or "
                             "loss=X, or target_loss in the file");
    if (experiment->model->reports)
        return kith_cli_fail(
            arguments, KITH_EXIT_EXPERIMENT,
            "--search: model: found %s, a training loop of yours, which kith "
            "plan cannot run; allowed: a built-in model (simulate its settings "
            "with kith_simulate() or kith.simulate())",
            experiment->model->name);
    if (search->target.is_accuracy &&
        experiment->model->input == KITH_INPUT_NONE)
        return kith_cli_fail(arguments, KITH_EXIT_USAGE,
                             "--target: the model %s has no accuracy; allowed: "
                             "loss=X",
                             experiment->model->name);
    return code;
}

static int search_all(struct search *search)
{
    int code = kith_cli_search_open(search);
    kith_cli_catch_signals();
    if (code == KITH_EXIT_OK)
        code = try_own(search);
    if (code == KITH_EXIT_OK) {
        note_own(search);
        code = try_all(search);
    }
    if (code == KITH_EXIT_OK && search->best != UINT32_MAX)
        code = choose(search);
    kith_cli_progress_end();
    if (code != KITH_EXIT_OK)
        return code;
    if (search->best == UINT32_MAX)
        return nobody(search);
    code = kith_cli_search_show(search);
    if (code == KITH_EXIT_OK && kith_cli_stop)
        code = kith_cli_fail(search->arguments, KITH_EXIT_INTERRUPTED,
                             "ended before all were tried: the best so far");
    return code;
}

int kith_cli_plan_search(const struct cli_arguments *arguments,
                         const struct plan_facts *facts)
{
    struct search *search = calloc(1, sizeof *search);
    struct cli_axes *axes = calloc(1, sizeof *axes);
    int code = KITH_EXIT_OK;
    if (search == NULL || axes == NULL) {
        code = kith_cli_fail(arguments, KITH_EXIT_RESOURCES, "out of memory");
        goto out;
    }
    *search = (struct search){.arguments = arguments,
                              .facts = facts,
                              .axes = axes,
                              .runs_most = RUNS,
                              .best = UINT32_MAX};
    code = read_goal(arguments, search);
    if (code == KITH_EXIT_OK)
        code = search_all(search);
    free(search->candidates);
    kith_plan_free(&search->plan);
    kith_cli_dataset_cache_close(&search->cache);
out:
    free(axes);
    free(search);
    return code;
}
