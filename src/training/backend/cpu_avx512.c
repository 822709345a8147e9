/* The kernels of backend cpu with AVX-512. Compiled for that instruction set
 * whatever the build's flags say; used where the CPU has it. */
#include "cpu_image.h"
#include "cpu_text.h"

#ifdef KITH_CPU_X86
#include <float.h>
#include <immintrin.h>
#include <math.h>
#include <string.h>

#include "kith/exp_log.h"

static bool avx512_supported(void)
{
    return __builtin_cpu_supports("avx512f");
}

#ifdef __clang__
#pragma clang attribute push(__attribute__((target("avx512f"))),               \
                             apply_to = function)
#else
#pragma GCC push_options
#pragma GCC target("avx512f")
#endif

#define LANES 16
#define F16_SET "f16_avx512.h"
#define VARIANT kith_cpu_avx512
#define NAME "avx512"
#define SUPPORTED avx512_supported
#define FUSE 8
#define LINE_1 16
#define LINE_2 14
#define TILE_ROWS 8
#define TILE_WIDE 2
#include "cpu_variant.inc.h"

#ifdef __clang__
#pragma clang attribute pop
#else
#pragma GCC pop_options
#endif
#endif
