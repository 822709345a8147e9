/* What an algorithm, its graph, its compressor, the backend and the model must
 * be to one another, beyond the graph's kind: rules that need the graph itself.
 * Test: unit/test_graph.c, unit/test_device_algorithms.c */
#include "key_table.h"

#include <math.h>
#include <string.h>

#include "kith/algorithm.h"
#include "kith/check.h"
#include "kith/compressor.h"
#include "kith/format.h"
#include "kith/guard.h"
#include "kith/lars_parts.h"
#include "kith/sketch.h"

static enum kith_err fail(const struct tree *tree, const char *key,
                          const struct kith_experiment *experiment,
                          const char *found, const char *wanted)
{
    return kith_yaml_fail(tree,
                          kith_yaml_find_or(tree, key, "gossip.algorithm"), key,
                          KITH_EINVAL, "found %s, but algorithm %s needs %s",
                          found, experiment->gossip.algorithm->name, wanted);
}

/* n peers and n - 1 edges: every graph here is connected. */
static bool is_tree(const struct kith_topology *graph)
{
    uint64_t ends = 0;
    for (kith_id self = 0; self < graph->peers; self++)
        ends += kith_topology_degree(graph, self);
    return ends == 2 * (uint64_t)(graph->peers - 1);
}

/* Rounds of a schedule that are looked at; of large graphs the first one. */
#define ROUNDS_MAX 64u
#define PEERS_SMALL 1024u

/* Does somebody give away all that there is, or more? The best constant
 * weights do, where degrees differ much. */
static bool gives_all(const struct kith_topology *graph)
{
    const uint64_t period = kith_topology_period(graph);
    const uint64_t rounds = graph->peers > PEERS_SMALL           ? 1
                            : period == 0 || period > ROUNDS_MAX ? ROUNDS_MAX
                                                                 : period;
    for (uint64_t round = 0; round < rounds; round++)
        for (kith_id self = 0; self < graph->peers; self++) {
            kith_id out[KITH_DEGREE_MAX];
            double shares[KITH_DEGREE_MAX], given = 0;
            const uint32_t count =
                kith_topology_neighbours(graph, self, round, out, shares);
            for (uint32_t k = 0; k < count; k++)
                given += shares[k];
            if (given > 1 - 1e-9)
                return true;
        }
    return false;
}

static enum kith_err match_graph(const struct tree *tree,
                                 const struct kith_experiment *experiment)
{
    const struct kith_algorithm *algorithm = experiment->gossip.algorithm;
    const struct kith_topology *graph = &experiment->gossip.graph;
    const char *name = graph->kind->name;
    if (algorithm->pattern != KITH_PATTERN_ROUND)
        return KITH_OK;
    if (algorithm->flags & KITH_NEEDS_TREE && !is_tree(graph))
        return fail(tree, "gossip.topology", experiment, name,
                    "a tree: path, star, binary-tree");
    if (algorithm->flags & KITH_CONSERVES_SUM &&
        !(algorithm->flags & KITH_SPLITS_MASS) && !graph->doubly)
        return fail(tree, "gossip.topology", experiment, name,
                    "weights whose columns sum to 1 as its rows do: try "
                    "gossip.weights metropolis");
    if (algorithm->flags & KITH_ALLOWS_DIRECTED_LINKS &&
        algorithm->flags & KITH_SENDS_EDGE_MESSAGES && gives_all(graph))
        return fail(tree, "gossip.topology", experiment, name,
                    "shares of which something stays with each peer: try "
                    "gossip.weights metropolis or another graph");
    return KITH_OK;
}

/* Messages of an algorithm's own bytes are found value by value, and name
 * values of what is gossiped. */
static enum kith_err match_bytes(const struct tree *tree,
                                 const struct kith_experiment *experiment)
{
    const struct kith_backend *backend = experiment->backend;
    const struct kith_model_size size =
        kith_model_size_of(experiment->model, &experiment->model_config);
    if (!kith_algorithm_sends_bytes(experiment->gossip.algorithm))
        return KITH_OK;
    if (size.gossiped > size.trained)
        return fail(tree, "model.kind", experiment, experiment->model->name,
                    "a model without running statistics: those are averaged "
                    "as they are; use GroupNorm");
    return backend->host == backend
               ? KITH_OK
               : fail(tree, "train.backend", experiment, backend->name,
                      "a backend of the host: its lists are found value by "
                      "value");
}

/* Each gradient is shared before the next step, so that all are at one x. */
static enum kith_err match_gradients(const struct tree *tree,
                                     const struct kith_experiment *experiment)
{
    const struct kith_algorithm *algorithm = experiment->gossip.algorithm;
    if (!(algorithm->flags & KITH_SHARES_GRADIENTS))
        return KITH_OK;
    if (!kith_model_learns(experiment->model) && !experiment->model->absent)
        return fail(tree, "model.kind", experiment, experiment->model->name,
                    "a model that learns: what its rounds share are gradients");
    const struct kith_backend *backend = experiment->backend;
    if (experiment->gossip.coefficients[KITH_GOSSIP_BUCKETS] >= 2 &&
        backend->host != backend)
        return fail(tree, "train.backend", experiment, backend->name,
                    "with gossip.buckets a backend of the host: a device has "
                    "a step to itself");
    if (experiment->gossip.every == 1)
        return KITH_OK;
    return kith_yaml_refuse(tree, "gossip.every",
                            "found %u, but algorithm %s needs 1: each gradient "
                            "is shared before the next one is computed; for a "
                            "larger batch raise train.batch",
                            experiment->gossip.every, algorithm->name);
}

/* Where the lists of all sites are no shorter than what they stand for, a dense
 * mean has fewer bytes. */
static enum kith_err match_sites(const struct tree *tree,
                                 const struct kith_experiment *experiment)
{
    const uint32_t peers = experiment->peers;
    const uint32_t sites =
        kith_topology_sites(&experiment->gossip.graph, peers);
    const double share = experiment->gossip.coefficients[KITH_GOSSIP_SHARE];
    const double d =
        (double)kith_model_size_of(experiment->model, &experiment->model_config)
            .gossiped;
    const double shard = ceil(d * sites / peers);
    const double kept = fmax(1, floor(share * shard + 0.5));
    if (strcmp(experiment->gossip.topology->name, "collective-sites") != 0 ||
        sites == 1)
        return KITH_OK;
    return share * sites <= 1 && kept * sites <= d
               ? KITH_OK
               : kith_yaml_refuse(tree, "gossip.share",
                                  "found %g with %u sites and a model of %.0f "
                                  "values; allowed: up to 1 / %u, for lists "
                                  "of more are longer than a dense mean: take "
                                  "sync-sgd, or fewer gossip.regions",
                                  share, sites, d, sites);
}

/* All of a site divide the work, and scale by the same float32. */
static enum kith_err match_norms(const struct tree *tree,
                                 const struct kith_experiment *experiment)
{
    const struct kith_topology *graph = &experiment->gossip.graph;
    const struct kith_backend *backend = experiment->backend;
    const char *wanted = kith_lars_parts_want(
        experiment->gossip.algorithm, kith_topology_sites(graph, graph->peers));
    if (!graph->options.norms)
        return KITH_OK;
    if (strcmp(experiment->train.optimiser->name, "lars") != 0)
        return fail(tree, "gossip.norms", experiment, "true",
                    "train.optimiser lars beside it, whose norms they are");
    if (backend->element_bytes != sizeof(float))
        return fail(tree, "train.backend", experiment, backend->name,
                    "with gossip.norms a backend of float32, as rates travel");
    if (graph->peers > KITH_LARS_WORKERS_MAX)
        return fail(tree, "gossip.norms", experiment, "true",
                    "no more than 64 peers with it");
    if (wanted != NULL)
        return fail(tree, "gossip.norms", experiment, "true", wanted);
    /* Rates travel where a shard does. */
    const struct kith_model_size size =
        kith_model_size_of(experiment->model, &experiment->model_config);
    return size.layers <= size.dim / graph->peers
               ? KITH_OK
               : fail(tree, "gossip.norms", experiment, "true",
                      "fewer peers with it: each of them has no fewer values "
                      "to share than the model has layers");
}

/* A median is of an odd number of rows, and a table has so many cells. */
static enum kith_err match_sketch(const struct tree *tree,
                                  const struct kith_experiment *experiment)
{
    const double *const given = experiment->gossip.coefficients;
    const double rows = given[KITH_GOSSIP_ROWS];
    const double d =
        (double)kith_model_size_of(experiment->model, &experiment->model_config)
            .gossiped;
    const double kept = fmax(floor(given[KITH_GOSSIP_SHARE] * d + 0.5), 1);
    const double cells = rows * rint(given[KITH_GOSSIP_COLUMNS] * kept);
    if (!(experiment->gossip.algorithm->keys & KITH_GOSSIP_READS(ROWS)))
        return KITH_OK;
    if (fmod(rows, 2) != 1)
        return kith_yaml_refuse(tree, "gossip.rows",
                                "found %g; an odd number, of which there is a "
                                "middle one: 5 or 7",
                                rows);
    return cells <= KITH_SKETCH_CELLS_MAX || cells >= d
               ? KITH_OK
               : kith_yaml_refuse(tree, "gossip.columns",
                                  "found %g, with gossip.rows %g and "
                                  "gossip.share %g of %.0f coordinates a table "
                                  "of %.0f cells; at most %u",
                                  given[KITH_GOSSIP_COLUMNS], rows,
                                  given[KITH_GOSSIP_SHARE], d, cells,
                                  KITH_SKETCH_CELLS_MAX);
}

/* What it does beside that is a host's, whatever its compressor is. */
static enum kith_err match_host(const struct tree *tree,
                                const struct kith_experiment *experiment)
{
    const struct kith_backend *backend = experiment->backend;
    return !(experiment->gossip.algorithm->flags & KITH_NEEDS_HOST) ||
                   backend->host == backend
               ? KITH_OK
               : fail(tree, "train.backend", experiment, backend->name,
                      "a backend of the host: no device has its sums");
}

static enum kith_err match_compressor(const struct tree *tree,
                                      const struct kith_experiment *experiment)
{
    const struct kith_algorithm *algorithm = experiment->gossip.algorithm;
    const char *compressor = experiment->gossip.compressor;
    const struct kith_model_size size =
        kith_model_size_of(experiment->model, &experiment->model_config);
    if (!(algorithm->flags & KITH_TAKES_COMPRESSOR))
        return strcmp(compressor, "none") == 0 ? KITH_OK
               : kith_algorithm_sends_bytes(algorithm)
                   ? fail(tree, "gossip.compressor", experiment, compressor,
                          "none: it sends the largest values already")
                   : fail(tree, "gossip.compressor", experiment, compressor,
                          "none: what it sends is not a difference");
    if (size.gossiped > size.trained)
        return fail(tree, "model.kind", experiment, experiment->model->name,
                    "a model without running statistics: those are averaged "
                    "as they are; use GroupNorm");
    const struct kith_backend *backend = experiment->backend;
    if (!kith_compression_runs(kith_compressor_find(compressor), backend))
        return kith_yaml_refuse(tree, "gossip.compressor",
                                "found %s, for which train.backend %s has no "
                                "kernels; take train.backend %s, or another "
                                "compressor",
                                compressor, backend->name, backend->host->name);
    const char *wanted = kith_experiment_wants(experiment, size.gossiped);
    return wanted == NULL ? KITH_OK
                          : fail(tree, "gossip.compressor", experiment,
                                 compressor, wanted);
}

/* What is read beside one's own must be read so on both ends. */
static enum kith_err match_residues(const struct tree *tree,
                                    const struct kith_experiment *experiment)
{
    const struct kith_format *format = experiment->gossip.format;
    const struct kith_algorithm *algorithm = experiment->gossip.algorithm;
    if (!kith_algorithm_adds_differences(algorithm))
        return fail(tree, "gossip.wire", experiment, format->name,
                    "a wire of whole values (float32, bfloat16, int8): what it "
                    "sends is not read beside a model of the receiver's, or an "
                    "outer step follows");
    if (experiment->gossip.topology->directed &&
        algorithm->pattern == KITH_PATTERN_ROUND)
        return kith_yaml_refuse(
            tree, "gossip.wire",
            "found %s, but over topology %s messages go one way: it needs an "
            "undirected graph, where both ends read each other",
            format->name, experiment->gossip.topology->name);
    return KITH_OK;
}

/* What is rounded must be rounded alike on both ends. */
static enum kith_err match_format(const struct tree *tree,
                                  const struct kith_experiment *experiment)
{
    const struct kith_format *format = experiment->gossip.format;
    const uint32_t flags = experiment->gossip.algorithm->flags;
    if (experiment->gossip.wire_share < 1 && format->residue_bits == 0)
        return kith_yaml_refuse(tree, "gossip.wire_share",
                                "found %g, but gossip.wire is %s, whose "
                                "messages are whole models; take moniqua8 or "
                                "moniqua4, or leave it out",
                                experiment->gossip.wire_share, format->name);
    if (format->raw)
        return KITH_OK;
    if (kith_algorithm_sends_bytes(experiment->gossip.algorithm))
        return fail(tree, "gossip.wire", experiment, format->name,
                    "float32: its messages are lists of values and of where "
                    "they stand");
    if (flags & KITH_CHECKS_ITS_MESSAGES)
        return fail(tree, "gossip.wire", experiment, format->name,
                    "float32: its messages are what gossip.compressor makes of "
                    "them");
    if (flags & KITH_NEEDS_EXACT_MESSAGES)
        return fail(tree, "gossip.wire", experiment, format->name,
                    "float32: it takes sums or totals as they come, and what "
                    "rounding takes from them is lost");
    return format->residue_bits > 0 ? match_residues(tree, experiment)
                                    : KITH_OK;
}

static enum kith_err match_guard(const struct tree *tree,
                                 const struct kith_experiment *experiment)
{
    const char *guard = experiment->gossip.guard;
    const struct kith_guard *found = kith_guard_find(guard);
    if (found->weigh == NULL && found->judge == NULL)
        return KITH_OK;
    const struct kith_algorithm *algorithm = experiment->gossip.algorithm;
    const bool gives_weight = kith_algorithm_gives_weight(algorithm);
    if (!(algorithm->flags & KITH_TAKES_GUARD))
        return fail(tree, "gossip.guard", experiment, guard,
                    "none: what it receives is not a model that is averaged");
    if (found->judge != NULL && found->weigh == NULL &&
        (algorithm->pattern != KITH_PATTERN_ROUND || gives_weight))
        return fail(tree, "gossip.guard", experiment, guard,
                    "one that sees a model at a time: clip or balance; this "
                    "one compares those of a round");
    if (found->looks_at_loss && gives_weight)
        return fail(tree, "gossip.guard", experiment, guard,
                    "none, clip or balance: what it receives is a share of a "
                    "model, which has no loss");
    if (found->looks_at_loss &&
        experiment->backend->host != experiment->backend)
        return fail(tree, "gossip.guard", experiment, guard,
                    "a backend of the host, or clip, balance or cs+: a device "
                    "does not evaluate what it receives");
    if (gives_weight && experiment->backend->host != experiment->backend)
        return fail(tree, "gossip.guard", experiment, guard,
                    "none, or a backend of the host: shares are held against "
                    "own values, which a device keeps");
    if (found->replaces && experiment->backend->host != experiment->backend)
        return fail(tree, "gossip.guard", experiment, guard,
                    "one that changes no received model: a device has its own "
                    "copies; clip, balance or cs+, or a backend of the host");
    if (found->looks_at_loss && experiment->model->reports)
        return fail(tree, "gossip.guard", experiment, guard,
                    "clip, balance or cs+: this one tries what it receives on "
                    "a batch, and a training loop of yours is not asked for "
                    "that");
    if (!kith_model_learns(experiment->model) && !experiment->model->reports)
        return kith_yaml_refuse(tree, "gossip.guard",
                                "found %s, but model %s does not learn: a "
                                "guard has nothing to hold others against; "
                                "take it out",
                                guard, experiment->model->name);
    return KITH_OK;
}

static bool lies(const struct kith_experiment *experiment)
{
    for (uint32_t i = 0; i < experiment->atom_count; i++)
        if (experiment->atoms[i].lie > KITH_LIE_HUGE)
            return true;
    return false;
}

static bool lies_by(const struct kith_experiment *experiment,
                    enum kith_lie_kind kind)
{
    for (uint32_t i = 0; i < experiment->atom_count; i++)
        if (experiment->atoms[i].lie == kind)
            return true;
    return false;
}

/* A kind of `hostile` says what is sent in the place of a model. */
static enum kith_err match_lies(const struct tree *tree,
                                const struct kith_experiment *experiment)
{
    if (!lies(experiment))
        return KITH_OK;
    if (!(experiment->gossip.algorithm->flags & KITH_TAKES_GUARD))
        return fail(tree, "faults", experiment, "hostile",
                    "another fault, such as huge: what it sends is not a model "
                    "that is averaged");
    const bool is_program = experiment->model->reports; /* of any size */
    if (is_program && lies_by(experiment, KITH_LIE_LABEL_FLIP))
        return kith_yaml_refuse(tree, "faults",
                                "found label-flip, but the labels are those of "
                                "a training loop of yours; take another kind");
    if (experiment->model->absent)
        return kith_yaml_refuse(tree, "faults",
                                "found hostile, but model %s has no values to "
                                "lie about; take it out",
                                experiment->model->name);
    if (experiment->backend->host != experiment->backend)
        return kith_yaml_refuse(tree, "faults",
                                "found hostile, but train.backend %s keeps "
                                "models on a device; take train.backend %s",
                                experiment->backend->name,
                                experiment->backend->host->name);
    if (kith_checks_ask(experiment, "conserved"))
        return kith_yaml_refuse(
            tree, "assert",
            "found conserved beside hostile, which merges against what it "
            "did not send: no sum is kept; take one of them out");
    return KITH_OK;
}

enum kith_err kith_experiment_rule_match(const struct tree *tree,
                                         struct kith_experiment *experiment)
{
    enum kith_err err = match_graph(tree, experiment);
    if (err == KITH_OK)
        err = match_bytes(tree, experiment);
    if (err == KITH_OK)
        err = match_gradients(tree, experiment);
    if (err == KITH_OK)
        err = match_sites(tree, experiment);
    if (err == KITH_OK)
        err = match_norms(tree, experiment);
    if (err == KITH_OK)
        err = match_sketch(tree, experiment);
    if (err == KITH_OK)
        err = match_host(tree, experiment);
    if (err == KITH_OK)
        err = match_compressor(tree, experiment);
    if (err == KITH_OK)
        err = match_format(tree, experiment);
    if (err == KITH_OK)
        err = match_guard(tree, experiment);
    if (err == KITH_OK)
        err = match_lies(tree, experiment);
    return err;
}
