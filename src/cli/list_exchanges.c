/* kith list exchanges [ALGORITHM]: what a message of each algorithm holds on
 * each wire, what a peer keeps for it beside the model, and what stays from one
 * exchange to the next. No number stands here: each cell is an experiment that
 * is read as a file would be, its node's configuration and its worker measured;
 * where the file would be refused the words are the loader's. */
#include <stdio.h>
#include <string.h>
#include <strings.h>

#include <jansson.h>

#include "cli.h"
#include "kith/json.h"
#include "kith/node.h"
#include "kith/text.h"

/* So many values that what a message holds beside them does not show. */
static const char placeholder[] =
    "name: list\npeers: 8\nseed: 1\nstop: {steps: 1}\n"
    "model: {kind: quadratic, dim: 1048576}\n";

/* Set for each cell, in front of what the command line sets. */
static const char *const ours[] = {"gossip.algorithm=", "gossip.wire="};

/* Where the command line names no graph: the first on which the algorithm runs;
 * NULL is the file's default. */
static const char *const graphs[] = {NULL, "gossip.topology=ring",
                                     "gossip.topology=path"};
#define GRAPH_COUNT (sizeof graphs / sizeof graphs[0])

static int check_sets(const struct cli_arguments *arguments)
{
    for (unsigned i = 0; i < arguments->set_count; i++)
        for (unsigned k = 0; k < 2; k++)
            if (strncmp(arguments->sets[i], ours[k], strlen(ours[k])) == 0)
                return kith_cli_fail(arguments, KITH_EXIT_USAGE,
                                     "--set: found \"%.60s\"; the list is of "
                                     "all wires; kith list exchanges NAME is "
                                     "of one algorithm",
                                     arguments->sets[i]);
    return KITH_EXIT_OK;
}

static enum kith_err open_cell(const struct cli_arguments *arguments,
                               const char *graph,
                               const struct kith_algorithm *algorithm,
                               const struct kith_format *format,
                               struct kith_experiment *experiment, char *error)
{
    const char *sets[CLI_WORDS_MAX + 3];
    char names[2][KITH_NAME_MAX + 32];
    uint32_t count = 0;
    (void)snprintf(names[0], sizeof names[0], "%s%s", ours[0], algorithm->name);
    (void)snprintf(names[1], sizeof names[1], "%s%s", ours[1], format->name);
    sets[count++] = names[0];
    sets[count++] = names[1];
    if (graph != NULL)
        sets[count++] = graph;
    for (unsigned i = 0; i < arguments->set_count; i++)
        sets[count++] = arguments->sets[i];
    return kith_experiment_parse("list", placeholder, strlen(placeholder), sets,
                                 count, experiment, error);
}

static bool has_wire(const struct cli_arguments *arguments, const char *graph,
                     const struct kith_algorithm *algorithm)
{
    struct kith_experiment experiment;
    char error[KITH_EXPERIMENT_ERROR_BYTES];
    for (unsigned i = 0; kith_formats[i] != NULL; i++)
        if (open_cell(arguments, graph, algorithm, kith_formats[i], &experiment,
                      error) == KITH_OK) {
            kith_experiment_close(&experiment);
            return true;
        }
    return false;
}

static const char *choose_graph(const struct cli_arguments *arguments,
                                const struct kith_algorithm *algorithm)
{
    for (size_t i = 0; i < GRAPH_COUNT; i++)
        if (has_wire(arguments, graphs[i], algorithm))
            return graphs[i];
    return NULL;
}

/* Without the setting that this file made: the user wrote none. */
static const char *words_of(const char *error)
{
    static const char set[] = "--set ";
    const size_t at = sizeof set - 1;
    const char *const end = strstr(error, ": ");
    if (end == NULL || strncmp(error, set, at) != 0)
        return error;
    for (unsigned k = 0; k < 2; k++)
        if (strncmp(error + at, ours[k], strlen(ours[k])) == 0)
            return end + 2;
    return error;
}

double kith_cli_message_bytes(const struct kith_node_config *config)
{
    const enum kith_pattern pattern = config->algorithm->pattern;
    const uint64_t period = config->period > 1 ? config->period : 1;
    double sum = 0;
    for (uint64_t round = 0; round < period; round++)
        sum += (double)kith_node_payload(config, pattern, round);
    return sum / (double)period;
}

struct kith_worker_config
kith_cli_busiest_worker(const struct kith_experiment *experiment,
                        const struct kith_node_config *config)
{
    struct kith_worker_config worker = {
        .task = kith_experiment_task(experiment, NULL),
        .backend = experiment->backend,
        .peers = experiment->peers,
        .ahead = true};
    for (kith_id peer = 0; peer < experiment->peers; peer++) {
        const uint32_t edges = kith_node_edges(config, peer);
        if (edges >= worker.edges_max) {
            worker.self = peer;
            worker.edges_max = edges;
        }
    }
    return worker;
}

/* What all cells of an algorithm have in common. */
static void set_common(json_t *entry, const struct kith_experiment *experiment,
                       const struct kith_node_config *config,
                       const struct kith_worker_memory *memory)
{
    const struct kith_algorithm *algorithm = config->algorithm;
    const size_t element = experiment->backend->element_bytes;
    kith_json_set_whole(entry, "peers", experiment->peers);
    kith_json_set_text(entry, "topology", config->topology->kind->name);
    kith_json_set_whole(entry, "values", config->model_bytes / element);
    kith_json_set_whole(entry, "model_bytes", config->model_bytes);
    kith_json_set_whole(entry, "algorithm_bytes", memory->algorithm);
    kith_json_set_whole(entry, "vectors", algorithm->vectors);
    kith_json_set_whole(entry, "edge_vectors", algorithm->edge_vectors);
    kith_json_set_whole(entry, "scalars", algorithm->scalar_count);
}

static enum kith_err measure_cell(const struct kith_experiment *experiment,
                                  json_t *cell, json_t *entry)
{
    struct kith_topology topology;
    struct kith_node_config config;
    struct kith_worker_memory memory;
    enum kith_err err =
        kith_experiment_node_config(experiment, 1, &topology, &config);
    if (err != KITH_OK)
        return err;
    const struct kith_worker_config worker =
        kith_cli_busiest_worker(experiment, &config);
    err = kith_worker_measure(&worker, &memory);
    if (err != KITH_OK)
        return err;
    set_common(entry, experiment, &config, &memory);
    const double bytes = kith_cli_message_bytes(&config);
    const double model = (double)config.model_bytes;
    kith_json_set_real(cell, "message_bytes", bytes);
    kith_json_set_real(cell, "message_share", bytes / model);
    kith_json_set_whole(cell, "slots_bytes", memory.slots);
    kith_json_set_whole(cell, "wire_bytes", memory.wire);
    kith_json_set_real(cell, "memory_share",
                       (double)(memory.slots + memory.wire) / model);
    return KITH_OK;
}

/* A cell of the table; `refused`: why a file that asks for it is. */
static json_t *read_cell(const struct cli_arguments *arguments,
                         const char *graph,
                         const struct kith_algorithm *algorithm,
                         const struct kith_format *format, json_t *entry)
{
    struct kith_experiment experiment;
    char error[KITH_EXPERIMENT_ERROR_BYTES] = "";
    json_t *cell = json_object();
    kith_json_set_text(cell, "wire", format->name);
    enum kith_err err =
        open_cell(arguments, graph, algorithm, format, &experiment, error);
    if (err == KITH_OK) {
        err = measure_cell(&experiment, cell, entry);
        kith_experiment_close(&experiment);
    }
    if (err != KITH_OK && error[0] == '\0')
        (void)snprintf(error, sizeof error, "%s", kith_err_text(err));
    kith_json_set_text(cell, "keeps", err == KITH_OK ? format->keeps : NULL);
    kith_json_set_text(cell, "refused",
                       err == KITH_OK ? NULL : words_of(error));
    return cell;
}

static json_t *read_algorithm(const struct cli_arguments *arguments,
                              const struct kith_algorithm *algorithm)
{
    const char *const graph = choose_graph(arguments, algorithm);
    json_t *entry = json_object(), *wires = json_array();
    char sends[64];
    kith_cli_sends(algorithm, sends, sizeof sends);
    kith_json_set_text(entry, "name", algorithm->name);
    kith_json_set_text(entry, "pattern", kith_pattern_name(algorithm->pattern));
    kith_json_set_text(entry, "sends", sends);
    for (unsigned i = 0; kith_formats[i] != NULL; i++)
        if (algorithm->pattern != KITH_PATTERN_NONE)
            (void)json_array_append_new(
                wires,
                read_cell(arguments, graph, algorithm, kith_formats[i], entry));
    (void)json_object_set_new(entry, "wires", wires);
    return entry;
}

/* Does a cell hold numbers? `why`: else what the first was refused for. */
static bool any_runs(json_t *entries, const char **why)
{
    json_t *entry, *cell;
    size_t i, k;
    *why = NULL;
    json_array_foreach(entries, i, entry)
    {
        json_array_foreach(json_object_get(entry, "wires"), k, cell)
        {
            const char *refused =
                json_string_value(json_object_get(cell, "refused"));
            if (refused == NULL)
                return true;
            *why = *why == NULL ? refused : *why;
        }
    }
    return *why == NULL;
}

static double real_of(const json_t *object, const char *key)
{
    return json_number_value(json_object_get(object, key));
}

/* "0.254/14.2", "-" where it is refused. */
static void print_cells(json_t *entry)
{
    json_t *cell;
    size_t i;
    json_array_foreach(json_object_get(entry, "wires"), i, cell)
    {
        char text[32] = "-";
        if (json_is_null(json_object_get(cell, "refused")))
            (void)snprintf(text, sizeof text, "%.3g/%.3g",
                           real_of(cell, "message_share"),
                           real_of(cell, "memory_share"));
        printf(" %10s", text);
    }
    putchar('\n');
}

static void print_table(json_t *entries)
{
    json_t *entry;
    size_t i;
    puts("Bytes of a message / memory for messages of a peer with the most "
         "neighbours, in\nmodels; own: the algorithm's vectors, likewise; -: "
         "refused. kith list exchanges NAME\nsays the graph, bytes, what is "
         "kept and why; --set model.dim=N, peers=N.\n");
    printf("%-18s %6s", "algorithm", "own");
    for (unsigned k = 0; kith_formats[k] != NULL; k++)
        printf(" %10s", kith_formats[k]->name);
    putchar('\n');
    json_array_foreach(entries, i, entry)
    {
        json_t *model = json_object_get(entry, "model_bytes");
        printf("%-18s", json_string_value(json_object_get(entry, "name")));
        if (model == NULL) { /* it exchanges nothing, or not like this */
            printf(" %6s", "-");
        } else {
            printf(" %6.3g", real_of(entry, "algorithm_bytes") /
                                 json_number_value(model));
        }
        print_cells(entry);
    }
}

static void print_wire(json_t *cell)
{
    const char *refused = json_string_value(json_object_get(cell, "refused"));
    const char *keeps = json_string_value(json_object_get(cell, "keeps"));
    const char *name = json_string_value(json_object_get(cell, "wire"));
    if (refused != NULL) {
        printf("  %-10s refused: %s\n", name, refused);
        return;
    }
    printf("  %-10s %.0f bytes, %.3g of the model; memory %.0f: %.0f sent and "
           "received, %.0f of the wire\n",
           name, real_of(cell, "message_bytes"), real_of(cell, "message_share"),
           real_of(cell, "slots_bytes") + real_of(cell, "wire_bytes"),
           real_of(cell, "slots_bytes"), real_of(cell, "wire_bytes"));
    if (keeps != NULL)
        printf("  %-10s keeps %s\n", "", keeps);
}

static void print_one(json_t *entry)
{
    json_t *cell;
    size_t i;
    puts(json_string_value(json_object_get(entry, "name")));
    printf("  %-10s %s\n", "pattern",
           json_string_value(json_object_get(entry, "pattern")));
    if (json_object_get(entry, "model_bytes") == NULL) {
        printf("  %-10s nothing\n", "sends");
        return;
    }
    printf("  %-10s %.0f values, %.0f bytes; %.0f peers on %s\n", "model",
           real_of(entry, "values"), real_of(entry, "model_bytes"),
           real_of(entry, "peers"),
           json_string_value(json_object_get(entry, "topology")));
    printf("  %-10s %.0f bytes: %.0f vectors, %.0f for each neighbour, and "
           "%.0f scalars\n",
           "keeps", real_of(entry, "algorithm_bytes"),
           real_of(entry, "vectors"), real_of(entry, "edge_vectors"),
           real_of(entry, "scalars"));
    printf("  %-10s %s, of a peer in a round or an exchange of a pair\n",
           "sends", json_string_value(json_object_get(entry, "sends")));
    json_array_foreach(json_object_get(entry, "wires"), i, cell)
        print_wire(cell);
}

static int unknown_algorithm(const struct cli_arguments *arguments)
{
    const char *names[128];
    unsigned count = 0;
    for (; kith_algorithms[count] != NULL && count < 127; count++)
        names[count] = kith_algorithms[count]->name;
    names[count] = NULL;
    return kith_cli_unknown(arguments, "name", arguments->words[1], names);
}

int kith_cli_list_exchanges(const struct cli_arguments *arguments)
{
    const char *name = arguments->word_count > 1 ? arguments->words[1] : NULL;
    int code = check_sets(arguments);
    if (code != KITH_EXIT_OK)
        return code;
    if (arguments->word_count > 2)
        return kith_cli_fail(arguments, KITH_EXIT_USAGE,
                             "found \"%.60s\" after %s; the number of peers is "
                             "--set peers=N here",
                             arguments->words[2], name);
    json_t *entries = json_array();
    for (unsigned i = 0; kith_algorithms[i] != NULL; i++)
        if (name == NULL || strcasecmp(kith_algorithms[i]->name, name) == 0)
            (void)json_array_append_new(
                entries, read_algorithm(arguments, kith_algorithms[i]));
    const char *why;
    if (json_array_size(entries) == 0)
        code = unknown_algorithm(arguments);
    else if (!any_runs(entries, &why))
        code = kith_cli_fail(arguments, KITH_EXIT_USAGE, "%s", why);
    else if (kith_cli_given(arguments, CLI_JSON))
        kith_json_print(json_pack("{s:O}", "exchanges", entries), 12);
    else if (name != NULL)
        print_one(json_array_get(entries, 0));
    else
        print_table(entries);
    json_decref(entries);
    return code == KITH_EXIT_OK ? kith_cli_flush(arguments, code) : code;
}
