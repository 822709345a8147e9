/* Passes over sizes (kith/magnitudes.h) for one instruction set, sixteen floats
 * at a time. One that is looked for is rare: what is done with it is scalar,
 * behind one branch for sixteen. */

/* Bounds that are counted while a tile of floats is in the first cache: their
 * sums fit the registers. */
enum { BOUNDS_TOGETHER = 8, SIZES_TILE = 2048 };

/* Lanes past the end are 0. */
FORCE f16 sizes_load(const float *from, size_t left)
{
    f16 out = part_load(from, left);
    EACH out.v[k] = (f16_part)((w16_part)out.v[k] & 0x7fffffffu);
    return out;
}

/* Bit i: lane i of a is at least the bound; of `left` lanes. */
FORCE unsigned sizes_at_least(f16 a, f16 bound, size_t left)
{
    unsigned bits = 0;
    EACH bits |= lanes_at_least(a.v[k], bound.v[k]) << k * LANES;
    return LIKELY(left >= 16) ? bits : bits & ((1u << left) - 1);
}

static struct kith_magnitude_survey sizes_survey(size_t n, const void *x)
{
    const float *const v = x;
    f16 most = f16_all(0);
    d16 sums = d16_zero();
    EACH_SIXTEEN(n, i, left, {
        const f16 a = sizes_load(v + i, left);
        most = f16_max(a, most);
        sums = d16_add(sums, a);
    });
    return (struct kith_magnitude_survey){d16_fold(sums, 0),
                                          (double)f16_most(most)};
}

/* Of whole sixteens. */
static void sizes_count_tile(size_t n, const float *v, const float *bounds,
                             size_t *counts)
{
    w16_part sums[BOUNDS_TOGETHER] = {{0}};
    for (size_t i = 0; i < n; i += 16) {
        const f16 a = sizes_load(v + i, 16);
        UNROLL
        for (int j = 0; j < BOUNDS_TOGETHER; j++)
            EACH sums[j] = lanes_count(sums[j], a.v[k], bounds[j]);
    }
    for (int j = 0; j < BOUNDS_TOGETHER; j++) {
        uint32_t lanes[LANES];
        memcpy(lanes, &sums[j], sizeof lanes);
        for (int lane = 0; lane < LANES; lane++)
            counts[j] += lanes[lane];
    }
}

static void sizes_count(size_t n, const void *x,
                        const double bounds[KITH_MAGNITUDE_BOUNDS],
                        size_t counts[KITH_MAGNITUDE_BOUNDS])
{
    const float *const v = x;
    const size_t whole = n - n % 16;
    float at[KITH_MAGNITUDE_BOUNDS];
    for (unsigned j = 0; j < KITH_MAGNITUDE_BOUNDS; j++) {
        at[j] = (float)bounds[j];
        counts[j] = 0;
        for (size_t i = whole; i < n; i++)
            counts[j] += fabsf(v[i]) >= at[j];
    }
    for (size_t i = 0; i < whole; i += SIZES_TILE) {
        const size_t left = whole - i;
        const size_t tile = left < SIZES_TILE ? left : SIZES_TILE;
        for (unsigned j = 0; j < KITH_MAGNITUDE_BOUNDS; j += BOUNDS_TOGETHER)
            sizes_count_tile(tile, v + i, at + j, counts + j);
    }
}

static struct kith_magnitude_found sizes_keep(size_t n, const void *x,
                                              double from, double below,
                                              size_t room, void *out)
{
    const float *const v = x;
    float *const to = out;
    const f16 least = f16_all((float)from), limit = f16_all((float)below);
    struct kith_magnitude_found found = {0, 0};
    EACH_SIXTEEN(n, i, left, {
        const f16 a = sizes_load(v + i, left);
        unsigned bits = sizes_at_least(a, least, left);
        if (bits != 0) {
            const unsigned beyond = sizes_at_least(a, limit, left);
            found.beyond += (size_t)__builtin_popcount(beyond);
            for (bits &= ~beyond; bits != 0; bits &= bits - 1) {
                if (found.within < room)
                    to[found.within] =
                        fabsf(v[i + (size_t)__builtin_ctz(bits)]);
                found.within++;
            }
        }
    });
    return found;
}

static size_t sizes_find(size_t n, const void *x, double from, uint32_t *places)
{
    const float *const v = x;
    const f16 least = f16_all((float)from);
    size_t count = 0;
    EACH_SIXTEEN(n, i, left, {
        unsigned bits = sizes_at_least(sizes_load(v + i, left), least, left);
        for (; bits != 0; bits &= bits - 1)
            places[count++] = (uint32_t)i + (uint32_t)__builtin_ctz(bits);
    });
    return count;
}

static const struct kith_magnitudes magnitudes = {
    .survey = sizes_survey,
    .count = sizes_count,
    .keep = sizes_keep,
    .find = sizes_find,
};
