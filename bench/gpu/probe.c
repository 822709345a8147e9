/* See probe.h. A wait is asked for after an operation, so that a step under a
 * probe is slower than one without; shares matter, not sums. */
#include "probe.h"

#include <math.h>
#include <string.h>

#include "bench_gpu.h"

const char *const probe_kind_names[PROBE_KIND_COUNT] = {
#define X(name, text) text,
    PROBE_KINDS(X)
#undef X
};

static struct {
    const struct kith_backend *inner;
    struct kith_backend outer;
    struct kith_ops ops;
    enum probe_mode mode;
    double start, last, wait; /* PROBE_KIND */
    double loss, backward;    /* PROBE_PHASES: when each was done */
    double spent[PROBE_KIND_COUNT];
} self;

static void mark(enum probe_kind kind)
{
    if (self.mode == PROBE_OFF ||
        (self.mode == PROBE_PHASES && kind != PROBE_LOSS))
        return;
    finish(self.inner);
    const double t = now(), spent = t - self.last - self.wait;
    if (kind == PROBE_LOSS)
        self.loss = t;
    self.spent[kind] += spent > 0 ? spent : 0;
    self.last = t;
}

/* ---- operations */

/* What the time of an operation is counted as. */
static enum probe_kind kind_of(enum kith_op_kind op, const void *shape,
                               bool back)
{
    /* A classifier's, or tied to an embedding: no block's layer is stored so.
     */
    const struct kith_linear *linear = shape;
    switch (op) {
    case KITH_OP_EMBED:
        return back ? PROBE_EMBED_BACK : PROBE_EMBED;
    case KITH_OP_LINEAR:
        if (!linear->in_out)
            return back ? PROBE_HEAD_BACK : PROBE_HEAD;
        return back ? PROBE_LINEAR_BACK : PROBE_LINEAR;
    case KITH_OP_ATTENTION:
        return back ? PROBE_ATTENTION_BACK : PROBE_ATTENTION;
    case KITH_OP_CONV:
        return back ? PROBE_CONV_BACK : PROBE_CONV;
    case KITH_OP_NORM:
        return back ? PROBE_NORM_BACK : PROBE_NORM;
    default:
        return PROBE_OTHER;
    }
}

#define KITH_X(NAME, name)                                                     \
    static void name##_forward(const struct kith_arguments *a)                 \
    {                                                                          \
        self.inner->ops->kernels[KITH_OP_##NAME]->forward(a);                  \
        mark(kind_of(KITH_OP_##NAME, a->shape, false));                        \
    }                                                                          \
    static void name##_backward(const struct kith_arguments *a)                \
    {                                                                          \
        self.inner->ops->kernels[KITH_OP_##NAME]->backward(a);                 \
        mark(kind_of(KITH_OP_##NAME, a->shape, true));                         \
    }                                                                          \
    static struct kith_kernel name##_kernel = {.forward = name##_forward,      \
                                               .backward = name##_backward};
KITH_OPERATIONS(KITH_X)
#undef KITH_X

static void copy(size_t n, void *target, const void *source)
{
    self.inner->copy(n, target, source);
    mark(PROBE_OTHER);
}

static double cross_entropy(const struct kith_loss *of)
{
    const double loss = self.inner->ops->cross_entropy(of);
    mark(PROBE_LOSS);
    return loss;
}

static bool adamw(const struct kith_adamw *step)
{
    const bool finite = self.inner->ops->adamw(step);
    mark(PROBE_OPTIMISER);
    return finite;
}

static bool sgd(const struct kith_sgd *step)
{
    const bool finite = self.inner->sgd(step);
    mark(PROBE_OPTIMISER);
    return finite;
}

/* ---- the record */

const struct kith_backend *probe_open(const struct kith_backend *inner)
{
    self.inner = inner;
    self.mode = PROBE_OFF;
    self.ops = *inner->ops;
#define KITH_X(NAME, name)                                                     \
    name##_kernel.scratch = inner->ops->kernels[KITH_OP_##NAME]->scratch;      \
    self.ops.kernels[KITH_OP_##NAME] = &name##_kernel;
    KITH_OPERATIONS(KITH_X)
#undef KITH_X
    self.ops.cross_entropy = cross_entropy;
    self.ops.adamw = adamw;
    self.outer = *inner;
    self.outer.ops = &self.ops;
    self.outer.copy = copy;
    self.outer.sgd = sgd;
    return &self.outer;
}

void probe_start(enum probe_mode mode)
{
    finish(self.inner);
    const double before = now();
    finish(self.inner);
    self.mode = mode;
    memset(self.spent, 0, sizeof self.spent);
    self.start = self.last = now();
    self.loss = self.backward = (double)NAN; /* not seen yet */
    self.wait = self.start - before;
}

void probe_backward(void)
{
    if (self.mode != PROBE_PHASES)
        return;
    finish(self.inner);
    self.backward = now();
}

struct probe_phases probe_phases(void)
{
    finish(self.inner);
    return (struct probe_phases){.forward = self.loss - self.start,
                                 .backward = self.backward - self.loss,
                                 .optimiser = now() - self.backward};
}

const double *probe_kinds(void)
{
    return self.spent;
}
