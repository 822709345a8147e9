/* Circulants: everybody's neighbours lie at the same distances. Shifts ascend,
 * so those that wrap round come first or last, in order: nothing is sorted. */
#include "topology_kinds.h"

uint32_t kith_shift_forward(uint32_t peers, kith_id self,
                            const uint32_t *shifts, uint32_t count,
                            kith_id *out)
{
    const uint32_t room = peers - self; /* shifts below it do not wrap */
    uint32_t found = 0;
    for (uint32_t i = 0; i < count; i++)
        if (shifts[i] >= room)
            out[found++] = shifts[i] - room;
    for (uint32_t i = 0; i < count && shifts[i] < room; i++)
        out[found++] = self + shifts[i];
    return found;
}

uint32_t kith_shift_backward(uint32_t peers, kith_id self,
                             const uint32_t *shifts, uint32_t count,
                             kith_id *out)
{
    uint32_t found = 0;
    for (uint32_t i = count; i-- > 0;)
        if (shifts[i] <= self)
            out[found++] = self - shifts[i];
    for (uint32_t i = count; i-- > 0;)
        if (shifts[i] > self)
            out[found++] = peers - (shifts[i] - self);
    return found;
}
