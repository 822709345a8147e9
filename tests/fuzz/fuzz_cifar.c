/* Goal: the CIFAR-10 parser accepts whole records with labels below 10 and
 * nothing else. Method: its rule written out once more. Inputs are stretched:
 * a record has 3,073 bytes, of which the label alone decides, so one byte in
 * stands for a record, and the last one for what is missing at the end. */
#include <stdlib.h>
#include <string.h>

#include "kith/assert.h"
#include "kith/data.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

enum { RECORD_BYTES = 3073, RECORDS_MAX = 6 };

static void check(const uint8_t *bytes, size_t size)
{
    size_t records = SIZE_MAX;
    bool good = size > 0 && size % RECORD_BYTES == 0;
    for (size_t at = 0; at < size && good; at += RECORD_BYTES)
        good = bytes[at] < 10;
    const enum kith_err err = kith_cifar_parse(bytes, size, &records);
    KITH_ASSERT(err == (good ? KITH_OK : KITH_EPARSE));
    KITH_ASSERT(records == (good ? size / RECORD_BYTES : 0));
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    check(data, size);
    if (size == 0)
        return 0;
    const size_t records = size - 1 < RECORDS_MAX ? size - 1 : RECORDS_MAX;
    const size_t whole = records * RECORD_BYTES;
    const size_t missing = data[size - 1] < whole ? data[size - 1] : whole;
    /* Exactly as long as it is said to be: reading past it is seen. */
    uint8_t *bytes = malloc(whole - missing + 1);
    KITH_ASSERT(bytes != NULL);
    memset(bytes, 0xff, whole - missing + 1);
    for (size_t i = 0; i < records; i++)
        if (i * RECORD_BYTES < whole - missing)
            bytes[i * RECORD_BYTES] = data[i];
    uint8_t *exact = realloc(bytes, whole - missing > 0 ? whole - missing : 1);
    KITH_ASSERT(exact != NULL);
    check(exact, whole - missing);
    free(exact);
    return 0;
}
