/* Text from a model of tokens, one token after another.
 *
 *   p_i = exp((s_i - max s) / temperature) / sum over what is kept
 *
 * Draws come from the stream SAMPLE of a seed, so the same model, prompt and
 * seed give the same text. Test: unit/test_sample.c. */
#ifndef KITH_SAMPLE_H
#define KITH_SAMPLE_H

#include <stddef.h>
#include <stdint.h>

#include "kith/err.h"
#include "kith/model.h"
#include "kith/rng.h"

struct kith_sampling {
    double temperature; /* >= 0; 0: always the largest, the first of equals */
    uint32_t top_k;     /* the largest k alone, the first of equals; 0: all */
};

/* A token drawn from its softmax, in float64.
 *
 *   scores   (n), n > 0
 *   scratch  (n), where the top_k are found
 *
 * Returns KITH_OK, or
 *   KITH_ENONFINITE  a score is not finite; nothing is drawn
 *
 * Cost    O(n), with top_k O(n log n); one draw, at temperature 0 none.
 */
KITH_MUST_CHECK enum kith_err kith_sample(const struct kith_sampling *how,
                                          size_t n, const double *scores,
                                          double *scratch, struct kith_rng *rng,
                                          int32_t *token);

/* A text that grows. The model sees its last `context` tokens; what it costs
 * grows with the text up to there, for the network that runs is only as long
 * as it must be. */
struct kith_generator;
struct kith_generator_config {
    const struct kith_model *model; /* of tokens */
    const struct kith_model_config *config;
    const struct kith_backend *backend;
    const double *z;     /* (dim); lent */
    uint32_t vocabulary; /* tokens below it may be drawn; 0: the model's */
    struct kith_sampling how;
    uint64_t seed;
};

/* KITH_EINVAL: not a model of tokens. All errors with a line in `error`
 * (KITH_MODEL_ERROR_BYTES). */
KITH_MUST_CHECK enum kith_err
kith_generator_open(const struct kith_generator_config *config,
                    struct kith_generator **generator, char *error);
void kith_generator_close(struct kith_generator *generator);
/* One token of the prompt; KITH_EINVAL: not below the model's vocabulary. */
KITH_MUST_CHECK enum kith_err
kith_generator_push(struct kith_generator *generator, int32_t token);
/* The next token, which becomes part of the text. There must be a token
 * before. KITH_ENONFINITE, KITH_ENOMEM, KITH_EDEVICE with a line in `error`. */
KITH_MUST_CHECK enum kith_err
kith_generator_next(struct kith_generator *generator, int32_t *token,
                    char *error);

#endif
