/* The k largest values by size, nearly: a threshold is searched by halving, and
 * nothing is sorted. On the wire as sparse.h says.
 *
 *   t = mean + q (max - mean) of |v|,  q in [0, 1] halved N = 30 times:
 *   t1  the least t seen that at most k sizes reach, and t2 the largest that
 *       more than k do; kept are the k1 sizes >= t1, and k - k1 of the k2 - k1
 *       in [t2, t1): one after another from a random place on
 *
 *   w = energy of the kept / |v|^2 >= k / n, in expectation
 *
 * Most often some t has k sizes on the nose, and what is kept are the k
 * largest. Where a window is drawn it goes round: each of the k2 - k1 is as
 * likely, so that the kept ones of a mean size as large as all of them have w
 * >= k / n.
 *
 * Other than in the paper: t1 begins above all sizes, so that no t at all that
 * few enough reach keeps no more than k; where fewer than k sizes reach the
 * mean, the search is of [0, mean]; bounds never lie outside what was counted,
 * sizes that are all the same among them; values are finite (compress.c). Four
 * halvings share a pass, which counts the 15 thresholds that they can come to;
 * once the values between t2 and t1 fit the message, which is written over them
 * later, they are copied there and the rest of the search is of these alone:
 * the choice is the one that 30 passes make.
 *
 * top-k, which is exact, takes half the time (bench/bench_top_k.c: 10^6 values,
 * 1 %: 0.8 and 1.6 ms; 25 * 10^6: 30 and 54): this is here to compare with.
 *
 * On a device it is the same search, of all blocks at once, with the host's
 * draws between two copies; the mean, from which all else follows, is added up
 * there in the order of a host's sums, so that a single long block is slow
 * (src/training/cuda/ms_top_k.cu).
 *
 * Shi et al., "Towards Scalable Distributed Training of Deep Learning on Public
 * Cloud Clusters", MLSys 2021. */
#include "ms_top_k.h"

#include <math.h>

#include "kith/assert.h"

enum { HALVINGS = 30, HALVINGS_A_PASS = 4, STEPS = 1 << HALVINGS_A_PASS };
_Static_assert(STEPS == KITH_MAGNITUDE_BOUNDS, "a pass counts what 4 halve");

struct bound {
    double at;
    size_t count; /* of sizes that reach it */
};

/* The k-th largest size is in [low, high), or k sizes reach high. Thresholds
 * are base + q span, q in [left, right]. */
struct search {
    size_t kept;
    double base, span, left, right;
    struct bound high, low;
};

/* What is counted: all of v, or what lies between both bounds, and how many are
 * above. */
struct field {
    const void *v;
    size_t n, above;
};

/* Of STEPS thresholds between left and right, the first of them left; all are
 * elements, as the values are that they stand beside. */
static void count_steps(const struct kith_compression *how,
                        const struct search *search, const struct field *field,
                        struct bound bounds[STEPS])
{
    double at[STEPS], elements[STEPS];
    size_t counts[STEPS];
    for (unsigned j = 0; j < STEPS; j++) {
        const double q =
            search->left + (search->right - search->left) * j / STEPS;
        at[j] = search->base + q * search->span;
    }
    how->backend->write(STEPS, at, elements);
    how->backend->read(STEPS, elements, at);
    how->backend->magnitudes()->count(field->n, field->v, at, counts);
    for (unsigned j = 0; j < STEPS; j++)
        bounds[j] = (struct bound){at[j], field->above + counts[j]};
}

/* What is known of the k-th by this bound. */
static void learn(struct search *search, struct bound bound)
{
    if (bound.count > search->kept) {
        if (bound.count < search->low.count)
            search->low = bound;
    } else if (bound.count > search->high.count) {
        search->high = bound;
    }
}

static void halve(struct search *search, const struct bound bounds[STEPS],
                  unsigned halvings)
{
    const double left = search->left, width = search->right - search->left;
    unsigned from = 0, to = STEPS;
    for (; halvings > 0; halvings--) {
        const unsigned middle = (from + to) / 2;
        learn(search, bounds[middle]);
        if (bounds[middle].count > search->kept)
            from = middle;
        else
            to = middle;
    }
    search->left = left + width * from / STEPS;
    search->right = left + width * to / STEPS;
}

/* Between the mean and the largest size, or below the mean. The bounds of the
 * first pass are those of the former: the mean is the first of them. */
static struct search begin(const struct kith_compression *how,
                           const struct field *all, size_t kept,
                           struct bound bounds[STEPS])
{
    const struct kith_magnitude_survey found =
        how->backend->magnitudes()->survey(all->n, all->v);
    const double average = found.sum / (double)all->n;
    const double mean = average < found.most ? average : found.most;
    struct search search = {.kept = kept,
                            .base = mean,
                            .span = found.most - mean,
                            .right = 1,
                            .high = {INFINITY, 0},
                            .low = {0, all->n}};
    count_steps(how, &search, all, bounds);
    learn(&search, bounds[0]);
    if (bounds[0].count < kept) {
        search.base = 0;
        search.span = mean;
        count_steps(how, &search, all, bounds);
    }
    return search;
}

/* What is between both bounds, where that is less and fits. */
static void narrow(const struct kith_compression *how,
                   const struct search *search, struct field *field,
                   struct kith_sparse_scratch scratch)
{
    const size_t between = search->low.count - search->high.count;
    if (between > scratch.room || between > field->n / 2 ||
        field->v == scratch.memory)
        return;
    const struct kith_magnitude_found found = how->backend->magnitudes()->keep(
        field->n, field->v, search->low.at, search->high.at, scratch.room,
        scratch.memory);
    KITH_ASSERT(found.within == between && found.beyond == search->high.count);
    *field = (struct field){scratch.memory, between, found.beyond};
}

static struct kith_choice choice_of(const struct search *search,
                                    struct kith_rng *rng)
{
    const size_t missing = search->kept - search->high.count;
    struct kith_choice choice = {.from = search->high.at,
                                 .sure = search->high.at};
    KITH_ASSERT(search->high.count <= search->kept);
    if (missing == 0)
        return choice;
    choice.from = search->low.at;
    choice.count = missing;
    choice.of = search->low.count - search->high.count;
    KITH_ASSERT(choice.count <= choice.of);
    if (choice.count < choice.of)
        choice.first = kith_rng_below(rng, (uint32_t)choice.of);
    return choice;
}

struct kith_choice kith_ms_top_k_choose(const struct kith_compression *how,
                                        struct kith_view v, size_t kept,
                                        unsigned halvings, struct kith_rng *rng,
                                        struct kith_sparse_scratch scratch)
{
    struct field field = {v.values, v.n, 0};
    struct bound bounds[STEPS];
    KITH_ASSERT(kept <= v.n && v.n <= KITH_PARAMETERS_MAX);
    if (kept == 0)
        return (struct kith_choice){.from = INFINITY, .sure = INFINITY};
    if (kept == v.n)
        return (struct kith_choice){.from = 0, .sure = 0};
    struct search search = begin(how, &field, kept, bounds);
    while (search.high.count < kept && halvings > 0 && search.span > 0) {
        const unsigned now =
            halvings < HALVINGS_A_PASS ? halvings : HALVINGS_A_PASS;
        halve(&search, bounds, now);
        halvings -= now;
        if (search.high.count == kept || halvings == 0)
            break;
        narrow(how, &search, &field, scratch);
        count_steps(how, &search, &field, bounds);
    }
    return choice_of(&search, rng);
}

struct listing {
    uint32_t *places;
    size_t count, room;
};

static void list_place(void *context, size_t index, double value)
{
    struct listing *const listing = context;
    (void)value;
    KITH_ASSERT(listing->count < listing->room);
    listing->places[listing->count++] = (uint32_t)index;
}

size_t kith_ms_top_k(const struct kith_backend *backend, size_t n,
                     const void *v, size_t kept, uint64_t key, uint32_t *places)
{
    const struct kith_compression how = {.backend = backend, .dim = n};
    const struct kith_view view = {v, n};
    struct listing listing = {.places = places, .room = kept};
    struct kith_rng rng;
    if (kept == 0)
        return 0;
    kith_rng_init(&rng, key, KITH_STREAM_COMPRESS, 0);
    const struct kith_choice choice =
        kith_ms_top_k_choose(&how, view, kept, HALVINGS, &rng,
                             (struct kith_sparse_scratch){NULL, 0});
    kith_sparse_walk(&how, view, choice, list_place, &listing);
    KITH_ASSERT(listing.count == kept);
    return listing.count;
}

static bool ms_top_k_encode(const struct kith_compression *how, size_t n,
                            const void *v, struct kith_rng *rng, uint8_t *wire)
{
    const struct kith_sparse layout = kith_sparse_layout(how, n);
    const struct kith_sparse_scratch scratch =
        kith_sparse_scratch(how, wire, layout.bytes);
    const struct kith_choice choice = kith_ms_top_k_choose(
        how, (struct kith_view){v, n}, layout.kept, HALVINGS, rng, scratch);
    kith_sparse_write(how, n, v, choice, wire);
    return true;
}

static bool ms_top_k_decode(const struct kith_compression *how, size_t n,
                            const uint8_t *wire, struct kith_rng *rng,
                            void *out)
{
    (void)rng;
    return kith_sparse_read(how, n, wire, out);
}

/* ---- of a device */

static void draw_windows(void *context, size_t blocks, uint32_t *of)
{
    struct kith_rng *const rng = context;
    for (size_t b = 0; b < blocks; b++)
        of[b] = of[b] > 0 ? kith_rng_below(rng, of[b]) : 0;
}

static size_t ms_top_k_places(const struct kith_compression *how)
{
    const struct kith_cut cut = kith_cut_of(how);
    return (cut.n + cut.block - 1) / cut.block;
}

static bool ms_top_k_pack(const struct kith_compression *how, const void *v,
                          struct kith_rng *rng, void *wire)
{
    const struct kith_cut cut = kith_cut_of(how);
    const struct kith_windows windows = {
        .of = how->places, .context = rng, .draw = draw_windows};
    struct kith_sparse sparse[2];
    KITH_ASSERT(how->places != NULL);
    kith_sparse_layouts(how, &cut, sparse);
    return how->backend->compressed->pack_ms_top_k(&cut, sparse, &windows, v,
                                                   wire);
}

static bool ms_top_k_unpack(const struct kith_compression *how,
                            const void *wire, struct kith_rng *rng, void *out)
{
    const struct kith_cut cut = kith_cut_of(how);
    struct kith_sparse sparse[2];
    (void)rng;
    kith_sparse_layouts(how, &cut, sparse);
    return how->backend->compressed->unpack_top_k(&cut, sparse, wire, out);
}

const struct kith_compressor kith_compressor_ms_top_k = {
    .name = "ms-top-k",
    .paper = "Shi et al., MLSys 2021",
    .summary = "the largest values nearly, above a threshold found by halving",
    .keys = KITH_COMPRESSOR_READS(DENSITY) | KITH_COMPRESSOR_READS(BLOCK),
    .keyed = true,
    .feedback = true,
    .encode = ms_top_k_encode,
    .decode = ms_top_k_decode,
    .bytes = kith_sparse_bytes,
    .contraction = kith_sparse_contraction,
    DEVICE_CODEC(ms_top_k),
    .places = ms_top_k_places,
};
