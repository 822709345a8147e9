/* Models on their way between ranks: rank_models.h. */
#include "sim/rank_models.h"

#include <stdlib.h>

#include "kith/assert.h"
#include "sim/world.h"

struct journey {
    void *request, *copy;
};
struct journeys {
    struct journey *each; /* (capacity) */
    size_t count, capacity;
    size_t looked; /* at so many all are asked for whether they have ended */
};

struct sim_models {
    const struct kith_ranks *all;
    struct journeys sent, coming;
};

/* The last one takes its place. */
static void arrive(struct sim_world *world, struct journeys *journeys, size_t i)
{
    struct journey *journey = &journeys->each[i];
    const bool comes = journeys == &world->models->coming;
    KITH_ASSERT(i < journeys->count);
    KITH_ASSERT(!comes || *sim_copy_coming(journey->copy) == i + 1);
    if (comes)
        *sim_copy_coming(journey->copy) = 0;
    sim_copy_release(world, journey->copy);
    *journey = journeys->each[--journeys->count];
    if (comes && i < journeys->count)
        *sim_copy_coming(journey->copy) = (uint32_t)i + 1;
}

/* Those of messages that nobody waits for are found here. */
static void look_at_all(struct sim_world *world, struct journeys *journeys)
{
    size_t size;
    KITH_ASSERT(journeys->count <= journeys->capacity);
    for (size_t i = journeys->count; i-- > 0;)
        if (world->models->all->module->done(journeys->each[i].request, &size))
            arrive(world, journeys, i);
    journeys->looked = 2 * journeys->count + 64;
}

/* Its holder until then: the pool must not lend it to anybody else. */
static void depart(struct sim_world *world, struct journeys *journeys,
                   void *request, void *copy)
{
    KITH_ASSERT(request != NULL && copy != NULL);
    if (journeys->count >= journeys->looked)
        look_at_all(world, journeys);
    if (journeys->count == journeys->capacity) {
        const size_t capacity = 2 * journeys->capacity + 64;
        struct journey *each = realloc(journeys->each, capacity * sizeof *each);
        if (!each) { /* the copy stays held: the run has failed */
            sim_fail(world, KITH_ENOMEM, "no memory for %zu models under way",
                     capacity);
            return;
        }
        journeys->each = each;
        journeys->capacity = capacity;
    }
    journeys->each[journeys->count++] = (struct journey){request, copy};
}

void sim_models_send(struct sim_world *world, uint32_t rank, void *copy,
                     size_t bytes)
{
    struct sim_models *models = world->models;
    KITH_ASSERT(rank != models->all->rank && bytes <= world->vector_bytes);
    void *const request =
        models->all->module->send(rank, KITH_RANKS_MODEL, copy, bytes);
    depart(world, &models->sent, request, sim_copy_hold(copy));
}

void sim_models_receive(struct sim_world *world, uint32_t rank, void *copy,
                        size_t bytes)
{
    struct sim_models *models = world->models;
    KITH_ASSERT(rank != models->all->rank && bytes <= world->vector_bytes);
    KITH_ASSERT(*sim_copy_coming(copy) == 0);
    void *const request =
        models->all->module->receive(rank, KITH_RANKS_MODEL, copy, bytes);
    depart(world, &models->coming, request, sim_copy_hold(copy));
    *sim_copy_coming(copy) = (uint32_t)models->coming.count;
}

/* The receiver's engine may be ahead of the sender's: then this is where it
 * waits. */
void sim_models_await(struct sim_world *world, void *copy)
{
    struct journeys *coming = &world->models->coming;
    const uint32_t place = *sim_copy_coming(copy);
    size_t size;
    KITH_ASSERT(place <= coming->count);
    if (place > 0 &&
        sim_ranks_wait(world, coming->each[place - 1].request, &size))
        arrive(world, coming, place - 1);
}

/* Tables grow with what is under way: at the beginning nothing is. */
enum kith_err sim_models_open(struct sim_world *world)
{
    const struct kith_ranks *all = sim_ranks_all(world);
    KITH_ASSERT(world->models == NULL);
    if (!all)
        return KITH_OK;
    world->models = sim_alloc(world, 1, sizeof *world->models);
    if (!world->models)
        return KITH_ENOMEM;
    world->models->all = all;
    return KITH_OK;
}

/* Models of messages that nobody has delivered, too: all ranks have had the
 * same events, so that each was sent and is received. */
static void await_all(struct sim_world *world, struct journeys *journeys)
{
    size_t size;
    KITH_ASSERT(journeys->count <= journeys->capacity);
    while (journeys->count > 0 &&
           sim_ranks_wait(world, journeys->each[journeys->count - 1].request,
                          &size))
        arrive(world, journeys, journeys->count - 1);
}

void sim_models_await_all(struct sim_world *world)
{
    KITH_ASSERT(world->models != NULL);
    await_all(world, &world->models->sent);
    await_all(world, &world->models->coming);
    KITH_ASSERT(sim_failure(world) != KITH_OK ||
                world->models->sent.count + world->models->coming.count == 0);
}

/* What MPI may still write stays where it is: the process is at its end. */
void sim_models_close(struct sim_world *world)
{
    struct sim_models *models = world->models;
    if (!models || sim_ranks_linger(world))
        return;
    free(models->sent.each);
    free(models->coming.each);
}
