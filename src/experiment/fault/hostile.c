/* hostile: a certified member that sends what its `kind` says in place of its
 * model (kith/lie.h): as the attacks of tests/hostile/ that are about values
 * are called. It merges as if it were honest. */
#include "kith/fault.h"

#include <string.h>

const struct kith_lie_kind_record kith_lie_kinds[] = {
#define KITH_X(name, word, by, above, most) {(word), (by), (above), (most)},
    KITH_LIES(KITH_X)
#undef KITH_X
};

enum kith_lie_kind kith_lie_find(const char *name)
{
    unsigned kind = 0;
    while (kind < KITH_LIE_COUNT &&
           strcmp(kith_lie_kinds[kind].name, name) != 0)
        kind++;
    return (enum kith_lie_kind)kind;
}

extern const struct kith_fault kith_fault_hostile;
const struct kith_fault kith_fault_hostile = {
    .name = "hostile",
    .summary = "what the peer sends is a lie of that `kind`",
    .paper = "Blanchard et al., NIPS 2017 (Byzantine peers)",
    .keys = KITH_FAULT_TAKES(FOR) | KITH_FAULT_TAKES(BY) |
            KITH_FAULT_TAKES(MODELS) | KITH_FAULT_TAKES(KIND),
    .effect = KITH_EFFECT_LIE,
    .begin = {"hostile", 8},
    .end = {"hostile", 8},
};
