/* Events of one run on several threads: each takes those of its own peers, a
 * window of virtual time at once. Owner: windows.c. */
#ifndef KITH_SIM_WINDOWS_H
#define KITH_SIM_WINDOWS_H

#include "kith/assert.h"
#include "kith/err.h"
#include "sim/engine.h"
#include "sim/notes.h"
#include "sim/packets.h"

/* A packet for a peer of another division, without vectors: a cache line of
 * what its message says and when it is there. */
struct sim_letter {
    _Alignas(64) kith_ns at_ns;
    uint64_t sequence; /* sim_sequence(): its sender's rank, and a count */
    uint64_t counter, step;
    double scalars[KITH_SCALARS_MAX];
    kith_id to;
    uint32_t incarnation, payload_bytes;
    uint32_t bytes; /* on the wire */
    uint16_t flags;
    uint8_t kind; /* of the packet; of its message: */
    uint8_t message, pattern, scalar_count, overlap;
    bool mine;
};
_Static_assert(sizeof(struct sim_letter) == 64, "a cache line");

struct sim_mail {
    struct sim_letter *letters; /* (capacity) */
    size_t count, capacity;
    kith_ns first_ns; /* of the first of them, if there are any */
};

/* What a division's world has beside a whole run's. What it says in a window is
 * read in the next one, while it says other things: there are two sides. */
struct sim_division {
    const uint8_t *of; /* (peers) whose division; all of them know it */
    uint8_t number, count;
    uint8_t side;            /* where it says things now */
    struct sim_mail *mail;   /* (2, count) for each of the others */
    struct sim_notes *notes; /* (2, SIM_NOTES_USE + count) */
};

static inline struct sim_mail *sim_mail_of(const struct sim_division *division,
                                           unsigned side, unsigned to)
{
    KITH_DEBUG_ASSERT(side < 2 && to < division->count);
    return &division->mail[side * division->count + to];
}

static inline struct sim_notes *
sim_notes_of(const struct sim_division *division, unsigned side, unsigned list)
{
    const unsigned lists = SIM_NOTES_USE + division->count;
    KITH_DEBUG_ASSERT(side < 2 && list < lists);
    return &division->notes[side * lists + list];
}

struct sim_windows; /* NULL: one thread takes all events */
struct sim_world;

enum kith_err sim_windows_open(struct sim_world *world);
void sim_windows_close(struct sim_world *world);
/* Until the run's own next event, or until that is all that helps: then the
 * world is whole again, as one thread would have left it. */
void sim_windows_run(struct sim_world *world);
/* A division's packet goes to a peer of another one, and is gone here:
 * mail.c. */
void sim_mail_post(struct sim_world *world, uint32_t packet, kith_ns at_ns);

#endif
