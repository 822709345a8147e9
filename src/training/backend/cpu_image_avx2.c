/* The image kernels of backend cpu with AVX2; see cpu_avx2.c. */
#include "cpu.h"
#include "cpu_image.h"

#ifdef KITH_CPU_X86
#include <string.h>

#ifdef __clang__
#pragma clang attribute push(__attribute__((target("avx2,fma"))),              \
                             apply_to = function)
#else
#pragma GCC push_options
#pragma GCC target("avx2,fma")
#endif

#include "f16_avx2.h"

#define IMAGE kith_cpu_image_avx2
#define TILE_1 6
#define TILE_2 0
#include "cpu_conv.inc.h"
#include "cpu_norm.inc.h"

#ifdef __clang__
#pragma clang attribute pop
#else
#pragma GCC pop_options
#endif
#endif
