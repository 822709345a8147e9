/* One backend of the CUDA module, as a constant record of this program: every
 * call is handed on to the module. Compiled once per record:
 *
 *   RECORD  its name, NAME and SUMMARY its texts
 *   MEMBER  which of the module's backends
 *
 * Only `missing` and `alloc` may be called before `missing` answered NULL. */
#include "kith/cuda_module.h"

#include "kith/assert.h"

extern const struct kith_backend kith_backend_cpu;

/* Loading answers the same every time, at the price of one test. */
static const struct kith_backend *module(void)
{
    const char *why;
    const struct kith_cuda_module *const found = kith_cuda_load(&why);
    KITH_ASSERT(found != NULL);
    return found->MEMBER;
}

static const char *cuda_missing(void)
{
    const char *why;
    const struct kith_cuda_module *const found = kith_cuda_load(&why);
    return found == NULL ? why : found->MEMBER->missing();
}

/* Whoever did not ask `missing` gets no memory, and so no further. */
static void *cuda_alloc(size_t bytes, bool shared)
{
    return cuda_missing() == NULL ? module()->alloc(bytes, shared) : NULL;
}

static void cuda_release(void *memory)
{
    module()->release(memory);
}

static void cuda_copy(size_t n, void *target, const void *source)
{
    module()->copy(n, target, source);
}

static void cuda_clear(size_t n, void *x)
{
    module()->clear(n, x);
}

static void cuda_scale(size_t n, double factor, void *x)
{
    module()->scale(n, factor, x);
}

static void cuda_add(size_t n, double factor, const void *x, void *y)
{
    module()->add(n, factor, x, y);
}

static double cuda_mix(size_t n, double weight, const void *received,
                       const void *sent, void *x)
{
    return module()->mix(n, weight, received, sent, x);
}

static double cuda_swap_mix(size_t n, double weight, const void *received,
                            const void *sent, void *x)
{
    return module()->swap_mix(n, weight, received, sent, x);
}

static double cuda_mix_bf16(size_t n, double weight, const uint16_t *received,
                            const void *sent, void *x)
{
    return module()->mix_bf16(n, weight, received, sent, x);
}

static double cuda_sum(size_t n, const void *x)
{
    return module()->sum(n, x);
}

static double cuda_distance_squared(size_t n, const void *x, const void *y)
{
    return module()->distance_squared(n, x, y);
}

static bool cuda_finite(size_t n, const void *x)
{
    return module()->finite(n, x);
}

static void cuda_read(size_t n, const void *x, double *out)
{
    module()->read(n, x, out);
}

static void cuda_write(size_t n, const double *in, void *x)
{
    module()->write(n, in, x);
}

static void cuda_gemm(const struct kith_gemm *gemm)
{
    module()->gemm(gemm);
}

static bool cuda_sgd(const struct kith_sgd *sgd)
{
    return module()->sgd(sgd);
}

static void cuda_from_bytes(size_t n, const uint8_t *bytes, void *y)
{
    module()->from_bytes(n, bytes, y);
}

static void cuda_narrow(size_t n, const void *elements, void *activations)
{
    module()->narrow(n, elements, activations);
}

static void cuda_widen(size_t n, const void *activations, void *elements)
{
    module()->widen(n, activations, elements);
}

static void cuda_step_begin(void)
{
    module()->step_begin();
}

static void cuda_step_end(struct kith_found *found)
{
    module()->step_end(found);
}

static double cuda_clip(size_t n, double limit, void *g)
{
    return module()->clip(n, limit, g);
}

static bool cuda_settled(const void *shared, bool wait)
{
    return module()->settled(shared, wait);
}

static void cuda_arrived(const void *shared, size_t bytes)
{
    module()->arrived(shared, bytes);
}

/* What never was here has not failed: `missing` says why. */
static const char *cuda_failed(void)
{
    return cuda_missing() == NULL ? module()->failed() : NULL;
}

#define KITH_X(NAME, name)                                                     \
    static size_t name##_scratch(const void *shape, size_t rows)               \
    {                                                                          \
        return kith_kernel_scratch(module()->ops->kernels[KITH_OP_##NAME],     \
                                   shape, rows);                               \
    }                                                                          \
    static void name##_forward(const struct kith_arguments *a)                 \
    {                                                                          \
        module()->ops->kernels[KITH_OP_##NAME]->forward(a);                    \
    }                                                                          \
    static void name##_backward(const struct kith_arguments *a)                \
    {                                                                          \
        module()->ops->kernels[KITH_OP_##NAME]->backward(a);                   \
    }                                                                          \
    static const struct kith_kernel name##_kernel = {                          \
        .scratch = name##_scratch,                                             \
        .forward = name##_forward,                                             \
        .backward = name##_backward};
KITH_OPERATIONS(KITH_X)
#undef KITH_X

static double ops_cross_entropy(const struct kith_loss *loss)
{
    return module()->ops->cross_entropy(loss);
}

static size_t ops_scores_stride(size_t classes)
{
    return module()->ops->scores_stride(classes);
}

static bool ops_adamw(const struct kith_adamw *adamw)
{
    return module()->ops->adamw(adamw);
}

static const char *cuda_notice(void)
{
    return module()->notice();
}

static const struct kith_ops cuda_ops = {
#define KITH_X(NAME, name) .kernels[KITH_OP_##NAME] = &name##_kernel,
    KITH_OPERATIONS(KITH_X)
#undef KITH_X
        .cross_entropy = ops_cross_entropy,
    .scores_stride = ops_scores_stride,
    .adamw = ops_adamw,
};

extern const struct kith_backend RECORD;
const struct kith_backend RECORD = {
    .name = NAME,
    .summary = SUMMARY,
    .element_bytes = sizeof(float),
    .host = &kith_backend_cpu,
    .missing = cuda_missing,
    .alloc = cuda_alloc,
    .release = cuda_release,
    .copy = cuda_copy,
    .clear = cuda_clear,
    .scale = cuda_scale,
    .add = cuda_add,
    .mix = cuda_mix,
    .swap_mix = cuda_swap_mix,
    .mix_bf16 = cuda_mix_bf16,
    .sum = cuda_sum,
    .distance_squared = cuda_distance_squared,
    .finite = cuda_finite,
    .read = cuda_read,
    .write = cuda_write,
    .gemm = cuda_gemm,
    .sgd = cuda_sgd,
    .from_bytes = cuda_from_bytes,
    .narrow = cuda_narrow,
    .widen = cuda_widen,
    .step_begin = cuda_step_begin,
    .step_end = cuda_step_end,
    .clip = cuda_clip,
    .settled = cuda_settled,
    .arrived = cuda_arrived,
    .failed = cuda_failed,
    .notice = cuda_notice,
    .ops = &cuda_ops,
    .activation_bytes = ACTIVATION_BYTES,
};
