/* Embeddings and the loss.
 *
 * A token's gradient is the sum of the rows where it stands, in their order:
 * one block per word of the vocabulary, which leaves at once where the word
 * does not occur, and stops where it has found the last of them. No float is
 * added atomically: the same bits each time. */
#include "state.cuh"

namespace gpu
{
template <typename T>
__global__ void embed_kernel(size_t n, size_t width, size_t context,
                             size_t vocabulary, const int32_t *tokens,
                             const float *token, const float *position, T *y,
                             numbers *found)
{
    const size_t step = thread_count();
    for (size_t i = thread_index(); i < n; i += step) {
        const size_t at = i / width, j = i % width;
        const int32_t t = tokens[at];
        if (t < 0 || (size_t)t >= vocabulary) {
            (void)atomicOr(&found->bad, 1u);
            from_float(0.0f, &y[i]);
            continue;
        }
        const float place =
            position == nullptr ? 0.0f : position[at % context * width + j];
        from_float(token[(size_t)t * width + j] + place, &y[i]);
    }
}

template <typename T> static void embed(const struct kith_arguments *a)
{
    const struct kith_embed *op = (const struct kith_embed *)a->shape;
    const call c;
    const size_t n = a->rows * op->context * op->width;
    if (!c.well() || n == 0)
        return;
    const int32_t *const list = (const int32_t *)readable(
        a->x, a->rows * op->context * sizeof(int32_t));
    launch(embed_kernel<T>, dim3(blocks_for(n, 256)), dim3(256), 0, stream(), n,
           op->width, op->context, op->vocabulary, list,
           (const float *)a->weight, (const float *)a->bias, (T *)a->y,
           found());
    launched("an embedding");
}

__global__ void count_kernel(size_t n, size_t vocabulary, const int32_t *tokens,
                             unsigned *counts)
{
    const size_t step = thread_count();
    for (size_t i = thread_index(); i < n; i += step) {
        const int32_t t = tokens[i];
        if (t >= 0 && (size_t)t < vocabulary)
            (void)atomicAdd(&counts[t], 1u);
    }
}

enum { WORD_THREADS = 256, WORD_COLUMNS = 1024 };

template <typename T>
__global__ void word_kernel(size_t n, size_t width, bool adds,
                            const int32_t *tokens, const unsigned *counts,
                            const T *dy, float *dtoken)
{
    __shared__ unsigned places[WORD_THREADS], votes[WORD_THREADS / 32];
    const unsigned word = blockIdx.x, want = counts[word];
    const unsigned lane = threadIdx.x % 32, warp = threadIdx.x / 32;
    const size_t first = (size_t)blockIdx.y * WORD_COLUMNS;
    float *const out = dtoken + (size_t)word * width;
    float sum[WORD_COLUMNS / WORD_THREADS] = {};
    unsigned have = 0;
    for (size_t at = 0; at < n && have < want; at += WORD_THREADS) {
        const size_t i = at + threadIdx.x;
        const bool mine = i < n && tokens[i] == (int32_t)word;
        const unsigned vote = __ballot_sync(0xffffffffu, mine);
        if (lane == 0)
            votes[warp] = (unsigned)__popc(vote);
        __syncthreads();
        unsigned before = (unsigned)__popc(vote & ((1u << lane) - 1u));
        unsigned here = 0;
        for (unsigned w = 0; w < WORD_THREADS / 32; w++) {
            before += w < warp ? votes[w] : 0u;
            here += votes[w];
        }
        if (mine)
            places[before] = threadIdx.x;
        __syncthreads();
        for (unsigned p = 0; p < here; p++) {
            const T *const row = dy + (at + places[p]) * width;
            for (unsigned k = 0; k < WORD_COLUMNS / WORD_THREADS; k++) {
                const size_t j = first + k * WORD_THREADS + threadIdx.x;
                if (j < width)
                    sum[k] += to_float(row[j]);
            }
        }
        have += here;
        __syncthreads();
    }
    if (adds && want == 0)
        return;
    for (unsigned k = 0; k < WORD_COLUMNS / WORD_THREADS; k++) {
        const size_t j = first + k * WORD_THREADS + threadIdx.x;
        if (j < width)
            out[j] = (adds ? out[j] : 0.0f) + sum[k];
    }
}

template <typename T>
__global__ void position_kernel(size_t rows, size_t n, bool adds, const T *dy,
                                float *dposition)
{
    const size_t step = thread_count();
    for (size_t i = thread_index(); i < n; i += step) {
        float sum = adds ? dposition[i] : 0.0f;
        for (size_t row = 0; row < rows; row++)
            sum += to_float(dy[row * n + i]);
        dposition[i] = sum;
    }
}

template <typename T> static void embed_backward(const struct kith_arguments *a)
{
    const struct kith_embed *op = (const struct kith_embed *)a->shape;
    const call c;
    const size_t n = a->rows * op->context, words = op->vocabulary;
    const size_t places = op->context * op->width;
    const bool adds = (a->flags & KITH_ADD_WEIGHTS) != 0;
    if (!c.well() || n == 0)
        return;
    if (a->dbias != nullptr) {
        launch(position_kernel<T>, dim3(blocks_for(places, 128)), dim3(128), 0,
               stream(), a->rows, places, adds, (const T *)a->dy,
               (float *)a->dbias);
        launched("an embedding's way back");
    }
    if (a->dweight == nullptr)
        return;
    unsigned *const counts =
        (unsigned *)scratch_of(SCRATCH_INDEX, words * sizeof *counts);
    if (counts == nullptr)
        return;
    const int32_t *const list =
        (const int32_t *)readable(a->x, n * sizeof(int32_t));
    check(cudaMemsetAsync(counts, 0, words * sizeof *counts, stream()),
          "clearing memory");
    launch(count_kernel, dim3(blocks_for(n, 256)), dim3(256), 0, stream(), n,
           words, list, counts);
    const unsigned across =
        (unsigned)((op->width + WORD_COLUMNS - 1) / WORD_COLUMNS);
    launch(word_kernel<T>, dim3((unsigned)words, across), dim3(WORD_THREADS), 0,
           stream(), n, op->width, adds, list, counts, (const T *)a->dy,
           (float *)a->dweight);
    launched("an embedding's way back");
}

/* ---- the loss: a block per row, one pass for maximum and sum (each rescaled
 * where a larger one comes), one for the gradient */

struct running {
    float top, sum, total; /* total: of the logits, for smoothing */
    uint32_t best;
};

/* The one that holds the first of the largest. NaN is never the largest. */
static __device__ inline running join(const running &a, const running &b)
{
    const bool second = b.top > a.top || (b.top == a.top && b.best < a.best);
    running r;
    r.top = second ? b.top : a.top;
    r.best = second ? b.best : a.best;
    r.sum = (a.top == r.top ? a.sum : a.sum * expf(a.top - r.top)) +
            (b.top == r.top ? b.sum : b.sum * expf(b.top - r.top));
    r.total = a.total + b.total;
    return r;
}

static __device__ inline running other_lane(const running &a, int bits)
{
    running r;
    r.top = __shfl_xor_sync(0xffffffffu, a.top, bits);
    r.sum = __shfl_xor_sync(0xffffffffu, a.sum, bits);
    r.total = __shfl_xor_sync(0xffffffffu, a.total, bits);
    r.best = __shfl_xor_sync(0xffffffffu, a.best, bits);
    return r;
}

enum { LOSS_THREADS = 256 };

/* Elements j to j + N of a row, those from `classes` on left out. One rescaling
 * for all of them: the largest first, then the exponentials. */
template <int N>
static __device__ inline void take(const float (&v)[N], size_t j,
                                   size_t classes, running *mine)
{
    const int count = classes - j < N ? (int)(classes - j) : N;
    float top = mine->top;
    uint32_t best = mine->best;
    for (int k = 0; k < N; k++) {
        if (k < count && v[k] > top) {
            top = v[k];
            best = (uint32_t)(j + (size_t)k);
        }
    }
    if (top > mine->top)
        mine->sum *= expf(mine->top - top);
    mine->top = top;
    mine->best = best;
    for (int k = 0; k < N; k++) {
        if (k >= count)
            continue;
        mine->sum += v[k] == top ? 1.0f : expf(v[k] - top);
        mine->total += v[k];
    }
}

/* N elements at a time: rows of `stride`, a multiple of N, begin at multiples
 * of N elements. What stands between two rows becomes 0. */
template <int N, typename T>
__global__ void loss_kernel(size_t classes, size_t stride,
                            const int32_t *labels, float smoothing,
                            float factor, T *logits, double *losses,
                            unsigned *rights, numbers *found)
{
    __shared__ running room[LOSS_THREADS / 32];
    T *const row = logits + (size_t)blockIdx.x * stride;
    const int32_t label = labels[blockIdx.x];
    const bool known = label >= 0 && (size_t)label < classes;
    const float goal = known ? to_float(row[label]) : 0.0f;
    running mine = {-INFINITY, 0, 0, UINT32_MAX};
    float v[N];
    for (size_t j = threadIdx.x * N; j < classes; j += LOSS_THREADS * N) {
        load(row, j, v);
        take(v, j, classes, &mine);
    }
    for (int bits = 16; bits > 0; bits /= 2)
        mine = join(mine, other_lane(mine, bits));
    if (threadIdx.x % 32 == 0)
        room[threadIdx.x / 32] = mine;
    __syncthreads();
    mine = room[0];
    for (unsigned w = 1; w < LOSS_THREADS / 32; w++)
        mine = join(mine, room[w]);
    const float spread = smoothing / (float)classes, inverse = 1 / mine.sum;
    for (size_t j = threadIdx.x * N; j < stride; j += LOSS_THREADS * N) {
        load(row, j, v);
        for (int k = 0; k < N; k++) {
            const size_t at = j + (size_t)k;
            const float p = expf(v[k] - mine.top) * inverse;
            const float q = (int32_t)at == label ? 1 - smoothing : 0.0f;
            v[k] = at < classes ? (p - (q + spread)) * factor : 0.0f;
        }
        store(v, row, j);
    }
    if (threadIdx.x != 0)
        return;
    const double expected =
        (1 - (double)smoothing) * ((double)goal - (double)mine.top) +
        (double)spread *
            ((double)mine.total - (double)classes * (double)mine.top);
    losses[blockIdx.x] = log((double)mine.sum) - expected;
    rights[blockIdx.x] = mine.best == (uint32_t)label;
    if (!known)
        (void)atomicOr(&found->bad, 1u);
}

/* value <- the mean loss, which a step adds up. */
__global__ void loss_end_kernel(size_t rows, const double *losses,
                                const unsigned *rights, numbers *found)
{
    __shared__ double room[32];
    double sum = 0, right = 0;
    for (size_t i = threadIdx.x; i < rows; i += blockDim.x) {
        sum += losses[i];
        right += rights[i];
    }
    sum = block_sum(sum, room);
    right = block_sum(right, room);
    if (threadIdx.x != 0)
        return;
    const double mean = sum / (double)rows;
    found->value = mean;
    found->loss += mean;
    found->correct += (unsigned)right;
    if (!(mean - mean <= 0))
        found->bad |= 1u;
}

template <typename T> double cross_entropy(const struct kith_loss *l)
{
    const size_t stride = l->stride > 0 ? l->stride : l->classes;
    const call c;
    if (!c.well() || l->rows == 0)
        return (double)NAN;
    if (!in_step())
        forget_numbers();
    double *const losses = (double *)scratch_of(
        SCRATCH_PARTIALS, l->rows * (sizeof(double) + sizeof(unsigned)));
    if (losses == nullptr)
        return (double)NAN;
    unsigned *const rights = (unsigned *)(losses + l->rows);
    const int32_t *const list =
        (const int32_t *)readable(l->labels, l->rows * sizeof *l->labels);
    const bool even = stride % wide<T>::value == 0 && aligned(l->logits, 16);
    if (!even && l->rows * l->classes >= SLOW_VALUES)
        took(SLOW_LOSS,
             "a loss of %zu classes in rows that do not begin at multiples of "
             "16 bytes: one at a time",
             l->classes);
    launch(even ? loss_kernel<wide<T>::value, T> : loss_kernel<1, T>,
           dim3((unsigned)l->rows), dim3(LOSS_THREADS), 0, stream(), l->classes,
           stride, list, (float)l->smoothing,
           (float)(l->scale / (double)l->rows), (T *)l->logits, losses, rights,
           found());
    launch(loss_end_kernel, dim3(1), dim3(1024), 0, stream(), l->rows, losses,
           rights, found());
    launched("a loss");
    if (in_step())
        return 0;
    numbers got;
    if (!collect(&got))
        return (double)NAN;
    if (l->correct != nullptr)
        *l->correct = got.correct;
    /* A label that no class has must not pass for a loss. */
    return got.bad != 0 ? (double)NAN : got.value;
}

/* Rows of a multiple of 16 bytes; of 128, a line of the cache, where that adds
 * little. */
size_t scores_stride(size_t classes)
{
    const size_t step = classes % 8 == 0 ? 1 : classes < 1024 ? 8 : 64;
    return (classes + step - 1) / step * step;
}

KITH_KERNEL(embed, nullptr, embed, embed_backward)
template double cross_entropy<float>(const struct kith_loss *l);
template double cross_entropy<bf16>(const struct kith_loss *l);
} // namespace gpu
