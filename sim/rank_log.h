/* The log of a rank: what happens to its peers, and others cannot work out. It
 * is written by one and read by all others, at the same event. Owner:
 * rank_log.c. */
#ifndef KITH_SIM_RANK_LOG_H
#define KITH_SIM_RANK_LOG_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "kith/err.h"

struct sim_log; /* NULL: one process has all */
struct sim_world;

enum kith_err sim_log_open(struct sim_world *world);
void sim_log_close(struct sim_world *world);
/* All has been said, and all that others say is read. */
void sim_log_end(struct sim_world *world);

/* Before this rank waits or computes: others may wait for what it has put. */
void sim_log_flush(struct sim_world *world);
void sim_log_put(struct sim_world *world, const void *bytes, size_t size);
/* As they were, or partly, where the run has failed. */
void sim_log_get(struct sim_world *world, uint32_t rank, void *bytes,
                 size_t size);
/* A byte of that log that is read when it is needed: sim_copy_told(copy). */
void sim_log_expect(struct sim_world *world, uint32_t rank, void *copy);
/* Reads the next of those; false: the run has failed. */
bool sim_log_hear(struct sim_world *world, uint32_t rank);

#endif
