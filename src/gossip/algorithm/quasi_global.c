/* The buffer of quasi-global momentum: see quasi_global.h. */
#include "quasi_global.h"

void kith_quasi_global_step(struct kith_algebra *algebra, double factor)
{
    algebra->backend->add(algebra->trained, -factor,
                          algebra->vectors[QUASI_GLOBAL_BUFFER], algebra->live);
}

double kith_quasi_global_finish(struct kith_algebra *algebra)
{
    const double mu = algebra->coefficients[KITH_GOSSIP_DECAY];
    void *const buffer = algebra->vectors[QUASI_GLOBAL_BUFFER];
    const struct kith_term moved = {(1 - mu) / algebra->every,
                                    algebra->vectors[QUASI_GLOBAL_BEFORE],
                                    algebra->live};
    kith_algorithm_combine_only(algebra->backend, algebra->trained, mu, buffer,
                                1, &moved);
    return 0;
}
