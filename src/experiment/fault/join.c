/* join: a peer begins at `at`, and is not there before: with a time that is
 * drawn for each, at: uniform(10s, 11s), many of them at once are a storm.
 *
 * Atoms are those of crash, from the run's beginning: overlaps are merged with
 * its own. */
#include <stdlib.h>

#include "kith/assert.h"
#include "kith/fault.h"
#include "kith/hash.h"

extern const struct kith_fault kith_fault_crash, kith_fault_join;

static enum kith_err add_absence(const struct kith_fault_statement *statement,
                                 struct kith_atoms *atoms, kith_id peer,
                                 kith_ns to_ns)
{
    struct kith_atom atom = {.fault = &kith_fault_crash,
                             .begins = true,
                             .peer = peer,
                             .other = KITH_NOBODY,
                             .factor = 1,
                             .statement = statement->index};
    KITH_ASSERT(to_ns > 0);
    enum kith_err err = kith_atoms_add(atoms, &atom);
    atom.begins = false;
    atom.arrives = true;
    atom.at_ns = to_ns;
    if (err == KITH_OK)
        err = kith_atoms_add(atoms, &atom);
    return err;
}

static enum kith_err expand(const struct kith_fault_statement *statement,
                            struct kith_atoms *atoms, char *error)
{
    uint8_t *chosen = malloc(statement->peers);
    struct kith_rng rng;
    if (chosen == NULL)
        return KITH_ENOMEM;
    kith_rng_init(&rng, statement->seed, KITH_STREAM_FAULT, statement->entity);
    enum kith_err err = kith_selector_parse(statement->target, statement->peers,
                                            &rng, chosen, error);
    for (kith_id i = 0; err == KITH_OK && i < statement->peers; i++) {
        if (!chosen[i])
            continue;
        /* A stream per peer: choosing other peers shifts nobody's times. */
        kith_rng_init(&rng, statement->seed, KITH_STREAM_FAULT,
                      kith_hash_word(statement->entity, i + UINT64_C(1)));
        const kith_ns to_ns = kith_spread_draw(&statement->at, &rng);
        if (to_ns > 0)
            err = add_absence(statement, atoms, i, to_ns);
    }
    free(chosen);
    return err;
}

const struct kith_fault kith_fault_join = {
    .name = "join",
    .summary = "peers begin at `at`, and are not there before",
    .paper = "Stutzbach, Rejaie, IMC 2006 (arrivals)",
    .effect = KITH_EFFECT_STOP,
    .begin = {"crash", 0},
    .end = {"restart", 1},
    .expand = expand,
};
