/* What f16.h leaves to plain C: a vector is four parts of four lanes, which
 * most processors have registers for. */
FORCE f16_part lanes_fma(f16_part a, f16_part b, f16_part c)
{
    return a * b + c;
}

/* a where the mask is set, else b. */
FORCE f16_part lanes_choose(w16_part mask, f16_part a, f16_part b)
{
    return (f16_part)((mask & (w16_part)a) | (~mask & (w16_part)b));
}

FORCE f16_part lanes_max(f16_part a, f16_part b)
{
    return lanes_choose((w16_part)(a > b), a, b);
}

FORCE f16_part lanes_min(f16_part a, f16_part b)
{
    return lanes_choose((w16_part)(a < b), a, b);
}

FORCE f16_part lanes_sqrt(f16_part a)
{
    return (f16_part){sqrtf(a[0]), sqrtf(a[1]), sqrtf(a[2]), sqrtf(a[3])};
}

/* n stands in the low bits of n + 1.5 2^23, also where it is NaN, and no
 * conversion can overflow. */
FORCE f16_part lanes_scale_two(f16_part a, f16_part n)
{
    return a * (f16_part)(((w16_part)(n + 0x1.8p23f) + 127) << 23);
}

FORCE float lanes_sum(f16_part a)
{
    return (a[0] + a[2]) + (a[1] + a[3]);
}

FORCE float lanes_most(f16_part a)
{
    const float even = a[0] > a[2] ? a[0] : a[2];
    const float odd = a[1] > a[3] ? a[1] : a[3];
    return even > odd ? even : odd;
}

FORCE unsigned lanes_bits(w16_part mask)
{
    return (mask[0] & 1) | (mask[1] & 2) | (mask[2] & 4) | (mask[3] & 8);
}

FORCE f16_part lanes_load_part(const float *from, size_t count)
{
    f16_part out = {0};
    if (count >= LANES)
        memcpy(&out, from, sizeof out);
    else
        memcpy(&out, from, count * sizeof *from);
    return out;
}

FORCE void lanes_store_part(float *to, f16_part a, size_t count)
{
    if (count >= LANES)
        memcpy(to, &a, sizeof a);
    else
        memcpy(to, &a, count * sizeof *to);
}

/* Plain C knows no way past the caches. */
FORCE void lanes_stream(float *to, f16_part a)
{
    memcpy(to, &a, sizeof a);
}

FORCE void f16_fence(void)
{
}

FORCE void lanes_transpose(const float *from, size_t from_stride, float *to,
                           size_t to_stride)
{
    for (size_t i = 0; i < LANES; i++)
        for (size_t j = 0; j < LANES; j++)
            to[j * to_stride + i] = from[i * from_stride + j];
}

FORCE w16_part words_multiply(w16_part a, uint32_t factor, w16_part *high)
{
    uint32_t low[LANES], up[LANES];
    memcpy(low, &a, sizeof a);
    for (int i = 0; i < LANES; i++) {
        const uint64_t product = (uint64_t)low[i] * factor;
        up[i] = (uint32_t)(product >> 32);
        low[i] = (uint32_t)product;
    }
    memcpy(high, up, sizeof up);
    memcpy(&a, low, sizeof a);
    return a;
}

FORCE d16_part lanes_half(f16_part a, int h)
{
    typedef double wide F16_VECTOR(LANES, double);
    const wide whole = __builtin_convertvector(a, wide);
    return (d16_part){whole[2 * h], whole[2 * h + 1]};
}

FORCE void bytes_widen(f16_part to[PARTS], const uint8_t *from)
{
    float all[16];
    for (int i = 0; i < 16; i++)
        all[i] = (float)from[i];
    memcpy(to, all, sizeof all);
}

FORCE void words_widen(w16_part to[PARTS], const uint16_t *from)
{
    uint32_t all[16];
    for (int i = 0; i < 16; i++)
        all[i] = from[i];
    memcpy(to, all, sizeof all);
}

FORCE void words_narrow(uint16_t *to, const w16_part a[PARTS])
{
    UNROLL
    for (int i = 0; i < 16; i++)
        to[i] = (uint16_t)a[i / LANES][i % LANES];
}

FORCE w16_part lanes_where_nan(f16_part a, w16_part b, w16_part c)
{
    return (w16_part)lanes_choose((w16_part)(a != a), (f16_part)b, (f16_part)c);
}

FORCE f16_part lanes_round(f16_part a)
{
    return (a + 0x1.8p23f) - 0x1.8p23f;
}
