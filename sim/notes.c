/* What divisions note for each other and for the run, told in the order of one
 * thread.
 *
 * One thread pops the least of all events that are pending: (time, peer,
 * sequence). At one time an event may cause another one for a lower rank, so
 * its order is not that of the ranks; but divisions cause nothing for each
 * other at one time, so what one thread pops is the least of the divisions'
 * next ones. That merges their lists by (time, the highest rank so far at this
 * time): a division whose next event is of a high rank waits with all behind
 * it, events without a note among them. */
#include "sim/notes.h"

#include <stdlib.h>

#include "kith/assert.h"
#include "sim/world.h"

#define NOTES_MIN 1024u

/* Twice as many; false: no memory. */
static bool grow(struct sim_world *world, void **list, size_t *capacity,
                 size_t size)
{
    KITH_ASSERT(size > 0);
    const size_t more = *capacity == 0 ? NOTES_MIN : 2 * *capacity;
    void *longer =
        more > SIZE_MAX / 2 / size ? NULL : realloc(*list, more * size);
    if (!longer) {
        sim_fail(world, KITH_ENOMEM, "no memory for what %zu events have said",
                 *capacity);
        return false;
    }
    *list = longer;
    *capacity = more;
    return true;
}

static struct sim_notes *notes_for(const struct sim_world *world, unsigned to)
{
    return sim_notes_of(world->division, world->division->side, to);
}

/* A division's own thread alone writes its lists, while no one reads them. */
static void put(struct sim_world *world, struct sim_notes *notes,
                const struct sim_note *note)
{
    KITH_DEBUG_ASSERT(notes->told == 0);
    void *list = notes->list;
    if (notes->count == notes->capacity &&
        !grow(world, &list, &notes->capacity, sizeof *notes->list))
        return;
    notes->list = list;
    notes->list[notes->count] = *note;
    notes->list[notes->count].at_ns = sim_time(world);
    notes->list[notes->count++].after = sim_rank(world);
}

void sim_note(struct sim_world *world, enum sim_note_kind kind, uint64_t value)
{
    const struct sim_note note = {.value = value, .kind = kind};
    KITH_DEBUG_ASSERT(kind == SIM_NOTE_TRACE);
    put(world, notes_for(world, world->division->count), &note);
}

void sim_note_mark(struct sim_world *world, kith_id who,
                   const struct kith_mark *mark)
{
    struct sim_notes *notes = notes_for(world, world->division->count);
    KITH_DEBUG_ASSERT(who < world->peer_count);
    void *marks = notes->marks;
    if (notes->mark_count == notes->mark_capacity &&
        !grow(world, &marks, &notes->mark_capacity, sizeof *notes->marks))
        return;
    notes->marks = marks;
    notes->marks[notes->mark_count] = *mark;
    const struct sim_note note = {
        .value = notes->mark_count++, .who = who, .kind = SIM_NOTE_MARK};
    put(world, notes, &note);
}

void sim_note_use(struct sim_world *world, kith_id who, uint32_t what,
                  uint64_t value)
{
    const struct sim_note note = {
        .value = value, .who = who, .kind = SIM_NOTE_USE + what};
    KITH_DEBUG_ASSERT(who < world->peer_count);
    put(world, notes_for(world, world->division->of[who]), &note);
}

static void tell(struct sim_world *world, const struct sim_notes *notes,
                 const struct sim_note *note)
{
    KITH_DEBUG_ASSERT(note->at_ns >= 0);
    switch (note->kind) {
    case SIM_NOTE_TRACE:
        sim_trace_fold(world, note->value);
        break;
    case SIM_NOTE_MARK:
        KITH_ASSERT(note->value < notes->mark_count);
        (void)kith_rundb_mark(world->options.store, note->who, note->at_ns,
                              &notes->marks[note->value]); /* sticks */
        break;
    default:
        sim_totals_use(world, note->who, note->at_ns,
                       (enum sim_use)(note->kind - SIM_NOTE_USE), note->value);
    }
}

/* NULL: all of them have been told. */
static const struct sim_note *next_of(const struct sim_notes *notes)
{
    KITH_DEBUG_ASSERT(notes->told <= notes->count);
    return notes->told < notes->count ? &notes->list[notes->told] : NULL;
}

/* Ranks of two divisions are never equal: each is of its own peers. */
static bool is_before(const struct sim_note *a, const struct sim_note *b)
{
    KITH_DEBUG_ASSERT(a != b);
    return a->at_ns < b->at_ns || (a->at_ns == b->at_ns && a->after < b->after);
}

/* Whose next note is the first of all; *second: of the others', or NULL. */
static struct sim_notes *first_of(struct sim_world *const *divisions,
                                  unsigned number, unsigned side,
                                  const struct sim_note **second)
{
    struct sim_notes *first = NULL;
    const struct sim_note *least = NULL;
    *second = NULL;
    for (unsigned i = 0; i < divisions[0]->division->count; i++) {
        struct sim_notes *notes =
            sim_notes_of(divisions[i]->division, side, number);
        const struct sim_note *next = next_of(notes);
        if (next && (!least || is_before(next, least))) {
            *second = least;
            least = next;
            first = notes;
        } else if (next && (!*second || is_before(next, *second))) {
            *second = next;
        }
    }
    return first;
}

/* Those of one division as far as no other one's is earlier. */
void sim_notes_tell(struct sim_world *world, struct sim_world *const *divisions,
                    unsigned number, unsigned side)
{
    const struct sim_note *second, *next;
    struct sim_notes *first;
    KITH_ASSERT(world->division == NULL);
    while ((first = first_of(divisions, number, side, &second)) != NULL)
        while ((next = next_of(first)) != NULL &&
               !(second && is_before(second, next))) {
            tell(world, first, next);
            first->told++;
        }
    for (unsigned i = 0; i < divisions[0]->division->count; i++) {
        struct sim_notes *notes =
            sim_notes_of(divisions[i]->division, side, number);
        notes->count = notes->mark_count = notes->told = 0;
    }
}

void sim_notes_close(struct sim_notes *notes)
{
    KITH_ASSERT(notes->count <= notes->capacity);
    free(notes->list);
    free(notes->marks);
    *notes = (struct sim_notes){0};
}
