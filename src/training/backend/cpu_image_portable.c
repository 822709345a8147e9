/* The image kernels of backend cpu in plain C. */
#include "cpu.h"
#include "cpu_image.h"

#include <string.h>

#include "f16_portable.h"

#define IMAGE kith_cpu_image_portable
#define TILE_1 6
#define TILE_2 0
#include "cpu_conv.inc.h"
#include "cpu_norm.inc.h"
