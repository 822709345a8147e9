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
/* A word of use: what, whose and how many. */
#define WHAT_BITS 3u
#define WHO_BITS 24u
_Static_assert(KITH_PEERS_MAX <= 1u << WHO_BITS, "whose");
_Static_assert(SIM_USE_PASSES < 1u << WHAT_BITS, "what");
/* Whose use is told so many words later. */
#define FETCH_USE 12u

/* Twice as many; false: no memory. */
static bool grow(struct sim_world *world, void **list, size_t *capacity,
                 size_t size)
{
    KITH_ASSERT(size > 0);
    const size_t more = *capacity == 0 ? NOTES_MIN : 2 * *capacity;
    void *longer = more > UINT32_MAX ? NULL : realloc(*list, more * size);
    if (!longer) {
        sim_fail(world, KITH_ENOMEM, "no memory for what %zu events have said",
                 *capacity);
        return false;
    }
    *list = longer;
    *capacity = more;
    return true;
}

static bool grow_words(struct sim_world *world, struct sim_notes *notes)
{
    void *words = notes->words;
    const bool done =
        grow(world, &words, &notes->word_capacity, sizeof *notes->words);
    notes->words = words;
    return done;
}

static bool begin_turn(struct sim_world *world, struct sim_notes *notes)
{
    void *turns = notes->turns;
    KITH_DEBUG_ASSERT(notes->told == 0);
    if (notes->turn_count == notes->turn_capacity &&
        !grow(world, &turns, &notes->turn_capacity, sizeof *notes->turns))
        return false;
    notes->turns = turns;
    struct sim_turn *turn = &notes->turns[notes->turn_count++];
    turn->at_ns = notes->last_ns = sim_time(world);
    turn->after = notes->last_after = sim_rank(world);
    turn->first = (uint32_t)notes->word_count;
    return true;
}

/* A division's own thread alone writes its lists, while no one reads them. Most
 * events say several things. */
static void put(struct sim_world *world, unsigned list, uint64_t word)
{
    struct sim_notes *notes =
        sim_notes_of(world->division, world->division->side, list);
    if (notes->word_count == notes->word_capacity && !grow_words(world, notes))
        return;
    const bool is_same = notes->turn_count > 0 &&
                         notes->last_ns == sim_time(world) &&
                         notes->last_after == sim_rank(world);
    if (is_same || begin_turn(world, notes))
        notes->words[notes->word_count++] = word;
}

void sim_note_trace(struct sim_world *world, uint64_t entry)
{
    put(world, SIM_NOTES_TRACE, entry);
}

void sim_note_mark(struct sim_world *world, kith_id who,
                   const struct kith_mark *mark)
{
    struct sim_notes *notes =
        sim_notes_of(world->division, world->division->side, SIM_NOTES_MARKS);
    KITH_DEBUG_ASSERT(who < world->peer_count);
    void *marks = notes->marks;
    if (notes->word_count == notes->mark_capacity &&
        !grow(world, &marks, &notes->mark_capacity, sizeof *notes->marks))
        return;
    notes->marks = marks;
    notes->marks[notes->word_count] = *mark;
    put(world, SIM_NOTES_MARKS, who);
}

void sim_note_use(struct sim_world *world, kith_id who, uint32_t what,
                  uint64_t value)
{
    KITH_ASSERT(value <= UINT64_MAX >> (WHO_BITS + WHAT_BITS));
    put(world, SIM_NOTES_USE + world->division->of[who],
        value << (WHO_BITS + WHAT_BITS) | (uint64_t)who << WHAT_BITS | what);
}

/* Peers in any order: what comes soon is asked for. */
static void tell_use(struct sim_world *world, const struct sim_notes *notes,
                     size_t at, kith_ns at_ns)
{
    const uint64_t *word = &notes->words[at];
    const uint64_t who = (UINT64_C(1) << WHO_BITS) - 1;
    if (at + FETCH_USE < notes->word_count)
        sim_totals_fetch(world->totals,
                         (kith_id)(word[FETCH_USE] >> WHAT_BITS & who));
    sim_totals_use(world, (kith_id)(*word >> WHAT_BITS & who), at_ns,
                   (enum sim_use)(*word & ((1u << WHAT_BITS) - 1)),
                   *word >> (WHO_BITS + WHAT_BITS));
}

/* The next turn of this list. What cannot be written sticks, and is reported at
 * the end. */
static void tell(struct sim_world *world, struct sim_notes *notes,
                 unsigned list)
{
    const struct sim_turn *turn = &notes->turns[notes->told++];
    const size_t end =
        notes->told < notes->turn_count ? turn[1].first : notes->word_count;
    KITH_DEBUG_ASSERT(turn->first < end && end <= notes->word_count);
    for (size_t at = turn->first; at < end; at++) {
        const uint64_t word = notes->words[at];
        if (list == SIM_NOTES_TRACE)
            sim_trace_fold(world, word);
        else if (list == SIM_NOTES_MARKS)
            (void)kith_rundb_mark(world->options.store, (kith_id)word,
                                  turn->at_ns, &notes->marks[at]);
        else
            tell_use(world, notes, at, turn->at_ns);
    }
}

/* Ranks of two divisions are never equal: each is of its own peers. */
static bool is_before(const struct sim_notes *a, const struct sim_notes *b)
{
    const struct sim_turn *one = &a->turns[a->told],
                          *other = &b->turns[b->told];
    KITH_DEBUG_ASSERT(a->told < a->turn_count && b->told < b->turn_count);
    return one->at_ns < other->at_ns ||
           (one->at_ns == other->at_ns && one->after < other->after);
}

/* Whose next turn is the first of all; NULL: all of them have been told. */
static struct sim_notes *first_of(struct sim_notes *const *lists,
                                  unsigned count)
{
    struct sim_notes *first = NULL;
    KITH_DEBUG_ASSERT(count > 1);
    for (unsigned i = 0; i < count; i++)
        if (lists[i]->told < lists[i]->turn_count &&
            (!first || is_before(lists[i], first)))
            first = lists[i];
    return first;
}

static void tell_list(struct sim_world *world,
                      struct sim_world *const *divisions, unsigned list,
                      unsigned side)
{
    struct sim_notes *lists[SIM_THREADS_MAX], *first;
    const unsigned count = divisions[0]->division->count;
    KITH_ASSERT(world->division == NULL && count <= SIM_THREADS_MAX);
    for (unsigned i = 0; i < count; i++)
        lists[i] = sim_notes_of(divisions[i]->division, side, list);
    while ((first = first_of(lists, count)) != NULL)
        tell(world, first, list);
    for (unsigned i = 0; i < count; i++)
        lists[i]->turn_count = lists[i]->word_count = lists[i]->told = 0;
}

/* Nothing asks for the order of entries and marks. */
void sim_notes_tell(struct sim_world *world, struct sim_world *const *divisions,
                    unsigned side)
{
    tell_list(world, divisions, SIM_NOTES_TRACE, side);
    tell_list(world, divisions, SIM_NOTES_MARKS, side);
}

void sim_notes_tell_use(struct sim_world *world,
                        struct sim_world *const *divisions, unsigned number,
                        unsigned side)
{
    KITH_DEBUG_ASSERT(number < divisions[0]->division->count);
    tell_list(world, divisions, SIM_NOTES_USE + number, side);
}

void sim_notes_close(struct sim_notes *notes)
{
    KITH_ASSERT(notes->word_count <= notes->word_capacity);
    free(notes->turns);
    free(notes->words);
    free(notes->marks);
    *notes = (struct sim_notes){0};
}
