/* Goal: no bytes make the safetensors header misbehave; what is accepted names
 * every byte of the data exactly once, and is read within its bounds. The input
 * is the file after its length prefix, which is mostly made right: a wrong one
 * is one comparison. */
#include <stdlib.h>
#include <string.h>

#include "kith/assert.h"
#include "kith/checkpoint.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

/* Names are in order and their sizes add up to all of the data. */
static void check(const struct kith_safetensors *file, const uint8_t *bytes,
                  size_t size, size_t header)
{
    size_t sum = 0;
    double out[16];
    for (size_t i = 0; i < file->tensor_count; i++) {
        const struct kith_tensor_entry *tensor = &file->tensors[i];
        const size_t n = tensor->bytes / kith_dtype_bytes(tensor->dtype);
        KITH_ASSERT(tensor->offset >= header);
        KITH_ASSERT(tensor->offset + tensor->bytes <= size);
        KITH_ASSERT(kith_safetensors_find(file, tensor->name) == tensor);
        kith_dtype_read(tensor->dtype, n < 16 ? n : 16, bytes + tensor->offset,
                        out);
        sum += tensor->bytes;
    }
    KITH_ASSERT(sum == size - header);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    char error[KITH_CHECKPOINT_ERROR_BYTES] = "";
    struct kith_safetensors file;
    const uint8_t *brace = size == 0 ? NULL : memchr(data, 0, size);
    /* The header ends at the first zero byte: data begin there. */
    const size_t length = brace == NULL ? size : (size_t)(brace - data);
    uint8_t *bytes = malloc(8 + size);
    KITH_ASSERT(bytes != NULL);
    for (unsigned k = 0; k < 8; k++)
        bytes[k] = (uint8_t)((uint64_t)length >> (8 * k));
    if (size > 0)
        memcpy(bytes + 8, data, size);
    if (kith_safetensors_parse(bytes, 8 + size, &file, error) == KITH_OK) {
        check(&file, bytes, 8 + size, 8 + length);
        kith_safetensors_free(&file);
    } else {
        KITH_ASSERT(error[0] != '\0' && file.tensors == NULL);
    }
    /* The same bytes as a whole file, length and all. */
    if (kith_safetensors_parse(data, size, &file, error) == KITH_OK)
        kith_safetensors_free(&file);
    free(bytes);
    return 0;
}
