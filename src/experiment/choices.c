/* Keys whose value is a name: what the registries hold, and a few short lists.
 * Each of them is a list of names and what a chosen one sets. */
#include "key_table.h"

#include "kith/backend.h"
#include "kith/compressor.h"
#include "kith/guard.h"
#include "kith/text.h"

#define CHOICE(word, names, chosen)                                            \
    static const char *word##_name(unsigned index)                             \
    {                                                                          \
        return names;                                                          \
    }                                                                          \
    static void choose_##word(void *object, unsigned index)                    \
    {                                                                          \
        struct kith_experiment *const experiment = object;                     \
        chosen;                                                                \
    }                                                                          \
    const struct key_choice kith_experiment_choice_##word = {word##_name,      \
                                                             choose_##word};

/* A registry: the record is kept. */
#define REGISTRY(word, table, field)                                           \
    CHOICE(word, table[index] == NULL ? NULL : table[index]->name,             \
           experiment->field = table[index])
REGISTRY(algorithm, kith_algorithms, gossip.algorithm)
REGISTRY(topology, kith_topology_kinds, gossip.topology)
REGISTRY(graph, kith_topology_kinds, gossip.options.graph)
REGISTRY(model, kith_models, model)
REGISTRY(optimiser, kith_optimisers, train.optimiser)
REGISTRY(data, kith_dataset_kinds, data.config.kind)

/* A registry of which the name is kept. */
#define NAMES(word, table, field)                                              \
    CHOICE(                                                                    \
        word, table[index] == NULL ? NULL : table[index]->name,                \
        kith_text_copy(experiment->field, KITH_NAME_MAX, table[index]->name))
NAMES(compressor, kith_compressors, gossip.compressor)
NAMES(guard, kith_guards, gossip.guard)

/* The first is `auto`: resolved here, once, so that a run has one backend. */
static const char *backend_at(unsigned index)
{
    if (index == 0)
        return "auto";
    const struct kith_backend *backend = kith_backends[index - 1];
    return backend == NULL ? NULL : backend->name;
}
CHOICE(backend, backend_at(index),
       experiment->backend = index == 0 ? kith_backend_auto()
                                        : kith_backends[index - 1])

CHOICE(weights, kith_weights_name((enum kith_weights)index),
       experiment->gossip.options.weights = (enum kith_weights)index)
CHOICE(schedule,
       index < KITH_SCHEDULE_COUNT
           ? kith_schedule_name((enum kith_schedule)index)
           : NULL,
       experiment->train.schedule.kind = (enum kith_schedule)index)
CHOICE(products, kith_backend_products[index],
       experiment->compute.products = kith_backend_products[index])

static const char *const norms[] = {"batch", "group", NULL};
CHOICE(norm, norms[index], experiment->model_config.group_norm = index == 1)

static const char *const bests[] = {
    [KITH_BEST_LOSS] = "loss", [KITH_BEST_ACCURACY] = "accuracy", NULL};
CHOICE(best, bests[index], experiment->best = (enum kith_best)index)

static const char *const wires[] = {
    [KITH_WIRE_SIZED] = "sized", [KITH_WIRE_FULL] = "full", NULL};
CHOICE(wire, wires[index],
       experiment->network.wire = (enum kith_wire_mode)index)

static const char *const suites[] = {"auto", "AESGCM", "ChaChaPoly", NULL};
CHOICE(suite, suites[index],
       kith_text_copy(experiment->network.suite, KITH_NAME_MAX, suites[index]))
