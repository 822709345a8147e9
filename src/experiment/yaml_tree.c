/* YAML events -> a bounded tree.
 *
 * libyaml's events are used, not its documents: an event can be refused before
 * anything is stored for it, and aliases never reach us. The open collections
 * are a stack of at most TREE_DEPTH_MAX indices, so nothing recurses. */
#include "yaml_tree.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <yaml.h>

#include "kith/assert.h"
#include "kith/experiment.h"
#include "kith/text.h"

struct builder {
    struct tree *tree;
    uint32_t origin;
    uint32_t open[TREE_DEPTH_MAX]; /* (depth) */
    uint32_t depth;
    uint32_t base; /* depth of an override's place in the file */
    char *key;     /* the pending key of the innermost mapping */
    uint32_t root; /* index of the document's item */
    bool has_root;
    uint32_t line; /* of the event at hand */
};

static const char *const kind_names[] = {"a value", "a list", "a mapping"};

static void fail_prefix(const struct tree *tree, uint32_t origin, uint32_t line,
                        const char *key)
{
    const size_t size = KITH_EXPERIMENT_ERROR_BYTES;
    size_t at = 0;
    tree->error[0] = '\0';
    if (origin > 0)
        at = kith_text_add(tree->error, size, at,
                           "--set %.200s: ", tree->overrides[origin - 1]);
    else if (line > 0)
        at = kith_text_add(tree->error, size, at, "%.300s:%u: ", tree->name,
                           line);
    else
        at = kith_text_add(tree->error, size, at, "%.300s: ", tree->name);
    if (key != NULL && key[0] != '\0')
        kith_text_add(tree->error, size, at, "%.100s: ", key);
}

/* The rest of the message, and no control characters: one line it is. */
static void KITH_PRINTF(2, 0)
    fail_rest(const struct tree *tree, const char *format, va_list list)
{
    const size_t at = strlen(tree->error);
    vsnprintf(tree->error + at, KITH_EXPERIMENT_ERROR_BYTES - at, format, list);
    for (char *c = tree->error; *c != '\0'; c++)
        if ((unsigned char)*c < 0x20 || *c == 0x7f)
            *c = '?';
}

enum kith_err kith_yaml_fail(const struct tree *tree,
                             const struct tree_item *item, const char *key,
                             enum kith_err err, const char *format, ...)
{
    fail_prefix(tree, item == NULL ? 0 : item->origin,
                item == NULL ? 0 : item->line, key);
    va_list list;
    va_start(list, format);
    fail_rest(tree, format, list);
    va_end(list);
    return err;
}

enum kith_err kith_yaml_refuse(const struct tree *tree, const char *path,
                               const char *format, ...)
{
    const struct tree_item *item = kith_yaml_find(tree, path);
    fail_prefix(tree, item == NULL ? 0 : item->origin,
                item == NULL ? 0 : item->line, path);
    va_list list;
    va_start(list, format);
    fail_rest(tree, format, list);
    va_end(list);
    return KITH_EINVAL;
}

enum kith_err kith_yaml_refuse_value(const struct tree *tree,
                                     const struct tree_item *item,
                                     const char *key, const char *allowed, ...)
{
    char found[TREE_SHOWN_BYTES];
    fail_prefix(tree, item->origin, item->line, key);
    (void)kith_text_add(tree->error, KITH_EXPERIMENT_ERROR_BYTES,
                        strlen(tree->error),
                        "found %s; allowed: ", kith_yaml_show(item, found));
    va_list list;
    va_start(list, allowed);
    fail_rest(tree, allowed, list);
    va_end(list);
    return KITH_EINVAL;
}

static enum kith_err KITH_PRINTF(2, 3)
    refuse(const struct builder *builder, const char *format, ...)
{
    const struct tree *tree = builder->tree;
    fail_prefix(tree, builder->origin, builder->line, builder->key);
    va_list list;
    va_start(list, format);
    fail_rest(tree, format, list);
    va_end(list);
    return KITH_EPARSE;
}

const char *kith_yaml_show(const struct tree_item *item,
                           char text[TREE_SHOWN_BYTES])
{
    if (item->kind != TREE_SCALAR && item->count == 0)
        snprintf(text, TREE_SHOWN_BYTES, "an empty %s",
                 strchr(kind_names[item->kind], ' ') + 1);
    else if (item->kind != TREE_SCALAR)
        snprintf(text, TREE_SHOWN_BYTES, "%s", kind_names[item->kind]);
    else if (item->text[0] == '\0')
        snprintf(text, TREE_SHOWN_BYTES, "nothing");
    else if (strlen(item->text) < 60)
        snprintf(text, TREE_SHOWN_BYTES, "\"%s\"", item->text);
    else
        snprintf(text, TREE_SHOWN_BYTES, "\"%.56s...\"", item->text);
    return text;
}

/* A new item, linked nowhere yet; KITH_ELIMIT, KITH_ENOMEM. */
static enum kith_err item_new(struct tree *tree, uint32_t *index)
{
    if (tree->count == tree->capacity) {
        const uint32_t capacity = tree->capacity == 0 ? 64 : 2 * tree->capacity;
        if (capacity > TREE_ITEMS_MAX)
            return KITH_ELIMIT;
        void *items = realloc(tree->items, capacity * sizeof(struct tree_item));
        if (items == NULL)
            return KITH_ENOMEM;
        tree->items = items;
        tree->capacity = capacity;
    }
    *index = tree->count++;
    memset(&tree->items[*index], 0, sizeof(struct tree_item));
    return KITH_OK;
}

static void item_link(struct tree *tree, uint32_t parent, uint32_t child)
{
    struct tree_item *p = &tree->items[parent];
    if (p->last == 0)
        p->first = child;
    else
        tree->items[p->last].next = child;
    p->last = child;
    p->count++;
}

static bool plain_text(const char *text, size_t size)
{
    if (size > TREE_TEXT_MAX)
        return false;
    for (size_t i = 0; i < size; i++) {
        const unsigned char c = (unsigned char)text[i];
        if (c < 0x20 || c == 0x7f)
            return false;
    }
    return true;
}

static struct tree_item *builder_top(const struct builder *builder)
{
    KITH_ASSERT(builder->depth > 0);
    return &builder->tree->items[builder->open[builder->depth - 1]];
}

/* The pending key must be new in its mapping. */
static enum kith_err check_key(const struct builder *builder)
{
    const struct tree *tree = builder->tree;
    const struct tree_item *map = builder_top(builder);
    if (map->count >= TREE_KEYS_MAX)
        return refuse(builder, "found more than %u keys in one mapping",
                      TREE_KEYS_MAX);
    const struct tree_item *twin = kith_yaml_child(tree, map, builder->key);
    if (twin != NULL)
        return refuse(builder, "given twice, first on line %u; keep one",
                      twin->line);
    return KITH_OK;
}

static enum kith_err build_item(struct builder *builder, enum tree_kind kind,
                                const char *text, uint32_t *index)
{
    struct tree *tree = builder->tree;
    enum kith_err err = item_new(tree, index);
    if (err != KITH_OK) {
        (void)refuse(builder, "found more than %u items: %s", TREE_ITEMS_MAX,
                     kith_err_text(err));
        return err;
    }
    struct tree_item *item = &tree->items[*index];
    item->kind = kind;
    item->line = builder->line;
    item->origin = builder->origin;
    item->key = builder->key;
    builder->key = NULL;
    if (kind == TREE_SCALAR) {
        item->text = strdup(text);
        if (item->text == NULL)
            return KITH_ENOMEM;
    }
    if (builder->depth > 0)
        item_link(tree, builder->open[builder->depth - 1], *index);
    else {
        builder->root = *index;
        builder->has_root = true;
    }
    return KITH_OK;
}

static enum kith_err build_scalar(struct builder *builder,
                                  const yaml_event_t *event)
{
    const char *text = (const char *)event->data.scalar.value;
    const size_t size = event->data.scalar.length;
    if (!plain_text(text, size))
        return refuse(builder,
                      "found control characters or more than %u bytes; "
                      "allowed: one line of text",
                      TREE_TEXT_MAX);
    const bool in_map =
        builder->depth > 0 && builder_top(builder)->kind == TREE_MAP;
    if (in_map && builder->key == NULL) {
        builder->key = strdup(text);
        return builder->key == NULL ? KITH_ENOMEM : check_key(builder);
    }
    uint32_t index;
    return build_item(builder, TREE_SCALAR, text, &index);
}

static enum kith_err build_collection(struct builder *builder,
                                      enum tree_kind kind)
{
    const bool in_map =
        builder->depth > 0 && builder_top(builder)->kind == TREE_MAP;
    if (in_map && builder->key == NULL)
        return refuse(builder, "found %s as a key; allowed: plain text",
                      kind_names[kind]);
    if (builder->base + builder->depth >= TREE_DEPTH_MAX)
        return refuse(builder, "nested deeper than %u levels", TREE_DEPTH_MAX);
    uint32_t index;
    const enum kith_err err = build_item(builder, kind, NULL, &index);
    if (err == KITH_OK)
        builder->open[builder->depth++] = index;
    return err;
}

/* Anchors and tags have no use here and cost bounds: refused. */
static bool event_is_decorated(const yaml_event_t *event)
{
    const yaml_event_type_t type = event->type;
    if (type == YAML_SCALAR_EVENT)
        return event->data.scalar.anchor != NULL ||
               event->data.scalar.tag != NULL;
    if (type == YAML_SEQUENCE_START_EVENT)
        return event->data.sequence_start.anchor != NULL ||
               event->data.sequence_start.tag != NULL;
    if (type == YAML_MAPPING_START_EVENT)
        return event->data.mapping_start.anchor != NULL ||
               event->data.mapping_start.tag != NULL;
    return type == YAML_ALIAS_EVENT;
}

static enum kith_err build_event(struct builder *builder,
                                 const yaml_event_t *event)
{
    builder->line = (uint32_t)event->start_mark.line + 1;
    if (event_is_decorated(event))
        return refuse(builder, "found an anchor, alias or tag; allowed: plain "
                               "values, lists and mappings");
    switch (event->type) {
    case YAML_SCALAR_EVENT:
        return build_scalar(builder, event);
    case YAML_SEQUENCE_START_EVENT:
        return build_collection(builder, TREE_LIST);
    case YAML_MAPPING_START_EVENT:
        return build_collection(builder, TREE_MAP);
    case YAML_SEQUENCE_END_EVENT:
    case YAML_MAPPING_END_EVENT:
        builder->depth--;
        return KITH_OK;
    case YAML_DOCUMENT_START_EVENT:
        if (builder->has_root)
            return refuse(builder, "found a second document; allowed: one");
        return KITH_OK;
    case YAML_ALIAS_EVENT:
    case YAML_NO_EVENT:
    case YAML_STREAM_START_EVENT:
    case YAML_STREAM_END_EVENT:
    case YAML_DOCUMENT_END_EVENT:
        break;
    }
    return KITH_OK;
}

static enum kith_err build_document(struct builder *builder, const char *text,
                                    size_t size)
{
    yaml_parser_t parser;
    if (!yaml_parser_initialize(&parser))
        return KITH_ENOMEM;
    yaml_parser_set_input_string(&parser, (const unsigned char *)text, size);
    yaml_parser_set_encoding(&parser, YAML_UTF8_ENCODING);
    enum kith_err err = KITH_OK;
    bool done = false;
    while (!done && err == KITH_OK) { /* bounded by TREE_ITEMS_MAX */
        yaml_event_t event;
        if (!yaml_parser_parse(&parser, &event)) {
            builder->line = (uint32_t)parser.problem_mark.line + 1;
            free(builder->key); /* not at fault */
            builder->key = NULL;
            err = refuse(builder, "not YAML: %.200s",
                         parser.problem == NULL ? "out of memory"
                                                : parser.problem);
            break;
        }
        done = event.type == YAML_STREAM_END_EVENT;
        err = build_event(builder, &event);
        yaml_event_delete(&event);
    }
    yaml_parser_delete(&parser);
    free(builder->key);
    builder->key = NULL;
    if (err == KITH_ENOMEM)
        (void)refuse(builder, "out of memory");
    return err;
}

enum kith_err kith_yaml_open(struct tree *tree, const char *name,
                             const char *text, size_t size, char *error)
{
    memset(tree, 0, sizeof *tree);
    tree->name = name;
    tree->error = error;
    error[0] = '\0';
    struct builder builder = {.tree = tree};
    if (size > KITH_YAML_BYTES_MAX)
        return refuse(&builder, "found %zu bytes; allowed: at most %u", size,
                      KITH_YAML_BYTES_MAX);
    /* libyaml takes a key behind a byte order mark for an indented one. */
    static const char mark[] = "\xef\xbb\xbf";
    const size_t skipped = size >= 3 && memcmp(text, mark, 3) == 0 ? 3 : 0;
    const enum kith_err err =
        build_document(&builder, text + skipped, size - skipped);
    if (err != KITH_OK)
        return err;
    if (!builder.has_root || tree->items[0].kind != TREE_MAP)
        return refuse(&builder, "found no keys; allowed: a mapping, that is, "
                                "lines of KEY: VALUE");
    return KITH_OK;
}

void kith_yaml_close(struct tree *tree)
{
    for (uint32_t i = 0; i < tree->count; i++) {
        free(tree->items[i].key);
        free(tree->items[i].text);
    }
    free(tree->items);
    tree->items = NULL;
    tree->count = tree->capacity = 0;
}

const struct tree_item *kith_yaml_root(const struct tree *tree)
{
    KITH_ASSERT(tree->count > 0);
    return &tree->items[0];
}

const struct tree_item *kith_yaml_first(const struct tree *tree,
                                        const struct tree_item *parent)
{
    return parent->first == 0 ? NULL : &tree->items[parent->first];
}

const struct tree_item *kith_yaml_next(const struct tree *tree,
                                       const struct tree_item *item)
{
    return item->next == 0 ? NULL : &tree->items[item->next];
}

const struct tree_item *kith_yaml_child(const struct tree *tree,
                                        const struct tree_item *parent,
                                        const char *key)
{
    if (parent == NULL || parent->kind != TREE_MAP)
        return NULL;
    const struct tree_item *child = kith_yaml_first(tree, parent);
    while (child != NULL && strcmp(child->key, key) != 0)
        child = kith_yaml_next(tree, child);
    return child;
}

enum kith_err kith_yaml_put(const struct tree *tree,
                            const struct tree_item *item, const char *text)
{
    struct tree_item *const own = &tree->items[item - tree->items];
    char *const copy = strdup(text);
    KITH_ASSERT(own->kind == TREE_SCALAR);
    if (copy == NULL)
        return kith_yaml_fail(tree, NULL, NULL, KITH_ENOMEM, "out of memory");
    free(own->text);
    own->text = copy;
    return KITH_OK;
}

const struct tree_item *kith_yaml_find(const struct tree *tree,
                                       const char *path)
{
    const struct tree_item *item = kith_yaml_root(tree);
    char part[TREE_TEXT_MAX + 1];
    while (item != NULL && *path != '\0') {
        const size_t length = strcspn(path, ".");
        if (length > TREE_TEXT_MAX)
            return NULL;
        memcpy(part, path, length);
        part[length] = '\0';
        item = kith_yaml_child(tree, item, part);
        path += length;
        path += *path == '.';
    }
    return item;
}

const struct tree_item *kith_yaml_find_or(const struct tree *tree,
                                          const char *path, const char *other)
{
    const struct tree_item *item = kith_yaml_find(tree, path);
    return item != NULL ? item : kith_yaml_find(tree, other);
}

/* The mapping child `key` of `parent`, made where it is missing. */
static enum kith_err override_step(struct builder *builder, uint32_t parent,
                                   char *key, uint32_t *index)
{
    struct tree *tree = builder->tree;
    const struct tree_item *found =
        kith_yaml_child(tree, &tree->items[parent], key);
    if (found == NULL) {
        builder->open[0] = parent;
        builder->depth = 1;
        builder->key = strdup(key);
        if (builder->key == NULL)
            return KITH_ENOMEM;
        const enum kith_err err = check_key(builder);
        return err != KITH_OK ? err
                              : build_item(builder, TREE_MAP, NULL, index);
    }
    *index = (uint32_t)(found - tree->items);
    return KITH_OK;
}

/* items[target] becomes what items[source] is, key and place kept. */
static void override_replace(struct tree *tree, uint32_t target,
                             uint32_t source)
{
    struct tree_item *to = &tree->items[target];
    struct tree_item *from = &tree->items[source];
    free(to->text);
    free(from->key);
    const struct tree_item place = *to;
    *to = *from;
    to->key = place.key;
    to->next = place.next;
    *from = (struct tree_item){.kind = TREE_LIST};
}

static void item_unlink(struct tree *tree, uint32_t parent, uint32_t child)
{
    struct tree_item *p = &tree->items[parent];
    uint32_t before = 0;
    for (uint32_t i = p->first; i != child; i = tree->items[i].next)
        before = i;
    if (before == 0)
        p->first = tree->items[child].next;
    else
        tree->items[before].next = tree->items[child].next;
    if (p->last == child)
        p->last = before;
    p->count--;
}

/* The keys of items[source] go to items[target], both mappings. */
static enum kith_err override_merge(const struct builder *builder,
                                    uint32_t target, uint32_t source)
{
    struct tree *tree = builder->tree;
    uint32_t next = tree->items[source].first;
    while (next != 0) {
        const uint32_t item = next;
        struct tree_item *from = &tree->items[item];
        const struct tree_item *there =
            kith_yaml_child(tree, &tree->items[target], from->key);
        const bool gone =
            from->kind == TREE_SCALAR && strcmp(from->text, "null") == 0;
        next = from->next;
        if (gone && there != NULL)
            item_unlink(tree, target, (uint32_t)(there - tree->items));
        else if (!gone && there != NULL)
            override_replace(tree, (uint32_t)(there - tree->items), item);
        else if (!gone && tree->items[target].count >= TREE_KEYS_MAX)
            return refuse(builder, "found more than %u keys in one mapping",
                          TREE_KEYS_MAX);
        else if (!gone) {
            from->next = 0;
            item_link(tree, target, item);
        }
    }
    return KITH_OK;
}

static enum kith_err override_value(struct builder *builder, const char *value,
                                    uint32_t target, bool merges)
{
    builder->depth = 0;
    builder->has_root = false;
    enum kith_err err = KITH_OK;
    if (value[0] == '[' || value[0] == '{')
        err = build_document(builder, value, strlen(value));
    else if (!plain_text(value, strlen(value)))
        err = refuse(builder, "found control characters or a value that is "
                              "too long");
    else
        err = build_item(builder, TREE_SCALAR, value, &builder->root);
    const struct tree_item *items = builder->tree->items;
    if (err == KITH_OK && merges &&
        (items[builder->root].kind != TREE_MAP ||
         items[target].kind != TREE_MAP))
        err = refuse(builder, "+= changes keys of a mapping; allowed: "
                              "KEY+={KEY: VALUE, ...}");
    else if (err == KITH_OK && merges)
        err = override_merge(builder, target, builder->root);
    else if (err == KITH_OK)
        override_replace(builder->tree, target, builder->root);
    return err;
}

static enum kith_err override_one(struct tree *tree, uint32_t origin)
{
    const char *text = tree->overrides[origin - 1];
    struct builder builder = {.tree = tree, .origin = origin, .line = 1};
    const size_t length = strcspn(text, "=");
    char path[128];
    if (text[length] != '=' || length == 0 || length >= sizeof path)
        return refuse(&builder, "allowed: KEY=VALUE, such as "
                                "--set gossip.algorithm=dpsgd");
    const bool merges = length > 1 && text[length - 1] == '+';
    memcpy(path, text, length);
    path[length - merges] = '\0';
    uint32_t item = 0;
    char *part = path;
    for (uint32_t depth = 0; part != NULL; depth++) {
        char *dot = strchr(part, '.');
        if (dot != NULL)
            *dot++ = '\0';
        if (part[0] == '\0' || depth + 2 > TREE_DEPTH_MAX)
            return refuse(&builder, "found an empty or too deep key");
        if (tree->items[item].kind != TREE_MAP)
            return refuse(&builder, "%s cannot hold the key \"%.60s\"",
                          kind_names[tree->items[item].kind], part);
        const enum kith_err err = override_step(&builder, item, part, &item);
        if (err != KITH_OK) {
            free(builder.key);
            return err;
        }
        part = dot;
        builder.base = depth + 1;
    }
    return override_value(&builder, text + length + 1, item, merges);
}

enum kith_err kith_yaml_override(struct tree *tree,
                                 const char *const *overrides, uint32_t count)
{
    tree->overrides = overrides;
    for (uint32_t i = 0; i < count; i++) {
        const enum kith_err err = override_one(tree, i + 1);
        if (err != KITH_OK)
            return err;
    }
    return KITH_OK;
}
