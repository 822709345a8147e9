/* TRAIN: a step of one's own, and the gradients that are shared before it.
 * Test: unit/test_worker_train.c, unit/test_sync_sgd_buckets.c */
#include "worker_state.h"

#include <math.h>
#include <string.h>

#include "kith/assert.h"
#include "kith/lars_parts.h"

static void scale_live(struct kith_worker *worker, double factor)
{
    if (factor != 1)
        worker->backend->scale(worker->layout->gossiped, factor,
                               worker->slots[KITH_SLOT_LIVE]);
}

/* z = factor x of what is gossiped; what is frozen stands in x as it is. Where
 * the step is one of z, x is z as long as it lasts. */
static void *scaled(struct kith_worker *worker, double factor)
{
    void *live = worker->slots[KITH_SLOT_LIVE];
    if (worker->at == NULL) {
        scale_live(worker, factor);
        return live;
    }
    worker->backend->copy(worker->dim, worker->at, live);
    worker->backend->scale(worker->layout->gossiped, factor, worker->at);
    return worker->at;
}

/* Buffers that have moved at z go back to x. */
static void keep_buffers(struct kith_worker *worker, double factor)
{
    const struct kith_layout *layout = worker->layout;
    const size_t count = layout->gossiped - layout->trained;
    if (worker->at == NULL || count == 0)
        return;
    void *live = kith_worker_element(worker, worker->slots[KITH_SLOT_LIVE],
                                     layout->trained);
    worker->backend->copy(
        count, live, kith_worker_element(worker, worker->at, layout->trained));
    worker->backend->scale(count, 1 / factor, live);
}

double kith_worker_rate(const struct kith_worker *worker, uint64_t step)
{
    const struct kith_training *training = worker->task.training;
    return training->config.learning_rate *
           kith_schedule_factor(&training->schedule, step, worker->steps);
}

struct kith_algebra kith_worker_algebra(struct kith_worker *worker)
{
    return (struct kith_algebra){.backend = worker->backend,
                                 .dim = worker->layout->gossiped,
                                 .peers = worker->peers,
                                 .self = worker->self,
                                 .seed = worker->task.seed,
                                 .coefficients = worker->task.coefficients,
                                 .graph = worker->task.graph,
                                 .compression = &worker->task.compression,
                                 .live = worker->slots[KITH_SLOT_LIVE],
                                 .scalars = worker->scalars,
                                 .vectors = worker->own,
                                 .edges = worker->edges,
                                 .edge_scalars = worker->edge_scalars,
                                 .edge_count = worker->edge_count,
                                 .edge_vectors =
                                     worker->algorithm->edge_vectors,
                                 .every = worker->task.every,
                                 .scratch = worker->algorithm_scratch,
                                 .places = worker->places,
                                 .gradient = worker->gradient,
                                 .decayed = worker->layout->decayed,
                                 .trained = worker->layout->trained,
                                 .layers = kith_lars_layers(worker->layout)};
}

static void run_hook(struct kith_worker *worker, uint64_t step,
                     void (*hook)(struct kith_algebra *algebra))
{
    if (hook == NULL)
        return;
    struct kith_algebra algebra = kith_worker_algebra(worker);
    algebra.step = step;
    algebra.rate = kith_worker_rate(worker, step);
    hook(&algebra);
}

/* Values [at, at + count) of the layout, as if they were all. */
static struct kith_layout layout_of(const struct kith_worker *worker,
                                    struct kith_range range)
{
    const struct kith_layout *whole = worker->layout;
    const size_t decayed =
        range.at < whole->decayed ? whole->decayed - range.at : 0;
    const size_t trained =
        range.at < whole->trained ? whole->trained - range.at : 0;
    return (struct kith_layout){
        .dim = range.count,
        .decayed = decayed < range.count ? decayed : range.count,
        .trained = trained < range.count ? trained : range.count,
        .gossiped = range.count};
}

static bool descend(struct kith_worker *worker, uint64_t step, double factor,
                    void *gradient, const struct kith_layout *layout, size_t at)
{
    struct kith_optimiser_config config = worker->task.training->config;
    void *state[KITH_STATES_MAX];
    config.weight_decay *= factor;
    for (unsigned i = 0; i < KITH_STATES_MAX; i++)
        state[i] = worker->state[i] == NULL
                       ? NULL
                       : kith_worker_element(worker, worker->state[i], at);
    const struct kith_optimiser_step descent = {
        .config = &config,
        .backend = worker->backend,
        .layout = layout,
        .rate = kith_worker_rate(worker, step),
        .step = step,
        .gradient = kith_worker_element(worker, gradient, at),
        .state = state,
        .x = kith_worker_element(worker, worker->slots[KITH_SLOT_LIVE], at),
        .scratch = worker->scratch,
        .rates = kith_worker_norms_end(worker)};
    return worker->task.training->optimiser->step(&descent);
}

/* Dropout draws anew for each part of a step's batch. */
static void next_batch(struct kith_worker *worker, uint64_t part)
{
    struct kith_batch *batch = &worker->guarding.batch;
    *batch = (struct kith_batch){.rows = 1};
    if (worker->loader != NULL)
        kith_loader_next(worker->loader, batch);
    kith_worker_spoil_batch(worker, batch);
    batch->entity = worker->self;
    batch->seed = worker->task.seed;
    batch->step = part;
}

/* The gradient of a part of the step's batch, its share of the mean; returns
 * its share of the loss. */
static double micro_batch(struct kith_worker *worker, void *x, bool add,
                          struct kith_range steps)
{
    const struct kith_pass pass = {.x = x,
                                   .gradient = worker->gradient,
                                   .batch = &worker->guarding.batch,
                                   .scale = 1.0 / kith_worker_parts(worker),
                                   .add = add};
    return pass.scale * kith_graph_portion(worker->network, &pass,
                                           (uint32_t)steps.at,
                                           (uint32_t)(steps.at + steps.count));
}

static void begin_step(const struct kith_worker *worker)
{
    if (worker->backend->step_begin != NULL)
        worker->backend->step_begin();
}

/* What the step found on the device; `finite` where there is none. */
static bool end_step(const struct kith_worker *worker, bool finite,
                     double *loss)
{
    struct kith_found found = {.loss = 0, .finite = finite};
    if (worker->backend->step_end != NULL)
        worker->backend->step_end(&found);
    /* A loss by hand was returned at once. */
    *loss += found.loss / kith_worker_parts(worker);
    return found.finite;
}

/* The step's batch at x: the loss, and the gradient in its place. `steps` of
 * the network for its last part; the parts before it go with the first. */
static double run_batch(struct kith_worker *worker, void *x, uint64_t step,
                        struct kith_range steps)
{
    const uint32_t parts = kith_worker_parts(worker);
    const struct kith_range all = {0, kith_graph_steps(worker->network)};
    double loss = 0;
    for (uint32_t part = steps.at > 0 ? parts - 1 : 0; part < parts; part++) {
        if (steps.at == 0)
            next_batch(worker, step * parts + part);
        loss +=
            micro_batch(worker, x, part > 0, part + 1 < parts ? all : steps);
    }
    return loss;
}

static double whole_batch(struct kith_worker *worker, void *x, uint64_t step)
{
    return run_batch(worker, x, step,
                     (struct kith_range){0, kith_graph_steps(worker->network)});
}

/* A model without a gradient: the algorithm's own part of a step alone. */
static void run_still(struct kith_worker *worker, uint64_t step)
{
    const struct kith_algorithm *algorithm = worker->algorithm;
    if (worker->dim == 0 ||
        (algorithm->before_step == NULL && algorithm->after_step == NULL))
        return;
    (void)kith_worker_own_live(worker, true);
    run_hook(worker, step, algorithm->before_step);
    run_hook(worker, step, algorithm->after_step);
}

/* Of a gradient that waited for its peers' the buckets whose bits are set, of
 * an optimiser for which a bucket is like any other values. */
static bool descend_buckets(struct kith_worker *worker, uint64_t mask)
{
    bool finite = true;
    (void)kith_worker_own_live(worker, true);
    for (uint32_t b = 0; b < worker->parts.buckets; b++) {
        if (!(mask >> b & 1u))
            continue;
        const struct kith_bucket bucket = kith_worker_bucket(worker, b);
        for (unsigned i = 0; i < 2; i++) {
            const struct kith_layout layout =
                layout_of(worker, bucket.ranges[i]);
            if (layout.trained > 0)
                finite =
                    descend(worker, worker->waiting - 1, 1, worker->gradient,
                            &layout, bucket.ranges[i].at) &&
                    finite;
        }
    }
    worker->parts.stepped |= mask;
    return finite;
}

/* A gradient that waited for its peers', or what is left of it.
 * Test: unit/test_sync_sgd.c */
bool kith_worker_descend_shared(struct kith_worker *worker)
{
    const uint64_t stepped = worker->parts.stepped;
    bool finite = true;
    if (worker->waiting == 0)
        return true;
    if (stepped == 0)
        finite =
            kith_worker_descend(worker, worker->waiting - 1, worker->gradient);
    else
        finite = descend_buckets(worker, ~stepped);
    worker->waiting = worker->parts.stepped = 0;
    return finite;
}

static void gradient_of(struct kith_worker *worker, uint64_t step,
                        struct kith_range steps,
                        struct kith_work_result *result)
{
    KITH_ASSERT(kith_model_learns(worker->model) && worker->at == NULL);
    void *x = kith_worker_own_live(worker, true);
    begin_step(worker);
    result->loss = run_batch(worker, x, step, steps);
    (void)end_step(worker, true, &result->loss);
    result->finite = isfinite(result->loss);
}

/* The part with the loss. Where the rounds that were to share the last gradient
 * have not ended here, it is one's own that is stepped along. */
static void loss_part(struct kith_worker *worker, const struct kith_work *work,
                      struct kith_work_result *result)
{
    const bool stepped =
        kith_worker_descend_shared(worker) && !worker->parts.is_spoilt;
    worker->parts.is_spoilt = false;
    gradient_of(worker, work->step, kith_worker_part_steps(worker, work->part),
                result);
    worker->waiting = result->finite ? work->step + 1 : 0;
    worker->guarding.has_trained = true;
    worker->guarding.steps = work->step + 1;
    result->finite = result->finite && stepped;
    worker->not_finite = !result->finite;
    kith_worker_judge_step(worker, result);
    worker->parts.loss = result->loss;
}

/* KITH_SHARES_GRADIENTS: the gradient of the step's batch, and no step. One
 * that did not begin well is not gone on with. */
static void run_gradient(struct kith_worker *worker,
                         const struct kith_work *work,
                         struct kith_work_result *result)
{
    const uint64_t needed = kith_worker_part_needs(worker, work->part);
    if (worker->waiting > 0 && needed != 0 &&
        !descend_buckets(worker, needed & ~worker->parts.stepped))
        worker->parts.is_spoilt = true;
    if (work->part == worker->parts.of_loss)
        loss_part(worker, work, result);
    else
        gradient_of(worker, work->step,
                    kith_worker_part_steps(worker, work->part), result);
    kith_worker_spoil_gradient(worker, work->part);
    kith_worker_part_ends(worker, work->part, result);
}

/* x <- x - rate g(z), z = factor x. Weight decay pulls at z, too: decay times
 * factor at x. KITH_STEPS_AT_Z: z <- z - rate g(z). */
void kith_worker_train(struct kith_worker *worker, const struct kith_work *work,
                       struct kith_work_result *result)
{
    const uint64_t step = work->step;
    if (worker->trainer != NULL) {
        kith_worker_trainer_step(worker, step, result);
        return;
    }
    if (!kith_model_learns(worker->model)) {
        run_still(worker, step);
        result->loss = (double)NAN; /* it has none */
        return;
    }
    if (worker->algorithm->flags & KITH_SHARES_GRADIENTS) {
        run_gradient(worker, work, result);
        return;
    }
    const double factor = kith_worker_factor(worker);
    (void)kith_worker_own_live(
        worker, true); /* Buffers move within the loss already. */
    run_hook(worker, step, worker->algorithm->before_step);
    void *x = scaled(worker, factor);
    begin_step(worker);
    result->loss = whole_batch(worker, x, step);
    kith_worker_spoil_gradient(worker, 0);
    keep_buffers(worker, factor);
    run_hook(worker, step, worker->algorithm->direction);
    bool finite = descend(worker, step, worker->at == NULL ? 1 : factor,
                          worker->gradient, worker->layout, 0);
    if (worker->at == NULL)
        scale_live(worker, 1 / factor);
    run_hook(worker, step, worker->algorithm->after_step);
    worker->guarding.has_trained = true;
    worker->guarding.steps = step + 1;
    finite = end_step(worker, finite, &result->loss);
    result->finite = finite && isfinite(result->loss);
    worker->not_finite = !result->finite;
    kith_worker_judge_step(worker, result);
}

void *kith_worker_gradient(struct kith_worker *worker, uint64_t step,
                           struct kith_work_result *result)
{
    const struct kith_range all = {0, kith_graph_steps(worker->network)};
    *result = (struct kith_work_result){.kind = KITH_WORK_TRAIN};
    gradient_of(worker, step, all, result);
    return worker->gradient;
}

bool kith_worker_descend(struct kith_worker *worker, uint64_t step,
                         void *gradient)
{
    double loss = 0;
    KITH_ASSERT(worker->at == NULL);
    (void)kith_worker_own_live(worker, true);
    begin_step(worker);
    const bool finite = descend(worker, step, 1, gradient, worker->layout, 0);
    return end_step(worker, finite, &loss);
}
