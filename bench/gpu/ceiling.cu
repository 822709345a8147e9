/* What the machine itself does, by the runtime alone: its name, copies on the
 * device and between it and pinned memory, GB/s counted as in bench_gpu.c. */
#include <cuda_runtime.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>

static void must(cudaError_t code, const char *what)
{
    if (code == cudaSuccess)
        return;
    fprintf(stderr, "bench_gpu: %s: %s\n", what, cudaGetErrorString(code));
    exit(1);
}

/* Seconds of one copy, the middle of 15. */
static double seconds_of(void *target, const void *source, size_t bytes)
{
    const int rounds = 15;
    float took[rounds];
    cudaEvent_t begin, end;
    must(cudaEventCreate(&begin), "an event");
    must(cudaEventCreate(&end), "an event");
    for (int i = -2; i < rounds; i++) {
        must(cudaEventRecord(begin), "an event");
        must(cudaMemcpyAsync(target, source, bytes, cudaMemcpyDefault), "copy");
        must(cudaEventRecord(end), "an event");
        must(cudaEventSynchronize(end), "copy");
        if (i >= 0)
            must(cudaEventElapsedTime(&took[i], begin, end), "an event");
    }
    for (int i = 1; i < rounds; i++) {
        const float t = took[i];
        int at = i;
        for (; at > 0 && took[at - 1] > t; at--)
            took[at] = took[at - 1];
        took[at] = t;
    }
    return took[rounds / 2] * 1e-3;
}

/* The device that the module takes, too; false: there is none. */
extern "C" bool ceiling_device(char *name, size_t size)
{
    cudaDeviceProp properties;
    const char *const told = getenv("KITH_CUDA_DEVICE");
    const int which = told == nullptr ? 0 : atoi(told);
    if (cudaSetDevice(which) != cudaSuccess ||
        cudaGetDeviceProperties(&properties, which) != cudaSuccess)
        return false;
    snprintf(name, size, "%s", properties.name);
    return true;
}

extern "C" void ceiling_copies(size_t bytes, double *device, double *out,
                               double *in)
{
    void *a = nullptr, *b = nullptr, *pinned = nullptr;
    must(cudaMalloc(&a, bytes), "memory");
    must(cudaMalloc(&b, bytes), "memory");
    must(cudaHostAlloc(&pinned, bytes, cudaHostAllocDefault), "pinned memory");
    must(cudaMemset(a, 1, bytes), "memory");
    *device = 2 * (double)bytes / seconds_of(b, a, bytes) * 1e-9;
    *out = (double)bytes / seconds_of(pinned, a, bytes) * 1e-9;
    *in = (double)bytes / seconds_of(a, pinned, bytes) * 1e-9;
    must(cudaFree(a), "memory");
    must(cudaFree(b), "memory");
    must(cudaFreeHost(pinned), "pinned memory");
}
