/* Coefficients of `gossip.algorithm`: which it reads, and what stands where
 * none is given. */
#include "keys.h"

#include "kith/algorithm.h"

enum kith_err read_coefficients(const struct tree *tree,
                                struct kith_experiment *experiment)
{
    static const char *const paths[] = {
#define KITH_X(name, key, low, high, help) "gossip." key,
        KITH_GOSSIP_KEYS(KITH_X)
#undef KITH_X
    };
    const struct kith_algorithm *algorithm = experiment->gossip.algorithm;
    enum kith_err err = KITH_OK;
    if (algorithm->schedule != NULL &&
        tree_find(tree, "gossip.topology") == NULL)
        experiment->gossip.topology = kith_topology_find(algorithm->schedule);
    for (unsigned i = 0; i < KITH_GOSSIP_KEY_COUNT && err == KITH_OK; i++) {
        if (tree_find(tree, paths[i]) == NULL)
            experiment->gossip.coefficients[i] = algorithm->initial[i];
        err = unread_key(tree, paths[i], "algorithm", algorithm->name,
                         algorithm->keys >> i & 1u);
    }
    return err;
}

struct kith_compression
kith_experiment_compression(const struct kith_experiment *experiment,
                            size_t dim)
{
    return (struct kith_compression){
        .compressor = kith_compressor_find(experiment->gossip.compressor),
        .config = experiment->gossip.compression,
        .backend = experiment->backend->host,
        .dim = dim};
}

size_t kith_experiment_payload(const struct kith_experiment *experiment,
                               size_t dim)
{
    const struct kith_algorithm *algorithm = experiment->gossip.algorithm;
    const struct kith_compression compression =
        kith_experiment_compression(experiment, dim);
    const struct kith_algebra algebra = {.backend = experiment->backend,
                                         .dim = dim,
                                         .peers = experiment->peers,
                                         .graph = &experiment->gossip.graph,
                                         .coefficients =
                                             experiment->gossip.coefficients,
                                         .compression = &compression};
    return algorithm->payload == NULL || dim == 0
               ? dim * experiment->backend->element_bytes
               : algorithm->payload(&algebra);
}
