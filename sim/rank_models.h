/* Models on their way between ranks, held until they have left or come. Owner:
 * rank_models.c. */
#ifndef KITH_SIM_RANK_MODELS_H
#define KITH_SIM_RANK_MODELS_H

#include <stddef.h>
#include <stdint.h>

#include "kith/err.h"

struct sim_models; /* NULL: one process has all */
struct sim_world;

enum kith_err sim_models_open(struct sim_world *world);
void sim_models_close(struct sim_world *world);
void sim_models_send(struct sim_world *world, uint32_t rank, void *copy,
                     size_t bytes);
void sim_models_receive(struct sim_world *world, uint32_t rank, void *copy,
                        size_t bytes);
/* It is there; returns at once where it was never under way. */
void sim_models_await(struct sim_world *world, void *copy);
/* All that is under way, here and there. */
void sim_models_await_all(struct sim_world *world);

#endif
