/* What several algorithms do alike. */
#include "common.h"

void algorithm_mix(struct kith_algebra *algebra, struct kith_work_edge *edge)
{
    edge->delta_sum =
        algebra->backend->mix(algebra->dim, edge->weight, algebra->received,
                              algebra->sent, algebra->live);
}

void algorithm_swap_mix(struct kith_algebra *algebra,
                        struct kith_work_edge *edge)
{
    edge->delta_sum = algebra->backend->swap_mix(algebra->dim, edge->weight,
                                                 algebra->received,
                                                 algebra->sent, algebra->live);
}

void algorithm_unmix(struct kith_algebra *algebra, struct kith_work_edge *edge)
{
    (void)algebra->backend->mix(algebra->dim, -edge->weight, algebra->received,
                                algebra->sent, algebra->live);
}

void algorithm_add_difference(const struct kith_backend *backend, size_t n,
                              const void *a, const void *b, void *y)
{
    const struct kith_term difference = {1, a, b};
    algorithm_combine_only(backend, n, 1, y, 1, &difference);
}

static void combine_by_passes(const struct kith_backend *backend, size_t n,
                              double own, void *y, unsigned count,
                              const struct kith_term *terms)
{
    const bool reads = own < 0 || own > 0;
    if (reads)
        backend->scale(n, own, y);
    for (unsigned t = 0; t < count; t++) {
        const struct kith_term *term = &terms[t];
        if (t == 0 && !reads) {
            backend->copy(n, y, term->plus);
            if (term->minus != NULL)
                backend->add(n, -1, term->minus, y);
            backend->scale(n, term->factor, y);
        } else if (term->minus == NULL) {
            backend->add(n, term->factor, term->plus, y);
        } else {
            (void)backend->mix(n, term->factor, term->plus, term->minus, y);
        }
    }
}

/* Of one term, exactly what it adds: the other side of a pair has that. */
static double sum_of_passes(const struct kith_backend *backend, size_t n,
                            double own, void *y, unsigned count,
                            const struct kith_term *terms)
{
    const struct kith_term *term = terms;
    if (own >= 1 && own <= 1 && count == 1 && term->minus != NULL)
        return backend->mix(n, term->factor, term->plus, term->minus, y);
    const bool plain = own >= 1 && own <= 1 && count == 1 &&
                       (term->factor >= 1 || term->factor <= -1);
    const double before = plain ? 0 : backend->sum(n, y);
    combine_by_passes(backend, n, own, y, count, terms);
    return plain ? term->factor * backend->sum(n, term->plus)
                 : backend->sum(n, y) - before;
}

/* No more terms than backend.h's combine takes. */
static double combine_some(const struct kith_backend *backend, size_t n,
                           double own, void *y, unsigned count,
                           const struct kith_term *terms, bool sums)
{
    double change = 0;
    if (backend->combine != NULL)
        backend->combine(n, own, y, count, terms, sums ? &change : NULL);
    else if (sums)
        change = sum_of_passes(backend, n, own, y, count, terms);
    else
        combine_by_passes(backend, n, own, y, count, terms);
    return change;
}

static double combine(const struct kith_backend *backend, size_t n, double own,
                      void *y, unsigned count, const struct kith_term *terms,
                      bool sums)
{
    double change = 0;
    do {
        const unsigned some = count < KITH_TERMS_MAX ? count : KITH_TERMS_MAX;
        change += combine_some(backend, n, own, y, some, terms, sums);
        terms += some;
        count -= some;
        own = 1;
    } while (count > 0);
    return change;
}

double algorithm_combine(const struct kith_backend *backend, size_t n,
                         double own, void *y, unsigned count,
                         const struct kith_term *terms)
{
    return combine(backend, n, own, y, count, terms, true);
}

void algorithm_combine_only(const struct kith_backend *backend, size_t n,
                            double own, void *y, unsigned count,
                            const struct kith_term *terms)
{
    (void)combine(backend, n, own, y, count, terms, false);
}

size_t algorithm_two_vectors(const struct kith_algebra *algebra)
{
    return 2 * algebra->dim * algebra->backend->element_bytes;
}

void algorithm_make_two(struct kith_algebra *algebra,
                        struct kith_work_edge *edge)
{
    (void)edge;
    algebra->backend->copy(algebra->dim, algebra->sent, algebra->live);
    algebra->backend->copy(algebra->dim,
                           algorithm_second(algebra, algebra->sent),
                           algebra->vectors[0]);
}

void algorithm_mix_two(struct kith_algebra *algebra,
                       struct kith_work_edge *edge)
{
    algorithm_mix(algebra, edge);
    (void)algebra->backend->mix(algebra->dim, edge->weight,
                                algorithm_second(algebra, algebra->received),
                                algorithm_second(algebra, algebra->sent),
                                algebra->vectors[0]);
}

void algorithm_keep(struct kith_algebra *algebra, unsigned index)
{
    algebra->backend->copy(algebra->dim, algebra->vectors[index],
                           algebra->live);
}

void algorithm_stash(struct kith_algebra *algebra, unsigned index)
{
    if (algebra->step % algebra->every == 0)
        algorithm_keep(algebra, index);
}

void algorithm_track(struct kith_algebra *algebra, unsigned tracked,
                     unsigned before)
{
    const struct kith_backend *backend = algebra->backend;
    void *const y = algebra->vectors[tracked];
    algorithm_add_difference(backend, algebra->trained, algebra->gradient,
                             algebra->vectors[before], y);
    backend->copy(algebra->trained, algebra->vectors[before],
                  algebra->gradient);
    backend->copy(algebra->trained, algebra->gradient, y);
}
