/* The table of faults, generated from faults.def. */
#include "kith/fault.h"

#include <stddef.h>
#include <string.h>

#include "kith/hash.h"

#define X(name) extern const struct kith_fault kith_fault_##name;
#include "faults.def"
#undef X

const struct kith_fault *const kith_faults[] = {
#define X(name) &kith_fault_##name,
#include "faults.def"
#undef X
    NULL};

const struct kith_fault *kith_fault_find(const char *name)
{
    for (size_t i = 0; kith_faults[i] != NULL; i++)
        if (strcmp(kith_faults[i]->name, name) == 0)
            return kith_faults[i];
    return NULL;
}

const char *kith_fault_name(enum kith_fault_kind kind)
{
    static const char *const names[] = {
#define KITH_X(name, text) text,
        KITH_FAULTS(KITH_X)
#undef KITH_X
    };
    return (unsigned)kind < KITH_FAULT_COUNT ? names[kind] : "unknown";
}

uint64_t kith_fault_entity(const char *fault, const char *target,
                           const char *at, uint32_t twin)
{
    uint64_t hash = kith_hash_bytes(KITH_HASH_START, fault, strlen(fault));
    hash = kith_hash_bytes(hash, target, strlen(target));
    hash = kith_hash_bytes(hash, at, strlen(at));
    return kith_hash_word(hash, twin);
}
