/* What a machine is, measured once by `kith plan --measure` and written down as
 * a YAML file that people may edit:
 *
 *   model: mlp              what was trained, and how large it is
 *   values: 2410
 *   cores: 2
 *   steps:                  medians of training steps
 *     - {batch: 16, threads: 1, time: 61us}
 *   example: 1184           bytes of memory an example of a batch takes
 *   suites:                 of one core, full records
 *     - {suite: AESGCM, seal: 5.1GB, open: 6.2GB}
 *   socket: 1.4GB           of a core that sends and receives, through loopback
 *   merge: 6GB              bytes of models that a core merges per second
 *   handshake: 310us        processor time of both ends
 *
 * Bounded as every file is; errors as of kith/experiment.h.
 * Test: unit/test_machine.c. */
#ifndef KITH_MACHINE_H
#define KITH_MACHINE_H

#include <stddef.h>
#include <stdint.h>

#include "kith/err.h"
#include "kith/limits.h"
#include "kith/types.h"

#define KITH_MACHINE_STEPS_MAX 64u
#define KITH_MACHINE_SUITES_MAX 8u
struct kith_machine_step {
    uint32_t batch, threads;
    kith_ns time_ns;
};
struct kith_machine_suite {
    char name[KITH_NAME_MAX];      /* kith_suite_word() */
    uint64_t seal_bits, open_bits; /* per second of one core */
};
struct kith_machine {
    char model[KITH_NAME_MAX];
    uint64_t values;
    uint32_t cores;
    struct kith_machine_step steps[KITH_MACHINE_STEPS_MAX]; /* (step_count) */
    uint32_t step_count;
    uint64_t example_bytes;
    struct kith_machine_suite suites[KITH_MACHINE_SUITES_MAX];
    uint32_t suite_count;
    uint64_t socket_bits, merge_bits; /* per second of one core */
    kith_ns handshake_ns;
};

/* error: KITH_EXPERIMENT_ERROR_BYTES, "FILE:LINE: KEY: found X; allowed: ...".
 */
KITH_MUST_CHECK enum kith_err
kith_machine_load(const char *path, struct kith_machine *machine, char *error);
/* The same from memory; `name` stands in messages. */
KITH_MUST_CHECK enum kith_err kith_machine_parse(const char *name,
                                                 const char *text, size_t size,
                                                 struct kith_machine *machine,
                                                 char *error);
/* A step's seconds at this batch: measured, or on the line through the nearest
 * two with so many threads. Beyond them along the same line, but a larger batch
 * takes no less than the nearest, a smaller one no more, and no less than its
 * share of it. With one measurement its time for each example. NaN: there is
 * none with so many threads. */
double kith_machine_step_s(const struct kith_machine *machine, uint32_t batch,
                           uint32_t threads);

#endif
