/* A peer's own evaluations. See own_curve.h.
 *
 * They stall training, by 3 % at most, and nothing else: the loop thread goes
 * on to answer meanwhile. A thread of its own would need a copy of the model
 * and a core that a peer may not have. */
#include "own_curve.h"

#include <stdlib.h>
#include <string.h>

#include "kith/assert.h"
#include "kith/text.h"

enum kith_err kith_own_curve_open(struct kith_own_curve *own,
                                  const struct kith_experiment *experiment,
                                  const struct kith_examples *test,
                                  struct kith_worker *worker, uint64_t steps,
                                  char *error)
{
    const struct kith_curve_run run = {
        .experiment = experiment,
        .test = test,
        .steps = steps == UINT64_MAX ? 0 : (double)steps,
        .measured = true,
        .step_ns = experiment->compute.step_ns};
    const struct kith_curve_plan plan = kith_curve_plan(&run);
    const size_t dim = kith_worker_dim(worker);
    *own = (struct kith_own_curve){
        .worker = worker,
        .curve = kith_curve_start(&plan),
        .run = {.steps_total = run.steps,
                .time_total_ns = experiment->stop.time_ns},
        .period_ns = experiment->evaluate_ns,
        .due_ns = experiment->evaluate_ns};
    if (!kith_model_learns(experiment->model) ||
        (plan.points == 0 && own->period_ns == 0))
        return KITH_OK;
    /* All memory before the first step: none is no reason to end in the middle.
     */
    own->z = malloc(dim * sizeof *own->z);
    enum kith_err err = KITH_ENOMEM;
    if (own->z == NULL)
        (void)kith_text_fail(error, KITH_DATA_ERROR_BYTES, err,
                             "no memory to evaluate %zu parameters", dim);
    else
        err = kith_evaluator_open(experiment, experiment->backend, test,
                                  &own->evaluator, error);
    if (err == KITH_OK)
        err = kith_evaluator_part(own->evaluator, plan.rows, error);
    if (err != KITH_OK)
        kith_own_curve_close(own);
    return err;
}

/* A resumed run has drawn the points up to there: they are not made up for. */
void kith_own_curve_pass(struct kith_own_curve *own, uint64_t step)
{
    own->run.steps = (double)step;
    kith_curve_pass(&own->curve, &own->run);
}

/* `evaluate` as a time is at the user's cost; the curve's points are not. */
static bool is_due(struct kith_own_curve *own)
{
    const kith_ns now_ns = own->run.time_ns;
    if (own->period_ns == 0)
        return kith_curve_look(&own->curve, &own->run, now_ns) ==
               KITH_CURVE_POINT;
    if (now_ns < own->due_ns)
        return false;
    /* Whole periods on: those that a long step has missed are not made up. */
    own->due_ns = (now_ns / own->period_ns + 1) * own->period_ns;
    return true;
}

/* Between two steps of the training thread, which alone touches the vectors:
 * x stands still while it is read and scored. */
kith_ns kith_own_curve_step(struct kith_own_curve *own, uint64_t step,
                            struct kith_own_score *score)
{
    char error[KITH_DATA_ERROR_BYTES];
    const kith_ns began_ns = kith_host_now();
    if (own->evaluator == NULL)
        return 0;
    own->run.steps = (double)step;
    own->run.time_ns = began_ns - own->start_ns;
    if (own->run.steps_total > 0 && own->run.steps >= own->run.steps_total)
        return 0; /* The end is somebody else's to evaluate, on all rows. */
    if (!is_due(own))
        return 0;
    kith_worker_read(own->worker, own->z);
    /* What fails here fails the next step, which says so. */
    score->is_new = kith_evaluator_score_part(own->evaluator, own->z,
                                              &score->score, error) == KITH_OK;
    const kith_ns took_ns = kith_host_now() - began_ns;
    kith_curve_took(&own->curve, took_ns);
    return took_ns;
}

void kith_own_curve_close(struct kith_own_curve *own)
{
    kith_evaluator_close(own->evaluator);
    free(own->z);
    own->evaluator = NULL;
    own->z = NULL;
}
