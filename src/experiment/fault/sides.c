/* All links between two groups as one thing.
 *
 *   links  =  A x B, and B x A where both ways, but nobody's to itself
 *
 * A partition of n peers has up to n^2 links, a run has far fewer: whoever has
 * a link asks of it. An atom begins its fault on a link unless another
 * statement that names the link has begun before; it ends it there unless
 * another one goes on. Of one instant begins come before ends, and statements
 * in their order: what kith_atoms_settle() makes of single links. Test:
 * unit/test_fault_sides.c holds the two against each other. */
#include <stdlib.h>

#include "kith/assert.h"
#include "kith/fault.h"
#include "kith/text.h"

bool kith_sides_hold(const struct kith_sides *sides, kith_id from, kith_id to)
{
    const unsigned a = sides->side[from], b = sides->side[to];
    if (from == to)
        return false;
    return ((a & KITH_SIDE_FIRST) && (b & KITH_SIDE_SECOND)) ||
           (sides->both_ways && (a & KITH_SIDE_SECOND) &&
            (b & KITH_SIDE_FIRST));
}

/* Is the link so already when `sides` begin? */
static bool began_before(const struct kith_sides *other,
                         const struct kith_sides *sides)
{
    if (other->from_ns == sides->from_ns)
        return other->statement < sides->statement;
    return other->from_ns < sides->from_ns && other->to_ns >= sides->from_ns;
}

/* Is it still so when they end? */
static bool goes_on(const struct kith_sides *other,
                    const struct kith_sides *sides)
{
    if (other->from_ns > sides->to_ns)
        return false;
    return other->to_ns == sides->to_ns ? other->statement > sides->statement
                                        : other->to_ns > sides->to_ns;
}

static bool is_at(const struct kith_atom *atom, bool begins)
{
    const bool is_instant = atom->sides->from_ns == atom->sides->to_ns;
    return is_instant ? atom->begins : atom->begins == begins;
}

bool kith_atom_turns(const struct kith_atom *atom, bool begins, kith_id from,
                     kith_id to)
{
    const struct kith_sides *const sides = atom->sides;
    if (!is_at(atom, begins) || !kith_sides_hold(sides, from, to))
        return false;
    for (const struct kith_sides *other = sides->next; other != sides;
         other = other->next)
        if (other->fault == sides->fault &&
            (begins ? began_before : goes_on)(other, sides) &&
            kith_sides_hold(other, from, to))
            return false;
    return true;
}

/* ---- one by one */

/* Where the sides overlap a pair is met twice: a begin is told where it is met
 * first, an end where it is met last. */
static bool is_told_here(const struct kith_sides *sides, uint32_t part,
                         kith_id i, kith_id j)
{
    const bool is_back = part >= 2, begins = part % 2 == 0;
    const unsigned there = sides->side[i] & sides->side[j];
    KITH_ASSERT(i != j);
    if (is_back && !sides->both_ways)
        return false;
    const bool is_met_twice =
        sides->both_ways && there == (KITH_SIDE_FIRST | KITH_SIDE_SECOND);
    return !is_met_twice || (begins ? i < j : i > j);
}

bool kith_atom_next(struct kith_atom_walk *walk, struct kith_atom *one)
{
    const struct kith_sides *const sides = walk->atom->sides;
    const bool is_one = sides == NULL || sides->walked == NULL;
    *one = *walk->atom;
    if (is_one)
        return walk->i++ == 0;
    one->sides = NULL;
    /* Four parts of a pair: there and back, each may begin and may end. */
    for (; walk->i < sides->counts[0]; walk->i++, walk->j = 0) {
        const kith_id i = sides->walked[walk->i];
        for (; walk->j < sides->counts[1]; walk->j++, walk->part = 0) {
            const kith_id j = sides->walked[sides->counts[0] + walk->j];
            while (i != j && walk->part < 4) {
                const uint32_t part = walk->part++;
                one->peer = part < 2 ? i : j;
                one->other = part < 2 ? j : i;
                one->begins = part % 2 == 0;
                if (is_told_here(sides, part, i, j) &&
                    kith_atom_turns(walk->atom, one->begins, one->peer,
                                    one->other))
                    return true;
            }
        }
    }
    return false;
}

uint32_t kith_atom_count(const struct kith_atom *atom)
{
    struct kith_atom_walk walk = {.atom = atom};
    struct kith_atom one;
    uint32_t count = 0;
    while (kith_atom_next(&walk, &one))
        count++;
    return count;
}

/* ---- made of a statement */

static kith_id first_of(const struct kith_sides *sides, unsigned side,
                        kith_id but)
{
    kith_id i = 0;
    while (i < sides->peers && (i == but || !(sides->side[i] & side)))
        i++;
    return i;
}

/* The first link; there is one. */
static void name_first(const struct kith_sides *sides, struct kith_atom *atom)
{
    atom->peer = first_of(sides, KITH_SIDE_FIRST, KITH_NOBODY);
    atom->other = first_of(sides, KITH_SIDE_SECOND, atom->peer);
    if (atom->other == sides->peers) { /* it is the second side */
        atom->other = atom->peer;
        atom->peer = first_of(sides, KITH_SIDE_FIRST, atom->other);
    }
    KITH_ASSERT(kith_sides_hold(sides, atom->peer, atom->other));
}

/* Begins and ends that a list of them would hold; none: no link. */
static uint64_t fill(struct kith_sides *sides, const uint8_t *first,
                     const uint8_t *second)
{
    uint64_t both = 0;
    for (uint32_t i = 0; i < sides->peers; i++) {
        sides->side[i] = (uint8_t)((first[i] ? KITH_SIDE_FIRST : 0) |
                                   (second[i] ? KITH_SIDE_SECOND : 0));
        sides->counts[0] += first[i];
        sides->counts[1] += second[i];
        both += first[i] & second[i];
    }
    return ((uint64_t)sides->counts[0] * sides->counts[1] - both) *
           (sides->both_ways ? 2 : 1) * (sides->to_ns == KITH_NEVER ? 1 : 2);
}

static enum kith_err list_members(struct kith_sides *sides)
{
    uint32_t at[2] = {0, sides->counts[0]};
    sides->walked = malloc(((size_t)sides->counts[0] + sides->counts[1]) *
                           sizeof *sides->walked);
    if (sides->walked == NULL)
        return KITH_ENOMEM;
    for (uint32_t i = 0; i < sides->peers; i++)
        for (unsigned k = 0; k < 2; k++)
            if (sides->side[i] & (KITH_SIDE_FIRST << k))
                sides->walked[at[k]++] = i;
    return KITH_OK;
}

static void sides_free(struct kith_sides *sides)
{
    free(sides->side);
    free(sides->walked);
    free(sides);
}

static enum kith_err add_atoms(struct kith_atoms *atoms,
                               const struct kith_sides *sides)
{
    struct kith_atom atom = {.at_ns = sides->from_ns,
                             .fault = sides->fault,
                             .begins = true,
                             .sides = sides,
                             .factor = 1,
                             .statement = sides->statement};
    KITH_ASSERT(!kith_fault_has_factor(sides->fault)); /* would multiply */
    name_first(sides, &atom);
    const enum kith_err err = kith_atoms_add(atoms, &atom);
    if (err != KITH_OK || sides->to_ns == KITH_NEVER)
        return err;
    atom.begins = false;
    atom.at_ns = sides->to_ns;
    return kith_atoms_add(atoms, &atom);
}

enum kith_err kith_atoms_add_sides(struct kith_atoms *atoms,
                                   const struct kith_sides *sides,
                                   const uint8_t *first, const uint8_t *second)
{
    if (atoms->side_peers + sides->peers > KITH_SIDE_PEERS_MAX)
        return KITH_ELIMIT;
    struct kith_sides *made = malloc(sizeof *made);
    if (made == NULL)
        return KITH_ENOMEM;
    *made = *sides;
    made->side = malloc(sides->peers);
    made->walked = NULL;
    const uint64_t links = made->side ? fill(made, first, second) : 0;
    const bool is_walked = atoms->links + links <= KITH_ATOMS_MAX;
    enum kith_err err = made->side ? KITH_OK : KITH_ENOMEM;
    if (links > 0 && is_walked)
        err = list_members(made);
    if (err == KITH_OK && links > 0)
        err = add_atoms(atoms, made);
    if (err != KITH_OK || links == 0) {
        sides_free(made);
        return err;
    }
    atoms->links += is_walked ? links : 0;
    atoms->side_peers += sides->peers;
    made->next = atoms->sides == NULL ? made : atoms->sides->next;
    if (atoms->sides != NULL)
        atoms->sides->next = made;
    atoms->sides = made;
    return KITH_OK;
}

void kith_sides_free(struct kith_sides *ring)
{
    struct kith_sides *sides = ring;
    while (sides != NULL) {
        struct kith_sides *const next = sides->next;
        sides_free(sides);
        sides = next == ring ? NULL : next;
    }
}

/* ---- in words */

static size_t add_ranges(const struct kith_sides *sides, unsigned side,
                         char *text, size_t size, size_t at)
{
    const char *comma = "";
    for (kith_id i = 0; i < sides->peers && at + 1 < size; i++) {
        const kith_id first = i;
        if (!(sides->side[i] & side))
            continue;
        while (i + 1 < sides->peers && (sides->side[i + 1] & side))
            i++;
        at = kith_text_add(text, size, at, "%s%u", comma, (unsigned)first);
        if (i > first)
            at = kith_text_add(text, size, at, "..%u", (unsigned)i);
        comma = ", ";
    }
    return at;
}

char *kith_sides_text(const struct kith_sides *sides, char *text, size_t size)
{
    size_t at = add_ranges(sides, KITH_SIDE_FIRST, text, size, 0);
    at = kith_text_add(text, size, at, sides->both_ways ? " <-> " : " -> ");
    (void)add_ranges(sides, KITH_SIDE_SECOND, text, size, at);
    return text;
}
