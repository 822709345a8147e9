/* Copies of vectors under way. A copy has holders, and is free when none is
 * left. Owner: model_copies.c. */
#ifndef KITH_SIM_MODEL_COPIES_H
#define KITH_SIM_MODEL_COPIES_H

#include "kith/err.h"
#include "kith/format.h"
#include "kith/types.h"
#include "sim/packets.h"

struct sim_copy;
struct sim_slab;

struct sim_copies {
    struct sim_copy *free;   /* a list */
    struct sim_slab *newest; /* a list of all memory */
    uint64_t made;           /* so many were ever there at a time */
    /* (peers): what was sent of a snapshot, until it is filled again; NULL
     * where nothing is shared. */
    void *(*sent)[SIM_SNAPSHOTS];
};

enum kith_err sim_copies_open(struct sim_world *world);
void sim_copies_close(struct sim_world *world);
/* Of an unknown content, one holder. NULL: no memory; the run is failed. */
void *sim_copy_take(struct sim_world *world);
/* The first `bytes` of a vector; of NULL: NULL. */
void *sim_copy_of(struct sim_world *world, const void *vector, size_t bytes);
/* What stands in the peer's slot, to be sent: copied once, whoever it goes to;
 * one more holder. */
void *sim_copy_slot(struct sim_world *world, kith_id peer, uint32_t slot,
                    size_t bytes);
/* One more holder, one less; both accept NULL. */
void *sim_copy_hold(void *copy);
/* Has it another holder than who asks? */
bool sim_copy_is_held(void *copy);
void sim_copy_release(struct sim_world *world, void *copy);
/* Before an item that may fill the peer's snapshots. */
void sim_copy_forget(struct sim_world *world, kith_id peer);
/* Will be written: whether it is finite is not known any more. */
void sim_copy_write(void *copy);
/* Of a message in that format; NULL: of vectors. */
bool sim_copy_finite(const struct sim_world *world, void *copy, size_t bytes,
                     const struct kith_format *format);

#endif
