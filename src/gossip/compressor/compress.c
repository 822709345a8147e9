/* Blocks of a vector through a compressor, and error feedback.
 *
 *   v = u + decay e;  c = C(v);  e <- v - c
 *
 * What holds for every compressor is checked here once: only finite values
 * leave, only finite values come in. */
#include <string.h>

#include "kith/assert.h"
#include "kith/limits.h"
#include "chunks.h"

static bool reads(const struct kith_compression *how, unsigned key)
{
    return (how->compressor->keys & key) != 0;
}

/* Values of a whole block: config.block, the compressor's own, or all; at least
 * 1, for a model may have none. */
static size_t block_of(const struct kith_compression *how)
{
    const struct kith_compressor_config *config = &how->config;
    KITH_ASSERT(how->dim <= KITH_PARAMETERS_MAX);
    if (reads(how, KITH_COMPRESSOR_READS(DENSITY)))
        KITH_ASSERT(config->density > 0 && config->density <= 1);
    if (reads(how, KITH_COMPRESSOR_READS(LEVELS)))
        KITH_ASSERT(config->levels - 1 < KITH_COMPRESSOR_LEVELS_MAX);
    size_t block = how->compressor->block;
    if (reads(how, KITH_COMPRESSOR_READS(BLOCK)) && config->block > 0) {
        KITH_ASSERT(config->block <= KITH_COMPRESSOR_BLOCK_MAX);
        block = config->block;
    }
    if (block == 0 || block > how->dim)
        block = how->dim;
    return block > 0 ? block : 1;
}

size_t kith_compression_bytes(const struct kith_compression *how)
{
    const size_t block = block_of(how), rest = how->dim % block;
    const size_t whole = how->dim / block * how->compressor->bytes(how, block);
    return rest == 0 ? whole : whole + how->compressor->bytes(how, rest);
}

double kith_compression_contraction(const struct kith_compression *how)
{
    const size_t block = block_of(how), rest = how->dim % block;
    const double whole = how->compressor->contraction(how, block);
    const double last =
        rest == 0 ? whole : how->compressor->contraction(how, rest);
    return whole < last ? whole : last;
}

bool kith_compression_unbiased(const struct kith_compression *how)
{
    return how->compressor->unbiased ||
           (reads(how, KITH_COMPRESSOR_READS(UNBIASED)) &&
            how->config.unbiased);
}

bool kith_compression_needs_feedback(const struct kith_compression *how)
{
    return how->compressor->feedback && !kith_compression_unbiased(how);
}

static struct kith_rng rng_of(uint64_t key)
{
    struct kith_rng rng;
    kith_rng_init(&rng, key, KITH_STREAM_COMPRESS, 0);
    return rng;
}

bool kith_compress(const struct kith_compression *how, const void *v,
                   uint64_t key, void *wire)
{
    const size_t block = block_of(how);
    struct kith_rng rng = rng_of(key);
    uint8_t *target = wire;
    KITH_ASSERT(kith_compression_host(how->backend));
    if (!how->backend->finite(how->dim, v))
        return false;
    for (size_t from = 0; from < how->dim; from += block) {
        const size_t left = how->dim - from, n = left < block ? left : block;
        if (!how->compressor->encode(how, n, kith_element(how, v, from), &rng,
                                     target))
            return false;
        target += how->compressor->bytes(how, n);
    }
    return true;
}

bool kith_decompress(const struct kith_compression *how, const void *wire,
                     uint64_t key, void *out)
{
    const size_t block = block_of(how);
    struct kith_rng rng = rng_of(key);
    const uint8_t *source = wire;
    KITH_ASSERT(kith_compression_host(how->backend));
    for (size_t from = 0; from < how->dim; from += block) {
        const size_t left = how->dim - from, n = left < block ? left : block;
        if (!how->compressor->decode(how, n, source, &rng,
                                     kith_element(how, out, from)))
            return false;
        source += how->compressor->bytes(how, n);
    }
    return how->backend->finite(how->dim, out);
}

bool kith_compress_feedback(const struct kith_compression *how, double decay,
                            const void *u, void *error, uint64_t key,
                            void *wire, void *sent)
{
    const struct kith_backend *backend = how->backend;
    KITH_ASSERT(decay >= 0 && decay <= 1);
    if (!backend->finite(how->dim, u))
        return false;
    if (decay < 1)
        backend->scale(how->dim, decay, error);
    backend->add(how->dim, 1, u, error);
    if (!kith_compress(how, error, key, wire) ||
        !kith_decompress(how, wire, key, sent)) {
        memset(error, 0, how->dim * backend->element_bytes);
        return false;
    }
    backend->add(how->dim, -1, sent, error);
    return true;
}
