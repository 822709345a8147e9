/* Files of the source tree as bytes of the program.
 *
 * The assembler's .incbin reads them at build time: no generated source, no
 * tool, and an edit of a page or of a query needs no compiler of its own. */
#ifndef KITH_ASSET_H
#define KITH_ASSET_H

#include <stddef.h>

struct kith_asset {
    const char *bytes; /* a NUL follows them */
    size_t size;
};

/* Defines `struct kith_asset kith_asset_NAME(void)` for this file alone. `path`
 * is a string. */
#define KITH_ASSET(name, path)                                                 \
    __asm__(".section .rodata\n"                                               \
            ".global kith_asset_" #name "_start\n"                             \
            ".global kith_asset_" #name "_end\n"                               \
            "kith_asset_" #name "_start:\n"                                    \
            ".incbin \"" path "\"\n"                                           \
            "kith_asset_" #name "_end:\n"                                      \
            ".byte 0\n"                                                        \
            ".previous\n");                                                    \
    extern const char kith_asset_##name##_start[], kith_asset_##name##_end[];  \
    static struct kith_asset kith_asset_##name(void)                           \
    {                                                                          \
        return (struct kith_asset){                                            \
            kith_asset_##name##_start,                                         \
            (size_t)(kith_asset_##name##_end - kith_asset_##name##_start)};    \
    }                                                                          \
    _Static_assert(1, "a semicolon may follow")

#endif
