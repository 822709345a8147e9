/* What runs inside a forked process: one peer, or one evaluation; built in, or
 * a program (program.c). All speak through the rows pipe and end with their
 * return value. */
#ifndef KITH_LAB_CHILD_H
#define KITH_LAB_CHILD_H

#include <stdbool.h>
#include <stdint.h>

#include "kith/data.h"
#include "kith/experiment.h"
#include "kith/lab_place.h"
#include "kith/types.h"
#include "src/lab/average.h"
#include "src/lab/cluster.h"

struct lab_child {
    const struct kith_experiment *experiment;
    const struct kith_dataset *dataset; /* NULL without data */
    struct lab_cluster *cluster;
    kith_id self;
    uint32_t incarnation, first; /* the run's first one adopts nobody */
    bool record;                 /* keep a journal */
    bool resume;                 /* and may go on from its save all the same */
    int listen_fd;
    const char *output;          /* of a program: beside this file */
    struct lab_average *average; /* of a program's score; NULL: of the saves */
};

/* Who has this place; control_fd may be -1. */
void kith_lab_child_place(const struct lab_child *child, int rows_fd,
                          int control_fd, struct kith_lab_place *place);
/* The saves as they are now; false: there are none, or no memory. */
bool kith_lab_child_average(const struct lab_child *child,
                            struct lab_average *average);

/* lab_job.run of a peer; user: struct lab_child. Exit status 0, or 1 with the
 * error in its FINAL record. */
int kith_lab_child_peer(void *user, int rows_fd, int control_fd);

/* lab_job.run of an evaluation of the averaged saves as they are now; user:
 * struct lab_child, self and listen_fd unused. Sends one SCORE. */
int kith_lab_child_score(void *user, int rows_fd, int control_fd);

/* The same of model.run: they return where it cannot be started alone. */
int kith_lab_program_peer(void *user, int rows_fd, int control_fd);
int kith_lab_program_score(void *user, int rows_fd, int control_fd);

#endif
