/* The table of backends, generated from backends.def, and what `auto` means. */
#include "kith/backend.h"

#include <string.h>

#define X(name, constancy)                                                     \
    extern constancy struct kith_backend kith_backend_##name;
#include "backends.def"
#undef X

const struct kith_backend *const kith_backends[] = {
#define X(name, constancy) &kith_backend_##name,
#include "backends.def"
#undef X
    NULL};

const struct kith_backend *kith_backend_find(const char *name)
{
    for (size_t i = 0; kith_backends[i] != NULL; i++) {
        if (strcmp(kith_backends[i]->name, name) == 0)
            return kith_backends[i];
    }
    return NULL;
}

const struct kith_backend *kith_backend_auto(void)
{
    return kith_backend_cuda.missing() == NULL ? &kith_backend_cuda
                                               : &kith_backend_cpu;
}

const struct kith_backend *
kith_backend_stand_in(const struct kith_backend *backend)
{
    return backend->host->missing() == NULL ? backend->host : &kith_backend_cpu;
}
