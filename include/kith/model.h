/* A model: a flat vector of parameters with named views, a loss, a gradient.
 *
 * Composed from backend operations only, so every backend runs every model.
 * One file, one line in src/model/models.def.
 * Test: unit/test_model.c checks every gradient by finite differences in
 * float64. */
#ifndef KITH_MODEL_H
#define KITH_MODEL_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "kith/backend.h"
#include "kith/err.h"
#include "kith/limits.h"
#include "kith/rng.h"

#ifdef __cplusplus
extern "C" {
#endif

struct kith_model_config {
    uint32_t layers[KITH_LAYERS_MAX]; /* mlp: sizes, input first */
    uint32_t layer_count;
    uint32_t dim;  /* quadratic, consensus: parameters */
    double spread; /* quadratic: standard deviation of the targets b_i */
};

struct kith_model_view {
    char name[32];
    size_t offset, rows, columns; /* elements; columns 1 for a vector */
};

/* One batch: either images or nothing (quadratic, consensus, none). */
struct kith_batch {
    const void *inputs;    /* (rows, features) on the backend */
    const uint8_t *labels; /* (rows) */
    size_t rows;
    uint64_t entity; /* the peer, for models with a target per peer */
    uint64_t seed;
};

struct kith_model {
    const char *name, *paper, *summary;
    bool needs_data;
    /* KITH_EINVAL: layers make no sense. */
    enum kith_err (*check)(const struct kith_model_config *config);
    size_t (*dim)(const struct kith_model_config *config);
    /* Features and classes the data must have; 0 when there is no data. */
    void (*shape)(const struct kith_model_config *config, size_t *features,
                  size_t *classes);
    uint32_t (*views)(const struct kith_model_config *config,
                      struct kith_model_view *views, uint32_t capacity);
    /* Starting weights, float64, the same for every peer of a seed. */
    void (*start)(const struct kith_model_config *config, uint64_t seed,
                  uint64_t entity, double *x);
    /* Bytes of scratch for batches of `rows`, on this backend. */
    size_t (*scratch)(const struct kith_model_config *config,
                      const struct kith_backend *backend, size_t rows);
    /* NULL: nothing to learn (consensus, none), TRAIN leaves x alone.
     * Loss of a batch at x; gradient (dim) written unless NULL; *correct:
     * rows classified rightly, unless NULL. */
    double (*loss)(const struct kith_model_config *config,
                   const struct kith_backend *backend, const void *x,
                   const struct kith_batch *batch, void *gradient,
                   uint32_t *correct, void *scratch);
};

extern const struct kith_model *const kith_models[];
const struct kith_model *kith_model_find(const char *name);

#ifdef __cplusplus
}
#endif
#endif
