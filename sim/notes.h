/* What several threads' events say to what is not one division's: the trace and
 * the database, and the use of a channel at the other end of a link. A division
 * notes it down, and whoever it is for hears of all of it later, in the order
 * of one thread. Owner: notes.c. */
#ifndef KITH_SIM_NOTES_H
#define KITH_SIM_NOTES_H

#include <stdbool.h>
#include <stddef.h>

#include "kith/node.h"
#include "kith/types.h"

enum sim_note_kind {
    SIM_NOTE_TRACE, /* value: an entry's hash */
    SIM_NOTE_MARK,  /* value: its index */
    SIM_NOTE_USE,   /* and more, of enum sim_use: peer_totals.h */
};

struct sim_note {
    kith_ns at_ns;
    uint64_t value;
    kith_id after; /* sim_moment() of the event */
    kith_id who;
    uint32_t kind;
};

/* For one division, or for the run. */
struct sim_notes {
    struct sim_note *list;   /* (capacity) */
    struct kith_mark *marks; /* (mark_capacity) */
    size_t count, capacity, mark_count, mark_capacity;
    size_t told; /* of the list, while it is told */
};

struct sim_world;

/* Of the event in hand of a division: for the run. */
void sim_note(struct sim_world *world, enum sim_note_kind kind, uint64_t value);
void sim_note_mark(struct sim_world *world, kith_id who,
                   const struct kith_mark *mark);
/* For the division of `who`; what: enum sim_use. */
void sim_note_use(struct sim_world *world, kith_id who, uint32_t what,
                  uint64_t value);
/* Tell, and forget, what all divisions have noted on this side for the one of
 * this number, or for the run: number `count`. The whole run's world; of it a
 * division's peers alone are touched. */
void sim_notes_tell(struct sim_world *world, struct sim_world *const *divisions,
                    unsigned number, unsigned side);
void sim_notes_close(struct sim_notes *notes);

#endif
