/* The kernels of cpu_text.h with AVX-512. Compiled for that instruction set
 * whatever the build's flags say; used where the CPU has it. */
#include "cpu_text.h"

#ifdef KITH_CPU_X86
#include <immintrin.h>
#include <math.h>
#include <string.h>

#ifdef __clang__
#pragma clang attribute push(__attribute__((target("avx512f"))),               \
                             apply_to = function)
#else
#pragma GCC push_options
#pragma GCC target("avx512f")
#endif

#include "f16_avx512.h"

#define VARIANT kith_cpu_text_avx512
#define NAME "avx512"
#define TILE_ROWS 8
#define TILE_WIDE 2
#include "cpu_text_kernels.inc.h"

#ifdef __clang__
#pragma clang attribute pop
#else
#pragma GCC pop_options
#endif
#endif
