/* The flat list of timed atoms.
 *
 * Statements may overlap. A peer is down while any of them says so: per
 * subject (a peer, or a link) the begins and ends are swept in time order with
 * a depth, and only the first begin and the last end are kept. Factors
 * multiply; each change becomes one atom with the product. What stands for all
 * links between two sides is asked link by link (sides.c) and stays whole. */
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

bool kith_fault_has_factor(const struct kith_fault *fault)
{
    return (fault->keys & KITH_FAULT_TAKES(BY)) != 0;
}

bool kith_atom_has_factor(const struct kith_atom *atom)
{
    return kith_fault_has_factor(atom->fault) &&
           (atom->lie == KITH_LIE_NONE || kith_lie_kinds[atom->lie].most > 0);
}

struct kith_lie kith_atom_lie(const struct kith_atom *atom)
{
    KITH_ASSERT(atom->fault->effect == KITH_EFFECT_LIE);
    return (struct kith_lie){atom->begins ? atom->lie : KITH_LIE_NONE,
                             atom->factor, atom->models};
}

const struct kith_fault_event *kith_atom_event(const struct kith_atom *atom)
{
    static const struct kith_fault_event lies[] = {
#define KITH_X(name, word, by, above, most) {"hostile " word, 8},
        KITH_LIES(KITH_X)
#undef KITH_X
    };
    if (atom->fault->keys & KITH_FAULT_TAKES(KIND))
        return &lies[atom->lie];
    return atom->begins ? &atom->fault->begin : &atom->fault->end;
}

void kith_atom_act(const struct kith_atom *atom, struct kith_link_flow *flow)
{
    KITH_ASSERT(atom->fault->effect == KITH_EFFECT_LINK);
    KITH_ASSERT(atom->peer != atom->other);
    size_t index = 0;
    while (kith_faults[index] != atom->fault)
        index++;
    KITH_ASSERT(index < KITH_LINK_FORCES);
    for (unsigned ends = 0; ends < 2; ends++) {
        const bool begins = ends == 0;
        if (atom->sides == NULL
                ? atom->begins != begins
                : !kith_atom_turns(atom, begins, flow->from, flow->to))
            continue;
        flow->terms.force[index] = begins ? atom->factor : 0;
        flow->losses++; /* the next one may have another share: drawn anew */
        flow->is_drawn = false;
    }
}

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

static int order_of(uint64_t a, uint64_t b)
{
    return (a > b) - (a < b);
}

/* A peer tells one lie at a time, whatever fault it is of. */
static unsigned number_of(const struct kith_fault *fault)
{
    return fault->effect == KITH_EFFECT_LIE ? UINT32_MAX : fault->begin.number;
}

/* Fault, peer, other: the subject. */
static int compare_subject(const struct entry *a, const struct entry *b)
{
    int order = order_of(number_of(a->atom.fault), number_of(b->atom.fault));
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
        order = order_of(!a->atom.begins, !b->atom.begins);
    return order != 0 ? order : compare_time(x, y);
}

/* Intervals in force on one subject, oldest first. */
struct active {
    double factor;
    uint32_t statement;
    const struct kith_atom *begun;
};

/* Adds a begin or takes its statement's end out; the new count. */
static uint32_t active_change(struct active *active, uint32_t count,
                              const struct kith_atom *atom)
{
    if (atom->begins) {
        active[count] = (struct active){atom->factor, atom->statement, atom};
        return count + 1;
    }
    uint32_t i = 0;
    while (i < count && active[i].statement != atom->statement)
        i++;
    KITH_ASSERT(i < count);
    memmove(active + i, active + i + 1, (count - i - 1) * sizeof *active);
    return count - 1;
}

/* The youngest lie in force is told; after the last the truth. */
static bool sweep_lie(const struct active *active, uint32_t count,
                      struct kith_atom *atom, struct kith_lie *now)
{
    const struct kith_lie before = *now;
    if (count > 0) {
        const struct kith_atom *const begun = active[count - 1].begun;
        atom->fault = begun->fault;
        atom->lie = begun->lie;
        atom->factor = active[count - 1].factor;
    }
    atom->begins = count > 0;
    *now = kith_atom_lie(atom);
    return now->kind != before.kind || now->by < before.by ||
           now->by > before.by;
}

/* What changes nothing is dropped: a begin while another interval is in force,
 * an end that is not the last; of a factor, what leaves the product as it was.
 * The product is formed anew at every change: exact, no division. */
static enum kith_err sweep_subject(struct entry *entries, uint32_t count)
{
    struct active *active = malloc(count * sizeof *active);
    if (active == NULL)
        return KITH_ENOMEM;
    double now = 1;
    struct kith_lie lie = {.by = 1};
    uint32_t active_count = 0;
    for (uint32_t i = 0; i < count; i++) {
        struct kith_atom *const atom = &entries[i].atom;
        if (atom->models > 0 || atom->sides != NULL)
            continue; /* nobody knows when it ends; or each link does */
        active_count = active_change(active, active_count, atom);
        if (atom->fault->effect == KITH_EFFECT_LIE) {
            entries[i].keep = sweep_lie(active, active_count, atom, &lie);
            continue;
        }
        entries[i].keep = active_count == (atom->begins ? 1 : 0);
        if (!kith_fault_has_factor(atom->fault))
            continue;
        double product = 1;
        for (uint32_t k = 0; k < active_count; k++)
            product *= active[k].factor;
        entries[i].keep = product > now || product < now;
        atom->factor = now = product;
        atom->begins = product > 1;
    }
    free(active);
    return KITH_OK;
}

/* Where other statements say all that it says it is left out; of too many links
 * nobody looks. */
static bool is_kept(const struct entry *entry)
{
    struct kith_atom_walk walk = {.atom = &entry->atom};
    struct kith_atom one;
    return entry->keep &&
           (entry->atom.sides == NULL || kith_atom_next(&walk, &one));
}

static enum kith_err sweep(struct entry *entries, uint32_t count)
{
    enum kith_err err = KITH_OK;
    for (uint32_t i = 0; i < count && err == KITH_OK;) {
        uint32_t end = i + 1;
        while (end < count && compare_subject(&entries[i], &entries[end]) == 0)
            end++;
        err = sweep_subject(entries + i, end - i);
        i = end;
    }
    return err;
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
            if (is_kept(&entries[i]))
                atoms->list[kept++] = entries[i].atom;
        atoms->count = kept;
    }
    free(entries);
    return err;
}

void kith_atoms_free(struct kith_atom *list, struct kith_sides *sides)
{
    free(list);
    kith_sides_free(sides);
}

uint64_t kith_fault_entity(const char *fault, const char *target,
                           const char *at, uint32_t twin)
{
    uint64_t hash = kith_hash_bytes(KITH_HASH_START, fault, strlen(fault));
    hash = kith_hash_bytes(hash, target, strlen(target));
    hash = kith_hash_bytes(hash, at, strlen(at));
    return kith_hash_word(hash, twin);
}
