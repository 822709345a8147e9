/* A file or a text -> struct kith_experiment.
 *
 *   text -> tree (bounded) -> overrides -> schema -> lists -> rules
 *
 * Every error is one line with the place, what was found and what is allowed.
 */
#include "kith/experiment.h"
#include "kith/fault.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "kith/check.h"
#include "kith/plain_file.h"
#include "kith/text.h"
#include "key_table.h"
#include "read_file.h"
#include "yaml_tree.h"

/* How many of a list were given: the others are 0. */
static uint32_t count_sizes(const uint32_t sizes[KITH_LAYERS_MAX])
{
    uint32_t count = 0;
    while (count < KITH_LAYERS_MAX && sizes[count] > 0)
        count++;
    return count;
}

/* It would end broken, and "never measured". */
static enum kith_err check_fits(const struct tree *tree,
                                const struct tree_item *item,
                                const struct kith_check *check,
                                const struct kith_model *model)
{
    char names[256] = "";
    size_t at = 0;
    if (kith_quantity_fits(kith_quantity_find(check->quantity), model))
        return KITH_OK;
    for (const struct kith_quantity *quantity = kith_quantities;
         quantity->name != NULL; quantity++)
        if (kith_quantity_fits(quantity, model))
            at = kith_text_add(names, sizeof names, at, "%s%s",
                               at == 0 ? "" : ", ", quantity->name);
    return kith_yaml_fail(tree, item, "assert", KITH_EINVAL,
                          "found \"%s\", which model %s does not have; allowed "
                          "with it: %s",
                          check->quantity, model->name, names);
}

static enum kith_err read_checks(const struct tree *tree,
                                 struct kith_experiment *experiment)
{
    const struct tree_item *list = kith_yaml_find(tree, "assert");
    if (list == NULL)
        return KITH_OK;
    char error[KITH_CHECK_ERROR_BYTES];
    if (list->kind != TREE_LIST || list->count > KITH_CHECKS_MAX)
        return kith_yaml_refuse_value(tree, list, "assert",
                                      "a list of at most %u texts such as "
                                      "[\"finally accuracy >= 0.85\"]",
                                      KITH_CHECKS_MAX);
    const struct tree_item *item = kith_yaml_first(tree, list);
    for (; item != NULL; item = kith_yaml_next(tree, item)) {
        struct kith_check *check = &experiment->checks[experiment->check_count];
        if (item->kind != TREE_SCALAR)
            return kith_yaml_refuse_value(
                tree, item, "assert",
                "a text such as \"finally accuracy >= 0.85\"");
        if (kith_check_parse(item->text, check, error) != KITH_OK)
            return kith_yaml_fail(tree, item, "assert", KITH_EINVAL, "%s",
                                  error);
        const enum kith_err err =
            check_fits(tree, item, check, experiment->model);
        if (err != KITH_OK)
            return err;
        experiment->check_count++;
    }
    return KITH_OK;
}

/* "folder/of/file" for "folder/of/file/name.yaml", "." for "name.yaml". */
static void folder_of(const char *name, char *folder, size_t size)
{
    const char *slash = strrchr(name, '/');
    const size_t length = slash == NULL ? 0 : (size_t)(slash - name);
    if (slash == NULL)
        kith_text_copy(folder, size, ".");
    else if (length == 0)
        kith_text_copy(folder, size, "/");
    else
        snprintf(folder, size, "%.*s", (int)length, name);
}

enum kith_err kith_experiment_resolve_path(const struct tree *tree,
                                           const char *key,
                                           char path[KITH_PATH_BYTES_MAX])
{
    if (path[0] == '/')
        return KITH_OK;
    char folder[KITH_PATH_BYTES_MAX], joined[2 * KITH_PATH_BYTES_MAX];
    folder_of(tree->name, folder, sizeof folder);
    char *absolute = realpath(folder, NULL);
    const int length = snprintf(joined, sizeof joined, "%s/%s",
                                absolute == NULL ? folder : absolute, path);
    free(absolute);
    if (length < 0 || length >= (int)KITH_PATH_BYTES_MAX)
        return kith_yaml_fail(tree, kith_yaml_find(tree, key), key, KITH_ELIMIT,
                              "found a path longer than %u bytes",
                              KITH_PATH_BYTES_MAX - 1);
    memcpy(path, joined, (size_t)length + 1);
    return KITH_OK;
}

static bool relative(const char *path)
{
    return path[0] != '\0' && path[0] != '/';
}

/* Those of faults stand in a list, so there may be many. */
static bool has_relative_trace(const struct tree *tree)
{
    const struct tree_item *list = kith_yaml_find(tree, "faults");
    const struct tree_item *item =
        list == NULL ? NULL : kith_yaml_first(tree, list);
    bool found = false;
    for (; item != NULL && !found; item = kith_yaml_next(tree, item)) {
        const struct tree_item *trace =
            item->kind == TREE_MAP ? kith_yaml_child(tree, item, "trace")
                                   : NULL;
        found = trace != NULL && trace->kind == TREE_SCALAR &&
                relative(trace->text);
    }
    return found;
}

static enum kith_err read_run(const struct tree *tree,
                              struct kith_experiment *experiment)
{
    (void)kith_text_copy(experiment->run.folder, sizeof experiment->run.folder,
                         ".");
    return experiment->run.command[0] == '\0'
               ? KITH_OK
               : kith_experiment_resolve_path(tree, "model.run",
                                              experiment->run.folder);
}

/* The file as it was read where that repeats the run, else the tree as YAML
 * with --set applied and the paths of data absolute. */
static enum kith_err keep_source(const struct tree *tree, const char *text,
                                 size_t size, bool rewrite,
                                 struct kith_experiment *experiment)
{
    const struct tree_swap swaps[] = {
        {"data.path", experiment->data.config.path},
        {"data.cache", experiment->data.config.cache},
        {"gossip.path", experiment->gossip.path},
        {"network.matrix", experiment->network.files.matrix},
        {"network.matrix_p90", experiment->network.files.matrix_p90},
        {"network.coordinates", experiment->network.files.coordinates},
        {"network.zone_rates", experiment->network.files.zone_rates},
        {"hosts.file", experiment->hosts.file}};
    if (rewrite)
        experiment->source =
            kith_yaml_write(tree, swaps, sizeof swaps / sizeof swaps[0]);
    else {
        experiment->source = malloc(size + 1);
        if (experiment->source != NULL) {
            memcpy(experiment->source, text, size);
            experiment->source[size] = '\0';
        }
    }
    if (experiment->source == NULL)
        return kith_yaml_fail(tree, NULL, NULL, KITH_ENOMEM, "out of memory");
    experiment->source_bytes = strlen(experiment->source);
    return KITH_OK;
}

static enum kith_err read_experiment(const struct tree *tree, const char *text,
                                     size_t size, uint32_t override_count,
                                     struct kith_experiment *experiment)
{
    enum kith_err err =
        kith_schema_read(kith_experiment_keys, tree, experiment);
    struct kith_model_config *config = &experiment->model_config;
    config->layer_count = count_sizes(config->layers);
    config->channel_count = count_sizes(config->channels);
    const bool rewrite =
        override_count > 0 || relative(experiment->data.config.path) ||
        relative(experiment->data.config.cache) ||
        relative(experiment->gossip.path) ||
        relative(experiment->network.files.matrix) ||
        relative(experiment->network.files.matrix_p90) ||
        relative(experiment->network.files.coordinates) ||
        relative(experiment->network.files.zone_rates) ||
        relative(experiment->hosts.file) || has_relative_trace(tree);
    static experiment_reader *const readers[] = {
        read_checks,
        read_run,
        kith_experiment_read_latencies,
        kith_experiment_read_classes,
        kith_experiment_read_zones,
        kith_experiment_read_data,
        kith_experiment_read_train,
        kith_experiment_read_hosts,
        kith_experiment_read_coefficients,
        kith_experiment_read_central,
        kith_experiment_read_faults,
        kith_experiment_check_rules,
        kith_experiment_read_graph,
        kith_experiment_choose_guard,
        kith_experiment_rule_match,
        kith_experiment_resolve_mixing};
    for (size_t i = 0; i < sizeof readers / sizeof readers[0] && err == KITH_OK;
         i++)
        err = readers[i](tree, experiment);
    if (err == KITH_OK)
        kith_experiment_derive_data(experiment);
    if (err == KITH_OK)
        err = keep_source(tree, text, size, rewrite, experiment);
    return err;
}

enum kith_err kith_experiment_parse(const char *name, const char *text,
                                    size_t size, const char *const *overrides,
                                    uint32_t override_count,
                                    struct kith_experiment *experiment,
                                    char *error)
{
    memset(experiment, 0, sizeof *experiment);
    struct tree tree;
    enum kith_err err = kith_yaml_open(&tree, name, text, size, error);
    if (err == KITH_OK)
        err = kith_yaml_override(&tree, overrides, override_count);
    if (err == KITH_OK)
        err = read_experiment(&tree, text, size, override_count, experiment);
    if (err != KITH_OK)
        kith_experiment_close(experiment);
    kith_yaml_close(&tree);
    return err;
}

enum kith_err kith_experiment_read_file(const char *path, char **text,
                                        size_t *size, char *error)
{
    char why[KITH_FILE_WHY_BYTES];
    int fd;
    enum kith_err err = kith_file_open(path, &fd, NULL, why);
    if (err != KITH_OK) {
        snprintf(error, KITH_EXPERIMENT_ERROR_BYTES, "cannot read %.300s: %s",
                 path, why);
        return err;
    }
    FILE *file = fdopen(fd, "rb");
    *text = file == NULL ? NULL : malloc(KITH_YAML_BYTES_MAX + 1);
    if (*text == NULL) {
        snprintf(error, KITH_EXPERIMENT_ERROR_BYTES, "out of memory");
        err = KITH_ENOMEM;
        goto out;
    }
    *size = fread(*text, 1, KITH_YAML_BYTES_MAX + 1, file);
    if (ferror(file)) {
        snprintf(error, KITH_EXPERIMENT_ERROR_BYTES, "cannot read %.300s: %s",
                 path, strerror(errno));
        free(*text);
        err = KITH_EIO;
    }
out:
    if (file != NULL)
        (void)fclose(file);
    else
        (void)close(fd);
    return err;
}

enum kith_err kith_experiment_load(const char *path,
                                   const char *const *overrides,
                                   uint32_t override_count,
                                   struct kith_experiment *experiment,
                                   char *error)
{
    char *text;
    size_t size;
    enum kith_err err = kith_experiment_read_file(path, &text, &size, error);
    if (err != KITH_OK)
        return err;
    err = kith_experiment_parse(path, text, size, overrides, override_count,
                                experiment, error);
    free(text);
    return err;
}

void kith_experiment_close(struct kith_experiment *experiment)
{
    kith_atoms_free(experiment->atoms, experiment->sides);
    free(experiment->source);
    free(experiment->gossip.graph_memory);
    kith_latencies_close(&experiment->network.latencies);
    kith_classes_close(&experiment->network.classes);
    kith_zones_close(&experiment->network.zones);
    memset(experiment, 0, sizeof *experiment);
}
