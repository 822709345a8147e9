/* A probe: an experiment of a few lines in the simulator, and what every peer
 * holds at the end or along the way. */
#ifndef KITH_TESTS_PROBE_H
#define KITH_TESTS_PROBE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "kith/sim.h"

struct probe {
    /* Kept in addition: z after every `period` own steps and the round that
     * follows them; the gradient of the next step is in it already. 0: none. */
    uint64_t period;
    const struct sim_options *options; /* ledger and the like; may be NULL */
    /* Called after every event, before z is read; may be NULL. */
    void (*meddle)(const struct sim_world *world, kith_id peer, void *arg);
    void *arg;

    /* Found. */
    uint32_t peers, samples;
    size_t dim;
    double *z;       /* (peers, dim) at the end */
    double *history; /* (samples, peers, dim); 0: before any exchange */
    bool *seen;      /* (peers) its sample 0 is there */
    struct kith_summary summary;
    struct sim_report report;
    char error[KITH_EXPERIMENT_ERROR_BYTES];
};

/* KITH_OK, or what the experiment or the simulator said, with `error`; nothing
 * needs closing then. */
__attribute__((format(printf, 2, 3))) enum kith_err
probe_run(struct probe *probe, const char *format, ...);
/* The same; fails the test where the run fails. */
__attribute__((format(printf, 2, 3))) void probe_must(struct probe *probe,
                                                      const char *format, ...);
void probe_close(struct probe *probe);

/* Sum over peers of |x_i - mean|^2, of (peers, dim). */
double probe_spread(const double *x, uint32_t peers, size_t dim);
/* mean <- over peers, (dim). */
void probe_mean(const double *x, uint32_t peers, size_t dim, double *mean);
/* max |a - b| over max |b|, (count). */
double probe_distance(const double *a, const double *b, size_t count);

#endif
