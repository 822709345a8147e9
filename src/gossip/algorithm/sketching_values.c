/* Exact values at the candidates of a sum of sketches: see sketching.h. */
#include <math.h>
#include <string.h>

#include "kith/assert.h"
#include "kith/hash.h"
#include "sketching.h"

/* Over the candidates, in their order. */
static uint64_t fingerprint(const struct kith_algebra *algebra)
{
    const void *const born = algebra->vectors[FEEDBACK_BORN];
    uint64_t hash = KITH_HASH_START;
    for (size_t i = 0; i < algebra->dim; i++)
        if (kith_feedback_get(algebra, born, i) != FEEDBACK_ABSENT)
            hash = kith_hash_word(hash, i);
    return hash;
}

size_t kith_sketching_value_bytes(const struct kith_algebra *algebra)
{
    return sizeof(uint64_t) +
           kith_sketching_wanted(algebra) * algebra->backend->element_bytes;
}

void kith_sketching_write_values(struct kith_algebra *algebra)
{
    const uint64_t mine = fingerprint(algebra);
    char *const values = (char *)algebra->sent + sizeof mine;
    size_t n = 0;
    memcpy(algebra->sent, &mine, sizeof mine);
    for (size_t i = 0; i < algebra->dim; i++)
        if (kith_feedback_get(algebra, algebra->vectors[FEEDBACK_BORN], i) !=
            FEEDBACK_ABSENT)
            kith_feedback_put(
                algebra, values, n++,
                kith_feedback_get(algebra, algebra->vectors[FEEDBACK_LIST], i));
    KITH_ASSERT(n <= kith_sketching_wanted(algebra));
}

bool kith_sketching_are_ours(const struct kith_algebra *algebra)
{
    uint64_t theirs;
    memcpy(&theirs, algebra->received, sizeof theirs);
    return theirs == fingerprint(algebra);
}

bool kith_sketching_are_values_sane(const struct kith_algebra *algebra,
                                    double models)
{
    const char *const values =
        (const char *)algebra->received + sizeof(uint64_t);
    const size_t count = kith_sketching_wanted(algebra);
    size_t sane = 0;
    while (sane < count && fabs(kith_feedback_get(algebra, values, sane)) <=
                               models * FEEDBACK_VALUE_MAX)
        sane++;
    return sane == count;
}

void kith_sketching_add_values(struct kith_algebra *algebra)
{
    const char *const values =
        (const char *)algebra->received + sizeof(uint64_t);
    const void *const born = algebra->vectors[FEEDBACK_BORN];
    void *const sums = algebra->vectors[FEEDBACK_LIST];
    size_t n = 0;
    for (size_t i = 0; i < algebra->dim; i++)
        if (kith_feedback_get(algebra, born, i) != FEEDBACK_ABSENT)
            kith_feedback_put(algebra, sums, i,
                              kith_feedback_get(algebra, sums, i) +
                                  kith_feedback_get(algebra, values, n++));
    KITH_ASSERT(n <= kith_sketching_wanted(algebra));
}
