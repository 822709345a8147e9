/* kith list balance MODEL|FILE.yaml [PEERS] [--batch N]: what each layer of a
 * model computes beside what a step of synchronous training sends for it, and
 * how it is best divided among peers (kith/balance.h). */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <jansson.h>

#include "cli.h"
#include "kith/balance.h"
#include "kith/json.h"
#include "kith/text.h"

enum { PEERS = 8, PEERS_MAX = 1 << 20 };
#define BATCH_MAX (UINT64_C(1) << 32)
/* Sending goes on while receiving does. */
#define OVERLAP 1.0

static const char *const divisions[] = {[KITH_DIVIDE_DATA] = "data",
                                        [KITH_DIVIDE_MODEL] = "model",
                                        [KITH_DIVIDE_HYBRID] = "hybrid"};

struct balance {
    const struct kith_model *model;
    struct kith_model_config config;
    const char *shape; /* in words; "": the file's */
    uint32_t peers;
    double batch;       /* of all peers */
    double speed, rate; /* FLOP/s and bytes/s of a peer; 0: not known */
    struct kith_layer *layers;
    uint32_t count;
    size_t left;
};

/* What `--set` says of machines, where no file is read. */
static const char placeholder[] =
    "name: list\npeers: 8\nseed: 1\nstop: {steps: 1}\n"
    "model: {kind: quadratic, dim: 8}\n";

static void take_machines(struct balance *balance,
                          const struct kith_experiment *experiment)
{
    balance->peers = experiment->peers;
    balance->speed = experiment->compute.peak;
    balance->rate = (double)experiment->network.link.rate_bits / 8;
    balance->batch = (double)experiment->peers * experiment->train.batch;
}

static enum kith_err read_machines(const struct cli_arguments *arguments,
                                   struct balance *balance, char *error)
{
    struct kith_experiment experiment;
    const enum kith_err err = kith_experiment_parse(
        "list", placeholder, strlen(placeholder), arguments->sets,
        arguments->set_count, &experiment, error);
    if (err != KITH_OK)
        return err;
    take_machines(balance, &experiment);
    kith_experiment_close(&experiment);
    return KITH_OK;
}

static int read_name(const struct cli_arguments *arguments,
                     struct balance *balance)
{
    char error[KITH_EXPERIMENT_ERROR_BYTES];
    for (unsigned i = 0; i < arguments->set_count; i++)
        if (strncmp(arguments->sets[i], "model.", 6) == 0)
            return kith_cli_fail(
                arguments, KITH_EXIT_USAGE,
                "--set: found \"%.60s\"; a model that is named "
                "has the shape that kith list models says; "
                "name an experiment file for another",
                arguments->sets[i]);
    balance->config = balance->model->shape;
    balance->shape = balance->model->example;
    const enum kith_err err = read_machines(arguments, balance, error);
    return kith_cli_check(arguments, err, error);
}

static int read_file(const struct cli_arguments *arguments,
                     struct balance *balance)
{
    struct kith_experiment experiment;
    const int code =
        kith_cli_experiment_open(arguments, arguments->words[1], &experiment);
    if (code != KITH_EXIT_OK)
        return code;
    balance->model = experiment.model;
    balance->config = experiment.model_config;
    take_machines(balance, &experiment);
    kith_experiment_close(&experiment);
    return KITH_EXIT_OK;
}

static int unknown_model(const struct cli_arguments *arguments)
{
    const char *names[64];
    unsigned count = 0;
    for (unsigned i = 0; kith_models[i] != NULL && count < 63; i++)
        if (kith_models[i]->example != NULL)
            names[count++] = kith_models[i]->name;
    names[count] = NULL;
    return kith_cli_unknown(arguments, "model", arguments->words[1], names);
}

/* A number of peers and a batch take the place of the file's. */
static int read_sizes(const struct cli_arguments *arguments,
                      struct balance *balance)
{
    uint64_t peers = balance->peers, batch = (uint64_t)balance->batch;
    if (arguments->word_count > 2) {
        if (kith_text_u64(arguments->words[2], &peers) != KITH_OK ||
            peers < 1 || peers > PEERS_MAX)
            return kith_cli_fail(arguments, KITH_EXIT_USAGE,
                                 "found \"%.60s\" after %.60s; allowed: peers, "
                                 "a whole number from 1 to %d",
                                 arguments->words[2], arguments->words[1],
                                 PEERS_MAX);
        batch = batch / balance->peers * peers;
    }
    const int code =
        kith_cli_number(arguments, CLI_BATCH, 1, BATCH_MAX, &batch);
    balance->peers = (uint32_t)peers;
    balance->batch = (double)batch;
    return code;
}

static int read_all(const struct cli_arguments *arguments,
                    struct balance *balance)
{
    char error[KITH_MODEL_ERROR_BYTES];
    const char *word = arguments->word_count > 1 ? arguments->words[1] : NULL;
    if (word == NULL)
        return kith_cli_fail(arguments, KITH_EXIT_USAGE,
                             "needs a model or an experiment file, such as "
                             "kith list balance vgg 64 --batch 256");
    const size_t length = strlen(word);
    const bool is_file =
        strchr(word, '/') != NULL ||
        (length > 5 && strcmp(word + length - 5, ".yaml") == 0);
    balance->model = is_file ? NULL : kith_model_find(word);
    if (!is_file && (balance->model == NULL || balance->model->example == NULL))
        return unknown_model(arguments);
    int code =
        is_file ? read_file(arguments, balance) : read_name(arguments, balance);
    if (code == KITH_EXIT_OK)
        code = read_sizes(arguments, balance);
    if (code != KITH_EXIT_OK)
        return code;
    balance->layers = calloc(KITH_OPS_MAX, sizeof *balance->layers);
    if (balance->layers == NULL)
        return kith_cli_fail(arguments, KITH_EXIT_RESOURCES, "no memory");
    const enum kith_err err =
        kith_balance_layers(balance->model, &balance->config, balance->layers,
                            &balance->count, &balance->left, error);
    return kith_cli_check(arguments, err, error);
}

static struct kith_partition split_of(const struct balance *balance, uint32_t i)
{
    return kith_balance_split(&balance->layers[i], balance->peers,
                              balance->batch, OVERLAP);
}

/* Of a step that divides all layers by data; NaN: the machines are not known.
 */
static double step_s(const struct balance *balance, enum kith_send_order order)
{
    struct kith_layer_times times[KITH_OPS_MAX];
    const double own = balance->batch / balance->peers;
    if (!(balance->speed > 0 && balance->rate > 0) || balance->count == 0)
        return NAN;
    for (uint32_t i = 0; i < balance->count; i++) {
        const struct kith_layer *layer = &balance->layers[i];
        const double part_s = layer->flops / 3 * own / balance->speed;
        const double bytes = 4 * (2 - OVERLAP) * (double)layer->weights;
        times[i] = (struct kith_layer_times){
            part_s, part_s, part_s,
            balance->peers > 1 ? bytes / balance->rate : 0};
    }
    return kith_balance_step(times, balance->count, order, true);
}

static json_t *as_json(const struct balance *balance)
{
    json_t *document = json_object(), *layers = json_array();
    kith_json_set_text(document, "model", balance->model->name);
    kith_json_set_whole(document, "peers", balance->peers);
    kith_json_set_real(document, "batch", balance->batch);
    kith_json_set_whole(document, "values_left", balance->left);
    for (uint32_t i = 0; i < balance->count; i++) {
        const struct kith_layer *layer = &balance->layers[i];
        const struct kith_partition split = split_of(balance, i);
        json_t *entry = json_object();
        kith_json_set_text(entry, "name", layer->name);
        kith_json_set_whole(entry, "weights", layer->weights);
        kith_json_set_real(entry, "inputs", layer->inputs);
        kith_json_set_real(entry, "flop", layer->flops);
        kith_json_set_real(entry, "flop_per_byte", kith_balance_ratio(layer));
        kith_json_set_text(entry, "division", divisions[split.division]);
        kith_json_set_whole(entry, "groups", split.groups);
        kith_json_set_real(entry, "bytes", split.bytes);
        (void)json_array_append_new(layers, entry);
    }
    (void)json_object_set_new(document, "layers", layers);
    if (balance->speed > 0 && balance->rate > 0) {
        kith_json_set_real(document, "step_alone_s",
                           step_s(balance, KITH_SEND_ALONE));
        kith_json_set_real(document, "step_first_ready_s",
                           step_s(balance, KITH_SEND_FIRST_READY));
        kith_json_set_real(document, "step_by_layer_s",
                           step_s(balance, KITH_SEND_BY_LAYER));
        kith_json_set_real(
            document, "peers_max",
            kith_balance_peers_max(balance->layers, balance->count,
                                   balance->left, balance->batch, OVERLAP,
                                   balance->speed, balance->rate));
    }
    return document;
}

static void print_layer(const struct balance *balance, uint32_t i)
{
    const struct kith_layer *layer = &balance->layers[i];
    const struct kith_partition split = split_of(balance, i);
    const double ratio = kith_balance_ratio(layer);
    const double own = balance->batch / balance->peers;
    char division[32];
    if (split.division == KITH_DIVIDE_HYBRID)
        (void)snprintf(division, sizeof division, "%u groups", split.groups);
    else
        (void)snprintf(division, sizeof division, "%s",
                       divisions[split.division]);
    printf("%-26.26s %12zu %9.4g %11.8g %12.8g  %-10s %9.4g", layer->name,
           layer->weights, layer->flops / 1e9, ratio, ratio * own, division,
           split.bytes / 1e6);
    if (balance->speed > 0 && balance->rate > 0)
        printf("  %s", split.division != KITH_DIVIDE_DATA ? ""
                       : ratio * own >= balance->speed / balance->rate
                           ? "hides"
                           : "shows");
    putchar('\n');
}

static void print_limit(const struct balance *balance)
{
    if (!(balance->speed > 0 && balance->rate > 0)) {
        puts("\nA layer that is divided by data hides behind its own products "
             "where the FLOP/byte\nof a peer is at least FLOP/s over bytes/s "
             "of a peer; --set compute.peak=1e13\n--set network.rate=10Gbit "
             "say them, and how many peers pay.");
        return;
    }
    printf("\n%.4g FLOP/s over %.4g bytes/s: a layer that is divided by data "
           "hides from %.4g FLOP/byte on.\nAll of it by data: up to %.1f peers "
           "before sending takes as long as computing.\n",
           balance->speed, balance->rate, balance->speed / balance->rate,
           kith_balance_peers_max(balance->layers, balance->count,
                                  balance->left, balance->batch, OVERLAP,
                                  balance->speed, balance->rate));
    printf("A step by data, predicted: %.4g ms where gradients are sent after "
           "it, %.4g as they come,\n%.4g with the first layer's before all "
           "others.\n",
           1e3 * step_s(balance, KITH_SEND_ALONE),
           1e3 * step_s(balance, KITH_SEND_FIRST_READY),
           1e3 * step_s(balance, KITH_SEND_BY_LAYER));
}

static void print_table(const struct balance *balance)
{
    double weights = 0, flops = 0, bytes = 0;
    for (uint32_t i = 0; i < balance->count; i++) {
        weights += (double)balance->layers[i].weights;
        flops += balance->layers[i].flops;
        bytes += split_of(balance, i).bytes;
    }
    printf("%s%s%s: %.2f M weights in %u layers (%.1f MiB), %zu values beside "
           "them;\n%.4g GFLOP of an example, forward and back. %u peers, %.0f "
           "examples of all together;\nsends while it receives.\n\n",
           balance->model->name, balance->shape[0] == '\0' ? "" : ", ",
           balance->shape, weights / 1e6, balance->count,
           4 * weights / (1 << 20), balance->left, flops / 1e9, balance->peers,
           balance->batch);
    printf("%-26s %12s %9s %11s %12s  %-10s %9s\n", "", "", "GFLOP of",
           "FLOP/byte", "FLOP/byte", "divided", "MB of a");
    printf("%-26s %12s %9s %11s %12s  %-10s %9s\n", "layer", "weights",
           "example", "of example", "of a peer", "by", "peer");
    for (uint32_t i = 0; i < balance->count; i++)
        print_layer(balance, i);
    printf("%-26s %12.0f %9.4g %11s %12s  %-10s %9.4g\n", "all", weights,
           flops / 1e9, "", "", "", bytes / 1e6);
    print_limit(balance);
}

int kith_cli_list_balance(const struct cli_arguments *arguments)
{
    struct balance balance = {.shape = "", .peers = PEERS};
    int code = read_all(arguments, &balance);
    if (code == KITH_EXIT_OK && kith_cli_given(arguments, CLI_JSON))
        kith_json_print(as_json(&balance), 12);
    else if (code == KITH_EXIT_OK)
        print_table(&balance);
    free(balance.layers);
    return code == KITH_EXIT_OK ? kith_cli_flush(arguments, code) : code;
}
