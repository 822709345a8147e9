/* Which of the saves in a folder a run goes on from. */
#ifndef KITH_SIM_SAVE_FIND_H
#define KITH_SIM_SAVE_FIND_H

#include "sim/save_file.h"
#include "sim/save_log.h"

struct sim_world;

/* Of one rank: PATH and PATH.previous are its states. */
struct sim_save_find {
    const char *path;
    uint64_t build, experiment; /* as a head has them */
    struct sim_save_log *log;   /* its chain is the save's then */
    bool found, is_previous;    /* found: the rest is filled in */
    struct sim_save_head head;
    struct sim_save_reader state;
};

/* The newest that all ranks have whole. KITH_OK and !found: there is none at
 * all. Else the run has failed: of another run, or damaged, or not the same for
 * all. */
KITH_MUST_CHECK enum kith_err sim_save_find(struct sim_world *world,
                                            struct sim_save_find *find);
/* Is there any file that might be one? */
bool sim_save_is_there(const char *path);

#endif
