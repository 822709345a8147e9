/* Goal: no text makes the reader of a machine's file misbehave. What is refused
 * is one line of error; what is accepted is within its bounds, and so are the
 * steps between those that it has. */
#include <math.h>
#include <string.h>

#include "kith/assert.h"
#include "kith/experiment.h"
#include "kith/machine.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static const uint32_t batches[] = {1, 16, 4096, UINT32_MAX};
    char error[KITH_EXPERIMENT_ERROR_BYTES] = "";
    struct kith_machine machine;
    if (kith_machine_parse("fuzz", (const char *)data, size, &machine, error) !=
        KITH_OK) {
        KITH_ASSERT(error[0] != '\0' && strlen(error) < sizeof error);
        KITH_ASSERT(strchr(error, '\n') == NULL);
        return 0;
    }
    KITH_ASSERT(machine.step_count >= 1 &&
                machine.step_count <= KITH_MACHINE_STEPS_MAX);
    KITH_ASSERT(machine.suite_count <= KITH_MACHINE_SUITES_MAX);
    KITH_ASSERT(machine.values >= 1 && machine.values <= KITH_PARAMETERS_MAX);
    for (uint32_t i = 0; i < machine.step_count; i++) {
        const uint32_t threads = machine.steps[i].threads;
        KITH_ASSERT(machine.steps[i].batch >= 1 && threads >= 1);
        for (size_t k = 0; k < sizeof batches / sizeof *batches; k++) {
            const double step_s =
                kith_machine_step_s(&machine, batches[k], threads);
            KITH_ASSERT(isfinite(step_s) && step_s > 0);
        }
    }
    return 0;
}
