/* Values of an operation in both precisions, for cpu beside naive64 on every
 * instruction set that this CPU has. */
#ifndef KITH_TESTS_OP_PAIRS_H
#define KITH_TESTS_OP_PAIRS_H

#include <float.h>
#include <math.h>
#include <stdlib.h>

#include "kith/backend.h"
#include "kith/rng.h"
#include "src/training/backend/cpu.h"
#include "src/training/backend/products.h"

#define UNIT ((double)FLT_EPSILON)

static inline const struct kith_ops *exact_ops(void)
{
    return kith_backend_find("naive64")->ops;
}

static inline const struct kith_backend *cpu(void)
{
    return kith_backend_find("cpu");
}

/* The same values in both precisions. */
struct pair {
    size_t n;
    float *f;
    double *d;
};

static inline struct pair pair_new(size_t n, double spread, uint64_t seed)
{
    const struct pair p = {n, cpu()->alloc((n + 1) * sizeof(float), false),
                           malloc((n + 1) * sizeof(double))};
    assert_non_null(p.f);
    assert_non_null(p.d);
    struct kith_rng rng;
    kith_rng_init(&rng, seed, KITH_STREAM_TEST, n);
    for (size_t i = 0; i < n; i++) {
        p.f[i] = (float)(spread * (2 * kith_rng_double(&rng) - 1));
        p.d[i] = (double)p.f[i];
    }
    return p;
}

static inline void pair_free(struct pair p)
{
    cpu()->release(p.f);
    free(p.d);
}

/* |f - d| <= absolute + relative |d| */
static inline void assert_pair(const char *what, struct pair p, double absolute,
                               double relative)
{
    for (size_t i = 0; i < p.n; i++) {
        const double error = fabs((double)p.f[i] - p.d[i]);
        if (!(error <= absolute + relative * fabs(p.d[i])))
            fail_msg("%s, %s, %s: element %zu of %zu is %.9g, not %.17g",
                     kith_cpu_best()->name, kith_backend_product_name(), what,
                     i, p.n, (double)p.f[i], p.d[i]);
    }
}

static inline void for_each_variant(void (*test)(void))
{
    for (size_t i = 0; kith_cpu_loops[i] != NULL; i++) {
        if (!kith_cpu_loops[i]->supported())
            continue;
        kith_cpu_choose(kith_cpu_loops[i]);
        test();
    }
    kith_cpu_choose(NULL);
}

/* Sums of n products below 1 in size: partial sums of random signs stay below
 * 2 sqrt(n), and of n roundings of half a unit each as many go up as down:
 * their sum stays below 2 sqrt(n) times that, 2 n units in all. */
static inline double sum_slack(size_t n)
{
    return 2 * UNIT * (double)(n + 4);
}

/* Every instruction set's own products, the plain one's too. */
static inline int choose_own(void **state)
{
    (void)state;
    return kith_backend_product("own") == KITH_OK ? 0 : -1;
}

#endif
