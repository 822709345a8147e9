/* What several threads' events say to what is one for the run: the trace, the
 * database, the use of channels at both ends of a link. A division notes it
 * down; the run hears of all of it later, in the order of one thread. Owner:
 * notes.c. */
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

struct sim_notes {
    struct sim_note *list;   /* (capacity) */
    struct kith_mark *marks; /* (mark_capacity) */
    size_t count, capacity, mark_count, mark_capacity;
    size_t told; /* of the list, while it is told */
};

struct sim_world;

/* Of the event in hand of a division. */
void sim_note(struct sim_world *world, uint32_t kind, kith_id who,
              uint64_t value);
void sim_note_mark(struct sim_world *world, kith_id who,
                   const struct kith_mark *mark);
/* Tell the run all that its `count` divisions have noted, and forget it. */
void sim_notes_tell(struct sim_world *world, struct sim_world *const *divisions,
                    unsigned count);
void sim_notes_close(struct sim_notes *notes);

#endif
