/* The loops of backend cpu in plain C, for any processor. */
#include "cpu.h"
#include "cpu_image.h"

#include <string.h>

#include "f16_portable.h"

static bool portable_supported(void)
{
    return true;
}

#define VARIANT kith_cpu_portable
#define IMAGE kith_cpu_image_portable
#define TEXT "portable"
#define SUPPORTED portable_supported
#include "cpu_loops.inc.h"
