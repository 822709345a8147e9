/* Central runs from a few lines of YAML, with their models: see central_run.c.
 */
#ifndef KITH_TESTS_SUPPORT_CENTRAL_RUN_H
#define KITH_TESTS_SUPPORT_CENTRAL_RUN_H

#include <stdarg.h>

#include "kith/sim.h"

#define CENTRAL_DIM_MAX 8192u
#define CENTRAL_WORKERS_MAX 16u

struct centralised {
    struct kith_summary summary;
    struct sim_report report;
    size_t dim;
    double shared[CENTRAL_DIM_MAX];
    double workers[CENTRAL_WORKERS_MAX * CENTRAL_DIM_MAX];
};

/* Formats YAML and runs it; the test fails where that does not end well. */
void centralise(struct centralised *run, const char *format, ...)
    KITH_PRINTF(2, 3);
/* The same for `gossip:`: the worker's models at the end. */
void gossip_along(struct centralised *run, const char *format, ...)
    KITH_PRINTF(2, 3);
/* |a - b| / |b| */
double relative(size_t n, const double *a, const double *b);
/* Prints expected and measured; whether they agree to `tolerance`. */
bool agrees(const char *what, double expected, double measured,
            double tolerance);

#endif
