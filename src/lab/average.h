/* The averaged model: z = 1/n sum_i z_i over the saves of n peers, and how far
 * apart they are: sqrt(1/n sum_i |z_i - z|^2), the consensus distance. */
#ifndef KITH_LAB_AVERAGE_H
#define KITH_LAB_AVERAGE_H

#include <stddef.h>
#include <stdint.h>

#include "kith/data.h"
#include "kith/err.h"
#include "kith/experiment.h"
#include "kith/evaluation.h"
#include "kith/lab_place.h"
#include "kith/types.h"
#include "kith/worker.h"
#include "src/lab/cluster.h"

struct lab_average {
    size_t dim;
    uint32_t count; /* models in it */
    struct lab_model {
        kith_id peer; /* whose it is; ascending */
        uint64_t step;
        double *z;       /* (dim) float64 */
        double distance; /* |z_i - z| */
    } * models;          /* (count) */
    double *mean;        /* (dim) */
    double consensus_distance, correlation;
};

/* Reads the save of every peer with wanted[i] != 0; one that is not there or
 * does not read is left out, and `left_out` (may be NULL) hears why. With
 * count 0 afterwards there is no mean. KITH_ENOMEM. */
KITH_MUST_CHECK enum kith_err kith_lab_average_open(
    struct lab_average *average, const struct kith_experiment *experiment,
    const struct lab_cluster *cluster, const uint8_t *wanted, void *user,
    void (*left_out)(void *user, kith_id peer, const char *why));
/* The mean's score, with running statistics of its own in the place of their
 * average: after this `mean` is what was evaluated. */
KITH_MUST_CHECK enum kith_err kith_lab_average_score(
    struct lab_average *average, const struct kith_experiment *experiment,
    const struct kith_dataset *dataset, struct kith_score *score);
/* The mean of their steps, rounded down. count > 0. */
uint64_t kith_lab_average_step(const struct lab_average *average);
struct kith_average_facts
kith_lab_average_facts(const struct lab_average *average);
void kith_lab_average_close(struct lab_average *average);

#endif
