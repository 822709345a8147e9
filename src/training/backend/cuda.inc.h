/* One backend of the CUDA module, as a record of this program. Compiled once
 * per record:
 *
 *   RECORD  its name, NAME and SUMMARY its texts
 *   MEMBER  which of the module's backends
 *
 * The record starts with what is known without the module; the first call of
 * `missing` or `alloc` loads the module, whose functions then stand in the
 * record. Nothing else may be called before `missing` answered NULL. */
#include <pthread.h>

#include "kith/assert.h"
#include "kith/cuda_module.h"

extern const struct kith_backend kith_backend_cpu;
extern struct kith_backend RECORD;

static const char *cuda_missing(void);

static void fill_record(void)
{
    const char *why;
    const struct kith_cuda_module *const module = kith_cuda_load(&why);
    if (module == NULL)
        return;
    struct kith_backend filled = *module->MEMBER;
    filled.name = NAME;
    filled.summary = SUMMARY;
    filled.missing = cuda_missing;
    RECORD = filled;
}

static const char *cuda_missing(void)
{
    static pthread_once_t once = PTHREAD_ONCE_INIT;
    const char *why;
    (void)pthread_once(&once, fill_record);
    const struct kith_cuda_module *const module = kith_cuda_load(&why);
    return module == NULL ? why : module->MEMBER->missing();
}

/* A caller that did not ask `missing` gets no memory, and so no further. */
static void *cuda_alloc(size_t bytes, bool shared)
{
    return cuda_missing() == NULL ? RECORD.alloc(bytes, shared) : NULL;
}

/* So there is none to give back. */
static void release_none(void *memory)
{
    KITH_ASSERT(memory == NULL);
}

struct kith_backend RECORD = {
    .name = NAME,
    .summary = SUMMARY,
    .element_bytes = sizeof(float),
    .host = &kith_backend_cpu,
    .missing = cuda_missing,
    .alloc = cuda_alloc,
    .release = release_none,
    .activation_bytes = ACTIVATION_BYTES,
};
