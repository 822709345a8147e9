/* Extreme eigenvalues of a symmetric operator A on vectors of mean 0, by
 * Lanczos' iteration from a seeded random start:
 *
 *   w = A v_j - beta_(j-1) v_(j-1),  alpha_j = w . v_j,
 *   w <- w - alpha_j v_j,            beta_j = |w|,  v_(j+1) = w / beta_j.
 *
 * The tridiagonal matrix of alpha and beta has A's outermost eigenvalues first,
 * also without orthogonalising again: what that costs are copies of those that
 * are found already. They are cut out by bisection with Sturm's count.
 *
 * Paige, IMA Journal of Applied Mathematics 18(3), 1976. */
#include "topology_kinds.h"

#include <float.h>
#include <math.h>
#include <string.h>

#include "kith/assert.h"

/* Edge visits of one call, about: seconds, not minutes. */
#define VISITS_MAX UINT64_C(1000000000)
/* Steps before the first look; then looks grow by a quarter. */
#define LOOK_FIRST 16u
/* A look has settled where both ends moved by less, relative to the width. */
#define SETTLED 2e-15
/* The rest of a vector that is nothing but rounding. */
#define NOTHING 1e-14

struct tridiagonal {
    double *alpha, *beta; /* (count); beta[j] couples j and j + 1 */
    uint32_t count;
};

static double dot(uint32_t n, const double *x, const double *y)
{
    double sum = 0;
    for (uint32_t i = 0; i < n; i++)
        sum += x[i] * y[i];
    return sum;
}

static void subtract_mean(uint32_t n, double *x)
{
    double sum = 0;
    for (uint32_t i = 0; i < n; i++)
        sum += x[i];
    for (uint32_t i = 0; i < n; i++)
        x[i] -= sum / n;
}

static double normalise(uint32_t n, double *x)
{
    const double norm = sqrt(dot(n, x, x));
    for (uint32_t i = 0; i < n && norm > 0; i++)
        x[i] /= norm;
    return norm;
}

/* Eigenvalues of T below x: the negative pivots of T - x I. */
static uint32_t below(const struct tridiagonal *t, double x)
{
    uint32_t count = 0;
    double pivot = 1;
    for (uint32_t j = 0; j < t->count; j++) {
        const double square = j == 0 ? 0 : t->beta[j - 1] * t->beta[j - 1];
        pivot = t->alpha[j] - x - square / pivot;
        if (pivot == 0)
            pivot = -DBL_MIN;
        count += pivot < 0;
    }
    return count;
}

/* The eigenvalue that has `rank` others below it. */
static double eigenvalue(const struct tridiagonal *t, uint32_t rank)
{
    double low = t->alpha[0], high = t->alpha[0];
    for (uint32_t j = 0; j < t->count; j++) {
        const double reach =
            (j > 0 ? t->beta[j - 1] : 0) + (j + 1 < t->count ? t->beta[j] : 0);
        low = fmin(low, t->alpha[j] - reach);
        high = fmax(high, t->alpha[j] + reach);
    }
    for (;;) {
        const double middle = low + (high - low) / 2;
        if (middle <= low || middle >= high)
            return high;
        if (below(t, middle) > rank)
            high = middle;
        else
            low = middle;
    }
}

static struct kith_spectrum ends_of(const struct tridiagonal *t)
{
    return (struct kith_spectrum){.low = eigenvalue(t, 0),
                                  .high = eigenvalue(t, t->count - 1)};
}

/* The basis, vector by vector; nothing is kept of it but the last two. */
struct basis {
    uint32_t n;
    kith_operator *apply;
    const void *context;
    double *v, *last, *w; /* (n) each */
    double beta;
};

static void basis_start(struct basis *basis)
{
    struct kith_rng rng;
    kith_rng_init(&rng, basis->n, KITH_STREAM_TOPOLOGY, 0);
    for (uint32_t i = 0; i < basis->n; i++) {
        basis->v[i] = kith_rng_double(&rng) - 0.5;
        basis->last[i] = 0;
    }
    subtract_mean(basis->n, basis->v);
    (void)normalise(basis->n, basis->v);
    basis->beta = 0;
}

/* One more row of T; false where the basis is complete. */
static bool basis_step(struct basis *basis, struct tridiagonal *t)
{
    const uint32_t n = basis->n;
    basis->apply(basis->context, basis->v, basis->w);
    for (uint32_t i = 0; i < n; i++)
        basis->w[i] -= basis->beta * basis->last[i];
    subtract_mean(n, basis->w);
    const double alpha = dot(n, basis->w, basis->v);
    for (uint32_t i = 0; i < n; i++)
        basis->w[i] -= alpha * basis->v[i];
    subtract_mean(n, basis->w);
    double *const spare = basis->last;
    basis->last = basis->v;
    basis->v = basis->w;
    basis->w = spare;
    basis->beta = normalise(n, basis->v);
    t->alpha[t->count] = alpha;
    t->beta[t->count++] = basis->beta;
    return basis->beta > NOTHING * fmax(1, fabs(alpha));
}

static bool is_settled(const struct kith_spectrum *now,
                       const struct kith_spectrum *before)
{
    const double width = fmax(fabs(now->low), fabs(now->high));
    return fabs(now->low - before->low) <= SETTLED * width &&
           fabs(now->high - before->high) <= SETTLED * width;
}

static struct kith_spectrum iterate(struct basis *basis, uint64_t visits,
                                    struct tridiagonal *t, double *scratch)
{
    const size_t n = basis->n;
    KITH_ASSERT(n >= 2);
    basis->v = scratch;
    basis->last = scratch + n;
    basis->w = scratch + 2 * n;
    t->alpha = scratch + 3 * n;
    t->beta = t->alpha + KITH_RHO_STEPS;
    struct kith_spectrum now = {0, 0, false};
    uint32_t settled = 0, look = LOOK_FIRST;
    uint64_t spent = 0;
    basis_start(basis);
    t->count = 0;
    for (;;) {
        const bool complete = !basis_step(basis, t);
        spent += visits;
        const bool more = !complete && t->count < KITH_RHO_STEPS;
        if (more && spent < VISITS_MAX && t->count < look)
            continue;
        look += look / 4;
        const struct kith_spectrum before = now;
        now = ends_of(t);
        settled = is_settled(&now, &before) ? settled + 1 : 0;
        now.settled = complete || settled == 3;
        if (!more || spent >= VISITS_MAX || settled == 3)
            return now;
    }
}

struct kith_spectrum kith_spectrum_find(uint32_t n, kith_operator *apply,
                                        const void *context, uint64_t visits,
                                        double *scratch)
{
    struct basis basis = {.n = n, .apply = apply, .context = context};
    struct tridiagonal t;
    return iterate(&basis, visits, &t, scratch);
}

/* s <- (T - shift I)^-1 s, all pivots positive: shift is below the spectrum. */
static void solve(const struct tridiagonal *t, double shift, double *pivots,
                  double *s)
{
    for (uint32_t j = 0; j < t->count; j++) {
        pivots[j] = t->alpha[j] - shift;
        if (j == 0)
            continue;
        const double ratio = t->beta[j - 1] / pivots[j - 1];
        pivots[j] -= ratio * t->beta[j - 1];
        s[j] -= ratio * s[j - 1];
    }
    for (uint32_t j = t->count; j-- > 0;) {
        if (j + 1 < t->count)
            s[j] -= t->beta[j] * s[j + 1];
        s[j] /= pivots[j];
    }
}

/* The vector of T by two inverse iterations, then the basis once more. */
double kith_spectrum_lowest(uint32_t n, kith_operator *apply,
                            const void *context, double *scratch,
                            double *vector)
{
    struct basis basis = {.n = n, .apply = apply, .context = context};
    struct tridiagonal t;
    double s[KITH_RHO_STEPS], pivots[KITH_RHO_STEPS];
    const struct kith_spectrum ends = iterate(&basis, n, &t, scratch);
    const double shift = ends.low - 1e-9 * fmax(1, fabs(ends.high));
    const uint32_t count = t.count;
    for (uint32_t j = 0; j < count; j++)
        s[j] = 1;
    for (int i = 0; i < 2; i++) {
        solve(&t, shift, pivots, s);
        (void)normalise(count, s);
    }
    memset(vector, 0, n * sizeof *vector);
    basis_start(&basis);
    t.count = 0;
    for (uint32_t j = 0; j < count; j++) {
        for (uint32_t i = 0; i < n; i++)
            vector[i] += s[j] * basis.v[i];
        (void)basis_step(&basis, &t);
    }
    (void)normalise(n, vector);
    return ends.low;
}

/* out <- L x. */
static void laplacian(const void *context, const double *x, double *out)
{
    const struct kith_topology *graph = context;
    kith_id peers[KITH_DEGREE_MAX];
    for (kith_id i = 0; i < graph->peers; i++) {
        const uint32_t count =
            kith_topology_neighbours(graph, i, 0, peers, NULL);
        out[i] = count * x[i];
        for (uint32_t k = 0; k < count; k++)
            out[i] -= x[peers[k]];
    }
}

struct kith_spectrum kith_spectrum_laplacian(const struct kith_topology *graph,
                                             double *scratch)
{
    KITH_ASSERT(graph->kind->is_static && !graph->kind->directed);
    return kith_spectrum_find(graph->peers, laplacian, graph,
                              8 * (uint64_t)graph->peers, scratch);
}
