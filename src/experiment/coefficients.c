/* Coefficients of `gossip.algorithm`: which it reads, and what stands where
 * none is given. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "key_table.h"

#include "kith/algorithm.h"

enum kith_err
kith_experiment_read_coefficients(const struct tree *tree,
                                  struct kith_experiment *experiment)
{
    const struct kith_algorithm *algorithm = experiment->gossip.algorithm;
    if (algorithm->schedule != NULL &&
        kith_yaml_find(tree, "gossip.topology") == NULL)
        experiment->gossip.topology = kith_topology_find(algorithm->schedule);
    for (unsigned i = 0; i < KITH_GOSSIP_KEY_COUNT; i++) {
        char path[KITH_NAME_MAX];
        kith_experiment_key_path(KITH_READER_ALGORITHM, i, path);
        if (kith_yaml_find(tree, path) == NULL)
            experiment->gossip.coefficients[i] = algorithm->initial[i];
    }
    return kith_experiment_refuse_unread(tree, KITH_READER_ALGORITHM,
                                         algorithm->name, algorithm->keys);
}

/* acid: e and alpha are the graph's where they are 0. */
static enum kith_err fail_mixing(const struct tree *tree,
                                 const struct kith_experiment *experiment,
                                 const char *why)
{
    return kith_yaml_fail(
        tree, kith_yaml_find(tree, "gossip.algorithm"), "gossip.mixing",
        KITH_EINVAL,
        "not given, and topology %s with %u peers %s; give both "
        "gossip.mixing and gossip.strength",
        experiment->gossip.topology->name, experiment->peers, why);
}

enum kith_err kith_experiment_resolve_mixing(const struct tree *tree,
                                             struct kith_experiment *experiment)
{
    const struct kith_topology *graph = &experiment->gossip.graph;
    double *const mixing = &experiment->gossip.coefficients[KITH_GOSSIP_MIXING];
    double *const strength =
        &experiment->gossip.coefficients[KITH_GOSSIP_STRENGTH];
    if (!(experiment->gossip.algorithm->keys & KITH_GOSSIP_READS(MIXING)) ||
        (*mixing > 0 && *strength > 0) || experiment->peers == 1)
        return KITH_OK;
    if (!graph->kind->is_static || graph->kind->directed)
        return fail_mixing(tree, experiment,
                           "is not one graph that they could come from");
    if (strcmp(graph->kind->name, "complete") == 0)
        return fail_mixing(tree, experiment, "gains nothing from acceleration");
    if (experiment->peers > KITH_MIXING_PEERS_MAX)
        return fail_mixing(tree, experiment,
                           "is too large to compute them (1024 peers)");
    double *scratch =
        malloc(KITH_MIXING_SCRATCH(experiment->peers) * sizeof *scratch);
    if (scratch == NULL)
        return kith_yaml_fail(tree, NULL, NULL, KITH_ENOMEM, "out of memory");
    const struct kith_topology_mixing found =
        kith_topology_mixing(graph, scratch);
    free(scratch);
    if (*mixing == 0)
        *mixing = 1 / (2 * sqrt(found.slowest * found.resistance));
    if (*strength == 0)
        *strength = sqrt(found.slowest / found.resistance) / 2;
    return KITH_OK;
}

struct kith_compression
kith_experiment_compression(const struct kith_experiment *experiment,
                            size_t dim)
{
    return (struct kith_compression){
        .compressor = kith_compressor_find(experiment->gossip.compressor),
        .config = experiment->gossip.compression,
        .backend = experiment->backend,
        .dim = dim};
}

bool kith_experiment_opaque(const struct kith_experiment *experiment)
{
    const struct kith_algorithm *algorithm = experiment->gossip.algorithm;
    return kith_algorithm_sends_bytes(algorithm) ||
           (algorithm->flags & KITH_CHECKS_ITS_MESSAGES &&
            !kith_compressor_find(experiment->gossip.compressor)->raw);
}

/* What a hook that counts bytes sees. */
static struct kith_algebra
counting_algebra(const struct kith_experiment *experiment, size_t dim,
                 const struct kith_compression *compression)
{
    const struct kith_model_size size =
        kith_model_size_of(experiment->model, &experiment->model_config);
    return (struct kith_algebra){.backend = experiment->backend,
                                 .dim = dim,
                                 .layers = size.layers,
                                 .peers = experiment->peers,
                                 .graph = &experiment->gossip.graph,
                                 .coefficients =
                                     experiment->gossip.coefficients,
                                 .compression = compression};
}

const char *kith_experiment_wants(const struct kith_experiment *experiment,
                                  size_t dim)
{
    const struct kith_algorithm *algorithm = experiment->gossip.algorithm;
    const struct kith_compression compression =
        kith_experiment_compression(experiment, dim);
    const struct kith_algebra algebra =
        counting_algebra(experiment, dim, &compression);
    return algorithm->wants == NULL || dim == 0 ? NULL
                                                : algorithm->wants(&algebra);
}

size_t kith_experiment_payload(const struct kith_experiment *experiment,
                               size_t dim)
{
    const struct kith_compression compression =
        kith_experiment_compression(experiment, dim);
    const struct kith_algebra algebra =
        counting_algebra(experiment, dim, &compression);
    return kith_format_bytes(
        experiment->gossip.format, experiment->gossip.wire_share,
        experiment->backend,
        kith_algorithm_payload(experiment->gossip.algorithm, &algebra));
}

size_t kith_experiment_slice(const struct kith_experiment *experiment,
                             size_t dim)
{
    const struct kith_algorithm *algorithm = experiment->gossip.algorithm;
    const struct kith_compression compression =
        kith_experiment_compression(experiment, dim);
    const struct kith_algebra algebra =
        counting_algebra(experiment, dim, &compression);
    return algorithm->slice == NULL || dim == 0
               ? 0
               : kith_format_bytes(
                     experiment->gossip.format, experiment->gossip.wire_share,
                     experiment->backend, algorithm->slice(&algebra));
}
