/* Keys whose value is a name: the registries and a few short lists. */
#include "key_table.h"

#include "kith/backend.h"
#include "kith/compressor.h"
#include "kith/guard.h"
#include "kith/text.h"

static const char *algorithm_name(unsigned index)
{
    return kith_algorithms[index] == NULL ? NULL : kith_algorithms[index]->name;
}

static void choose_algorithm(void *object, unsigned index)
{
    struct kith_experiment *experiment = object;
    experiment->gossip.algorithm = kith_algorithms[index];
}

const struct key_choice kith_experiment_choice_algorithm = {algorithm_name,
                                                            choose_algorithm};

static const char *topology_name(unsigned index)
{
    return kith_topology_kinds[index] == NULL
               ? NULL
               : kith_topology_kinds[index]->name;
}

static void choose_topology(void *object, unsigned index)
{
    struct kith_experiment *experiment = object;
    experiment->gossip.topology = kith_topology_kinds[index];
}

const struct key_choice kith_experiment_choice_topology = {topology_name,
                                                           choose_topology};

static void choose_graph(void *object, unsigned index)
{
    struct kith_experiment *experiment = object;
    experiment->gossip.options.graph = kith_topology_kinds[index];
}

const struct key_choice kith_experiment_choice_graph = {topology_name,
                                                        choose_graph};

static const char *weights_name(unsigned index)
{
    return kith_weights_name((enum kith_weights)index);
}

static void choose_weights(void *object, unsigned index)
{
    struct kith_experiment *experiment = object;
    experiment->gossip.options.weights = (enum kith_weights)index;
}

const struct key_choice kith_experiment_choice_weights = {weights_name,
                                                          choose_weights};

static const char *model_name(unsigned index)
{
    return kith_models[index] == NULL ? NULL : kith_models[index]->name;
}

static void choose_model(void *object, unsigned index)
{
    struct kith_experiment *experiment = object;
    experiment->model = kith_models[index];
}

const struct key_choice kith_experiment_choice_model = {model_name,
                                                        choose_model};

static const char *optimiser_name(unsigned index)
{
    return kith_optimisers[index] == NULL ? NULL : kith_optimisers[index]->name;
}

static void choose_optimiser(void *object, unsigned index)
{
    struct kith_experiment *experiment = object;
    experiment->train.optimiser = kith_optimisers[index];
}

const struct key_choice kith_experiment_choice_optimiser = {optimiser_name,
                                                            choose_optimiser};

/* The first is `auto`: resolved here, once, so that a run has one backend. */
static const char *backend_name(unsigned index)
{
    if (index == 0)
        return "auto";
    const struct kith_backend *backend = kith_backends[index - 1];
    return backend == NULL ? NULL : backend->name;
}

static void choose_backend(void *object, unsigned index)
{
    struct kith_experiment *experiment = object;
    experiment->backend =
        index == 0 ? kith_backend_auto() : kith_backends[index - 1];
}

const struct key_choice kith_experiment_choice_backend = {backend_name,
                                                          choose_backend};

static const char *schedule_name(unsigned index)
{
    return index < KITH_SCHEDULE_COUNT
               ? kith_schedule_name((enum kith_schedule)index)
               : NULL;
}

static void choose_schedule(void *object, unsigned index)
{
    struct kith_experiment *experiment = object;
    experiment->train.schedule.kind = (enum kith_schedule)index;
}

const struct key_choice kith_experiment_choice_schedule = {schedule_name,
                                                           choose_schedule};

static const char *compressor_name(unsigned index)
{
    return kith_compressors[index] == NULL ? NULL
                                           : kith_compressors[index]->name;
}

static void choose_compressor(void *object, unsigned index)
{
    struct kith_experiment *experiment = object;
    kith_text_copy(experiment->gossip.compressor, KITH_NAME_MAX,
                   kith_compressors[index]->name);
}

const struct key_choice kith_experiment_choice_compressor = {compressor_name,
                                                             choose_compressor};

static const char *guard_name(unsigned index)
{
    return kith_guards[index] == NULL ? NULL : kith_guards[index]->name;
}

static void choose_guard(void *object, unsigned index)
{
    struct kith_experiment *experiment = object;
    kith_text_copy(experiment->gossip.guard, KITH_NAME_MAX,
                   kith_guards[index]->name);
}

const struct key_choice kith_experiment_choice_guard = {guard_name,
                                                        choose_guard};

static const char *norm_name(unsigned index)
{
    static const char *const names[] = {"batch", "group", "layer", "rms", NULL};
    return names[index];
}

static void choose_norm(void *object, unsigned index)
{
    struct kith_experiment *experiment = object;
    experiment->model_config.norm =
        (enum kith_model_norm)(KITH_MODEL_NORM_BATCH + index);
}

const struct key_choice kith_experiment_choice_norm = {norm_name, choose_norm};

static const char *positions_name(unsigned index)
{
    static const char *const names[] = {"learned", "rotary", NULL};
    return names[index];
}

static void choose_positions(void *object, unsigned index)
{
    struct kith_experiment *experiment = object;
    experiment->model_config.rotary = index == 1;
}

const struct key_choice kith_experiment_choice_positions = {positions_name,
                                                            choose_positions};

static const char *best_name(unsigned index)
{
    static const char *const names[] = {
        [KITH_BEST_LOSS] = "loss", [KITH_BEST_ACCURACY] = "accuracy", NULL};
    return names[index];
}

static void choose_best(void *object, unsigned index)
{
    struct kith_experiment *experiment = object;
    experiment->best = (enum kith_best)index;
}

const struct key_choice kith_experiment_choice_best = {best_name, choose_best};

static const char *wire_name(unsigned index)
{
    static const char *const names[] = {
        [KITH_WIRE_SIZED] = "sized", [KITH_WIRE_FULL] = "full", NULL};
    return names[index];
}

static void choose_wire(void *object, unsigned index)
{
    struct kith_experiment *experiment = object;
    experiment->network.wire = (enum kith_wire_mode)index;
}

const struct key_choice kith_experiment_choice_wire = {wire_name, choose_wire};

static const char *suite_name(unsigned index)
{
    static const char *const names[] = {"auto", "AESGCM", "ChaChaPoly", NULL};
    return names[index];
}

static void choose_suite(void *object, unsigned index)
{
    struct kith_experiment *experiment = object;
    kith_text_copy(experiment->network.suite, KITH_NAME_MAX, suite_name(index));
}

const struct key_choice kith_experiment_choice_suite = {suite_name,
                                                        choose_suite};

static const char *products_name(unsigned index)
{
    return kith_backend_products[index];
}

static void choose_products(void *object, unsigned index)
{
    struct kith_experiment *experiment = object;
    experiment->compute.products = products_name(index);
}

const struct key_choice kith_experiment_choice_products = {products_name,
                                                           choose_products};

static const char *data_name(unsigned index)
{
    return kith_dataset_kinds[index] == NULL ? NULL
                                             : kith_dataset_kinds[index]->name;
}

static void choose_data(void *object, unsigned index)
{
    struct kith_experiment *experiment = object;
    experiment->data.config.kind = kith_dataset_kinds[index];
}

const struct key_choice kith_experiment_choice_data = {data_name, choose_data};
