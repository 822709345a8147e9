/* No parameters at all: for the speed and the decisions of the simulator. */
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
    (void)config;
    return 0;
}

extern const struct kith_model kith_model_none;
const struct kith_model kith_model_none = {
    .name = "none",
    .paper = "-",
    .summary = "no parameters: decisions and messages only",
    .check = none_check,
    .dim = none_dim,
};
