/* Who sent what: whose models were merged since ours was known to be good, how
 * many and how far they were from it, for the lines `recovered` and `spoilt`;
 * and who sent what was refused. By identity: a rank may be given to another.
 * Test: integration/test_lab_huge.sh. */
#include <math.h>
#include <string.h>

#include "driver.h"
#include "kith/assert.h"
#include "kith/text.h"

/* The certificate's; "" where the peer is not connected. */
static const char *name_of(const struct kith_driver *driver, kith_id peer)
{
    const struct kith_link *link = driver->transport.members[peer].link;
    return link != NULL && link->known ? kith_session_peer(link->session)->name
                                       : "";
}

/* Its entry; a new one takes the place of who was not named for longest. */
static struct kith_sender *sender_of(struct kith_driver *driver, kith_id peer)
{
    struct kith_senders *senders = &driver->senders;
    struct kith_sender *oldest = &senders->list[0], *found = NULL;
    for (uint32_t i = 0; i < KITH_SENDERS; i++) {
        struct kith_sender *sender = &senders->list[i];
        if (sender->last > 0 && sender->peer == peer)
            found = sender;
        if (sender->last < oldest->last)
            oldest = sender;
    }
    if (found == NULL) {
        found = oldest;
        *found = (struct kith_sender){.peer = peer, .far = KITH_FAR_UNKNOWN};
    }
    found->last = ++senders->clock;
    const char *name = name_of(driver, peer);
    if (*name != '\0')
        (void)kith_text_copy(found->name, sizeof found->name, name);
    return found;
}

/* Powers of two, by identity. */
static void log_rejected(struct kith_driver *driver,
                         const struct kith_mark *mark)
{
    const struct kith_member_state *member =
        &driver->transport.members[mark->peer];
    if ((member->rejected & (member->rejected - 1)) == 0)
        kith_transport_log(&driver->transport,
                           "rejected rank=%u name=%s distance=%.1e count=%u "
                           "clipped=%u",
                           (unsigned)mark->peer, name_of(driver, mark->peer),
                           mark->sum, (unsigned)member->rejected,
                           (unsigned)member->clipped);
}

static void note_guarded(struct kith_driver *driver,
                         const struct kith_work_edge *edge)
{
    const struct kith_peer_options *options = driver->options;
    struct kith_mark mark;
    if (!kith_worker_guarded(driver->worker, edge, &mark))
        return;
    struct kith_member_state *member = &driver->transport.members[mark.peer];
    member->clipped += mark.kind == KITH_MARK_CLIPPED;
    member->rejected += mark.kind == KITH_MARK_REJECTED;
    if (mark.kind == KITH_MARK_REJECTED)
        log_rejected(driver, &mark);
    if (options->on_mark != NULL)
        options->on_mark(options->user, kith_driver_now(driver), &mark);
}

void kith_senders_worked(struct kith_driver *driver,
                         const struct kith_work_result *result)
{
    const struct kith_work *work = &driver->thread.work;
    KITH_ASSERT(work->kind == result->kind);
    const bool from_save = driver->options->experiment->train.recover_from_save;
    if (result->kept || (from_save && result->kind == KITH_WORK_SAVE))
        memset(&driver->senders, 0, sizeof driver->senders);
    for (uint32_t i = 0;
         result->kind == KITH_WORK_MERGE && i < work->edge_count; i++) {
        const struct kith_work_edge *edge = &work->edges[i];
        note_guarded(driver, edge);
        if (edge->far == KITH_FAR_UNKNOWN)
            continue;
        struct kith_sender *sender = sender_of(driver, edge->peer);
        sender->far = edge->far > sender->far ? edge->far : sender->far;
    }
}

#define FAR_BYTES 16u
static const char *far_text(const struct kith_sender *sender,
                            char text[FAR_BYTES])
{
    if (sender->far == KITH_FAR_UNKNOWN)
        return "unknown";
    (void)kith_text_add(text, FAR_BYTES, 0, "%.1e", ldexp(1, sender->far));
    return text;
}

/* Powers of two: a member that sends nothing else does not fill the log. */
static void log_gated(struct kith_driver *driver, kith_id peer)
{
    const struct kith_sender *sender = sender_of(driver, peer);
    const uint64_t count = ++driver->gated;
    char far[FAR_BYTES];
    if ((count & (count - 1)) == 0)
        kith_transport_log(&driver->transport,
                           "gated rank=%u name=%s far=%s reason=\"not "
                           "finite, or no model\" count=%llu",
                           (unsigned)peer, sender->name, far_text(sender, far),
                           (unsigned long long)count);
}

/* Who may have spoilt it. */
static void log_merged(struct kith_driver *driver, const char *what,
                       uint64_t step)
{
    char merged[KITH_PEER_LINE_BYTES - 64] = "", far[FAR_BYTES];
    size_t used = 0;
    for (uint32_t i = 0; i < KITH_SENDERS; i++) {
        const struct kith_sender *sender = &driver->senders.list[i];
        if (sender->merged > 0)
            used = kith_text_add(
                merged, sizeof merged, used, "%s%s rank %u: %u, far %s",
                used > 0 ? "; " : "", sender->name, (unsigned)sender->peer,
                (unsigned)sender->merged, far_text(sender, far));
    }
    memset(&driver->senders, 0, sizeof driver->senders);
    kith_transport_log(&driver->transport, "%s step=%llu merged=\"%s\"", what,
                       (unsigned long long)step, merged);
}

void kith_senders_mark(struct kith_driver *driver, const struct kith_mark *mark)
{
    if (mark->kind == KITH_MARK_MERGED && mark->peer != KITH_NOBODY)
        sender_of(driver, mark->peer)->merged++;
    if (mark->kind == KITH_MARK_GATED)
        log_gated(driver, mark->peer);
    if (mark->kind == KITH_MARK_RECOVERED)
        log_merged(driver, "recovered", mark->value);
    if (mark->kind == KITH_MARK_NONFINITE)
        log_merged(driver, "spoilt", mark->value);
}
