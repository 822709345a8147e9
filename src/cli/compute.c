/* How a run does its arithmetic: who multiplies matrices, on how many threads,
 * on how many cores models are sealed, and what this machine could do at best.
 * Chosen before the run begins, by the file or by a calibration, never in its
 * course. */
#define _GNU_SOURCE /* sched_getaffinity */
#include <sched.h>

#include "cli.h"
#include "kith/backend.h"
#include "kith/session.h"

_Static_assert(KITH_POOL_THREADS_MAX == 64, "the bound of compute.threads");

uint32_t kith_cli_cores(void)
{
    cpu_set_t set;
    CPU_ZERO(&set);
    if (sched_getaffinity(0, sizeof set, &set) != 0)
        return 1;
    const int count = CPU_COUNT(&set);
    if (count < 1)
        return 1;
    return (uint32_t)count < KITH_POOL_THREADS_MAX ? (uint32_t)count
                                                   : KITH_POOL_THREADS_MAX;
}

/* What training leaves, since a helper without a core of its own is waited for:
 * on two cores that had other work two threads sealed 0.6 to 0.9 of what one
 * did. A device trains by itself: one thread drives it. */
static uint32_t network_cores(const struct kith_experiment *experiment)
{
    const bool is_device = experiment->backend->host != experiment->backend;
    const uint32_t training = is_device ? 1 : experiment->compute.threads;
    const uint32_t cores = kith_cli_cores();
    const uint32_t left = cores > training ? cores - training : 1;
    return left < KITH_LANES_MAX ? left : KITH_LANES_MAX;
}

int kith_cli_compute_open(const struct cli_arguments *arguments,
                          struct kith_experiment *experiment,
                          enum cli_compute compute)
{
    const char *products = experiment->compute.products;
    if (kith_backend_product(products) != KITH_OK)
        return kith_cli_fail(
            arguments, KITH_EXIT_RESOURCES,
            "compute.products: %s is not installed here; install libdnnl.so.2 "
            "(Debian: libdnnl2), or run it with --set compute.products=own",
            products);
    if (compute == CLI_COMPUTE_ONE) {
        experiment->compute.threads = 1;
        experiment->compute.peak = experiment->compute.core_peak;
    } else if (experiment->compute.threads == 0) {
        experiment->compute.threads = kith_cli_cores();
    }
    if (experiment->network.cores == 0)
        experiment->network.cores =
            compute == CLI_COMPUTE_ONE ? 1 : network_cores(experiment);
    kith_backend_threads(experiment->compute.threads);
    if (compute == CLI_COMPUTE_MEASURED && experiment->compute.peak <= 0)
        experiment->compute.peak =
            kith_backend_measure_peak(experiment->backend);
    return KITH_EXIT_OK;
}
