/* Causal self-attention: one head of one row is one part, and works in a piece
 * of scratch that no other part has at the time. */
#include <stdatomic.h>

#include "cpu_text.h"
#include "kith/assert.h"
#include "pool.h"

/* Pieces that a pass may need at once: one a thread, or fewer where a piece is
 * large, since a context of thousands needs megabytes. */
enum { PIECES_BYTES = 32 << 20, PIECES_LEAST = 8 };

size_t kith_head_scratch(size_t context, size_t size)
{
    const size_t t = (context + 15) / 16 * 16, d = (size + 15) / 16 * 16;
    return 8 * t * d + 32 * t + 16 * d;
}

static size_t pieces_of(const struct kith_attention *op, size_t rows)
{
    const size_t bytes =
        kith_head_scratch(op->context, op->width / op->heads) * sizeof(float);
    size_t most = PIECES_BYTES / bytes;
    most = most < PIECES_LEAST ? PIECES_LEAST : most;
    most = most > KITH_POOL_THREADS_MAX ? KITH_POOL_THREADS_MAX : most;
    return rows * op->heads < most ? rows * op->heads : most;
}

static size_t attention_scratch(const void *shape, size_t rows)
{
    const struct kith_attention *op = shape;
    return pieces_of(op, rows) *
           kith_head_scratch(op->context, op->width / op->heads) *
           sizeof(float);
}

struct pass {
    const struct kith_arguments *a;
    size_t pieces;
    bool backward;
    atomic_uint_least64_t taken; /* bit i: piece i */
};

/* The lowest piece that is free; a pass has no more threads than pieces. */
static unsigned take_piece(struct pass *pass)
{
    uint_least64_t taken = atomic_load(&pass->taken);
    for (;;) {
        unsigned piece = 0;
        while (taken >> piece & 1)
            piece++;
        KITH_ASSERT(piece < pass->pieces);
        if (atomic_compare_exchange_weak(&pass->taken, &taken,
                                         taken | UINT64_C(1) << piece))
            return piece;
    }
}

static void one_head(const struct pass *pass, size_t i, float *scratch)
{
    const struct kith_arguments *a = pass->a;
    const struct kith_attention *op = a->shape;
    const size_t row = i / op->heads, number = i % op->heads;
    const size_t size = op->width / op->heads;
    const size_t in = row * op->context * 3 * op->width + number * size;
    const size_t out = row * op->context * op->width + number * size;
    const float *q = (const float *)a->x + in;
    float *sums = a->saved;
    struct kith_head head = {.context = op->context,
                             .size = size,
                             .stride = 3 * op->width,
                             .width = op->width,
                             .q = q,
                             .k = q + op->width,
                             .v = q + 2 * op->width,
                             .y = (float *)a->y + out,
                             .sums =
                                 sums == NULL ? NULL : sums + i * op->context,
                             .scratch = scratch};
    if (!pass->backward) {
        kith_cpu_text()->head(&head);
        return;
    }
    head.dy = (float *)a->dy + out;
    head.dq = (float *)a->dx + in;
    head.dk = head.dq + op->width;
    head.dv = head.dq + 2 * op->width;
    kith_cpu_text()->head_backward(&head);
}

/* Heads part, part + parts, ...: with as many parts as pieces, the lowest free
 * piece is always there, and a single thread keeps to one, warm in its cache.
 */
static void pass_part(void *context, size_t part)
{
    struct pass *pass = context;
    const struct kith_attention *op = pass->a->shape;
    const unsigned piece = take_piece(pass);
    float *scratch =
        (float *)pass->a->scratch +
        piece * kith_head_scratch(op->context, op->width / op->heads);
    for (size_t i = part; i < pass->a->rows * op->heads; i += pass->pieces)
        one_head(pass, i, scratch);
    atomic_fetch_and(&pass->taken, ~(UINT64_C(1) << piece));
}

static void run(const struct kith_arguments *a, bool backward)
{
    struct pass pass = {
        .a = a, .pieces = pieces_of(a->shape, a->rows), .backward = backward};
    atomic_init(&pass.taken, 0);
    kith_pool_run(pass.pieces, pass_part, &pass);
}

static void attention(const struct kith_arguments *a)
{
    run(a, false);
}

static void attention_backward(const struct kith_arguments *a)
{
    run(a, true);
}

const struct kith_kernel kith_cpu_attention_kernel = {
    .scratch = attention_scratch,
    .forward = attention,
    .backward = attention_backward};
