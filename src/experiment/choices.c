/* Keys whose value is a name: what the registries hold, and a few short lists.
 * Each of them is a list of names and what a chosen one sets. */
#include "key_table.h"

#include "kith/backend.h"
#include "kith/compressor.h"
#include "kith/format.h"
#include "kith/guard.h"
#include "kith/session.h"
#include "kith/text.h"

/* `current` is the name that stands in `experiment`. */
#define CHOICE(word, names, chosen, current)                                   \
    static const char *word##_name(unsigned index)                             \
    {                                                                          \
        return names;                                                          \
    }                                                                          \
    static void choose_##word(void *object, unsigned index)                    \
    {                                                                          \
        struct kith_experiment *const experiment = object;                     \
        chosen;                                                                \
    }                                                                          \
    static const char *chosen_##word(const void *object)                       \
    {                                                                          \
        const struct kith_experiment *const experiment = object;               \
        return current;                                                        \
    }                                                                          \
    const struct key_choice kith_choice_##word = {word##_name, choose_##word,  \
                                                  chosen_##word};

/* A registry: the record is kept. */
#define REGISTRY(word, table, field)                                           \
    CHOICE(word, table[index] == NULL ? NULL : table[index]->name,             \
           experiment->field = table[index],                                   \
           experiment->field == NULL ? NULL : experiment->field->name)
REGISTRY(algorithm, kith_algorithms, gossip.algorithm)
REGISTRY(topology, kith_topology_kinds, gossip.topology)
REGISTRY(format, kith_formats, gossip.format)
REGISTRY(graph, kith_topology_kinds, gossip.options.graph)
REGISTRY(model, kith_models, model)
REGISTRY(optimiser, kith_optimisers, train.optimiser)
REGISTRY(data, kith_dataset_kinds, data.config.kind)

/* A registry of which the name is kept. */
#define NAMES(word, table, field)                                              \
    CHOICE(                                                                    \
        word, table[index] == NULL ? NULL : table[index]->name,                \
        kith_text_copy(experiment->field, KITH_NAME_MAX, table[index]->name),  \
        experiment->field)
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
                                        : kith_backends[index - 1],
       experiment->backend->name)
CHOICE(products, kith_backend_products[index],
       experiment->compute.products = kith_backend_products[index],
       experiment->compute.products)

/* An enumeration: names(value) is NULL past the last. */
#define VALUES(word, names, type, field)                                       \
    CHOICE(word, names((enum type)index),                                      \
           experiment->field = (enum type)index, names(experiment->field))
static const char *schedule_at(enum kith_schedule kind)
{
    return kind < KITH_SCHEDULE_COUNT ? kith_schedule_name(kind) : NULL;
}
VALUES(weights, kith_weights_name, kith_weights, gossip.options.weights)
VALUES(schedule, schedule_at, kith_schedule, train.schedule.kind)

/* The same by a list of names. */
#define LIST(word, list, type, field)                                          \
    CHOICE(word, list[index], experiment->field = (type)index,                 \
           list[(unsigned)experiment->field])
static const char *const positions[] = {"learned", "rotary", NULL};
LIST(positions, positions, bool, model_config.rotary)

static const char *const norms[] = {"batch", "group", "layer", "rms", NULL};
/* BATCH and LAYER are what their models take where no norm is given: these
 * files mean the same, so they have the same text. */
static const char *norm_shown(enum kith_model_norm norm)
{
    return norm == KITH_MODEL_NORM_GROUP || norm == KITH_MODEL_NORM_RMS
               ? norms[norm - KITH_MODEL_NORM_BATCH]
               : NULL;
}
CHOICE(norm, norms[index],
       experiment->model_config.norm =
           (enum kith_model_norm)(KITH_MODEL_NORM_BATCH + index),
       norm_shown(experiment->model_config.norm))

static const char *const bests[] = {
    [KITH_BEST_LOSS] = "loss", [KITH_BEST_ACCURACY] = "accuracy", NULL};
LIST(best, bests, enum kith_best, best)

static const char *const wires[] = {
    [KITH_WIRE_SIZED] = "sized", [KITH_WIRE_FULL] = "full", NULL};
LIST(wire, wires, enum kith_wire_mode, network.wire)

static const char *const sharings[] = {
    [KITH_SHARING_QUEUE] = "queue", [KITH_SHARING_FAIR] = "fair", NULL};
LIST(sharing, sharings, enum kith_sharing, network.sharing)

static const char *const same_hosts[] = {[KITH_SAME_HOST_TCP] = "tcp",
                                         [KITH_SAME_HOST_MEMORY] =
                                             "shared-memory",
                                         NULL};
LIST(same_host, same_hosts, enum kith_same_host, network.same_host)

#define KITH_X(name, byte, word) word,
static const char *const suites[] = {"auto", KITH_SUITES(KITH_X) NULL};
#undef KITH_X
CHOICE(suite, suites[index],
       kith_text_copy(experiment->network.suite, KITH_NAME_MAX, suites[index]),
       experiment->network.suite)

#define METHOD_NAME(index) kith_central_methods[index].name
VALUES(central_method, METHOD_NAME, kith_central_method, central.method)
#define EXCHANGE_NAME(index) kith_central_exchanges[index].name
VALUES(central_exchange, EXCHANGE_NAME, kith_central_exchange, central.exchange)
#define TRIGGER_NAME(index) kith_central_triggers[index].name
VALUES(central_trigger, TRIGGER_NAME, kith_central_trigger, central.trigger)

static const char *const placements[] = {"own", "workers", NULL};
LIST(central_placement, placements, bool, central.on_workers)
