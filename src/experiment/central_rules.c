/* `central:`: names, and which of its keys go together. The section stands in
 * the place of `gossip:`, and only the simulator knows what to do with it. */
#include "kith/central.h"

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
static const enum kith_central_trigger own_triggers[] = {
    [KITH_CENTRAL_GRADIENT] = KITH_CENTRAL_TRIGGER_COUNT, /* any */
    [KITH_CENTRAL_SPARKNET] = KITH_CENTRAL_SYNC,
    [KITH_CENTRAL_VERTICAL] = KITH_CENTRAL_SYNC,
    [KITH_CENTRAL_EASGD] = KITH_CENTRAL_ASYNC,
    [KITH_CENTRAL_TREEEASGD] = KITH_CENTRAL_ASYNC,
    [KITH_CENTRAL_MPCA] = KITH_CENTRAL_ASYNC};
_Static_assert(sizeof own_triggers / sizeof *own_triggers ==
                   KITH_CENTRAL_METHOD_COUNT,
               "one of each method");

enum kith_err kith_experiment_read_central(const struct tree *tree,
                                           struct kith_experiment *experiment)
{
    struct kith_central *central = &experiment->central;
    if (kith_yaml_find(tree, "central") == NULL)
        return KITH_OK;
    if (kith_yaml_find(tree, "gossip") != NULL)
        return kith_yaml_refuse(tree, "central",
                                "found beside gossip; allowed: one of them");
    central->present = true;
    if (kith_yaml_find(tree, "central.alpha") == NULL)
        central->alpha = -1;
    if (kith_yaml_find(tree, "central.beta") == NULL)
        central->beta = -1;
    /* Workers then have no vectors for neighbours. */
    experiment->gossip.algorithm = kith_algorithm_find("local");
    const enum kith_central_trigger trigger = own_triggers[central->method];
    if (trigger == KITH_CENTRAL_TRIGGER_COUNT)
        return KITH_OK;
    if (kith_yaml_find(tree, "central.trigger") != NULL &&
        central->trigger != trigger)
        return kith_yaml_refuse(tree, "central.trigger",
                                "found %s; method %s has %s alone",
                                kith_central_triggers[central->trigger].name,
                                kith_central_methods[central->method].name,
                                kith_central_triggers[trigger].name);
    central->trigger = trigger;
    return KITH_OK;
}

#define BIT(name) (1u << KITH_CENTRAL_##name)
#define ANY UINT32_MAX

/* Methods that send by an exchange. */
#define SENDS (BIT(GRADIENT) | BIT(SPARKNET) | BIT(MPCA))

/* A key is read where the method, the exchange and the trigger are among these.
 */
static const struct reader {
    const char *path;
    uint32_t methods, exchanges, triggers;
} readers[] = {
    {"central.exchange", SENDS, ANY, ANY},
    {"central.servers", SENDS, BIT(NAIVE), ANY},
    {"central.placement", SENDS, ~(BIT(DOUBLING) | BIT(RING)), ANY},
    {"central.replicas", BIT(GRADIENT), ANY, ~BIT(SYNC)},
    {"central.proxies", SENDS, BIT(NAIVE), ANY},
    {"central.staleness", BIT(GRADIENT), ANY, BIT(SSP) | BIT(ESSP)},
    {"central.backup", BIT(GRADIENT), ANY, BIT(BACKUP) | BIT(QUORUM)},
    {"central.bound", BIT(GRADIENT), ANY, BIT(VALUE)},
    {"central.every", BIT(SPARKNET) | BIT(EASGD) | BIT(MPCA), ANY, ANY},
    {"central.alpha", BIT(EASGD) | BIT(TREEEASGD) | BIT(MPCA), ANY, ANY},
    {"central.beta", BIT(EASGD), ANY, ANY},
    {"central.degree", BIT(TREEEASGD), ANY, ANY},
    {"central.up", BIT(TREEEASGD), ANY, ANY},
    {"central.down", BIT(TREEEASGD), ANY, ANY},
    {"central.stages", BIT(VERTICAL), ANY, ANY},
    {"central.micro_batches", BIT(VERTICAL), ANY, ANY},
    {"central.in_flight", BIT(VERTICAL), ANY, ANY},
};

/* A key that was given, but that nothing will read. */
static enum kith_err rule_unread(const struct tree *tree,
                                 const struct kith_central *central)
{
    for (size_t i = 0; i < sizeof readers / sizeof readers[0]; i++) {
        const struct reader *const reader = &readers[i];
        const bool is_read = reader->methods >> central->method &
                             reader->exchanges >> central->exchange &
                             reader->triggers >> central->trigger & 1u;
        if (!is_read && kith_yaml_find(tree, reader->path) != NULL)
            return kith_yaml_refuse(
                tree, reader->path,
                "method %s with trigger %s and exchange %s does not read it; "
                "take it out",
                kith_central_methods[central->method].name,
                kith_central_triggers[central->trigger].name,
                kith_central_exchanges[central->exchange].name);
    }
    return KITH_OK;
}

/* What cannot be, at which key, and what can. */
struct conflict {
    bool is_found;
    const char *path, *words;
};

/* The first that is found. */
static enum kith_err refuse_first(const struct tree *tree,
                                  const struct conflict *conflicts,
                                  size_t count)
{
    for (size_t i = 0; i < count; i++) {
        const char *const path = conflicts[i].path;
        if (conflicts[i].is_found)
            return kith_yaml_fail(tree,
                                  kith_yaml_find_or(tree, path, "central"),
                                  path, KITH_EINVAL, "%s", conflicts[i].words);
    }
    return KITH_OK;
}
#define REFUSE_FIRST(tree, conflicts)                                          \
    refuse_first(tree, conflicts, sizeof(conflicts) / sizeof((conflicts)[0]))

static enum kith_err rule_shape(const struct tree *tree,
                                const struct kith_experiment *experiment)
{
    const struct kith_central *central = &experiment->central;
    const uint32_t trigger = 1u << central->trigger;
    const bool waits_not_for_all = trigger & (BIT(BACKUP) | BIT(QUORUM));
    const struct conflict conflicts[] = {
        {experiment->peers > KITH_CENTRAL_PEERS_MAX, "peers",
         "central runs have at most 4096 workers; take fewer"},
        {central->exchange != KITH_CENTRAL_NAIVE &&
             central->trigger != KITH_CENTRAL_SYNC &&
             central->method == KITH_CENTRAL_GRADIENT,
         "central.exchange",
         "a collective needs all workers at once: trigger sync; other triggers "
         "exchange naive"},
        {central->servers > experiment->peers, "central.servers",
         "found more servers than peers; allowed: at most as many"},
        {central->proxies > experiment->peers, "central.proxies",
         "found more proxies than peers; allowed: at most as many"},
        {central->proxies > 0 && (central->servers > 1 || central->on_workers),
         "central.proxies",
         "proxies stand before one server with a machine of its own; take out "
         "servers and placement"},
        {central->proxies > 0 &&
             (waits_not_for_all || central->trigger == KITH_CENTRAL_ESSP),
         "central.proxies",
         "proxies pass on what their whole group has sent; allowed triggers: "
         "sync, async, ssp, value-bound"},
        {central->replicas > 1 && central->on_workers, "central.replicas",
         "replicas have machines of their own; take out placement"},
        {central->backup >= experiment->peers && waits_not_for_all,
         "central.backup", "found as many as peers or more; allowed: fewer"},
    };
    return REFUSE_FIRST(tree, conflicts);
}

static enum kith_err rule_pipeline(const struct tree *tree,
                                   const struct kith_experiment *experiment)
{
    const struct kith_central *central = &experiment->central;
    if (central->method != KITH_CENTRAL_VERTICAL)
        return KITH_OK;
    const uint32_t stages =
        central->stages > 0 ? central->stages : experiment->peers;
    const struct conflict conflicts[] = {
        {stages < 2 || stages > experiment->peers, "central.stages",
         "a model is cut over 2 peers or more, and at most as many as there "
         "are"},
        {experiment->train.batch % central->micro_batches != 0,
         "central.micro_batches", "must divide train.batch; choose another"},
        {central->in_flight > stages, "central.in_flight",
         "more minibatches than stages keep nobody busier; allowed: at most as "
         "many"},
        {central->in_flight > 1 && central->micro_batches > 1,
         "central.in_flight",
         "found beside micro_batches; allowed: one of them above 1"},
        {experiment->train.config.clip > 0, "train.clip",
         "a stage does not know the norm of the others' gradients; take it "
         "out"},
        {experiment->train.accumulate > 1, "train.accumulate",
         "the pipeline cuts batches itself; use central.micro_batches"},
    };
    return REFUSE_FIRST(tree, conflicts);
}

static enum kith_err rule_world(const struct tree *tree,
                                const struct kith_experiment *experiment)
{
    const struct kith_central *central = &experiment->central;
    const struct kith_model_size size =
        kith_model_size_of(experiment->model, &experiment->model_config);
    for (uint32_t i = 0; i < experiment->atom_count; i++)
        if (experiment->atoms[i].fault->effect != KITH_EFFECT_SLOW)
            return kith_yaml_refuse(
                tree, "faults",
                "found a %s; central runs know slow peers alone",
                kith_atom_event(&experiment->atoms[i])->name);
    const struct conflict conflicts[] = {
        {size.gossiped != size.trained, "model",
         "this model keeps running statistics, which are no part of a "
         "gradient; take norm: group or a model without"},
        {central->payload_bytes > 0 && size.dim > 0, "central.payload",
         "this model says itself how many bytes it has; take it out, or take "
         "model none"},
        {size.gossiped > size.dim, "model.dim",
         "central runs have central.payload for that; take it out"},
        {experiment->network.drop_push > 0, "network.drop_push",
         "central runs lose no messages for good; take it out"},
        {experiment->network.wire != KITH_WIRE_SIZED, "network.wire",
         "central runs carry no sealed bytes; allowed: sized"},
        {experiment->backend->host != experiment->backend, "train.backend",
         "central runs compute in the host's memory; allowed: cpu, naive32, "
         "naive64"},
    };
    return REFUSE_FIRST(tree, conflicts);
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
