/* A backend that notes when what it was asked for is done, around another. */
#ifndef KITH_BENCH_GPU_PROBE_H
#define KITH_BENCH_GPU_PROBE_H

#include "kith/backend.h"

/* Kinds of operation, as they appear in a step. X(NAME, text) */
#define PROBE_KINDS(X)                                                         \
    X(EMBED, "embedding")                                                      \
    X(EMBED_BACK, "embedding, back")                                           \
    X(LINEAR, "linear")                                                        \
    X(LINEAR_BACK, "linear, back")                                             \
    X(HEAD, "head")                                                            \
    X(HEAD_BACK, "head, back")                                                 \
    X(ATTENTION, "attention")                                                  \
    X(ATTENTION_BACK, "attention, back")                                       \
    X(CONV, "convolution")                                                     \
    X(CONV_BACK, "convolution, back")                                          \
    X(NORM, "norm")                                                            \
    X(NORM_BACK, "norm, back")                                                 \
    X(OTHER, "sums, pools, copies")                                            \
    X(LOSS, "loss")                                                            \
    X(OPTIMISER, "optimiser")
enum probe_kind {
#define X(name, text) PROBE_##name,
    PROBE_KINDS(X)
#undef X
        PROBE_KIND_COUNT
};
extern const char *const probe_kind_names[PROBE_KIND_COUNT];

/* What is measured: nothing (calls are handed on at once); the phases of a
 * step, two waits; or every operation, each of which is waited for. */
enum probe_mode { PROBE_OFF, PROBE_PHASES, PROBE_KIND };

/* The backend to hand to a network; there is one at a time. */
const struct kith_backend *probe_open(const struct kith_backend *inner);
void probe_start(enum probe_mode mode);
/* What a step of PROBE_PHASES calls after its way back. */
void probe_backward(void);
/* Seconds from probe_start to the loss, from there to probe_backward, and from
 * there to now. */
struct probe_phases {
    double forward, backward, optimiser;
};
struct probe_phases probe_phases(void);
/* Seconds of each kind since probe_start, the waits themselves taken off. */
const double *probe_kinds(void);

#endif
