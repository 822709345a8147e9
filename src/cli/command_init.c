/* kith init: a commented experiment file, from three questions.
 *
 * What is learnt decides data and model: classes that are drawn and need no
 * file, or a folder with images and labels in IDX files, whose shape the model
 * takes. What is written is read as `kith sim` would read it, before the file
 * is there. Test: tests/integration/test_cli_init.sh */
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "cli.h"
#include "kith/algorithm.h"
#include "kith/plain_file.h"
#include "kith/text.h"

#define TEXT_BYTES 4096u
#define ROWS_DRAWN 8000u

struct answers {
    char data[KITH_PATH_BYTES_MAX]; /* "drawn" or a folder */
    uint32_t peers;
    const struct kith_algorithm *algorithm;
    size_t features, classes; /* of the data */
};

/* One line, or `initial` for an empty one. false: there is no more. */
static bool ask(const char *question, const char *initial, char *answer,
                size_t size)
{
    char line[KITH_PATH_BYTES_MAX];
    fprintf(stderr, "%s [%s]: ", question, initial);
    fflush(stderr);
    if (fgets(line, sizeof line, stdin) == NULL)
        return false;
    line[strcspn(line, "\r\n")] = '\0';
    return kith_text_copy(answer, size, line[0] == '\0' ? initial : line);
}

/* Sets what the data say of the model's shape. */
static int look_at(const struct cli_arguments *arguments,
                   struct answers *answers)
{
    struct kith_dataset dataset;
    struct kith_data_config config = {.kind = kith_dataset_kind_find("idx")};
    char error[KITH_EXPERIMENT_ERROR_BYTES];
    answers->features = 100;
    answers->classes = 10;
    if (strcmp(answers->data, "drawn") == 0)
        return KITH_EXIT_OK;
    /* It stands between two quotes of the file. */
    if (strpbrk(answers->data, "\"\\") != NULL)
        return kith_cli_fail(arguments, KITH_EXIT_USAGE,
                             "a folder's name with a quote or a backslash "
                             "cannot be written down here: %.300s",
                             answers->data);
    kith_text_copy(config.path, sizeof config.path, answers->data);
    if (kith_dataset_open(&config, &dataset, error) != KITH_OK)
        return kith_cli_fail(arguments, KITH_EXIT_DATA, "%s", error);
    answers->features = dataset.train.features;
    answers->classes = dataset.train.classes;
    kith_dataset_close(&dataset);
    return KITH_EXIT_OK;
}

static int set_peers(const struct cli_arguments *arguments, const char *text,
                     struct answers *answers)
{
    uint64_t peers;
    if (kith_text_u64(text, &peers) != KITH_OK || peers < 2 || peers > 64)
        return kith_cli_fail(arguments, KITH_EXIT_USAGE,
                             "peers: found \"%.40s\"; allowed: 2 to 64 (more: "
                             "change the file)",
                             text);
    answers->peers = (uint32_t)peers;
    return KITH_EXIT_OK;
}

static int set_algorithm(const struct cli_arguments *arguments,
                         const char *name, struct answers *answers)
{
    answers->algorithm = kith_algorithm_find(name);
    return answers->algorithm != NULL
               ? KITH_EXIT_OK
               : kith_cli_fail(arguments, KITH_EXIT_USAGE,
                               "algorithm: found \"%.40s\"; kith list "
                               "algorithms names all",
                               name);
}

static int ask_all(const struct cli_arguments *arguments,
                   struct answers *answers)
{
    char peers[32] = "4", name[KITH_NAME_MAX] = "adpsgd";
    kith_text_copy(answers->data, sizeof answers->data, "drawn");
    if (!kith_cli_given(arguments, CLI_YES)) {
        if (!isatty(STDIN_FILENO))
            return kith_cli_fail(arguments, KITH_EXIT_USAGE,
                                 "there is no terminal to ask at; kith init "
                                 "--yes asks nothing");
        if (!ask("What is learnt: drawn (10 classes, no file needed), or a "
                 "folder of IDX files",
                 answers->data, answers->data, sizeof answers->data) ||
            !ask("How many peers, 2 to 64", peers, peers, sizeof peers) ||
            !ask("How they average (kith list algorithms)", name, name,
                 sizeof name))
            return kith_cli_fail(arguments, KITH_EXIT_INTERRUPTED,
                                 "nothing was written");
    }
    int code = set_peers(arguments, peers, answers);
    if (code == KITH_EXIT_OK)
        code = set_algorithm(arguments, name, answers);
    return code == KITH_EXIT_OK ? look_at(arguments, answers) : code;
}

/* Rounds go over the edges of a graph, exchanges to whoever is drawn. */
static const char *topology_of(const struct kith_algorithm *algorithm)
{
    if (algorithm->schedule != NULL || algorithm->pattern == KITH_PATTERN_NONE)
        return NULL;
    return algorithm->pattern == KITH_PATTERN_ROUND ? "ring" : "random";
}

static void write_text(const struct answers *answers, const char *name,
                       char text[TEXT_BYTES])
{
    const char *topology = topology_of(answers->algorithm);
    char data[KITH_PATH_BYTES_MAX + 64], graph[64] = "";
    if (strcmp(answers->data, "drawn") == 0)
        (void)snprintf(data, sizeof data,
                       "{kind: gaussian, rows: %u, spread: 0.28}", ROWS_DRAWN);
    else
        (void)snprintf(data, sizeof data, "{kind: idx, path: \"%s\"}",
                       answers->data);
    if (topology != NULL)
        (void)snprintf(graph, sizeof graph, ", topology: %s", topology);
    (void)snprintf(
        text, TEXT_BYTES,
        "# Written by kith init. Every key with its default: kith list keys.\n"
        "#\n"
        "#   kith sim %s.yaml      in virtual time, one process\n"
        "#   kith lab %s.yaml      real processes, real channels\n"
        "#   kith report %s-sim-1.db\n"
        "name: %s\n"
        "seed: 7 # the same file and seed: the same run\n"
        "peers: %u\n"
        "stop: {epochs: 5} # over all peers' data together\n"
        "model: {kind: mlp, layers: [%zu, 64, %zu]} # kith list models\n"
        "data: %s\n"
        "# data.split: dirichlet(0.1) gives each peer classes of its own.\n"
        "train: {learning_rate: 0.05, momentum: 0.9, schedule: linear, "
        "batch: 16}\n"
        "# How peers average: kith list algorithms, topologies, guards.\n"
        "gossip: {algorithm: %s%s}\n"
        "compute: {step: 5ms} # what the simulator charges, the lab waits\n"
        "# network: {rate: 100Mbit, latency: 20ms} # slow links, both worlds\n"
        "# faults: # kith list faults; times are of the run\n"
        "#   - {at: 1s, crash: \"n(1)\", restart: 500ms}\n"
        "assert: # checked at the end, exit code 1 where one is broken\n"
        "  - \"always finite(model)\"\n",
        name, name, name, name, answers->peers, answers->features,
        answers->classes, data, answers->algorithm->name, graph);
}

/* The file's name without its ending: the run's. */
static bool name_of(const char *path, char name[KITH_NAME_MAX])
{
    const char *slash = strrchr(path, '/');
    const char *first = slash == NULL ? path : slash + 1;
    const size_t length = strcspn(first, ".");
    if (length == 0 || length >= KITH_NAME_MAX)
        return false;
    memcpy(name, first, length);
    name[length] = '\0';
    return true;
}

int kith_cli_init(const struct cli_arguments *arguments)
{
    const char *path =
        arguments->word_count > 0 ? arguments->words[0] : "kith.yaml";
    char text[TEXT_BYTES], name[KITH_NAME_MAX];
    char error[KITH_EXPERIMENT_ERROR_BYTES];
    struct answers answers = {.peers = 0};
    struct kith_experiment experiment;
    if (access(path, F_OK) == 0)
        return kith_cli_fail(arguments, KITH_EXIT_WRITE,
                             "%.300s is there already: name another file",
                             path);
    if (!name_of(path, name))
        return kith_cli_fail(arguments, KITH_EXIT_USAGE,
                             "%.300s: a file's name of 1 to %u bytes before "
                             "its first dot is wanted, as in kith.yaml",
                             path, (unsigned)KITH_NAME_MAX - 1);
    int code = ask_all(arguments, &answers);
    if (code != KITH_EXIT_OK)
        return code;
    write_text(&answers, name, text);
    if (kith_experiment_parse(path, text, strlen(text), NULL, 0, &experiment,
                              error) != KITH_OK)
        return kith_cli_fail(arguments, KITH_EXIT_EXPERIMENT,
                             "with these answers the file would not do: %s",
                             error);
    kith_experiment_close(&experiment);
    code = kith_cli_replace_file(arguments, path, text);
    if (code == KITH_EXIT_OK)
        printf("wrote %s; next: kith sim %s\n", path, path);
    return code == KITH_EXIT_OK ? kith_cli_flush(arguments, code) : code;
}
