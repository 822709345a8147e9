/* The table of models, generated from models.def. */
#include "kith/model.h"

#include <string.h>

#define X(name) extern const struct kith_model kith_model_##name;
#include "models.def"
#undef X

const struct kith_model *const kith_models[] = {
#define X(name) &kith_model_##name,
#include "models.def"
#undef X
    NULL};

const struct kith_model *kith_model_find(const char *name)
{
    for (size_t i = 0; kith_models[i] != NULL; i++) {
        if (strcmp(kith_models[i]->name, name) == 0)
            return kith_models[i];
    }
    return NULL;
}
