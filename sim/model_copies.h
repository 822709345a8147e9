/* Copies of vectors under way. A copy has holders, and is free when none is
 * left. Owner: model_copies.c. */
#ifndef KITH_SIM_MODEL_COPIES_H
#define KITH_SIM_MODEL_COPIES_H

#include "kith/err.h"
#include "kith/message.h"
#include "kith/types.h"
#include "sim/packets.h"

struct sim_copy;
struct sim_slab;

struct sim_copies {
    struct sim_copy *free;   /* a list */
    struct sim_copy *empty;  /* likewise, of those without bytes */
    struct sim_slab *newest; /* a list of all memory */
    uint64_t made;           /* so many were ever there at a time */
    /* (peers): what was sent of a snapshot, until it is filled again; NULL
     * where nothing is shared. */
    void *(*sent)[SIM_SNAPSHOTS];
    void **named; /* (named_count) of a save that is written or read */
    size_t named_count, named_room;
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
/* The same, for a message that leaves now. Where several ranks divide the
 * vectors each has a copy of it: its receiver's one with the bytes, to come,
 * the others' without. */
struct kith_send;
void *sim_copy_sent(struct sim_world *world, kith_id from,
                    const struct kith_send *send);
/* Whether its values are finite is known now: another rank says so. */
void sim_copy_told(struct sim_world *world, void *copy, bool finite);
/* rank_models.c: where it stands among those whose bytes are still to come. */
uint32_t *sim_copy_coming(void *copy);
/* One more holder, one less; both accept NULL. */
void *sim_copy_hold(void *copy);
/* Has it another holder than who asks? */
bool sim_copy_is_held(void *copy);
void sim_copy_release(struct sim_world *world, void *copy);
/* Before an item that may fill the peer's snapshots. */
void sim_copy_forget(struct sim_world *world, kith_id peer);
/* Will be written: whether it is finite is not known any more. */
void sim_copy_write(struct sim_world *world, void *copy);
/* Of that message's values: of its format, or of a vector. */
bool sim_copy_finite(struct sim_world *world, void *copy,
                     const struct kith_message *message);

/* Likewise, on any thread, of one that was shown (work_pool.h): the
 * answer is there when it has been withdrawn. */
void sim_copy_look(const void *world, void *copy);

/* One of another rank's, or of a run that is caught up with. */
bool sim_copy_is_empty(void *copy);
/* Between the two the archive's `vector` moves copies: what stands in one goes
 * along where it comes up first, and each that is read is one holder's. */
struct kith_archive;
void sim_copies_move_begin(struct sim_world *world,
                           struct kith_archive *archive);
void sim_copies_move_end(struct sim_world *world);

#endif
