/* The kernels of cpu_text.h with AVX2. Compiled for that instruction set
 * whatever the build's flags say; used where the CPU has it. */
#include "cpu_text.h"

#ifdef KITH_CPU_X86
#include <immintrin.h>
#include <math.h>
#include <string.h>

#ifdef __clang__
#pragma clang attribute push(__attribute__((target("avx2,fma"))),              \
                             apply_to = function)
#else
#pragma GCC push_options
#pragma GCC target("avx2,fma")
#endif

#include "f16_avx2.h"

#define VARIANT kith_cpu_text_avx2
#define NAME "avx2"
#define TILE_ROWS 6
#define TILE_WIDE 1
#include "cpu_text_kernels.inc.h"

#ifdef __clang__
#pragma clang attribute pop
#else
#pragma GCC pop_options
#endif
#endif
