/* The kernels of backend cpu with AVX2. Compiled for that instruction set
 * whatever the build's flags say; used where the CPU has it. */
#include "cpu_image.h"
#include "cpu_text.h"

#ifdef KITH_CPU_X86
#include <float.h>
#include <immintrin.h>
#include <math.h>
#include <string.h>

#include "kith/exp_log.h"

static bool avx2_supported(void)
{
    return __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma");
}

#ifdef __clang__
#pragma clang attribute push(__attribute__((target("avx2,fma"))),              \
                             apply_to = function)
#else
#pragma GCC push_options
#pragma GCC target("avx2,fma")
#endif

#define LANES 8
#define F16_SET "f16_avx2.h"
#define VARIANT kith_cpu_avx2
#define NAME "avx2"
#define SUPPORTED avx2_supported
#define FUSE 6
#define LINE_1 6
#define LINE_2 0
#define TILE_ROWS 6
#define TILE_WIDE 1
#include "cpu_variant.inc.h"

#ifdef __clang__
#pragma clang attribute pop
#else
#pragma GCC pop_options
#endif
#endif
