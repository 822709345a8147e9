/* kith plan: what an experiment will take, by closed forms, from what this
 * machine was measured to be. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <jansson.h>

#include "kith/json.h"
#include "kith/text.h"
#include "plan_command.h"

#define EFFICIENCY 0.9

/* What only a search has a use for. */
static int check_search(const struct cli_arguments *arguments)
{
    static const enum cli_option only[] = {CLI_PRICE, CLI_SWEEP, CLI_RUNS,
                                           CLI_SEEDS, CLI_THREADS};
    if (kith_cli_given(arguments, CLI_SEARCH)) {
        if (kith_cli_given(arguments, CLI_MEMORY) &&
            !kith_cli_given(arguments, CLI_MACHINE) &&
            !kith_cli_given(arguments, CLI_MEASURE))
            return kith_cli_fail(
                arguments, KITH_EXIT_USAGE,
                "--memory bounds which batches --search tries, and without "
                "--machine FILE it tries the experiment's own alone; measure "
                "this machine with --measure, or leave --memory out");
        return KITH_EXIT_OK;
    }
    for (size_t i = 0; i < sizeof only / sizeof *only; i++)
        if (kith_cli_given(arguments, only[i]))
            return kith_cli_fail(arguments, KITH_EXIT_USAGE,
                                 "%s goes with --search time or --search bytes",
                                 kith_cli_option_text(only[i]).name);
    return KITH_EXIT_OK;
}

/* --target efficiency=A, --memory SIZE. */
static int read_wishes(const struct cli_arguments *arguments,
                       struct plan_facts *facts)
{
    static const char key[] = "efficiency=";
    const char *target = arguments->values[CLI_TARGET];
    const char *memory = arguments->values[CLI_MEMORY];
    uint64_t bits = 0;
    facts->efficiency = EFFICIENCY;
    const bool searches = kith_cli_given(arguments, CLI_SEARCH);
    if (target != NULL && !searches &&
        (strncmp(target, key, sizeof key - 1) != 0 ||
         kith_text_double(target + sizeof key - 1, &facts->efficiency) !=
             KITH_OK ||
         !(facts->efficiency > 0 && facts->efficiency <= 1)))
        return kith_cli_fail(arguments, KITH_EXIT_USAGE,
                             "--target: found \"%.60s\"; allowed: efficiency=A,"
                             " above 0 and up to 1; accuracy=X and loss=X go "
                             "with --search",
                             target);
    if (memory != NULL && kith_text_rate(memory, &bits) != KITH_OK)
        return kith_cli_fail(arguments, KITH_EXIT_USAGE,
                             "--memory: found \"%.60s\"; allowed: a size with "
                             "its unit, such as 4GB",
                             memory);
    facts->memory_bytes = (double)bits / 8;
    return KITH_EXIT_OK;
}

/* ---- Printing */

/* Those that nanoseconds count are shown by their units: 292 years. */
#define SECONDS_SHOWN 9.2e9

static void show_value(const struct plan_figure *figure, char *text,
                       size_t size)
{
    static const char *const prefixes[] = {"", "k", "M", "G", "T", "P"};
    double value = figure->value;
    unsigned k = 0;
    switch (figure->unit) {
    case PLAN_SECONDS:
        if (value > 0 && value < SECONDS_SHOWN)
            kith_text_from_time((kith_ns)(1e9 * value), text, size);
        else
            (void)snprintf(text, size, "%.3g s", value);
        return;
    case PLAN_BYTES:
    case PLAN_RATE:
        while (value >= 1000 && k < 5) {
            value /= 1000;
            k++;
        }
        (void)snprintf(text, size, "%.4g %sB%s", value, prefixes[k],
                       figure->unit == PLAN_RATE ? "/s" : "");
        return;
    case PLAN_SHARE:
        (void)snprintf(text, size, "%.1f %%", 100 * value);
        return;
    case PLAN_COUNT:
        if (value < 1e9) {
            (void)snprintf(text, size, "%.10g", value);
            return;
        }
        break;
    case PLAN_PLAIN:
        break;
    }
    (void)snprintf(text, size, "%.4g", value);
}

/* Words in lines of 80 columns, the later ones under the first. */
#define COLUMNS 80
static void print_words(unsigned indent, const char *words)
{
    unsigned at = indent;
    for (const char *word = words; *word != '\0';) {
        const size_t length = strcspn(word, " ");
        if (at > indent && at + 1 + length > COLUMNS) {
            printf("\n%*s", (int)indent, "");
            at = indent;
        } else if (at > indent) {
            putchar(' ');
            at++;
        }
        printf("%.*s", (int)length, word);
        at += (unsigned)length;
        word += length + strspn(word + length, " ");
    }
    putchar('\n');
}

void kith_cli_plan_print_notes(const struct plan_facts *facts)
{
    for (unsigned i = 0; i < facts->note_count; i++) {
        printf("%s  - ", i == 0 ? "\nassumed:\n" : "");
        print_words(4, facts->notes[i]);
    }
}

json_t *kith_cli_plan_notes(const struct plan_facts *facts)
{
    json_t *notes = json_array();
    for (unsigned i = 0; i < facts->note_count; i++)
        (void)json_array_append_new(notes, kith_json_text(facts->notes[i]));
    return notes;
}

static void print_text(const struct plan_facts *facts,
                       const struct plan_answer *answer, const char *check)
{
    printf("%s: what it will take\n\n", facts->experiment->name);
    for (unsigned i = 0; i < answer->count; i++) {
        char name[32], value[32];
        kith_text_copy(name, sizeof name, answer->figures[i].name);
        for (char *c = name; *c != '\0'; c++)
            *c = *c == '_' ? ' ' : *c;
        show_value(&answer->figures[i], value, sizeof value);
        printf("  %-18s %11s  ", name, value);
        print_words(34, answer->figures[i].why);
    }
    kith_cli_plan_print_notes(facts);
    printf("\ncheck it (step = virtual_s x peers / steps):\n  %s\n", check);
}

static void print_json(const struct plan_facts *facts,
                       const struct plan_answer *answer, const char *check)
{
    static const char *const units[] = {
        [PLAN_COUNT] = "",  [PLAN_SHARE] = "",   [PLAN_SECONDS] = "s",
        [PLAN_BYTES] = "B", [PLAN_RATE] = "B/s", [PLAN_PLAIN] = ""};
    json_t *figures = json_object();
    for (unsigned i = 0; i < answer->count; i++) {
        const struct plan_figure *figure = &answer->figures[i];
        json_t *entry = json_object();
        kith_json_set_real(entry, "value", figure->value);
        kith_json_set_text(entry, "unit", units[figure->unit]);
        kith_json_set_text(entry, "why", figure->why);
        (void)json_object_set_new(figures, figure->name, entry);
    }
    kith_json_print(json_pack("{s:o, s:o, s:o, s:o, s:o}", "experiment",
                              kith_json_text(facts->experiment->name),
                              "target_efficiency",
                              kith_json_real(facts->efficiency), "figures",
                              figures, "assumed", kith_cli_plan_notes(facts),
                              "check", kith_json_text(check)),
                    9);
}

/* ---- The run that checks it */

/* In quotes of the shell, whatever it is. */
static size_t add_quoted(char *text, size_t at, const char *word)
{
    at = kith_text_add(text, PLAN_COMMAND_BYTES, at, "'");
    for (; *word != '\0'; word++)
        at = *word == '\''
                 ? kith_text_add(text, PLAN_COMMAND_BYTES, at, "'\\''")
                 : kith_text_add(text, PLAN_COMMAND_BYTES, at, "%c", *word);
    return kith_text_add(text, PLAN_COMMAND_BYTES, at, "'");
}

/* As a key takes it: whole bits, at least 1 kbit. */
static double rate_bits(double bytes_s)
{
    return fmax(1000, 8 * bytes_s);
}

/* What is measured takes a core's time. */
static bool has_host(const struct plan_facts *facts)
{
    return facts->machine != NULL && facts->wire_bytes_s > 0 &&
           facts->merge_bytes_s > 0;
}

/* What a key of a step's time takes. */
#define STEP_S_MAX 3600

void kith_cli_plan_apply(const struct plan_facts *facts,
                         struct kith_experiment *experiment)
{
    experiment->compute.step_ns = (kith_ns)rint(1e9 * facts->exchange.step_s);
    if (!has_host(facts))
        return;
    /* Nothing else, as kith_cli_plan_check() says it. */
    experiment->hosts.step_ns = experiment->hosts.message_ns = 0;
    experiment->hosts.handover_ns = experiment->hosts.wake_ns = 0;
    experiment->hosts.slice_ns = 3 * KITH_MS;
    experiment->hosts.cores = 2;
    experiment->hosts.peers = 1;
    experiment->hosts.wire_bits =
        (uint64_t)rint(rate_bits(facts->wire_bytes_s));
    experiment->hosts.merge_bits =
        (uint64_t)rint(rate_bits(facts->merge_bytes_s));
}

void kith_cli_plan_check(const struct cli_arguments *arguments,
                         const struct plan_facts *facts, const char *more,
                         const char *end, char text[PLAN_COMMAND_BYTES])
{
    const char *none =
        facts->experiment->model->reports
            ? "none: a training loop of yours is simulated by kith_simulate() "
              "or kith.simulate()"
        : facts->exchange.step_s > STEP_S_MAX
            ? "none: kith sim takes steps of up to an hour"
            : NULL;
    size_t at = kith_text_add(text, PLAN_COMMAND_BYTES, 0, "%s",
                              none != NULL ? none : "kith sim ");
    if (none != NULL)
        return;
    at = add_quoted(text, at, arguments->words[0]);
    for (unsigned i = 0; i < arguments->set_count; i++) {
        at = kith_text_add(text, PLAN_COMMAND_BYTES, at, " --set ");
        at = add_quoted(text, at, arguments->sets[i]);
    }
    at = kith_text_add(text, PLAN_COMMAND_BYTES, at, "%s", more);
    if (arguments->values[CLI_SEED] != NULL)
        at = kith_text_add(text, PLAN_COMMAND_BYTES, at, " --seed %s",
                           arguments->values[CLI_SEED]);
    at = kith_text_add(text, PLAN_COMMAND_BYTES, at,
                       " --set compute.step=%.0fns",
                       1e9 * facts->exchange.step_s);
    if (has_host(facts))
        at = kith_text_add(text, PLAN_COMMAND_BYTES, at,
                           " --set 'hosts={cores: 2, peers: 1, wire: %.0fbit, "
                           "merge: %.0fbit}'",
                           rate_bits(facts->wire_bytes_s),
                           rate_bits(facts->merge_bytes_s));
    at = kith_text_add(text, PLAN_COMMAND_BYTES, at, " --rows none%s", end);
    if (at >= PLAN_COMMAND_BYTES - 1)
        (void)kith_text_copy(text, PLAN_COMMAND_BYTES,
                             "none: the settings are too long for one line");
}

static int print_plan(const struct cli_arguments *arguments,
                      const struct kith_experiment *experiment,
                      const struct kith_machine *machine,
                      struct plan_facts *facts)
{
    struct plan_answer answer;
    char check[PLAN_COMMAND_BYTES];
    int code = kith_cli_plan_facts(arguments, experiment, machine, facts);
    if (code == KITH_EXIT_OK && kith_cli_given(arguments, CLI_SEARCH))
        return kith_cli_plan_search(arguments, facts);
    if (code == KITH_EXIT_OK)
        code = kith_cli_plan_figures(arguments, facts, &answer);
    if (code != KITH_EXIT_OK)
        return code;
    kith_cli_plan_check(arguments, facts, "", " --json", check);
    if (kith_cli_given(arguments, CLI_JSON))
        print_json(facts, &answer, check);
    else
        print_text(facts, &answer, check);
    return kith_cli_flush(arguments, KITH_EXIT_OK);
}

/* More than that the machine is measured. */
static bool wants_plan(const struct cli_arguments *arguments)
{
    return kith_cli_given(arguments, CLI_SEARCH) ||
           kith_cli_given(arguments, CLI_JSON) ||
           kith_cli_given(arguments, CLI_TARGET) ||
           kith_cli_given(arguments, CLI_MEMORY);
}

int kith_cli_plan(const struct cli_arguments *arguments)
{
    const char *path = arguments->values[CLI_MACHINE];
    const bool measures = kith_cli_given(arguments, CLI_MEASURE);
    struct kith_experiment experiment;
    struct kith_machine machine;
    struct plan_facts facts = {.note_count = 0};
    char error[KITH_EXPERIMENT_ERROR_BYTES] = "";
    int code = check_search(arguments);
    if (code == KITH_EXIT_OK && !measures && kith_cli_given(arguments, CLI_TO))
        code = kith_cli_fail(arguments, KITH_EXIT_USAGE,
                             "--to goes with --measure");
    if (code == KITH_EXIT_OK)
        code = read_wishes(arguments, &facts);
    if (code == KITH_EXIT_OK)
        code = kith_cli_experiment_open(arguments, arguments->words[0],
                                        &experiment);
    if (code != KITH_EXIT_OK)
        return code;
    if (measures && path == NULL)
        path = "machine.yaml";
    /* A machine can be measured for who does not gossip, too, but by labs. */
    const bool gossips = kith_cli_plan_gossips(&experiment);
    if (!measures || experiment.central.present || wants_plan(arguments))
        code = kith_cli_plan_check_gossip(arguments, &experiment);
    if (code == KITH_EXIT_OK && measures)
        code = kith_cli_plan_measure(arguments, &experiment, path);
    if (code == KITH_EXIT_OK && path != NULL &&
        kith_machine_load(path, &machine, error) != KITH_OK)
        code = kith_cli_fail(arguments, KITH_EXIT_EXPERIMENT, "%s", error);
    if (code == KITH_EXIT_OK && !gossips)
        fputs("nothing is gossiped: no plan is made\n", stderr);
    else if (code == KITH_EXIT_OK)
        code = print_plan(arguments, &experiment,
                          path == NULL ? NULL : &machine, &facts);
    kith_experiment_close(&experiment);
    return code;
}
