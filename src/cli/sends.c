/* What a message of an algorithm holds, from the hook that says its bytes. */
#include <stdio.h>

#include "cli.h"
#include "kith/algorithm.h"
#include "kith/compressor.h"

/* So many values that what a message holds beside them does not show. */
#define DIM (1u << 20)
#define PEERS 8u

void cli_sends(const struct kith_algorithm *algorithm, char *text, size_t size)
{
    const struct kith_backend *const backend = kith_backend_find("naive32");
    const struct kith_compression none = {
        kith_compressor_find("none"), kith_compressor_defaults(), backend, DIM};
    const struct kith_algebra algebra = {.backend = backend,
                                         .dim = DIM,
                                         .trained = DIM,
                                         .peers = PEERS,
                                         .coefficients = algorithm->initial,
                                         .compression = &none,
                                         .every = 1};
    double values = 1;
    char factor[24] = "";
    if (algorithm->pattern == KITH_PATTERN_NONE) {
        (void)snprintf(text, size, "0");
        return;
    }
    if (algorithm->payload != NULL)
        values = (double)algorithm->payload(&algebra) /
                 ((double)DIM * (double)backend->element_bytes);
    if (values < 0.9995 || values > 1.0005)
        (void)snprintf(factor, sizeof factor, "%.3g ", values);
    (void)snprintf(text, size, "%s%s%s", factor,
                   algorithm->pattern == KITH_PATTERN_ROUND ? "deg " : "",
                   algorithm->compresses ? "C(d)" : "d");
}
