/* A checkpoint as eval, sample and export see it: its own experiment says what
 * model it is, so the file is enough. */
#define _GNU_SOURCE /* realpath */
#include "checkpoint_open.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "kith/backend.h"
#include "kith/checkpoint.h"
#include "kith/worker.h"

/* What stands in messages, and no folder: relative paths of --set start at the
 * current one. */
static const char name[] = "the checkpoint's experiment";

/* Nothing is written here: what cannot be read is the file's fault. */
static int refuse(const struct cli_model *model, enum kith_err err,
                  const char *error)
{
    const int code = kith_cli_exit_of(err);
    return kith_cli_fail(
        model->arguments,
        code == KITH_EXIT_RESOURCES ? code : KITH_EXIT_EXPERIMENT, "%s", error);
}

int kith_cli_names_open(struct kith_names *names,
                        const struct cli_arguments *arguments)
{
    char error[KITH_EXPERIMENT_ERROR_BYTES];
    memset(names, 0, sizeof *names);
    if (!kith_cli_given(arguments, CLI_NAMES))
        return KITH_EXIT_OK;
    const enum kith_err err =
        kith_names_load(arguments->values[CLI_NAMES], names, error);
    return err == KITH_OK ? KITH_EXIT_OK
                          : kith_cli_fail(arguments, KITH_EXIT_EXPERIMENT,
                                          "--names: %s", error);
}

/* The checkpoint as it was written; on the host, for its backend need not be
 * here. */
static int read_parameters(struct cli_model *model, const char *text)
{
    struct kith_experiment written;
    char error[KITH_EXPERIMENT_ERROR_BYTES];
    enum kith_err err = kith_experiment_parse(name, text, strlen(text), NULL, 0,
                                              &written, error);
    if (err != KITH_OK)
        return refuse(model, err, error);
    if (written.model->reports) {
        kith_experiment_close(&written);
        return kith_cli_fail(
            model->arguments, KITH_EXIT_EXPERIMENT,
            "%.300s is of a program's own model, which its own loop alone can "
            "use: kith.Peer(..., load=...) of `import kith`, or kith_load(), "
            "puts these parameters into it",
            model->path);
    }
    written.backend = kith_backend_stand_in(written.backend);
    const struct kith_task task = kith_experiment_task(&written, NULL);
    err = kith_save_parameters(&task, written.backend, model->path, &model->z,
                               &model->dim, &model->step, error);
    kith_experiment_close(&written);
    return err == KITH_OK ? KITH_EXIT_OK : refuse(model, err, error);
}

/* --data, as an absolute path. */
static int data_set(const struct cli_model *model, char *set, size_t size)
{
    const char *path = model->arguments->values[CLI_DATA];
    char *absolute = realpath(path, NULL);
    if (absolute == NULL)
        return kith_cli_fail(model->arguments, KITH_EXIT_DATA,
                             "--data %.300s: %s", path, strerror(errno));
    const int length = snprintf(set, size, "data.path=%s", absolute);
    free(absolute);
    return length > 0 && (size_t)length < size
               ? KITH_EXIT_OK
               : kith_cli_fail(model->arguments, KITH_EXIT_USAGE,
                               "--data: the path is too long");
}

static int read_experiment(struct cli_model *model, const char *text)
{
    const struct cli_arguments *arguments = model->arguments;
    struct cli_settings sets;
    char data[KITH_PATH_BYTES_MAX + 16];
    char error[KITH_EXPERIMENT_ERROR_BYTES];
    int code = kith_cli_settings(arguments, &sets);
    if (code == KITH_EXIT_OK && kith_cli_given(arguments, CLI_DATA)) {
        code = data_set(model, data, sizeof data);
        sets.texts[sets.count++] = data;
    }
    if (code != KITH_EXIT_OK)
        return code;
    const enum kith_err err =
        kith_experiment_parse(name, text, strlen(text), sets.texts, sets.count,
                              &model->experiment, error);
    return err == KITH_OK ? KITH_EXIT_OK : refuse(model, err, error);
}

/* --set may change the data, the seed, the backend; another model's shape needs
 * other weights. */
static int check_shape(const struct cli_model *model)
{
    const struct kith_experiment *experiment = &model->experiment;
    const struct kith_graph_options options = {
        .backend = kith_backend_stand_in(experiment->backend), .rows = 1};
    struct kith_graph *network;
    char error[KITH_WEIGHTS_ERROR_BYTES];
    if (model->arguments->set_count == 0)
        return KITH_EXIT_OK;
    enum kith_err err =
        kith_graph_open(experiment->model, &experiment->model_config, &options,
                        &network, error);
    if (err != KITH_OK)
        return refuse(model, err, error);
    double *z = malloc((model->dim > 0 ? model->dim : 1) * sizeof *z);
    const struct kith_layout *layout = kith_graph_layout(network);
    if (z == NULL)
        err = KITH_ENOMEM;
    else if (layout->dim != model->dim)
        err = KITH_EMISMATCH;
    else
        err = kith_weights_read(model->path, NULL, layout, z, error);
    free(z);
    kith_graph_close(network);
    if (err == KITH_OK)
        return KITH_EXIT_OK;
    return kith_cli_fail(
        model->arguments,
        err == KITH_ENOMEM ? KITH_EXIT_RESOURCES : KITH_EXIT_EXPERIMENT,
        "--set model: %.300s holds another model: %s of %zu parameters",
        model->path, experiment->model->name, model->dim);
}

/* cuda's checkpoints are of use without one. */
static void choose_backend(struct cli_model *model)
{
    const struct kith_backend *backend = model->experiment.backend;
    const char *missing = backend->missing == NULL ? NULL : backend->missing();
    if (missing == NULL)
        return;
    model->experiment.backend = kith_backend_stand_in(backend);
    (void)kith_cli_fail(model->arguments, KITH_EXIT_OK,
                        "backend %s is not here (%.200s); using %s",
                        backend->name, missing,
                        model->experiment.backend->name);
}

int kith_cli_model_open(struct cli_model *model,
                        const struct cli_arguments *arguments)
{
    char *text, error[KITH_CHECKPOINT_ERROR_BYTES];
    *model =
        (struct cli_model){.arguments = arguments, .path = arguments->words[0]};
    const enum kith_err err =
        kith_checkpoint_experiment(model->path, &text, error);
    if (err != KITH_OK)
        return refuse(model, err, error);
    int code = read_parameters(model, text);
    if (code == KITH_EXIT_OK) {
        code = read_experiment(model, text);
        if (code == KITH_EXIT_OK) {
            code = check_shape(model);
            if (code != KITH_EXIT_OK)
                kith_experiment_close(&model->experiment);
        }
        if (code != KITH_EXIT_OK)
            free(model->z);
    }
    free(text);
    if (code == KITH_EXIT_OK)
        choose_backend(model);
    return code;
}

int kith_cli_model_compute(struct cli_model *model)
{
    const struct cli_arguments *arguments = model->arguments;
    const char *products = model->experiment.compute.products;
    uint64_t threads = model->experiment.compute.threads;
    const int code = kith_cli_number(arguments, CLI_THREADS, 1,
                                     KITH_POOL_THREADS_MAX, &threads);
    if (code != KITH_EXIT_OK)
        return code;
    model->experiment.compute.threads = (uint32_t)threads;
    if (kith_backend_product(products) != KITH_OK) {
        (void)kith_cli_fail(
            arguments, KITH_EXIT_OK,
            "compute.products: %s is not installed here; using own", products);
        model->experiment.compute.products = "own";
    }
    return kith_cli_compute_open(arguments, &model->experiment,
                                 CLI_COMPUTE_ALL);
}

void kith_cli_model_close(struct cli_model *model)
{
    free(model->z);
    kith_experiment_close(&model->experiment);
}
