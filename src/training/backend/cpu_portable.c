/* The kernels of backend cpu in plain C, for any processor. */
#include "cpu_image.h"
#include "cpu_text.h"

#include <float.h>
#include <math.h>
#include <string.h>

#include "kith/exp_log.h"

static bool portable_supported(void)
{
    return true;
}

#define LANES 4
#define F16_SET "f16_portable.h"
#define VARIANT kith_cpu_portable
#define NAME "portable"
#define SUPPORTED portable_supported
#define FUSE 6
#define LINE_1 6
#define LINE_2 0
#define TILE_ROWS 2
#define TILE_WIDE 1
#include "cpu_variant.inc.h"
