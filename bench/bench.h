/* What every benchmark shares: clock, median and spread, ratios, pinning.
 *
 * The rule of this folder: a hot path and its ceiling run alternately, in the
 * same rounds of one process, because a shared machine drifts by 30 % within
 * minutes. The ratio is taken round by round and its median is the result.
 * Include this file first: it asks for GNU's features. */
#ifndef KITH_BENCH_BENCH_H
#define KITH_BENCH_BENCH_H

#ifndef _GNU_SOURCE
#define _GNU_SOURCE /* sched_setaffinity */
#endif
#include <sched.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>

/* Rounds of one series; a median of 7 survives three disturbed rounds. */
#define BENCH_ROUNDS_MAX 256
#define BENCH_ROUNDS 7

struct bench_spread {
    double median, least, most;
};

/* Before a ceiling: what the compiler makes of plain loops at its best. */
#if defined(__x86_64__) && defined(__clang__)
#define BENCH_BEST __attribute__((target_clones("avx512f", "avx2", "default")))
#elif defined(__x86_64__) && defined(__GNUC__)
#define BENCH_BEST                                                             \
    __attribute__((optimize("O3"), target_clones("avx512f", "avx2", "default")))
#else
#define BENCH_BEST
#endif

/* Seconds of the monotonic clock. */
static inline double bench_now(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

/* CPU seconds of the calling thread: steadier than bench_now() on a shared
 * machine, where the work measured stays on one thread and does no I/O. */
static inline double bench_cpu(void)
{
    struct timespec t;
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

static inline int bench_compare(const void *left, const void *right)
{
    const double a = *(const double *)left, b = *(const double *)right;
    return (a > b) - (a < b);
}

/* values (count), 1 <= count <= BENCH_ROUNDS_MAX; their order is kept. */
static inline struct bench_spread bench_spread_of(const double *values,
                                                  int count)
{
    double sorted[BENCH_ROUNDS_MAX];
    const int n = count < BENCH_ROUNDS_MAX ? count : BENCH_ROUNDS_MAX;
    memcpy(sorted, values, (size_t)n * sizeof *sorted);
    qsort(sorted, (size_t)n, sizeof *sorted, bench_compare);
    const struct bench_spread spread = {
        n % 2 ? sorted[n / 2] : 0.5 * (sorted[n / 2 - 1] + sorted[n / 2]),
        sorted[0], sorted[n - 1]};
    return spread;
}

/* One line: name, median [min..max] unit. Returns the median. */
static inline double bench_print(const char *name, const double *values,
                                 int count, const char *unit)
{
    const struct bench_spread s = bench_spread_of(values, count);
    printf("%-48s %10.4g [%.4g..%.4g] %s\n", name, s.median, s.least, s.most,
           unit);
    fflush(stdout);
    return s.median;
}

/* The median of ours[i] / ceiling[i], printed beside its target, 0: it has
 * none; both series come from the same rounds and "more is better". Returns the
 * median. */
static inline double bench_ratio(const char *name, const double *ours,
                                 const double *ceiling, int count,
                                 double target)
{
    double ratios[BENCH_ROUNDS_MAX];
    for (int i = 0; i < count && i < BENCH_ROUNDS_MAX; i++)
        ratios[i] = ours[i] / ceiling[i];
    const struct bench_spread s = bench_spread_of(ratios, count);
    printf("%-48s %10.3f [%.3f..%.3f] ratio", name, s.median, s.least, s.most);
    if (target > 0)
        printf(", target >= %.2f: %s", target,
               s.median >= target ? "met" : "MISSED");
    putchar('\n');
    fflush(stdout);
    return s.median;
}

/* Keeps the calling thread on one core; a refusal only costs steadiness. */
static inline void bench_pin(int core)
{
    cpu_set_t set;
    CPU_ZERO(&set);
    CPU_SET((size_t)core, &set);
    if (sched_setaffinity(0, sizeof set, &set) != 0)
        fprintf(stderr, "bench: could not pin to core %d\n", core);
}

/* Zeroed pages, huge where the kernel agrees; exits when there are none. */
static inline void *bench_alloc(size_t size)
{
    void *pages = mmap(NULL, size, PROT_READ | PROT_WRITE,
                       MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (pages == MAP_FAILED) {
        perror("bench: mmap");
        exit(1);
    }
    madvise(pages, size, MADV_HUGEPAGE);
    return pages;
}

/* A setting from the environment, e.g. BENCH_SECONDS; `otherwise` if unset. */
static inline double bench_setting(const char *name, double otherwise)
{
    const char *text = getenv(name);
    return text && *text ? strtod(text, NULL) : otherwise;
}

#endif
