/* kith list: the registries, with papers and declared properties. */
#include <stdio.h>
#include <string.h>
#include <strings.h>

#include <jansson.h>

#include "cli.h"
#include "kith/algorithm.h"
#include "kith/backend.h"
#include "kith/central.h"
#include "kith/check.h"
#include "kith/compressor.h"
#include "kith/format.h"
#include "kith/experiment.h"
#include "kith/fault.h"
#include "kith/guard.h"
#include "kith/json.h"
#include "kith/model.h"
#include "kith/optimiser.h"
#include "kith/session.h"
#include "kith/text.h"
#include "kith/topology.h"
#include "kith/worker.h"

/* A kind of things with a name and properties, each of which is read into an
 * object: "name", "paper", "summary", and what it declares. */
struct kind {
    const char *name;
    bool (*read)(unsigned index, json_t *entry); /* false: past the end */
    bool aside;           /* only where it is asked for */
    cli_command_run *run; /* a list of its own, in the place of `read` */
};

static void add_flag(json_t *entry, const char *key, bool value)
{
    (void)json_object_set_new(entry, key, json_boolean(value));
}

static void begin(json_t *entry, const char *name, const char *paper,
                  const char *summary)
{
    kith_json_set_text(entry, "name", name);
    kith_json_set_text(entry, "paper", strcmp(paper, "-") == 0 ? NULL : paper);
    kith_json_set_text(entry, "summary", summary);
}

/* Keys of the experiment that a record reads. */
static void add_keys(json_t *entry, enum kith_reader reader, unsigned mask)
{
    char keys[KITH_KEY_ALLOWED_BYTES];
    kith_experiment_keys_read(reader, mask, keys, sizeof keys);
    kith_json_set_text(entry, "keys", keys);
}

static bool read_algorithm(unsigned index, json_t *entry)
{
    const struct kith_algorithm *algorithm = kith_algorithms[index];
    if (algorithm == NULL)
        return false;
    begin(entry, algorithm->name, algorithm->paper, algorithm->summary);
    const char *const misses = kith_outside_misses(algorithm);
    kith_json_set_text(entry, "python", misses == NULL ? "works" : misses);
    kith_json_set_text(entry, "differs", algorithm->differs);
    kith_json_set_text(entry, "pattern", kith_pattern_name(algorithm->pattern));
    static const char *const waits[] = {[KITH_WAIT_NO] = "no",
                                        [KITH_WAIT_ROUND] = "round",
                                        [KITH_WAIT_STRICT] = "strict"};
    kith_json_set_text(entry, "wait", waits[algorithm->wait]);
    static const struct {
        const char *key;
        enum kith_algorithm_flag flag;
    } flags[] = {
#define KITH_X(name, bit, key) {key, KITH_##name},
        KITH_ALGORITHM_FLAGS(KITH_X)
#undef KITH_X
    };
    for (size_t i = 0; i < sizeof flags / sizeof *flags; i++) {
        if (flags[i].flag == KITH_NEEDS_STATIC_GRAPH)
            kith_json_set_text(entry, "schedule", algorithm->schedule);
        if (flags[i].key != NULL)
            add_flag(entry, flags[i].key, algorithm->flags & flags[i].flag);
    }
    kith_json_set_whole(entry, "scalars", algorithm->scalar_count);
    kith_json_set_whole(entry, "vectors", algorithm->vectors);
    kith_json_set_whole(entry, "edge_vectors", algorithm->edge_vectors);
    char sends[64];
    kith_cli_sends(algorithm, sends, sizeof sends);
    kith_json_set_text(entry, "sends", sends);
    add_keys(entry, KITH_READER_ALGORITHM, algorithm->keys);
    return true;
}

static bool read_guard(unsigned index, json_t *entry)
{
    const struct kith_guard *guard = kith_guards[index];
    if (guard == NULL)
        return false;
    begin(entry, guard->name, guard->paper, guard->summary);
    add_flag(entry, "rounds", guard->judge != NULL);
    add_keys(entry, KITH_READER_GUARD, guard->keys);
    return true;
}

/* Methods, exchanges and triggers of `central:`, one after another. */
static bool read_central_kind(unsigned index, json_t *entry)
{
    static const struct {
        const char *key;
        const struct kith_central_kind *kinds;
    } lists[] = {{"central.method", kith_central_methods},
                 {"central.exchange", kith_central_exchanges},
                 {"central.trigger", kith_central_triggers}};
    for (unsigned i = 0; i < sizeof lists / sizeof lists[0]; i++) {
        const struct kith_central_kind *kind = lists[i].kinds;
        while (kind->name != NULL && index > 0) {
            kind++;
            index--;
        }
        if (kind->name == NULL)
            continue;
        begin(entry, kind->name, kind->paper, kind->summary);
        kith_json_set_text(entry, "key", lists[i].key);
        return true;
    }
    return false;
}

static void add_shape(json_t *entry, const struct kith_model *model)
{
    kith_json_set_text(entry, "example", model->example);
    if (model->example == NULL) {
        kith_json_set_text(entry, "parameters", NULL);
        return;
    }
    const size_t dim = kith_model_size_of(model, &model->shape).dim;
    kith_json_set_whole(entry, "parameters", dim);
}

/* What it costs and keeps with the defaults: a vector of 2^20 float32. */
static void add_compression(json_t *entry,
                            const struct kith_compressor *compressor)
{
    struct kith_compression how = {compressor, kith_compressor_defaults(),
                                   kith_backend_find("naive32"), 1u << 20,
                                   NULL};
    const bool always = kith_compression_unbiased(&how);
    how.config.unbiased = true;
    const bool asked = kith_compression_unbiased(&how);
    how.config.unbiased = false;
    kith_json_set_text(entry, "unbiased",
                       always  ? "yes"
                       : asked ? "with unbiased: true"
                               : "no");
    add_flag(entry, "feedback", kith_compression_needs_feedback(&how));
    add_flag(entry, "keyed", compressor->keyed);
    kith_json_set_whole(entry, "block", compressor->block);
    kith_json_set_real(entry, "bits_per_value",
                       8 * (double)kith_compression_bytes(&how) /
                           (double)how.dim);
    kith_json_set_real(entry, "contraction",
                       kith_compression_contraction(&how));
}

static bool read_compressor(unsigned index, json_t *entry)
{
    const struct kith_compressor *compressor = kith_compressors[index];
    if (compressor == NULL)
        return false;
    begin(entry, compressor->name, compressor->paper, compressor->summary);
    add_keys(entry, KITH_READER_COMPRESSOR, compressor->keys);
    add_compression(entry, compressor);
    return true;
}

static bool read_format(unsigned index, json_t *entry)
{
    const struct kith_format *format = kith_formats[index];
    const size_t values = 1u << 20;
    if (format == NULL)
        return false;
    begin(entry, format->name, format->paper, format->summary);
    kith_json_set_text(entry, "key", "gossip.wire");
    kith_json_set_real(
        entry, "bits_per_value",
        format->raw ? 32 : 8 * (double)format->bytes(values) / (double)values);
    add_flag(entry, "exact", format->raw);
    kith_json_set_text(entry, "keeps", format->keeps);
    return true;
}

static const char *schedule_of(const struct kith_topology_kind *kind)
{
    if (kith_topology_is_any_pair(kind))
        return "any pair";
    if (kind->is_static)
        return "static";
    return kind->period != NULL ? "periodic" : "random";
}

static bool read_topology(unsigned index, json_t *entry)
{
    const struct kith_topology_kind *kind = kith_topology_kinds[index];
    if (kind == NULL)
        return false;
    begin(entry, kind->name, kind->paper, kind->summary);
    kith_json_set_text(entry, "schedule", schedule_of(kind));
    add_flag(entry, "static", kind->is_static);
    add_flag(entry, "directed", kind->directed);
    add_flag(entry, "any_pair", kith_topology_is_any_pair(kind));
    add_keys(entry, KITH_READER_TOPOLOGY, kind->keys);
    return true;
}

static bool read_model(unsigned index, json_t *entry)
{
    static const char *const inputs[] = {[KITH_INPUT_NONE] = "none",
                                         [KITH_INPUT_IMAGES] = "images",
                                         [KITH_INPUT_TOKENS] = "tokens"};
    const struct kith_model *model = kith_models[index];
    if (model == NULL)
        return false;
    begin(entry, model->name, model->paper, model->summary);
    add_flag(entry, "needs_data", model->input != KITH_INPUT_NONE);
    kith_json_set_text(entry, "input", inputs[model->input]);
    add_keys(entry, KITH_READER_MODEL, model->keys);
    add_shape(entry, model);
    return true;
}

static bool read_optimiser(unsigned index, json_t *entry)
{
    const struct kith_optimiser *optimiser = kith_optimisers[index];
    if (optimiser == NULL)
        return false;
    begin(entry, optimiser->name, optimiser->paper, optimiser->summary);
    kith_json_set_whole(entry, "state_vectors", optimiser->state_vectors);
    add_keys(entry, KITH_READER_OPTIMISER, optimiser->keys);
    return true;
}

static bool read_backend(unsigned index, json_t *entry)
{
    const struct kith_backend *backend = kith_backends[index];
    if (backend == NULL)
        return false;
    const char *const why = backend->missing();
    char summary[KITH_KEY_ALLOWED_BYTES];
    (void)snprintf(summary, sizeof summary, "%s%s%s", backend->summary,
                   why == NULL ? "" : "; not here: ", why == NULL ? "" : why);
    begin(entry, backend->name, "-", summary);
    add_flag(entry, "here", why == NULL);
    kith_json_set_text(entry, "missing", why);
    kith_json_set_whole(entry, "element_bytes", backend->element_bytes);
    return true;
}

static bool read_schedule(unsigned index, json_t *entry)
{
    static const char *const summaries[] = {
        [KITH_SCHEDULE_CONSTANT] = "1",
        [KITH_SCHEDULE_LINEAR] = "1 - t/T",
        [KITH_SCHEDULE_COSINE] = "(1 + cos(pi t/T)) / 2",
        [KITH_SCHEDULE_STEP] = "decay^(milestones passed)",
    };
    if (index >= KITH_SCHEDULE_COUNT)
        return false;
    begin(entry, kith_schedule_name((enum kith_schedule)index), "-",
          summaries[index]);
    return true;
}

static bool read_dataset(unsigned index, json_t *entry)
{
    const struct kith_dataset_kind *kind = kith_dataset_kinds[index];
    if (kind == NULL)
        return false;
    begin(entry, kind->name, kind->paper, kind->summary);
    kith_json_set_text(entry, "input",
                       kind->input == KITH_INPUT_TOKENS   ? "tokens"
                       : kind->input == KITH_INPUT_IMAGES ? "images"
                                                          : "images, tokens");
    kith_json_set_text(entry, "splits",
                       kind->input == KITH_INPUT_TOKENS
                           ? "iid"
                           : "iid, dirichlet(A), classes(K)");
    return true;
}

static bool read_fault(unsigned index, json_t *entry)
{
    const struct kith_fault *fault = kith_faults[index];
    if (fault == NULL)
        return false;
    begin(entry, fault->name, fault->paper, fault->summary);
    kith_json_set_text(entry, "target",
                       fault->between
                           ? "SELECTOR <-> SELECTOR, SELECTOR -> SELECTOR"
                           : "SELECTOR");
#define KITH_X(name, word)                                                     \
    add_flag(entry, word, fault->keys &KITH_FAULT_TAKES(name));
    KITH_FAULT_KEYS(KITH_X)
#undef KITH_X
    return true;
}

static bool read_check(unsigned index, json_t *entry)
{
    const struct kith_quantity *quantity = &kith_quantities[index];
    if (quantity->name == NULL)
        return false;
    begin(entry, quantity->name, quantity->paper, quantity->summary);
    add_flag(entry, "predicate", quantity->predicate);
    add_flag(entry, "needs_data", quantity->needs == KITH_NEEDS_DATA);
    return true;
}

/* "libcrypto, libsodium; not here: kith-vaes": of this build, by what this
 * processor can. */
static void add_providers(json_t *entry, enum kith_suite suite)
{
    char here[128] = "", missing[128] = "", text[300];
    size_t at[2] = {0, 0};
    for (size_t i = 0; kith_aeads[i] != NULL; i++) {
        const bool has = kith_aead_has(kith_aeads[i], suite);
        char *list = has ? here : missing;
        if (kith_aead_builds(kith_aeads[i], suite))
            at[has] = kith_text_add(list, sizeof here, at[has], "%s%s",
                                    at[has] > 0 ? ", " : "",
                                    kith_aead_name(kith_aeads[i]));
    }
    (void)snprintf(text, sizeof text, "%s%s%s", at[1] > 0 ? here : "none here",
                   at[0] > 0 ? "; without the processor's instructions here: "
                             : "",
                   missing);
    kith_json_set_text(entry, "providers", text);
    add_flag(entry, "here", at[1] > 0);
}

static bool read_suite(unsigned index, json_t *entry)
{
    const struct kith_suite_facts *facts = kith_suite_at(index);
    if (facts == NULL)
        return false;
    begin(entry, kith_suite_word(facts->suite), "-", facts->summary);
    kith_json_set_whole(entry, "number", (uint64_t)facts->suite);
    kith_json_set_text(entry, "aead", facts->aead);
    kith_json_set_whole(entry, "tag_bytes", KITH_TAG_BYTES);
    add_providers(entry, facts->suite);
    add_flag(entry, "default", facts->suite == KITH_SUITE_AESGCM);
    kith_json_set_text(entry, "turned_on_by",
                       facts->unaudited
                           ? "the authority's policy alone"
                           : "network.suite, or the authority's policy");
    add_flag(entry, "unaudited", facts->unaudited);
    kith_json_set_text(entry, "choose", facts->choose);
    return true;
}

static bool read_key(unsigned index, json_t *entry)
{
    struct kith_experiment_key key;
    if (!kith_experiment_key(index, &key))
        return false;
    begin(entry, key.path, "-", key.help);
    kith_json_set_text(entry, "allowed", key.allowed);
    kith_json_set_text(entry, "default", key.initial);
    add_flag(entry, "required", key.is_required);
    return true;
}

static const struct kind kinds[] = {
    {"algorithms", read_algorithm, false, NULL},
    {"compressors", read_compressor, false, NULL},
    {"wires", read_format, false, NULL},
    {"topologies", read_topology, false, NULL},
    {"guards", read_guard, false, NULL},
    {"central", read_central_kind, false, NULL},
    {"models", read_model, false, NULL},
    {"optimisers", read_optimiser, false, NULL},
    {"backends", read_backend, false, NULL},
    {"schedules", read_schedule, false, NULL},
    {"datasets", read_dataset, false, NULL},
    {"faults", read_fault, false, NULL},
    {"checks", read_check, false, NULL},
    {"suites", read_suite, false, NULL},
    {"keys", read_key, true, NULL},
    {"exchanges", NULL, true, kith_cli_list_exchanges},
    {"balance", NULL, true, kith_cli_list_balance},
    {"manifest", NULL, true, kith_cli_list_manifest},
};
#define KIND_COUNT (sizeof kinds / sizeof kinds[0])

static const char *text_of(json_t *entry, const char *key)
{
    return json_string_value(json_object_get(entry, key));
}

/* A property as text, "" where it is null. */
static const char *plain(json_t *value, char number[KITH_JSON_NUMBER_BYTES])
{
    if (json_is_boolean(value))
        return json_boolean_value(value) ? "true" : "false";
    if (json_is_number(value))
        return kith_json_number(value, 4, number);
    return json_is_string(value) ? json_string_value(value) : "";
}

static void print_entry(json_t *entry)
{
    char number[KITH_JSON_NUMBER_BYTES];
    const char *key;
    json_t *value;
    puts(text_of(entry, "name"));
    json_object_foreach(entry, key, value) if (strcmp(key, "name") != 0 &&
                                               !json_is_null(value))
        printf("  %-14s %s\n", key, plain(value, number));
}

static void print_line(json_t *entry)
{
    char number[KITH_JSON_NUMBER_BYTES];
    const char *example = text_of(entry, "example");
    printf("  %-22s %s\n", text_of(entry, "name"), text_of(entry, "summary"));
    if (example != NULL)
        printf("  %-22s   %s parameters: %s\n", "",
               plain(json_object_get(entry, "parameters"), number), example);
}

/* All of the kind, or the one of that name. */
static json_t *entries_of(const struct kind *kind, const char *name)
{
    json_t *entries = json_array(), *entry = json_object();
    for (unsigned i = 0; kind->read(i, entry); i++) {
        if (name == NULL || strcasecmp(text_of(entry, "name"), name) == 0)
            (void)json_array_append(entries, entry);
        json_decref(entry);
        entry = json_object();
    }
    json_decref(entry);
    return entries;
}

/* Does it work with a training loop of one's own, and if not why? */
static void print_python(json_t *entry)
{
    printf("  %-22s %s\n", text_of(entry, "name"), text_of(entry, "python"));
}

static void print_kind(const struct kind *kind, const char *name, bool python)
{
    json_t *entries = entries_of(kind, name), *entry;
    size_t i;
    if (name == NULL)
        printf("%s\n", kind->name);
    json_array_foreach(entries, i, entry)(python         ? print_python
                                          : name != NULL ? print_entry
                                                         : print_line)(entry);
    json_decref(entries);
}

/* "algorithm" for "algorithms", "topology" for "topologies". */
static bool is_one_of(const char *word, const char *kind)
{
    const size_t length = strlen(word), whole = strlen(kind);
    if (length + 1 == whole)
        return strncmp(word, kind, length) == 0;
    return length > 1 && length + 2 == whole && word[length - 1] == 'y' &&
           strncmp(word, kind, length - 1) == 0 &&
           strcmp(kind + length - 1, "ies") == 0;
}

static const struct kind *find_kind(const char *word)
{
    for (size_t i = 0; i < KIND_COUNT; i++)
        if (strcmp(word, kinds[i].name) == 0 || is_one_of(word, kinds[i].name))
            return &kinds[i];
    return NULL;
}

static int unknown_kind(const struct cli_arguments *arguments)
{
    const char *names[KIND_COUNT + 1];
    for (size_t i = 0; i < KIND_COUNT; i++)
        names[i] = kinds[i].name;
    names[KIND_COUNT] = NULL;
    return kith_cli_unknown(arguments, "kind", arguments->words[0], names);
}

/* 0 where `name` is NULL or one of the kind's. */
static int check_name(const struct cli_arguments *arguments,
                      const struct kind *kind, const char *name)
{
    const char *names[128];
    unsigned count = 0;
    size_t i;
    json_t *entries = entries_of(kind, NULL), *entry;
    int code = KITH_EXIT_OK;
    bool found = name == NULL;
    json_array_foreach(entries, i, entry)
    {
        found = found || strcasecmp(text_of(entry, "name"), name) == 0;
        if (count < 127)
            names[count++] = text_of(entry, "name");
    }
    names[count] = NULL;
    if (!found)
        code = kith_cli_unknown(arguments, "name", name, names);
    json_decref(entries);
    return code;
}

int kith_cli_list(const struct cli_arguments *arguments)
{
    const char *word = arguments->word_count > 0 ? arguments->words[0] : NULL;
    const char *name = arguments->word_count > 1 ? arguments->words[1] : NULL;
    const bool json = kith_cli_given(arguments, CLI_JSON);
    const bool python = kith_cli_given(arguments, CLI_PYTHON);
    const struct kind *only = word == NULL ? NULL : find_kind(word);
    if (word != NULL && only == NULL)
        return unknown_kind(arguments);
    if (only != NULL && only->run != NULL)
        return only->run(arguments);
    const int code =
        only == NULL ? KITH_EXIT_OK : check_name(arguments, only, name);
    if (code != KITH_EXIT_OK)
        return code;
    if (arguments->word_count > 2) {
        if (strcmp(only->name, "topologies") != 0)
            return kith_cli_fail(arguments, KITH_EXIT_USAGE,
                                 "found \"%.60s\" after %s; only a topology is "
                                 "measured with a number of peers",
                                 arguments->words[2], name);
        return kith_cli_list_topology(arguments);
    }
    if (kith_cli_given(arguments, CLI_BATCH))
        return kith_cli_fail(arguments, KITH_EXIT_USAGE,
                             "--batch: is of kith list balance alone");
    if (python && (only == NULL || strcmp(only->name, "algorithms") != 0))
        return kith_cli_fail(arguments, KITH_EXIT_USAGE,
                             "--python: is of kith list algorithms alone");
    if (arguments->set_count > 0)
        return kith_cli_fail(arguments, KITH_EXIT_USAGE,
                             "--set: needs a topology and a number of peers, "
                             "such as kith list topology ring 16, or kith list "
                             "exchanges");
    json_t *document = json ? json_object() : NULL;
    for (size_t i = 0; i < KIND_COUNT; i++) {
        if (only == NULL ? kinds[i].aside : only != &kinds[i])
            continue;
        if (json)
            (void)json_object_set_new(document, kinds[i].name,
                                      entries_of(&kinds[i], name));
        else
            print_kind(&kinds[i], name, python);
    }
    if (json)
        kith_json_print(document, 4);
    return fflush(stdout) == 0 ? KITH_EXIT_OK : KITH_EXIT_WRITE;
}
