/* Opens oneDNN. Its own threads stay out of it: they would spin against ours.
 */
#include "onednn.h"

#include <dlfcn.h>
#include <pthread.h>
#include <stdbool.h>
#include <string.h>

#include "kith/assert.h"

/* OpenMP's number of threads, which every calling thread has to set for itself;
 * dnnl_get_effective_cpu_isa. */
typedef void (*openmp_threads)(int count);
typedef int (*onednn_isa)(void);

static struct {
    pthread_once_t once;
    openmp_threads threads;
    struct kith_onednn found; /* sgemm NULL: not here */
} library = {.once = PTHREAD_ONCE_INIT};

/* A symbol's address as a function, by way of its bytes: ISO C has no cast. */
static void symbol(void *handle, const char *name, void *function)
{
    void *const address = dlsym(handle, name);
    memcpy(function, &address, sizeof address);
}

static void open_library(void)
{
    void *const handle = dlopen("libdnnl.so.2", RTLD_NOW | RTLD_LOCAL);
    onednn_isa isa;
    if (handle == NULL)
        return;
    symbol(handle, "omp_set_num_threads", &library.threads);
    if (library.threads == NULL)
        return;
    symbol(handle, "dnnl_sgemm", &library.found.sgemm);
    symbol(handle, "dnnl_gemm_bf16bf16f32", &library.found.bf16);
    symbol(handle, "dnnl_get_effective_cpu_isa", &isa);
    library.found.isa = isa == NULL ? 0 : isa();
}

const struct kith_onednn *kith_onednn(void)
{
    (void)pthread_once(&library.once, open_library);
    return library.found.sgemm == NULL ? NULL : &library.found;
}

const struct kith_onednn *kith_onednn_alone(void)
{
    static __attribute__((tls_model("initial-exec"))) _Thread_local bool alone;
    const struct kith_onednn *const found = kith_onednn();
    KITH_ASSERT(found != NULL);
    if (!alone)
        library.threads(1);
    alone = true;
    return found;
}
