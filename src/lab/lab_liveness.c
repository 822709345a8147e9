/* Liveness of real peers (kith/liveness.h), from the marks and rows that they
 * send. A mark is in time for its peer; what another one's marks say may be a
 * moment older, which only makes the slower end of an edge slower. */
#include <math.h>

#include "kith/liveness.h"
#include "kith/text.h"
#include "src/lab/launcher.h"

enum kith_err kith_lab_live_open(struct lab *lab)
{
    const enum kith_err err = kith_experiment_node_config(
        &lab->experiment, lab->steps, &lab->live.topology, &lab->live.config);
    lab->live.config.topology = &lab->live.topology;
    const bool is_wanted =
        lab->options->report != NULL || kith_liveness_wanted(&lab->experiment);
    return err != KITH_OK || lab->options->resume || !is_wanted
               ? err
               : kith_liveness_open(&lab->live.config, &lab->experiment,
                                    &lab->live.watch);
}

void kith_lab_live_close(struct lab *lab)
{
    kith_liveness_close(lab->live.watch);
    lab->live.watch = NULL;
}

void kith_lab_live_mark(struct lab_peer *peer, kith_ns time_ns,
                        const struct kith_mark *mark)
{
    struct lab *lab = peer->lab;
    if (lab->live.watch != NULL && lab->signals == 0)
        kith_liveness_mark(lab->live.watch, time_ns, peer->rank, mark);
}

/* Steps have no marks here: a row that counts more of them is one. */
void kith_lab_live_row(struct lab_peer *peer, const struct kith_row *row)
{
    const struct kith_mark step = {.kind = KITH_MARK_STEP, .peer = KITH_NOBODY};
    if (row->step <= peer->last.step)
        return;
    peer->lab->report.marks[step.kind] += row->step - peer->last.step;
    kith_lab_live_mark(peer, row->time_ns, &step);
}

double kith_lab_live_value(const struct lab *lab)
{
    return lab->live.watch == NULL ? (double)NAN
                                   : kith_liveness_value(lab->live.watch);
}

void kith_lab_live_finish(struct lab *lab)
{
    if (lab->live.watch == NULL || lab->signals > 0)
        return;
    kith_liveness_finish(lab->live.watch, lab->ended_ns - lab->start_ns);
    (void)kith_text_copy(lab->report.not_live, sizeof lab->report.not_live,
                         kith_liveness_text(lab->live.watch));
    if (lab->report.not_live[0] == '\0')
        return;
    kith_lab_say(lab, "not live after the last fault: %s",
                 lab->report.not_live);
}
