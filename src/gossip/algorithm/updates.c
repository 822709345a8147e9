/* What several algorithms do alike. */
#include "updates.h"

void kith_algorithm_mix(struct kith_algebra *algebra,
                        struct kith_work_edge *edge)
{
    const struct kith_backend *backend = algebra->backend;
    edge->delta_sum =
        algebra->before == NULL
            ? backend->mix(algebra->dim, edge->weight, algebra->received,
                           algebra->sent, algebra->live)
            : backend->swap_mix(algebra->dim, edge->weight, algebra->received,
                                algebra->sent, algebra->before, algebra->live);
}

void kith_algorithm_unmix(struct kith_algebra *algebra,
                          struct kith_work_edge *edge)
{
    (void)algebra->backend->mix(algebra->dim, -edge->weight, algebra->received,
                                algebra->sent, algebra->live);
}

void kith_algorithm_copy_twice(const struct kith_backend *backend, size_t n,
                               const void *x, void *a, void *b)
{
    const struct kith_term all = {1, x, NULL};
    const struct kith_update updates[] = {{.y = a, .count = 1, .terms = &all},
                                          {.y = b, .count = 1, .terms = &all}};
    backend->combine(n, 2, updates);
}

void kith_algorithm_add_difference(const struct kith_backend *backend, size_t n,
                                   const void *a, const void *b, void *y)
{
    const struct kith_term difference = {1, a, b};
    kith_algorithm_combine_only(backend, n, 1, y, 1, &difference);
}

double kith_algorithm_add_merged(struct kith_algebra *algebra,
                                 const struct kith_term *terms)
{
    return algebra->merged_count == 0
               ? 0
               : kith_algorithm_combine(algebra->backend, algebra->dim, 1,
                                        algebra->live, algebra->merged_count,
                                        terms);
}

double kith_algorithm_combine(const struct kith_backend *backend, size_t n,
                              double own, void *y, unsigned count,
                              const struct kith_term *terms)
{
    double change;
    backend->combine(n, 1,
                     &(struct kith_update){.y = y,
                                           .own = own,
                                           .count = count,
                                           .terms = terms,
                                           .change = &change});
    return change;
}

void kith_algorithm_combine_only(const struct kith_backend *backend, size_t n,
                                 double own, void *y, unsigned count,
                                 const struct kith_term *terms)
{
    backend->combine(n, 1,
                     &(struct kith_update){
                         .y = y, .own = own, .count = count, .terms = terms});
}

size_t kith_algorithm_two_vectors(const struct kith_algebra *algebra)
{
    return 2 * algebra->dim * algebra->backend->element_bytes;
}

void kith_algorithm_start(struct kith_algebra *algebra)
{
    algebra->backend->copy(algebra->dim, algebra->vectors[0], algebra->live);
}

void kith_algorithm_before_step(struct kith_algebra *algebra)
{
    if (algebra->step % algebra->every == 0)
        kith_algorithm_start(algebra);
}

void kith_algorithm_merge_later(struct kith_algebra *algebra,
                                struct kith_work_edge *edge)
{
    (void)algebra;
    edge->delta_sum = 0;
}

void kith_algorithm_copy_buffers(const struct kith_algebra *algebra, void *to,
                                 const void *from)
{
    const size_t n = algebra->trained;
    algebra->backend->copy(algebra->dim - n, kith_algorithm_at(algebra, to, n),
                           kith_algorithm_at(algebra, from, n));
}

double kith_algorithm_mix_buffers(struct kith_algebra *algebra, double weight)
{
    const size_t n = algebra->trained;
    return algebra->backend->mix(
        algebra->dim - n, weight,
        kith_algorithm_at(algebra, algebra->received, n),
        kith_algorithm_at(algebra, algebra->sent, n),
        kith_algorithm_at(algebra, algebra->live, n));
}

void kith_algorithm_track(struct kith_algebra *algebra)
{
    const struct kith_backend *backend = algebra->backend;
    void *const y = algebra->vectors[KITH_TRACKED];
    kith_algorithm_add_difference(backend, algebra->trained, algebra->gradient,
                                  algebra->vectors[KITH_GRADIENT_BEFORE], y);
    backend->copy(algebra->trained, algebra->vectors[KITH_GRADIENT_BEFORE],
                  algebra->gradient);
    backend->copy(algebra->trained, algebra->gradient, y);
}
