/* Peers set aside: their merges run on other threads, and the loop goes on.
 *
 * A merge takes no virtual time where the file does not say so, and an event
 * that comes to one would have to wait for it. But nothing is under way for
 * less than the least latency: at one time an event of one peer changes nothing
 * for another, and they are taken in the order of their peers. So the event
 * stops where it is, events of other peers at the same time go on, and it is
 * gone on with before anything could see that it was not over:
 *
 *   another time, or the run's own event
 *   the end of the run, or a point of its curve
 *   so many peers wait that threads have enough to do
 *
 * Further events of a peer that waits wait with it.
 *
 * First in, first out: who goes on is the least of all that have not come to
 * the end of their events, so what it says to the trace, the database and the
 * totals is told at once, as one thread would; what events behind it have said
 * is noted, and told when those in front of them are over.
 *
 * What an event of another peer may see of who waits is a node in the middle of
 * a merge, as it would with a compute.merge.
 * Test: integration/test_sim_aside.sh; tests/long/accept_same.sh. */
#include "sim/aside.h"

#include <stdlib.h>

#include "kith/assert.h"
#include "sim/world.h"

/* Of each thread, that wait: an item for each, and those that are next. */
#define WAITING_A_THREAD 8u
/* Further events of those who wait, of the same time. */
#define HELD_MOST 1024u
/* When so much has been noted nobody waits any more. */
#define NOTES_MOST (1u << 16)
#define NOTES_MIN 1024u

enum note_kind { NOTE_TRACE, NOTE_MARK, NOTE_USE };

struct note {
    uint64_t word; /* an entry; where a mark stands; a value */
    kith_id who;
    uint8_t kind; /* enum note_kind */
    uint8_t what; /* enum sim_use */
};
_Static_assert(sizeof(struct note) == 16, "four to a cache line");

struct waiting {
    kith_id peer;
    size_t notes;         /* that come before what it says when it goes on */
    uint32_t first, last; /* 1 + places of its events that wait with it */
};

struct held {
    struct sim_event event;
    uint32_t next; /* 1 + place of the same peer's next one, or a free one */
};

struct sim_aside {
    struct waiting waiting[WAITING_A_THREAD * SIM_THREADS_MAX];
    unsigned first, count, most; /* a ring of `most` places */
    kith_id last;                /* whose events were taken furthest */
    bool may_wait;               /* the peer of the event in hand */
    bool is_first; /* nobody who waits comes before the event in hand */
    struct held held[HELD_MOST];
    uint32_t held_used, held_free; /* 1 + a free place */
    struct note *notes;            /* (note_room) */
    size_t note_count, note_room, told;
    struct kith_mark *marks; /* (mark_room) */
    size_t mark_count, mark_room;
};

/* ---- whether anybody may wait */

/* All that looks at a run as a whole, or at vectors, after each event; and what
 * comes of one peer for another in no time. Windows are for runs without
 * vectors, which have no merges. */
static bool is_allowed(const struct sim_world *world)
{
    const struct sim_options *options = &world->options;
    KITH_ASSERT(options->threads <= SIM_THREADS_MAX);
    return world->work && sim_work_threads(world) > 1 && !world->central &&
           !world->experiment->central.present && !world->ranks &&
           !world->saves && !world->ledger && !world->dump &&
           !world->timeline && !world->hosts && !world->sharing &&
           !world->channels && !sim_is_watched(world) && !options->observe &&
           !options->claims && !options->trace_path &&
           world->experiment->network.link.latency_ns > 0;
}

enum kith_err sim_aside_open(struct sim_world *world)
{
    KITH_ASSERT(world->aside == NULL && world->peers != NULL);
    if (!is_allowed(world))
        return KITH_OK;
    world->aside = sim_alloc(world, 1, sizeof *world->aside);
    if (!world->aside)
        return KITH_ENOMEM;
    world->aside->most = WAITING_A_THREAD * sim_work_threads(world);
    return KITH_OK;
}

void sim_aside_close(struct sim_world *world)
{
    if (!world->aside)
        return;
    KITH_ASSERT(world->aside->count == 0);
    free(world->aside->notes);
    free(world->aside->marks);
}

/* ---- notes */

bool sim_aside_notes(const struct sim_world *world)
{
    const struct sim_aside *aside = world->aside;
    KITH_DEBUG_ASSERT(aside->count <= aside->most);
    return aside->count > 0 && !aside->is_first;
}

/* Room for one more; false: no memory. */
static bool grow(struct sim_world *world, void **list, size_t count,
                 size_t *room, size_t size)
{
    KITH_ASSERT(count <= *room && size > 0);
    if (count < *room)
        return true;
    const size_t more = *room == 0 ? NOTES_MIN : 2 * *room;
    void *longer = realloc(*list, more * size);
    if (!longer) {
        sim_fail(world, KITH_ENOMEM, "no memory for what %zu events have said",
                 count);
        return false;
    }
    *list = longer;
    *room = more;
    return true;
}

static void put(struct sim_world *world, struct note note)
{
    struct sim_aside *aside = world->aside;
    void *notes = aside->notes;
    KITH_DEBUG_ASSERT(sim_aside_notes(world));
    if (!grow(world, &notes, aside->note_count, &aside->note_room,
              sizeof *aside->notes))
        return;
    aside->notes = notes;
    aside->notes[aside->note_count++] = note;
}

void sim_aside_note_trace(struct sim_world *world, uint64_t entry)
{
    put(world, (struct note){.word = entry, .kind = NOTE_TRACE});
}

void sim_aside_note_mark(struct sim_world *world, kith_id who,
                         const struct kith_mark *mark)
{
    struct sim_aside *aside = world->aside;
    void *marks = aside->marks;
    KITH_DEBUG_ASSERT(who < world->peer_count);
    if (!grow(world, &marks, aside->mark_count, &aside->mark_room,
              sizeof *aside->marks))
        return;
    aside->marks = marks;
    aside->marks[aside->mark_count] = *mark;
    put(world, (struct note){
                   .word = aside->mark_count++, .who = who, .kind = NOTE_MARK});
}

void sim_aside_note_use(struct sim_world *world, kith_id who, uint32_t what,
                        uint64_t value)
{
    KITH_DEBUG_ASSERT(what <= SIM_USE_PASSES);
    put(world, (struct note){.word = value,
                             .who = who,
                             .kind = NOTE_USE,
                             .what = (uint8_t)what});
}

/* Time has not moved on meanwhile. A mark that cannot be written sticks, and is
 * reported at the end. Of a run that has failed a note may be missing, and
 * nobody asks. */
static void tell(struct sim_world *world, size_t end)
{
    struct sim_aside *aside = world->aside;
    KITH_ASSERT(aside->told <= end && end <= aside->note_count);
    for (; aside->told < end && sim_failure(world) == KITH_OK; aside->told++) {
        const struct note *note = &aside->notes[aside->told];
        if (note->kind == NOTE_TRACE)
            sim_trace_fold(world, note->word);
        else if (note->kind == NOTE_MARK)
            (void)kith_rundb_mark(world->options.store, note->who,
                                  sim_time(world), &aside->marks[note->word]);
        else
            sim_totals_use(world, note->who, sim_time(world),
                           (enum sim_use)note->what, note->word);
    }
    aside->told = end;
    if (aside->count == 0)
        aside->told = aside->note_count = aside->mark_count = 0;
}

/* ---- who waits, and who goes on */

bool sim_aside_waits(const struct sim_world *world)
{
    return world->aside->count > 0;
}

static const struct waiting *first_of(const struct sim_aside *aside)
{
    KITH_ASSERT(aside->count > 0);
    return &aside->waiting[aside->first];
}

/* Events that come to a merge are of these kinds. */
void sim_aside_begin(struct sim_world *world, const struct sim_event *event)
{
    struct sim_aside *aside = world->aside;
    KITH_ASSERT(aside->count == 0 || event->peer >= aside->last);
    aside->is_first = aside->count == 0;
    aside->may_wait =
        event->kind == SIM_EVENT_WORK_DONE || event->kind == SIM_EVENT_DELIVER;
    aside->last = event->peer;
}

/* What a message that was lost means for its answer is said while its own event
 * is in hand. */
bool sim_aside_put(struct sim_world *world, kith_id peer)
{
    struct sim_aside *aside = world->aside;
    if (!aside->may_wait || sim_network_loses(world) ||
        !sim_work_hand_over(world, peer))
        return false;
    KITH_ASSERT(peer == aside->last && aside->count < aside->most);
    const unsigned place = (aside->first + aside->count++) % aside->most;
    aside->waiting[place] =
        (struct waiting){.peer = peer, .notes = aside->note_count};
    world->report.asides++;
    return true;
}

/* ---- further events of who waits */

static struct waiting *find(struct sim_aside *aside, kith_id peer)
{
    KITH_ASSERT(aside->count <= aside->most);
    for (unsigned i = 0; i < aside->count; i++) {
        struct waiting *waiting =
            &aside->waiting[(aside->first + i) % aside->most];
        if (waiting->peer == peer)
            return waiting;
    }
    return NULL;
}

/* The queue's next one; false: there is no place for it. */
static bool hold(struct sim_world *world, kith_id peer)
{
    struct sim_aside *aside = world->aside;
    struct waiting *waiting = find(aside, peer);
    KITH_ASSERT(waiting != NULL && aside->held_used <= HELD_MOST);
    uint32_t place = aside->held_free;
    if (place != 0)
        aside->held_free = aside->held[place - 1].next;
    else if (aside->held_used < HELD_MOST)
        place = ++aside->held_used;
    else
        return false;
    struct held *held = &aside->held[place - 1];
    held->next = 0;
    (void)sim_engine_empty(world, &held->event);
    KITH_ASSERT(held->event.peer == peer);
    *(waiting->last ? &aside->held[waiting->last - 1].next : &waiting->first) =
        place;
    waiting->last = place;
    return true;
}

/* With those that it has caused meanwhile, in their order. */
static void let_go(struct sim_world *world, const struct waiting *waited)
{
    struct sim_aside *aside = world->aside;
    uint32_t next;
    KITH_ASSERT(aside->is_first);
    for (uint32_t place = waited->first; place != 0; place = next) {
        struct held *held = &aside->held[place - 1];
        next = held->next;
        sim_engine_put(world, &held->event);
        held->next = aside->held_free;
        aside->held_free = place;
    }
}

/* Behind it other events have been taken, so all of its own come now, before
 * what those have said is told. */
static void take_own(struct sim_world *world, kith_id peer)
{
    struct sim_event next;
    KITH_ASSERT(world->aside->is_first);
    while (!sim_ended(world) && sim_engine_first(world, &next) &&
           next.time_ns == sim_time(world) && next.peer == peer)
        sim_engine_take(world);
}

/* It is the first of all now. */
static void go_on(struct sim_world *world)
{
    struct sim_aside *aside = world->aside;
    const struct waiting waited = *first_of(aside);
    const bool is_alone = aside->last == waited.peer;
    tell(world, waited.notes);
    aside->is_first = true;
    aside->may_wait = false;
    sim_step_on(world, waited.peer);
    KITH_ASSERT(world->peers[waited.peer].work != SIM_WORK_IMMEDIATE);
    let_go(world, &waited);
    if (!is_alone)
        take_own(world, waited.peer);
    aside->first = (aside->first + 1) % aside->most;
    aside->count--;
    if (aside->count == 0)
        tell(world, aside->note_count);
}

/* Whatever each event does that waits or is next: it has not come to the end of
 * the run, nor to a point, before the one after it is taken. */
static bool is_early(const struct sim_world *world)
{
    const uint32_t count = world->aside->count;
    KITH_ASSERT(count > 0);
    return !sim_nodes_may_end(world, count) &&
           !sim_points_come(world, count + 1);
}

/* Whether the next event is taken before anybody goes on: one of a peer that
 * does not wait. */
static bool may_pass(struct sim_world *world)
{
    const struct sim_aside *aside = world->aside;
    struct sim_event next;
    KITH_ASSERT(aside->count > 0);
    do {
        if (!sim_engine_first(world, &next) ||
            next.time_ns != sim_time(world) || next.peer == KITH_NOBODY)
            return false;
    } while (world->peers[next.peer].work == SIM_WORK_IMMEDIATE &&
             hold(world, next.peer));
    return world->peers[next.peer].work != SIM_WORK_IMMEDIATE &&
           aside->count < aside->most && aside->note_count < NOTES_MOST &&
           is_early(world);
}

bool sim_aside_step(struct sim_world *world)
{
    KITH_DEBUG_ASSERT(world->aside != NULL);
    if (world->aside->count == 0 || may_pass(world))
        return false;
    go_on(world);
    return true;
}

void sim_aside_end(struct sim_world *world)
{
    KITH_ASSERT(!world->aside ||
                world->aside->told <= world->aside->note_count);
    while (world->aside && world->aside->count > 0)
        go_on(world);
}
