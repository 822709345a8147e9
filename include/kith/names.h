/* Names that another program has for a model's tensors, and how they lie there.
 *
 *   net.0.bias: fc1.bias                                 # theirs: ours
 *   conv.weight: {name: conv1.weight, axes: [2, 3, 1, 0]}
 *   blocks.*.norm.weight: h.*.ln_1.weight                # one * in each
 *
 * Axis i of ours is axis axes[i] of theirs, as numpy.transpose(theirs, axes).
 * Ours has a linear layer's weights as (out, in), as PyTorch's, but (in, out)
 * within gpt, as GPT-2's: [1, 0] of PyTorch's; a convolution's as (kernel,
 * kernel, in, out): [2, 3, 1, 0]. What no line names is called the same there.
 * kith_names_load (experiment.h) reads a file.
 * Test: unit/test_names.c, integration/test_cli_names.sh. */
#ifndef KITH_NAMES_H
#define KITH_NAMES_H

#include <stdint.h>

#include "kith/checkpoint.h"

/* As many as a mapping of YAML may have keys. */
#define KITH_NAMES_MAX 1024u
#define KITH_NAMES_ERROR_BYTES 1024

struct kith_names_pair {
    char theirs[KITH_TENSOR_NAME_BYTES], ours[KITH_TENSOR_NAME_BYTES];
    uint32_t axis_count; /* 0: as they are */
    uint8_t axes[4];     /* (axis_count) a permutation */
    uint32_t line;       /* of the file, from 1 */
};

struct kith_names {
    char path[KITH_PATH_BYTES_MAX];
    struct kith_names_pair *pairs; /* (count) */
    uint32_t count;
};

/* KITH_EMISMATCH: a line names no view, or one that has other axes, or two name
 * the same one; "PATH:LINE: ..." in `error` (KITH_NAMES_ERROR_BYTES). */
KITH_MUST_CHECK enum kith_err kith_names_check(const struct kith_names *names,
                                               const struct kith_layout *layout,
                                               char *error);

/* The view as it stands in the other program's file: name and shape, dtype F32.
 * The pair that says so; NULL: it is called as here. names may be NULL. */
const struct kith_names_pair *
kith_names_entry(const struct kith_names *names,
                 const struct kith_model_view *view,
                 struct kith_tensor_entry *entry);

/* A view's values between the two orders of axes (pair NULL: they are the
 * same), both (elements). */
void kith_names_to_ours(const struct kith_names_pair *pair,
                        const struct kith_model_view *view,
                        const double *theirs, double *ours);
void kith_names_to_theirs(const struct kith_names_pair *pair,
                          const struct kith_model_view *view,
                          const double *ours, double *theirs);

void kith_names_close(struct kith_names *names);

#endif
