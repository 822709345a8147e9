/* What a caller's vectors may be: types, roles, sizes, and where they lie. See
 * kith/kith.h. Test: property/test_library_calls.c, integration/
 * test_python_device.sh */
#include "library.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

#include "kith/text.h"

/* More than any framework makes of a model. */
#define KITH_VECTORS_MAX 65536u

#define REFUSE(...)                                                            \
    (kith_text_fail(peer->error, sizeof peer->error, KITH_EINVAL,              \
                    __VA_ARGS__) == KITH_OK)

/* vectors[i] behind `sum` values of those before. */
static bool take_one(struct kith_handle *peer, const struct kith_vector *vector,
                     uint32_t i, uint64_t sum)
{
    static const enum kith_outside_dtype dtypes[] = {
        [KITH_FLOAT32] = KITH_OUTSIDE_FLOAT32,
        [KITH_BFLOAT16] = KITH_OUTSIDE_BFLOAT16,
        [KITH_FLOAT16] = KITH_OUTSIDE_FLOAT16};
    const bool is_buffer = vector->role == KITH_BUFFER;
    if ((vector->data == NULL && vector->count > 0) ||
        vector->dtype > KITH_FLOAT16 ||
        vector->count > KITH_PARAMETERS_MAX - sum)
        return REFUSE("vectors[%u]: data %p, count %" PRIu64
                      ", dtype %u; allowed: data, KITH_FLOAT32, KITH_BFLOAT16 "
                      "or KITH_FLOAT16, %.0f values in all",
                      i, vector->data, vector->count, vector->dtype,
                      (double)KITH_PARAMETERS_MAX);
    if (vector->role > KITH_BUFFER || (!is_buffer && peer->buffers > 0))
        return REFUSE("vectors[%u]: role %u; allowed: KITH_TRAINED, and behind "
                      "the last of those KITH_BUFFER",
                      i, vector->role);
    peer->buffers += is_buffer ? (uint32_t)vector->count : 0;
    peer->vectors[i] = (struct kith_outside){
        vector->data, (size_t)vector->count, dtypes[vector->dtype]};
    return true;
}

bool kith_handle_take(struct kith_handle *peer,
                      const struct kith_vector *vectors, uint32_t count)
{
    uint64_t sum = 0;
    if (vectors == NULL || count == 0 || count > KITH_VECTORS_MAX)
        return REFUSE("vectors: found %u; allowed: 1 to %u", count,
                      KITH_VECTORS_MAX);
    peer->vectors = calloc(count, sizeof *peer->vectors);
    if (peer->vectors == NULL)
        return REFUSE("out of memory");
    peer->count = count;
    for (uint32_t i = 0; i < count; sum += vectors[i].count, i++)
        if (!take_one(peer, &vectors[i], i, sum))
            return false;
    return sum > 0 || REFUSE("vectors: they have no values");
}

/* NULL: `data` may stand for vectors[i] there. */
static const char *misplaced(const struct kith_handle *peer, uint32_t i,
                             const void *data)
{
    const struct kith_outside *vector = &peer->vectors[i];
    if (vector->count == 0)
        return NULL;
    if ((uintptr_t)data % kith_outside_bytes(vector->dtype) != 0)
        return "its address is no multiple of a value's size";
    return peer->member.experiment.backend->outside->misplaced(data);
}

bool kith_handle_in_place(struct kith_handle *peer, const void *const *data)
{
    const bool on_device = peer->member.experiment.backend->outside != NULL;
    for (uint32_t i = 0; on_device && i < peer->count; i++) {
        const char *where =
            misplaced(peer, i, data == NULL ? peer->vectors[i].data : data[i]);
        if (where != NULL)
            return REFUSE("%s[%u]: options.memory is KITH_MEMORY_CUDA, but "
                          "%.600s",
                          data == NULL ? "vectors" : "kith_read_from(): data",
                          i, where);
    }
    return true;
}
