/* What a machine is, measured once by `kith plan --measure` and written down as
 * a YAML file that people may edit:
 *
 *   model: mlp              what was trained, and how large it is
 *   values: 2410
 *   cores: 2
 *   steps:                  medians of training steps
 *     - {batch: 16, threads: 1, time: 61us, cpu: 70us}
 *   example: 1184           bytes of memory an example of a batch takes
 *   suites:                 of one core, full records
 *     - {suite: AESGCM, seal: 5.1GB, open: 6.2GB}
 *   socket: 1.4GB           of a core that sends and receives, through loopback
 *   merge: 6GB              bytes of models that a core merges per second
 *   wires:                  of one core: what real peers take of bytes that
 *                           travel, and of a model's that an item goes over
 *     - {wire: float32, link: 1.1GB, merge: 2.9GB}
 *   message: 21us           processor time of a message at each end, whatever
 *                           its size
 *   handover: 25us          of an item's way to the training thread and back
 *   wake: 40us              until a thread whose period is over goes on
 *   slice: 4ms              a thread keeps its core so long while others wait
 *   handshake: 310us        processor time of both ends
 *   links:                  from here to members of a cluster
 *     - {rank: 1, latency: 20ms, jitter: 1ms, rate: 95Mbit, loss: 0.001}
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
#define KITH_MACHINE_WIRES_MAX 16u
#define KITH_MACHINE_LINKS_MAX 64u
struct kith_machine_step {
    uint32_t batch, threads;
    kith_ns time_ns;
    kith_ns cpu_ns; /* of a real peer that shares all cores; 0: not measured */
};
struct kith_machine_suite {
    char name[KITH_NAME_MAX];      /* kith_suite_word() */
    uint64_t seal_bits, open_bits; /* per second of one core */
};
struct kith_machine_wire {
    char name[KITH_NAME_MAX];       /* gossip.wire */
    uint64_t link_bits, merge_bits; /* per second of one core */
};
struct kith_machine_link { /* one way, as network.* of an experiment says it */
    kith_id rank;
    kith_ns latency_ns, jitter_ns;
    uint64_t rate_bits;
    double loss;
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
    struct kith_machine_wire wires[KITH_MACHINE_WIRES_MAX];
    uint32_t wire_count;
    struct kith_machine_link links[KITH_MACHINE_LINKS_MAX];
    uint32_t link_count;
    uint64_t socket_bits, merge_bits; /* per second of one core */
    kith_ns message_ns, handover_ns, wake_ns, slice_ns; /* 0: not measured */
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
/* What the suite of this word costs; "auto": the fastest to seal that needs no
 * policy. NULL: it was not measured. */
const struct kith_machine_suite *
kith_machine_suite_of(const struct kith_machine *machine, const char *word);
/* Bytes per second of a core that seals and sends, or receives and opens: the
 * socket's rate is of both ends. suite NULL: the socket alone. 0: no time. */
double kith_machine_wire_rate(const struct kith_machine *machine,
                              const struct kith_machine_suite *suite);
/* That with the least rate; NULL: none was measured. */
const struct kith_machine_link *
kith_machine_slowest_link(const struct kith_machine *machine);
/* A step's seconds at this batch: measured, or on the line through the nearest
 * two with so many threads. Beyond them along the same line, but a larger batch
 * takes no less than the nearest, a smaller one no more, and no less than its
 * share of it. With one measurement its time for each example. NaN: there is
 * none with so many threads. */
double kith_machine_step_s(const struct kith_machine *machine, uint32_t batch,
                           uint32_t threads);
/* The same of the processor time that it takes of a real peer, one thread: its
 * time where that was not measured. */
double kith_machine_step_cpu_s(const struct kith_machine *machine,
                               uint32_t batch);

#endif
