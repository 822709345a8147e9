/* One run of a search: drawn, simulated (swarm_lab.c: with real processes),
 * judged. */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "kith/plain_file.h"
#include "kith/sim.h"
#include "kith/swarm.h"
#include "kith/text.h"
#include "swarm_command.h"

/* So many runs are done twice, the second time another way: the trace must be
 * the same. */
#define TWICE_EVERY 8u

void kith_swarm_replay(const struct swarm_search *search, uint32_t run,
                       char *text, size_t size)
{
    size_t at = kith_text_add(
        text, size, 0, "kith swarm %s --seed %" PRIu64 " --run %" PRIu32 "%s",
        search->file == NULL ? "--random" : search->file, search->seed, run,
        search->lab ? " --lab" : "");
    for (uint32_t i = 0; i < search->arguments->set_count; i++)
        at = kith_text_add(text, size, at, " --set '%s'",
                           search->arguments->sets[i]);
}

static enum kith_world world_of(const struct swarm_search *search)
{
    return search->lab ? KITH_WORLD_LAB : KITH_WORLD_SIM;
}

/* The draw with the caller's settings, in the place of the draw, where it takes
 * them. */
static enum kith_err set(const struct swarm_search *search,
                         const struct kith_draw *draw,
                         struct kith_experiment *experiment, char *error)
{
    char text[KITH_DRAW_TEXT_BYTES];
    struct kith_experiment other;
    enum kith_err err = kith_experiment_parse(
        "swarm.yaml", text, kith_draw_text(draw, text), search->arguments->sets,
        search->arguments->set_count, &other, error);
    if (err != KITH_OK)
        return err;
    err = kith_experiment_check_world(&other, world_of(search), error);
    if (err == KITH_OK)
        kith_experiment_close(experiment);
    else
        kith_experiment_close(&other);
    if (err == KITH_OK)
        *experiment = other;
    return err;
}

int kith_swarm_check_settings(const struct swarm_search *search)
{
    enum { TRIED = 256 };
    char error[KITH_EXPERIMENT_ERROR_BYTES];
    enum kith_err err = KITH_EINVAL;
    for (uint32_t run = 0; err != KITH_OK && run < TRIED; run++) {
        struct kith_experiment experiment;
        struct kith_draw draw;
        kith_draw(search->seed, run, world_of(search), &draw, &experiment);
        err = set(search, &draw, &experiment, error);
        kith_experiment_close(&experiment);
    }
    if (err == KITH_OK)
        return KITH_EXIT_OK;
    return kith_cli_fail(search->arguments, KITH_EXIT_EXPERIMENT,
                         "none of %d draws takes --set; the last one: %s",
                         TRIED, error);
}

/* The caller's file, with a seed and faults of this run. */
static int open_file(const struct swarm_search *search, uint32_t run,
                     struct kith_draw *draw, struct kith_experiment *experiment)
{
    char error[KITH_EXPERIMENT_ERROR_BYTES], seed[48];
    char faults[KITH_DRAW_TEXT_BYTES];
    struct cli_settings settings = {.count = search->arguments->set_count};
    memcpy(settings.texts, search->arguments->sets,
           sizeof search->arguments->sets);
    enum kith_err err = kith_experiment_load(search->file, settings.texts,
                                             settings.count, experiment, error);
    if (err != KITH_OK)
        return kith_cli_check(search->arguments, err, error);
    const uint64_t steps = kith_experiment_steps(experiment, 0);
    kith_ns span_ns = experiment->stop.time_ns;
    if (steps != UINT64_MAX &&
        (span_ns == 0 ||
         steps < (uint64_t)(span_ns / (experiment->compute.step_ns + 1))))
        span_ns = (kith_ns)steps * experiment->compute.step_ns;
    kith_draw_faults(search->seed, run, experiment->peers, span_ns, draw);
    kith_experiment_close(experiment);
    (void)snprintf(seed, sizeof seed, "seed=%" PRIu64, search->seed + run);
    size_t at = kith_text_add(faults, sizeof faults, 0, "faults=");
    (void)kith_draw_list(draw, faults, sizeof faults, at);
    settings.texts[settings.count++] = seed;
    settings.texts[settings.count++] = faults;
    err = kith_experiment_load(search->file, settings.texts, settings.count,
                               experiment, error);
    if (err == KITH_OK && search->lab)
        err = kith_experiment_check_world(experiment, KITH_WORLD_LAB, error);
    return kith_cli_check(search->arguments, err, error);
}

static int keep_file(const struct swarm_search *search, const char *path,
                     const char *text, size_t size)
{
    char *copy = strndup(text, size);
    if (copy == NULL)
        return kith_cli_fail(search->arguments, KITH_EXIT_RESOURCES,
                             "out of memory");
    const int code = kith_cli_replace_file(search->arguments, path, copy);
    free(copy);
    return code;
}

void kith_swarm_judge(const struct kith_experiment *experiment,
                      const struct kith_summary *summary, const char *error,
                      const char *more, const char *dishonest,
                      struct swarm_outcome *outcome)
{
    char *text = outcome->what;
    const bool failed = error[0] != '\0';
    const size_t size = sizeof outcome->what;
    const size_t start = kith_text_add(
        text, size, 0,
        "%s on %s, %" PRIu32 " peers, %" PRIu32 " timed faults%s%s:",
        experiment->gossip.algorithm->name, experiment->gossip.topology->name,
        experiment->peers, experiment->atom_count,
        dishonest[0] == '\0' ? "" : ", dishonest ", dishonest);
    size_t at = start;
    if (failed || !summary->completed)
        at = kith_text_add(text, size, at, " %s",
                           failed ? error : "not completed");
    if (!failed && more[0] != '\0')
        at = kith_text_add(text, size, at, " %s", more);
    for (uint32_t i = 0; !failed && i < experiment->check_count; i++)
        if (summary->checks.results[i].verdict == KITH_VERDICT_BROKEN &&
            strcmp(experiment->checks[i].quantity, "live") != 0)
            at = kith_text_add(text, size, at, " broken: %s",
                               experiment->checks[i].text);
    if (at == start)
        text[0] = '\0';
}

/* The same with another queue, on threads. */
static void check_hash(const struct sim_options *options,
                       struct swarm_outcome *outcome)
{
    struct sim_options other = *options;
    struct kith_summary summary;
    char error[SIM_ERROR_BYTES];
    other.queue = SIM_QUEUE_HEAP;
    other.threads = 2;
    if (sim_run(&other, &summary, NULL, error) == KITH_OK &&
        summary.trace_hash != outcome->hash)
        (void)snprintf(outcome->what, sizeof outcome->what,
                       "trace %016" PRIx64
                       ", with a heap and 2 threads %016" PRIx64,
                       outcome->hash, summary.trace_hash);
}

static void simulate(const struct swarm_search *search,
                     const struct kith_experiment *experiment,
                     const struct kith_draw *draw, uint32_t run,
                     struct swarm_outcome *outcome)
{
    struct kith_dataset dataset;
    bool has = false;
    uint8_t *claims = malloc(experiment->peers);
    if (claims == NULL ||
        !sim_claims_parse(draw->dishonest, experiment->peers, claims))
        abort(); /* a few bytes; the draw's own words */
    if (kith_cli_dataset_open(search->arguments, experiment, &dataset, &has) !=
        KITH_EXIT_OK) {
        kith_text_copy(outcome->what, sizeof outcome->what, "no data");
        return;
    }
    char error[SIM_ERROR_BYTES] = "";
    struct kith_summary summary = {0};
    struct sim_report report = {0};
    const struct sim_options options = {
        .experiment = experiment,
        .dataset = has ? &dataset : NULL,
        .wire = experiment->network.wire,
        .watch = true,
        .claims = draw->dishonest[0] == '\0' ? NULL : claims,
        .trace_path = search->arguments->values[CLI_TRACE],
    };
    const enum kith_err err = sim_run(&options, &summary, &report, error);
    memcpy(outcome->marks, report.marks, sizeof outcome->marks);
    outcome->hash = summary.trace_hash;
    summary.completed = summary.completed && !report.stalled;
    kith_swarm_judge(experiment, &summary, err == KITH_OK ? "" : error,
                     report.not_live, draw->dishonest, outcome);
    if (outcome->what[0] == '\0' && run % TWICE_EVERY == 0)
        check_hash(&options, outcome);
    if (has)
        kith_dataset_close(&dataset);
    free(claims);
}

int kith_swarm_run(const struct swarm_search *search, uint32_t run,
                   const char *keep, struct swarm_outcome *outcome)
{
    struct kith_experiment experiment;
    struct kith_draw draw;
    int code = KITH_EXIT_OK;
    memset(outcome, 0, sizeof *outcome);
    if (search->file == NULL) {
        char error[KITH_EXPERIMENT_ERROR_BYTES];
        kith_draw(search->seed, run, world_of(search), &draw, &experiment);
        if (search->arguments->set_count > 0)
            (void)set(search, &draw, &experiment, error);
    } else {
        code = open_file(search, run, &draw, &experiment);
    }
    if (code != KITH_EXIT_OK)
        return code;
    if (keep != NULL)
        code =
            keep_file(search, keep, experiment.source, experiment.source_bytes);
    if (code == KITH_EXIT_OK && search->lab)
        code = kith_swarm_lab(search, &experiment, outcome);
    else if (code == KITH_EXIT_OK)
        simulate(search, &experiment, &draw, run, outcome);
    kith_experiment_close(&experiment);
    return code;
}
