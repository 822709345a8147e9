/* Peers whose merge other threads have, while events of other peers at the same
 * time go on. Owner: aside.c. */
#ifndef KITH_SIM_ASIDE_H
#define KITH_SIM_ASIDE_H

#include <stdbool.h>

#include "kith/err.h"
#include "kith/types.h"

struct kith_mark;
struct sim_aside; /* NULL: an event is over before the next one is taken */
struct sim_event;
struct sim_world;

KITH_MUST_CHECK enum kith_err sim_aside_open(struct sim_world *world);
void sim_aside_close(struct sim_world *world);
/* This event is taken next. */
void sim_aside_begin(struct sim_world *world, const struct sim_event *event);
/* The peer's event in hand goes on when the item that it is at has run; false:
 * it goes on now. */
bool sim_aside_put(struct sim_world *world, kith_id peer);
/* Does anybody wait? Where world->aside is there; so are all but open, close
 * and end. */
bool sim_aside_waits(const struct sim_world *world);
/* Is there a peer that has to go on before the next event is taken? If so, the
 * first of them has. */
bool sim_aside_step(struct sim_world *world);
/* All of them go on. */
void sim_aside_end(struct sim_world *world);
/* What the event in hand says to the trace, the database and the totals has to
 * wait for what comes before it, and is noted. */
bool sim_aside_notes(const struct sim_world *world);
void sim_aside_note_trace(struct sim_world *world, uint64_t entry);
void sim_aside_note_mark(struct sim_world *world, kith_id who,
                         const struct kith_mark *mark);
void sim_aside_note_use(struct sim_world *world, kith_id who, uint32_t what,
                        uint64_t value);

#endif
