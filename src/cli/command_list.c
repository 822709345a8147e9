/* kith list: the registries, with papers and declared properties. */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "cli.h"
#include "kith/algorithm.h"
#include "kith/backend.h"
#include "kith/central.h"
#include "kith/check.h"
#include "kith/compressor.h"
#include "kith/fault.h"
#include "kith/guard.h"
#include "kith/model.h"
#include "kith/optimiser.h"
#include "kith/text.h"
#include "kith/topology.h"
#include "src/experiment/key_table.h"

#define FIELDS_MAX 24u

/* One thing of a registry: a name and named properties. */
struct entry {
    const char *name;
    struct {
        const char *key;
        bool quoted; /* a text; else a number or true, false, null */
        char value[SCHEMA_ALLOWED_BYTES];
    } fields[FIELDS_MAX];
    unsigned field_count;
};

struct kind {
    const char *name;
    bool (*read)(unsigned index, struct entry *entry); /* false: past the end */
    bool aside; /* only where it is asked for */
};

static void add_text(struct entry *entry, const char *key, const char *value)
{
    snprintf(entry->fields[entry->field_count].value, SCHEMA_ALLOWED_BYTES,
             "%s", value == NULL ? "null" : value);
    entry->fields[entry->field_count].quoted = value != NULL;
    entry->fields[entry->field_count++].key = key;
}

static void add_flag(struct entry *entry, const char *key, bool value)
{
    add_text(entry, key, value ? "true" : "false");
    entry->fields[entry->field_count - 1].quoted = false;
}

static void add_count(struct entry *entry, const char *key, unsigned value)
{
    char text[16];
    snprintf(text, sizeof text, "%u", value);
    add_text(entry, key, text);
    entry->fields[entry->field_count - 1].quoted = false;
}

static void add_number(struct entry *entry, const char *key, double value)
{
    char text[32];
    snprintf(text, sizeof text, "%.4g", value);
    add_text(entry, key, text);
    entry->fields[entry->field_count - 1].quoted = false;
}

static void begin(struct entry *entry, const char *name, const char *paper,
                  const char *summary)
{
    entry->name = name;
    entry->field_count = 0;
    add_text(entry, "paper", strcmp(paper, "-") == 0 ? NULL : paper);
    add_text(entry, "summary", summary);
}

static bool read_algorithm(unsigned index, struct entry *entry)
{
    const struct kith_algorithm *algorithm = kith_algorithms[index];
    if (algorithm == NULL)
        return false;
    begin(entry, algorithm->name, algorithm->paper, algorithm->summary);
    add_text(entry, "pattern", kith_pattern_name(algorithm->pattern));
    static const char *const waits[] = {[KITH_WAIT_NO] = "no",
                                        [KITH_WAIT_ROUND] = "round",
                                        [KITH_WAIT_STRICT] = "strict"};
    add_text(entry, "wait", waits[algorithm->wait]);
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
            add_text(entry, "schedule", algorithm->schedule);
        if (flags[i].key != NULL)
            add_flag(entry, flags[i].key, algorithm->flags & flags[i].flag);
    }
    add_count(entry, "scalars", algorithm->scalar_count);
    add_count(entry, "vectors", algorithm->vectors);
    add_count(entry, "edge_vectors", algorithm->edge_vectors);
    char sends[64];
    kith_cli_sends(algorithm, sends, sizeof sends);
    add_text(entry, "sends", sends);
    return true;
}

static bool read_guard(unsigned index, struct entry *entry)
{
    const struct kith_guard *guard = kith_guards[index];
    if (guard == NULL)
        return false;
    begin(entry, guard->name, guard->paper, guard->summary);
    return true;
}

/* Methods, exchanges and triggers of `central:`, one after another. */
static bool read_central_kind(unsigned index, struct entry *entry)
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
        add_text(entry, "key", lists[i].key);
        return true;
    }
    return false;
}

/* A shape that people use, for each model that learns from data. */
static const struct {
    const char *model, *words;
    struct kith_model_config config;
} shapes[] = {
    {"logistic", "layers 784, 10", {.layers = {784, 10}, .layer_count = 2}},
    {"mlp",
     "layers 784, 512, 512, 10",
     {.layers = {784, 512, 512, 10}, .layer_count = 4}},
    {"cnn",
     "28 x 28 x 1, channels 16, 32, 10 classes",
     {.image = {28, 28, 1},
      .classes = 10,
      .channels = {16, 32},
      .channel_count = 2}},
    {"vgg",
     "depth 11, 224 x 224 x 3, 1000 classes",
     {.image = {224, 224, 3}, .classes = 1000, .depth = 11}},
    {"resnet",
     "depth 20, 32 x 32 x 3, 10 classes",
     {.image = {32, 32, 3}, .classes = 10, .depth = 20}},
    {"gpt",
     "depth 12, heads 12, width 768, context 1024, vocabulary 50257",
     {.depth = 12,
      .heads = 12,
      .width = 768,
      .context = 1024,
      .vocabulary = 50257}},
};

static void add_shape(struct entry *entry, const struct kith_model *model)
{
    for (size_t i = 0; i < sizeof shapes / sizeof shapes[0]; i++) {
        if (strcmp(shapes[i].model, model->name) != 0)
            continue;
        const size_t dim = kith_model_size_of(model, &shapes[i].config).dim;
        add_text(entry, "example", shapes[i].words);
        add_count(entry, "parameters", (unsigned)dim);
        return;
    }
    add_text(entry, "example", NULL);
    add_text(entry, "parameters", NULL);
}

/* Keys of the experiment that are read, by their bits. */
static void add_keys(struct entry *entry, unsigned bits,
                     const char *const *names, unsigned count)
{
    char keys[SCHEMA_ALLOWED_BYTES] = "";
    size_t at = 0;
    for (unsigned i = 0; i < count; i++) {
        if (bits & 1u << i)
            at = kith_text_add(keys, sizeof keys, at, "%s%s",
                               at == 0 ? "" : ", ", names[i]);
    }
    add_text(entry, "keys", keys);
}

/* What it costs and keeps with the defaults: a vector of 2^20 float32. */
static void add_compression(struct entry *entry,
                            const struct kith_compressor *compressor)
{
    struct kith_compression how = {compressor, kith_compressor_defaults(),
                                   kith_backend_find("naive32"), 1u << 20};
    const bool always = kith_compression_unbiased(&how);
    how.config.unbiased = true;
    const bool asked = kith_compression_unbiased(&how);
    how.config.unbiased = false;
    add_text(entry, "unbiased",
             always  ? "yes"
             : asked ? "with unbiased: true"
                     : "no");
    add_flag(entry, "feedback", kith_compression_needs_feedback(&how));
    add_flag(entry, "keyed", compressor->keyed);
    add_count(entry, "block", compressor->block);
    add_number(entry, "bits_per_value",
               8 * (double)kith_compression_bytes(&how) / (double)how.dim);
    add_number(entry, "contraction", kith_compression_contraction(&how));
}

static bool read_compressor(unsigned index, struct entry *entry)
{
    static const char *const names[] = {
#define KITH_X(name, key) key,
        KITH_COMPRESSOR_KEYS(KITH_X)
#undef KITH_X
    };
    const struct kith_compressor *compressor = kith_compressors[index];
    if (compressor == NULL)
        return false;
    begin(entry, compressor->name, compressor->paper, compressor->summary);
    add_keys(entry, compressor->keys, names, KITH_COMPRESSOR_KEY_COUNT);
    add_compression(entry, compressor);
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

static bool read_topology(unsigned index, struct entry *entry)
{
    const struct kith_topology_kind *kind = kith_topology_kinds[index];
    if (kind == NULL)
        return false;
    static const char *const names[] = {
#define KITH_X(name, key) key,
        KITH_TOPOLOGY_KEYS(KITH_X)
#undef KITH_X
    };
    begin(entry, kind->name, kind->paper, kind->summary);
    add_text(entry, "schedule", schedule_of(kind));
    add_flag(entry, "static", kind->is_static);
    add_flag(entry, "directed", kind->directed);
    add_flag(entry, "any_pair", kith_topology_is_any_pair(kind));
    add_keys(entry, kind->keys, names, KITH_TOPOLOGY_KEY_COUNT);
    return true;
}

static bool read_model(unsigned index, struct entry *entry)
{
    static const char *const inputs[] = {[KITH_INPUT_NONE] = "none",
                                         [KITH_INPUT_IMAGES] = "images",
                                         [KITH_INPUT_TOKENS] = "tokens"};
    static const char *const names[] = {
#define KITH_X(name, key) key,
        KITH_MODEL_KEYS(KITH_X)
#undef KITH_X
    };
    const struct kith_model *model = kith_models[index];
    if (model == NULL)
        return false;
    begin(entry, model->name, model->paper, model->summary);
    add_flag(entry, "needs_data", model->input != KITH_INPUT_NONE);
    add_text(entry, "input", inputs[model->input]);
    add_keys(entry, model->keys, names, KITH_MODEL_KEY_COUNT);
    add_shape(entry, model);
    return true;
}

static bool read_optimiser(unsigned index, struct entry *entry)
{
    static const char *const names[] = {
#define KITH_X(name, key) key,
        KITH_OPTIMISER_KEYS(KITH_X)
#undef KITH_X
    };
    const struct kith_optimiser *optimiser = kith_optimisers[index];
    if (optimiser == NULL)
        return false;
    begin(entry, optimiser->name, optimiser->paper, optimiser->summary);
    add_count(entry, "state_vectors", optimiser->state_vectors);
    add_keys(entry, optimiser->keys, names, KITH_OPTIMISER_KEY_COUNT);
    return true;
}

static bool read_backend(unsigned index, struct entry *entry)
{
    const struct kith_backend *backend = kith_backends[index];
    if (backend == NULL)
        return false;
    const char *const why = backend->missing();
    char summary[SCHEMA_ALLOWED_BYTES];
    (void)snprintf(summary, sizeof summary, "%s%s%s", backend->summary,
                   why == NULL ? "" : "; not here: ", why == NULL ? "" : why);
    begin(entry, backend->name, "-", summary);
    add_flag(entry, "here", why == NULL);
    add_text(entry, "missing", why);
    add_count(entry, "element_bytes", (unsigned)backend->element_bytes);
    return true;
}

static bool read_schedule(unsigned index, struct entry *entry)
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

static bool read_dataset(unsigned index, struct entry *entry)
{
    const struct kith_dataset_kind *kind = kith_dataset_kinds[index];
    if (kind == NULL)
        return false;
    begin(entry, kind->name, kind->paper, kind->summary);
    add_text(entry, "input",
             kind->input == KITH_INPUT_TOKENS   ? "tokens"
             : kind->input == KITH_INPUT_IMAGES ? "images"
                                                : "images, tokens");
    add_text(entry, "splits",
             kind->input == KITH_INPUT_TOKENS
                 ? "iid"
                 : "iid, dirichlet(A), classes(K)");
    return true;
}

static bool read_fault(unsigned index, struct entry *entry)
{
    const struct kith_fault *fault = kith_faults[index];
    if (fault == NULL)
        return false;
    begin(entry, fault->name, fault->paper, fault->summary);
    add_text(entry, "target",
             fault->between ? "SELECTOR <-> SELECTOR, SELECTOR -> SELECTOR"
                            : "SELECTOR");
    add_flag(entry, "for", fault->keys & KITH_FAULT_KEY_FOR);
    add_flag(entry, "restart", fault->keys & KITH_FAULT_KEY_RESTART);
    add_flag(entry, "by", fault->keys & KITH_FAULT_KEY_BY);
    return true;
}

static bool read_check(unsigned index, struct entry *entry)
{
    const struct kith_quantity *quantity = kith_quantities[index];
    if (quantity == NULL)
        return false;
    begin(entry, quantity->name, quantity->paper, quantity->summary);
    add_flag(entry, "predicate", quantity->predicate);
    add_flag(entry, "needs_data", quantity->needs_data);
    return true;
}

static bool read_key(unsigned index, struct entry *entry)
{
    const struct key *key = &kith_experiment_keys[index];
    char allowed[SCHEMA_ALLOWED_BYTES];
    if (key->path == NULL)
        return false;
    begin(entry, key->path, "-", key->help);
    kith_schema_allowed(key, allowed);
    add_text(entry, "allowed", allowed);
    add_text(entry, "default", key->initial);
    add_flag(entry, "required", key->flags & KEY_REQUIRED);
    return true;
}

static const struct kind kinds[] = {
    {"algorithms", read_algorithm, false},
    {"compressors", read_compressor, false},
    {"topologies", read_topology, false},
    {"guards", read_guard, false},
    {"central", read_central_kind, false},
    {"models", read_model, false},
    {"optimisers", read_optimiser, false},
    {"backends", read_backend, false},
    {"schedules", read_schedule, false},
    {"datasets", read_dataset, false},
    {"faults", read_fault, false},
    {"checks", read_check, false},
    {"keys", read_key, true},
};
#define KIND_COUNT (sizeof kinds / sizeof kinds[0])

static void json_entry(const struct entry *entry)
{
    fputs("{\"name\": ", stdout);
    kith_cli_json_text(entry->name);
    for (unsigned i = 0; i < entry->field_count; i++) {
        printf(", \"%s\": ", entry->fields[i].key);
        if (entry->fields[i].quoted)
            kith_cli_json_text(entry->fields[i].value);
        else
            fputs(entry->fields[i].value, stdout);
    }
    putchar('}');
}

static void print_entry(const struct entry *entry)
{
    puts(entry->name);
    for (unsigned i = 0; i < entry->field_count; i++)
        if (strcmp(entry->fields[i].value, "null") != 0)
            printf("  %-14s %s\n", entry->fields[i].key,
                   entry->fields[i].value);
}

static bool wanted(const char *name, const struct entry *entry)
{
    return name == NULL || strcmp(name, entry->name) == 0;
}

/* Field 1 is the summary, in every kind. */
static void print_line(const struct entry *entry)
{
    const char *example = NULL, *parameters = NULL;
    for (unsigned i = 0; i < entry->field_count; i++) {
        if (strcmp(entry->fields[i].key, "example") == 0)
            example = entry->fields[i].value;
        if (strcmp(entry->fields[i].key, "parameters") == 0)
            parameters = entry->fields[i].value;
    }
    printf("  %-22s %s\n", entry->name, entry->fields[1].value);
    if (example != NULL && strcmp(example, "null") != 0)
        printf("  %-22s   %s parameters: %s\n", "", parameters, example);
}

static void print_kind(const struct kind *kind, const char *name)
{
    struct entry entry;
    if (name == NULL)
        printf("%s\n", kind->name);
    for (unsigned i = 0; kind->read(i, &entry); i++) {
        if (!wanted(name, &entry))
            continue;
        if (name != NULL)
            print_entry(&entry);
        else
            print_line(&entry);
    }
}

static void json_kind(const struct kind *kind, const char *name)
{
    struct entry entry;
    unsigned printed = 0;
    printf("\"%s\": [", kind->name);
    for (unsigned i = 0; kind->read(i, &entry); i++)
        if (wanted(name, &entry)) {
            fputs(printed++ > 0 ? ", " : "", stdout);
            json_entry(&entry);
        }
    putchar(']');
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
    struct entry entry;
    unsigned count = 0;
    if (name == NULL)
        return KITH_EXIT_OK;
    for (; count < 127 && kind->read(count, &entry); count++) {
        if (strcmp(entry.name, name) == 0)
            return KITH_EXIT_OK;
        names[count] = entry.name;
    }
    names[count] = NULL;
    return kith_cli_unknown(arguments, "name", name, names);
}

int kith_cli_list(const struct cli_arguments *arguments)
{
    const char *word = arguments->word_count > 0 ? arguments->words[0] : NULL;
    const char *name = arguments->word_count > 1 ? arguments->words[1] : NULL;
    const bool json = kith_cli_given(arguments, CLI_JSON);
    const struct kind *only = word == NULL ? NULL : find_kind(word);
    if (word != NULL && only == NULL)
        return unknown_kind(arguments);
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
    if (arguments->set_count > 0)
        return kith_cli_fail(
            arguments, KITH_EXIT_USAGE,
            "--set: needs a topology and a number of peers, such "
            "as kith list topology ring 16");
    unsigned printed = 0;
    if (json)
        putchar('{');
    for (size_t i = 0; i < KIND_COUNT; i++) {
        if (only == NULL ? kinds[i].aside : only != &kinds[i])
            continue;
        if (json) {
            fputs(printed++ > 0 ? ", " : "", stdout);
            json_kind(&kinds[i], name);
        } else
            print_kind(&kinds[i], name);
    }
    if (json)
        puts("}");
    return fflush(stdout) == 0 ? KITH_EXIT_OK : KITH_EXIT_WRITE;
}
