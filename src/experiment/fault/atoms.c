/* The flat list of timed atoms.
 *
 * Statements may overlap. A peer is down while any of them says so: per
 * subject (a peer, or a link) the begins and ends are swept in time order with
 * a depth, and only the first begin and the last end are kept. Factors of
 * `slow` multiply; each change becomes one atom with the product. */
#include <stdlib.h>
#include <string.h>

#include "kith/assert.h"
#include "kith/fault.h"
#include "kith/hash.h"

struct entry {
    struct kith_atom atom;
    uint32_t order; /* of expansion */
    bool keep;
};

enum group { GROUP_DOWN, GROUP_PAUSED, GROUP_SLOW, GROUP_CUT };

enum kith_err kith_atoms_add(struct kith_atoms *atoms,
                             const struct kith_atom *atom)
{
    if (atoms->count == KITH_ATOMS_MAX)
        return KITH_ELIMIT;
    if (atoms->count == atoms->capacity) {
        const uint32_t capacity =
            atoms->capacity == 0 ? 64 : 2 * atoms->capacity;
        void *list = realloc(atoms->list, capacity * sizeof *atoms->list);
        if (list == NULL)
            return KITH_ENOMEM;
        atoms->list = list;
        atoms->capacity = capacity;
    }
    atoms->list[atoms->count++] = *atom;
    return KITH_OK;
}

static enum group atom_group(const struct kith_atom *atom)
{
    switch (atom->kind) {
    case KITH_FAULT_CRASH:
    case KITH_FAULT_RESTART:
        return GROUP_DOWN;
    case KITH_FAULT_PAUSE:
    case KITH_FAULT_RESUME:
        return GROUP_PAUSED;
    case KITH_FAULT_SLOW:
        return GROUP_SLOW;
    case KITH_FAULT_CUT:
    case KITH_FAULT_HEAL:
    case KITH_FAULT_COUNT:
        break;
    }
    return GROUP_CUT;
}

static bool atom_ends(const struct kith_atom *atom)
{
    if (atom->kind == KITH_FAULT_SLOW)
        return atom->factor <= 1;
    return atom->kind == KITH_FAULT_RESTART ||
           atom->kind == KITH_FAULT_RESUME || atom->kind == KITH_FAULT_HEAL;
}

static int order_of(uint64_t a, uint64_t b)
{
    return (a > b) - (a < b);
}

/* Group, peer, other: the subject. */
static int compare_subject(const struct entry *a, const struct entry *b)
{
    int order = order_of(atom_group(&a->atom), atom_group(&b->atom));
    if (order == 0)
        order = order_of(a->atom.peer, b->atom.peer);
    if (order == 0)
        order = order_of(a->atom.other, b->atom.other);
    return order;
}

static int compare_time(const void *x, const void *y)
{
    const struct entry *a = x, *b = y;
    int order = order_of((uint64_t)a->atom.at_ns, (uint64_t)b->atom.at_ns);
    if (order == 0)
        order = order_of(a->atom.statement, b->atom.statement);
    return order != 0 ? order : order_of(a->order, b->order);
}

/* Within a subject by time, a begin before an end of the same instant: two
 * intervals that touch are one. */
static int compare_sweep(const void *x, const void *y)
{
    const struct entry *a = x, *b = y;
    int order = compare_subject(a, b);
    if (order == 0)
        order = order_of((uint64_t)a->atom.at_ns, (uint64_t)b->atom.at_ns);
    if (order == 0)
        order = order_of(atom_ends(&a->atom), atom_ends(&b->atom));
    return order != 0 ? order : compare_time(x, y);
}

static void sweep_depth(struct entry *entries, uint32_t count)
{
    uint32_t depth = 0;
    for (uint32_t i = 0; i < count; i++) {
        if (atom_ends(&entries[i].atom)) {
            KITH_ASSERT(depth > 0);
            depth--;
            entries[i].keep = depth == 0;
        } else {
            entries[i].keep = depth == 0;
            depth++;
        }
    }
}

/* Factors in force on one peer, oldest first. */
struct active {
    double factor;
    uint32_t statement;
};

/* Adds a begin or takes its statement's end out; the new count. */
static uint32_t active_change(struct active *active, uint32_t count,
                              const struct kith_atom *atom)
{
    if (!atom_ends(atom)) {
        active[count] = (struct active){atom->factor, atom->statement};
        return count + 1;
    }
    uint32_t i = 0;
    while (i < count && active[i].statement != atom->statement)
        i++;
    KITH_ASSERT(i < count);
    memmove(active + i, active + i + 1, (count - i - 1) * sizeof *active);
    return count - 1;
}

/* The product is formed anew at every change: exact, no division. */
static enum kith_err sweep_factors(struct entry *entries, uint32_t count)
{
    struct active *active = malloc(count * sizeof *active);
    if (active == NULL)
        return KITH_ENOMEM;
    double now = 1;
    uint32_t active_count = 0;
    for (uint32_t i = 0; i < count; i++) {
        active_count = active_change(active, active_count, &entries[i].atom);
        double product = 1;
        for (uint32_t k = 0; k < active_count; k++)
            product *= active[k].factor;
        entries[i].keep = product > now || product < now;
        entries[i].atom.factor = product;
        now = product;
    }
    free(active);
    return KITH_OK;
}

static enum kith_err sweep(struct entry *entries, uint32_t count)
{
    for (uint32_t i = 0; i < count;) {
        uint32_t end = i + 1;
        while (end < count && compare_subject(&entries[i], &entries[end]) == 0)
            end++;
        if (atom_group(&entries[i].atom) == GROUP_SLOW) {
            const enum kith_err err = sweep_factors(entries + i, end - i);
            if (err != KITH_OK)
                return err;
        } else
            sweep_depth(entries + i, end - i);
        i = end;
    }
    return KITH_OK;
}

enum kith_err kith_atoms_settle(struct kith_atoms *atoms)
{
    if (atoms->count == 0)
        return KITH_OK;
    struct entry *entries = malloc(atoms->count * sizeof *entries);
    if (entries == NULL)
        return KITH_ENOMEM;
    for (uint32_t i = 0; i < atoms->count; i++)
        entries[i] = (struct entry){atoms->list[i], i, true};
    qsort(entries, atoms->count, sizeof *entries, compare_sweep);
    const enum kith_err err = sweep(entries, atoms->count);
    if (err == KITH_OK) {
        qsort(entries, atoms->count, sizeof *entries, compare_time);
        uint32_t kept = 0;
        for (uint32_t i = 0; i < atoms->count; i++)
            if (entries[i].keep)
                atoms->list[kept++] = entries[i].atom;
        atoms->count = kept;
    }
    free(entries);
    return err;
}

const char *kith_fault_name(enum kith_fault_kind kind)
{
    static const char *const names[] = {
#define KITH_X(name, text) text,
        KITH_FAULTS(KITH_X)
#undef KITH_X
    };
    return (unsigned)kind < KITH_FAULT_COUNT ? names[kind] : "unknown";
}

uint64_t kith_fault_entity(const char *fault, const char *target,
                           const char *at, uint32_t twin)
{
    uint64_t hash = kith_hash_bytes(KITH_HASH_START, fault, strlen(fault));
    hash = kith_hash_bytes(hash, target, strlen(target));
    hash = kith_hash_bytes(hash, at, strlen(at));
    return kith_hash_word(hash, twin);
}
