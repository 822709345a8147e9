/* Kernels of norms, pools and sums over f16, for some pixels whose channels lie
 * side by side: blocks of 16 channels outside, pixels inside. */

/* Channels j to j + 15 of n. */
static size_t lanes_at(size_t n, size_t j)
{
    return n - j < 16 ? n - j : 16;
}

static f16 lanes_load(const float *from, size_t count)
{
    return load_of(from, 0, 1, count);
}

static void lanes_store(float *to, f16 value, size_t count)
{
    store_of(to, value, 0, 1, count);
}

static void image_moments(size_t pixels, size_t n, size_t step, const float *x,
                          float *mean, float *square)
{
    for (size_t j = 0; j < n; j += 16) {
        const size_t count = lanes_at(n, j);
        f16 sum[4] = {f16_all(0), f16_all(0), f16_all(0), f16_all(0)};
        const float *at = x + j;
        for (size_t p = 0; p < pixels; p++, at += step)
            sum[p % 4] = f16_add(sum[p % 4], lanes_load(at, count));
        const f16 all =
            f16_add(f16_add(sum[0], sum[1]), f16_add(sum[2], sum[3]));
        const f16 centre = f16_mul(all, f16_all(1 / (float)pixels));
        lanes_store(mean + j, centre, count);
        for (int k = 0; k < 4; k++)
            sum[k] = f16_all(0);
        at = x + j;
        for (size_t p = 0; p < pixels; p++, at += step) {
            const f16 d = f16_sub(lanes_load(at, count), centre);
            sum[p % 4] = f16_fma(d, d, sum[p % 4]);
        }
        lanes_store(square + j,
                    f16_add(f16_add(sum[0], sum[1]), f16_add(sum[2], sum[3])),
                    count);
    }
}

const struct kith_cpu_image IMAGE = {
    .panel = TILE_2 > 0 ? 32 : 16,
    .correlate = image_correlate,
    .outer = image_outer,
    .gate = image_gate,
    .moments = image_moments,
};
