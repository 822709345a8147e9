/* A YAML document as a bounded tree of text, with the line of every item.
 *
 * Mappings, lists and scalars only: anchors, aliases, tags, more than one
 * document, control characters and anything past the bounds below are refused.
 * Types are the schema's business (schema.h). */
#ifndef KITH_EXPERIMENT_YAML_TREE_H
#define KITH_EXPERIMENT_YAML_TREE_H

#include <stddef.h>
#include <stdint.h>

#include "kith/err.h"

/* `faults:` at its limit has about 6,000 items. */
#define TREE_ITEMS_MAX 65536u
/* experiment -> faults -> one of them -> its keys. */
#define TREE_DEPTH_MAX 6u
/* Keys of one mapping: a file of a model's names has most (kith/names.h). */
#define TREE_KEYS_MAX 1024u
/* Bytes of one key or value; a path is the longest. */
#define TREE_TEXT_MAX 1023u

enum tree_kind { TREE_SCALAR, TREE_LIST, TREE_MAP };

struct tree_item {
    enum tree_kind kind;
    uint32_t line;              /* from 1 */
    uint32_t origin;            /* 0: the file; i + 1: override i */
    uint32_t first, last, next; /* indices; 0: none */
    uint32_t count;             /* children */
    char *key;                  /* owned; NULL in a list and at the root */
    char *text;                 /* owned; SCALAR */
};

struct tree {
    const char *name; /* the file, for messages */
    const char *const *overrides;
    char *error;             /* KITH_EXPERIMENT_ERROR_BYTES */
    struct tree_item *items; /* (count); 0 is the root */
    uint32_t count, capacity;
};

/* On error `error` says why; kith_yaml_close() must be called in either case.
 */
KITH_MUST_CHECK enum kith_err kith_yaml_open(struct tree *tree,
                                             const char *name, const char *text,
                                             size_t size, char *error);
void kith_yaml_close(struct tree *tree);
/* overrides: "a.b=value"; the value is plain text, or a list or mapping where
 * it starts with [ or {. "a.b+={c: value, d: null}" changes keys of the mapping
 * a.b, null taking one out, and leaves its others. The strings must outlive the
 * tree. */
KITH_MUST_CHECK enum kith_err kith_yaml_override(struct tree *tree,
                                                 const char *const *overrides,
                                                 uint32_t count);

const struct tree_item *kith_yaml_root(const struct tree *tree);
const struct tree_item *kith_yaml_first(const struct tree *tree,
                                        const struct tree_item *parent);
const struct tree_item *kith_yaml_next(const struct tree *tree,
                                       const struct tree_item *item);
/* The child `key` of a mapping, or NULL. parent NULL: the answer is NULL. */
const struct tree_item *kith_yaml_child(const struct tree *tree,
                                        const struct tree_item *parent,
                                        const char *key);
/* "model.layers" from the root, or NULL: was it given? */
const struct tree_item *kith_yaml_find(const struct tree *tree,
                                       const char *path);

/* The same; where it was not given, what stands at `other`. */
const struct tree_item *kith_yaml_find_or(const struct tree *tree,
                                          const char *path, const char *other);

/* One line of error: "FILE:LINE: KEY: ..." or "--set A=B: KEY: ...". item
 * NULL: no line. Returns `err`. */
enum kith_err kith_yaml_fail(const struct tree *tree,
                             const struct tree_item *item, const char *key,
                             enum kith_err err, const char *format, ...)
    KITH_PRINTF(5, 6);
/* KITH_EINVAL at the item of `path`, where it is given. */
enum kith_err kith_yaml_refuse(const struct tree *tree, const char *path,
                               const char *format, ...) KITH_PRINTF(3, 4);
/* KITH_EINVAL: "found VALUE; allowed: " and the rest. */
enum kith_err kith_yaml_refuse_value(const struct tree *tree,
                                     const struct tree_item *item,
                                     const char *key, const char *allowed, ...)
    KITH_PRINTF(4, 5);
/* "found" for messages: the value in quotes, clipped, or its kind. */
#define TREE_SHOWN_BYTES 72
const char *kith_yaml_show(const struct tree_item *item,
                           char text[TREE_SHOWN_BYTES]);

/* Another text for a scalar, as kith_yaml_write() writes it then: KITH_ENOMEM.
 */
KITH_MUST_CHECK enum kith_err kith_yaml_put(const struct tree *tree,
                                            const struct tree_item *item,
                                            const char *text);

/* The tree as YAML again, malloc'd: one line per top-level key. The scalars at
 * `path` of the swaps, where they are given, are written as their `text`. */
struct tree_swap {
    const char *path, *text;
};
#define TREE_SWAPS_MAX 8u
char *kith_yaml_write(const struct tree *tree, const struct tree_swap *swaps,
                      unsigned swap_count);

#endif
