/* The tree as YAML again: what the run database keeps where the file alone
 * would not repeat the run (--set, relative paths). Every top-level key is one
 * line, its value in flow style; text that is not a plain word is quoted. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "kith/assert.h"
#include "yaml_tree.h"

static void write_text(FILE *out, const char *text)
{
    static const char plain[] = "abcdefghijklmnopqrstuvwxyz"
                                "ABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_./+-";
    const size_t length = strlen(text);
    if (length > 0 && strspn(text, plain) == length && text[0] != '-') {
        fputs(text, out);
        return;
    }
    fputc('"', out);
    for (const char *c = text; *c != '\0'; c++) {
        if (*c == '"' || *c == '\\')
            fputc('\\', out);
        fputc(*c, out);
    }
    fputc('"', out);
}

/* Key, and the value or the bracket that opens it. */
static void write_start(FILE *out, const struct tree_item *item,
                        const char *replacement)
{
    if (item->key != NULL) {
        write_text(out, item->key);
        fputs(": ", out);
    }
    if (item->kind == TREE_SCALAR)
        write_text(out, replacement != NULL ? replacement : item->text);
    else
        fputc(item->kind == TREE_LIST ? '[' : '{', out);
}

/* An item and what is written in its place. */
struct swap {
    const struct tree_item *item;
    const char *text;
};

/* One item and all below it; an explicit stack in place of recursion. */
static void write_item(FILE *out, const struct tree *tree,
                       const struct tree_item *top, const struct swap *swaps,
                       unsigned swap_count)
{
    const struct tree_item *stack[TREE_DEPTH_MAX + 1];
    unsigned depth = 0;
    const struct tree_item *item = top;
    for (;;) {
        const char *text = NULL;
        for (unsigned i = 0; i < swap_count; i++)
            text = item == swaps[i].item ? swaps[i].text : text;
        write_start(out, item, text);
        const struct tree_item *next = kith_yaml_first(tree, item);
        if (next != NULL) {
            stack[depth++] = item;
            item = next;
            continue;
        }
        if (item->kind != TREE_SCALAR)
            fputc(item->kind == TREE_LIST ? ']' : '}', out);
        while (item != top && kith_yaml_next(tree, item) == NULL) {
            item = stack[--depth];
            fputc(item->kind == TREE_LIST ? ']' : '}', out);
        }
        if (item == top)
            break;
        fputs(", ", out);
        item = kith_yaml_next(tree, item);
    }
    fputc('\n', out);
}

char *kith_yaml_write(const struct tree *tree, const struct tree_swap *swaps,
                      unsigned swap_count)
{
    char *text = NULL;
    size_t size = 0;
    struct swap found[TREE_SWAPS_MAX];
    KITH_ASSERT(swap_count <= TREE_SWAPS_MAX);
    FILE *out = open_memstream(&text, &size);
    if (out == NULL)
        return NULL;
    for (unsigned i = 0; i < swap_count; i++)
        found[i] =
            (struct swap){kith_yaml_find(tree, swaps[i].path), swaps[i].text};
    const struct tree_item *item = kith_yaml_first(tree, kith_yaml_root(tree));
    for (; item != NULL; item = kith_yaml_next(tree, item))
        write_item(out, tree, item, found, swap_count);
    if (fclose(out) != 0) {
        free(text);
        return NULL;
    }
    return text;
}
