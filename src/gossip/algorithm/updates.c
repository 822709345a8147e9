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
    kith_algorithm_update(backend, n, 2, updates);
}

void kith_algorithm_add_difference(const struct kith_backend *backend, size_t n,
                                   const void *a, const void *b, void *y)
{
    const struct kith_term difference = {1, a, b};
    kith_algorithm_combine_only(backend, n, 1, y, 1, &difference);
}

/* y <- own y + the squares of the terms, for which no backend has a pass. */
static void add_squares(const struct kith_backend *backend, size_t n,
                        const struct kith_update *update)
{
    enum { CHUNK = 256 };
    double y[CHUNK], plus[CHUNK], minus[CHUNK] = {0};
    for (size_t at = 0, count; at < n; at += count) {
        const size_t skip = at * backend->element_bytes;
        count = n - at < CHUNK ? n - at : CHUNK;
        backend->read(count, (char *)update->y + skip, y);
        for (size_t i = 0; i < count; i++)
            y[i] = update->own * y[i];
        for (unsigned t = 0; t < update->count; t++) {
            const struct kith_term *term = &update->terms[t];
            backend->read(count, (const char *)term->plus + skip, plus);
            if (term->minus != NULL)
                backend->read(count, (const char *)term->minus + skip, minus);
            for (size_t i = 0; i < count; i++) {
                const double value =
                    term->factor *
                    (term->minus == NULL ? plus[i] : plus[i] - minus[i]);
                y[i] += value * value;
            }
        }
        backend->write(count, y, (char *)update->y + skip);
    }
}

static bool is_one(double factor)
{
    return factor >= 1 && factor <= 1;
}

static void by_passes(const struct kith_backend *backend, size_t n,
                      const struct kith_update *update)
{
    const struct kith_term *term = update->terms;
    const bool reads = update->own < 0 || update->own > 0;
    if (update->squared) {
        add_squares(backend, n, update);
        return;
    }
    if (reads && !is_one(update->own)) {
        backend->scale(n, update->own, update->y);
    } else if (!reads) {
        backend->copy(n, update->y, term->plus);
        if (term->minus != NULL)
            backend->add(n, -1, term->minus, update->y);
        if (!is_one(term->factor))
            backend->scale(n, term->factor, update->y);
    }
    for (unsigned t = reads ? 0 : 1; t < update->count; t++) {
        term = &update->terms[t];
        if (term->minus == NULL)
            backend->add(n, term->factor, term->plus, update->y);
        else
            (void)backend->mix(n, term->factor, term->plus, term->minus,
                               update->y);
    }
}

/* Of one term, exactly what it adds: the other side of a pair has that. */
static double sum_of_passes(const struct kith_backend *backend, size_t n,
                            const struct kith_update *update)
{
    const struct kith_term *term = update->terms;
    const bool one =
        is_one(update->own) && update->count == 1 && !update->squared;
    if (one && term->minus != NULL)
        return backend->mix(n, term->factor, term->plus, term->minus,
                            update->y);
    const bool plain = one && (term->factor >= 1 || term->factor <= -1);
    const double before = plain ? 0 : backend->sum(n, update->y);
    by_passes(backend, n, update);
    return plain ? term->factor * backend->sum(n, term->plus)
                 : backend->sum(n, update->y) - before;
}

void kith_algorithm_update(const struct kith_backend *backend, size_t n,
                           unsigned count, const struct kith_update *updates)
{
    if (backend->combine != NULL) {
        backend->combine(n, count, updates);
        return;
    }
    for (unsigned u = 0; u < count; u++)
        if (updates[u].change == NULL)
            by_passes(backend, n, &updates[u]);
        else
            *updates[u].change = sum_of_passes(backend, n, &updates[u]);
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
    kith_algorithm_update(backend, n, 1,
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
    kith_algorithm_update(
        backend, n, 1,
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
