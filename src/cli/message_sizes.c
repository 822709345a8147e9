/* What a message of an algorithm holds, from the hook that says its bytes. */
#include <stdio.h>

#include "cli.h"
#include "kith/algorithm.h"
#include "kith/assert.h"
#include "kith/compressor.h"

/* So many values that what a message holds beside them does not show. */
#define DIM (1u << 20)
#define PEERS 8u

/* Of x; on average, where some rounds carry slices. */
static double share_of(const struct kith_algorithm *algorithm,
                       const struct kith_algebra *algebra)
{
    const double x = (double)DIM * (double)algebra->backend->element_bytes;
    const double whole = algorithm->payload != NULL
                             ? (double)algorithm->payload(algebra) / x
                             : 1;
    if (algorithm->slice == NULL)
        return whole;
    const double slice = (double)algorithm->slice(algebra) / x;
    const uint64_t period =
        algorithm->schedule != NULL
            ? kith_topology_period(algebra->graph)
            : (uint64_t)algebra->coefficients[KITH_GOSSIP_OUTER_EVERY];
    double sum = 0;
    for (uint64_t round = 0; round < period; round++)
        sum += kith_algorithm_is_whole(algorithm, algebra->graph, period, round)
                   ? whole
                   : slice;
    return sum / (double)period;
}

void kith_cli_sends(const struct kith_algorithm *algorithm, char *text,
                    size_t size)
{
    const struct kith_backend *const backend = kith_backend_find("naive32");
    const struct kith_compression none = {kith_compressor_find("none"),
                                          kith_compressor_defaults(), backend,
                                          DIM, NULL};
    struct kith_topology graph = {.peers = PEERS};
    if (algorithm->slice != NULL && algorithm->schedule != NULL &&
        kith_topology_open(kith_topology_find(algorithm->schedule), PEERS,
                           &graph) != KITH_OK)
        KITH_ASSERT(!"a schedule of slices needs memory");
    const struct kith_algebra algebra = {.backend = backend,
                                         .dim = DIM,
                                         .trained = DIM,
                                         .peers = PEERS,
                                         .graph = &graph,
                                         .coefficients = algorithm->initial,
                                         .compression = &none,
                                         .every = 1};
    char factor[24] = "";
    if (algorithm->pattern == KITH_PATTERN_NONE) {
        (void)snprintf(text, size, "0");
        return;
    }
    const double values = share_of(algorithm, &algebra);
    if (values < 0.9995 || values > 1.0005)
        (void)snprintf(factor, sizeof factor, "%.3g ", values);
    (void)snprintf(text, size, "%s%s%s", factor,
                   algorithm->pattern == KITH_PATTERN_ROUND ? "deg " : "",
                   algorithm->flags & KITH_TAKES_COMPRESSOR ? "C(d)" : "d");
}
