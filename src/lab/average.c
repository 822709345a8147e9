/* Averages the saves of a lab's peers. See average.h. */
#include "src/lab/average.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

/* mean <- 1/n sum_i z_i, one pass per model in rank order. */
static void take_mean(struct lab_average *average)
{
    for (uint32_t i = 0; i < average->count; i++)
        for (size_t k = 0; k < average->dim; k++)
            average->mean[k] += average->models[i].z[k];
    const double share = 1.0 / (double)average->count;
    for (size_t k = 0; k < average->dim; k++)
        average->mean[k] *= share;
}

static void take_distances(struct lab_average *average)
{
    double sum = 0;
    for (uint32_t i = 0; i < average->count; i++) {
        double squared = 0;
        for (size_t k = 0; k < average->dim; k++) {
            const double gap = average->models[i].z[k] - average->mean[k];
            squared += gap * gap;
        }
        average->models[i].distance = sqrt(squared);
        sum += squared;
    }
    average->consensus_distance = sqrt(sum / (double)average->count);
    average->correlation =
        kith_correlation(average->mean, average->dim,
                         average->consensus_distance, average->count);
}

enum kith_err kith_lab_average_open(
    struct lab_average *average, const struct kith_experiment *experiment,
    const struct lab_cluster *cluster, const uint8_t *wanted, void *user,
    void (*left_out)(void *user, kith_id peer, const char *why))
{
    memset(average, 0, sizeof *average);
    average->dim =
        kith_model_size_of(experiment->model, &experiment->model_config).dim;
    enum kith_err err = KITH_ENOMEM;
    average->models = calloc(cluster->peers, sizeof *average->models);
    if (average->models == NULL)
        goto fail;

    for (uint32_t i = 0; i < cluster->peers; i++) {
        if (!wanted[i])
            continue;
        char path[KITH_PATH_BYTES_MAX], why[KITH_DATA_ERROR_BYTES] = "";
        kith_lab_cluster_save_path(cluster, i, path);
        struct lab_model *model = &average->models[average->count];
        size_t dim = 0;
        const struct kith_task task = kith_experiment_task(experiment, NULL);
        err = kith_save_parameters(&task, experiment->backend, path, &model->z,
                                   &dim, &model->step, why);
        if (err == KITH_ENOMEM)
            goto fail;
        if (err != KITH_OK || dim != average->dim) {
            if (err == KITH_OK)
                free(model->z);
            if (left_out != NULL)
                left_out(user, i, why[0] != 0 ? why : kith_err_text(err));
            continue;
        }
        model->peer = i;
        average->count++;
    }

    if (average->count > 0) {
        err = KITH_ENOMEM;
        average->mean = calloc(average->dim, sizeof *average->mean);
        if (average->mean == NULL)
            goto fail;
        take_mean(average);
        take_distances(average);
    }
    return KITH_OK;
fail:
    kith_lab_average_close(average);
    return err;
}

enum kith_err kith_lab_average_score(struct lab_average *average,
                                     const struct kith_experiment *experiment,
                                     const struct kith_dataset *dataset,
                                     struct kith_score *score)
{
    const struct kith_examples *train =
        dataset == NULL ? NULL : &dataset->train;
    const struct kith_examples *test = dataset == NULL ? NULL : &dataset->test;
    const enum kith_err err =
        kith_estimate(experiment, experiment->backend, train,
                      KITH_ESTIMATE_BATCHES, average->mean);
    return err != KITH_OK ? err
                          : kith_evaluate(experiment, experiment->backend, test,
                                          average->mean, score);
}

uint64_t kith_lab_average_step(const struct lab_average *average)
{
    uint64_t whole = 0, rest = 0;
    for (uint32_t i = 0; i < average->count; i++) {
        whole += average->models[i].step / average->count;
        rest += average->models[i].step % average->count;
    }
    return whole + rest / average->count;
}

struct kith_average_facts
kith_lab_average_facts(const struct lab_average *average)
{
    return (struct kith_average_facts){
        kith_lab_average_step(average), average->count,
        average->consensus_distance, average->correlation};
}

void kith_lab_average_close(struct lab_average *average)
{
    for (uint32_t i = 0; i < average->count; i++)
        free(average->models[i].z);
    free(average->models);
    free(average->mean);
    memset(average, 0, sizeof *average);
}
