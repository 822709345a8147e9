/* Goal: show that the fuzzing harness finds what there is to find. The target
 * fails on four bytes that only feedback from coverage can reach; fuzz.sh
 * wants it to fail. */
#include <stddef.h>
#include <stdint.h>

#include "kith/assert.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    if (size >= 4 && data[0] == 'k' && data[1] == 'i' && data[2] == 't')
        KITH_ASSERT(data[3] != 'h');
    return 0;
}
