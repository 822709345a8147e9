/* partition: traffic between two groups stalls; it is not refused, so that
 * neither side is told.
 *
 *   A <-> B   both ways        A -> B   only what A sends to B */
#include "expand.h"

#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct sides {
    uint8_t *from, *to; /* (peers) */
    bool both_ways;
};

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

static enum kith_err cut(const struct kith_fault_statement *statement,
                         kith_ns from_ns, kith_ns to_ns, uint32_t i, uint32_t j,
                         struct kith_atoms *atoms)
{
    struct kith_atom atom = {.at_ns = from_ns,
                             .kind = KITH_FAULT_CUT,
                             .peer = i,
                             .other = j,
                             .factor = 1,
                             .statement = statement->index};
    const enum kith_err err = kith_atoms_add(atoms, &atom);
    if (err != KITH_OK || to_ns == KITH_NEVER)
        return err;
    atom.at_ns = to_ns;
    atom.kind = KITH_FAULT_HEAL;
    return kith_atoms_add(atoms, &atom);
}

static enum kith_err cut_sides(const struct kith_fault_statement *statement,
                               const struct sides *sides, struct kith_rng *rng,
                               struct kith_atoms *atoms)
{
    const kith_ns from_ns = kith_spread_draw(&statement->at, rng);
    const kith_ns to_ns =
        statement->duration.kind == KITH_SPREAD_NONE
            ? KITH_NEVER
            : from_ns + kith_spread_draw(&statement->duration, rng);
    enum kith_err err = KITH_OK;
    for (uint32_t i = 0; i < statement->peers; i++)
        for (uint32_t j = 0; sides->from[i] && j < statement->peers; j++) {
            if (!sides->to[j] || i == j)
                continue;
            err = cut(statement, from_ns, to_ns, i, j, atoms);
            if (err == KITH_OK && sides->both_ways)
                err = cut(statement, from_ns, to_ns, j, i, atoms);
            if (err != KITH_OK) /* KITH_ATOMS_MAX bounds both loops */
                return err;
        }
    return err;
}

static enum kith_err
partition_expand(const struct kith_fault_statement *statement,
                 struct kith_atoms *atoms, char *error)
{
    char left[sizeof statement->target];
    char *right;
    struct sides sides = {0};
    memcpy(left, statement->target, sizeof left);
    enum kith_err err = split_target(left, &right, &sides.both_ways, error);
    if (err != KITH_OK)
        return err;
    sides.from = malloc(statement->peers);
    sides.to = malloc(statement->peers);
    if (sides.from == NULL || sides.to == NULL) {
        err = KITH_ENOMEM;
        goto out;
    }
    struct kith_rng rng;
    kith_rng_init(&rng, statement->seed, KITH_STREAM_FAULT, statement->entity);
    err = kith_selector_parse(left, statement->peers, &rng, sides.from, error);
    if (err == KITH_OK)
        err =
            kith_selector_parse(right, statement->peers, &rng, sides.to, error);
    if (err == KITH_OK)
        err = cut_sides(statement, &sides, &rng, atoms);
out:
    free(sides.from);
    free(sides.to);
    return err;
}

extern const struct kith_fault kith_fault_partition;
const struct kith_fault kith_fault_partition = {
    .name = "partition",
    .summary = "traffic between two groups stalls, one way or both",
    .paper = "Gilbert, Lynch, SIGACT News 2002 (the model)",
    .between = true,
    .keys = KITH_FAULT_KEY_FOR,
    .expand = partition_expand,
};
