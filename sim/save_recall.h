/* A run that was saved runs again to there. */
#ifndef KITH_SIM_SAVE_RECALL_H
#define KITH_SIM_SAVE_RECALL_H

#include "kith/types.h"
#include "sim/save_find.h"

struct sim_recall {
    struct sim_save_find find; /* what the run goes on from */
    const char *log_path;      /* of find.log */
    bool is_on;
    kith_id here_first; /* this is world->here, when it is over */
    uint32_t here_count;
};

/* The save was found: from here on the world has no vectors. */
KITH_MUST_CHECK enum kith_err sim_recall_begin(struct sim_world *world,
                                               struct sim_recall *recall);
/* Before each event: at that of the save the world has its vectors, the log
 * goes on, and it is over; false: the run has failed. */
KITH_MUST_CHECK bool sim_recall_step(struct sim_world *world,
                                     struct sim_recall *recall,
                                     bool is_stopped);
/* What was put then. Once the run has failed, zeros. */
void sim_recall_get(struct sim_world *world, struct sim_recall *recall,
                    void *bytes, size_t size);
/* The run fails, if it has not: it does not lead to the save, `what` says why.
 */
void sim_recall_fail(struct sim_world *world, const struct sim_recall *recall,
                     const char *what);

#endif
