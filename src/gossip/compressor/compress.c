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

static bool is_host(const struct kith_backend *backend)
{
    return backend->host == backend;
}

bool kith_compression_runs(const struct kith_compressor *compressor,
                           const struct kith_backend *backend)
{
    KITH_ASSERT((compressor->pack == NULL) == (compressor->unpack == NULL));
    return is_host(backend) || compressor->raw || compressor->pack != NULL;
}

size_t kith_compression_places(const struct kith_compression *how)
{
    const bool tells = how->compressor->places != NULL && how->dim > 0;
    return tells && !is_host(how->backend) ? how->compressor->places(how) : 0;
}

struct kith_cut kith_cut_of(const struct kith_compression *how)
{
    const size_t block = block_of(how);
    return (struct kith_cut){.n = how->dim,
                             .block = block,
                             .bytes = how->compressor->bytes(how, block),
                             .all = kith_compression_bytes(how)};
}

static bool encode_blocks(const struct kith_compression *how, const void *v,
                          struct kith_rng *rng, uint8_t *target)
{
    const size_t block = block_of(how);
    for (size_t from = 0; from < how->dim; from += block) {
        const size_t left = how->dim - from, n = left < block ? left : block;
        if (!how->compressor->encode(how, n, kith_element(how, v, from), rng,
                                     target))
            return false;
        target += how->compressor->bytes(how, n);
    }
    return true;
}

bool kith_compress(const struct kith_compression *how, const void *v,
                   uint64_t key, void *wire)
{
    struct kith_rng rng = rng_of(key);
    if (!how->backend->finite(how->dim, v))
        return false;
    if (is_host(how->backend) || how->dim == 0)
        return encode_blocks(how, v, &rng, wire);
    KITH_ASSERT(how->compressor->pack != NULL);
    return how->compressor->pack(how, v, &rng, wire);
}

static bool decode_blocks(const struct kith_compression *how,
                          const uint8_t *source, struct kith_rng *rng,
                          void *out)
{
    const size_t block = block_of(how);
    for (size_t from = 0; from < how->dim; from += block) {
        const size_t left = how->dim - from, n = left < block ? left : block;
        if (!how->compressor->decode(how, n, source, rng,
                                     kith_element(how, out, from)))
            return false;
        source += how->compressor->bytes(how, n);
    }
    return true;
}

bool kith_decompress(const struct kith_compression *how, const void *wire,
                     uint64_t key, void *out)
{
    struct kith_rng rng = rng_of(key);
    const bool blocks = is_host(how->backend) || how->dim == 0;
    KITH_ASSERT(blocks || how->compressor->unpack != NULL);
    const bool sound = blocks ? decode_blocks(how, wire, &rng, out)
                              : how->compressor->unpack(how, wire, &rng, out);
    return sound && how->backend->finite(how->dim, out);
}

void kith_compression_erase(const struct kith_compression *how, void *wire)
{
    const size_t bytes = kith_compression_bytes(how);
    if (is_host(how->backend))
        memset(wire, 0, bytes);
    else
        how->backend->compressed->erase(bytes, wire);
}

bool kith_compress_feedback(const struct kith_compression *how, double decay,
                            const void *u, void *error, uint64_t key,
                            void *wire, void *sent)
{
    const struct kith_backend *backend = how->backend;
    KITH_ASSERT(decay >= 0 && decay <= 1 && is_host(backend));
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
