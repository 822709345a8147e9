/* Outer steps: see outer.h. */
#include "outer.h"

void outer_start(struct kith_algebra *algebra)
{
    algebra->backend->copy(algebra->dim, algebra->vectors[OUTER_BEFORE],
                           algebra->live);
}

void outer_before_step(struct kith_algebra *algebra)
{
    algorithm_stash(algebra, OUTER_BEFORE);
}

double outer_step(struct kith_algebra *algebra, bool nesterov)
{
    const struct kith_backend *backend = algebra->backend;
    const size_t n = algebra->trained;
    const double momentum = algebra->coefficients[KITH_GOSSIP_MOMENTUM];
    const double rate = algebra->coefficients[KITH_GOSSIP_RATE];
    void *const before = algebra->vectors[OUTER_BEFORE];
    void *const buffer = algebra->vectors[OUTER_BUFFER];
    void *const x = algebra->live;
    const double sum = backend->sum(n, x);
    backend->scale(n, momentum, buffer);
    algorithm_add_difference(backend, n, before, x, buffer);
    if (nesterov) { /* before - rate D = before (1 - rate) + rate x */
        backend->scale(n, rate, x);
        backend->add(n, 1 - rate, before, x);
        backend->add(n, -rate * momentum, buffer, x);
    } else {
        backend->copy(n, x, before);
        backend->add(n, -rate, buffer, x);
    }
    return backend->sum(n, x) - sum;
}
