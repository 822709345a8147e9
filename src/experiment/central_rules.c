/* `central:`: names, and which of its keys go together. The section stands in
 * the place of `gossip:`, and only the simulator knows what to do with it. */
#include "kith/central.h"

#include <stdio.h>

#include "kith/fault.h"
#include "key_table.h"

#define KITH_X(name, text, paper, summary) {text, paper, summary},
const struct kith_central_kind kith_central_methods[] = {
    KITH_CENTRAL_METHODS(KITH_X){0}};
const struct kith_central_kind kith_central_exchanges[] = {
    KITH_CENTRAL_EXCHANGES(KITH_X){0}};
const struct kith_central_kind kith_central_triggers[] = {
    KITH_CENTRAL_TRIGGERS(KITH_X){0}};
#undef KITH_X

/* The one trigger of a method that has no choice. */
static bool fixed_trigger(enum kith_central_method method,
                          enum kith_central_trigger *trigger)
{
    switch (method) {
    case KITH_CENTRAL_GRADIENT:
    case KITH_CENTRAL_METHOD_COUNT:
        return false;
    case KITH_CENTRAL_SPARKNET:
    case KITH_CENTRAL_VERTICAL:
        *trigger = KITH_CENTRAL_SYNC;
        return true;
    case KITH_CENTRAL_EASGD:
    case KITH_CENTRAL_TREEEASGD:
    case KITH_CENTRAL_MPCA:
        *trigger = KITH_CENTRAL_ASYNC;
        return true;
    }
    return false;
}

enum kith_err kith_experiment_read_central(const struct tree *tree,
                                           struct kith_experiment *experiment)
{
    struct kith_central *central = &experiment->central;
    const struct tree_item *section = kith_yaml_find(tree, "central");
    if (section == NULL)
        return KITH_OK;
    if (kith_yaml_find(tree, "gossip") != NULL)
        return kith_yaml_fail(tree, section, "central", KITH_EINVAL,
                              "found beside gossip; allowed: one of them");
    central->present = true;
    if (kith_yaml_find(tree, "central.alpha") == NULL)
        central->alpha = -1;
    if (kith_yaml_find(tree, "central.beta") == NULL)
        central->beta = -1;
    /* Workers then have no vectors for neighbours. */
    experiment->gossip.algorithm = kith_algorithm_find("local");
    enum kith_central_trigger trigger;
    if (!fixed_trigger(central->method, &trigger))
        return KITH_OK;
    if (kith_yaml_find(tree, "central.trigger") != NULL &&
        central->trigger != trigger)
        return kith_yaml_fail(tree, kith_yaml_find(tree, "central.trigger"),
                              "central.trigger", KITH_EINVAL,
                              "found %s; method %s has %s alone",
                              kith_central_triggers[central->trigger].name,
                              kith_central_methods[central->method].name,
                              kith_central_triggers[trigger].name);
    central->trigger = trigger;
    return KITH_OK;
}

/* Everything that decides whether a key is read. */
struct readers {
    bool gradient, collective, adhoc, elastic, tree, pipeline, local;
    enum kith_central_trigger trigger;
};

static struct readers readers_of(const struct kith_central *central)
{
    const enum kith_central_method method = central->method;
    const bool gradient = method == KITH_CENTRAL_GRADIENT;
    const bool sync = central->trigger == KITH_CENTRAL_SYNC;
    return (struct readers){
        .gradient = gradient,
        .collective = (gradient && sync) || method == KITH_CENTRAL_SPARKNET ||
                      method == KITH_CENTRAL_MPCA,
        .adhoc = gradient && !sync,
        .elastic = method == KITH_CENTRAL_EASGD ||
                   method == KITH_CENTRAL_TREEEASGD ||
                   method == KITH_CENTRAL_MPCA,
        .tree = method == KITH_CENTRAL_TREEEASGD,
        .pipeline = method == KITH_CENTRAL_VERTICAL,
        .local = method == KITH_CENTRAL_SPARKNET ||
                 method == KITH_CENTRAL_EASGD || method == KITH_CENTRAL_MPCA,
        .trigger = central->trigger,
    };
}

/* A key that was given, but that nothing will read. */
static enum kith_err rule_unread(const struct tree *tree,
                                 const struct kith_central *central)
{
    const struct readers r = readers_of(central);
    const bool ssp =
        r.trigger == KITH_CENTRAL_SSP || r.trigger == KITH_CENTRAL_ESSP;
    const bool late =
        r.trigger == KITH_CENTRAL_BACKUP || r.trigger == KITH_CENTRAL_QUORUM;
    const bool many =
        (r.gradient || r.collective) && central->exchange == KITH_CENTRAL_NAIVE;
    const struct {
        const char *path;
        bool read;
    } keys[] = {
        {"central.exchange", r.collective || r.adhoc},
        {"central.servers", many},
        {"central.placement", (r.collective || r.adhoc) &&
                                  central->exchange != KITH_CENTRAL_DOUBLING &&
                                  central->exchange != KITH_CENTRAL_RING},
        {"central.replicas", r.adhoc},
        {"central.proxies", many},
        {"central.staleness", r.adhoc && ssp},
        {"central.backup", r.adhoc && late},
        {"central.bound", r.adhoc && r.trigger == KITH_CENTRAL_VALUE},
        {"central.every", r.local},
        {"central.alpha", r.elastic},
        {"central.beta", central->method == KITH_CENTRAL_EASGD},
        {"central.degree", r.tree},
        {"central.up", r.tree},
        {"central.down", r.tree},
        {"central.stages", r.pipeline},
        {"central.micro_batches", r.pipeline},
        {"central.in_flight", r.pipeline},
    };
    for (size_t i = 0; i < sizeof keys / sizeof keys[0]; i++) {
        const struct tree_item *item = kith_yaml_find(tree, keys[i].path);
        if (item != NULL && !keys[i].read)
            return kith_yaml_fail(
                tree, item, keys[i].path, KITH_EINVAL,
                "method %s with trigger %s and exchange %s does not read it; "
                "take it out",
                kith_central_methods[central->method].name,
                kith_central_triggers[central->trigger].name,
                kith_central_exchanges[central->exchange].name);
    }
    return KITH_OK;
}

static enum kith_err fail(const struct tree *tree, const char *path,
                          const char *words)
{
    const struct tree_item *item = kith_yaml_find(tree, path);
    return kith_yaml_fail(tree,
                          item != NULL ? item : kith_yaml_find(tree, "central"),
                          path, KITH_EINVAL, "%s", words);
}

static enum kith_err rule_shape(const struct tree *tree,
                                const struct kith_experiment *experiment)
{
    const struct kith_central *central = &experiment->central;
    const bool naive = central->exchange == KITH_CENTRAL_NAIVE;
    if (experiment->peers > KITH_CENTRAL_PEERS_MAX)
        return fail(tree, "peers",
                    "central runs have at most 4096 workers; take fewer");
    if (!naive && central->trigger != KITH_CENTRAL_SYNC &&
        central->method == KITH_CENTRAL_GRADIENT)
        return fail(tree, "central.exchange",
                    "a collective needs all workers at once: trigger sync; "
                    "other triggers exchange naive");
    if (central->servers > experiment->peers)
        return fail(tree, "central.servers",
                    "found more servers than peers; allowed: at most as many");
    if (central->proxies > experiment->peers)
        return fail(tree, "central.proxies",
                    "found more proxies than peers; allowed: at most as many");
    if (central->proxies > 0 && (central->servers > 1 || central->on_workers))
        return fail(tree, "central.proxies",
                    "proxies stand before one server with a machine of its "
                    "own; take out servers and placement");
    if (central->proxies > 0 && (central->trigger == KITH_CENTRAL_ESSP ||
                                 central->trigger == KITH_CENTRAL_BACKUP ||
                                 central->trigger == KITH_CENTRAL_QUORUM))
        return fail(tree, "central.proxies",
                    "proxies pass on what their whole group has sent; allowed "
                    "triggers: sync, async, ssp, value-bound");
    if (central->replicas > 1 && central->on_workers)
        return fail(tree, "central.replicas",
                    "replicas have machines of their own; take out placement");
    if (central->backup >= experiment->peers &&
        (central->trigger == KITH_CENTRAL_BACKUP ||
         central->trigger == KITH_CENTRAL_QUORUM))
        return fail(tree, "central.backup",
                    "found as many as peers or more; allowed: fewer");
    return KITH_OK;
}

static enum kith_err rule_pipeline(const struct tree *tree,
                                   const struct kith_experiment *experiment)
{
    const struct kith_central *central = &experiment->central;
    if (central->method != KITH_CENTRAL_VERTICAL)
        return KITH_OK;
    const uint32_t stages =
        central->stages > 0 ? central->stages : experiment->peers;
    if (stages < 2 || stages > experiment->peers)
        return fail(tree, "central.stages",
                    "a model is cut over 2 peers or more, and at most as many "
                    "as there are");
    if (experiment->train.batch % central->micro_batches != 0)
        return fail(tree, "central.micro_batches",
                    "must divide train.batch; choose another");
    if (central->in_flight > stages)
        return fail(tree, "central.in_flight",
                    "more minibatches than stages keep nobody busier; allowed: "
                    "at most as many");
    if (central->in_flight > 1 && central->micro_batches > 1)
        return fail(tree, "central.in_flight",
                    "found beside micro_batches; allowed: one of them above 1");
    if (experiment->train.config.clip > 0)
        return fail(tree, "train.clip",
                    "a stage does not know the norm of the others' gradients; "
                    "take it out");
    if (experiment->train.accumulate > 1)
        return fail(tree, "train.accumulate",
                    "the pipeline cuts batches itself; use "
                    "central.micro_batches");
    return KITH_OK;
}

static enum kith_err rule_world(const struct tree *tree,
                                const struct kith_experiment *experiment)
{
    const struct kith_central *central = &experiment->central;
    const struct kith_model_size size =
        kith_model_size_of(experiment->model, &experiment->model_config);
    for (uint32_t i = 0; i < experiment->atom_count; i++)
        if (kith_fault_effect(experiment->atoms[i].kind) != KITH_EFFECT_SLOW)
            return kith_yaml_fail(
                tree, kith_yaml_find(tree, "faults"), "faults", KITH_EINVAL,
                "found a %s; central runs know slow peers alone",
                kith_fault_name(experiment->atoms[i].kind));
    if (size.gossiped != size.trained)
        return fail(tree, "model",
                    "this model keeps running statistics, which are no part of "
                    "a gradient; take norm: group or a model without");
    if (central->payload_bytes > 0 && size.dim > 0)
        return fail(tree, "central.payload",
                    "this model says itself how many bytes it has; take it "
                    "out, or take model none");
    if (experiment->network.drop_push > 0)
        return fail(tree, "network.drop_push",
                    "central runs lose no messages for good; take it out");
    if (experiment->network.wire != KITH_WIRE_SIZED)
        return fail(tree, "network.wire",
                    "central runs carry no sealed bytes; allowed: sized");
    if (experiment->backend->host != experiment->backend)
        return fail(tree, "train.backend",
                    "central runs compute in the host's memory; allowed: cpu, "
                    "naive32, naive64");
    return KITH_OK;
}

enum kith_err
kith_experiment_rule_central(const struct tree *tree,
                             const struct kith_experiment *experiment)
{
    if (!experiment->central.present)
        return KITH_OK;
    enum kith_err err = rule_unread(tree, &experiment->central);
    if (err == KITH_OK)
        err = rule_shape(tree, experiment);
    if (err == KITH_OK)
        err = rule_pipeline(tree, experiment);
    if (err == KITH_OK)
        err = rule_world(tree, experiment);
    return err;
}
