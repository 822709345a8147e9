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

static size_t pieces(const struct kith_attention *op, size_t rows)
{
    const size_t bytes =
        kith_head_scratch(op->context, op->width / op->heads) * sizeof(float);
    size_t most = PIECES_BYTES / bytes;
    most = most < PIECES_LEAST ? PIECES_LEAST : most;
    most = most > KITH_POOL_THREADS_MAX ? KITH_POOL_THREADS_MAX : most;
    return rows * op->heads < most ? rows * op->heads : most;
}

size_t kith_cpu_attention_scratch(const struct kith_attention *op, size_t rows)
{
    return pieces(op, rows) *
           kith_head_scratch(op->context, op->width / op->heads) *
           sizeof(float);
}

struct pass {
    const struct kith_attention *op;
    size_t heads, pieces;
    bool backward;
    const float *qkv, *dy;
    float *y, *saved, *dqkv, *scratch;
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

static void one_head(struct pass *pass, size_t i, float *scratch)
{
    const struct kith_attention *op = pass->op;
    const size_t row = i / op->heads, number = i % op->heads;
    const size_t size = op->width / op->heads;
    const size_t in = row * op->context * 3 * op->width + number * size;
    const size_t out = row * op->context * op->width + number * size;
    struct kith_head head = {
        .context = op->context,
        .size = size,
        .stride = 3 * op->width,
        .width = op->width,
        .q = pass->qkv + in,
        .k = pass->qkv + in + op->width,
        .v = pass->qkv + in + 2 * op->width,
        .y = pass->y + out,
        .sums = pass->saved == NULL ? NULL : pass->saved + i * op->context,
        .scratch = scratch};
    if (!pass->backward) {
        kith_cpu_text()->head(&head);
        return;
    }
    head.dy = pass->dy + out;
    head.dq = pass->dqkv + in;
    head.dk = pass->dqkv + in + op->width;
    head.dv = pass->dqkv + in + 2 * op->width;
    kith_cpu_text()->head_backward(&head);
}

/* Heads part, part + parts, ...: with as many parts as pieces, the lowest free
 * piece is always there, and a single thread keeps to one, warm in its cache.
 */
static void pass_part(void *context, size_t part)
{
    struct pass *pass = context;
    const unsigned piece = take_piece(pass);
    float *scratch =
        pass->scratch +
        piece * kith_head_scratch(pass->op->context,
                                  pass->op->width / pass->op->heads);
    for (size_t i = part; i < pass->heads; i += pass->pieces)
        one_head(pass, i, scratch);
    atomic_fetch_and(&pass->taken, ~(UINT64_C(1) << piece));
}

void kith_cpu_attention(const struct kith_attention *op, size_t rows,
                        const void *qkv, void *saved, void *y, void *scratch)
{
    struct pass pass = {.op = op,
                        .heads = rows * op->heads,
                        .pieces = pieces(op, rows),
                        .qkv = qkv,
                        .y = y,
                        .saved = saved,
                        .scratch = scratch};
    atomic_init(&pass.taken, 0);
    kith_pool_run(pass.pieces, pass_part, &pass);
}

void kith_cpu_attention_backward(const struct kith_attention *op, size_t rows,
                                 const void *qkv, const void *y,
                                 const void *saved, const void *dy, void *dqkv,
                                 void *scratch)
{
    /* A way back reads y and saved: nothing is written through these. */
    struct pass pass = {.op = op,
                        .heads = rows * op->heads,
                        .pieces = pieces(op, rows),
                        .backward = true,
                        .qkv = qkv,
                        .dy = dy,
                        .y = (float *)(uintptr_t)y,
                        .saved = (float *)(uintptr_t)saved,
                        .dqkv = dqkv,
                        .scratch = scratch};
    atomic_init(&pass.taken, 0);
    kith_pool_run(pass.pieces, pass_part, &pass);
}
