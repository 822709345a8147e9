/* What kith plan --search tries: cells of a sweep over the keys that the
 * method takes, each with the time and bytes of a step by G1 to G3.
 *
 *   gossip.every     the file's, half, twice and four times it; the least that
 *                    hides an exchange (G1), and the same of it
 *   gossip.wire      all that send whole numbers; not where a compressor has
 *                    the message
 *   gossip.topology  where a round has a message for each neighbour (f of G3):
 *                    the file's, and those that mix best with f 1 and log2 n;
 *                    where pairs meet, f is the same: the file's, and any pair
 *   network.suite    with a machine's file: the file's, and auto, the fastest
 *   train.batch      the file's, and of those that a machine's file has the
 *                    least time an example
 *
 * Anything else, and other values, by --sweep. */
#include <stdlib.h>
#include <string.h>

#include "kith/text.h"
#include "search_command.h"

/* Of a list's values, the file's first. */
static void add_value(char *text, const char *key, const char *value)
{
    char word[KITH_NAME_MAX + 2];
    char list[KITH_SETTING_BYTES];
    const size_t at = strlen(text);
    if (at == 0) {
        (void)kith_text_add(text, KITH_SETTING_BYTES, 0, "%s=%s", key, value);
        return;
    }
    (void)kith_text_add(word, sizeof word, 0, ",%s,", value);
    (void)kith_text_add(list, sizeof list, 0, ",%s,", strchr(text, '=') + 1);
    if (strstr(list, word) == NULL)
        (void)kith_text_add(text, KITH_SETTING_BYTES, at, ",%s", value);
}

static void add_whole(char *text, const char *key, double value)
{
    char word[32];
    (void)kith_text_add(word, sizeof word, 0, "%.0f", value);
    add_value(text, key, word);
}

/* An interval beyond a quarter of the run is no gossip. */
static void add_intervals(const struct search *search, char *text)
{
    const struct plan_facts *facts = search->facts;
    const struct kith_experiment *experiment = facts->experiment;
    const double own = experiment->gossip.every;
    const double most =
        experiment->stop.steps > 0 ? (double)experiment->stop.steps / 4 : 1e9;
    char error[KITH_PLAN_ERROR_BYTES];
    struct kith_plan_hiding hiding = {.interval = own};
    if (kith_plan_hiding(&facts->exchange, &hiding, error) != KITH_OK)
        hiding.interval = own;
    const double hides = hiding.interval;
    const double more[] = {(double)((uint64_t)own / 2),
                           2 * own,
                           4 * own,
                           (double)(((uint64_t)hides + 1) / 2),
                           hides,
                           2 * hides,
                           4 * hides};
    add_whole(text, "gossip.every", own);
    for (size_t i = 0; i < sizeof more / sizeof *more; i++)
        if (more[i] >= 1 && more[i] <= most)
            add_whole(text, "gossip.every", more[i]);
}

static void add_wires(const struct kith_experiment *experiment, char *text)
{
    if (strcmp(experiment->gossip.compressor, "none") != 0)
        return;
    add_value(text, "gossip.wire", experiment->gossip.format->name);
    for (unsigned i = 0; kith_formats[i] != NULL; i++)
        if (kith_formats[i]->residue_bits == 0)
            add_value(text, "gossip.wire", kith_formats[i]->name);
}

static void add_graphs(const struct kith_experiment *experiment, char *text)
{
    static const char *const rounds[] = {"one-peer-exponential", "exponential"};
    const bool meets =
        experiment->gossip.algorithm->pattern != KITH_PATTERN_ROUND;
    add_value(text, "gossip.topology", experiment->gossip.topology->name);
    for (size_t i = 0; !meets && i < sizeof rounds / sizeof *rounds; i++)
        add_value(text, "gossip.topology", rounds[i]);
    for (unsigned i = 0; meets && kith_topology_kinds[i] != NULL; i++)
        if (kith_topology_is_any_pair(kith_topology_kinds[i]))
            add_value(text, "gossip.topology", kith_topology_kinds[i]->name);
}

/* The search's own axis, unless it has but one value or somebody says it. */
static void end_axis(struct search *search, const char *key, char *text)
{
    const bool one = strchr(text, ',') == NULL;
    const unsigned at = search->swept.sweep_count;
    if (one || kith_cli_axes_set(search->axes, key) || at == KITH_SETTINGS_MAX)
        return;
    (void)kith_text_copy(search->sweeps[at], KITH_SETTING_BYTES, text);
    search->swept.sweeps[at] = search->sweeps[at];
    search->swept.sweep_count++;
}

static void add_axes(struct search *search)
{
    const struct plan_facts *facts = search->facts;
    const struct kith_experiment *experiment = facts->experiment;
    char intervals[KITH_SETTING_BYTES] = "", wires[KITH_SETTING_BYTES] = "",
         graphs[KITH_SETTING_BYTES] = "", batches[KITH_SETTING_BYTES] = "",
         suites[KITH_SETTING_BYTES] = "", error[KITH_PLAN_ERROR_BYTES];
    struct plan_batch batch;
    add_intervals(search, intervals);
    add_wires(experiment, wires);
    add_graphs(experiment, graphs);
    add_whole(batches, "train.batch", experiment->train.batch);
    if (facts->machine != NULL &&
        kith_cli_plan_batch(facts, &batch, error) == KITH_OK)
        add_whole(batches, "train.batch", batch.batch);
    add_value(suites, "network.suite", experiment->network.suite);
    if (facts->machine != NULL)
        add_value(suites, "network.suite", "auto");
    end_axis(search, "gossip.every", intervals);
    end_axis(search, "gossip.wire", wires);
    end_axis(search, "gossip.topology", graphs);
    end_axis(search, "train.batch", batches);
    end_axis(search, "network.suite", suites);
}

int kith_cli_search_load(struct search *search, const struct kith_cell *cell,
                         uint64_t seed, struct kith_experiment *experiment,
                         struct plan_facts *facts)
{
    char error[KITH_EXPERIMENT_ERROR_BYTES] = "", text[32];
    const char *sets[] = {text};
    (void)kith_text_add(text, sizeof text, 0, "seed=%llu",
                        (unsigned long long)seed);
    const enum kith_err err = kith_experiment_parse(
        cell->path, cell->experiment, strlen(cell->experiment), sets, 1,
        experiment, error);
    if (err != KITH_OK)
        return kith_cli_check(search->arguments, err, error);
    *facts = (struct plan_facts){.efficiency = search->facts->efficiency};
    const int code = kith_cli_plan_facts(search->arguments, experiment,
                                         search->facts->machine, facts);
    if (code == KITH_EXIT_OK)
        kith_cli_plan_apply(facts, experiment);
    else
        kith_experiment_close(experiment);
    return code;
}

static int predict(struct search *search, struct search_candidate *candidate)
{
    char error[KITH_PLAN_ERROR_BYTES] = "";
    struct kith_experiment experiment;
    struct plan_facts facts;
    const int code = kith_cli_search_load(
        search, candidate->cell, candidate->cell->seed, &experiment, &facts);
    if (code != KITH_EXIT_OK)
        return code;
    candidate->peers = experiment.peers;
    candidate->batch = experiment.train.batch;
    candidate->hash = kith_experiment_hash(&experiment);
    const enum kith_err err =
        kith_cli_plan_step(&facts, &candidate->step, error);
    kith_experiment_close(&experiment);
    return kith_cli_check(search->arguments, err, error);
}

static int make_own(struct search *search)
{
    const struct kith_experiment *experiment = search->facts->experiment;
    struct kith_cell *cell = &search->own_cell;
    char *real = realpath(search->arguments->words[0], NULL);
    kith_text_copy(cell->path, sizeof cell->path,
                   real == NULL ? search->arguments->words[0] : real);
    free(real);
    cell->experiment = experiment->source;
    cell->seed = experiment->seed;
    search->own = &search->candidates[search->plan.cell_count];
    search->own->cell = cell;
    return predict(search, search->own);
}

/* Does the hash tell apart what is tried of it? Of keys that it leaves out the
 * file's own value could be any. */
static bool is_hashed(const char *path)
{
    struct kith_experiment_key key;
    for (unsigned i = 0; kith_experiment_key(i, &key); i++)
        if (strcmp(key.path, path) == 0)
            return !key.is_local;
    return false; /* a section */
}

static bool is_own(const struct search *search,
                   const struct search_candidate *candidate)
{
    for (uint32_t i = 0; i < search->axes->count; i++)
        if (!is_hashed(search->axes->list[i].key))
            return false;
    return candidate->hash == search->own->hash;
}

/* Is there a cell that can be run with this one's k-th value? */
static bool has_use(const struct search *search, const struct kith_cell *cell,
                    uint32_t k)
{
    for (uint32_t i = 0; i < search->plan.cell_count; i++) {
        const struct kith_cell *other = &search->plan.cells[i];
        if (other->refused[0] == '\0' &&
            strcmp(other->settings[k].value, cell->settings[k].value) == 0)
            return true;
    }
    return false;
}

/* Values that make no sense together are left out. One that the user has given
 * and that makes none with anything is a mistake: the first `given` axes. */
static int check_given(const struct search *search, uint32_t given)
{
    for (uint32_t i = 0; i < search->plan.cell_count; i++) {
        const struct kith_cell *cell = &search->plan.cells[i];
        for (uint32_t k = 0;
             k < given && k < cell->setting_count && cell->refused[0] != '\0';
             k++)
            if (!has_use(search, cell, k))
                return kith_cli_fail(search->arguments, KITH_EXIT_EXPERIMENT,
                                     "--sweep %s=%s: %.600s",
                                     cell->settings[k].key,
                                     cell->settings[k].value, cell->refused);
    }
    return KITH_EXIT_OK;
}

int kith_cli_search_open(struct search *search)
{
    search->swept = *search->arguments;
    int code = kith_cli_axes_read(search->arguments, search->axes);
    if (code != KITH_EXIT_OK)
        return code;
    const uint32_t given = search->axes->count;
    add_axes(search);
    code = kith_cli_axes_read(&search->swept, search->axes);
    if (code == KITH_EXIT_OK)
        code =
            kith_cli_plan_open(&search->swept, &search->cache, &search->plan);
    if (code == KITH_EXIT_OK)
        code = check_given(search, given);
    if (code != KITH_EXIT_OK)
        return code;
    search->candidates =
        calloc((size_t)search->plan.cell_count + 1, sizeof *search->candidates);
    if (search->candidates == NULL)
        return kith_cli_fail(search->arguments, KITH_EXIT_RESOURCES,
                             "out of memory");
    code = make_own(search);
    search->count = search->plan.cell_count + 1;
    for (uint32_t i = 0; i < search->plan.cell_count && code == KITH_EXIT_OK;
         i++) {
        struct search_candidate *candidate = &search->candidates[i];
        candidate->cell = &search->plan.cells[i];
        candidate->state =
            candidate->cell->refused[0] == '\0' ? SEARCH_OPEN : SEARCH_REFUSED;
        if (candidate->state == SEARCH_OPEN)
            code = predict(search, candidate);
        if (code != KITH_EXIT_OK)
            return kith_cli_fail(search->arguments, code,
                                 "--search: that is of the setting %s; leave "
                                 "it out of --sweep",
                                 candidate->cell->label);
        candidate->is_own =
            candidate->state == SEARCH_OPEN && is_own(search, candidate);
        if (candidate->is_own)
            search->count = search->plan.cell_count;
    }
    return code;
}
