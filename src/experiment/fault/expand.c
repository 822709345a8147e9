/* From a statement's target to its atoms: the effect of the fault begins on
 * every peer that a selector names, or on all links between two groups at once,
 * and ends after the statement's length. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "kith/assert.h"
#include "kith/fault.h"
#include "kith/hash.h"

/* The atom, and where it ends (to_ns; KITH_NEVER: it does not) one of an end.
 */
static enum kith_err add_interval(const struct kith_fault *fault,
                                  const struct kith_fault_statement *statement,
                                  struct kith_atom atom, kith_ns to_ns,
                                  struct kith_atoms *atoms)
{
    KITH_ASSERT(!fault->between);
    atom.fault = fault;
    atom.begins = true;
    atom.factor = kith_fault_has_factor(fault) ? statement->by : 1;
    atom.models = statement->models;
    if (fault->effect == KITH_EFFECT_LIE)
        atom.lie = fault->keys & KITH_FAULT_TAKES(KIND) ? statement->lie
                                                        : KITH_LIE_HUGE;
    const enum kith_err err = kith_atoms_add(atoms, &atom);
    if (err != KITH_OK || to_ns == KITH_NEVER)
        return err;
    atom.begins = false;
    atom.at_ns = to_ns;
    atom.factor = 1;
    return kith_atoms_add(atoms, &atom);
}

/* When the interval begins, and *to_ns when it ends. */
static kith_ns draw_interval(const struct kith_fault_statement *statement,
                             struct kith_rng *rng, kith_ns *to_ns)
{
    const kith_ns from_ns = kith_spread_draw(&statement->at, rng);
    *to_ns = statement->length.kind == KITH_SPREAD_NONE
                 ? KITH_NEVER
                 : from_ns + kith_spread_draw(&statement->length, rng);
    return from_ns;
}

static enum kith_err expand_peers(const struct kith_fault *fault,
                                  const struct kith_fault_statement *statement,
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
        struct kith_atom atom = {
            .peer = i, .other = KITH_NOBODY, .statement = statement->index};
        kith_ns to_ns;
        /* A stream per peer: choosing other peers shifts nobody's times. */
        kith_rng_init(&rng, statement->seed, KITH_STREAM_FAULT,
                      kith_hash_word(statement->entity, i + UINT64_C(1)));
        atom.at_ns = draw_interval(statement, &rng, &to_ns);
        err = add_interval(fault, statement, atom, to_ns, atoms);
    }
    free(chosen);
    return err;
}

/* "A <-> B": A's text and B's, in place. */
static enum kith_err split_target(char *target, char **right, bool *both_ways,
                                  char *error)
{
    char *arrow = strstr(target, "<->");
    *both_ways = arrow != NULL;
    size_t width = 3;
    if (arrow == NULL) {
        arrow = strstr(target, "->");
        width = 2;
    }
    if (arrow == NULL) {
        snprintf(error, KITH_FAULT_ERROR_BYTES,
                 "found \"%.100s\"; allowed: SELECTOR <-> SELECTOR or "
                 "SELECTOR -> SELECTOR, such as \"peer(0..3) <-> peer(4..7)\"",
                 target);
        return KITH_EPARSE;
    }
    *right = arrow + width;
    *arrow = '\0';
    return KITH_OK;
}

static enum kith_err expand_links(const struct kith_fault *fault,
                                  const struct kith_fault_statement *statement,
                                  struct kith_atoms *atoms, char *error)
{
    char left[sizeof statement->target];
    char *right;
    struct kith_sides sides = {.fault = fault,
                               .statement = statement->index,
                               .peers = statement->peers};
    memcpy(left, statement->target, sizeof left);
    enum kith_err err = split_target(left, &right, &sides.both_ways, error);
    if (err != KITH_OK)
        return err;
    uint8_t *const first = malloc(2 * (size_t)statement->peers);
    if (first == NULL)
        return KITH_ENOMEM;
    uint8_t *const second = first + statement->peers;
    struct kith_rng rng;
    kith_rng_init(&rng, statement->seed, KITH_STREAM_FAULT, statement->entity);
    err = kith_selector_parse(left, statement->peers, &rng, first, error);
    if (err == KITH_OK)
        err = kith_selector_parse(right, statement->peers, &rng, second, error);
    if (err == KITH_OK) {
        sides.from_ns = draw_interval(statement, &rng, &sides.to_ns);
        err = kith_atoms_add_sides(atoms, &sides, first, second);
        if (err == KITH_ELIMIT)
            snprintf(
                error, KITH_FAULT_ERROR_BYTES,
                "peers times statements of two sides are more than %u; take "
                "fewer statements",
                KITH_SIDE_PEERS_MAX);
    }
    free(first);
    return err;
}

enum kith_err kith_fault_expand(const struct kith_fault *fault,
                                const struct kith_fault_statement *statement,
                                struct kith_atoms *atoms, char *error)
{
    if (fault->expand != NULL)
        return fault->expand(statement, atoms, error);
    return fault->between ? expand_links(fault, statement, atoms, error)
                          : expand_peers(fault, statement, atoms, error);
}
