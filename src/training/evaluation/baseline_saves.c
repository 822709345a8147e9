/* See baseline_saves.h. */
#include "baseline_saves.h"

#include <stdio.h>

#include "kith/assert.h"
#include "kith/text.h"

/* A save may take one part in so many of the time. */
#define SAVE_SHARE 10

enum kith_err kith_baseline_saves_open(
    struct baseline_saves *saves, const struct kith_baseline_config *config,
    struct kith_worker *worker, kith_ns period_ns, char *error)
{
    *saves = (struct baseline_saves){.config = config,
                                     .worker = worker,
                                     .period_ns = period_ns,
                                     .due_ns = KITH_NEVER,
                                     .kept = true,
                                     .kept_best = true};
    (void)snprintf(saves->best_path, sizeof saves->best_path, "%s.best",
                   config->save);
    const enum kith_err err = kith_saver_open(NULL, NULL, &saves->saver);
    if (err != KITH_OK)
        kith_text_copy(error, KITH_DATA_ERROR_BYTES,
                       "no memory for a thread that writes checkpoints");
    return err;
}

void kith_baseline_saves_close(struct baseline_saves *saves)
{
    kith_saver_close(saves->saver);
    saves->saver = NULL;
}

void kith_baseline_saves_start(struct baseline_saves *saves, kith_ns now_ns,
                               uint64_t step)
{
    saves->kept_step = step;
    if (saves->saver != NULL && saves->period_ns > 0)
        saves->due_ns = now_ns + saves->period_ns;
}

/* Told once in a row. A device that failed ends the run with the next step. */
static void note_saved(struct baseline_saves *saves,
                       const struct kith_saved *saved)
{
    const struct kith_baseline_config *config = saves->config;
    char line[KITH_DATA_ERROR_BYTES + 64];
    const bool whole = saved->err == KITH_OK;
    const bool best = saved->path != config->save;
    bool *last = best ? &saves->kept_best : &saves->kept;
    if (whole && !best)
        saves->kept_step = saved->step;
    if (!whole && *last && saved->err != KITH_EDEVICE && config->line != NULL) {
        (void)snprintf(line, sizeof line, "%s%s", saved->error,
                       best ? "" : "; training goes on");
        config->line(config->arg, line);
    }
    *last = whole;
    const kith_ns due_ns = kith_host_now() + (SAVE_SHARE - 1) * saved->took_ns;
    if (saves->due_ns != KITH_NEVER && saves->due_ns < due_ns)
        saves->due_ns = due_ns;
}

static void collect(struct baseline_saves *saves)
{
    struct kith_saved saved;
    while (kith_saver_take(saves->saver, &saved))
        note_saved(saves, &saved);
}

void kith_baseline_saves_settle(struct baseline_saves *saves)
{
    if (saves->saver == NULL)
        return;
    kith_saver_wait(saves->saver);
    collect(saves);
}

/* Of this moment; those before it have ended. */
static enum kith_err save(struct baseline_saves *saves, const char *path,
                          const struct kith_standing *standing, char *error)
{
    const struct kith_baseline_config *config = saves->config;
    kith_baseline_saves_settle(saves);
    if (config->saving != NULL)
        config->saving(config->arg);
    return kith_saver_begin(saves->saver, saves->worker, path, standing,
                            path == config->save, error);
}

/* One that could not even be begun has ended, too. */
static void save_aside(struct baseline_saves *saves, const char *path,
                       const struct kith_standing *standing)
{
    struct kith_saved saved = {.path = path, .step = standing->step};
    saved.err = save(saves, path, standing, saved.error);
    if (saved.err != KITH_OK)
        note_saved(saves, &saved);
}

void kith_baseline_saves_look(struct baseline_saves *saves,
                              const struct kith_standing *standing)
{
    if (saves->saver == NULL)
        return;
    collect(saves);
    const kith_ns now_ns = kith_host_now();
    if (now_ns < saves->due_ns || kith_saver_busy(saves->saver))
        return;
    saves->due_ns = now_ns + saves->period_ns;
    save_aside(saves, saves->config->save, standing);
}

void kith_baseline_saves_best(struct baseline_saves *saves,
                              const struct kith_standing *standing)
{
    if (saves->saver != NULL)
        save_aside(saves, saves->best_path, standing);
}

enum kith_err kith_baseline_saves_now(struct baseline_saves *saves,
                                      const struct kith_standing *standing,
                                      char *error)
{
    struct kith_saved saved;
    const enum kith_err err = save(saves, saves->config->save, standing, error);
    if (err != KITH_OK)
        return err;
    kith_saver_wait(saves->saver);
    const bool there = kith_saver_take(saves->saver, &saved);
    KITH_ASSERT(there);
    if (saved.err == KITH_OK)
        saves->kept_step = saved.step;
    else
        kith_text_copy(error, KITH_DATA_ERROR_BYTES, saved.error);
    return saved.err;
}
