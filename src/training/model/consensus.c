/* Nothing to learn: every peer starts at a vector of its own (stream WEIGHTS,
 * nearly normal) and only averaging moves it. For rates of convergence. */
#include "vector.h"

static void consensus_start(const struct kith_model_config *config,
                            uint64_t seed, uint64_t entity, double *x)
{
    struct kith_rng rng;
    kith_rng_init(&rng, seed, KITH_STREAM_WEIGHTS, entity);
    for (uint32_t i = 0; i < config->dim; i++)
        x[i] = kith_vector_draw(&rng);
}

extern const struct kith_model kith_model_consensus;
const struct kith_model kith_model_consensus = {
    .name = "consensus",
    .paper = "Boyd et al., \"Randomized gossip algorithms\", IEEE Trans. "
             "Information Theory 2006",
    .summary = "no gradient; x_i starts at random per peer",
    .keys = KITH_MODEL_READS(DIM),
    .check = kith_vector_check,
    .dim = kith_vector_dim,
    .start = consensus_start,
};
