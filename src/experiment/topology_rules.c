/* The graph of an experiment: an edge list is read, options are held against
 * what the kind reads, and the graph is built once, when the file is read.
 *
 * An edge list is text: a line "FROM TO [WEIGHT]" an edge, ranks from 0, in any
 * order; "#" begins a comment. Commas and semicolons count as blanks and a
 * first line of words is left out, so that CSV of an edge list is one. */
#include <ctype.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "kith/hash.h"
#include "kith/text.h"
#include "key_table.h"
#include "read_file.h"

#define BLANKS " \t\r,;"

struct list {
    const struct tree *tree;
    const struct tree_item *item;
    const char *path;
    uint32_t peers;
    struct kith_topology_edge *edges; /* (count) */
    uint32_t count, line;
    bool directed;
};

static enum kith_err list_fail(const struct list *list, enum kith_err err,
                               const char *what)
{
    return kith_yaml_fail(
        list->tree, list->item, "gossip.path", err,
        "%.200s:%u: %s; allowed: \"FROM TO [WEIGHT]\", or with commas, with "
        "two "
        "different ranks below %u and a weight above 0, up to 1; "
        "\"# comment\"",
        list->path, list->line, what, list->peers);
}

static bool parse_rank(const struct list *list, const char *word, kith_id *id)
{
    uint64_t value;
    if (word == NULL || kith_text_u64(word, &value) != KITH_OK ||
        value >= list->peers)
        return false;
    *id = (kith_id)value;
    return true;
}

/* One line, without its end; the array has room. */
static enum kith_err read_line(struct list *list, char *line)
{
    char *rest = line;
    char found[96];
    struct kith_topology_edge edge = {.weight = 0};
    (void)snprintf(found, sizeof found, "found \"%.60s\"", line);
    line[strcspn(line, "#")] = '\0';
    const char *const from = strtok_r(rest, BLANKS, &rest);
    const char *const to = strtok_r(rest, BLANKS, &rest);
    const char *const weight = strtok_r(rest, BLANKS, &rest);
    if (from == NULL || (list->line == 1 && isalpha((unsigned char)from[0])))
        return KITH_OK;
    if (!parse_rank(list, from, &edge.from) ||
        !parse_rank(list, to, &edge.to) || edge.from == edge.to ||
        strtok_r(rest, BLANKS, &rest) != NULL)
        return list_fail(list, KITH_EPARSE, found);
    if (weight != NULL && (kith_text_double(weight, &edge.weight) != KITH_OK ||
                           !(edge.weight > 0 && edge.weight <= 1)))
        return list_fail(list, KITH_EPARSE, found);
    if (!list->directed && edge.from > edge.to)
        edge = (struct kith_topology_edge){edge.to, edge.from, edge.weight};
    list->edges[list->count++] = edge;
    return KITH_OK;
}

static int compare(const void *left, const void *right)
{
    const struct kith_topology_edge *a = left, *b = right;
    if (a->from != b->from)
        return a->from < b->from ? -1 : 1;
    return a->to < b->to ? -1 : a->to > b->to;
}

/* Sorted, each once, and weights on all of them or on none. */
static enum kith_err check_list(struct list *list)
{
    char found[96];
    if (list->count > 0)
        qsort(list->edges, list->count, sizeof *list->edges, compare);
    for (uint32_t i = 1; i < list->count; i++) {
        const struct kith_topology_edge *a = &list->edges[i - 1], *b = a + 1;
        if (compare(a, b) == 0) {
            (void)snprintf(found, sizeof found, "found the edge %u %u twice",
                           a->from, a->to);
            return list_fail(list, KITH_EINVAL, found);
        }
        if ((a->weight > 0) != (b->weight > 0)) {
            (void)snprintf(found, sizeof found,
                           "found weights on some edges alone (%u %u, %u %u)",
                           a->from, a->to, b->from, b->to);
            return list_fail(list, KITH_EINVAL, found);
        }
    }
    return KITH_OK;
}

/* The whole file, NUL-terminated; *text is malloc'd. Nothing but a file is
 * opened: a pipe would wait for its writer. */
static enum kith_err read_text(const struct list *list, char **text)
{
    struct stat status;
    enum kith_err err = KITH_OK;
    if (stat(list->path, &status) == 0 && !S_ISREG(status.st_mode))
        return kith_yaml_refuse(list->tree, "gossip.path",
                                "found %.300s, which is not a file",
                                list->path);
    FILE *file = fopen(list->path, "rb");
    if (file == NULL)
        return kith_yaml_fail(list->tree, list->item, "gossip.path",
                              errno == ENOENT ? KITH_ENOENT : KITH_EIO,
                              "cannot open %.300s: %s", list->path,
                              strerror(errno));
    *text = malloc(KITH_GRAPH_BYTES_MAX + 1);
    const size_t size =
        *text == NULL ? 0 : fread(*text, 1, KITH_GRAPH_BYTES_MAX + 1, file);
    if (*text == NULL)
        err = kith_yaml_fail(list->tree, NULL, NULL, KITH_ENOMEM,
                             "out of memory");
    else if (ferror(file))
        err = kith_yaml_fail(list->tree, list->item, "gossip.path", KITH_EIO,
                             "cannot read %.300s: %s", list->path,
                             strerror(errno));
    else if (size > KITH_GRAPH_BYTES_MAX || memchr(*text, 0, size) != NULL)
        err = kith_yaml_fail(
            list->tree, list->item, "gossip.path", KITH_ELIMIT,
            "found %.300s, which is %s; allowed: at most %u bytes "
            "of text",
            list->path, size > KITH_GRAPH_BYTES_MAX ? "longer" : "not text",
            KITH_GRAPH_BYTES_MAX);
    if (err != KITH_OK)
        free(*text);
    else
        (*text)[size] = '\0';
    (void)fclose(file);
    return err;
}

static enum kith_err read_list(struct list *list)
{
    char *text = NULL;
    enum kith_err err = read_text(list, &text);
    if (err != KITH_OK)
        return err;
    /* "0 1" and an end of line are the shortest edge. */
    list->edges = malloc((strlen(text) / 4 + 1) * sizeof *list->edges);
    if (list->edges == NULL)
        err = kith_yaml_fail(list->tree, NULL, NULL, KITH_ENOMEM,
                             "out of memory");
    for (char *at = text; err == KITH_OK && at != NULL;) {
        char *end = strchr(at, '\n');
        if (end != NULL)
            *end = '\0';
        list->line++;
        err = read_line(list, at);
        at = end == NULL ? NULL : end + 1;
    }
    if (err == KITH_OK)
        err = check_list(list);
    free(text);
    if (err != KITH_OK)
        free(list->edges);
    return err;
}

static enum kith_err check_keys(const struct tree *tree,
                                const struct kith_experiment *experiment)
{
    const struct kith_topology_kind *kind = experiment->gossip.topology;
    const unsigned keys = kith_topology_keys(kind, &experiment->gossip.options);
    const enum kith_err err = kith_experiment_refuse_unread(
        tree, KITH_READER_TOPOLOGY, kind->name, keys);
    if (err != KITH_OK)
        return err;
    if ((keys & KITH_TOPOLOGY_READS(PATH)) && experiment->gossip.path[0] == 0)
        return kith_yaml_fail(tree, kith_yaml_find(tree, "gossip.topology"),
                              "gossip.path", KITH_EINVAL,
                              "not given; topology %s needs a list of edges",
                              kind->name);
    return KITH_OK;
}

/* Weights that neither the file nor a list of edges names are those that suit
 * the algorithm. */
static void choose_weights(const struct tree *tree,
                           struct kith_experiment *experiment)
{
    struct kith_topology_options *options = &experiment->gossip.options;
    const unsigned keys =
        kith_topology_keys(experiment->gossip.topology, options);
    const bool named =
        kith_yaml_find(tree, "gossip.weights") != NULL ||
        (options->edge_count > 0 && options->edges[0].weight > 0);
    if (experiment->gossip.algorithm->flags & KITH_NEEDS_LAZY_WEIGHTS &&
        !named && (keys & KITH_TOPOLOGY_READS(WEIGHTS)))
        options->weights = KITH_WEIGHTS_LAZY;
}

/* The kind's own words: "KEY: what was found ...", or without the key. */
static enum kith_err fail_graph(const struct tree *tree, enum kith_err err,
                                char *words)
{
    char path[KITH_NAME_MAX];
    const struct tree_item *item = kith_yaml_find(tree, "gossip.topology");
    const size_t length = strcspn(words, ": ");
    if (words[length] == ':') {
        (void)snprintf(path, sizeof path, "gossip.%.*s", (int)length, words);
        const struct tree_item *own = kith_yaml_find(tree, path);
        return kith_yaml_fail(tree, own == NULL ? item : own, path, err, "%s",
                              words + length + 2);
    }
    return kith_yaml_fail(tree, item, "gossip.topology", err, "%s", words);
}

static enum kith_err build(const struct tree *tree,
                           struct kith_experiment *experiment)
{
    char words[KITH_TOPOLOGY_ERROR_BYTES] = "";
    struct kith_topology *graph = &experiment->gossip.graph;
    size_t size;
    choose_weights(tree, experiment);
    enum kith_err err = kith_topology_prepare(
        experiment->gossip.topology, experiment->peers, experiment->seed,
        &experiment->gossip.options, graph, &size, words);
    if (err == KITH_OK && size > 0) {
        experiment->gossip.graph_memory = malloc(size);
        if (experiment->gossip.graph_memory == NULL)
            return kith_yaml_fail(tree, NULL, NULL, KITH_ENOMEM,
                                  "out of memory: a graph of %zu bytes", size);
    }
    if (err == KITH_OK)
        err =
            kith_topology_build(graph, experiment->gossip.graph_memory, words);
    if (err != KITH_OK)
        return fail_graph(tree, err, words);
    /* Defaults that the kind has filled in: a file that names them is the same
     * experiment as one that does not. */
    experiment->gossip.options = graph->options;
    return KITH_OK;
}

/* edges <- 64 bits over the list, for the experiment's hash. */
static uint64_t hash_list(const struct list *list)
{
    uint64_t hash = kith_hash_word(KITH_HASH_START, list->directed);
    for (uint32_t i = 0; i < list->count; i++) {
        uint64_t bits;
        memcpy(&bits, &list->edges[i].weight, sizeof bits);
        hash = kith_hash_word(hash, (uint64_t)list->edges[i].from << 32 |
                                        list->edges[i].to);
        hash = kith_hash_word(hash, bits);
    }
    return hash;
}

enum kith_err kith_experiment_read_graph(const struct tree *tree,
                                         struct kith_experiment *experiment)
{
    struct kith_topology_options *options = &experiment->gossip.options;
    enum kith_err err = check_keys(tree, experiment);
    if (err != KITH_OK || experiment->gossip.path[0] == '\0')
        return err == KITH_OK ? build(tree, experiment) : err;
    struct list list = {.tree = tree,
                        .item = kith_yaml_find(tree, "gossip.path"),
                        .path = experiment->gossip.path,
                        .peers = experiment->peers,
                        .directed = experiment->gossip.topology->directed};
    err = kith_experiment_resolve_path(tree, "gossip.path",
                                       experiment->gossip.path);
    if (err == KITH_OK)
        err = read_list(&list);
    if (err != KITH_OK)
        return err;
    experiment->gossip.edges_hash = hash_list(&list);
    options->edges = list.edges;
    options->edge_count = list.count;
    err = build(tree, experiment);
    options->edges = NULL; /* where it failed */
    free(list.edges);
    return err;
}
