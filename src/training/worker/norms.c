/* LARS' norms in parts, as a round: `norms` of collective-sites.
 *
 *   SNAPSHOT   the mean gradient is clipped; lambda_l of the own layers -> sent
 *   MERGE      lambda_l of their layers <- what each other member sent
 *   the step   lambda_l of layers that did not come are found here
 *
 * A message is L float32, the sender's part first. The core has held its round
 * against the own one, so rates are of the same step. A part of which nothing
 * comes costs time alone; one of a member that stepped along other numbers than
 * its neighbours (two_level.c says when) is a rate that is nearly right.
 *
 * Source  Shi et al., MLSys 2021 (PTO); kith/lars_parts.h.
 * Test    unit/test_lars_site.c (T4.6), integration/test_lab_lars_site.sh */
#include "worker_state.h"

#include <stdlib.h>
#include <string.h>

#include "kith/assert.h"

static bool is_of_norms(const struct kith_worker *worker,
                        const struct kith_work *work)
{
    return worker->norms.rates != NULL && work->pattern == KITH_PATTERN_ROUND &&
           kith_topology_sites_round(worker->task.graph, work->round).way ==
               KITH_SITES_NORMS;
}

static uint32_t members(const struct kith_worker *worker)
{
    return worker->peers /
           kith_topology_sites(worker->task.graph, worker->peers);
}

static struct kith_optimiser_step step_of(struct kith_worker *worker)
{
    KITH_ASSERT(worker->waiting > 0);
    return (struct kith_optimiser_step){.config =
                                            &worker->task.training->config,
                                        .backend = worker->backend,
                                        .layout = worker->layout,
                                        .step = worker->waiting - 1,
                                        .gradient = worker->gradient,
                                        .x = worker->slots[KITH_SLOT_LIVE]};
}

static struct kith_lars_gather gather_of(struct kith_worker *worker,
                                         const struct kith_optimiser_step *step)
{
    return (struct kith_lars_gather){.step = step,
                                     .site = worker->self / members(worker),
                                     .workers = members(worker),
                                     .worker = worker->self % members(worker),
                                     .rates = worker->norms.rates,
                                     .have = worker->norms.have};
}

bool kith_worker_norms_open(struct kith_worker *worker)
{
    const struct kith_topology *graph = worker->task.graph;
    if (graph == NULL || !graph->options.norms)
        return true;
    worker->norms.rates = calloc(kith_lars_layers(worker->layout) + 1,
                                 sizeof *worker->norms.rates);
    return worker->norms.rates != NULL;
}

uint64_t kith_worker_norms_found(const struct kith_worker *worker)
{
    return worker->norms.layers;
}

void kith_worker_norms_make(struct kith_worker *worker,
                            const struct kith_work *work,
                            struct kith_work_edge *edge)
{
    if (!is_of_norms(worker, work) || edge->scalars_sent[0] == 0)
        return;
    edge->scalars_sent[0] = worker->waiting > 0;
    if (worker->waiting == 0)
        return;
    const struct kith_optimiser_step step = step_of(worker);
    struct kith_lars_gather gather = gather_of(worker, &step);
    KITH_ASSERT(gather.have == 0);
    (void)kith_optimiser_clip(&step);
    worker->norms.layers += kith_lars_gather_compute(&gather, gather.worker);
    const struct kith_lars_message own = kith_lars_gather_own(&gather);
    memcpy(worker->slots[edge->sent], own.rates, own.count * sizeof *own.rates);
    worker->norms.have = gather.have;
}

void kith_worker_norms_take(struct kith_worker *worker,
                            const struct kith_work *work,
                            struct kith_work_edge *edge)
{
    if (!is_of_norms(worker, work) || edge->refused ||
        worker->norms.have == 0 || edge->scalars_received[0] == 0)
        return;
    char error[KITH_LARS_ERROR_BYTES];
    const struct kith_optimiser_step step = step_of(worker);
    struct kith_lars_gather gather = gather_of(worker, &step);
    const uint32_t from = edge->peer % gather.workers;
    const struct kith_lars_part part =
        kith_lars_part(worker->layout, gather.workers, from);
    const struct kith_lars_message theirs = {
        .site = edge->peer / gather.workers,
        .worker = from,
        .step = step.step,
        .count = part.end - part.first,
        .rates = worker->slots[edge->inbox]};
    edge->refused = kith_lars_gather_take(&gather, &theirs, error) != KITH_OK;
    worker->norms.have = gather.have;
}

const float *kith_worker_norms_end(struct kith_worker *worker)
{
    if (worker->norms.have == 0)
        return NULL;
    const struct kith_optimiser_step step = step_of(worker);
    struct kith_lars_gather gather = gather_of(worker, &step);
    worker->norms.layers += kith_lars_gather_finish(&gather);
    worker->norms.have = 0;
    return gather.rates;
}
