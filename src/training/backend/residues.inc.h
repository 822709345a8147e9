/* Blocks of modular formats (kith/residues.h) for one instruction set. All of
 * it is IEEE single precision without contraction: the same bits from each. */
/* Added to a number below 2^22 it leaves the nearest integer in the low bits.
 */
#define RESIDUE_TO_INTEGER 0x1.8p23f

struct residue_numbers {
    _Alignas(64) int32_t n[KITH_RESIDUE_BLOCK];
};

/* INFINITY where a value is no number. */
static float residue_largest(const struct kith_residue_block *block)
{
    uint32_t most = 0;
    float value;
    for (size_t k = 0; k < KITH_RESIDUE_BLOCK; k++) {
        uint32_t word;
        memcpy(&word, &block->v[k], sizeof word);
        word &= 0x7fffffffu;
        most = word > most ? word : most;
    }
    memcpy(&value, &most, sizeof value);
    return isfinite(value) ? value : INFINITY;
}

/* round(v / step), ties to even; of values below KITH_RESIDUE_NUMBERS_BELOW
 * steps. */
static void residue_to_numbers(const struct kith_residue_block *block,
                               float inverse, struct residue_numbers *out)
{
    for (size_t k = 0; k < KITH_RESIDUE_BLOCK; k++) {
        const float shifted = block->v[k] * inverse + RESIDUE_TO_INTEGER;
        int32_t word;
        memcpy(&word, &shifted, sizeof word);
        out->n[k] = word - 0x4b400000;
    }
}

static void residue_from_numbers(const struct residue_numbers *numbers,
                                 float step, struct kith_residue_block *out)
{
    for (size_t k = 0; k < KITH_RESIDUE_BLOCK; k++)
        out->v[k] = (float)numbers->n[k] * step;
}

/* Odd, and without a pattern: of three in a row the second is not the mean. */
static uint32_t residue_weight_of(uint32_t k)
{
    uint32_t weight = k * 0x9e3779b1u;
    weight = (weight ^ weight >> 15) * 0x85ebca6bu;
    return (weight ^ weight >> 13) | 1u;
}

/* Of the bits that stay at home. A negative number's upper bits are those of
 * its floor. */
static uint32_t residue_hash(unsigned bits,
                             const struct residue_numbers *numbers)
{
    uint32_t sum = 0;
    for (size_t k = 0; k < KITH_RESIDUE_BLOCK; k++) {
        const uint32_t upper = (uint32_t)(numbers->n[k] >> bits);
        sum += upper * residue_weight_of((uint32_t)k);
    }
    return sum & KITH_RESIDUE_HASH_MASK;
}

static void residue_write(unsigned bits, const struct residue_numbers *numbers,
                          uint8_t *out)
{
    if (bits == 8) {
        for (size_t k = 0; k < KITH_RESIDUE_BLOCK; k++)
            out[k] = (uint8_t)numbers->n[k];
        return;
    }
    for (size_t k = 0; k < KITH_RESIDUE_BLOCK / 2; k++)
        out[k] = (uint8_t)((numbers->n[k] & 15) |
                           (numbers->n[k + KITH_RESIDUE_BLOCK / 2] & 15) << 4);
}

/* n <- the nearest to n with these residues; false: one is as near on either
 * side. */
static bool residue_nearest(unsigned bits, const uint8_t *rests,
                            struct residue_numbers *numbers)
{
    const int32_t half = 1 << (bits - 1), mask = 2 * half - 1;
    struct residue_numbers rest;
    int32_t ties = 0;
    if (bits == 8)
        for (size_t k = 0; k < KITH_RESIDUE_BLOCK; k++)
            rest.n[k] = rests[k];
    else
        for (size_t k = 0; k < KITH_RESIDUE_BLOCK / 2; k++) {
            rest.n[k] = rests[k] & 15;
            rest.n[k + KITH_RESIDUE_BLOCK / 2] = rests[k] >> 4;
        }
    for (size_t k = 0; k < KITH_RESIDUE_BLOCK; k++) {
        const int32_t off = ((rest.n[k] - numbers->n[k] + half) & mask) - half;
        ties |= off == -half;
        numbers->n[k] += off;
    }
    return ties == 0;
}

/* Is every value of a below KITH_RESIDUE_NUMBERS_BELOW steps? */
static bool residue_fits(const struct kith_residue_block *block, float inverse)
{
    return residue_largest(block) * inverse < KITH_RESIDUE_NUMBERS_BELOW;
}

/* theirs <- what that block says, read beside ours. */
static bool residue_read_theirs(unsigned bits,
                                const struct kith_residue_head *head,
                                const uint8_t *rests,
                                const struct kith_residue_block *ours,
                                struct kith_residue_block *theirs)
{
    const float inverse = 1 / head->step;
    struct residue_numbers numbers;
    if (!residue_fits(ours, inverse))
        return false;
    residue_to_numbers(ours, inverse, &numbers);
    if (!residue_nearest(bits, rests, &numbers) ||
        residue_hash(bits, &numbers) != head->hash)
        return false;
    residue_from_numbers(&numbers, head->step, theirs);
    return true;
}

/* Will the other end, which has theirs, read ours? */
static bool residue_reads_ours(unsigned bits,
                               const struct kith_residue_head *head,
                               const struct kith_residue_block *ours,
                               const struct kith_residue_block *theirs)
{
    const float inverse = 1 / head->step;
    const int32_t half = 1 << (bits - 1);
    struct residue_numbers own, other;
    int32_t most = 0;
    if (!residue_fits(theirs, inverse))
        return false;
    residue_to_numbers(ours, inverse, &own);
    residue_to_numbers(theirs, inverse, &other);
    for (size_t k = 0; k < KITH_RESIDUE_BLOCK; k++) {
        const int32_t off = own.n[k] - other.n[k];
        const int32_t apart = off < 0 ? -off : off;
        most = apart > most ? apart : most;
    }
    return most < half;
}

static float residue_furthest(const struct kith_residue_block *a,
                              const struct kith_residue_block *b)
{
    struct kith_residue_block difference;
    for (size_t k = 0; k < KITH_RESIDUE_BLOCK; k++)
        difference.v[k] = a->v[k] - b->v[k];
    return residue_largest(&difference);
}

/* Rounding would take more than there is. Where both ends read each other both
 * have the same four numbers. */
static bool residue_is_coarse(const struct kith_residue_head *head,
                              const struct kith_residue_head *own,
                              const struct kith_residue_block *ours,
                              const struct kith_residue_block *theirs)
{
    const float step = head->step > own->step ? head->step : own->step;
    return residue_largest(ours) < step && residue_largest(theirs) < step;
}

static uint32_t residue_pack(unsigned bits, float step,
                             struct kith_residue_block *block, uint8_t *rests)
{
    struct residue_numbers numbers;
    residue_to_numbers(block, 1 / step, &numbers);
    residue_from_numbers(&numbers, step, block);
    residue_write(bits, &numbers, rests);
    return residue_hash(bits, &numbers);
}

static float residue_unpack(unsigned bits, const struct kith_residue_head *head,
                            const uint8_t *rests,
                            const struct kith_residue_head *own,
                            const struct kith_residue_block *ours,
                            struct kith_residue_block *theirs)
{
    if (!residue_read_theirs(bits, head, rests, ours, theirs))
        return KITH_RESIDUE_UNREAD;
    if (residue_is_coarse(head, own, ours, theirs))
        return KITH_RESIDUE_COARSE;
    const float apart = residue_furthest(theirs, ours);
    return residue_reads_ours(bits, own, ours, theirs) ? apart : -apart;
}

static const struct kith_residues residues = {
    .largest = residue_largest,
    .pack = residue_pack,
    .unpack = residue_unpack,
};
