/* What several threads' events say to what is not one division's: the trace and
 * the database, and the use of a channel at the other end of a link. A division
 * notes it down, and whoever it is for hears of all of it later, in the order
 * of one thread. Owner: notes.c. */
#ifndef KITH_SIM_NOTES_H
#define KITH_SIM_NOTES_H

#include <stdbool.h>
#include <stddef.h>

#include "kith/types.h"

struct kith_mark;
struct sim_world;

/* Lists of a division, for what is one for the run and for each division. */
enum sim_note_list {
    SIM_NOTES_TRACE, /* words: hashed entries */
    SIM_NOTES_MARKS, /* whose, and the marks themselves apart */
    SIM_NOTES_USE,   /* of the division of this number: sim_note_use() */
};

/* Notes of events that follow each other at one moment, sim_moment(). */
struct sim_turn {
    kith_ns at_ns;
    kith_id after;
    uint32_t first; /* of its words; they end where the next turn's begin */
};

struct sim_notes {
    _Alignas(64) struct sim_turn *turns; /* (turn_capacity) */
    uint64_t *words;                     /* (word_capacity) */
    struct kith_mark *marks; /* (mark_capacity) as many as words, or none */
    size_t turn_count, turn_capacity, word_count, word_capacity, mark_capacity;
    kith_ns last_ns; /* of the last turn, if there is any */
    kith_id last_after;
    size_t told; /* turns, while they are told */
};

/* Of the event in hand of a division: for the run. */
void sim_note_trace(struct sim_world *world, uint64_t entry);
void sim_note_mark(struct sim_world *world, kith_id who,
                   const struct kith_mark *mark);
/* For the division of `who`; what: enum sim_use. */
void sim_note_use(struct sim_world *world, kith_id who, uint32_t what,
                  uint64_t value);
/* Tell, and forget, what all divisions have noted on this side for the run, or
 * for the division of this number. The whole run's world; of it a division's
 * peers alone are touched. */
void sim_notes_tell(struct sim_world *world, struct sim_world *const *divisions,
                    unsigned side);
void sim_notes_tell_use(struct sim_world *world,
                        struct sim_world *const *divisions, unsigned number,
                        unsigned side);
void sim_notes_close(struct sim_notes *notes);

#endif
