/* The most multiply-adds that the cores give: independent chains of the widest
 * FMA, long enough to hide its latency, no memory. What a product or a
 * convolution is held against, measured in the same rounds as they are. */
#ifndef KITH_BENCH_PEAK_H
#define KITH_BENCH_PEAK_H

#include "bench/bench.h"
#include "src/training/backend/pool.h"

#if defined(__x86_64__) && defined(__GNUC__)
#include <immintrin.h>

#define PEAK_LOOPS 100000
#define PEAK_CHAIN(X) X(0) X(1) X(2) X(3) X(4) X(5) X(6) X(7) X(8) X(9)

/* Keeps each value, so that no chain is left out. */
#define PEAK_KEEP(i) __asm__ volatile("" : "+x"(a##i));
#define PEAK_KEEP_WIDE(i) __asm__ volatile("" : "+v"(a##i));

__attribute__((target("avx512f"))) static double peak_flops_512(void)
{
    const __m512 m = _mm512_set1_ps(0.999f), c = _mm512_set1_ps(1e-6f);
#define PEAK_START(i) __m512 a##i = _mm512_set1_ps((float)i);
    PEAK_CHAIN(PEAK_START)
#undef PEAK_START
#define PEAK_STEP(i) a##i = _mm512_fmadd_ps(a##i, m, c);
    for (int k = 0; k < PEAK_LOOPS; k++) {
        PEAK_CHAIN(PEAK_STEP)
        PEAK_CHAIN(PEAK_KEEP_WIDE)
    }
#undef PEAK_STEP
    return 10.0 * 32 * PEAK_LOOPS;
}

__attribute__((target("avx2,fma"))) static double peak_flops_256(void)
{
    const __m256 m = _mm256_set1_ps(0.999f), c = _mm256_set1_ps(1e-6f);
#define PEAK_START(i) __m256 a##i = _mm256_set1_ps((float)i);
    PEAK_CHAIN(PEAK_START)
#undef PEAK_START
#define PEAK_STEP(i) a##i = _mm256_fmadd_ps(a##i, m, c);
    for (int k = 0; k < PEAK_LOOPS; k++) {
        PEAK_CHAIN(PEAK_STEP)
        PEAK_CHAIN(PEAK_KEEP)
    }
#undef PEAK_STEP
    return 10.0 * 16 * PEAK_LOOPS;
}

static inline double peak_work(void)
{
    if (__builtin_cpu_supports("avx512f"))
        return peak_flops_512();
    if (__builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma"))
        return peak_flops_256();
    return 0;
}
#else
static inline double peak_work(void)
{
    return 0;
}
#endif

static inline void peak_part(void *flops, size_t i)
{
    ((double *)flops)[i] = peak_work();
}

/* One thread is timed by its CPU seconds, which a busy machine disturbs less.
 */
static inline double peak_clock(unsigned threads)
{
    return threads == 1 ? bench_cpu() : bench_now();
}

/* FLOP/s of `threads` cores at once, best of three; 0 where we know no FMA of
 * this CPU. */
static inline double peak_measure(unsigned threads)
{
    double best = 0;
    for (int attempt = 0; attempt < 3; attempt++) {
        double flops[KITH_POOL_THREADS_MAX] = {0}, sum = 0;
        const double start = peak_clock(threads);
        kith_pool_run(threads, peak_part, flops);
        const double seconds = peak_clock(threads) - start;
        for (unsigned i = 0; i < threads; i++)
            sum += flops[i];
        best = sum / seconds > best ? sum / seconds : best;
    }
    return best;
}

#endif
