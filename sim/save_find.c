/* See save_find.h. */
#define _DEFAULT_SOURCE /* access */
#include "sim/save_find.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "kith/assert.h"
#include "kith/text.h"
#include "sim/world.h"

/* Whose it is. An older save is of the same run: this is not passed over. */
static enum kith_err check_owner(const struct sim_world *world,
                                 const struct sim_save_find *find, char *why)
{
    const struct sim_save_head *head = &find->head;
    const struct kith_ranks *all = sim_ranks_all(world);
    const uint32_t ranks = all ? all->count : 1;
    KITH_ASSERT(ranks > 0);
    if (head->ranks != ranks || head->rank != sim_ranks_self(world))
        (void)snprintf(why, SIM_SAVE_WHY_BYTES,
                       "it is of rank %" PRIu32 " of %" PRIu32
                       "; this is rank %" PRIu32 " of %" PRIu32
                       ": go on with as many",
                       head->rank, head->ranks, sim_ranks_self(world), ranks);
    else if (head->build != find->build)
        (void)snprintf(why, SIM_SAVE_WHY_BYTES,
                       "it is of another build of kith: go on with that one");
    else if (head->experiment != find->experiment)
        (void)snprintf(
            why, SIM_SAVE_WHY_BYTES,
            "it is of another experiment, seed or data set, of other --set, "
            "--rows or --dishonest, or a file that it names says something "
            "else now: name the same ones");
    else
        return KITH_OK;
    return KITH_EMISMATCH;
}

/* One of the two files, if all of it is whole and ours. */
static enum kith_err try_state(const struct sim_world *world, const char *path,
                               struct sim_save_find *find, char *why)
{
    KITH_ASSERT(find->state.file == NULL);
    enum kith_err err =
        sim_save_read_open(&find->state, path, &find->head, why);
    if (err == KITH_OK)
        err = check_owner(world, find, why);
    if (err == KITH_OK)
        err = sim_save_log_check(find->log, &find->head, why);
    if (err != KITH_OK)
        sim_save_read_close(&find->state);
    return err;
}

/* Events of a rank's saves; UINT64_MAX: it has none. */
struct offer {
    uint64_t events[2];
};

/* The newest that all ranks have. */
static uint64_t agree(struct sim_world *world, const struct offer *own)
{
    const struct kith_ranks *all = sim_ranks_all(world);
    uint64_t found = UINT64_MAX;
    bool common[2] = {true, true};
    struct offer first = *own;
    KITH_ASSERT(!all || all->count > 1);
    if (!all)
        return own->events[0] != UINT64_MAX ? own->events[0] : own->events[1];
    sim_ranks_share(world, 0, &first, sizeof first);
    for (uint32_t rank = 1; rank < all->count; rank++) {
        struct offer other = *own;
        sim_ranks_share(world, rank, &other, sizeof other);
        for (unsigned i = 0; i < 2; i++)
            common[i] = common[i] && (other.events[0] == first.events[i] ||
                                      other.events[1] == first.events[i]);
    }
    for (unsigned i = 2; i-- > 0;)
        if (common[i] && first.events[i] != UINT64_MAX &&
            (found == UINT64_MAX || first.events[i] > found))
            found = first.events[i];
    return found;
}

/* What a rank has: the state and the one before. */
struct tried {
    char paths[2][SIM_SAVE_PATH_BYTES + 16], why[2][SIM_SAVE_WHY_BYTES];
    enum kith_err errs[2];
    struct offer offer;
};

/* Nothing of the folder has been changed then, nor of the database. */
static enum kith_err refuse(struct sim_world *world, const char *path,
                            enum kith_err err, const char *why)
{
    KITH_ASSERT(err != KITH_OK);
    /* KITH_EPARSE is of a data set: KITH_EMISMATCH, of its own hash, here. */
    return sim_fail(world, err == KITH_EPARSE ? KITH_EMISMATCH : err,
                    "cannot go on from %.500s: %s", path, why);
}

/* A file of another run is not passed over: the one before is, too. */
static enum kith_err try_all(struct sim_world *world,
                             struct sim_save_find *find, struct tried *tried)
{
    KITH_ASSERT(find->log != NULL);
    for (unsigned i = 0; i < 2; i++) {
        tried->offer.events[i] = UINT64_MAX;
        tried->errs[i] = try_state(world, tried->paths[i], find, tried->why[i]);
        if (tried->errs[i] == KITH_EMISMATCH || tried->errs[i] == KITH_EVERSION)
            return refuse(world, tried->paths[i], tried->errs[i],
                          tried->why[i]);
        if (tried->errs[i] != KITH_OK)
            continue;
        tried->offer.events[i] = find->head.events;
        sim_save_read_close(&find->state);
    }
    return KITH_OK;
}

/* There is none that all have whole: what is the matter here, if anything. */
static enum kith_err have_none(struct sim_world *world,
                               const struct tried *tried)
{
    bool is_there = false;
    KITH_ASSERT(sim_failure(world) == KITH_OK);
    for (unsigned i = 0; i < 2; i++) {
        is_there = is_there || tried->errs[i] == KITH_OK;
        if (tried->errs[i] != KITH_OK && tried->errs[i] != KITH_ENOENT)
            return refuse(world, tried->paths[i], tried->errs[i],
                          tried->why[i]);
    }
    return is_there ? refuse(world, tried->paths[0], KITH_EMISMATCH,
                             "there is no save that all ranks have; remove "
                             "the folder to start over")
                    : KITH_OK;
}

static void say_older(struct sim_world *world, const struct tried *tried)
{
    char line[SIM_SAVE_PATH_BYTES + SIM_SAVE_WHY_BYTES + 64];
    KITH_ASSERT(tried->errs[1] == KITH_OK);
    if (tried->errs[0] == KITH_OK || tried->errs[0] == KITH_ENOENT ||
        !world->options.notice)
        return;
    (void)snprintf(line, sizeof line,
                   "%.600s: %s; going on from the save before it",
                   tried->paths[0], tried->why[0]);
    world->options.notice(line, world->options.arg);
}

/* Both files are looked at before the ranks speak of them, and the one that
 * is taken once more: its state stays open, and the chain of the log is that
 * of its part. */
enum kith_err sim_save_find(struct sim_world *world, struct sim_save_find *find)
{
    struct tried tried;
    KITH_ASSERT(!find->found);
    (void)snprintf(tried.paths[0], sizeof tried.paths[0], "%s", find->path);
    (void)snprintf(tried.paths[1], sizeof tried.paths[1], "%s.previous",
                   find->path);
    enum kith_err err = try_all(world, find, &tried);
    if (err != KITH_OK)
        return err;
    const uint64_t events = agree(world, &tried.offer);
    if (sim_failure(world) != KITH_OK)
        return sim_failure(world);
    if (events == UINT64_MAX)
        return have_none(world, &tried);
    find->is_previous = tried.offer.events[0] != events;
    if (find->is_previous)
        say_older(world, &tried);
    const char *const path = tried.paths[find->is_previous];
    err = try_state(world, path, find, tried.why[0]);
    find->found = err == KITH_OK;
    return err == KITH_OK ? err : refuse(world, path, err, tried.why[0]);
}

/* Not whether it can be read: what cannot is not written over either. */
bool sim_save_is_there(const char *path)
{
    char previous[SIM_SAVE_PATH_BYTES + 16];
    KITH_ASSERT(strlen(path) < SIM_SAVE_PATH_BYTES);
    (void)snprintf(previous, sizeof previous, "%s.previous", path);
    return access(path, F_OK) == 0 || access(previous, F_OK) == 0;
}

/* ---- what is not saved */

/* What a worker keeps outside of its vectors, and nobody writes. */
static const char *unsaved(const struct sim_options *options)
{
    const struct kith_experiment *experiment = options->experiment;
    const struct kith_worker_config config = {
        .task = kith_experiment_task(experiment, NULL),
        .backend = experiment->backend,
        .trainer = options->trainer};
    KITH_ASSERT(experiment->backend != NULL);
    if (!kith_worker_may_archive(&config))
        return config.task.guard && config.task.guard->looks_at_loss
                   ? "a guard that asks about the last batch"
                   : "such training";
    return NULL;
}

/* Said before anything is written, as what ranks refuse is, and once more by
 * the run itself, for callers that do not ask. */
enum kith_err sim_check_saves(const struct sim_options *options, char *error)
{
    const char *what = sim_undivided(options);
    KITH_ASSERT(options->experiment != NULL);
    if (!options->saves)
        return KITH_OK;
    if (!what)
        what = unsaved(options);
    if (what)
        (void)snprintf(error, SIM_ERROR_BYTES,
                       "%s is not saved on the way: leave --save out", what);
    else if (strlen(options->saves->folder) >= KITH_PATH_BYTES_MAX)
        (void)snprintf(error, SIM_ERROR_BYTES,
                       "--save: the path is too long; allowed: up to %u bytes",
                       KITH_PATH_BYTES_MAX - 1);
    else
        return KITH_OK;
    return what ? KITH_EUNSUPPORTED : KITH_EINVAL;
}

/* Its head is all that is asked: whether the rest of it is whole is found
 * out later, by whoever goes on from it. */
enum kith_err sim_saved_database(const char *folder, char *database,
                                 size_t size)
{
    static const char *const endings[] = {"", ".previous"};
    char path[SIM_SAVE_PATH_BYTES + 16], why[SIM_SAVE_WHY_BYTES];
    struct sim_save_head head;
    KITH_ASSERT(folder != NULL && size > 0);
    database[0] = '\0';
    if (strlen(folder) >= KITH_PATH_BYTES_MAX)
        return KITH_ENOENT;
    for (unsigned i = 0; i < 2; i++) {
        (void)snprintf(path, sizeof path, "%s/rank-0.state%s", folder,
                       endings[i]);
        if (sim_save_head_read(path, &head, why) == KITH_OK)
            return kith_text_copy(database, size, head.database) ? KITH_OK
                                                                 : KITH_ELIMIT;
    }
    return KITH_ENOENT;
}
