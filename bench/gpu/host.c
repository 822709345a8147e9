/* A backend cpu for machines that hold a compiler and a CUDA toolkit and little
 * else: the plain loops under its name. Checks vectors in the host's memory,
 * and is what nothing here is timed against. */
#include "kith/backend.h"

#define REAL float
#define RECORD kith_backend_cpu
#define NAME "cpu"
#define SUMMARY "plain loops, in the place of OpenBLAS"
#include "src/training/backend/naive.inc.h"

static const char *no_bf16(void)
{
    return "built without it";
}

extern const struct kith_backend kith_backend_cpu_bf16;
const struct kith_backend kith_backend_cpu_bf16 = {
    .name = "cpu-bf16",
    .summary = "not here",
    .element_bytes = sizeof(float),
    .host = &kith_backend_cpu_bf16,
    .missing = no_bf16,
};
