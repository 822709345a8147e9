/* One interval on each peer that a selector names. */
#include "expand.h"

#include <stdio.h>
#include <stdlib.h>

#include "kith/hash.h"

static enum kith_err expand_peer(const struct kith_fault_statement *statement,
                                 struct kith_atom *atom,
                                 enum kith_fault_kind end,
                                 const struct kith_spread *length,
                                 struct kith_atoms *atoms)
{
    /* A stream per peer: choosing other peers shifts nobody's times. */
    struct kith_rng rng;
    kith_rng_init(&rng, statement->seed, KITH_STREAM_FAULT,
                  kith_hash_word(statement->entity, atom->peer + UINT64_C(1)));
    atom->at_ns = kith_spread_draw(&statement->at, &rng);
    enum kith_err err = kith_atoms_add(atoms, atom);
    if (err != KITH_OK || length->kind == KITH_SPREAD_NONE)
        return err;
    struct kith_atom last = *atom;
    last.kind = end;
    last.factor = 1;
    last.at_ns += kith_spread_draw(length, &rng);
    return kith_atoms_add(atoms, &last);
}

enum kith_err kith_fault_expand(const struct kith_fault_statement *statement,
                                enum kith_fault_kind begin,
                                enum kith_fault_kind end,
                                const struct kith_spread *length, double factor,
                                struct kith_atoms *atoms, char *error)
{
    uint8_t *chosen = malloc(statement->peers);
    if (chosen == NULL)
        return KITH_ENOMEM;
    struct kith_rng rng;
    kith_rng_init(&rng, statement->seed, KITH_STREAM_FAULT, statement->entity);
    enum kith_err err = kith_selector_parse(statement->target, statement->peers,
                                            &rng, chosen, error);
    for (uint32_t i = 0; i < statement->peers && err == KITH_OK; i++) {
        if (!chosen[i])
            continue;
        struct kith_atom atom = {.kind = begin,
                                 .peer = i,
                                 .other = KITH_NOBODY,
                                 .factor = factor,
                                 .statement = statement->index};
        err = expand_peer(statement, &atom, end, length, atoms);
    }
    free(chosen);
    return err;
}
