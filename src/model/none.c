/* No parameters at all: for the speed and the decisions of the simulator. */
#include "vector.h"

static enum kith_err none_check(const struct kith_model_config *config)
{
    (void)config;
    return KITH_OK;
}

static size_t none_dim(const struct kith_model_config *config)
{
    (void)config;
    return 0;
}

static uint32_t none_views(const struct kith_model_config *config,
                           struct kith_model_view *views, uint32_t capacity)
{
    (void)config;
    (void)views;
    (void)capacity;
    return 0;
}

static void none_start(const struct kith_model_config *config, uint64_t seed,
                       uint64_t entity, double *x)
{
    (void)config;
    (void)seed;
    (void)entity;
    (void)x;
}

extern const struct kith_model kith_model_none;
const struct kith_model kith_model_none = {
    .name = "none",
    .paper = "-",
    .summary = "no parameters: decisions and messages only",
    .check = none_check,
    .dim = none_dim,
    .shape = kith_vector_shape,
    .views = none_views,
    .start = none_start,
    .scratch = kith_vector_scratch_none,
};
