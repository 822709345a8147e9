/* `faults:` and `compute.slow`: statements in YAML -> timed atoms.
 *
 * What a statement may hold is said by the fault's own record (kith/fault.h);
 * here are only the words. */
#include <float.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "kith/fault.h"
#include "kith/text.h"
#include "key_table.h"
#include "read_file.h"
#include "schema.h"
#include "yaml_tree.h"

#define NAMES_MAX 32u

static const char *const words[] = {
#define KITH_X(name, word) [KITH_FAULT_KEY_##name] = (word),
    KITH_FAULT_KEYS(KITH_X)
#undef KITH_X
};

/* One statement as written. */
struct reading {
    const struct tree *tree;
    const struct tree_item *map;
    const struct kith_fault *fault;
    const struct tree_item *target, *at;
    struct kith_fault_statement statement;
    uint64_t *entities; /* (count) of the statements before, twin 0 */
    uint32_t count;
    char where[40]; /* "faults[3]" */
};

static const char spread_allowed[] =
    "a time with its unit (3s), uniform(1s, 3s) or exp(3s)";

static enum kith_err read_spread(const struct reading *reading,
                                 const struct tree_item *item,
                                 struct kith_spread *spread)
{
    char where[64];
    if (item->kind == TREE_SCALAR &&
        kith_spread_parse(item->text, spread) == KITH_OK)
        return KITH_OK;
    snprintf(where, sizeof where, "%s.%.20s", reading->where, item->key);
    return kith_yaml_refuse_value(reading->tree, item, where, "%s",
                                  spread_allowed);
}

/* What `by` may be depends on the kind, which may be read later. */
static enum kith_err read_by(struct reading *reading,
                             const struct tree_item *item)
{
    const struct kith_lie_kind_record *lie =
        &kith_lie_kinds[reading->statement.lie == KITH_LIE_NONE
                            ? KITH_LIE_HUGE
                            : reading->statement.lie];
    char found[TREE_SHOWN_BYTES];
    double *by = &reading->statement.by;
    if (lie->most <= 0)
        return kith_yaml_fail(reading->tree, item, reading->where, KITH_EINVAL,
                              "hostile of kind %s does not take \"by\"",
                              lie->name);
    if (item->kind == TREE_SCALAR &&
        kith_text_double(item->text, by) == KITH_OK && *by > lie->above &&
        *by <= lie->most)
        return KITH_OK;
    return kith_yaml_fail(reading->tree, item, reading->where, KITH_EINVAL,
                          "by: found %s; allowed: a number above %g to %.2g",
                          kith_yaml_show(item, found), lie->above, lie->most);
}

static enum kith_err read_kind(struct reading *reading,
                               const struct tree_item *item)
{
    const char *names[KITH_LIE_COUNT];
    char allowed[160], hint[96] = "", found[TREE_SHOWN_BYTES];
    size_t at = 0;
    uint32_t count = 0;
    for (unsigned i = KITH_LIE_HUGE + 1; i < KITH_LIE_COUNT; i++) {
        names[count++] = kith_lie_kinds[i].name;
        at = kith_text_add(allowed, sizeof allowed, at, "%s%s",
                           at == 0 ? "" : ", ", kith_lie_kinds[i].name);
        if (item->kind == TREE_SCALAR &&
            strcmp(item->text, names[count - 1]) == 0)
            reading->statement.lie = (enum kith_lie_kind)i;
    }
    names[count] = NULL;
    if (reading->statement.lie != KITH_LIE_NONE)
        return KITH_OK;
    if (item->kind == TREE_SCALAR)
        kith_schema_hint(item->text, names, hint, sizeof hint);
    return kith_yaml_fail(reading->tree, item, reading->where, KITH_EINVAL,
                          "kind: found %s; allowed: %s%s",
                          kith_yaml_show(item, found), allowed, hint);
}

static enum kith_err read_models(struct reading *reading,
                                 const struct tree_item *item)
{
    char found[TREE_SHOWN_BYTES];
    uint64_t models;
    if (item->kind != TREE_SCALAR ||
        kith_text_u64(item->text, &models) != KITH_OK || models < 1 ||
        models > KITH_FAULT_MODELS_MAX)
        return kith_yaml_fail(reading->tree, item, reading->where, KITH_EINVAL,
                              "models: found %s; allowed: 1 to %u",
                              kith_yaml_show(item, found),
                              KITH_FAULT_MODELS_MAX);
    reading->statement.models = (uint32_t)models;
    return KITH_OK;
}

/* NULL: the key is no time. */
static kith_ns *span_of(struct kith_fault_statement *statement,
                        enum kith_fault_key key)
{
    return key == KITH_FAULT_KEY_UP        ? &statement->up_ns
           : key == KITH_FAULT_KEY_DOWN    ? &statement->down_ns
           : key == KITH_FAULT_KEY_DIURNAL ? &statement->diurnal_ns
           : key == KITH_FAULT_KEY_PHASE   ? &statement->phase_ns
                                           : NULL;
}

struct churn_number {
    double *field, least, most;
    const char *allowed;
};
static struct churn_number number_of(struct kith_fault_statement *statement,
                                     enum kith_fault_key key)
{
    if (key == KITH_FAULT_KEY_SHAPE)
        return (struct churn_number){&statement->shape, 0.1, 10,
                                     "a number from 0.1 to 10"};
    if (key == KITH_FAULT_KEY_SWING)
        return (struct churn_number){&statement->swing, 1e-6, 1,
                                     "a number above 0 to 1"};
    return (struct churn_number){&statement->speed, 1e-6, 1e6,
                                 "a number from 1e-6 to 1e6"};
}

/* Keys of churn: times, numbers and a path, all of one value. */
static enum kith_err read_churn(struct reading *reading,
                                const struct tree_item *item,
                                enum kith_fault_key key)
{
    struct kith_fault_statement *statement = &reading->statement;
    const char *const text = item->kind == TREE_SCALAR ? item->text : "";
    char found[TREE_SHOWN_BYTES];
    kith_ns *const span = span_of(statement, key);
    const bool is_time = span != NULL;
    const struct churn_number number = number_of(statement, key);
    if (key == KITH_FAULT_KEY_PHASE && strcmp(text, "zones") == 0) {
        statement->phase_by_zone = true;
        return KITH_OK;
    }
    if (key == KITH_FAULT_KEY_TRACE) {
        if (text[0] != '\0' &&
            kith_text_copy(statement->trace, sizeof statement->trace, text)) {
            const enum kith_err err = kith_experiment_resolve_path(
                reading->tree, "faults", statement->trace);
            return err == KITH_OK
                       ? kith_yaml_put(reading->tree, item, statement->trace)
                       : err;
        }
    } else if (is_time ? kith_text_time(text, span) == KITH_OK &&
                             *span >= KITH_US && *span <= 1000000 * KITH_S
                       : kith_text_double(text, number.field) == KITH_OK &&
                             *number.field >= number.least &&
                             *number.field <= number.most)
        return KITH_OK;
    return kith_yaml_fail(
        reading->tree, item, reading->where, KITH_EINVAL,
        "%s: found %s; allowed: %s", item->key, kith_yaml_show(item, found),
        key == KITH_FAULT_KEY_PHASE   ? "a time from 1us to 1000000s, or zones"
        : is_time                     ? "a mean time from 1us to 1000000s"
        : key == KITH_FAULT_KEY_TRACE ? "the path of a trace"
                                      : number.allowed);
}

static enum kith_err unknown_word(const struct reading *reading,
                                  const struct tree_item *item)
{
    const char *names[NAMES_MAX] = {"at"};
    char hint[96], allowed[320];
    uint32_t count = 1;
    while (count <= KITH_FAULT_KEY_COUNT) {
        names[count] = words[count - 1];
        count++;
    }
    for (unsigned i = 0; kith_faults[i] != NULL && count + 1 < NAMES_MAX; i++)
        names[count++] = kith_faults[i]->name;
    names[count] = NULL;
    size_t at = 0;
    for (uint32_t i = 0; i < count; i++)
        at = kith_text_add(allowed, sizeof allowed, at, "%s%s",
                           i == 0 ? "" : ", ", names[i]);
    kith_schema_hint(item->key, names, hint, sizeof hint);
    return kith_yaml_fail(reading->tree, item, reading->where, KITH_EINVAL,
                          "found the unknown key \"%.60s\"; allowed: %s%s",
                          item->key, allowed, hint);
}

static enum kith_err read_fault_name(struct reading *reading,
                                     const struct tree_item *item)
{
    const struct kith_fault *fault = kith_fault_find(item->key);
    char found[TREE_SHOWN_BYTES];
    if (fault == NULL)
        return unknown_word(reading, item);
    if (reading->fault != NULL)
        return kith_yaml_fail(
            reading->tree, item, reading->where, KITH_EINVAL,
            "found both %s and %s; allowed: one fault for each "
            "statement",
            reading->fault->name, fault->name);
    if (item->kind != TREE_SCALAR ||
        !kith_text_copy(reading->statement.target,
                        sizeof reading->statement.target, item->text))
        return kith_yaml_fail(reading->tree, item, reading->where, KITH_EINVAL,
                              "%s: found %s; allowed: which peers, such as "
                              "\"n(1)\"",
                              fault->name, kith_yaml_show(item, found));
    reading->fault = fault;
    reading->target = item;
    return KITH_OK;
}

static enum kith_err read_word(struct reading *reading,
                               const struct tree_item *item)
{
    struct kith_fault_statement *statement = &reading->statement;
    if (strcmp(item->key, "at") == 0) {
        reading->at = item;
        return read_spread(reading, item, &statement->at);
    }
    for (unsigned i = 0; i < KITH_FAULT_KEY_COUNT; i++)
        if (strcmp(item->key, words[i]) == 0)
            return i >= KITH_FAULT_KEY_UP
                       ? read_churn(reading, item, (enum kith_fault_key)i)
                   : i == KITH_FAULT_KEY_BY   ? KITH_OK /* check_by() */
                   : i == KITH_FAULT_KEY_KIND ? read_kind(reading, item)
                   : i == KITH_FAULT_KEY_MODELS
                       ? read_models(reading, item)
                       : read_spread(reading, item, &statement->length);
    return read_fault_name(reading, item);
}

static enum kith_err check_by(struct reading *reading)
{
    struct kith_fault_statement *statement = &reading->statement;
    const struct tree_item *by =
        kith_yaml_child(reading->tree, reading->map, "by");
    if (!kith_fault_has_factor(reading->fault))
        return KITH_OK;
    if (by != NULL)
        return read_by(reading, by);
    statement->by =
        statement->lie == KITH_LIE_NONE ? 0 : kith_lie_kinds[statement->lie].by;
    return statement->lie != KITH_LIE_NONE
               ? KITH_OK
               : kith_yaml_fail(reading->tree, reading->map, reading->where,
                                KITH_EINVAL,
                                "by: not given; allowed: a number above 1");
}

/* What this fault needs and takes. */
static enum kith_err check_words(struct reading *reading)
{
    const struct tree *tree = reading->tree;
    if (reading->at == NULL)
        return kith_yaml_fail(tree, reading->map, reading->where, KITH_EINVAL,
                              "at: not given; allowed: %s", spread_allowed);
    if (reading->fault == NULL)
        return kith_yaml_fail(
            tree, reading->map, reading->where, KITH_EINVAL,
            "found no fault; allowed: one of those in kith list "
            "faults, such as crash: \"n(1)\"");
    for (unsigned i = 0; i < KITH_FAULT_KEY_COUNT; i++) {
        const struct tree_item *item =
            kith_yaml_child(tree, reading->map, words[i]);
        if (item != NULL && !(reading->fault->keys >> i & 1u))
            return kith_yaml_fail(tree, item, reading->where, KITH_EINVAL,
                                  "%s does not take \"%s\"",
                                  reading->fault->name, words[i]);
    }
    if ((reading->fault->keys & KITH_FAULT_TAKES(KIND)) &&
        reading->statement.lie == KITH_LIE_NONE)
        return kith_yaml_fail(tree, reading->map, reading->where, KITH_EINVAL,
                              "kind: not given; allowed: what is sent, such as "
                              "kind: flip");
    const enum kith_err err = check_by(reading);
    if (err != KITH_OK)
        return err;
    if (reading->statement.models > 0 &&
        reading->statement.length.kind != KITH_SPREAD_NONE)
        return kith_yaml_fail(tree, reading->map, reading->where, KITH_EINVAL,
                              "found both for and models; allowed: one of "
                              "them, which says when it is over");
    if (reading->fault->effect == KITH_EFFECT_SLOW &&
        reading->statement.by > 1e6)
        return kith_yaml_fail(tree, reading->map, reading->where, KITH_EINVAL,
                              "by: found more; allowed: a number above 1 to "
                              "1e6");
    return KITH_OK;
}

/* Its stream, from its own words; equal statements are told apart. */
static void name_stream(struct reading *reading, const char *fault,
                        const char *at)
{
    const char *target = reading->statement.target;
    const uint64_t first = kith_fault_entity(fault, target, at, 0);
    uint32_t twin = 0;
    for (uint32_t i = 0; i < reading->count; i++)
        twin += reading->entities[i] == first;
    reading->entities[reading->count++] = first;
    reading->statement.entity = kith_fault_entity(fault, target, at, twin);
}

static enum kith_err expand(const struct reading *reading,
                            struct kith_atoms *atoms)
{
    char error[KITH_FAULT_ERROR_BYTES];
    const enum kith_err err =
        kith_fault_expand(reading->fault, &reading->statement, atoms, error);
    const struct tree *tree = reading->tree;
    if (err == KITH_OK)
        return KITH_OK;
    if (err == KITH_ENOMEM)
        return kith_yaml_fail(tree, NULL, reading->where, err, "out of memory");
    if (atoms->count == KITH_ATOMS_MAX)
        return kith_yaml_fail(
            tree, reading->target, reading->where, KITH_ELIMIT,
            "the faults become more than %u timed events; name "
            "fewer peers",
            KITH_ATOMS_MAX);
    return kith_yaml_fail(tree, reading->target, reading->where, KITH_EINVAL,
                          "%s: %s", reading->fault->name, error);
}

static enum kith_err read_statement(struct reading *reading,
                                    const struct tree_item *item,
                                    struct kith_atoms *atoms)
{
    reading->map = item;
    if (item->kind != TREE_MAP)
        return kith_yaml_refuse_value(
            reading->tree, item, reading->where,
            "a mapping such as {at: 2s, crash: \"n(1)\", restart: 3s}");
    const struct tree_item *word = kith_yaml_first(reading->tree, item);
    for (; word != NULL; word = kith_yaml_next(reading->tree, word)) {
        const enum kith_err err = read_word(reading, word);
        if (err != KITH_OK)
            return err;
    }
    const enum kith_err err = check_words(reading);
    if (err != KITH_OK)
        return err;
    name_stream(reading, reading->fault->name, reading->at->text);
    return expand(reading, atoms);
}

/* {peers: SELECTOR, by: FACTOR}: the fault `slow`, at 0, without an end. */
static enum kith_err read_slow(struct reading *reading,
                               const struct tree_item *item,
                               struct kith_atoms *atoms)
{
    const struct tree *tree = reading->tree;
    const struct tree_item *peers = kith_yaml_child(tree, item, "peers");
    const struct tree_item *by = kith_yaml_child(tree, item, "by");
    if (item->kind != TREE_MAP || item->count != 2 || peers == NULL ||
        by == NULL || peers->kind != TREE_SCALAR ||
        !kith_text_copy(reading->statement.target,
                        sizeof reading->statement.target, peers->text))
        return kith_yaml_refuse_value(
            tree, item, reading->where,
            "{peers: SELECTOR, by: FACTOR}, such as {peers: \"n(1)\", by: 10}");
    const enum kith_err err = read_by(reading, by);
    if (err != KITH_OK)
        return err;
    reading->fault = kith_fault_find("slow");
    reading->target = peers;
    reading->statement.at.kind = KITH_SPREAD_FIXED;
    name_stream(reading, "compute.slow", "");
    return expand(reading, atoms);
}

/* One of the two lists. */
static enum kith_err read_list(const struct tree *tree, const char *path,
                               const struct kith_experiment *experiment,
                               struct kith_atoms *atoms)
{
    const struct tree_item *list = kith_yaml_find(tree, path);
    if (list == NULL)
        return KITH_OK;
    if (list->kind != TREE_LIST || list->count > KITH_FAULTS_MAX)
        return kith_yaml_refuse_value(tree, list, path,
                                      "a list of at most %u statements",
                                      KITH_FAULTS_MAX);
    const bool is_slow = strcmp(path, "compute.slow") == 0;
    uint64_t entities[KITH_FAULTS_MAX];
    const struct tree_item *item = kith_yaml_first(tree, list);
    enum kith_err err = KITH_OK;
    for (uint32_t i = 0; item != NULL && err == KITH_OK;
         i++, item = kith_yaml_next(tree, item)) {
        struct reading reading = {.tree = tree,
                                  .entities = entities,
                                  .count = i,
                                  .statement = {
                                      .index = is_slow ? UINT32_MAX : i,
                                      .peers = experiment->peers,
                                      .seed = experiment->seed,
                                      .zones = &experiment->network.zones,
                                      .stop_ns = experiment->stop.time_ns,
                                  }};
        snprintf(reading.where, sizeof reading.where, "%s[%u]", path, i);
        err = is_slow ? read_slow(&reading, item, atoms)
                      : read_statement(&reading, item, atoms);
    }
    return err;
}

enum kith_err kith_experiment_read_faults(const struct tree *tree,
                                          struct kith_experiment *experiment)
{
    struct kith_atoms atoms = {0};
    enum kith_err err = read_list(tree, "faults", experiment, &atoms);
    if (err == KITH_OK)
        err = read_list(tree, "compute.slow", experiment, &atoms);
    if (err == KITH_OK) {
        err = kith_atoms_settle(&atoms);
        if (err != KITH_OK)
            (void)kith_yaml_fail(tree, NULL, "faults", err, "%s",
                                 kith_err_text(err));
    }
    if (err != KITH_OK) {
        kith_atoms_free(atoms.list, atoms.sides);
        return err;
    }
    experiment->atoms = atoms.list;
    experiment->atom_count = atoms.count;
    experiment->sides = atoms.sides;
    return KITH_OK;
}
