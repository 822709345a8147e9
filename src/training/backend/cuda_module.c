/* Loading kith-cuda.so. See kith/cuda_module.h. */
#include "kith/cuda_module.h"

#include <pthread.h>
#include <stdio.h>
#include <string.h>

#include "kith/module.h"

#ifndef PACKAGE_VERSION
#define PACKAGE_VERSION "unversioned"
#endif

static struct {
    pthread_once_t once;
    const struct kith_cuda_module *module;
    char why[KITH_MODULE_PATH_BYTES + 512];
} loaded = {.once = PTHREAD_ONCE_INIT};

static bool check_module(const struct kith_cuda_module *module,
                         const char *path, char *why, size_t size)
{
    if (module == NULL ||
        memcmp(module->magic, KITH_CUDA_MAGIC, sizeof KITH_CUDA_MAGIC) != 0) {
        (void)snprintf(why, size, "%s is not a CUDA module of kith", path);
        return false;
    }
    if (module->abi == KITH_CUDA_ABI &&
        module->backend_bytes == sizeof(struct kith_backend) &&
        module->ops_bytes == sizeof(struct kith_ops) &&
        strncmp(module->version, PACKAGE_VERSION, sizeof module->version) == 0)
        return true;
    (void)snprintf(why, size,
                   "%s is of another version (%.*s, interface %u; this is %s, "
                   "interface %u): build or install both together",
                   path, (int)sizeof module->version, module->version,
                   (unsigned)module->abi, PACKAGE_VERSION, KITH_CUDA_ABI);
    return false;
}

static void load(void)
{
    static const struct kith_module module = {
        .file = "kith-cuda.so",
        .variable = "KITH_CUDA_MODULE",
        .symbol = "kith_cuda_module",
        .build = "build it with a CUDA toolkit (configure --with-cuda)"};
    extern const struct kith_backend kith_backend_cpu;
    char path[KITH_MODULE_PATH_BYTES];
    void *library;
    const void *found;
    if (!kith_module_load(&module, &library, &found, path, loaded.why,
                          sizeof loaded.why))
        return;
    const struct kith_cuda_module *const cuda = found;
    if (!check_module(cuda, path, loaded.why, sizeof loaded.why)) {
        kith_module_unload(library);
        return;
    }
    cuda->attach(&kith_backend_cpu);
    loaded.module = cuda;
}

const struct kith_cuda_module *kith_cuda_load(const char **why)
{
    (void)pthread_once(&loaded.once, load);
    *why = loaded.module == NULL ? loaded.why : NULL;
    return loaded.module;
}
