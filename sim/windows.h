/* Events of one run on several threads: each takes those of its own peers, a
 * window of virtual time at once. Owner: windows.c. */
#ifndef KITH_SIM_WINDOWS_H
#define KITH_SIM_WINDOWS_H

#include "kith/err.h"
#include "sim/engine.h"
#include "sim/notes.h"
#include "sim/packets.h"

/* Packets for the peers of another division, and when they are there. */
struct sim_mail {
    struct sim_event *events;   /* (capacity) */
    struct sim_packet *packets; /* (capacity) */
    size_t count, capacity;
};

/* What a division's world has beside a whole run's. */
struct sim_division {
    const uint8_t *of; /* (peers) whose division; all of them know it */
    uint8_t number, count;
    struct sim_mail *mail;   /* (count) for each of the others */
    struct sim_notes *notes; /* (count + 1) the last ones for the run */
};

struct sim_windows; /* NULL: one thread takes all events */
struct sim_world;

enum kith_err sim_windows_open(struct sim_world *world);
void sim_windows_close(struct sim_world *world);
/* Until the run's own next event, or until that is all that helps: then the
 * world is whole again, as one thread would have left it. */
void sim_windows_run(struct sim_world *world);
/* A division's packet goes to a peer of another one, and is gone here. */
void sim_windows_post(struct sim_world *world, uint32_t packet, kith_ns at_ns,
                      enum sim_event_kind kind);

#endif
