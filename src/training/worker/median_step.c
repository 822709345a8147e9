/* How long a step takes, on the wall's clock: the median of many, for the first
 * ones warm caches, others are disturbed.
 * Test: integration/test_simulate.sh */
#include <stdlib.h>

#include "kith/backend.h"
#include "kith/worker.h"

#define STEPS_MIN 20u
#define SPAN_NS (2 * KITH_S)

static int by_value(const void *a, const void *b)
{
    const kith_ns x = *(const kith_ns *)a, y = *(const kith_ns *)b;
    return (x > y) - (x < y);
}

kith_ns kith_worker_median_step(struct kith_worker *worker)
{
    kith_ns spans[KITH_MEASURED_STEPS];
    uint32_t count = 0;
    const kith_ns start = kith_host_now();
    while (count < KITH_MEASURED_STEPS && kith_worker_failed(worker) == NULL &&
           (count < STEPS_MIN || kith_host_now() - start < SPAN_NS)) {
        struct kith_work work = {.kind = KITH_WORK_TRAIN, .step = count};
        struct kith_work_result result;
        const kith_ns before = kith_host_now();
        kith_worker_run(worker, &work, &result);
        spans[count++] = kith_host_now() - before;
    }
    if (count == 0)
        return 0;
    qsort(spans, count, sizeof spans[0], by_value);
    return spans[count / 2];
}
