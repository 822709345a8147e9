/* `network.up` and `down`, `classes:` and `compute.speeds` -> what each peer
 * has of its own (kith/classes.h).
 *
 *   classes:
 *     - {peers: 30%, speed: 0.5, up: 10Mbit, down: 50Mbit}
 *     - {peers: "peer(0..4)", speed: 4, latency: 20ms}
 *
 * A statement takes its peers from those that no statement before it has; what
 * it does not name is as in the whole. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "kith/assert.h"
#include "kith/fault.h"
#include "kith/text.h"
#include "key_table.h"
#include "schema.h"
#include "yaml_tree.h"

#define LATENCY_MAX (60 * KITH_S)
#define RATE_MIN 1000u
#define RATE_MAX UINT64_C(1000000000000000)

struct class_reading {
    const struct tree *tree;
    const struct kith_experiment *experiment;
    const struct tree_item *item, *peers;
    struct kith_class own;
    uint64_t entities[KITH_MACHINE_CLASSES_MAX]; /* of those before, twin 0 */
    uint32_t index;
    char where[40];
};

static enum kith_err refuse(const struct class_reading *reading,
                            const struct tree_item *item, const char *allowed)
{
    char where[80];
    (void)snprintf(where, sizeof where, "%s.%.20s", reading->where, item->key);
    return kith_yaml_refuse_value(reading->tree, item, where, "%s", allowed);
}

static enum kith_err read_rate(const struct class_reading *reading,
                               const struct tree_item *item, uint64_t *bits)
{
    const bool is_scalar = item->kind == TREE_SCALAR;
    *bits = 0;
    if (is_scalar && (strcmp(item->text, "unlimited") == 0 ||
                      (kith_text_rate(item->text, bits) == KITH_OK &&
                       *bits >= RATE_MIN && *bits <= RATE_MAX)))
        return KITH_OK;
    return refuse(reading, item,
                  "unlimited, or a rate from 1kbit to 1000Tbit per second with "
                  "its unit (10Gbit, 5MB)");
}

static enum kith_err read_speed(struct class_reading *reading,
                                const struct tree_item *item)
{
    double *speed = &reading->own.speed;
    if (item->kind == TREE_SCALAR &&
        kith_text_double(item->text, speed) == KITH_OK &&
        *speed >= 1.0 / KITH_CLASS_SPEED_MAX && *speed <= KITH_CLASS_SPEED_MAX)
        return KITH_OK;
    return refuse(reading, item,
                  "a number from 0.001 to 1000; 2: steps take half as long");
}

static enum kith_err read_latency(struct class_reading *reading,
                                  const struct tree_item *item)
{
    kith_ns *latency_ns = &reading->own.latency_ns;
    if (reading->experiment->network.latencies.regions > 0)
        return refuse(reading, item,
                      "none beside network.matrix or coordinates, which have "
                      "the latency of every link");
    if (item->kind == TREE_SCALAR &&
        kith_text_time(item->text, latency_ns) == KITH_OK &&
        *latency_ns <= LATENCY_MAX)
        return KITH_OK;
    return refuse(reading, item, "a time up to 60s with its unit");
}

static enum kith_err read_key(struct class_reading *reading,
                              const struct tree_item *item)
{
    static const char *const names[] = {"peers", "speed",   "up",
                                        "down",  "latency", NULL};
    char hint[96];
    if (strcmp(item->key, "up") == 0)
        return read_rate(reading, item, &reading->own.up_bits);
    if (strcmp(item->key, "down") == 0)
        return read_rate(reading, item, &reading->own.down_bits);
    if (strcmp(item->key, "speed") == 0)
        return read_speed(reading, item);
    if (strcmp(item->key, "latency") == 0)
        return read_latency(reading, item);
    if (strcmp(item->key, "peers") == 0) {
        reading->peers = item;
        return item->kind == TREE_SCALAR
                   ? KITH_OK
                   : refuse(reading, item, "which peers, such as 30%");
    }
    kith_schema_hint(item->key, names, hint, sizeof hint);
    return kith_yaml_fail(reading->tree, item, reading->where, KITH_EINVAL,
                          "found the unknown key \"%.60s\"; allowed: peers, "
                          "speed, up, down, latency%s",
                          item->key, hint);
}

/* Draws from the statement's own words: what stands beside it shifts none, but
 * for the peers that it has taken. */
static enum kith_err take_peers(struct class_reading *reading,
                                struct kith_classes *classes, uint8_t *chosen)
{
    const struct kith_experiment *experiment = reading->experiment;
    const char *text = reading->peers->text;
    const uint64_t first = kith_fault_entity("classes", text, "", 0);
    char error[KITH_FAULT_ERROR_BYTES];
    struct kith_rng rng;
    uint32_t twin = 0;
    for (uint32_t i = 0; i < reading->index; i++)
        twin += reading->entities[i] == first;
    reading->entities[reading->index] = first;
    kith_rng_init(&rng, experiment->seed, KITH_STREAM_FAULT,
                  kith_fault_entity("classes", text, "", twin));
    const enum kith_err err = kith_selector_parse_rest(
        text, experiment->peers, &rng, classes->of, chosen, error);
    if (err != KITH_OK)
        return kith_yaml_fail(reading->tree, reading->peers, reading->where,
                              KITH_EINVAL, "peers: %s", error);
    for (kith_id i = 0; i < experiment->peers; i++)
        if (chosen[i])
            classes->of[i] = (uint8_t)(reading->index + 1);
    return KITH_OK;
}

static enum kith_err read_class(struct class_reading *reading,
                                struct kith_classes *classes, uint8_t *chosen)
{
    const struct tree *tree = reading->tree;
    (void)snprintf(reading->where, sizeof reading->where, "classes[%u]",
                   reading->index);
    reading->peers = NULL;
    reading->own = classes->usual;
    if (reading->item->kind != TREE_MAP)
        return kith_yaml_refuse_value(
            tree, reading->item, reading->where,
            "a mapping such as {peers: 30%%, speed: 0.5, up: 10Mbit}");
    const struct tree_item *key = kith_yaml_first(tree, reading->item);
    for (; key != NULL; key = kith_yaml_next(tree, key)) {
        const enum kith_err err = read_key(reading, key);
        if (err != KITH_OK)
            return err;
    }
    if (reading->peers == NULL)
        return kith_yaml_fail(tree, reading->item, reading->where, KITH_EINVAL,
                              "peers: not given; allowed: which, such as 30%%");
    classes->list[reading->index] = reading->own;
    return take_peers(reading, classes, chosen);
}

static enum kith_err read_list(const struct tree *tree,
                               const struct tree_item *list,
                               const struct kith_experiment *experiment,
                               struct kith_classes *classes)
{
    struct class_reading reading = {.tree = tree, .experiment = experiment};
    if (list->kind != TREE_LIST || list->count == 0 ||
        list->count > KITH_MACHINE_CLASSES_MAX)
        return kith_yaml_refuse_value(tree, list, "classes",
                                      "a list of 1 to %u statements",
                                      KITH_MACHINE_CLASSES_MAX);
    uint8_t *chosen = malloc(experiment->peers);
    classes->list = calloc(list->count, sizeof *classes->list);
    classes->of = calloc(experiment->peers, 1);
    classes->count = list->count;
    enum kith_err err = KITH_OK;
    if (chosen == NULL || classes->list == NULL || classes->of == NULL)
        err =
            kith_yaml_fail(tree, list, "classes", KITH_ENOMEM, "out of memory");
    reading.item = kith_yaml_first(tree, list);
    for (; err == KITH_OK && reading.item != NULL; reading.index++) {
        err = read_class(&reading, classes, chosen);
        reading.item = kith_yaml_next(tree, reading.item);
    }
    free(chosen);
    return err;
}

/* Draws of the whole over the speeds of classes. */
static enum kith_err fill_paces(const struct tree *tree,
                                const struct kith_experiment *experiment,
                                struct kith_classes *classes)
{
    const struct kith_speeds *speeds = &experiment->compute.speeds;
    bool differs = speeds->kind != KITH_SPEEDS_EQUAL;
    for (uint32_t i = 0; i < classes->count; i++)
        differs =
            differs || classes->list[i].speed < 1 || classes->list[i].speed > 1;
    classes->pace_most = 1;
    if (!differs)
        return KITH_OK;
    classes->pace = malloc(experiment->peers * sizeof *classes->pace);
    if (classes->pace == NULL)
        return kith_yaml_fail(tree, NULL, "classes", KITH_ENOMEM,
                              "out of memory");
    for (kith_id i = 0; i < experiment->peers; i++) {
        classes->pace[i] = kith_speeds_draw(speeds, experiment->seed, i) /
                           kith_class_of(classes, i)->speed;
        KITH_ASSERT(classes->pace[i] > 0);
        if (i == 0 || classes->pace[i] > classes->pace_most)
            classes->pace_most = classes->pace[i];
    }
    return KITH_OK;
}

/* The least of what any two have: nothing arrives earlier. */
static kith_ns least_latency(const struct kith_classes *classes)
{
    kith_ns least_ns = classes->usual.latency_ns;
    KITH_ASSERT(least_ns >= 0);
    for (uint32_t i = 0; i < classes->count; i++)
        if (classes->list[i].latency_ns < least_ns)
            least_ns = classes->list[i].latency_ns;
    return least_ns;
}

enum kith_err kith_experiment_read_classes(const struct tree *tree,
                                           struct kith_experiment *experiment)
{
    struct kith_classes *classes = &experiment->network.classes;
    const struct tree_item *list = kith_yaml_find(tree, "classes");
    const uint64_t rate_bits = experiment->network.rate_bits;
    classes->peers = experiment->peers;
    classes->usual = (struct kith_class){
        .up_bits = kith_yaml_find(tree, "network.up") == NULL
                       ? rate_bits
                       : experiment->network.up_bits,
        .down_bits = kith_yaml_find(tree, "network.down") == NULL
                         ? rate_bits
                         : experiment->network.down_bits,
        .latency_ns = experiment->network.link.latency_ns,
        .speed = 1};
    experiment->network.link.rate_bits = classes->usual.up_bits;
    enum kith_err err = KITH_OK;
    if (list != NULL)
        err = read_list(tree, list, experiment, classes);
    if (err == KITH_OK)
        err = fill_paces(tree, experiment, classes);
    if (err == KITH_OK && experiment->network.latencies.regions == 0)
        experiment->network.link.latency_ns = least_latency(classes);
    return err;
}
