/* The journal of this peer: kith/journal.h.
 *
 * Entries gather in a buffer of one part. It is handed on when it is full, with
 * every row, and before anything leaves that another peer or the disk could
 * keep: a peer that is killed has said nothing that is not in its journal. */
#include <stdlib.h>
#include <string.h>

#include "driver.h"
#include "kith/assert.h"

/* A part may end within an entry: the reader joins the parts of one
 * incarnation. */
static void hand_on(struct kith_driver *driver, size_t size)
{
    const struct kith_peer_options *options = driver->options;
    KITH_ASSERT(size > 0 && size <= driver->journal.size);
    KITH_ASSERT(size <= KITH_JOURNAL_PART_BYTES);
    options->on_journal(options->user, driver->journal.bytes, size,
                        driver->phase == KITH_DRIVER_LEAVING);
    driver->journal.size -= size;
    memmove(driver->journal.bytes, driver->journal.bytes + size,
            driver->journal.size);
}

/* Entries are bounded, so one always fits behind a part that is not full. */
static void add(struct kith_driver *driver,
                const struct kith_journal_entry *entry)
{
    KITH_ASSERT(driver->journal.size < KITH_JOURNAL_PART_BYTES);
    driver->journal.size +=
        kith_journal_pack(&driver->journal.clock, entry,
                          driver->journal.bytes + driver->journal.size);
    KITH_ASSERT(driver->journal.size <= sizeof driver->journal.bytes);
    if (driver->journal.size >= KITH_JOURNAL_PART_BYTES)
        hand_on(driver, KITH_JOURNAL_PART_BYTES);
}

/* With every row, so that a killed peer loses at most what it had told nobody.
 */
void kith_journal_flush(struct kith_driver *driver)
{
    if (driver->options->on_journal != NULL && driver->journal.size > 0)
        hand_on(driver, driver->journal.size);
}

/* Two saves may be of the same step: the model says which one it was. */
enum kith_err kith_journal_restored(struct kith_driver *driver, uint64_t step)
{
    const struct kith_peer_options *options = driver->options;
    const size_t dim = kith_worker_dim(driver->worker);
    driver->journal.step = step;
    if (options->on_journal == NULL || !options->resume || dim == 0)
        return KITH_OK;
    double *z = malloc(dim * sizeof *z);
    if (z == NULL)
        return KITH_ENOMEM;
    kith_worker_read(driver->worker, z);
    driver->journal.digest = kith_journal_digest(z, dim);
    free(z);
    return KITH_OK;
}

/* Names the save that the run goes on from; a replay must find the same model.
 */
void kith_journal_starts(struct kith_driver *driver)
{
    const struct kith_journal_entry entry = {.kind = KITH_JOURNAL_BEGIN,
                                             .step = driver->journal.step,
                                             .digest = driver->journal.digest,
                                             .adopt = driver->options->adopt};
    if (driver->options->on_journal == NULL)
        return;
    driver->journal.begun = true;
    add(driver, &entry);
    if (driver->thread.lie_is_new) /* told before the run began */
        kith_journal_lies(driver, &driver->thread.lie);
}

/* Before the effects leave: what a neighbour has seen must be in the journal,
 * or a replay could not explain it. */
void kith_journal_stepped(struct kith_driver *driver,
                          const struct kith_event *event)
{
    const struct kith_journal_entry entry = {.kind = KITH_JOURNAL_EVENT,
                                             .event = *event};
    const struct kith_effects *effects = &driver->effects;
    if (driver->options->on_journal == NULL)
        return;
    add(driver, &entry);
    if (effects->send_count > 0 ||
        (effects->has_work && effects->work.kind == KITH_WORK_SAVE))
        kith_journal_flush(driver);
}

/* A lie begins with the next item, in a replay as here. */
void kith_journal_lies(struct kith_driver *driver, const struct kith_lie *lie)
{
    const struct kith_journal_entry entry = {.kind = KITH_JOURNAL_LIE,
                                             .lie = *lie};
    if (driver->journal.begun)
        add(driver, &entry);
}

/* Whether the last item ran is not visible from events: the thread may have
 * been stopped before it. */
void kith_journal_ends(struct kith_driver *driver)
{
    const struct kith_thread *thread = &driver->thread;
    const struct kith_journal_entry entry = {
        .kind = KITH_JOURNAL_END,
        .ran = thread->busy && thread->item != KITH_ITEM_SUBMITTED};
    if (!driver->journal.begun)
        return;
    add(driver, &entry);
    kith_journal_flush(driver);
}
