/* A machine's file: kith/machine.h has its form. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "kith/assert.h"
#include "kith/experiment.h"
#include "kith/format.h"
#include "kith/machine.h"
#include "kith/session.h"
#include "kith/text.h"
#include "read_file.h"
#include "schema.h"
#include "yaml_tree.h"

#define AT(field)                                                              \
    .offset = offsetof(struct kith_machine, field),                            \
    .size = sizeof(((struct kith_machine *)0)->field)

static const struct key machine_keys[] = {
    {"model", KEY_NAME, KEY_REQUIRED, AT(model),
     .help = "what was trained: kith list models"},
    {"values", KEY_U64, KEY_REQUIRED, AT(values), .low = 1,
     .high = KITH_PARAMETERS_MAX, .help = "its parameters"},
    {"cores", KEY_U32, KEY_REQUIRED, AT(cores), .low = 1, .high = 4096,
     .help = "that a process may use"},
    {"steps", KEY_CUSTOM, KEY_REQUIRED,
     .allowed = "a list such as [{batch: 16, threads: 1, time: 61us}]",
     .help = "medians of training steps"},
    {"example", KEY_U64, AT(example_bytes), .low = 0, .high = 1e12,
     .initial = "0", .help = "bytes of memory an example of a batch takes"},
    {"suites", KEY_CUSTOM,
     .allowed = "a list such as [{suite: AESGCM, seal: 5GB, open: 6GB}]",
     .help = "what a core seals and opens per second"},
    {"wires", KEY_CUSTOM,
     .allowed = "a list such as [{wire: float32, link: 1GB, merge: 3GB}]",
     .help = "what a core of real peers does of models, per second"},
    {"links", KEY_CUSTOM,
     .allowed = "a list such as [{rank: 1, latency: 20ms, jitter: 1ms, rate: "
                "95Mbit, loss: 0.001}]",
     .help = "from here to members of a cluster"},
    {"socket", KEY_RATE, .allowed = "a rate such as 5GB", AT(socket_bits),
     .help = "what a core sends and receives per second"},
    {"merge", KEY_RATE, .allowed = "a rate such as 5GB", AT(merge_bits),
     .help = "bytes of models that a core merges per second"},
    {"message", KEY_TIME, AT(message_ns), .low = 0, .high = 60, .initial = "0s",
     .help = "processor time of a message at each end"},
    {"handover", KEY_TIME, AT(handover_ns), .low = 0, .high = 60,
     .initial = "0s",
     .help = "processor time of an item's way between a peer's two threads"},
    {"wake", KEY_TIME, AT(wake_ns), .low = 0, .high = 60, .initial = "0s",
     .help = "until a thread whose period is over goes on"},
    {"slice", KEY_TIME, AT(slice_ns), .low = 0, .high = 60, .initial = "0s",
     .help = "so long a thread keeps its core while others wait"},
    {"handshake", KEY_TIME, AT(handshake_ns), .low = 0, .high = 60,
     .initial = "0s", .help = "processor time of both ends"},
    {.path = NULL},
};

static const char *const step_words = "{batch: 16, threads: 1, time: 61us}",
                         *const suite_words =
                             "{suite: AESGCM, seal: 5GB, open: 6GB}",
                         *const wire_words =
                             "{wire: float32, link: 1GB, merge: 3GB}",
                         *const link_words =
                             "{rank: 1, latency: 20ms, jitter: 1ms, "
                             "rate: 95Mbit, loss: 0.001}";

/* The scalar `key` of a mapping of `count`, or NULL. */
static const char *text_of(const struct tree *tree,
                           const struct tree_item *item, uint32_t count,
                           const char *key)
{
    const struct tree_item *child = kith_yaml_child(tree, item, key);
    return item->kind == TREE_MAP && item->count == count && child != NULL &&
                   child->kind == TREE_SCALAR
               ? child->text
               : NULL;
}

static bool is_count(const char *text, uint64_t most, uint32_t *out)
{
    uint64_t value = 0;
    if (text == NULL || kith_text_u64(text, &value) != KITH_OK || value < 1 ||
        value > most)
        return false;
    *out = (uint32_t)value;
    return true;
}

/* Longer than a step ever is. */
#define STEP_NS_MAX (INT64_C(1000000) * 1000000000)

static bool is_time(const char *text, kith_ns *out)
{
    return text != NULL && kith_text_time(text, out) == KITH_OK && *out > 0 &&
           *out <= STEP_NS_MAX;
}

static enum kith_err read_step(const struct tree *tree,
                               const struct tree_item *item,
                               struct kith_machine *machine)
{
    struct kith_machine_step *step = &machine->steps[machine->step_count++];
    const uint32_t count = item->count == 4 ? 4 : 3;
    const char *time = text_of(tree, item, count, "time");
    const char *cpu = text_of(tree, item, 4, "cpu");
    if (is_count(text_of(tree, item, count, "batch"), UINT32_MAX,
                 &step->batch) &&
        is_count(text_of(tree, item, count, "threads"), 4096, &step->threads) &&
        is_time(time, &step->time_ns) &&
        (count == 3 || is_time(cpu, &step->cpu_ns)))
        return KITH_OK;
    return kith_yaml_refuse_value(tree, item, "steps",
                                  "%s with whole numbers from 1 and a time "
                                  "above 0",
                                  step_words);
}

static enum kith_err read_suite(const struct tree *tree,
                                const struct tree_item *item,
                                struct kith_machine *machine)
{
    struct kith_machine_suite *suite = &machine->suites[machine->suite_count++];
    const char *name = text_of(tree, item, 3, "suite");
    const char *seal = text_of(tree, item, 3, "seal");
    const char *open = text_of(tree, item, 3, "open");
    if (name != NULL && seal != NULL && open != NULL &&
        kith_text_copy(suite->name, sizeof suite->name, name) &&
        kith_text_rate(seal, &suite->seal_bits) == KITH_OK &&
        kith_text_rate(open, &suite->open_bits) == KITH_OK)
        return KITH_OK;
    return kith_yaml_refuse_value(tree, item, "suites",
                                  "%s with two rates above 0", suite_words);
}

static enum kith_err read_wire(const struct tree *tree,
                               const struct tree_item *item,
                               struct kith_machine *machine)
{
    struct kith_machine_wire *wire = &machine->wires[machine->wire_count++];
    const char *name = text_of(tree, item, 3, "wire");
    const char *link = text_of(tree, item, 3, "link");
    const char *merge = text_of(tree, item, 3, "merge");
    if (name != NULL && link != NULL && merge != NULL &&
        kith_format_find(name) != NULL &&
        kith_text_copy(wire->name, sizeof wire->name, name) &&
        kith_text_rate(link, &wire->link_bits) == KITH_OK &&
        kith_text_rate(merge, &wire->merge_bits) == KITH_OK)
        return KITH_OK;
    return kith_yaml_refuse_value(tree, item, "wires",
                                  "%s with a wire of kith list wire and two "
                                  "rates above 0",
                                  wire_words);
}

/* As network.rate has it, up to 1000 Tbit/s. */
#define RATE_TERA UINT64_C(1000000000000)

static bool is_delay(const char *text, kith_ns *out)
{
    return text != NULL && kith_text_time(text, out) == KITH_OK && *out >= 0 &&
           *out <= 60 * KITH_S;
}

static enum kith_err read_link(const struct tree *tree,
                               const struct tree_item *item,
                               struct kith_machine *machine)
{
    struct kith_machine_link *link = &machine->links[machine->link_count++];
    const char *rank = text_of(tree, item, 5, "rank");
    const char *rate = text_of(tree, item, 5, "rate");
    const char *loss = text_of(tree, item, 5, "loss");
    uint64_t number;
    if (rank != NULL && rate != NULL && loss != NULL &&
        kith_text_u64(rank, &number) == KITH_OK && number < KITH_PEERS_MAX &&
        is_delay(text_of(tree, item, 5, "latency"), &link->latency_ns) &&
        is_delay(text_of(tree, item, 5, "jitter"), &link->jitter_ns) &&
        kith_text_rate(rate, &link->rate_bits) == KITH_OK &&
        link->rate_bits >= 1000 && link->rate_bits <= 1000 * RATE_TERA &&
        kith_text_double(loss, &link->loss) == KITH_OK && link->loss >= 0 &&
        link->loss < 1) {
        link->rank = (kith_id)number;
        return KITH_OK;
    }
    return kith_yaml_refuse_value(tree, item, "links",
                                  "%s with times up to 60s, a rate of 1kbit to "
                                  "1000Tbit and a share below 1",
                                  link_words);
}

typedef enum kith_err read_entry(const struct tree *tree,
                                 const struct tree_item *item,
                                 struct kith_machine *machine);

/* A list of at most `most` entries, where it is given. */
static enum kith_err read_list(const struct tree *tree, const char *key,
                               uint32_t most, read_entry *read,
                               struct kith_machine *machine)
{
    const struct tree_item *list = kith_yaml_find(tree, key);
    if (list == NULL)
        return KITH_OK;
    if (list->kind != TREE_LIST || list->count == 0 || list->count > most)
        return kith_yaml_refuse_value(
            tree, list, key, "a list of 1 to %u entries", (unsigned)most);
    const struct tree_item *item = kith_yaml_first(tree, list);
    for (; item != NULL; item = kith_yaml_next(tree, item)) {
        const enum kith_err err = read(tree, item, machine);
        if (err != KITH_OK)
            return err;
    }
    return KITH_OK;
}

enum kith_err kith_machine_parse(const char *name, const char *text,
                                 size_t size, struct kith_machine *machine,
                                 char *error)
{
    struct tree tree;
    memset(machine, 0, sizeof *machine);
    enum kith_err err = kith_yaml_open(&tree, name, text, size, error);
    if (err == KITH_OK)
        err = kith_schema_read(machine_keys, &tree, machine);
    if (err == KITH_OK)
        err = read_list(&tree, "steps", KITH_MACHINE_STEPS_MAX, read_step,
                        machine);
    if (err == KITH_OK)
        err = read_list(&tree, "suites", KITH_MACHINE_SUITES_MAX, read_suite,
                        machine);
    if (err == KITH_OK)
        err = read_list(&tree, "wires", KITH_MACHINE_WIRES_MAX, read_wire,
                        machine);
    if (err == KITH_OK)
        err = read_list(&tree, "links", KITH_MACHINE_LINKS_MAX, read_link,
                        machine);
    kith_yaml_close(&tree);
    return err;
}

enum kith_err kith_machine_load(const char *path, struct kith_machine *machine,
                                char *error)
{
    char *text;
    size_t size;
    enum kith_err err = kith_experiment_read_file(path, &text, &size, error);
    if (err != KITH_OK)
        return err;
    err = kith_machine_parse(path, text, size, machine, error);
    free(text);
    return err;
}

static double seconds(const struct kith_machine_step *step, bool cpu)
{
    return (double)(cpu && step->cpu_ns > 0 ? step->cpu_ns : step->time_ns) /
           1e9;
}

/* The measurement nearest to the batch, but for `other`, and beyond the batch
 * from there where `across`; NULL: none. */
static const struct kith_machine_step *
nearest(const struct kith_machine *machine, uint32_t batch, uint32_t threads,
        const struct kith_machine_step *other, bool across)
{
    const struct kith_machine_step *best = NULL;
    for (uint32_t i = 0; i < machine->step_count; i++) {
        const struct kith_machine_step *step = &machine->steps[i];
        if (step->threads != threads ||
            (other != NULL && step->batch == other->batch) ||
            (across && (step->batch > batch) == (other->batch > batch)))
            continue;
        if (best == NULL || fabs((double)step->batch - batch) <
                                fabs((double)best->batch - batch))
            best = step;
    }
    return best;
}

static double on_line(const struct kith_machine *machine, uint32_t batch,
                      uint32_t threads, bool cpu)
{
    const struct kith_machine_step *a =
        nearest(machine, batch, threads, NULL, false);
    KITH_ASSERT(machine->step_count <= KITH_MACHINE_STEPS_MAX);
    if (a == NULL)
        return (double)NAN;
    const double time_s = seconds(a, cpu);
    const struct kith_machine_step *b =
        nearest(machine, batch, threads, a, true);
    if (b == NULL)
        b = nearest(machine, batch, threads, a, false);
    if (b == NULL)
        return time_s * batch / a->batch;
    const double slope =
        (seconds(b, cpu) - time_s) / ((double)b->batch - a->batch);
    const double line_s = time_s + slope * ((double)batch - a->batch);
    /* Beyond what was measured noise may bend the line: more examples take no
     * less, and fewer no less than their share. */
    if (batch > a->batch && batch > b->batch)
        return fmax(line_s, time_s);
    if (batch < a->batch && batch < b->batch)
        return fmin(fmax(line_s, time_s * batch / a->batch), time_s);
    return line_s;
}

double kith_machine_step_s(const struct kith_machine *machine, uint32_t batch,
                           uint32_t threads)
{
    return on_line(machine, batch, threads, false);
}

double kith_machine_step_cpu_s(const struct kith_machine *machine,
                               uint32_t batch)
{
    return on_line(machine, batch, 1, true);
}

const struct kith_machine_suite *
kith_machine_suite_of(const struct kith_machine *machine, const char *word)
{
    const struct kith_machine_suite *best = NULL;
    KITH_ASSERT(machine->suite_count <= KITH_MACHINE_SUITES_MAX);
    for (uint32_t i = 0; i < machine->suite_count; i++) {
        const struct kith_machine_suite *suite = &machine->suites[i];
        enum kith_suite kind;
        if (strcmp(word, suite->name) == 0)
            return suite;
        if (strcmp(word, "auto") == 0 &&
            kith_suite_find(suite->name, strlen(suite->name), &kind) &&
            !kith_suite_facts(kind)->unaudited &&
            (best == NULL || suite->seal_bits > best->seal_bits))
            best = suite;
    }
    return best;
}

const struct kith_machine_link *
kith_machine_slowest_link(const struct kith_machine *machine)
{
    const struct kith_machine_link *slowest = NULL;
    KITH_ASSERT(machine->link_count <= KITH_MACHINE_LINKS_MAX);
    for (uint32_t i = 0; i < machine->link_count; i++)
        if (slowest == NULL || machine->links[i].rate_bits < slowest->rate_bits)
            slowest = &machine->links[i];
    return slowest;
}

double kith_machine_wire_rate(const struct kith_machine *machine,
                              const struct kith_machine_suite *suite)
{
    double byte_s = 0;
    if (suite != NULL)
        byte_s += 4 / (double)suite->seal_bits + 4 / (double)suite->open_bits;
    if (machine->socket_bits > 0)
        byte_s += 4 / (double)machine->socket_bits;
    KITH_ASSERT(byte_s >= 0);
    return byte_s > 0 ? 1 / byte_s : 0;
}
