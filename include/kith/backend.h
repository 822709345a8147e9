/* A backend: arithmetic on flat vectors and row-major matrices.
 *
 * `naive32` and `naive64` are plain loops, the reference for everything else
 * (naive64 is what the theory tests use); `cpu` is OpenBLAS plus vectorised
 * loops, float32; `cpu-bf16` is cpu with linear layers that multiply bfloat16,
 * where the CPU can; `cuda` and `cuda-bf16` are a module loaded at run time
 * (kith/cuda_module.h). Elements are opaque here: element_bytes
 * says their size. One file, one line in src/training/backend/backends.def.
 * Test: unit/test_backend.c holds every backend against naive64. */
#ifndef KITH_BACKEND_H
#define KITH_BACKEND_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "kith/compressed.h"
#include "kith/err.h"
#include "kith/limits.h"
#include "kith/magnitudes.h"
#include "kith/ops.h"
#include "kith/outside.h"
#include "kith/residues.h"
#include "kith/types.h"

KITH_BEGIN_DECLS

/* What a step found: see step_begin. */
struct kith_found {
    double loss; /* sum over the step's losses (micro-batches) */
    double norm; /* of the gradient that was clipped last */
    uint32_t correct;
    bool finite; /* every loss, and every new value of x */
};

/* What an update adds: factor (plus - minus), or with NULL factor plus. */
struct kith_term {
    double factor;
    const void *plus, *minus;
};
/* A vector of each neighbour's and two of one's own. */
#define KITH_TERMS_MAX (KITH_DEGREE_MAX + 2)

/* y <- own y + the terms or, squared, that of each: each product and each sum
 * rounded, in order: the bits of scale and then add or mix. Where own is 0 y is
 * only written, and there is a term. *change (may be NULL, else y is read): the
 * sum over coordinates of y after less y before; of one term added to y as it
 * is, the sum of that term, as mix has it. */
struct kith_update {
    void *y;
    double own;
    unsigned count;
    const struct kith_term *terms;
    bool squared;
    double *change;
};
#define KITH_UPDATES_MAX 6u

/* C (m, n) <- alpha op(A) (m, k) op(B) (k, n) + beta C, row-major. */
struct kith_gemm {
    bool transpose_a, transpose_b;
    size_t m, n, k;
    double alpha;
    const void *a, *b;
    double beta;
    void *c;
};

/* A moment smaller than that becomes 0: where no gradient comes any more it
 * fades to numbers with which processors are slow, a hundred times on some, and
 * stays there. Nothing that is added to a weight of any size is lost. */
#define KITH_MOMENT_LEAST 0x1p-100f

/* SGD: g <- g + decay x;  v <- momentum v + g;
 *   x <- x - rate v, or with nesterov x <- x - rate (g + momentum v).
 * Where momentum is 0, velocity is neither read nor written; v is a moment. */
struct kith_sgd {
    size_t n;
    double rate, momentum, decay;
    bool nesterov;
    const void *gradient;
    void *velocity, *x;
};

/* g <- (beta1 m + g) / (sqrt(beta2 v + (1 - beta2) g^2) + epsilon), in float64,
 * each operation rounded, (1 - beta2) g before its second g; then once to g. */
struct kith_adam {
    size_t n;
    double beta1, beta2, epsilon;
    const void *first, *second; /* m, v */
    void *gradient;
};

/* Values that share a scale. */
#define KITH_INT8_BLOCK 256u

struct kith_backend {
    const char *name, *summary;
    size_t element_bytes; /* 4 or 8 */
    /* What checks and moves vectors in the host's memory, the slots that are
     * sent and received: the backend itself, or cpu for one with memory of its
     * own. */
    const struct kith_backend *host;
    /* NULL: this backend can run here; else why not, in a line. */
    const char *(*missing)(void);

    /* Zeroed memory for vectors, 64-byte aligned; NULL: none. `shared` memory
     * can be read and written by the host as well: slots that are sent and
     * received. */
    void *(*alloc)(size_t bytes, bool shared);
    void (*release)(void *memory); /* NULL: nothing */

    /* target <- source */
    void (*copy)(size_t n, void *target, const void *source);
    /* x <- 0, whatever stands there: factor 0 would keep what is not finite. */
    void (*clear)(size_t n, void *x);
    /* x <- factor * x */
    void (*scale)(size_t n, double factor, void *x);
    /* y <- y + factor * x */
    void (*add)(size_t n, double factor, const void *x, void *y);
    /* x <- x + weight * (received - sent); returns sum of what was added,
     * float64, always in the same order: exact negatives on the two sides of
     * a pair. One pass, 16 n bytes of traffic (12 n where sent == x). */
    double (*mix)(size_t n, double weight, const void *received,
                  const void *sent, void *x);
    /* x <- base + weight * (received - sent), out of place: the old x, `base`,
     * stays the snapshot that it is without being copied. x is only written,
     * past the caches where it is large: 16 n bytes of traffic (12 n where
     * sent == base). */
    double (*swap_mix)(size_t n, double weight, const void *received,
                       const void *sent, const void *base, void *x);
    /* mix of what travelled as bfloat16, the upper halves of float32: rounded
     * alike on both ends, deltas are exact negatives. One pass, 12 n bytes of
     * traffic. */
    double (*mix_bf16)(size_t n, double weight, const uint16_t *received,
                       const uint16_t *sent, void *x);
    /* The updates in order: a later one sees what an earlier one wrote. One
     * pass over all their vectors, on a device one for each update; they are
     * the same or apart; count <= KITH_UPDATES_MAX, of up to KITH_TERMS_MAX
     * terms each. */
    void (*combine)(size_t n, unsigned count,
                    const struct kith_update *updates);
    double (*sum)(size_t n, const void *x);
    /* |x - y|^2 in float64; y may be NULL (0). */
    double (*distance_squared)(size_t n, const void *x, const void *y);
    /* The gate: true when every value of x is finite. */
    bool (*finite)(size_t n, const void *x);
    /* To and from float64, for tests, saves and the store. */
    void (*read)(size_t n, const void *x, double *out);
    void (*write)(size_t n, const double *in, void *x);

    void (*gemm)(const struct kith_gemm *gemm);
    /* Returns whether every new value of x is finite, found in the same pass.
     */
    bool (*sgd)(const struct kith_sgd *sgd);
    void (*adam_direction)(const struct kith_adam *moments);
    /* What models are made of. */
    const struct kith_ops *ops;

    /* bytes (rows, n) of uint8 -> y = byte / 255. */
    void (*from_bytes)(size_t n, const uint8_t *bytes, void *y);

    /* What formats are made of (kith/format.h), of values as float32: the same
     * bits on every CPU and device. A host has them all but
     * those of whole messages, which a device has in place of blocks.
     *
     * y <- x to the nearest bfloat16, ties to even, a NaN stays one; and back.
     */
    void (*to_bf16)(size_t n, const void *x, uint16_t *y);
    void (*from_bf16)(size_t n, const uint16_t *x, void *y);
    /* |x - y|^2 of bfloat16, in float64, as distance_squared; y may be NULL. */
    double (*distance_bf16)(size_t n, const uint16_t *x, const uint16_t *y);
    /* y <- x / scale to the nearest, ties to even, in [-127, 127]; returns
     * scale = max |x| / 127, 0 where that is below 2^-126, and where x is not
     * finite infinity. And back: y <- scale x. */
    float (*to_int8)(size_t n, const void *x, int8_t *y);
    void (*from_int8)(size_t n, float scale, const int8_t *x, void *y);
    /* Whole messages: the scales of all blocks, then a byte a value. */
    void (*pack_int8)(size_t n, const void *x, void *wire);
    void (*unpack_int8)(size_t n, const void *wire, void *y);
    const struct kith_residues *(*residues)(void);
    const struct kith_residue_messages *residue_messages; /* a device's */
    const struct kith_compressed *compressed;             /* a device's */
    const struct kith_outside_kernels *outside;           /* a device's */
    /* What selections of the largest sizes are made of; a host's. */
    const struct kith_magnitudes *(*magnitudes)(void);

    /* ---- Optional, NULL or 0 where a backend computes on the host: for one
     * that works on while its caller goes ahead. Calls take effect in the
     * order in which they are made. A shared vector is written by one side
     * only: one that is sent by the backend, one that is received by the
     * host. A call that reads one that is received has done so when it
     * returns: the host may write it again. Test: unit/test_cuda_order.c */

    /* Bytes of one value between the operations of a network (x, y, dx, dy,
     * pre, logits): 2 is bfloat16. Weights and their gradients, buffers and
     * `saved` keep element_bytes, and so does the input of a pass. 0: all of
     * it has element_bytes. */
    size_t activation_bytes;
    /* activation <- element, and back: a pass's input, scores to read. */
    void (*narrow)(size_t n, const void *elements, void *activations);
    void (*widen)(size_t n, const void *activations, void *elements);
    /* From begin to end, on one thread, cross_entropy returns 0 and leaves
     * *correct alone, clip returns 0, sgd and adamw return true, all before
     * they are done; end waits for them and says what they found. */
    void (*step_begin)(void);
    void (*step_end)(struct kith_found *found);
    /* y_k <- x[places_k], and x[places_k] <- x[places_k] + weight (received_k
     * - sent_k), which returns the sum as mix does. n places, none twice, in
     * shared memory, where the host may write others when a call returns; x is
     * not shared. */
    void (*gather)(size_t n, const uint32_t *places, const void *x, void *y);
    double (*mix_at)(size_t n, double weight, const uint32_t *places,
                     const void *received, const void *sent, void *x);
    /* g <- g min(1, limit / |g|); returns |g|. NULL: distance_squared, scale.
     */
    double (*clip)(size_t n, double limit, void *g);
    /* What the backend was last told to write into this shared vector is
     * there for the host to read. wait: come back when it is. Any thread. */
    bool (*settled)(const void *shared, bool wait);
    /* The first bytes of this shared vector have been received: the backend
     * may fetch them now, before they are merged. Any thread. */
    void (*arrived)(const void *shared, size_t bytes);
    /* NULL: well. Else what failed, in a line, and for good: a device that was
     * lost, memory that cannot be trusted, none left for scratch. From then on
     * calls do nothing, what returns a number returns NaN, what returns a
     * truth returns false (settled: true), and nothing computed since the last
     * step_end may be kept or sent. Any thread. */
    const char *(*failed)(void);
    /* The next way that was taken though a faster one exists, and what to do
     * about it, in a line that stays; NULL: none that has not been told. Each
     * kind comes once in a process. Any thread. */
    const char *(*notice)(void);
};

extern const struct kith_backend *const kith_backends[];
const struct kith_backend *kith_backend_find(const char *name);
/* What `backend: auto` means here: cuda where it can run, else cpu. Resolved
 * once, when a program starts; the name belongs to the run.
 * Test: unit/test_cuda_module.c */
const struct kith_backend *kith_backend_auto(void);
/* What reads and tests the weights of a backend that need not be here: its
 * host, or cpu where that cannot run. Test: unit/test_bf16.c */
const struct kith_backend *
kith_backend_stand_in(const struct kith_backend *backend);
/* Bytes of host memory that can be had without swapping; SIZE_MAX where the
 * system does not say. */
size_t kith_host_available(void);
/* CLOCK_MONOTONIC, which fork() shares. */
kith_ns kith_host_now(void);
#define KITH_POOL_THREADS_MAX 64u
/* Threads a backend's products may use; the simulator and the lab say 1. */
void kith_backend_threads(unsigned count);
unsigned kith_backend_thread_count(void);

/* Who multiplies matrices for backend cpu: "own" (at first, where the CPU has
 * AVX2 or AVX-512), "openblas" (at first elsewhere), "onednn" (where
 * libdnnl.so.2 is installed); NULL-terminated. Their results
 * differ in the last bits, so the name belongs to a run and its checkpoints. */
#define KITH_PRODUCTS 3
extern const char *const kith_backend_products[KITH_PRODUCTS + 1];
/* Chooses one, for all threads; never while a product runs.
 *
 * Returns KITH_OK, or
 *   KITH_EINVAL        no such name
 *   KITH_EUNSUPPORTED  its library is not here; the choice stays as it was
 */
KITH_MUST_CHECK enum kith_err kith_backend_product(const char *name);
const char *kith_backend_product_name(void);
/* Measures all that are here, with the threads now set, on the products of a
 * small MLP and GPT, and returns the name of the fastest; chooses nothing.
 * What a calibration calls, and nothing else: a resumed run and a simulation
 * must not depend on a clock.
 *
 *   gflops  (KITH_PRODUCTS), 0 where a library is not here
 *
 * Cost    a fifth of a second on one core; 8 MiB while it runs.
 * Test    unit/test_products.c */
const char *kith_backend_measure_products(double gflops[KITH_PRODUCTS]);

/* FLOP/s that a backend reaches at best here, with the threads now set: for cpu
 * multiply-adds on registers with the widest instructions this CPU has, for
 * the others their own products (of a linear layer where these differ from
 * gemm), growing until they take a while. The quickest
 * of some rounds: what disturbs only slows down. What utilisation (MFU) is a
 * share of. 0: no memory, or the backend cannot run here.
 *
 * Cost    a tenth of a second.
 * Test    unit/test_peak.c */
double kith_backend_measure_peak(const struct kith_backend *backend);

KITH_END_DECLS

#endif
