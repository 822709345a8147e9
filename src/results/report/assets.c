/* The page's script and style, and dygraphs, as bytes of the program.
 *
 * The assembler's .incbin reads them at build time: no generated source, no
 * xxd, and an edit of page.js needs no compiler of its own. */
#include "src/results/report/assets.h"

#define KITH_ASSET(name, path)                                                 \
    __asm__(".section .rodata\n"                                               \
            ".global kith_asset_" name "_start\n"                              \
            ".global kith_asset_" name "_end\n"                                \
            "kith_asset_" name "_start:\n"                                     \
            ".incbin \"" path "\"\n"                                           \
            "kith_asset_" name "_end:\n"                                       \
            ".byte 0\n"                                                        \
            ".previous\n")

KITH_ASSET("dygraph_script", KITH_DYGRAPHS "/dygraph.min.js");
KITH_ASSET("dygraph_style", KITH_DYGRAPHS "/dygraph.min.css");
KITH_ASSET("dygraph_licence", KITH_REPORT_SOURCE "/dygraphs-licence.txt");
KITH_ASSET("page_script", KITH_REPORT_SOURCE "/page.js");
KITH_ASSET("page_style", KITH_REPORT_SOURCE "/page.css");

#define KITH_ASSET_READ(name)                                                  \
    extern const char kith_asset_##name##_start[], kith_asset_##name##_end[];  \
    struct kith_asset kith_asset_##name(void)                                  \
    {                                                                          \
        return (struct kith_asset){                                            \
            kith_asset_##name##_start,                                         \
            (size_t)(kith_asset_##name##_end - kith_asset_##name##_start)};    \
    }                                                                          \
    struct kith_asset kith_asset_##name(void)

KITH_ASSET_READ(dygraph_script);
KITH_ASSET_READ(dygraph_style);
KITH_ASSET_READ(dygraph_licence);
KITH_ASSET_READ(page_script);
KITH_ASSET_READ(page_style);
