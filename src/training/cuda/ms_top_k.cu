/* The k largest values of each block by size, nearly
 * (src/gossip/compressor/ms_top_k.c, whose bytes these are): a threshold is
 * searched by halving, and nothing is sorted.
 *
 *   survey    sum and largest of |v|, the sum in a host's 16 lanes, so that the
 *             mean is a host's to the bit
 *   pass      16 thresholds of each block, how many sizes reach each, and what
 *             four halvings learn of them; 8 passes are 30 halvings
 *   draw      where a window is to be drawn, by the host: it has the stream
 *   message   sparse.cu
 *
 * The mean is slow: 16 lanes add up a block, one value after another. top-k,
 * which is exact, has none; this is for peers of one run to be of both kinds.
 */
#include "sparse.cuh"

namespace gpu
{
enum {
    HALVINGS = 30,
    HALVINGS_A_PASS = 4,
    STEPS = 1 << HALVINGS_A_PASS,
    SUM_LANES = 16
};

struct bound {
    float at;
    uint32_t count; /* of sizes that reach it */
};

/* As in ms_top_k.c: the k-th largest size is in [low, high), or k sizes reach
 * high; thresholds are base + q span, q in [left, right]. */
struct search {
    double base, span, left, right;
    bound high, low;
    uint32_t kept, halvings;
    bool is_over;
    uint32_t counts[STEPS];
};

/* Not fused: a host multiplies and adds. */
static __device__ inline float threshold_of(const search &s, unsigned j)
{
    const double width = __dadd_rn(s.right, -s.left);
    const double q =
        __dadd_rn(s.left, __ddiv_rn(__dmul_rn(width, (double)j), STEPS));
    return (float)__dadd_rn(s.base, __dmul_rn(q, s.span));
}

/* ---- survey */

struct survey {
    sparse_blocks blocks;
    const float *v;
    search *searches;
    __device__ void operator()(size_t b, unsigned lane) const
    {
        const size_t n = values_of(blocks.cut, b);
        const float *const x = v + b * blocks.cut.block;
        uint32_t most = 0;
        double sum = 0, all = 0;
        for (size_t i = lane; i < n && lane < SUM_LANES; i += SUM_LANES) {
            const uint32_t size = size_at(x, i);
            most = size > most ? size : most;
            sum = __dadd_rn(sum, (double)__uint_as_float(size));
        }
        most = warp_fold(most, most_of());
        for (int k = 0; k < SUM_LANES; k++)
            all = __dadd_rn(all, __shfl_sync(0xffffffffu, sum, k));
        if (lane == 0)
            begin(searches[b], n, all, (double)__uint_as_float(most),
                  (uint32_t)blocks.of(b).kept);
    }
    __device__ static void begin(search &s, size_t n, double sum, double most,
                                 uint32_t kept)
    {
        const double average = __ddiv_rn(sum, (double)n);
        s.base = average < most ? average : most;
        s.span = __dadd_rn(most, -s.base);
        s.left = 0;
        s.right = 1;
        s.high = {__uint_as_float(0x7f800000u), 0};
        s.low = {0, (uint32_t)n};
        s.kept = kept;
        s.halvings = HALVINGS;
        s.is_over = kept == n;
        for (unsigned j = 0; j < STEPS; j++)
            s.counts[j] = 0;
        if (s.is_over) /* all of them */
            s.high = {0, kept};
    }
};

/* ---- passes */

struct count_steps {
    sparse_blocks blocks;
    const float *v;
    search *searches;
    __device__ void operator()(size_t r, unsigned lane) const
    {
        const size_t b = r / blocks.runs, from = r % blocks.runs * RUN;
        const size_t n = values_of(blocks.cut, b);
        const float *const x = v + b * blocks.cut.block;
        uint32_t at[STEPS], counts[STEPS];
        if (searches[b].is_over || from >= n)
            return;
        for (unsigned j = 0; j < STEPS; j++) {
            at[j] = __float_as_uint(threshold_of(searches[b], j));
            counts[j] = 0;
        }
        for (size_t i = from + lane; i < from + RUN && i < n; i += LANES)
            for (unsigned j = 0; j < STEPS; j++)
                counts[j] += size_at(x, i) >= at[j];
        for (unsigned j = 0; j < STEPS; j++) {
            const uint32_t all = warp_fold(counts[j], sum_of());
            if (lane == 0 && all > 0)
                (void)atomicAdd(&searches[b].counts[j], all);
        }
    }
};

static __device__ inline void learn(search &s, bound found)
{
    if (found.count > s.kept) {
        if (found.count < s.low.count)
            s.low = found;
    } else if (found.count > s.high.count) {
        s.high = found;
    }
}

/* After the first pass: of the mean, and above or below it. */
struct choose_side {
    search *searches;
    __device__ void operator()(size_t b) const
    {
        search s = searches[b];
        if (s.is_over)
            return;
        learn(s, {threshold_of(s, 0), s.counts[0]});
        if (s.counts[0] < s.kept) {
            s.span = s.base;
            s.base = 0;
        }
        for (unsigned j = 0; j < STEPS; j++)
            s.counts[j] = 0;
        s.is_over = s.high.count == s.kept || !(s.span > 0);
        searches[b] = s;
    }
};

struct halve {
    search *searches;
    __device__ void operator()(size_t b) const
    {
        search s = searches[b];
        unsigned from = 0, to = STEPS;
        if (s.is_over)
            return;
        for (int n = 0; n < HALVINGS_A_PASS && s.halvings > 0; n++) {
            const unsigned middle = (from + to) / 2;
            learn(s, {threshold_of(s, middle), s.counts[middle]});
            if (s.counts[middle] > s.kept)
                from = middle;
            else
                to = middle;
            s.halvings--;
        }
        const double left = s.left, width = __dadd_rn(s.right, -s.left);
        s.left =
            __dadd_rn(left, __ddiv_rn(__dmul_rn(width, (double)from), STEPS));
        s.right =
            __dadd_rn(left, __ddiv_rn(__dmul_rn(width, (double)to), STEPS));
        for (unsigned j = 0; j < STEPS; j++)
            s.counts[j] = 0;
        s.is_over = s.high.count == s.kept || s.halvings == 0;
        searches[b] = s;
    }
};

/* ---- what is kept */

/* windows_b <- of how many the first is to be drawn; 0: nothing is. */
struct choose_window {
    const search *searches;
    choice *choices;
    uint32_t *windows;
    __device__ void operator()(size_t b) const
    {
        const search &s = searches[b];
        const uint32_t missing = s.kept - s.high.count;
        choice of = {__float_as_uint(s.high.at), __float_as_uint(s.high.at), 0,
                     missing, 0};
        if (missing > 0) {
            of.from = __float_as_uint(s.low.at);
            of.of = s.low.count - s.high.count;
        }
        choices[b] = of;
        windows[b] = of.count < of.of ? of.of : 0;
    }
};

struct begin_window {
    choice *choices;
    const uint32_t *windows;
    __device__ void operator()(size_t b) const
    {
        choices[b].first = windows[b];
    }
};

static void find(const sparse_blocks &blocks, const float *v, search *searches)
{
    const size_t count = blocks.count(), runs = count * blocks.runs;
    each_warp("surveying", count, survey{blocks, v, searches});
    each_warp("counting", runs, count_steps{blocks, v, searches});
    each_index("searching", count, 256, choose_side{searches});
    for (int left = HALVINGS; left > 0; left -= HALVINGS_A_PASS) {
        each_warp("counting", runs, count_steps{blocks, v, searches});
        each_index("searching", count, 256, halve{searches});
    }
}

/* The host's draws, between two copies. */
static void draw(const struct kith_windows *windows, size_t count,
                 uint32_t *on_device)
{
    const size_t bytes = count * sizeof *on_device;
    check(cudaMemcpyAsync(windows->of, on_device, bytes, cudaMemcpyDefault,
                          stream()),
          "drawing");
    check(cudaStreamSynchronize(stream()), "drawing");
    windows->draw(windows->context, count, windows->of);
    check(cudaMemcpyAsync(on_device, windows->of, bytes, cudaMemcpyDefault,
                          stream()),
          "drawing");
}

bool pack_ms_top_k(const struct kith_cut *cut,
                   const struct kith_sparse sparse[2],
                   const struct kith_windows *windows, const void *v,
                   void *wire)
{
    const sparse_blocks blocks = blocks_in(cut, sparse, cut->block);
    const float *const x = (const float *)v;
    return pack_by(cut->all, wire, [=](uint8_t *to) {
        const size_t count = blocks.count();
        search *const searches = (search *)scratch_of(
            SCRATCH_BLOCKS,
            count * (sizeof(search) + sizeof(choice) + sizeof(uint32_t)));
        if (searches == nullptr)
            return;
        choice *const choices = (choice *)(void *)(searches + count);
        uint32_t *const firsts = (uint32_t *)(void *)(choices + count);
        find(blocks, x, searches);
        each_index("choosing", count, 256,
                   choose_window{searches, choices, firsts});
        draw(windows, count, firsts);
        each_index("choosing", count, 256, begin_window{choices, firsts});
        pack_chosen(blocks, x, choices, to);
    });
}
} // namespace gpu
