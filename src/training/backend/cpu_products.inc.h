/* Products over f16.
 *
 * C is made in tiles of TILE_ROWS rows and TILE_WIDE vectors, kept in
 * registers while k runs. B is copied ("packed") into panels as wide as a tile,
 * DEPTH rows at a time, so that a panel stays in the first cache while all rows
 * of A pass by it; A is read where it stands, unless it is transposed: then a
 * chunk of it is packed as well, tile by tile. Goto and van de Geijn, "Anatomy
 * of High-Performance Matrix Multiplication", ACM TOMS 2008.
 *
 * An element of C is the sum over k in order, DEPTH at a time, whatever tile it
 * falls in: neither the threads nor the cut into parts changes it. */

enum { PANEL = 16 * TILE_WIDE, DEPTH = 256, CHUNK = 128 };

/* c <- [c +] a b over k; `step` elements from one tile of A to the next. */
struct factors {
    size_t k, step;
    struct kith_matrix a;
    const float *b;
    float *c;
    size_t b_stride, c_stride;
    bool add;
};

/* c (rows, 16 wide); both constants are known where this is inlined, so that
 * `sum` lives in registers. */
FORCE void tile(const int rows, const int wide, struct factors f)
{
    f16 sum[TILE_ROWS][TILE_WIDE];
    UNROLL
    for (int i = 0; i < rows; i++) {
        UNROLL
        for (int j = 0; j < wide; j++)
            sum[i][j] = f.add ? f16_load(f.c + (size_t)i * f.c_stride + 16 * j)
                              : f16_all(0);
    }
    for (size_t p = 0; p < f.k; p++) {
        f16 right[TILE_WIDE];
        UNROLL
        for (int j = 0; j < wide; j++)
            right[j] = f16_load(f.b + p * f.b_stride + 16 * j);
        UNROLL
        for (int i = 0; i < rows; i++) {
            const f16 left =
                f16_all(f.a.at[(size_t)i * f.a.row + p * f.a.column]);
            UNROLL
            for (int j = 0; j < wide; j++)
                sum[i][j] = f16_fma(left, right[j], sum[i][j]);
        }
    }
    UNROLL
    for (int i = 0; i < rows; i++) {
        UNROLL
        for (int j = 0; j < wide; j++)
            f16_store(f.c + (size_t)i * f.c_stride + 16 * j, sum[i][j]);
    }
}

/* One panel of columns, m rows. */
FORCE void column(const int wide, size_t m, const struct factors *of)
{
    struct factors f = *of; /* in registers */
    for (; m >= TILE_ROWS; m -= TILE_ROWS) {
        tile(TILE_ROWS, wide, f);
        f.a.at += f.step;
        f.c += TILE_ROWS * f.c_stride;
    }
    UNROLL
    for (int rows = 8; rows > 0; rows /= 2) {
        if (rows >= TILE_ROWS || !(m & (size_t)rows))
            continue;
        tile(rows, wide, f);
        f.a.at += (size_t)rows * f.a.row;
        f.c += (size_t)rows * f.c_stride;
    }
}

FORCE void column_whole(size_t m, const struct factors *f)
{
    column(TILE_WIDE, m, f);
}

FORCE void column_narrow(size_t m, const struct factors *f)
{
    column(1, m, f);
}

/* Where a product goes: rows are `stride` apart. */
struct target {
    float *at;
    size_t stride;
    bool add;
};

/* c (m, n) <- [c +] a b over k, n a multiple of 16, b row-major and unpacked.
 */
static void small_product(size_t m, size_t n, size_t k, struct kith_matrix a,
                          struct kith_matrix b, struct target c)
{
    struct factors f = {.k = k,
                        .step = TILE_ROWS * a.row,
                        .a = a,
                        .b = b.at,
                        .c = c.at,
                        .b_stride = b.row,
                        .c_stride = c.stride,
                        .add = c.add};
    size_t j = 0;
    for (; j + PANEL <= n; j += PANEL, f.b += PANEL, f.c += PANEL)
        column_whole(m, &f);
    for (; j < n; j += 16, f.b += 16, f.c += 16)
        column_narrow(m, &f);
}

/* to (n, columns' 16s) <- from transposed: from has `columns` rows of n, and
 * what is missing to a multiple of 16 becomes 0. */
static void transpose(size_t columns, size_t n, const float *from,
                      size_t from_stride, float *to, size_t to_stride)
{
    for (size_t j = 0; j < columns; j += 16) {
        const size_t rows = columns - j < 16 ? columns - j : 16;
        for (size_t i = 0; i < n; i += 16) {
            const float *corner = from + j * from_stride + i;
            float *const out = to + i * to_stride + j;
            if (rows == 16 && i + 16 <= n) {
                f16_transpose(corner, from_stride, out, to_stride);
                continue;
            }
            float some[16 * 16] = {0}, turned[16 * 16];
            for (size_t l = 0; l < rows; l++)
                f16_store(some + 16 * l,
                          part_load(corner + l * from_stride, n - i));
            f16_transpose(some, 16, turned, 16);
            for (size_t l = 0; l < 16 && i + l < n; l++)
                f16_store(out + l * to_stride, f16_load(turned + 16 * l));
        }
    }
}

/* packed (depth, PANEL) <- `columns` <= PANEL columns of b. */
static void pack(size_t depth, size_t columns, struct kith_matrix b,
                 float *packed)
{
    if (b.column != 1) {
        transpose(columns, depth, b.at, b.column, packed, PANEL);
        return;
    }
    for (size_t p = 0; p < depth; p++) {
        const float *from = b.at + p * b.row;
        float *to = packed + p * PANEL;
        size_t j = 0;
        for (; j + 16 <= columns; j += 16)
            f16_store(to + j, f16_load(from + j));
        if (j < columns)
            f16_store(to + j, f16_load_part(from + j, columns - j));
    }
}

/* packed <- rows [0, m) of a transposed A as tiles of (depth, TILE_ROWS). */
static void pack_left(size_t m, size_t depth, struct kith_matrix a,
                      float *packed)
{
    for (size_t i = 0; i < m; i += TILE_ROWS) {
        const float *from = a.at + i;
        if (m - i < TILE_ROWS) {
            for (size_t p = 0; p < depth; p++)
                memcpy(packed + p * TILE_ROWS, from + p * a.column,
                       (m - i) * sizeof *from);
            return;
        }
        for (size_t p = 0; p < depth; p++, packed += TILE_ROWS)
            memcpy(packed, from + p * a.column, TILE_ROWS * sizeof *from);
    }
}

/* One chunk of A, at most (CHUNK, DEPTH), ready to be multiplied. */
struct left {
    size_t m, depth, step;
    struct kith_matrix a;
};

/* c (m, columns <= PANEL) <- [c +] left b. A panel that is not whole is made
 * beside C, since a tile writes all its columns. */
static void product_panel(const struct left *left, struct kith_matrix b,
                          size_t columns, float *c, size_t stride, bool add)
{
    _Alignas(64) float packed[DEPTH * PANEL];
    _Alignas(64) float beside[CHUNK * PANEL];
    pack(left->depth, columns, b, packed);
    const bool whole = columns % 16 == 0;
    const struct factors factors = {.k = left->depth,
                                    .step = left->step,
                                    .a = left->a,
                                    .b = packed,
                                    .c = whole ? c : beside,
                                    .b_stride = PANEL,
                                    .c_stride = whole ? stride : PANEL,
                                    .add = whole && add};
    (columns > 16 ? column_whole : column_narrow)(left->m, &factors);
    for (size_t i = 0; !whole && i < left->m; i++) {
        for (size_t j = 0; j < columns; j += 16) {
            const size_t rest = columns - j;
            f16 sum = f16_load(beside + i * PANEL + j);
            if (add)
                sum = f16_add(part_load(c + i * stride + j, rest), sum);
            part_store(c + i * stride + j, sum, rest);
        }
    }
}

/* Rows [m0, m0 + m), m <= CHUNK. */
static void product_chunk(const struct kith_product *p, size_t m0, size_t m,
                          size_t n0, size_t n1)
{
    /* The last tile need not be whole. */
    _Alignas(64) float packed[(CHUNK + TILE_ROWS) * DEPTH];
    for (size_t k0 = 0; k0 < p->k; k0 += DEPTH) {
        const size_t depth = p->k - k0 < DEPTH ? p->k - k0 : DEPTH;
        const float *const corner = p->a.at + m0 * p->a.row + k0 * p->a.column;
        struct left left = {
            m, depth, TILE_ROWS * p->a.row,
            (struct kith_matrix){corner, p->a.row, p->a.column}};
        if (p->a.column != 1) {
            pack_left(m, depth, left.a, packed);
            left.a = (struct kith_matrix){packed, 1, TILE_ROWS};
            left.step = TILE_ROWS * depth;
        }
        for (size_t j = n0; j < n1; j += PANEL) {
            const struct kith_matrix b = {p->b.at + k0 * p->b.row +
                                              j * p->b.column,
                                          p->b.row, p->b.column};
            product_panel(&left, b, n1 - j < PANEL ? n1 - j : PANEL,
                          p->c + m0 * p->stride + j, p->stride,
                          k0 > 0 || p->add);
        }
    }
}

static void product(const struct kith_product *p, size_t m0, size_t m1,
                    size_t n0, size_t n1)
{
    for (size_t i = m0; i < m1; i += CHUNK) {
        const size_t m = m1 - i < CHUNK ? m1 - i : CHUNK;
        const size_t at = i * p->stride + n0;
        product_chunk(p, i, m, n0, n1);
        if (p->finish)
            finish((struct kith_rows){m, n1 - n0, p->stride},
                   p->bias == NULL ? NULL : p->bias + n0, p->activation,
                   p->pre == NULL ? NULL : p->pre + at, p->c + at);
    }
}
