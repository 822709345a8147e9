/* Which backend `auto` means, and which one reads what a device has written. */
#include "kith/backend.h"

extern const struct kith_backend kith_backend_cpu;
extern struct kith_backend kith_backend_cuda;

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
