/* Outer steps: see outer.h. */
#include "outer.h"

void outer_start(struct kith_algebra *algebra)
{
    algorithm_keep(algebra, OUTER_BEFORE);
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
    const struct kith_term moved = {1, before, x};
    algorithm_combine_only(backend, n, momentum, buffer, 1, &moved);
    if (nesterov) { /* before - rate D = before (1 - rate) + rate x */
        const struct kith_term terms[] = {{1 - rate, before, NULL},
                                          {-rate * momentum, buffer, NULL}};
        return algorithm_combine(backend, n, rate, x, 2, terms);
    }
    const struct kith_term terms[] = {{1, before, NULL}, {-rate, buffer, NULL}};
    return algorithm_combine(backend, n, 0, x, 2, terms);
}
