/* Three providers of matrix products behind one contract, each on one thread
 * per part of C; which one is a setting, not a guess: see backend.h.
 *
 *   own       cpu_products.inc.h: bias and activation follow while the part is
 *             in the cache; the same bits for any number of threads
 *   openblas  linked
 *   onednn    libdnnl.so.2, where it is installed: no build needs it
 *
 * The libraries' own threads stay out of it: they would spin against ours. */
#include "products.h"

#include <cblas.h>
#include <limits.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdint.h>
#include <string.h>
#include <time.h>

#include "kith/assert.h"
#include "kith/backend.h"
#include "memory.h"
#include "onednn.h"
#include "pool.h"

enum provider { OWN, OPENBLAS, ONEDNN, PROVIDERS };
const char *const kith_backend_products[] = {
    [OWN] = "own", [OPENBLAS] = "openblas", [ONEDNN] = "onednn", NULL};

/* Nobody has chosen: own products, but where there are only plain loops, which
 * are a fifth as fast, OpenBLAS's. */
enum { UNSET = -1 };
static atomic_int setting = UNSET;

static enum provider in_force(void)
{
    const int chosen = atomic_load(&setting);
    if (chosen != UNSET)
        return (enum provider)chosen;
    return kith_cpu_best() == &kith_cpu_portable ? OPENBLAS : OWN;
}

static bool present(enum provider which)
{
    if (which != ONEDNN)
        return true;
    return kith_onednn() != NULL;
}

enum kith_err kith_backend_product(const char *name)
{
    for (int i = 0; i < PROVIDERS; i++) {
        if (strcmp(kith_backend_products[i], name) != 0)
            continue;
        if (!present((enum provider)i))
            return KITH_EUNSUPPORTED;
        atomic_store(&setting, i);
        return KITH_OK;
    }
    return KITH_EINVAL;
}

const char *kith_backend_product_name(void)
{
    return kith_backend_products[in_force()];
}

/* C <- alpha A B + beta C by a library, on this thread. */
struct library_product {
    struct kith_product p;
    float alpha, beta;
};

static void openblas_alone(void)
{
    openblas_set_num_threads(1);
}

static void library_run(enum provider which, const struct library_product *l)
{
    const struct kith_product *p = &l->p;
    const bool ta = p->a.column != 1, tb = p->b.column != 1;
    const size_t lda = ta ? p->a.column : p->a.row;
    const size_t ldb = tb ? p->b.column : p->b.row;
    if (which == ONEDNN) {
        const int status = kith_onednn_alone()->sgemm(
            ta ? 'T' : 'N', tb ? 'T' : 'N', (int64_t)p->m, (int64_t)p->n,
            (int64_t)p->k, l->alpha, p->a.at, (int64_t)lda, p->b.at,
            (int64_t)ldb, l->beta, p->c, (int64_t)p->stride);
        KITH_ASSERT(status == 0);
        return;
    }
    static pthread_once_t once = PTHREAD_ONCE_INIT;
    (void)pthread_once(&once, openblas_alone);
    KITH_ASSERT(p->m <= INT_MAX && p->n <= INT_MAX && p->k <= INT_MAX);
    KITH_ASSERT(lda <= INT_MAX && ldb <= INT_MAX && p->stride <= INT_MAX);
    cblas_sgemm(CblasRowMajor, ta ? CblasTrans : CblasNoTrans,
                tb ? CblasTrans : CblasNoTrans, (blasint)p->m, (blasint)p->n,
                (blasint)p->k, l->alpha, p->a.at, (blasint)lda, p->b.at,
                (blasint)ldb, l->beta, p->c, (blasint)p->stride);
}

/* C cut into a grid; part i is row i / columns, column i % columns of it. */
struct grid {
    const struct library_product *of;
    enum provider which;
    size_t rows, columns; /* of one part */
    size_t across;        /* parts side by side */
};

/* A corner of a product as a product. */
static struct kith_product corner(const struct kith_product *p, size_t m0,
                                  size_t m, size_t n0, size_t n)
{
    struct kith_product part = *p;
    part.m = m;
    part.n = n;
    part.a.at += m0 * p->a.row;
    part.b.at += n0 * p->b.column;
    part.c += m0 * p->stride + n0;
    part.bias = p->bias == NULL ? NULL : p->bias + n0;
    part.pre = p->pre == NULL ? NULL : p->pre + m0 * p->stride + n0;
    return part;
}

static void grid_part(void *context, size_t i)
{
    const struct grid *g = context;
    const struct kith_product *p = &g->of->p;
    const size_t m0 = i / g->across * g->rows;
    const size_t n0 = i % g->across * g->columns;
    const size_t m = kith_least(g->rows, p->m - m0);
    const size_t n = kith_least(g->columns, p->n - n0);
    if (g->which == OWN) {
        kith_cpu_best()->text->product(p, m0, m0 + m, n0, n0 + n);
        return;
    }
    const struct library_product part = {corner(p, m0, m, n0, n), g->of->alpha,
                                         g->of->beta};
    library_run(g->which, &part);
    if (p->finish)
        kith_cpu_best()->text->finish((struct kith_rows){m, n, p->stride},
                                      part.p.bias, p->activation, part.p.pre,
                                      part.p.c);
}

static size_t share(size_t n, size_t parts, size_t unit)
{
    const size_t units = (n + unit - 1) / unit;
    return (units + parts - 1) / parts * unit;
}

/* Products below this many multiplications (some 3 us) are not worth waking a
 * thread for. */
#define SMALL (UINT64_C(1) << 17)
/* A part no side of which is below this multiplies well; parts for each thread,
 * so that all end together though some are disturbed. */
enum { SIDE = 64, PARTS = 4 };

/* Halves the longer side until there are parts enough. Own sums do not depend
 * on the cut. */
static void cut(struct grid *g, size_t threads)
{
    const struct kith_product *p = &g->of->p;
    size_t down = 1, across = 1;
    while (down * across < PARTS * threads) {
        if (g->rows >= g->columns && g->rows >= 2 * SIDE)
            g->rows = share(p->m, 2 * down, SIDE);
        else if (g->columns >= 2 * SIDE)
            g->columns = share(p->n, 2 * across, SIDE);
        else
            return;
        down = (p->m + g->rows - 1) / g->rows;
        across = (p->n + g->columns - 1) / g->columns;
    }
}

static void grid_run(enum provider which, const struct library_product *l)
{
    const struct kith_product *p = &l->p;
    struct grid g = {l, which, p->m, p->n, 1};
    const size_t threads = kith_pool_threads();
    const bool small = (uint64_t)p->m * p->n * p->k <= SMALL;
    if (!small && threads > 1 && which == OWN)
        cut(&g, threads);
    /* Libraries pack all of B for every part: one a thread. */
    else if (!small && p->m >= p->n)
        g.rows = share(p->m, threads, SIDE);
    else if (!small)
        g.columns = share(p->n, threads, SIDE);
    g.across = (p->n + g.columns - 1) / g.columns;
    kith_pool_run((p->m + g.rows - 1) / g.rows * g.across, grid_part, &g);
}

void kith_product_run(const struct kith_product *p)
{
    KITH_ASSERT(p->k > 0);
    if (p->m == 0 || p->n == 0)
        return;
    const struct library_product whole = {*p, 1, p->add ? 1 : 0};
    grid_run(in_force(), &whole);
}

static bool is(double x, double value)
{
    return x >= value && x <= value;
}

void kith_product_gemm(const struct kith_gemm *g)
{
    if (g->m == 0 || g->n == 0)
        return;
    const struct library_product l = {
        {.m = g->m,
         .n = g->n,
         .k = g->k,
         .a = {g->a, g->transpose_a ? 1 : g->k, g->transpose_a ? g->m : 1},
         .b = {g->b, g->transpose_b ? 1 : g->n, g->transpose_b ? g->k : 1},
         .c = g->c,
         .stride = g->n,
         .add = is(g->beta, 1)},
        (float)g->alpha,
        (float)g->beta};
    const enum provider now = in_force();
    /* Own products know no factors. */
    const bool plain =
        is(g->alpha, 1) && (is(g->beta, 0) || is(g->beta, 1)) && g->k > 0;
    grid_run(now == OWN && !plain ? OPENBLAS : now, &l);
}

/* Products of an MLP's and a small GPT's step: W^T, W, x^T dy. */
static const struct kith_gemm shapes[] = {
    {false, true, 64, 512, 784, .alpha = 1},
    {true, false, 512, 784, 64, .alpha = 1},
    {false, false, 64, 512, 512, .alpha = 1},
    {false, false, 1024, 384, 128, .alpha = 1},
    {false, true, 1024, 128, 384, .alpha = 1},
    {true, false, 128, 384, 1024, .alpha = 1}};
enum { SHAPES = sizeof shapes / sizeof *shapes, ROUNDS = 9 };

static double seconds(void)
{
    struct timespec t;
    (void)timespec_get(&t, TIME_UTC);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

static double measure_once(const float *a, const float *b, float *c)
{
    const double start = seconds();
    for (size_t i = 0; i < SHAPES; i++) {
        struct kith_gemm product = shapes[i];
        product.a = a;
        product.b = b;
        product.c = c;
        kith_product_gemm(&product);
    }
    return seconds() - start;
}

const char *kith_backend_measure_products(double gflops[KITH_PRODUCTS])
{
    double flop = 0, best[PROVIDERS] = {0};
    size_t elements = 0;
    for (size_t i = 0; i < SHAPES; i++) {
        const struct kith_gemm *s = &shapes[i];
        flop += 2 * (double)s->m * (double)s->n * (double)s->k;
        const size_t most = s->m * s->n + s->m * s->k + s->n * s->k;
        elements = most > elements ? most : elements;
    }
    float *const memory = kith_host_alloc(3 * elements * sizeof *memory, false);
    const int before = atomic_load(&setting);
    /* The quickest of some rounds: what disturbs only slows down. */
    for (int round = 0; memory != NULL && round < ROUNDS; round++) {
        for (int i = 0; i < PROVIDERS; i++) {
            if (!present((enum provider)i))
                continue;
            atomic_store(&setting, i);
            const double rate =
                1e-9 * flop /
                measure_once(memory, memory + elements, memory + 2 * elements);
            best[i] = rate > best[i] ? rate : best[i];
        }
    }
    atomic_store(&setting, before);
    kith_host_release(memory);
    int winner = (int)in_force();
    for (int i = 0; i < PROVIDERS; i++) {
        winner = best[i] > best[winner] ? i : winner;
        gflops[i] = best[i];
    }
    return kith_backend_products[winner];
}
