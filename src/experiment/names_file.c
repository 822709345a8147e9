/* A file of another program's names: kith/names.h has its form. */
#include <stdlib.h>
#include <string.h>

#include "kith/experiment.h"
#include "kith/names.h"
#include "kith/text.h"
#include "read_file.h"
#include "yaml_tree.h"

_Static_assert(TREE_KEYS_MAX <= KITH_NAMES_MAX, "a mapping's lines fit");

static bool is_name(const char *text)
{
    const char *star = strchr(text, '*');
    const size_t length = strlen(text);
    return length > 0 && length < KITH_TENSOR_NAME_BYTES &&
           (star == NULL || strchr(star + 1, '*') == NULL);
}

/* 0 to n - 1, each once. */
static enum kith_err read_axes(const struct tree *tree,
                               const struct tree_item *list,
                               struct kith_names_pair *pair)
{
    unsigned seen = 0;
    if (list->kind == TREE_LIST && list->count <= 4)
        for (const struct tree_item *item = kith_yaml_first(tree, list);
             item != NULL; item = kith_yaml_next(tree, item)) {
            uint64_t axis = 4;
            if (item->kind != TREE_SCALAR ||
                kith_text_u64(item->text, &axis) != KITH_OK || axis >= 4)
                break;
            seen |= 1u << axis;
            pair->axes[pair->axis_count++] = (uint8_t)axis;
        }
    if (pair->axis_count > 0 && pair->axis_count == list->count &&
        seen == (1u << list->count) - 1)
        return KITH_OK;
    return kith_yaml_refuse_value(tree, list, "axes",
                                  "ours in the order of theirs, such as "
                                  "[1, 0], at most four");
}

static enum kith_err read_pair(const struct tree *tree,
                               const struct tree_item *item,
                               struct kith_names_pair *pair)
{
    const struct tree_item *name = item;
    if (item->kind == TREE_MAP) {
        const struct tree_item *axes = kith_yaml_child(tree, item, "axes");
        name = kith_yaml_child(tree, item, "name");
        if (item->count != 1u + (axes != NULL))
            name = NULL;
        if (axes != NULL && read_axes(tree, axes, pair) != KITH_OK)
            return KITH_EINVAL;
    }
    if (name == NULL || name->kind != TREE_SCALAR)
        return kith_yaml_refuse_value(
            tree, item, item->key,
            "a tensor of the model, or {name: TENSOR, axes: [1, 0]}");
    if (!is_name(item->key) || !is_name(name->text) ||
        (strchr(item->key, '*') == NULL) != (strchr(name->text, '*') == NULL))
        return kith_yaml_fail(tree, item, item->key, KITH_EINVAL,
                              "found \"%.150s\"; allowed: names of up to %u "
                              "bytes, with one * in both or in neither",
                              name->text, KITH_TENSOR_NAME_BYTES - 1);
    (void)kith_text_copy(pair->theirs, sizeof pair->theirs, item->key);
    (void)kith_text_copy(pair->ours, sizeof pair->ours, name->text);
    pair->line = item->line;
    return KITH_OK;
}

static enum kith_err read_pairs(const struct tree *tree,
                                struct kith_names *names)
{
    const struct tree_item *root = kith_yaml_root(tree);
    enum kith_err err = KITH_OK;
    names->pairs = calloc(root->count + 1, sizeof *names->pairs);
    if (names->pairs == NULL)
        return kith_yaml_fail(tree, NULL, NULL, KITH_ENOMEM, "out of memory");
    for (const struct tree_item *item = kith_yaml_first(tree, root);
         item != NULL && err == KITH_OK; item = kith_yaml_next(tree, item))
        err = read_pair(tree, item, &names->pairs[names->count++]);
    return err;
}

void kith_names_close(struct kith_names *names)
{
    free(names->pairs);
    memset(names, 0, sizeof *names);
}

enum kith_err kith_names_parse(const char *path, const char *text, size_t size,
                               struct kith_names *names, char *error)
{
    struct tree tree;
    memset(names, 0, sizeof *names);
    (void)kith_text_copy(names->path, sizeof names->path, path);
    enum kith_err err = kith_yaml_open(&tree, path, text, size, error);
    if (err == KITH_OK)
        err = read_pairs(&tree, names);
    kith_yaml_close(&tree);
    if (err != KITH_OK)
        kith_names_close(names);
    return err;
}

enum kith_err kith_names_load(const char *path, struct kith_names *names,
                              char *error)
{
    char *text;
    size_t size;
    enum kith_err err = kith_experiment_read_file(path, &text, &size, error);
    if (err != KITH_OK)
        return err;
    err = kith_names_parse(path, text, size, names, error);
    free(text);
    return err;
}
