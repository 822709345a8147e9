/* What to tell a person whose checkpoint or database is of another experiment.
 */
#include <stdio.h>
#include <string.h>

#include "kith/experiment.h"

/* "its KEY is THERE, this run's is HERE" for the first setting that differs. */
static bool differ(char *what, size_t size, const char *key, const char *there,
                   const char *here)
{
    if (strcmp(there, here) == 0)
        return false;
    (void)snprintf(what, size, "its %s is %.60s, this run's is %.60s", key,
                   there, here);
    return true;
}

static bool differ_in(char *what, size_t size, const char *key, double there,
                      double here)
{
    char texts[2][32];
    (void)snprintf(texts[0], sizeof texts[0], "%.12g", there);
    (void)snprintf(texts[1], sizeof texts[1], "%.12g", here);
    return differ(what, size, key, texts[0], texts[1]);
}

static double parameters_of(const struct kith_experiment *experiment)
{
    return (double)kith_model_size_of(experiment->model,
                                      &experiment->model_config)
        .dim;
}

/* The settings that people change most; the others are in the hash alone. */
static void name_difference(const struct kith_experiment *there,
                            const struct kith_experiment *here, char *what,
                            size_t size)
{
    if (differ(what, size, "model.kind", there->model->name,
               here->model->name) ||
        differ_in(what, size, "number of parameters", parameters_of(there),
                  parameters_of(here)) ||
        differ(what, size, "train.optimiser", there->train.optimiser->name,
               here->train.optimiser->name) ||
        differ(what, size, "train.backend", there->backend->name,
               here->backend->name) ||
        differ_in(what, size, "seed", (double)there->seed,
                  (double)here->seed) ||
        differ_in(what, size, "peers", there->peers, here->peers) ||
        differ_in(what, size, "train.batch", there->train.batch,
                  here->train.batch) ||
        differ_in(what, size, "train.learning_rate",
                  there->train.config.learning_rate,
                  here->train.config.learning_rate) ||
        differ_in(what, size, "stop.steps", (double)there->stop.steps,
                  (double)here->stop.steps) ||
        differ_in(what, size, "stop.epochs", there->stop.epochs,
                  here->stop.epochs) ||
        differ(what, size, "gossip.algorithm", there->gossip.algorithm->name,
               here->gossip.algorithm->name))
        return;
    (void)snprintf(what, size, "model, data, training, gossip or stop differ");
}

void kith_experiment_differ(const char *yaml,
                            const struct kith_experiment *here, char *what,
                            size_t size)
{
    struct kith_experiment there;
    char error[KITH_EXPERIMENT_ERROR_BYTES];
    (void)snprintf(what, size, "its settings differ");
    if (yaml == NULL || yaml[0] == '\0' ||
        kith_experiment_parse("there", yaml, strlen(yaml), NULL, 0, &there,
                              error) != KITH_OK)
        return;
    name_difference(&there, here, what, size);
    kith_experiment_close(&there);
}
