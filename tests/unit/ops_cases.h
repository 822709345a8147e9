/* The operations of ops.h as problems of one form: inputs, a forward pass, a
 * backward pass. What is tested of one is tested of all. */
#ifndef KITH_TESTS_OPS_CASES_H
#define KITH_TESTS_OPS_CASES_H

#include <stdint.h>

#include "kith/backend.h"

#define INPUTS_MAX 4
#define SLOTS_MAX 3 /* what a forward pass leaves for the way back */

struct ops_case {
    const char *name;
    size_t rows;
    union {
        struct kith_linear linear;
        struct kith_conv conv;
        struct kith_norm norm;
        struct kith_pool pool;
        struct kith_attention attention;
        struct kith_embed embed;
        struct kith_dropout dropout;
        struct {
            size_t pixels, channels;
        } mean;
        struct {
            size_t n;
            enum kith_activation activation;
        } sum;
    } op;
    const struct ops_kind *kind;
};

/* What is handed to one pass. in[i] may be NULL (no bias). */
struct ops_pass {
    const struct kith_ops *ops;
    void *in[INPUTS_MAX];
    void *y, *slot[SLOTS_MAX];
    void *dy, *gradient[INPUTS_MAX]; /* NULL: not asked for */
    unsigned add;
};

/* Sizes in elements; a slot of bytes counts as elements too. */
struct ops_shape {
    size_t in[INPUTS_MAX], out, slot[SLOTS_MAX];
};

struct ops_kind {
    void (*shape)(const struct ops_case *c, const struct kith_ops *ops,
                  struct ops_shape *shape);
    void (*forward)(const struct ops_case *c, struct ops_pass *pass);
    void (*backward)(const struct ops_case *c, struct ops_pass *pass);
    unsigned weights; /* bit i: input i is a weight (KITH_ADD_WEIGHTS) */
    bool adds;        /* the backward pass knows KITH_ADD_* */
};

extern const struct ops_case ops_cases[];
extern const size_t ops_case_count;

#endif
