/* What an interrupted run had, out of its own database, and the early stop, for
 * which earlier evaluations count.
 *
 * Counters of a peer go on from its last row, as they do after a crash. */
#include <math.h>

#include "src/lab/launcher.h"

void kith_lab_check_patience(struct lab *lab, double loss, double accuracy)
{
    const struct kith_experiment *experiment = &lab->experiment;
    const bool by_accuracy = experiment->best == KITH_BEST_ACCURACY;
    const double measured = by_accuracy ? accuracy : loss;
    const bool better =
        isfinite(measured) &&
        (!isfinite(lab->best) ||
         (by_accuracy ? measured > lab->best : measured < lab->best));
    lab->stale = better ? 0 : lab->stale + 1;
    if (better)
        lab->best = measured;
    if (experiment->stop.patience == 0 || lab->early ||
        lab->stale < experiment->stop.patience)
        return;
    lab->early = true;
    kith_lab_say(lab,
                 "stopped early: no better evaluation in %u, stop.patience",
                 (unsigned)lab->stale);
}

static void add_interrupted_row(void *user, const struct kith_row *row)
{
    struct lab *lab = user;
    if (row->time_ns > lab->resumed_ns)
        lab->resumed_ns = row->time_ns;
    if (row->peer == KITH_NOBODY)
        kith_lab_check_patience(lab, row->loss, row->accuracy);
    else if (row->peer < lab->peer_count)
        lab->peers[row->peer].gone = lab->peers[row->peer].last = *row;
}

enum kith_err kith_lab_read_interrupted(struct lab *lab)
{
    struct kith_rundb *store = lab->options->store;
    uint32_t first = 0;
    enum kith_err err =
        kith_rundb_go_back(store, UINT64_MAX, lab, add_interrupted_row);
    if (err == KITH_OK)
        err = kith_rundb_incarnation(store, &first);
    if (err != KITH_OK) {
        kith_lab_fail(lab, err, "%s", kith_rundb_error(store));
        return err;
    }
    for (uint32_t i = 0; i < lab->peer_count; i++)
        lab->peers[i].child.first = lab->peers[i].child.incarnation = first;
    lab->early = false; /* a run that goes on wants another look at least */
    return KITH_OK;
}
