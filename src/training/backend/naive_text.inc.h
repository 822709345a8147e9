/* Plain loops of ops.h, part 3: embeddings and causal attention.
 * REAL is float or double. */

static void naive_embed(const struct kith_arguments *a)
{
    const struct kith_embed *op = a->shape;
    const size_t width = op->width;
    const int32_t *tokens = a->x;
    const REAL *words = a->weight, *places = a->bias;
    REAL *out = a->y;
    for (size_t i = 0; i < a->rows * op->context; i++) {
        KITH_ASSERT(tokens[i] >= 0 && (size_t)tokens[i] < op->vocabulary);
        for (size_t j = 0; j < width; j++)
            out[i * width + j] =
                words[(size_t)tokens[i] * width + j] +
                (places == NULL ? 0 : places[i % op->context * width + j]);
    }
}

static void naive_embed_backward(const struct kith_arguments *a)
{
    const struct kith_embed *op = a->shape;
    const size_t width = op->width;
    const int32_t *tokens = a->x;
    const REAL *d = a->dy;
    REAL *words = a->dweight, *places = a->dbias;
    if (words != NULL && !(a->flags & KITH_ADD_WEIGHTS))
        memset(words, 0, op->vocabulary * width * sizeof *words);
    if (places != NULL && !(a->flags & KITH_ADD_WEIGHTS))
        memset(places, 0, op->context * width * sizeof *places);
    for (size_t i = 0; i < a->rows * op->context; i++) {
        for (size_t j = 0; words != NULL && j < width; j++)
            words[(size_t)tokens[i] * width + j] += d[i * width + j];
        for (size_t j = 0; places != NULL && j < width; j++)
            places[i % op->context * width + j] += d[i * width + j];
    }
}

static const struct kith_kernel naive_embed_kernel = {
    .forward = naive_embed, .backward = naive_embed_backward};

/* One head of one row: pointers to its q, k, v at token 0; a token is `stride`
 * elements further. */
struct naive_head {
    const REAL *q, *k, *v;
    size_t stride, size;
    double scale; /* 1 / sqrt(size) */
};

static struct naive_head naive_head_of(const struct kith_attention *op,
                                       size_t row, size_t head, const REAL *qkv)
{
    const size_t size = op->width / op->heads;
    const REAL *q = qkv + row * op->context * 3 * op->width + head * size;
    return (struct naive_head){.q = q,
                               .k = q + op->width,
                               .v = q + 2 * op->width,
                               .stride = 3 * op->width,
                               .size = size,
                               .scale = 1 / sqrt((double)size)};
}

/* scale q_i . k_j */
static double naive_score(const struct naive_head *h, size_t i, size_t j)
{
    double sum = 0;
    for (size_t c = 0; c < h->size; c++)
        sum +=
            (double)h->q[i * h->stride + c] * (double)h->k[j * h->stride + c];
    return sum * h->scale;
}

/* log sum_j<=i e^(score ij), shifted by the largest. */
static double naive_log_sum(const struct naive_head *h, size_t i)
{
    double top = naive_score(h, i, 0), sum = 0;
    for (size_t j = 1; j <= i; j++) {
        const double score = naive_score(h, i, j);
        top = score > top ? score : top;
    }
    for (size_t j = 0; j <= i; j++)
        sum += kith_exp(naive_score(h, i, j) - top);
    return top + kith_log(sum);
}

/* y_i = sum_j<=i p_ij v_j, p_ij = e^(score ij - log sum i). */
static void naive_attention(const struct kith_arguments *a)
{
    const struct kith_attention *op = a->shape;
    REAL *sums = a->saved, *out = a->y;
    for (size_t at = 0; at < a->rows * op->heads; at++) {
        const size_t row = at / op->heads, head = at % op->heads;
        const struct naive_head h = naive_head_of(op, row, head, a->x);
        for (size_t i = 0; i < op->context; i++) {
            const double log_sum = naive_log_sum(&h, i);
            REAL *target =
                out + (row * op->context + i) * op->width + head * h.size;
            if (sums != NULL)
                sums[at * op->context + i] = (REAL)log_sum;
            for (size_t c = 0; c < h.size; c++)
                target[c] = 0;
            for (size_t j = 0; j <= i; j++) {
                const double p = kith_exp(naive_score(&h, i, j) - log_sum);
                for (size_t c = 0; c < h.size; c++)
                    target[c] += (REAL)p * h.v[j * h.stride + c];
            }
        }
    }
}

/* Token i of one head: with D_i = dy_i . y_i,
 *   dv_j += p_ij dy_i,  ds_ij = p_ij (dy_i . v_j - D_i) scale,
 *   dq_i += ds_ij k_j,  dk_j += ds_ij q_i. */
static void naive_attention_token(const struct naive_head *h, size_t width,
                                  size_t i, double log_sum, const REAL *y,
                                  const REAL *dy, REAL *dq)
{
    REAL *dk = dq + width, *dv = dq + 2 * width;
    double own = 0;
    for (size_t c = 0; c < h->size; c++)
        own += (double)dy[c] * (double)y[c];
    for (size_t j = 0; j <= i; j++) {
        const double p = kith_exp(naive_score(h, i, j) - log_sum);
        double dp = 0;
        for (size_t c = 0; c < h->size; c++) {
            dp += (double)dy[c] * (double)h->v[j * h->stride + c];
            dv[j * h->stride + c] += (REAL)p * dy[c];
        }
        const REAL ds = (REAL)(p * (dp - own) * h->scale);
        for (size_t c = 0; c < h->size; c++) {
            dq[i * h->stride + c] += ds * h->k[j * h->stride + c];
            dk[j * h->stride + c] += ds * h->q[i * h->stride + c];
        }
    }
}

static void naive_attention_backward(const struct kith_arguments *a)
{
    const struct kith_attention *op = a->shape;
    const REAL *out = a->y, *d = a->dy, *sums = a->saved, *in = a->x;
    REAL *target = a->dx;
    memset(target, 0, a->rows * op->context * 3 * op->width * sizeof *target);
    for (size_t at = 0; at < a->rows * op->heads; at++) {
        const size_t row = at / op->heads, head = at % op->heads;
        const struct naive_head h = naive_head_of(op, row, head, in);
        for (size_t i = 0; i < op->context; i++) {
            const size_t from =
                (row * op->context + i) * op->width + head * h.size;
            naive_attention_token(&h, op->width, i,
                                  (double)sums[at * op->context + i],
                                  out + from, d + from, target + (h.q - in));
        }
    }
}

static const struct kith_kernel naive_attention_kernel = {
    .forward = naive_attention, .backward = naive_attention_backward};
