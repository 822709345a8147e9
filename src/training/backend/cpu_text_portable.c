/* The kernels of cpu_text.h in plain C, for any processor. */
#include "f16_portable.h"

#define VARIANT kith_cpu_text_portable
#define NAME "portable"
#define TILE_ROWS 2
#define TILE_WIDE 1
#include "cpu_text_kernels.inc.h"
