/* Entries of the backend's record, file by file; backend.cu gathers them. */
#ifndef KITH_TRAINING_CUDA_STATE_CUH
#define KITH_TRAINING_CUDA_STATE_CUH

#include "common.cuh"

namespace gpu
{
/* state.cu */
int device_number();
const char *failed();
const char *notice();
const char *missing();
void step_begin();
void step_end(struct kith_found *out);

/* memory.cu */
bool open_memory();
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
                const void *base, void *x);
double mix_bf16(size_t n, double weight, const uint16_t *received,
                const uint16_t *sent, void *x);
double sum(size_t n, const void *x);
double distance_squared(size_t n, const void *x, const void *y);
bool finite(size_t n, const void *x);
double clip(size_t n, double limit, void *g);
bool sgd(const struct kith_sgd *s);
bool adamw(const struct kith_adamw *a);
void from_bytes(size_t n, const uint8_t *bytes, void *y);
void narrow(size_t n, const void *elements, void *activations);
void widen(size_t n, const void *activations, void *elements);

/* combine.cu */
void combine(size_t n, unsigned count, const struct kith_update *updates);
void adam_direction(const struct kith_adam *m);

/* gather.cu */
void gather(size_t n, const uint32_t *places, const void *x, void *y);
double mix_at(size_t n, double weight, const uint32_t *places,
              const void *received, const void *sent, void *x);

/* packing.cu */
void to_bf16(size_t n, const void *x, uint16_t *y);
void from_bf16(size_t n, const uint16_t *x, void *y);
void pack_int8(size_t n, const void *x, void *wire);
void unpack_int8(size_t n, const void *wire, void *y);

/* residues.cu */
extern const struct kith_residue_messages residue_messages;

/* outside.cu */
extern const struct kith_outside_kernels outside;

/* compressors.cu */
extern const struct kith_compressed compressed;

/* top_k.cu */
bool pack_top_k(const struct kith_cut *cut, const struct kith_sparse sparse[2],
                const void *v, void *wire);
bool unpack_top_k(const struct kith_cut *cut,
                  const struct kith_sparse sparse[2], const void *wire,
                  void *out);

/* ms_top_k.cu */
bool pack_ms_top_k(const struct kith_cut *cut,
                   const struct kith_sparse sparse[2],
                   const struct kith_windows *windows, const void *v,
                   void *wire);

/* products.cu: NULL where the library is here. */
const char *products_missing();
void gemm(const struct kith_gemm *g);

/* text.cu */
size_t scores_stride(size_t classes);

template <typename T> double cross_entropy(const struct kith_loss *l);

/* The kernels of ops.h, for activations of type T (float or bf16): each file of
 * kernels ends in a KITH_KERNEL of each operation that it holds. */
#define KITH_X(NAME, name)                                                     \
    template <typename T> const struct kith_kernel *name##_kernel();
KITH_OPERATIONS(KITH_X)
#undef KITH_X
#define KITH_KERNEL(name, scratch, forward, backward)                          \
    template <typename T> const struct kith_kernel *name##_kernel()            \
    {                                                                          \
        static const struct kith_kernel kernel = {scratch, forward<T>,         \
                                                  backward<T>};                \
        return &kernel;                                                        \
    }                                                                          \
    template const struct kith_kernel *name##_kernel<float>();                 \
    template const struct kith_kernel *name##_kernel<bf16>();
} // namespace gpu

#endif
