/* The loops of backend cpu with AVX2. Compiled for that
 * instruction set whatever the build's flags say; used where the CPU has it. */
#include "cpu.h"
#include "cpu_image.h"

#ifdef KITH_CPU_X86
#include <immintrin.h>
#include <string.h>

#ifdef __clang__
#pragma clang attribute push(__attribute__((target("avx2,fma"))),              \
                             apply_to = function)
#else
#pragma GCC push_options
#pragma GCC target("avx2,fma")
#endif

#include "f16_avx2.h"

static bool avx2_supported(void)
{
    return __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma");
}

#define VARIANT kith_cpu_avx2
#define IMAGE kith_cpu_image_avx2
#define TEXT "avx2"
#define SUPPORTED avx2_supported
#include "cpu_loops.inc.h"

#ifdef __clang__
#pragma clang attribute pop
#else
#pragma GCC pop_options
#endif
#endif
