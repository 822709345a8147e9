/* No parameters at all: for the decisions of the simulator, and for its time.
 * With a dim messages are as long as those of a model of so many values, which
 * nobody has: thousands of peers exchange models of any size in no memory. */
#include "vector.h"

static enum kith_err none_check(const struct kith_model_config *config,
                                char *error)
{
    (void)config;
    (void)error;
    return KITH_OK;
}

static size_t none_dim(const struct kith_model_config *config)
{
    return config->dim;
}

extern const struct kith_model kith_model_none;
const struct kith_model kith_model_none = {
    .name = "none",
    .paper = "-",
    .summary =
        "no parameters: decisions and messages only, as long as those of "
        "dim values if asked",
    .keys = KITH_MODEL_READS(DIM),
    .absent = true,
    .check = none_check,
    .dim = none_dim,
};
