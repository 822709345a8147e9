/* Reads a tree through a table of keys. See schema.h. */
#include "schema.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "kith/assert.h"
#include "kith/experiment.h"
#include "kith/text.h"

/* Names offered in one message, and looked through for a near one. */
#define NAMES_MAX 64u

const char *kith_schema_hint(const char *word, const char *const *names,
                             char *text, size_t size)
{
    const char *near = kith_text_nearest(word, names);
    text[0] = '\0';
    if (near != NULL)
        snprintf(text, size, "; did you mean \"%s\"?", near);
    return text;
}

static uint32_t choice_names(const struct key_choice *choice,
                             const char *names[NAMES_MAX + 1])
{
    uint32_t count = 0;
    while (count < NAMES_MAX && choice->name(count) != NULL) {
        names[count] = choice->name(count);
        count++;
    }
    names[count] = NULL;
    return count;
}

static void allowed_names(const char *const *names, char *text, size_t size)
{
    size_t at = 0;
    text[0] = '\0';
    for (uint32_t i = 0; names[i] != NULL; i++)
        at =
            kith_text_add(text, size, at, "%s%s", i == 0 ? "" : ", ", names[i]);
}

static void allowed_bounds(const struct key *key, const char *what,
                           const char *unit, char *text)
{
    const size_t size = SCHEMA_ALLOWED_BYTES;
    size_t at = kith_text_add(text, size, 0, "%s ", what);
    at =
        kith_text_add(text, size, at,
                      key->flags & KEY_ABOVE ? "above %.15g%s" : "from %.15g%s",
                      key->low, unit);
    if (key->high < 1e15)
        at = kith_text_add(text, size, at,
                           key->flags & KEY_BELOW ? " to below %.15g%s"
                                                  : " to %.15g%s",
                           key->high, unit);
    else if (key->type == KEY_U64)
        at = kith_text_add(text, size, at, " to %" PRIu64, UINT64_MAX);
    else
        at = kith_text_add(text, size, at, " up");
    if (key->allowed != NULL)
        kith_text_add(text, size, at, ": %s", key->allowed);
}

void kith_schema_allowed(const struct key *key, char text[SCHEMA_ALLOWED_BYTES])
{
    const char *names[NAMES_MAX + 1];
    const size_t size = SCHEMA_ALLOWED_BYTES;
    switch (key->type) {
    case KEY_NAME:
        kith_text_add(text, size, 0,
                      "1 to %zu letters, digits, \".\", \"_\" or \"-\"",
                      key->size - 1);
        return;
    case KEY_TEXT:
        kith_text_add(text, size, 0, "1 to %zu bytes of text", key->size - 1);
        return;
    case KEY_U32:
    case KEY_U64:
        allowed_bounds(key, "a whole number", "", text);
        return;
    case KEY_NUMBER:
        allowed_bounds(key, "a number", "", text);
        return;
    case KEY_TIME:
        allowed_bounds(key,
                       "a time with its unit (200us, 1.5ms for milliseconds, "
                       "3s, 2m or 1.5min for minutes, 1h)",
                       "s", text);
        return;
    case KEY_SWITCH:
        kith_text_copy(text, size, "true or false");
        return;
    case KEY_CHOICE:
        choice_names(key->choice, names);
        allowed_names(names, text, size);
        return;
    case KEY_RATE:
    case KEY_SIZES:
    case KEY_PARSED:
    case KEY_CUSTOM:
        kith_text_copy(text, size, key->allowed);
        return;
    }
}

static bool within(const struct key *key, double value)
{
    const bool low =
        key->flags & KEY_ABOVE ? value > key->low : value >= key->low;
    const bool high =
        key->flags & KEY_BELOW ? value < key->high : value <= key->high;
    return low && high;
}

static enum kith_err set_text(const struct key *key, const char *text,
                              char *field)
{
    static const char name[] = "abcdefghijklmnopqrstuvwxyz"
                               "ABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789._-";
    const size_t length = strlen(text);
    if (length == 0 || length >= key->size)
        return KITH_ELIMIT;
    if (key->type == KEY_NAME &&
        (strspn(text, name) != length || text[0] == '.' || text[0] == '-'))
        return KITH_EPARSE;
    memcpy(field, text, length + 1);
    return KITH_OK;
}

/* A number of some type, within the bounds of its key. */
static enum kith_err set_bounded(const struct key *key, const char *text,
                                 void *field)
{
    const bool is_time = key->type == KEY_TIME;
    union {
        uint64_t whole;
        kith_ns span;
        double number;
    } parsed;
    _Static_assert(sizeof parsed == sizeof(uint64_t), "all types are as wide");
    const enum kith_err err = is_time ? kith_text_time(text, &parsed.span)
                              : key->type == KEY_NUMBER
                                  ? kith_text_double(text, &parsed.number)
                                  : kith_text_u64(text, &parsed.whole);
    if (err != KITH_OK)
        return err;
    const double value = is_time                   ? (double)parsed.span / 1e9
                         : key->type == KEY_NUMBER ? parsed.number
                                                   : (double)parsed.whole;
    if (!isfinite(value) || !within(key, value))
        return KITH_ELIMIT;
    if (key->type != KEY_U32) {
        memcpy(field, &parsed, sizeof parsed);
        return KITH_OK;
    }
    const uint32_t narrow = (uint32_t)parsed.whole;
    KITH_ASSERT(narrow == parsed.whole);
    memcpy(field, &narrow, sizeof narrow);
    return KITH_OK;
}

static enum kith_err set_rate(const char *text, void *field)
{
    uint64_t rate = 0;
    if (strcmp(text, "unlimited") != 0) {
        const enum kith_err err = kith_text_rate(text, &rate);
        if (err != KITH_OK)
            return err;
        if (rate < 1000 || rate > UINT64_C(1000000000000000))
            return KITH_ELIMIT;
    }
    memcpy(field, &rate, sizeof rate);
    return KITH_OK;
}

static enum kith_err set_switch(const char *text, void *field)
{
    bool *on = field;
    *on = strcmp(text, "true") == 0;
    return *on || strcmp(text, "false") == 0 ? KITH_OK : KITH_EPARSE;
}

static enum kith_err set_choice(const struct key *key, const char *text,
                                void *object)
{
    for (unsigned i = 0; key->choice->name(i) != NULL; i++)
        if (strcmp(key->choice->name(i), text) == 0) {
            key->choice->choose(object, i);
            return KITH_OK;
        }
    return KITH_ENOENT;
}

enum kith_err kith_schema_set(const struct key *key, const char *text,
                              void *object)
{
    void *field = (char *)object + key->offset;
    switch (key->type) {
    case KEY_NAME:
    case KEY_TEXT:
        return set_text(key, text, field);
    case KEY_U32:
    case KEY_U64:
    case KEY_NUMBER:
    case KEY_TIME:
        return set_bounded(key, text, field);
    case KEY_RATE:
        return set_rate(text, field);
    case KEY_SWITCH:
        return set_switch(text, field);
    case KEY_CHOICE:
        return set_choice(key, text, object);
    case KEY_PARSED:
        return key->parse(text, field);
    case KEY_SIZES:
    case KEY_CUSTOM:
        break;
    }
    return KITH_OK;
}

void kith_schema_number(double value, char *text, size_t size)
{
    double back;
    value += 0.0; /* -0 and 0 are the same setting */
    (void)snprintf(text, size, "%.15g", value);
    if (kith_text_double(text, &back) != KITH_OK || back != value)
        (void)snprintf(text, size, "%.17g", value);
}

static void show_sizes(const uint32_t *sizes, size_t most, char *text)
{
    size_t at = 0;
    for (size_t i = 0; i < most && sizes[i] > 0; i++)
        at = kith_text_add(text, SCHEMA_SHOWN_BYTES, at, "%s%" PRIu32,
                           i == 0 ? "" : ", ", sizes[i]);
}

static void show_field(const struct key *key, const void *object, char *text)
{
    const size_t size = SCHEMA_SHOWN_BYTES;
    const void *const field = (const char *)object + key->offset;
    uint32_t narrow;
    uint64_t wide;
    double number;
    switch (key->type) {
    case KEY_NAME:
    case KEY_TEXT:
        kith_text_copy(text, size, field);
        return;
    case KEY_U32:
        memcpy(&narrow, field, sizeof narrow);
        (void)snprintf(text, size, "%" PRIu32, narrow);
        return;
    case KEY_U64:
        memcpy(&wide, field, sizeof wide);
        (void)snprintf(text, size, "%" PRIu64, wide);
        return;
    case KEY_RATE:
        memcpy(&wide, field, sizeof wide);
        if (wide == 0)
            kith_text_copy(text, size, "unlimited");
        else
            (void)snprintf(text, size, "%" PRIu64 "bit", wide);
        return;
    case KEY_TIME:
        memcpy(&wide, field, sizeof wide);
        (void)snprintf(text, size, "%" PRIu64 "%s", wide, wide > 0 ? "ns" : "");
        return;
    case KEY_NUMBER:
        memcpy(&number, field, sizeof number);
        kith_schema_number(number, text, size);
        return;
    case KEY_SWITCH:
        kith_text_copy(text, size, *(const bool *)field ? "true" : "false");
        return;
    case KEY_CHOICE:
        if (key->choice->chosen(object) != NULL)
            kith_text_copy(text, size, key->choice->chosen(object));
        return;
    case KEY_SIZES:
        show_sizes(field, key->size / sizeof narrow, text);
        return;
    case KEY_PARSED:
    case KEY_CUSTOM:
        KITH_ASSERT(key->flags & KEY_LOCAL); /* else it has `show` */
        return;
    }
}

bool kith_schema_show(const struct key *key, const void *object,
                      char text[SCHEMA_SHOWN_BYTES])
{
    text[0] = '\0';
    if (key->show != NULL)
        key->show(object, text);
    else
        show_field(key, object, text);
    KITH_ASSERT(strlen(text) < SCHEMA_SHOWN_BYTES);
    if (key->initial == NULL && strcmp(text, "0") == 0)
        text[0] = '\0';
    return text[0] == '\0' || (key->show == NULL && key->initial != NULL &&
                               strcmp(text, key->initial) == 0);
}

/* The item that makes it no such list, or NULL. */
static const struct tree_item *read_sizes(const struct key *key,
                                          const struct tree *tree,
                                          const struct tree_item *list,
                                          void *object)
{
    uint32_t *const sizes = (void *)((char *)object + key->offset);
    uint32_t count = 0;
    if (list->kind != TREE_LIST || list->count < (uint32_t)key->low ||
        list->count > key->size / sizeof *sizes)
        return list;
    const struct tree_item *item = kith_yaml_first(tree, list);
    for (; item != NULL; item = kith_yaml_next(tree, item)) {
        uint64_t size;
        if (item->kind != TREE_SCALAR ||
            kith_text_u64(item->text, &size) != KITH_OK || size == 0 ||
            size > UINT32_MAX)
            return item;
        sizes[count++] = (uint32_t)size;
    }
    return NULL;
}

static enum kith_err read_value(const struct key *key, const struct tree *tree,
                                const struct tree_item *item, void *object)
{
    if (key->type == KEY_CUSTOM)
        return KITH_OK;
    char allowed[SCHEMA_ALLOWED_BYTES], hint[96] = "";
    const bool is_list = key->type == KEY_SIZES;
    if (is_list)
        item = read_sizes(key, tree, item, object);
    if (is_list ? item == NULL
                : item->kind == TREE_SCALAR &&
                      kith_schema_set(key, item->text, object) == KITH_OK)
        return KITH_OK;
    if (key->type == KEY_CHOICE && item->kind == TREE_SCALAR) {
        const char *names[NAMES_MAX + 1];
        choice_names(key->choice, names);
        kith_schema_hint(item->text, names, hint, sizeof hint);
    }
    kith_schema_allowed(key, allowed);
    return kith_yaml_refuse_value(tree, item, key->path, "%s%s", allowed, hint);
}

/* The part of `path` below `section` ("" for the top), or NULL. */
static const char *below(const char *path, const char *section)
{
    const size_t length = strlen(section);
    if (length == 0)
        return path;
    if (strncmp(path, section, length) != 0 || path[length] != '.')
        return NULL;
    return path + length + 1;
}

/* The names that `section` may hold; "" is the top, where sections are named
 * once. Storage for them is `buffer`. */
static void section_names(const struct key *keys, const char *section,
                          char buffer[NAMES_MAX][KITH_NAME_MAX],
                          const char *names[NAMES_MAX + 1])
{
    uint32_t count = 0;
    for (const struct key *key = keys; key->path != NULL; key++) {
        const char *name = below(key->path, section);
        if (name == NULL || count == NAMES_MAX)
            continue;
        snprintf(buffer[count], KITH_NAME_MAX, "%.*s", (int)strcspn(name, "."),
                 name);
        if (count > 0 && strcmp(buffer[count], buffer[count - 1]) == 0)
            continue;
        names[count] = buffer[count];
        count++;
    }
    names[count] = NULL;
}

static enum kith_err unknown_key(const struct key *keys,
                                 const struct tree *tree, const char *section,
                                 const struct tree_item *item)
{
    char buffer[NAMES_MAX][KITH_NAME_MAX];
    const char *names[NAMES_MAX + 1];
    char allowed[SCHEMA_ALLOWED_BYTES], hint[96];
    section_names(keys, section, buffer, names);
    allowed_names(names, allowed, sizeof allowed);
    kith_schema_hint(item->key, names, hint, sizeof hint);
    return kith_yaml_fail(tree, item, section, KITH_EINVAL,
                          "found the unknown key \"%.60s\"; allowed: %s%s",
                          item->key, allowed, hint);
}

/* The row of section.name; NULL if there is none. */
static const struct key *find_key(const struct key *keys, const char *section,
                                  const char *name)
{
    for (const struct key *key = keys; key->path != NULL; key++) {
        const char *rest = below(key->path, section);
        if (rest != NULL && strcmp(rest, name) == 0)
            return key;
    }
    return NULL;
}

static bool is_section(const struct key *keys, const char *name)
{
    for (const struct key *key = keys; key->path != NULL; key++)
        if (below(key->path, name) != NULL)
            return true;
    return false;
}

static enum kith_err read_section(const struct key *keys,
                                  const struct tree *tree,
                                  const struct tree_item *section, void *object)
{
    if (section->kind != TREE_MAP) {
        char allowed[SCHEMA_ALLOWED_BYTES];
        char buffer[NAMES_MAX][KITH_NAME_MAX];
        const char *names[NAMES_MAX + 1];
        section_names(keys, section->key, buffer, names);
        allowed_names(names, allowed, sizeof allowed);
        return kith_yaml_refuse_value(tree, section, section->key,
                                      "a mapping with the keys %s", allowed);
    }
    const struct tree_item *item = kith_yaml_first(tree, section);
    for (; item != NULL; item = kith_yaml_next(tree, item)) {
        const struct key *key = find_key(keys, section->key, item->key);
        if (key == NULL)
            return unknown_key(keys, tree, section->key, item);
        const enum kith_err err = read_value(key, tree, item, object);
        if (err != KITH_OK)
            return err;
    }
    return KITH_OK;
}

static enum kith_err read_items(const struct key *keys, const struct tree *tree,
                                void *object)
{
    const struct tree_item *item = kith_yaml_first(tree, kith_yaml_root(tree));
    for (; item != NULL; item = kith_yaml_next(tree, item)) {
        const struct key *key = find_key(keys, "", item->key);
        enum kith_err err;
        if (key != NULL)
            err = read_value(key, tree, item, object);
        else if (is_section(keys, item->key))
            err = read_section(keys, tree, item, object);
        else
            err = unknown_key(keys, tree, "", item);
        if (err != KITH_OK)
            return err;
    }
    return KITH_OK;
}

enum kith_err kith_schema_read(const struct key *keys, const struct tree *tree,
                               void *object)
{
    for (const struct key *key = keys; key->path != NULL; key++)
        if (key->initial != NULL && key->type != KEY_CUSTOM) {
            const enum kith_err err =
                kith_schema_set(key, key->initial, object);
            KITH_ASSERT(err == KITH_OK); /* a bug in the table */
        }
    const enum kith_err err = read_items(keys, tree, object);
    if (err != KITH_OK)
        return err;
    for (const struct key *key = keys; key->path != NULL; key++)
        if ((key->flags & KEY_REQUIRED) &&
            kith_yaml_find(tree, key->path) == NULL) {
            char allowed[SCHEMA_ALLOWED_BYTES];
            kith_schema_allowed(key, allowed);
            return kith_yaml_refuse(tree, key->path, "not given; allowed: %s",
                                    allowed);
        }
    return KITH_OK;
}
