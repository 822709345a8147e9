/* Nothing but noise, for the spread that it keeps up between peers:
 *
 *   f_it(x) = <g_it, x>      gradient g_it ~ spread * N-ish(0, I)
 *
 * drawn anew for each peer and step (stream TARGET); every peer starts at 0. */
#include "vector.h"

#include "kith/hash.h"

static double noise_loss(const struct kith_model_config *config,
                         const struct kith_backend *backend, const void *x,
                         const struct kith_batch *batch, void *gradient)
{
    struct kith_rng rng;
    double noise[64], values[64], loss = 0;
    uint64_t entity = kith_hash_word(KITH_HASH_START, batch->entity);
    entity = kith_hash_word(entity, batch->step);
    kith_rng_init(&rng, batch->seed, KITH_STREAM_TARGET, entity);
    for (size_t at = 0; at < config->dim; at += 64) {
        const size_t left = config->dim - at, count = left < 64 ? left : 64;
        const size_t offset = at * backend->element_bytes;
        for (size_t i = 0; i < count; i++)
            noise[i] = config->spread * kith_vector_draw(&rng);
        backend->write(count, noise, (char *)gradient + offset);
        backend->read(count, (const char *)x + offset, values);
        for (size_t i = 0; i < count; i++)
            loss += noise[i] * values[i];
    }
    return loss;
}

extern const struct kith_model kith_model_noise;
const struct kith_model kith_model_noise = {
    .name = "noise",
    .paper = "-",
    .summary = "gradients are noise of deviation `spread`, nothing else",
    .keys = KITH_MODEL_READS(DIM) | KITH_MODEL_READS(SPREAD),
    .check = kith_vector_check,
    .dim = kith_vector_dim,
    .loss = noise_loss,
};
