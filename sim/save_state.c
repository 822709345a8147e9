/* See save_state.h. Each part moves what is its own; a vector that several of
 * them hold is moved by the first, and named by the rest (model_copies.c). */
#include "sim/save_state.h"

#include "kith/assert.h"
#include "sim/world.h"

/* A peer that has crashed has nothing. */
static void move_peer(struct sim_world *world, struct kith_archive *archive,
                      kith_id peer)
{
    const bool is_alive = sim_alive(world, peer);
    kith_archive_same(archive, is_alive, "other peers had crashed");
    KITH_ASSERT(sim_is_here(world, peer));
    if (archive->failed || !is_alive)
        return;
    if (archive->reads && sim_job_open(world, peer) != KITH_OK) {
        kith_archive_fail(archive, "there is no memory for its workers");
        return;
    }
    sim_worker_move(world, peer, archive);
    sim_job_move(world, peer, archive);
}

/* In the order in which vectors are found: packets, then workers, then saves
 * of peers that will be restarted. All of it is of the peers that are here;
 * what other ranks have stands in their files. */
void sim_state_move(struct sim_world *world, struct kith_archive *archive)
{
    const kith_id first = world->here.first, end = first + world->here.count;
    KITH_ASSERT(end <= world->peer_count);
    kith_archive_same(archive, world->vector_bytes, "its vectors are others");
    kith_archive_same(archive, world->work != NULL, "its model is another one");
    if (!world->work)
        return;
    sim_copies_move_begin(world, archive);
    sim_packets_move(world, archive);
    for (kith_id peer = first; peer < end && !archive->failed; peer++)
        move_peer(world, archive, peer);
    for (kith_id peer = first; peer < end && !archive->failed; peer++)
        sim_fault_move(world, peer, archive);
    sim_copies_move_end(world);
}
