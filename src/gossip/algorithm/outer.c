/* Outer steps: see outer.h. */
#include "outer.h"

static double step(struct kith_algebra *algebra, bool nesterov)
{
    const double momentum = algebra->coefficients[KITH_GOSSIP_MOMENTUM];
    const double rate = algebra->coefficients[KITH_GOSSIP_RATE];
    void *const before = algebra->vectors[OUTER_BEFORE];
    void *const buffer = algebra->vectors[OUTER_BUFFER];
    void *const x = algebra->live;
    const struct kith_term moved = {1, before, x};
    /* nesterov: before - rate D = before (1 - rate) + rate x */
    const double own = nesterov ? rate : 0;
    const struct kith_term steps[] = {
        {1 - own, before, NULL},
        {nesterov ? -rate * momentum : -rate, buffer, NULL}};
    double added;
    const struct kith_update updates[] = {
        kith_one_term(buffer, momentum, &moved, NULL),
        {.y = x, .own = own, .count = 2, .terms = steps, .change = &added}};
    algebra->backend->combine(algebra->trained, 2, updates);
    return added;
}

double kith_outer_heavy_ball(struct kith_algebra *algebra)
{
    return step(algebra, false);
}

double kith_outer_nesterov(struct kith_algebra *algebra)
{
    return step(algebra, true);
}
