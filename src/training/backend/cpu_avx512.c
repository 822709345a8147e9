/* The loops of backend cpu with AVX-512. Compiled for that
 * instruction set whatever the build's flags say; used where the CPU has it. */
#include "cpu.h"
#include "cpu_image.h"

#ifdef KITH_CPU_X86
#include <immintrin.h>
#include <string.h>

#ifdef __clang__
#pragma clang attribute push(__attribute__((target("avx512f"))),               \
                             apply_to = function)
#else
#pragma GCC push_options
#pragma GCC target("avx512f")
#endif

#include "f16_avx512.h"

static bool avx512_supported(void)
{
    return __builtin_cpu_supports("avx512f");
}

#define VARIANT kith_cpu_avx512
#define IMAGE kith_cpu_image_avx512
#define TEXT "avx512"
#define SUPPORTED avx512_supported
#define FUSE_WIDE
#include "cpu_loops.inc.h"

#ifdef __clang__
#pragma clang attribute pop
#else
#pragma GCC pop_options
#endif
#endif
