/* The image kernels of backend cpu with AVX-512; see cpu_avx512.c. */
#include "cpu.h"
#include "cpu_image.h"

#ifdef KITH_CPU_X86
#include <string.h>

#ifdef __clang__
#pragma clang attribute push(__attribute__((target("avx512f"))),               \
                             apply_to = function)
#else
#pragma GCC push_options
#pragma GCC target("avx512f")
#endif

#include "f16_avx512.h"

#define IMAGE kith_cpu_image_avx512
#define TILE_1 16
#define TILE_2 14
#include "cpu_conv.inc.h"
#include "cpu_norm.inc.h"

#ifdef __clang__
#pragma clang attribute pop
#else
#pragma GCC pop_options
#endif
#endif
