/* What kith plan --search found: lines for the file, each with what its other
 * values take, and what is predicted. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <jansson.h>

#include "kith/json.h"
#include "kith/text.h"
#include "search_command.h"

#define WORDS_BYTES 1024u
#define COLUMNS 80u

static void bytes_text(double bytes, char *text, size_t size)
{
    static const char *const prefixes[] = {"", "k", "M", "G", "T", "P"};
    unsigned k = 0;
    for (; bytes >= 1000 && k < 5; k++)
        bytes /= 1000;
    (void)snprintf(text, size, "%.4g %sB", bytes, prefixes[k]);
}

static void goal_text(const struct search *search, double value, char *text,
                      size_t size)
{
    if (search->is_bytes)
        bytes_text(value, text, size);
    else if (isfinite(value) && value < 9e9)
        kith_text_from_time((kith_ns)(1e9 * value), text, size);
    else
        (void)snprintf(text, size, "%.3g s", value);
}

static double cost_of(const struct search *search,
                      const struct search_candidate *candidate)
{
    return search->price * candidate->peers * candidate->time_s / 3600;
}

/* The cell with another value of one key: the last key changes fastest. */
static uint32_t cell_beside(const struct search *search, uint32_t axis,
                            uint32_t value)
{
    uint32_t stride = 1, at = search->best;
    for (uint32_t i = search->axes->count; --i > axis;)
        stride *= search->axes->list[i].count;
    const uint32_t count = search->axes->list[axis].count;
    const uint32_t own = at / stride % count;
    return at - own * stride + value * stride;
}

/* "2: 96 ms (+14 %)", of a candidate beside the best. */
static size_t add_other(const struct search *search, uint32_t at,
                        const char *value, char *words, size_t size, size_t end)
{
    const struct search_candidate *other = &search->candidates[at];
    const struct search_candidate *best = &search->candidates[search->best];
    char text[32], bytes[32];
    const double goal = search_goal(search, &other->outcome);
    const double more = goal / search_goal(search, &best->outcome) - 1;
    end =
        kith_text_add(words, size, end, "%s%s: ", end == 0 ? "" : "; ", value);
    switch (other->state) {
    case SEARCH_REACHED:
        kith_text_from_time((kith_ns)(1e9 * other->outcome.time_s), text,
                            sizeof text);
        bytes_text(other->outcome.bytes, bytes, sizeof bytes);
        return kith_text_add(words, size, end, "%s, %s (%+.0f %%)", text, bytes,
                             100 * more);
    case SEARCH_BEHIND:
        goal_text(search, goal, text, sizeof text);
        return kith_text_add(words, size, end, "not there after %s", text);
    case SEARCH_SKIPPED:
        goal_text(search, other->least, text, sizeof text);
        return kith_text_add(words, size, end, "%s at least, by its step",
                             text);
    case SEARCH_SHORT:
        return kith_text_add(words, size, end, "%.4g at its end",
                             other->outcome.best);
    case SEARCH_REFUSED:
        return kith_text_add(words, size, end, "not possible here");
    case SEARCH_OPEN:
        break;
    }
    return kith_text_add(words, size, end, "not run");
}

static void write_why(const struct search *search, uint32_t axis,
                      char words[WORDS_BYTES])
{
    const struct cli_axis *list = &search->axes->list[axis];
    size_t end = 0;
    words[0] = '\0';
    for (uint32_t i = 0; i < list->count; i++) {
        const uint32_t at = cell_beside(search, axis, i);
        if (at != search->best)
            end =
                add_other(search, at, list->values[i], words, WORDS_BYTES, end);
    }
}

/* Comments of a file, under what they are about. */
static void print_comment(const char *words)
{
    static const char begin[] = "    #";
    size_t at = sizeof begin - 1;
    printf("%s", begin);
    while (*words != '\0') {
        const size_t length = strcspn(words, " ");
        if (at + 1 + length > COLUMNS) {
            printf("\n%s", begin);
            at = sizeof begin - 1;
        }
        printf(" %.*s", (int)length, words);
        at += 1 + length;
        words += length;
        words += strspn(words, " ");
    }
    putchar('\n');
}

static void print_settings(const struct search *search)
{
    const struct kith_cell *cell = search->candidates[search->best].cell;
    char words[WORDS_BYTES];
    size_t section = 0;
    if (cell->setting_count == 0)
        printf("# the file as it is\n");
    for (uint32_t i = 0; i < cell->setting_count; i++) {
        const struct kith_setting *setting = &cell->settings[i];
        const char *dot = strchr(setting->key, '.');
        const size_t length = dot == NULL ? 0 : (size_t)(dot - setting->key);
        const bool same =
            i > 0 && length > 0 && length == section &&
            strncmp(setting->key, cell->settings[i - 1].key, length) == 0;
        if (dot != NULL && !same)
            printf("%.*s:\n", (int)length, setting->key);
        section = length;
        printf("%s%s: %s\n", dot == NULL ? "" : "  ",
               dot == NULL ? setting->key : dot + 1, setting->value);
        write_why(search, i, words);
        if (words[0] != '\0')
            print_comment(words);
    }
}

static unsigned count_of(const struct search *search, enum search_state state)
{
    unsigned count = 0;
    for (uint32_t i = 0; i < search->plan.cell_count; i++)
        count += search->candidates[i].state == state;
    return count;
}

static void print_text(const struct search *search, const char *check)
{
    const struct search_candidate *best = &search->candidates[search->best];
    const struct search_outcome *own = &search->own->outcome;
    char time[32], spread[32], bytes[32], every[32];
    kith_text_from_time(kith_cli_search_period(search, best), every,
                        sizeof every);
    printf("%s: the least %s to %s=%g, simulated\n\n",
           search->facts->experiment->name, search->is_bytes ? "bytes" : "time",
           search->target.is_accuracy ? "accuracy" : "loss",
           search->target.value);
    print_settings(search);
    kith_text_from_time((kith_ns)(1e9 * best->time_s), time, sizeof time);
    bytes_text(best->bytes, bytes, sizeof bytes);
    goal_text(search, best->spread, spread, sizeof spread);
    printf("\n  %-18s %11s  first evaluation there; one every %s\n", "time",
           time, every);
    printf("  %-18s %11s  sent by a peer until then\n", "bytes", bytes);
    printf("  %-18s %11s  half of the range of %u seeds, of the %s\n", "error",
           spread, (unsigned)best->seeds, search->is_bytes ? "bytes" : "time");
    if (!isnan(search->price))
        printf("  %-18s %11.4g  %u peers at %g an hour\n", "cost",
               cost_of(search, best), (unsigned)best->peers, search->price);
    if (own->reached) {
        kith_text_from_time((kith_ns)(1e9 * own->time_s), time, sizeof time);
        bytes_text(own->bytes, bytes, sizeof bytes);
        printf("  %-18s %11s  and %s, one seed\n", "the file's own", time,
               bytes);
    } else {
        printf("  %-18s %11s  %.4g at its end\n", "the file's own", "never",
               own->best);
    }
    printf("  %-18s %11u  of %u settings: there %u, behind %u, "
           "short %u\n",
           "runs", (unsigned)search->runs, (unsigned)search->plan.cell_count,
           count_of(search, SEARCH_REACHED), count_of(search, SEARCH_BEHIND),
           count_of(search, SEARCH_SHORT));
    printf("  %-18s %11u  behind by their steps; impossible %u, left "
           "%u\n",
           "not run", count_of(search, SEARCH_SKIPPED),
           count_of(search, SEARCH_REFUSED), count_of(search, SEARCH_OPEN));
    kith_cli_plan_print_notes(search->facts);
    printf("\ncheck it:\n  %s\n", check);
}

static json_t *outcome_json(const struct search *search,
                            const struct search_candidate *candidate)
{
    static const char *const states[] = {
        [SEARCH_OPEN] = "left",       [SEARCH_REFUSED] = "refused",
        [SEARCH_SKIPPED] = "skipped", [SEARCH_BEHIND] = "behind",
        [SEARCH_SHORT] = "short",     [SEARCH_REACHED] = "reached"};
    const struct search_outcome *outcome = &candidate->outcome;
    const double none = outcome->reached ? 0 : (double)NAN;
    json_t *entry = json_object(), *settings = json_object();
    for (uint32_t i = 0; i < candidate->cell->setting_count; i++)
        kith_json_set_text(settings, candidate->cell->settings[i].key,
                           candidate->cell->settings[i].value);
    (void)json_object_set_new(entry, "settings", settings);
    kith_json_set_text(
        entry, "state",
        candidate == search->own
            ? states[outcome->reached ? SEARCH_REACHED : SEARCH_SHORT]
            : states[candidate->state]);
    kith_json_set_real(entry, "step_s", candidate->step.step_s);
    kith_json_set_real(entry, "bytes_per_step", candidate->step.bytes);
    kith_json_set_real(entry, "time_s", outcome->time_s + none);
    kith_json_set_real(entry, "bytes_per_peer", outcome->bytes + none);
    kith_json_set_real(entry, "steps", outcome->steps + none);
    return entry;
}

static void print_json(const struct search *search, const char *check)
{
    const struct search_candidate *best = &search->candidates[search->best];
    json_t *document = json_object(), *settings = json_object(),
           *why = json_object(), *tried = json_array();
    char words[WORDS_BYTES];
    for (uint32_t i = 0; i < best->cell->setting_count; i++) {
        const struct kith_setting *setting = &best->cell->settings[i];
        kith_json_set_text(settings, setting->key, setting->value);
        write_why(search, i, words);
        kith_json_set_text(why, setting->key, words);
    }
    for (uint32_t i = 0; i < search->plan.cell_count; i++)
        (void)json_array_append_new(
            tried, outcome_json(search, &search->candidates[i]));
    kith_json_set_text(document, "experiment", search->facts->experiment->name);
    kith_json_set_text(document, "goal", search->is_bytes ? "bytes" : "time");
    kith_json_set_text(document, "target",
                       search->target.is_accuracy ? "accuracy" : "loss");
    kith_json_set_real(document, "target_value", search->target.value);
    (void)json_object_set_new(document, "settings", settings);
    (void)json_object_set_new(document, "why", why);
    kith_json_set_real(document, "time_s", best->time_s);
    kith_json_set_real(document, "bytes_per_peer", best->bytes);
    kith_json_set_real(document, "error", best->spread);
    kith_json_set_whole(document, "seeds", best->seeds);
    kith_json_set_real(document, "cost", cost_of(search, best));
    kith_json_set_real(document, "evaluate_s",
                       1e-9 * (double)kith_cli_search_period(search, best));
    kith_json_set_whole(document, "runs", search->runs);
    (void)json_object_set_new(document, "own",
                              outcome_json(search, search->own));
    (void)json_object_set_new(document, "candidates", tried);
    (void)json_object_set_new(document, "assumed",
                              kith_cli_plan_notes(search->facts));
    kith_json_set_text(document, "check", check);
    kith_json_print(document, 9);
}

/* In quotes of the shell, whatever a value is. */
static void write_check(struct search *search, char *check)
{
    const struct search_candidate *best = &search->candidates[search->best];
    struct kith_experiment experiment;
    struct plan_facts facts;
    struct cli_arguments arguments = *search->arguments;
    char sets[KITH_SETTINGS_MAX][KITH_SETTING_BYTES * 2], more[64], end[96];
    for (uint32_t i = 0;
         i < best->cell->setting_count && arguments.set_count < CLI_WORDS_MAX;
         i++) {
        const struct kith_setting *setting = &best->cell->settings[i];
        (void)kith_text_add(sets[i], sizeof sets[i], 0, "%s%s=%s", setting->key,
                            setting->value[0] == '{' ? "+" : "",
                            setting->value);
        arguments.sets[arguments.set_count++] = sets[i];
    }
    (void)snprintf(more, sizeof more, " --set evaluate=%lldns",
                   (long long)kith_cli_search_period(search, best));
    (void)snprintf(end, sizeof end, " --seeds %u --target %s=%.12g",
                   (unsigned)search->seeds,
                   search->target.is_accuracy ? "accuracy" : "loss",
                   search->target.value);
    (void)kith_text_copy(check, PLAN_COMMAND_BYTES, "none: out of memory");
    if (kith_cli_search_load(search, best->cell, best->cell->seed, &experiment,
                             &facts) != KITH_EXIT_OK)
        return;
    kith_cli_plan_check(&arguments, &facts, more, end, check);
    kith_experiment_close(&experiment);
}

int kith_cli_search_show(struct search *search)
{
    char check[PLAN_COMMAND_BYTES];
    write_check(search, check);
    if (kith_cli_given(search->arguments, CLI_JSON))
        print_json(search, check);
    else
        print_text(search, check);
    return kith_cli_flush(search->arguments, KITH_EXIT_OK);
}
