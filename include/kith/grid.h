/* Grids of modular formats (src/gossip/format/modular.h): step numbers, and
 * what a grid is made for. For CPUs and kernels alike: products and quotients
 * alone, each rounded, so the same bits from both. Test: unit/test_modular.c */
#ifndef KITH_GRID_H
#define KITH_GRID_H

#include <string.h>

#include "kith/residues.h"

#ifndef KITH_GRID_FUNCTION
#define KITH_GRID_FUNCTION static inline
#endif

/* Step numbers: quarters of octaves from 2^-50 on, and "no number". */
enum { KITH_GRID_STEPS_MAX = 254, KITH_GRID_NO_STEP = 255 };
#define KITH_GRID_OCTAVE_LEAST ((uint32_t)-50)
#define KITH_GRID_GROWTH 1.5f

KITH_GRID_FUNCTION float kith_grid_step(uint32_t number)
{
    static const float quarters[] = {0x1p0f, 0x1.306fe0p0f, 0x1.6a09e6p0f,
                                     0x1.ae89fap0f};
    const uint32_t word = (number / 4 + 127 + KITH_GRID_OCTAVE_LEAST) << 23;
    float octave;
    memcpy(&octave, &word, sizeof octave);
    return quarters[number % 4] * octave;
}

/* How many times the reach is readable: at 4 bits a step is a good part of it,
 * and what is seen of a distance errs on the far side; 8 bits leave room. */
KITH_GRID_FUNCTION float kith_grid_margin(unsigned bits)
{
    return bits == 4 ? 2 : 16;
}

KITH_GRID_FUNCTION float kith_grid_step_of_reach(unsigned bits, float reach)
{
    return kith_grid_margin(bits) * reach / (float)((1 << (bits - 1)) - 1);
}

KITH_GRID_FUNCTION float kith_grid_reach_of(unsigned bits, float step)
{
    return step * (float)((1 << (bits - 1)) - 1) / kith_grid_margin(bits);
}

/* Of no number, a step beside which nothing is read. */
KITH_GRID_FUNCTION struct kith_residue_head kith_grid_head(uint32_t word)
{
    const uint32_t number = word >> 24;
    struct kith_residue_head head;
    head.step = number == KITH_GRID_NO_STEP ? NAN : kith_grid_step(number);
    head.hash = word & KITH_RESIDUE_HASH_MASK;
    return head;
}

/* The least step of at least that size. */
KITH_GRID_FUNCTION uint32_t kith_grid_step_for(float least)
{
    uint32_t word;
    if (!(least < INFINITY))
        return KITH_GRID_NO_STEP;
    if (least <= kith_grid_step(0))
        return 0;
    memcpy(&word, &least, sizeof word);
    uint32_t number = 4 * ((word >> 23) - 127 - KITH_GRID_OCTAVE_LEAST);
    while (number <= KITH_GRID_STEPS_MAX && kith_grid_step(number) < least)
        number++;
    return number < KITH_GRID_NO_STEP ? number : (uint32_t)KITH_GRID_NO_STEP;
}

/* Where neither reads the other the finer of both grids grows, and where one is
 * coarser than any value it shrinks. */
KITH_GRID_FUNCTION float kith_grid_next(unsigned bits, float found, float own,
                                        float theirs)
{
    if (found == KITH_RESIDUE_COARSE)
        return own >= theirs ? found : KITH_RESIDUE_UNREAD;
    return own <= theirs ? -KITH_GRID_GROWTH * kith_grid_reach_of(bits, own)
                         : found;
}

#endif
