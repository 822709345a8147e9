/* Muon: momentum made orthogonal, for matrices; AdamW for all else.
 *
 *   v <- momentum v + g;  u = g + momentum v      (nesterov; else u = v)
 *   X_0 = u / (|u| + 1e-7);  five times:  A = X X^T,  X <- a X + (b A + c A^2)
 * X x <- x - rate (0.2 sqrt(max(rows, columns)) X + decay x)
 *
 * The polynomial (a, b, c) pushes every singular value of X towards 1. The
 * factor gives updates the size of AdamW's, so that one learning rate serves
 * both. A convolution (kernel, kernel, in, out) is the matrix (kernel^2 in,
 * out). Embeddings, scores, biases, scales and shifts: AdamW.
 *
 * Jordan et al., "Muon: An optimizer for hidden layers in neural networks",
 * 2024; the factor: Liu et al., "Muon is Scalable for LLM Training", 2025. */
#include <math.h>

#include "terms.h"

/* One matrix (rows, columns) as stored, and its scratch. */
struct matrix {
    size_t rows, columns, shorter;
    void *x;              /* (rows, columns) the iterate */
    void *next;           /* (rows, columns) */
    void *square, *curve; /* (shorter, shorter): A; b A + c A^2 */
};

static bool is_matrix(const struct kith_layout *layout,
                      const struct kith_model_view *view)
{
    return view->offset < layout->decayed && view->rank >= 2 &&
           view->kind == KITH_VIEW_WEIGHT;
}

static struct matrix matrix_of(const struct kith_model_view *view)
{
    struct matrix matrix = {.columns = view->shape[view->rank - 1]};
    matrix.rows = view->elements / matrix.columns;
    matrix.shorter =
        matrix.rows < matrix.columns ? matrix.rows : matrix.columns;
    return matrix;
}

static size_t aligned(size_t bytes)
{
    return (bytes + 63) & ~(size_t)63;
}

static size_t muon_scratch(const struct kith_layout *layout,
                           const struct kith_backend *backend)
{
    const size_t element = backend->element_bytes;
    size_t most = 0;
    for (uint32_t i = 0; i < layout->view_count; i++) {
        const struct kith_model_view *view = &layout->views[i];
        if (!is_matrix(layout, view))
            continue;
        const size_t shorter = matrix_of(view).shorter;
        const size_t bytes = 2 * aligned(view->elements * element) +
                             2 * aligned(shorter * shorter * element);
        most = bytes > most ? bytes : most;
    }
    return most;
}

static void place(struct matrix *matrix, size_t element, char *scratch)
{
    const size_t whole = aligned(matrix->rows * matrix->columns * element);
    matrix->x = scratch;
    matrix->next = scratch + whole;
    matrix->square = scratch + 2 * whole;
    matrix->curve = scratch + 2 * whole +
                    aligned(matrix->shorter * matrix->shorter * element);
}

/* X <- a X + (b A + c A^2) X, A the smaller of X X^T and X^T X. */
static void iterate(const struct kith_backend *backend, struct matrix *matrix)
{
    static const double a = 3.4445, b = -4.7750, c = 2.0315;
    const size_t k = matrix->shorter;
    const size_t rows = matrix->rows, columns = matrix->columns;
    const bool wide = rows <= columns;
    backend->gemm(&(struct kith_gemm){.transpose_a = !wide,
                                      .transpose_b = wide,
                                      .m = k,
                                      .n = k,
                                      .k = wide ? columns : rows,
                                      .alpha = 1,
                                      .a = matrix->x,
                                      .b = matrix->x,
                                      .c = matrix->square});
    backend->copy(k * k, matrix->curve, matrix->square);
    backend->gemm(&(struct kith_gemm){.m = k,
                                      .n = k,
                                      .k = k,
                                      .alpha = c,
                                      .a = matrix->square,
                                      .b = matrix->square,
                                      .beta = b,
                                      .c = matrix->curve});
    backend->copy(rows * columns, matrix->next, matrix->x);
    backend->gemm(&(struct kith_gemm){.m = rows,
                                      .n = columns,
                                      .k = k,
                                      .alpha = 1,
                                      .a = wide ? matrix->curve : matrix->x,
                                      .b = wide ? matrix->x : matrix->curve,
                                      .beta = a,
                                      .c = matrix->next});
    void *swap = matrix->x;
    matrix->x = matrix->next;
    matrix->next = swap;
}

static bool muon_matrix(const struct kith_optimiser_step *step,
                        const struct kith_model_view *view)
{
    const struct kith_optimiser_config *config = step->config;
    const struct kith_backend *backend = step->backend;
    const size_t n = view->elements;
    void *g = kith_at(step, step->gradient, view->offset);
    void *v = kith_at(step, step->state[0], view->offset);
    struct matrix matrix = matrix_of(view);
    place(&matrix, backend->element_bytes, step->scratch);
    backend->scale(n, config->momentum, v);
    backend->add(n, 1, g, v);
    backend->copy(n, matrix.x, v);
    if (config->nesterov) {
        backend->scale(n, config->momentum, matrix.x);
        backend->add(n, 1, g, matrix.x);
    }
    /* The velocity of a layer without gradients fades to where 1 / norm is no
     * float32 any more. */
    const double norm = sqrt(backend->distance_squared(n, matrix.x, NULL));
    backend->scale(n, 1 / (norm + 1e-7), matrix.x);
    for (int i = 0; i < 5; i++)
        iterate(backend, &matrix);
    const size_t longer =
        matrix.rows > matrix.columns ? matrix.rows : matrix.columns;
    backend->scale(n, 0.2 * sqrt((double)longer), matrix.x);
    /* x <- x - rate (X + decay x); no velocity. */
    return backend->sgd(
        &(struct kith_sgd){.n = n,
                           .rate = step->rate,
                           .decay = config->weight_decay,
                           .gradient = matrix.x,
                           .x = kith_at(step, step->x, view->offset)});
}

static bool muon_step(const struct kith_optimiser_step *step)
{
    const struct kith_layout *layout = step->layout;
    bool finite = true;
    (void)kith_optimiser_clip(step);
    for (uint32_t i = 0; i < layout->view_count; i++) {
        const struct kith_model_view *view = &layout->views[i];
        if (view->offset >= layout->trained)
            break;
        const double decay =
            view->offset < layout->decayed ? step->config->weight_decay : 0;
        const bool kept =
            is_matrix(layout, view)
                ? muon_matrix(step, view)
                : kith_adamw_range(step, view->offset,
                                   view->offset + view->elements, decay);
        finite = kept && finite;
    }
    return finite;
}

extern const struct kith_optimiser kith_optimiser_muon;
const struct kith_optimiser kith_optimiser_muon = {
    .name = "muon",
    .paper = "Jordan et al., 2024; Liu et al., arXiv:2502.16982, 2025",
    .summary = "orthogonal momentum for matrices, adamw for all else",
    .keys = KITH_OPTIMISER_READS(MOMENTUM) | KITH_OPTIMISER_READS(NESTEROV) |
            KITH_OPTIMISER_READS(BETA1) | KITH_OPTIMISER_READS(BETA2) |
            KITH_OPTIMISER_READS(EPSILON),
    .state_vectors = 2,
    .scratch = muon_scratch,
    .step = muon_step,
};
