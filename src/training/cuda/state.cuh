/* Entries of the backend's record, file by file; backend.cu gathers them. */
#ifndef KITH_TRAINING_CUDA_STATE_CUH
#define KITH_TRAINING_CUDA_STATE_CUH

#include "common.cuh"

namespace gpu
{
/* state.cu */
const char *failed();
const char *notice();
const char *missing();
void step_begin();
void step_end(struct kith_found *out);

/* memory.cu */
bool open_memory(int device);
void *alloc(size_t bytes, bool shared);
void release(void *memory);
void copy(size_t n, void *target, const void *source);
void clear(size_t n, void *x);
void read(size_t n, const void *x, double *out);
void write(size_t n, const double *in, void *x);
bool settled(const void *shared, bool wait);
void arrived(const void *shared, size_t bytes);

/* vector.cu */
void scale(size_t n, double factor, void *x);
void add(size_t n, double factor, const void *x, void *y);
double mix(size_t n, double weight, const void *received, const void *sent,
           void *x);
double swap_mix(size_t n, double weight, const void *received, const void *sent,
                void *x);
double mix_bf16(size_t n, double weight, const uint16_t *received,
                const void *sent, void *x);
double sum(size_t n, const void *x);
double distance_squared(size_t n, const void *x, const void *y);
bool finite(size_t n, const void *x);
double clip(size_t n, double limit, void *g);
bool sgd(size_t n, double rate, double momentum, double decay, bool nesterov,
         const void *gradient, void *velocity, void *x);
bool adamw(size_t n, double rate, double beta1, double beta2, double epsilon,
           double decay, uint64_t t, const void *g, void *m, void *v, void *x);
void from_bytes(size_t n, const uint8_t *bytes, void *y);
void narrow(size_t n, const void *elements, void *activations);
void widen(size_t n, const void *activations, void *elements);

/* products.cu: NULL where the library is here. */
const char *products_missing();
void gemm(bool transpose_a, bool transpose_b, size_t m, size_t n, size_t k,
          double alpha, const void *a, const void *b, double beta, void *c);

/* text.cu */
size_t scores_stride(size_t classes);

/* The parts of ops.h, for activations of type T (float or bf16). Each is
 * defined, for both, in the file that its comment names. */
template <typename T> struct dense { /* linear.cu */
    static void linear(const struct kith_linear *op, size_t rows, const void *x,
                       const void *w, const void *bias, void *pre, void *y);
    static void linear_backward(const struct kith_linear *op, size_t rows,
                                const void *x, const void *w, const void *pre,
                                const void *y, void *dy, void *dx, void *dw,
                                void *dbias, unsigned add);
};
template <typename T> struct convolution { /* conv.cu */
    static size_t scratch(const struct kith_conv *op, size_t rows);
    static void forward(const struct kith_conv *op, size_t rows, const void *x,
                        const void *w, const void *bias, void *y,
                        void *scratch);
    static void backward(const struct kith_conv *op, size_t rows, const void *x,
                         const void *w, const void *y, void *dy, void *dx,
                         void *dw, void *dbias, void *scratch, unsigned add);
};
template <typename T> struct normal { /* norm.cu */
    static void forward(const struct kith_norm *op, size_t rows, bool training,
                        const void *x, const void *scale, const void *shift,
                        void *buffers, void *saved, void *y);
    static void backward(const struct kith_norm *op, size_t rows, const void *x,
                         const void *scale, const void *y, const void *saved,
                         void *dy, void *dx, void *dscale, void *dshift,
                         unsigned add);
};
template <typename T> struct simple { /* simple.cu */
    static void max_pool(const struct kith_pool *op, size_t rows, const void *x,
                         void *y, uint8_t *which);
    static void max_pool_backward(const struct kith_pool *op, size_t rows,
                                  const uint8_t *which, const void *dy,
                                  void *dx, unsigned add);
    static void mean_pool(size_t rows, size_t pixels, size_t channels,
                          const void *x, void *y);
    static void mean_pool_backward(size_t rows, size_t pixels, size_t channels,
                                   const void *dy, void *dx, unsigned add);
    static void sum(size_t n, enum kith_activation activation, const void *a,
                    const void *b, void *y);
    static void sum_backward(size_t n, enum kith_activation activation,
                             const void *y, void *dy, void *da, void *db,
                             unsigned add);
    static void dropout(const struct kith_dropout *op, size_t n, const void *x,
                        void *y);
};
template <typename T> struct text { /* text.cu */
    static void embed(const struct kith_embed *op, size_t rows,
                      const int32_t *tokens, const void *token,
                      const void *position, void *y);
    static void embed_backward(const struct kith_embed *op, size_t rows,
                               const int32_t *tokens, const void *dy,
                               void *dtoken, void *dposition, unsigned add);
    static double cross_entropy(size_t rows, size_t classes,
                                const int32_t *labels, double smoothing,
                                double scale, void *logits, uint32_t *correct);
    static double padded_cross_entropy(size_t rows, size_t classes,
                                       size_t stride, const int32_t *labels,
                                       double smoothing, double scale,
                                       void *logits, uint32_t *correct);
};
template <typename T> struct attend { /* attention.cu, attention_mma.cu */
    static size_t scratch(const struct kith_attention *op, size_t rows);
    static void forward(const struct kith_attention *op, size_t rows,
                        const void *qkv, void *saved, void *y, void *scratch);
    static void backward(const struct kith_attention *op, size_t rows,
                         const void *qkv, const void *y, const void *saved,
                         const void *dy, void *dqkv, void *scratch);
};
} // namespace gpu

#endif
