/* The kernels of cpu_text.h in plain C, for any processor. */
#include "f16_portable.h"

static bool portable_supported(void)
{
    return true;
}

#define VARIANT kith_cpu_text_portable
#define NAME "portable"
#define SUPPORTED portable_supported
#define TILE_ROWS 2
#define TILE_WIDE 1
#include "cpu_text_kernels.inc.h"
