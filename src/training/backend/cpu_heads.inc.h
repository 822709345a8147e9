/* Causal attention of one head over f16, `BLOCK_ROWS` queries at a time.
 *
 *   s_ij = q_i . k_j / sqrt(size), j <= i;  p_ij = e^(s_ij - L_i),
 *   L_i = log sum_j e^s_ij;  y_i = sum_j p_ij v_j
 *   dv_j = sum_i p_ij dy_i;  ds_ij = p_ij (dy_i . v_j - dy_i . y_i)
 *   dq_i = sum_j ds_ij k_j / sqrt(size);  dk_j likewise
 *
 * A block needs the keys up to its last row alone: the masked half costs half a
 * block a row. Its scores (16 rows of the context) stay in the first two
 * caches; nothing of (context, context) is kept, and the way back makes p again
 * from L. Dao et al., "FlashAttention", NeurIPS 2022. */

enum { BLOCK_ROWS = 16 };

/* Where a head's parts stand in its scratch; d and t are padded to 16s. */
struct parts {
    size_t d, t;
    float *q, *k, *v, *dy;         /* (context, d), packed */
    float *k_turned, *v_turned;    /* (d, t) */
    float *dk, *dv;                /* (context, d) */
    float *scores, *slopes, *some; /* (BLOCK_ROWS, t) twice, (BLOCK_ROWS, d) */
};

static struct parts parts_of(const struct kith_head *head)
{
    struct parts p = {.d = (head->size + 15) / 16 * 16,
                      .t = (head->context + 15) / 16 * 16};
    const size_t whole = p.t * p.d;
    float *at = head->scratch;
    float **const places[] = {&p.q,        &p.k,  &p.v,  &p.k_turned,
                              &p.v_turned, &p.dk, &p.dv, &p.dy};
    for (size_t i = 0; i < sizeof places / sizeof *places; i++, at += whole)
        *places[i] = at;
    p.scores = at;
    p.slopes = at + BLOCK_ROWS * p.t;
    p.some = at + 2 * BLOCK_ROWS * p.t;
    return p;
}

/* to (context, d) <- factor * from, with zeros to the right of size. */
static void head_pack(const struct kith_head *head, size_t d, size_t stride,
                      float factor, const float *from, float *to)
{
    const f16 by = f16_all(factor);
    for (size_t i = 0; i < head->context; i++) {
        for (size_t j = 0; j < d; j += 16)
            f16_store(
                to + i * d + j,
                f16_mul(by, part_load(from + i * stride + j, head->size - j)));
    }
}

/* to (rows of size, stride apart) <- factor * from (rows, d). */
static void head_unpack(const struct kith_head *head, size_t rows, size_t d,
                        size_t stride, float factor, const float *from,
                        float *to)
{
    const f16 by = f16_all(factor);
    for (size_t i = 0; i < rows; i++) {
        for (size_t j = 0; j < d; j += 16)
            part_store(to + i * stride + j,
                       f16_mul(by, f16_load(from + i * d + j)), head->size - j);
    }
}

static float head_scale(const struct kith_head *head)
{
    return (float)(1 / sqrt((double)head->size));
}

/* A dense (., d) block as the left factor. */
static struct kith_matrix dense(const float *at, size_t row)
{
    return (struct kith_matrix){at, row, 1};
}

static struct kith_matrix turned(const float *at, size_t row)
{
    return (struct kith_matrix){at, 1, row};
}

/* row (first + 1 of `columns` count) <- e^(row - shift), the rest 0; returns
 * the sum. */
static float weigh(size_t count, size_t columns, float shift, float *row)
{
    const f16 less = f16_all(shift);
    f16 sum = f16_all(0);
    for (size_t j = count; j < columns; j++)
        row[j] = -FLT_MAX;
    for (size_t j = 0; j < columns; j += 16) {
        const f16 e = f16_exp(f16_sub(f16_load(row + j), less));
        f16_store(row + j, e);
        sum = f16_add(sum, e);
    }
    return f16_sum(sum);
}

static void head_block(const struct kith_head *head, const struct parts *p,
                       size_t i0, size_t rows, size_t columns)
{
    small_product(rows, columns, p->d, dense(p->q + i0 * p->d, p->d),
                  dense(p->k_turned, p->t),
                  (struct target){p->scores, p->t, false});
    float inverse[BLOCK_ROWS];
    for (size_t i = 0; i < rows; i++) {
        float *row = p->scores + i * p->t;
        const float top = row_most(i0 + i + 1, row);
        const float sum = weigh(i0 + i + 1, columns, top, row);
        inverse[i] = 1 / sum;
        if (head->sums != NULL)
            head->sums[i0 + i] = top + logf(sum);
    }
    small_product(rows, p->d, i0 + rows, dense(p->scores, p->t),
                  dense(p->v, p->d), (struct target){p->some, p->d, false});
    for (size_t i = 0; i < rows; i++)
        head_unpack(head, 1, p->d, 0, inverse[i], p->some + i * p->d,
                    head->y + (i0 + i) * head->width);
}

static void head(const struct kith_head *head)
{
    const struct parts p = parts_of(head);
    head_pack(head, p.d, head->stride, head_scale(head), head->q, p.q);
    head_pack(head, p.d, head->stride, 1, head->v, p.v);
    transpose(head->context, head->size, head->k, head->stride, p.k_turned,
              p.t);
    for (size_t j = head->size; j < p.d; j++)
        memset(p.k_turned + j * p.t, 0, p.t * sizeof *p.k_turned);
    for (size_t i = 0; i < head->context; i += BLOCK_ROWS) {
        const size_t left = head->context - i;
        const size_t rows = left < BLOCK_ROWS ? left : BLOCK_ROWS;
        head_block(head, &p, i, rows, (i + rows + 15) / 16 * 16);
    }
}

/* scores <- p, slopes <- ds of one block. */
static void block_slopes(const struct kith_head *head, const struct parts *p,
                         size_t i0, size_t rows, size_t columns)
{
    for (size_t i = 0; i < rows; i++) {
        float *row = p->scores + i * p->t, *slope = p->slopes + i * p->t;
        (void)weigh(i0 + i + 1, columns, head->sums[i0 + i], row);
        f16 sum = f16_all(0);
        const float *y = head->y + (i0 + i) * head->width;
        const float *dy = p->dy + (i0 + i) * p->d;
        for (size_t j = 0; j < p->d; j += 16)
            sum = f16_fma(part_load(y + j, head->size - j), f16_load(dy + j),
                          sum);
        const f16 mean = f16_all(f16_sum(sum));
        for (size_t j = 0; j < columns; j += 16)
            f16_store(slope + j, f16_mul(f16_load(row + j),
                                         f16_sub(f16_load(slope + j), mean)));
    }
}

static void block_backward(const struct kith_head *head, const struct parts *p,
                           size_t i0, size_t rows, size_t columns)
{
    const size_t d = p->d, t = p->t;
    small_product(rows, columns, d, dense(p->q + i0 * d, d),
                  dense(p->k_turned, t), (struct target){p->scores, t, false});
    small_product(rows, columns, d, dense(p->dy + i0 * d, d),
                  dense(p->v_turned, t), (struct target){p->slopes, t, false});
    block_slopes(head, p, i0, rows, columns);
    small_product(rows, d, i0 + rows, dense(p->slopes, t), dense(p->k, d),
                  (struct target){p->some, d, false});
    head_unpack(head, rows, d, head->stride, head_scale(head), p->some,
                head->dq + i0 * head->stride);
    /* q holds the scale, so dk needs no other. */
    small_product(i0 + rows, d, rows, turned(p->scores, t),
                  dense(p->dy + i0 * d, d), (struct target){p->dv, d, true});
    small_product(i0 + rows, d, rows, turned(p->slopes, t),
                  dense(p->q + i0 * d, d), (struct target){p->dk, d, true});
}

static void head_backward(const struct kith_head *head)
{
    const struct parts p = parts_of(head);
    const size_t whole = p.t * p.d * sizeof *p.dk;
    head_pack(head, p.d, head->stride, head_scale(head), head->q, p.q);
    head_pack(head, p.d, head->stride, 1, head->k, p.k);
    head_pack(head, p.d, head->width, 1, head->dy, p.dy);
    transpose(head->context, p.d, p.k, p.d, p.k_turned, p.t);
    head_pack(head, p.d, head->stride, 1, head->v, p.v);
    transpose(head->context, p.d, p.v, p.d, p.v_turned, p.t);
    memset(p.dk, 0, whole);
    memset(p.dv, 0, whole);
    for (size_t i = 0; i < head->context; i += BLOCK_ROWS) {
        const size_t left = head->context - i;
        const size_t rows = left < BLOCK_ROWS ? left : BLOCK_ROWS;
        block_backward(head, &p, i, rows, (i + rows + 15) / 16 * 16);
    }
    head_unpack(head, head->context, p.d, head->stride, 1, p.dk, head->dk);
    head_unpack(head, head->context, p.d, head->stride, 1, p.dv, head->dv);
}
