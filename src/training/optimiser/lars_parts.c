/* See kith/lars_parts.h. */
#include "kith/lars_parts.h"

#include <float.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "kith/assert.h"
#include "terms.h"

uint32_t kith_lars_layers(const struct kith_layout *layout)
{
    uint32_t count = 0;
    while (count < layout->view_count &&
           layout->views[count].offset < layout->decayed)
        count++;
    return count;
}

/* Whose layer it is: that of the place of its middle, by halves of a value. */
static uint32_t worker_of(const struct kith_layout *layout, uint32_t workers,
                          uint32_t layer)
{
    const struct kith_model_view *const view = &layout->views[layer];
    const uint64_t middle = 2 * (uint64_t)view->offset + view->elements;
    const uint64_t whole = 2 * (uint64_t)layout->decayed;
    KITH_ASSERT(middle < whole && workers <= KITH_LARS_WORKERS_MAX);
    return (uint32_t)(middle * workers / whole);
}

struct kith_lars_part kith_lars_part(const struct kith_layout *layout,
                                     uint32_t workers, uint32_t worker)
{
    const uint32_t layers = kith_lars_layers(layout);
    struct kith_lars_part part = {.first = 0};
    KITH_ASSERT(worker < workers);
    while (part.first < layers &&
           worker_of(layout, workers, part.first) < worker)
        part.first++;
    for (part.end = part.first;
         part.end < layers && worker_of(layout, workers, part.end) == worker;
         part.end++)
        part.elements += layout->views[part.end].elements;
    return part;
}

const char *kith_lars_parts_want(const struct kith_algorithm *algorithm,
                                 uint32_t sites)
{
    if (!(algorithm->flags & KITH_SHARES_GRADIENTS))
        return "gradients that are shared, as by sync-sgd or two-level: models "
               "that peers step along their own gradients differ, and so do "
               "their norms";
    if (sites != 1)
        return "a single site: models of two sites may differ, and so do their "
               "norms";
    return NULL;
}

uint32_t kith_lars_gather_compute(struct kith_lars_gather *gather,
                                  uint32_t worker)
{
    const struct kith_layout *const layout = gather->step->layout;
    const struct kith_lars_part part =
        kith_lars_part(layout, gather->workers, worker);
    KITH_ASSERT(gather->workers <= KITH_LARS_WORKERS_MAX);
    for (uint32_t i = part.first; i < part.end; i++)
        gather->rates[i] =
            (float)kith_lars_rate(gather->step, &layout->views[i]);
    gather->have |= UINT64_C(1) << worker;
    return part.end - part.first;
}

struct kith_lars_message
kith_lars_gather_own(const struct kith_lars_gather *gather)
{
    const struct kith_lars_part part =
        kith_lars_part(gather->step->layout, gather->workers, gather->worker);
    KITH_ASSERT(gather->have >> gather->worker & 1);
    return (struct kith_lars_message){.site = gather->site,
                                      .worker = gather->worker,
                                      .step = gather->step->step,
                                      .count = part.end - part.first,
                                      .rates = gather->rates + part.first};
}

/* With decay none is above trust / decay, but for the 1 of an empty layer and
 * for rounding. */
static bool are_rates(const struct kith_optimiser_config *config,
                      const struct kith_lars_message *message)
{
    const double most = config->weight_decay > 0
                            ? fmax(1, config->trust / config->weight_decay)
                            : FLT_MAX;
    for (uint32_t i = 0; i < message->count; i++)
        if (!(message->rates[i] >= 0 && message->rates[i] <= most * (1 + 1e-6)))
            return false;
    return true;
}

static enum kith_err complain(char *error, enum kith_err err,
                              const struct kith_lars_message *message,
                              const char *what, uint64_t found, uint64_t wanted)
{
    (void)snprintf(error, KITH_LARS_ERROR_BYTES,
                   "taking rates of worker %u of site %u: %s %llu, here %llu",
                   message->worker, message->site, what,
                   (unsigned long long)found, (unsigned long long)wanted);
    return err;
}

enum kith_err kith_lars_gather_take(struct kith_lars_gather *gather,
                                    const struct kith_lars_message *message,
                                    char *error)
{
    if (message->site != gather->site)
        return complain(error, KITH_EMISMATCH, message,
                        "its model may be another one, it is of site",
                        message->site, gather->site);
    if (message->step != gather->step->step)
        return complain(error, KITH_EMISMATCH, message, "they are of step",
                        message->step, gather->step->step);
    if (message->worker >= gather->workers)
        return complain(error, KITH_EINVAL, message, "its rank is",
                        message->worker, gather->workers);
    const struct kith_lars_part part =
        kith_lars_part(gather->step->layout, gather->workers, message->worker);
    if (message->count != part.end - part.first)
        return complain(error, KITH_EINVAL, message, "so many came,",
                        message->count, part.end - part.first);
    if (gather->have >> message->worker & 1)
        return complain(error, KITH_EEXIST, message, "they are here, layer",
                        part.first, part.first);
    if (!are_rates(gather->step->config, message))
        return complain(error, KITH_ENONFINITE, message,
                        "one is no rate, from layer", part.first, part.first);
    memcpy(gather->rates + part.first, message->rates,
           message->count * sizeof *gather->rates);
    gather->have |= UINT64_C(1) << message->worker;
    return KITH_OK;
}

uint32_t kith_lars_gather_finish(struct kith_lars_gather *gather)
{
    uint32_t layers = 0;
    for (uint32_t p = 0; p < gather->workers; p++) {
        if (gather->have >> p & 1)
            continue;
        layers += kith_lars_gather_compute(gather, p);
    }
    return layers;
}
