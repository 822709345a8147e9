/* The way back to a save.
 *
 * A run that goes on begins at time 0, like a rank whose peers are all
 * elsewhere: it takes every event, has no vectors, and reads in the log what it
 * cannot work out; rows are written again. At the event of the save it holds
 * the trace's hash against the one that was saved, reads its vectors, and has
 * them from there on.
 *
 * Test: integration/test_sim_resume.sh */
#include "sim/save_recall.h"

#include <stdio.h>
#include <string.h>

#include "kith/archive.h"
#include "kith/assert.h"
#include "kith/plain_file.h"
#include "sim/save_state.h"
#include "sim/world.h"

/* Rows are taken out once it is sure that they will be written again. */
enum kith_err sim_recall_begin(struct sim_world *world,
                               struct sim_recall *recall)
{
    struct kith_rundb *store = world->options.store;
    KITH_ASSERT(recall->find.found && world->here.count > 0);
    recall->is_on = true;
    recall->here_first = world->here.first;
    recall->here_count = world->here.count;
    world->here.count = 0; /* all are elsewhere */
    const enum kith_err err = store ? kith_rundb_start_over(store) : KITH_OK;
    return err == KITH_OK ? err
                          : sim_fail(world, err, "%s", kith_rundb_error(store));
}

/* The state that is not gone on from must not become the one before. */
static void drop_newer(const struct sim_save_find *find)
{
    char refused[SIM_SAVE_PATH_BYTES + 16];
    KITH_ASSERT(find->found);
    if (!find->is_previous)
        return;
    (void)snprintf(refused, sizeof refused, "%s.refused", find->path);
    (void)rename(find->path, refused);
}

/* The log goes on behind what belongs to the save. */
static bool end(struct sim_world *world, struct sim_recall *recall)
{
    struct sim_save_find *find = &recall->find;
    KITH_ASSERT(find->found && recall->is_on);
    recall->is_on = false;
    sim_save_read_close(&find->state);
    drop_newer(find);
    const int code = sim_save_log_cut(find->log, find->head.log_bytes);
    if (code != 0)
        (void)sim_fail(world, kith_file_error(code),
                       "cannot write %.600s: %s; go on from a folder that can "
                       "be written",
                       recall->log_path, strerror(code));
    return code == 0;
}

/* From here on the run has its vectors. What can be known to be wrong is
 * found out before any of them is read: another trace, a log that was not
 * used up. */
static bool arrive(struct sim_world *world, struct sim_recall *recall)
{
    const struct sim_save_head *head = &recall->find.head;
    struct kith_archive archive = {
        .reads = true, .move = sim_save_read, .arg = &recall->find.state};
    KITH_ASSERT(world->here.count == 0);
    if (sim_events(world) != head->events ||
        sim_trace_hash(world) != head->trace) {
        sim_recall_fail(world, recall,
                        "the events that lead there give another trace");
        return false;
    }
    if (sim_save_log_read(recall->find.log) != head->log_bytes) {
        sim_recall_fail(world, recall,
                        "its log has more than the run asked for");
        return false;
    }
    world->here.first = recall->here_first;
    world->here.count = recall->here_count;
    sim_state_move(world, &archive);
    if (archive.failed)
        sim_recall_fail(world, recall, archive.failed);
    return sim_failure(world) == KITH_OK && end(world, recall);
}

/* A signal ends it as it stands: there is nothing to save that is not in the
 * folder. */
bool sim_recall_step(struct sim_world *world, struct sim_recall *recall,
                     bool is_stopped)
{
    KITH_ASSERT(recall->is_on && recall->find.found);
    if (sim_events(world) >= recall->find.head.events)
        return arrive(world, recall);
    if (is_stopped)
        (void)sim_fail(world, KITH_ECLOSED,
                       "ended by a signal before the run had caught up with "
                       "its save, which is as it was");
    return sim_failure(world) == KITH_OK;
}

/* The run asks for the same in the same order as when it was put there, so that
 * no record says what it is. */
void sim_recall_get(struct sim_world *world, struct sim_recall *recall,
                    void *bytes, size_t size)
{
    KITH_ASSERT(recall->is_on);
    if (!sim_save_log_get(recall->find.log, recall->find.head.log_bytes, bytes,
                          size))
        sim_recall_fail(world, recall, "its log ends before the save");
}

/* Never an assertion: whatever a file says, it is the file that is at fault. */
void sim_recall_fail(struct sim_world *world, const struct sim_recall *recall,
                     const char *what)
{
    KITH_ASSERT(recall->is_on && what[0] != '\0');
    if (sim_failure(world) == KITH_OK)
        (void)sim_fail(world, KITH_EMISMATCH,
                       "going on from %.400s: %s: it is of another run, or of "
                       "another build; remove the folder to start over",
                       recall->find.path, what);
}
