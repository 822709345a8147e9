/* Backend cpu: everything by our own loops in float32, vectorised for the
 * widest instruction set this CPU has; products by these, OpenBLAS or oneDNN.
 * Results may differ between CPUs. */
#include "cpu.h"

#include <limits.h>
#include <stdatomic.h>

#include "kith/assert.h"
#include "kith/backend.h"
#include "pool.h"

const struct kith_cpu_loops *const kith_cpu_loops[] = {
#ifdef KITH_CPU_X86
    &kith_cpu_avx512, &kith_cpu_avx2,
#endif
    &kith_cpu_portable, NULL};

static _Atomic(const struct kith_cpu_loops *) chosen;

/* Every thread would choose the same, so a race here only does the choosing
 * twice. */
const struct kith_cpu_loops *kith_cpu_best(void)
{
    const struct kith_cpu_loops *found =
        atomic_load_explicit(&chosen, memory_order_relaxed);
    if (found != NULL)
        return found;
    size_t i = 0;
    while (!kith_cpu_loops[i]->supported())
        i++;
    atomic_store_explicit(&chosen, kith_cpu_loops[i], memory_order_relaxed);
    return kith_cpu_loops[i];
}

void kith_cpu_choose(const struct kith_cpu_loops *variant)
{
    atomic_store_explicit(&chosen, variant, memory_order_relaxed);
}

void kith_backend_threads(unsigned count)
{
    KITH_ASSERT(count > 0 && count <= INT_MAX);
    kith_pool_set(count);
}

unsigned kith_backend_thread_count(void)
{
    return kith_pool_threads();
}

#define RECORD kith_backend_cpu
#define NAME "cpu"
#define SUMMARY "float32; vectorised products of our own, OpenBLAS or oneDNN"
#define OPS kith_cpu_ops
#define MISSING kith_host_missing
#include "cpu.inc.h"
