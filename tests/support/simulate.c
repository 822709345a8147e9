/* Simulations from a few lines of YAML; see simulate.h. */
#include "tests/support/simulate.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <string.h>
#include <cmocka.h>

struct simulated simulate(const char *yaml, const struct sim_options *options)
{
    char error[KITH_EXPERIMENT_ERROR_BYTES > SIM_ERROR_BYTES
                   ? KITH_EXPERIMENT_ERROR_BYTES
                   : SIM_ERROR_BYTES] = "";
    struct kith_experiment experiment;
    if (kith_experiment_parse("test", yaml, strlen(yaml), NULL, 0, &experiment,
                              error) != KITH_OK)
        fail_msg("%s", error);
    struct sim_options own = options ? *options : (struct sim_options){0};
    own.experiment = &experiment;
    struct kith_dataset dataset = {0};
    if (experiment.model->input != KITH_INPUT_NONE) {
        if (kith_dataset_open(&experiment.data.config, &dataset, error) !=
            KITH_OK)
            fail_msg("%s", error);
        own.dataset = &dataset;
    }
    struct simulated run;
    if (sim_run(&own, &run.summary, &run.report, error) != KITH_OK)
        fail_msg("%s", error);
    assert_true(run.summary.completed);
    kith_dataset_close(&dataset);
    kith_experiment_close(&experiment);
    return run;
}
