/* Combinations that cannot work, refused before anything is started. */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "kith/assert.h"
#include "kith/fault.h"
#include "kith/guard.h"
#include "kith/text.h"
#include "key_table.h"

static enum kith_err rule_stop(const struct tree *tree,
                               const struct kith_experiment *experiment)
{
    const bool epochs = experiment->stop.epochs > 0;
    const bool steps = experiment->stop.steps > 0;
    if (!epochs && !steps && experiment->stop.time_ns == 0)
        return kith_yaml_refuse(tree, "stop",
                                "not given; allowed: {epochs: 5}, {steps: "
                                "1000} or {time: 60s}");
    if (epochs && steps)
        return kith_yaml_refuse(tree, "stop",
                                "found both epochs and steps; allowed: one of "
                                "them, with or without a time");
    if (epochs && experiment->model->input == KITH_INPUT_NONE)
        return kith_yaml_refuse(
            tree, "stop.epochs",
            "model %s has no data to count epochs of; use steps",
            experiment->model->name);
    if (experiment->best == KITH_BEST_ACCURACY &&
        experiment->model->input == KITH_INPUT_NONE)
        return kith_yaml_refuse(tree, "best",
                                "found accuracy, which model %s does not have; "
                                "allowed: loss",
                                experiment->model->name);
    if (experiment->stop.patience > 0 && !kith_model_learns(experiment->model))
        return kith_yaml_refuse(tree, "stop.patience",
                                "model %s has nothing to evaluate; take it out",
                                experiment->model->name);
    return KITH_OK;
}

/* Keys that only some models read. */
static enum kith_err rule_model_keys(const struct tree *tree,
                                     const struct kith_experiment *experiment)
{
    const struct kith_model *model = experiment->model;
    const enum kith_err err = kith_experiment_refuse_unread(
        tree, KITH_READER_MODEL, model->name, model->keys);
    if (err != KITH_OK)
        return err;
    if (kith_yaml_find(tree, "data") != NULL && model->input == KITH_INPUT_NONE)
        return kith_yaml_refuse(tree, "data",
                                "model %s does not have it; take it out",
                                model->name);
    return KITH_OK;
}

/* The model's own words are "model.KEY: what was found; what is allowed". */
static enum kith_err fail_model(const struct tree *tree, char *words)
{
    char *end = strchr(words, ':');
    if (end == NULL)
        return kith_yaml_refuse(tree, "model", "%s", words);
    *end = '\0';
    return kith_yaml_fail(tree, kith_yaml_find_or(tree, words, "model"), words,
                          KITH_EINVAL, "%s", end + 2);
}

static enum kith_err rule_model(const struct tree *tree,
                                const struct kith_experiment *experiment)
{
    const struct kith_model *model = experiment->model;
    struct kith_model_size size;
    char words[KITH_MODEL_ERROR_BYTES];
    const enum kith_err err = rule_model_keys(tree, experiment);
    if (err != KITH_OK)
        return err;
    if (kith_model_measure(model, &experiment->model_config, &size, words) !=
        KITH_OK)
        return fail_model(tree, words);
    if (model->input != KITH_INPUT_NONE && !experiment->data.present)
        return kith_yaml_fail(tree, kith_yaml_find(tree, "data"), "data.path",
                              KITH_EINVAL, "not given; model %s needs data",
                              model->name);
    return KITH_OK;
}

/* May this algorithm run on this graph? NULL: yes; else what it needs. */
static const char *topology_wanted(const struct kith_algorithm *algorithm,
                                   const struct kith_topology_kind *topology)
{
    const bool one_way =
        topology->directed && !(algorithm->flags & KITH_ALLOWS_DIRECTED_LINKS);
    if (algorithm->schedule != NULL)
        return strcmp(algorithm->schedule, topology->name) == 0
                   ? NULL
                   : "the rounds that are its own (leave gossip.topology out)";
    if (topology->collective)
        return "a graph: these rounds are an all-reduce's";
    switch (algorithm->pattern) {
    case KITH_PATTERN_ROUND:
        if (algorithm->flags & KITH_NEEDS_STATIC_GRAPH &&
            (one_way || !topology->is_static))
            return algorithm->flags & KITH_ALLOWS_DIRECTED_LINKS
                       ? "a static graph"
                       : "an undirected static graph";
        return kith_topology_is_any_pair(topology)
                   ? "a graph or a schedule of rounds"
                   : NULL;
    case KITH_PATTERN_SWAP:
        if (topology->directed && !kith_topology_is_any_pair(topology))
            return "an undirected graph, or any pair";
        return NULL;
    case KITH_PATTERN_PUSH:
        return one_way ? "an undirected graph, or any pair" : NULL;
    case KITH_PATTERN_NONE:
    case KITH_PATTERN_PULL:
    case KITH_PATTERN_COUNT:
        break;
    }
    return NULL;
}

static enum kith_err rule_topology(const struct tree *tree,
                                   const struct kith_experiment *experiment)
{
    const struct kith_algorithm *algorithm = experiment->gossip.algorithm;
    const struct kith_topology_kind *kind = experiment->gossip.topology;
    const struct tree_item *item =
        kith_yaml_find_or(tree, "gossip.topology", "gossip.algorithm");
    const char *wanted = topology_wanted(algorithm, kind);
    if (wanted != NULL) {
        char names[512] = "";
        size_t at = 0;
        for (unsigned i = 0; kith_topology_kinds[i] != NULL; i++)
            if (topology_wanted(algorithm, kith_topology_kinds[i]) == NULL)
                at = kith_text_add(names, sizeof names, at, "%s%s",
                                   at == 0 ? "" : ", ",
                                   kith_topology_kinds[i]->name);
        return kith_yaml_fail(
            tree, item, "gossip.topology", KITH_EINVAL,
            "found %s, but algorithm %s needs %s; allowed: %s", kind->name,
            algorithm->name, wanted, names);
    }
    return KITH_OK;
}

static enum kith_err rule_gossip(const struct tree *tree,
                                 const struct kith_experiment *experiment)
{
    const struct kith_algorithm *algorithm = experiment->gossip.algorithm;
    if (kith_yaml_find(tree, "gossip.deadline") != NULL &&
        experiment->gossip.deadline_ns != 0 &&
        algorithm->pattern != KITH_PATTERN_ROUND)
        return kith_yaml_refuse(tree, "gossip.deadline",
                                "algorithm %s has no rounds; its deadlines are "
                                "measured; take it out",
                                algorithm->name);
    if (experiment->network.drop_push > 0 &&
        algorithm->pattern != KITH_PATTERN_PUSH)
        return kith_yaml_refuse(tree, "network.drop_push",
                                "algorithm %s pushes nothing; take it out",
                                algorithm->name);
    return KITH_OK;
}

static enum kith_err rule_compressor(const struct tree *tree,
                                     const struct kith_experiment *experiment)
{
    const struct kith_compressor *compressor =
        kith_compressor_find(experiment->gossip.compressor);
    KITH_ASSERT(compressor != NULL); /* chosen from the registry */
    return kith_experiment_refuse_unread(tree, KITH_READER_COMPRESSOR,
                                         compressor->name, compressor->keys);
}

/* Of a directed schedule, from how many it hears; up to KITH_GUARD_NEIGHBOURS.
 */
static uint32_t sources_of(const struct kith_topology *graph, kith_id peer)
{
    const uint64_t period = kith_topology_period(graph);
    kith_id found[KITH_GUARD_NEIGHBOURS], in[KITH_DEGREE_MAX];
    uint32_t count = 0;
    for (uint64_t round = 0; round < period; round++) {
        const uint32_t sources =
            kith_topology_sources(graph, peer, round, in, NULL);
        for (uint32_t i = 0; i < sources; i++) {
            uint32_t k = 0;
            while (k < count && found[k] != in[i])
                k++;
            if (k < count)
                continue;
            found[count++] = in[i];
            if (count == KITH_GUARD_NEIGHBOURS)
                return count;
        }
    }
    return count;
}

/* Does every peer hear of enough others to hold one against the rest? */
static bool can_compare(const struct kith_topology *graph)
{
    kith_id ids[KITH_GUARD_NEIGHBOURS];
    if (graph->kind == NULL)
        return false;
    for (kith_id peer = 0; peer < graph->peers; peer++) {
        uint32_t links =
            kith_topology_links(graph, peer, ids, KITH_GUARD_NEIGHBOURS);
        if (links == KITH_LINKS_ANY)
            return graph->peers > KITH_GUARD_NEIGHBOURS;
        if (graph->kind->directed && kith_topology_period(graph) > 0)
            links = sources_of(graph, peer);
        if (links < KITH_GUARD_NEIGHBOURS)
            return false;
    }
    return true;
}

/* Where the file names none: clip, for algorithms that take one and models that
 * learn from data; models by hand are theory's, which knows no guard. Not where
 * own steps repeat what exchanges did: quasi-global momentum takes a restarted
 * peer's jump on, and away from who would have drawn it back. Nor where a peer
 * has few neighbours: a leaf would reject the hub of a star. Nor push-sum,
 * whose guard devices refuse: peers of one file must agree. It is hashed as if
 * the file named it. */
enum kith_err kith_experiment_choose_guard(const struct tree *tree,
                                           struct kith_experiment *experiment)
{
    const struct kith_algorithm *algorithm = experiment->gossip.algorithm;
    if (kith_yaml_find(tree, "gossip.guard") == NULL &&
        (algorithm->flags & KITH_TAKES_GUARD) && algorithm->direction == NULL &&
        algorithm->after_step == NULL &&
        !kith_algorithm_gives_weight(algorithm) &&
        experiment->model->input != KITH_INPUT_NONE &&
        can_compare(&experiment->gossip.graph))
        (void)snprintf(experiment->gossip.guard,
                       sizeof experiment->gossip.guard, "clip");
    return KITH_OK;
}

static enum kith_err rule_guard(const struct tree *tree,
                                const struct kith_experiment *experiment)
{
    const struct kith_guard *guard = kith_guard_find(experiment->gossip.guard);
    KITH_ASSERT(guard != NULL); /* chosen from the registry */
    return kith_experiment_refuse_unread(tree, KITH_READER_GUARD, guard->name,
                                         guard->keys);
}

static enum kith_err rule_hosts(const struct tree *tree,
                                const struct kith_experiment *experiment)
{
    const struct tree_item *item = kith_yaml_find(tree, "hosts");
    if (item == NULL || item->count == 0) /* {}: as without it */
        return KITH_OK;
    if (experiment->hosts.cores == 0 &&
        kith_yaml_find(tree, "hosts.cores") == NULL)
        return kith_yaml_fail(tree, item, "hosts", KITH_EINVAL,
                              "its cores are not given; such as {cores: 2}, or "
                              "a machine's file: {file: machine.yaml}");
    if (experiment->central.present)
        return kith_yaml_fail(tree, item, "hosts", KITH_EINVAL,
                              "machines of a central method compute at their "
                              "own speed; leave it out");
    return KITH_OK;
}

static double slowest(const struct kith_experiment *experiment)
{
    double factor = 1;
    for (uint32_t i = 0; i < experiment->atom_count; i++)
        if (experiment->atoms[i].fault->effect == KITH_EFFECT_SLOW &&
            experiment->atoms[i].factor > factor)
            factor = experiment->atoms[i].factor;
    return factor * experiment->network.classes.pace_most;
}

bool kith_experiment_outlasts_time(const struct kith_experiment *experiment,
                                   uint64_t steps,
                                   char words[EXPERIMENT_LATE_BYTES])
{
    const double factor = slowest(experiment);
    const double end =
        (double)experiment->compute.step_ns * factor * (double)steps;
    if (experiment->stop.time_ns > 0 || end <= (double)KITH_TIME_MAX)
        return false;
    char step[32], most[32];
    kith_text_from_time(experiment->compute.step_ns, step, sizeof step);
    kith_text_from_time(KITH_TIME_MAX, most, sizeof most);
    (void)snprintf(words, EXPERIMENT_LATE_BYTES,
                   "found %" PRIu64 " steps of %s, up to %g times as slow: "
                   "%.3g s; allowed: up to %s, or a stop.time",
                   steps, step, factor, end / (double)KITH_S, most);
    return true;
}

/* When `steps` own steps are over, by the file's figures: KITH_NEVER where
 * they do not say, as of peers that wait for a core. */
static kith_ns predicted_end(const struct kith_experiment *experiment,
                             uint64_t steps)
{
    double end = (double)KITH_NEVER;
    if (experiment->hosts.cores == 0 && experiment->compute.step_ns > 0 &&
        steps < UINT64_MAX) {
        double step = (double)experiment->compute.step_ns * slowest(experiment);
        /* A round adds its messages, there and back, to a step. */
        const struct kith_link_terms link =
            kith_experiment_slowest_link(experiment);
        if (experiment->gossip.algorithm->wait == KITH_WAIT_ROUND)
            step += 4 * ((double)link.latency_ns + 10 * (double)link.jitter_ns);
        end = step * (double)steps;
    }
    if (experiment->stop.time_ns > 0 && (double)experiment->stop.time_ns < end)
        return experiment->stop.time_ns;
    return end < (double)KITH_NEVER ? (kith_ns)end : KITH_NEVER;
}

const struct kith_atom *
kith_experiment_late_fault(const struct kith_experiment *experiment,
                           uint64_t steps, char words[EXPERIMENT_LATE_BYTES])
{
    const kith_ns end = predicted_end(experiment, steps);
    for (uint32_t i = 0; i < experiment->atom_count; i++) {
        const struct kith_atom *atom = &experiment->atoms[i];
        if (!(atom->begins || atom->arrives) || atom->at_ns <= end ||
            atom->statement == UINT32_MAX)
            continue;
        char at[32], over[32];
        kith_text_from_time(atom->at_ns, at, sizeof at);
        kith_text_from_time(end, over, sizeof over);
        (void)snprintf(words, EXPERIMENT_LATE_BYTES,
                       "found a %s at %s; allowed: up to the predicted end, %s",
                       atom->arrives ? "join" : kith_atom_event(atom)->name, at,
                       over);
        return atom;
    }
    return NULL;
}

static enum kith_err rule_late(const struct tree *tree,
                               const struct kith_experiment *experiment)
{
    const uint64_t steps =
        experiment->stop.steps > 0 ? experiment->stop.steps : UINT64_MAX;
    char words[EXPERIMENT_LATE_BYTES];
    const struct kith_atom *atom =
        kith_experiment_late_fault(experiment, steps, words);
    if (atom == NULL)
        return KITH_OK;
    const struct tree_item *item =
        kith_yaml_first(tree, kith_yaml_find(tree, "faults"));
    for (uint32_t i = 0; i < atom->statement && item != NULL; i++)
        item = kith_yaml_next(tree, item);
    return kith_yaml_fail(tree, item, "faults", KITH_EINVAL, "%s", words);
}

enum kith_err kith_experiment_check_rules(const struct tree *tree,
                                          struct kith_experiment *experiment)
{
    static experiment_rule *const rules[] = {rule_model,
                                             kith_experiment_rule_data,
                                             kith_experiment_rule_train,
                                             rule_stop,
                                             rule_topology,
                                             rule_gossip,
                                             rule_compressor,
                                             rule_guard,
                                             kith_experiment_rule_central,
                                             rule_hosts,
                                             rule_late};
    enum kith_err err = KITH_OK;
    for (size_t i = 0; i < sizeof rules / sizeof rules[0] && err == KITH_OK;
         i++)
        err = rules[i](tree, experiment);
    return err;
}
