/* Inside a forked process of the lab. See child.h. */
#define _GNU_SOURCE /* sched_setaffinity */
#include "src/lab/child.h"

#include <sched.h>
#include <stdlib.h>
#include <string.h>

#include "kith/affinity.h"
#include "kith/backend.h"
#include "kith/peer.h"
#include "kith/worker.h"
#include "src/lab/average.h"
#include "src/lab/process.h"

void kith_lab_child_place(const struct lab_child *child, int rows_fd,
                          int control_fd, struct kith_lab_place *place)
{
    const bool adopts = child->incarnation > child->first;
    *place = (struct kith_lab_place){
        .experiment = child->experiment,
        .identity = &child->cluster->identities[child->self],
        .trust = &child->cluster->trust,
        .members = child->cluster->members,
        .self = child->self,
        .incarnation = child->incarnation,
        .adopts = adopts,
        .resumes = adopts || child->resume,
        .records = child->record,
        .rows_fd = rows_fd,
        .control_fd = control_fd,
        .listen_fd = child->listen_fd,
        .average_fd = -1,
    };
    kith_lab_cluster_save_path(child->cluster, child->self, place->save);
}

/* Before there are threads: they inherit it. A kernel that refuses is no reason
 * not to train. */
static void keep_to_share(const struct kith_experiment *experiment,
                          kith_id self)
{
    cpu_set_t all, own;
    if (sched_getaffinity(0, sizeof all, &all) != 0 || CPU_COUNT(&all) < 1)
        return;
    const struct kith_core_share share = kith_core_share(
        experiment, experiment->peers, (uint32_t)CPU_COUNT(&all));
    const uint32_t first = self / share.peers * share.cores;
    uint32_t nth = 0;
    CPU_ZERO(&own);
    for (size_t core = 0; core < CPU_SETSIZE; core++) {
        if (!CPU_ISSET(core, &all))
            continue;
        if (nth >= first && nth - first < share.cores)
            CPU_SET(core, &own);
        nth++;
    }
    (void)sched_setaffinity(0, sizeof own, &own);
}

/* The data, where they come in pieces, and the run. */
static enum kith_err run_peer(const struct lab_child *child,
                              struct kith_speaker *speaker,
                              struct kith_peer_report *report, char *error)
{
    const struct kith_dataset *dataset = child->dataset;
    struct kith_peer_options options;
    struct kith_peer_data data;
    kith_speaker_options(speaker, &options);
    options.train = dataset == NULL ? NULL : &dataset->train;
    options.test = dataset == NULL ? NULL : &dataset->test;
    /* With `evaluate` a time the launcher does, the average. */
    options.evaluates = child->experiment->evaluate_ns == 0;
    if (options.train == NULL ||
        child->experiment->data.config.manifest[0] == '\0')
        return kith_peer_run(&options, report, error);
    enum kith_err err = kith_peer_data_open(&options, &data, error);
    if (err != KITH_OK)
        return err;
    const struct kith_piece_totals totals = kith_data_store_totals(&data.store);
    kith_speaker_pieces(speaker, &totals);
    err = kith_peer_run(&options, report, error);
    kith_peer_data_close(&data);
    return err;
}

int kith_lab_child_peer(void *user, int rows_fd, int control_fd)
{
    const struct lab_child *child = user;
    struct kith_speaker *speaker;
    struct kith_lab_place place;
    kith_lab_child_place(child, rows_fd, control_fd, &place);
    if (kith_speaker_open(&place, NULL, &speaker) != KITH_OK)
        return 1;
    kith_lab_cluster_keep_only(child->cluster, child->self);
    kith_backend_threads(1);
    keep_to_share(child->experiment, child->self);

    char error[KITH_PEER_ERROR_BYTES] = "";
    struct kith_peer_report report;
    memset(&report, 0, sizeof report);
    const enum kith_err err = run_peer(child, speaker, &report, error);
    kith_speaker_end(speaker, err, &report, err == KITH_OK ? "" : error);
    kith_speaker_close(speaker);
    return err == KITH_OK ? 0 : 1;
}

bool kith_lab_child_average(const struct lab_child *child,
                            struct lab_average *average)
{
    uint8_t wanted[KITH_LAB_PEERS_MAX];
    memset(wanted, 1, sizeof wanted);
    if (kith_lab_average_open(average, child->experiment, child->cluster,
                              wanted, NULL, NULL) != KITH_OK)
        return false;
    if (average->count > 0)
        return true;
    kith_lab_average_close(average);
    return false;
}

int kith_lab_child_score(void *user, int rows_fd, int control_fd)
{
    const struct lab_child *child = user;
    struct kith_speaker *speaker;
    struct kith_lab_place place;
    struct kith_score score;
    struct lab_average average;
    int status = 1;
    kith_backend_threads(1);
    kith_lab_child_place(child, rows_fd, control_fd, &place);
    if (!kith_lab_child_average(child, &average))
        return 1;
    place.average = kith_lab_average_facts(&average);
    if (kith_lab_average_score(&average, child->experiment, child->dataset,
                               &score) == KITH_OK &&
        kith_speaker_open(&place, NULL, &speaker) == KITH_OK) {
        kith_speaker_score(speaker, &score);
        kith_speaker_close(speaker);
        status = 0;
    }
    kith_lab_average_close(&average);
    return status;
}
