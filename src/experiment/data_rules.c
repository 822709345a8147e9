/* `data:` and `train.augment`: paths, what fits which model, and what a made-up
 * data set takes from it. */
#include <string.h>

#include "kith/text.h"
#include "key_table.h"
#include "read_file.h"

#define CROP_MAX 64u

/* item: the map, or what is wrong in it. */
static enum kith_err augment_fail(const struct tree *tree,
                                  const struct tree_item *item, bool inside)
{
    char found[TREE_SHOWN_BYTES];
    return kith_yaml_fail(
        tree, item, "train.augment", KITH_EINVAL,
        "found %.32s%s%s; allowed: a mapping of crop (pixels, 1 "
        "to %u) and flip (true or false), such as {crop: 4, "
        "flip: true}",
        inside ? item->key : "", inside ? ": " : "",
        kith_yaml_show(item, found), CROP_MAX);
}

static enum kith_err read_augment(const struct tree *tree,
                                  struct kith_augment *augment)
{
    const struct tree_item *map = kith_yaml_find(tree, "train.augment");
    if (map == NULL)
        return KITH_OK;
    if (map->kind != TREE_MAP)
        return augment_fail(tree, map, false);
    const struct tree_item *item = kith_yaml_first(tree, map);
    for (; item != NULL; item = kith_yaml_next(tree, item)) {
        uint64_t pixels;
        if (item->kind != TREE_SCALAR)
            return augment_fail(tree, item, true);
        if (strcmp(item->key, "crop") == 0 &&
            kith_text_u64(item->text, &pixels) == KITH_OK && pixels > 0 &&
            pixels <= CROP_MAX)
            augment->crop = (uint32_t)pixels;
        else if (strcmp(item->key, "flip") == 0 &&
                 strcmp(item->text, "true") == 0)
            augment->flip = true;
        else if (strcmp(item->key, "flip") != 0 ||
                 strcmp(item->text, "false") != 0)
            return augment_fail(tree, item, true);
    }
    return KITH_OK;
}

enum kith_err kith_experiment_read_data(const struct tree *tree,
                                        struct kith_experiment *experiment)
{
    struct kith_data_config *config = &experiment->data.config;
    enum kith_err err = read_augment(tree, &experiment->train.augment);
    if (kith_yaml_find(tree, "data") == NULL)
        return err;
    experiment->data.present =
        config->kind->rows > 0 || kith_yaml_find(tree, "data.path") != NULL;
    if (err == KITH_OK && config->path[0] != '\0')
        err = kith_experiment_resolve_path(tree, "data.path", config->path);
    if (err == KITH_OK && config->cache[0] != '\0')
        err = kith_experiment_resolve_path(tree, "data.cache", config->cache);
    if (err == KITH_OK && config->manifest[0] != '\0')
        err = kith_experiment_resolve_path(tree, "data.manifest",
                                           config->manifest);
    return err;
}

const char *kith_experiment_input_name(enum kith_input input)
{
    return input == KITH_INPUT_TOKENS ? "tokens" : "images";
}

static enum kith_err rule_kind(const struct tree *tree,
                               const struct kith_experiment *experiment)
{
    const struct kith_dataset_kind *kind = experiment->data.config.kind;
    const enum kith_input input = experiment->model->input;
    if (kind->input == KITH_INPUT_NONE || kind->input == input)
        return KITH_OK;
    char names[256] = "";
    size_t at = 0;
    for (unsigned i = 0; kith_dataset_kinds[i] != NULL; i++) {
        const enum kith_input other = kith_dataset_kinds[i]->input;
        if (other == KITH_INPUT_NONE || other == input)
            at =
                kith_text_add(names, sizeof names, at, "%s%s",
                              at == 0 ? "" : ", ", kith_dataset_kinds[i]->name);
    }
    return kith_yaml_fail(
        tree, kith_yaml_find_or(tree, "data.kind", "data"), "data.kind",
        KITH_EINVAL,
        "found %s, which holds %s, but model %s learns from %s; "
        "allowed: %s",
        kind->name, kith_experiment_input_name(kind->input),
        experiment->model->name, kith_experiment_input_name(input), names);
}

enum kith_err
kith_experiment_rule_data(const struct tree *tree,
                          const struct kith_experiment *experiment)
{
    const struct kith_dataset_kind *kind = experiment->data.config.kind;
    if (!experiment->data.present)
        return KITH_OK;
    const bool images = experiment->model->input == KITH_INPUT_IMAGES;
    const bool files = kind->rows == 0;
    const struct {
        const char *path;
        bool is_read;
        const char *why;
    } keys[] = {
        {"data.path", files, "reads no files"},
        {"data.cache", files, "reads no files"},
        {"data.manifest", files, "reads no files"},
        {"data.rows", !files, "has as many rows as its files"},
        {"data.spread", kind->spreads, "has no classes with means to draw"},
        {"data.test_share", kind->cut, "has a test set of its own"},
        {"data.normalise", images || !experiment->data.config.normalise,
         "holds tokens, which have no mean"},
        {"train.augment", images, "holds tokens, not images"},
    };
    enum kith_err err = rule_kind(tree, experiment);
    for (size_t i = 0; i < sizeof keys / sizeof keys[0] && err == KITH_OK;
         i++) {
        if (!keys[i].is_read && kith_yaml_find(tree, keys[i].path) != NULL)
            err = kith_yaml_refuse(tree, keys[i].path,
                                   "data of kind %s %s; take it out",
                                   kind->name, keys[i].why);
    }
    if (err == KITH_OK && !images &&
        experiment->data.split.kind != KITH_SPLIT_IID)
        err = kith_yaml_refuse(tree, "data.split",
                               "windows of text have no classes to split by; "
                               "allowed: iid");
    return err;
}

void kith_experiment_derive_data(struct kith_experiment *experiment)
{
    struct kith_data_config *config = &experiment->data.config;
    const struct kith_model_config *model = &experiment->model_config;
    const struct kith_model_size size =
        kith_model_size_of(experiment->model, model);
    const bool image = model->image[0] > 0;
    if (experiment->data.present && config->rows == 0)
        config->rows = config->kind->rows;
    config->seed = experiment->seed;
    config->context = experiment->model->input == KITH_INPUT_TOKENS
                          ? (uint32_t)size.features
                          : 0;
    config->shape[0] = image ? model->image[0] : 1;
    config->shape[1] = image ? model->image[1] : 1;
    config->shape[2] = image ? model->image[2] : (uint32_t)size.features;
    config->classes = (uint32_t)size.classes;
}
