/* The CUDA module: kith-cuda.so, loaded at run time, so that one program runs
 * with and without a GPU.
 *
 * It is looked for as kith/module.h says, KITH_CUDA_MODULE first, and loaded
 * only if it was built for these contracts.
 * Test: unit/test_cuda_module.c */
#ifndef KITH_CUDA_MODULE_H
#define KITH_CUDA_MODULE_H

#include "kith/backend.h"
#include "kith/err.h"

KITH_BEGIN_DECLS

#define KITH_CUDA_MAGIC "kith-cuda-module"
/* Counts changes of what the two sides exchange that sizes do not show. */
#define KITH_CUDA_ABI 6u

/* What the symbol kith_cuda_module holds. */
struct kith_cuda_module {
    char magic[sizeof KITH_CUDA_MAGIC];
    char version[16]; /* of the release it was built with */
    uint32_t abi, backend_bytes, ops_bytes;
    const struct kith_backend *single, *half; /* cuda, cuda-bf16 */
    /* Tells the module who checks vectors in the host's memory. */
    void (*attach)(const struct kith_backend *host);
};

/* The module, loaded and checked, or NULL and why not in a line: always the
 * same answer within a process. Where it is there but cannot run, its own
 * backends' `missing` says so. Thread-safe. */
const struct kith_cuda_module *kith_cuda_load(const char **why);

KITH_END_DECLS

#endif
