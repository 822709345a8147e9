/* What choosing the largest 1 % of a vector costs: compressors top-k and
 * ms-top-k from vector to message (the gate for values that are not finite,
 * selection, gather, encoded indices), beside full sorts of the sizes, on one
 * core, alternating, for 10^6 and 25 * 10^6 Gaussian values.
 *
 * Two sorts, both of the 32-bit words of |v|, which order as the sizes do; what
 * they sort is copied inside the clock, as a message leaves v alone:
 *   introsort   quicksort of three medians down to 16, insertion sort behind
 *               it, heap sort where it goes too deep: what std::sort does. What
 *               T4.2 asks to be beaten tenfold.
 *   radix sort  four passes of 8 bits, least first, histograms made in one: as
 *               fast as a sort of words comes without vector instructions.
 * BENCH_TOP_K=FILE writes the values as float32, for top_k_torch.py. */
#include "bench/bench.h"

#include <math.h>

#include "kith/compressor.h"
#include "kith/rng.h"

enum { ROUNDS = 9, WAYS = 4 };
static const char *const names[WAYS] = {"ms-top-k", "top-k", "introsort",
                                        "radix sort"};

struct field {
    size_t n;
    float *v;
    uint32_t *sizes, *other;
    uint8_t *wire;
};

/* ---- sorts */

static void swap(uint32_t *a, uint32_t *b)
{
    const uint32_t kept = *a;
    *a = *b;
    *b = kept;
}

static void sift(uint32_t *x, size_t at, size_t n)
{
    for (size_t child; (child = 2 * at + 1) < n; at = child) {
        child += child + 1 < n && x[child + 1] > x[child];
        if (x[at] >= x[child])
            return;
        swap(&x[at], &x[child]);
    }
}

static void heap_sort(uint32_t *x, size_t n)
{
    for (size_t i = n / 2; i > 0; i--)
        sift(x, i - 1, n);
    for (size_t i = n; i > 1; i--) {
        swap(&x[0], &x[i - 1]);
        sift(x, 0, i - 1);
    }
}

/* The median of three goes to the front, and is what is split by. */
static size_t split(uint32_t *x, size_t n)
{
    uint32_t *const a = &x[1], *const b = &x[n / 2], *const c = &x[n - 1];
    uint32_t *const low = *a < *b ? a : b, *const high = *a < *b ? b : a;
    swap(&x[0], *c < *low ? low : *c < *high ? c : high);
    const uint32_t pivot = x[0];
    size_t i = 1, j = n;
    for (;;) {
        while (i < n && x[i] < pivot)
            i++;
        do
            j--;
        while (x[j] > pivot);
        if (i >= j)
            return i;
        swap(&x[i++], &x[j]);
    }
}

static void quick_sort(uint32_t *x, size_t n, unsigned deep)
{
    while (n > 16) {
        if (deep-- == 0) {
            heap_sort(x, n);
            return;
        }
        const size_t at = split(x, n);
        quick_sort(x + at, n - at, deep);
        n = at;
    }
}

static void introsort(uint32_t *x, size_t n)
{
    unsigned deep = 0;
    for (size_t left = n; left > 0; left /= 2)
        deep += 2;
    quick_sort(x, n, deep);
    for (size_t i = 1; i < n; i++) {
        const uint32_t value = x[i];
        size_t j = i;
        for (; j > 0 && x[j - 1] > value; j--)
            x[j] = x[j - 1];
        x[j] = value;
    }
}

static void radix_sort(uint32_t *x, uint32_t *other, size_t n)
{
    size_t starts[4][256] = {{0}};
    for (size_t i = 0; i < n; i++)
        for (unsigned digit = 0; digit < 4; digit++)
            starts[digit][x[i] >> 8 * digit & 255]++;
    for (unsigned digit = 0; digit < 4; digit++) {
        size_t sum = 0;
        for (unsigned b = 0; b < 256; b++) {
            const size_t count = starts[digit][b];
            starts[digit][b] = sum;
            sum += count;
        }
        for (size_t i = 0; i < n; i++)
            other[starts[digit][x[i] >> 8 * digit & 255]++] = x[i];
        uint32_t *const kept = x;
        x = other;
        other = kept;
    }
}

/* ---- the ways */

static void copy_sizes(const struct field *field)
{
    memcpy(field->sizes, field->v, field->n * sizeof *field->sizes);
    for (size_t i = 0; i < field->n; i++)
        field->sizes[i] &= 0x7fffffffu;
}

static void is_sorted(const struct field *field)
{
    for (size_t i = 1; i < field->n; i++)
        if (field->sizes[i - 1] > field->sizes[i])
            abort();
}

static struct kith_compression compression(const char *name, size_t n)
{
    return (struct kith_compression){.compressor = kith_compressor_find(name),
                                     .config = kith_compressor_defaults(),
                                     .backend = kith_backend_find("cpu"),
                                     .dim = n};
}

/* Milliseconds of CPU time. */
static double take(const struct field *field, unsigned way)
{
    const double began = bench_cpu();
    if (way < 2) {
        const struct kith_compression how = compression(names[way], field->n);
        if (!kith_compress(&how, field->v, 1, field->wire))
            abort();
    } else {
        copy_sizes(field);
        if (way == 2)
            introsort(field->sizes, field->n);
        else
            radix_sort(field->sizes, field->other, field->n);
    }
    return 1e3 * (bench_cpu() - began);
}

/* Marsaglia's polar method. */
static void fill(struct field *field)
{
    struct kith_rng rng;
    kith_rng_init(&rng, 1, KITH_STREAM_TEST, 0);
    for (size_t i = 0; i < field->n;) {
        const double a = 2 * kith_rng_double(&rng) - 1;
        const double b = 2 * kith_rng_double(&rng) - 1;
        const double square = a * a + b * b;
        if (square < 1 && square > 0)
            field->v[i++] = (float)(a * sqrt(-2 * log(square) / square));
    }
}

static void save(const struct field *field)
{
    const char *const path = getenv("BENCH_TOP_K");
    FILE *const file = path == NULL ? NULL : fopen(path, "wb");
    if (file == NULL)
        return;
    (void)fwrite(field->v, sizeof *field->v, field->n, file);
    (void)fclose(file);
}

static void measure(size_t n)
{
    static double spent[WAYS][ROUNDS];
    const struct kith_compression how = compression("top-k", n);
    struct field field = {.n = n,
                          .v = bench_alloc(n * sizeof(float)),
                          .sizes = bench_alloc(n * sizeof(uint32_t)),
                          .other = bench_alloc(n * sizeof(uint32_t)),
                          .wire = bench_alloc(kith_compression_bytes(&how))};
    fill(&field);
    save(&field);
    printf("# %zu values, the largest %zu\n", n, (size_t)(0.01 * (double)n));
    for (int round = -1; round < ROUNDS; round++)
        for (unsigned way = 0; way < WAYS; way++) {
            const double taken = take(&field, way);
            if (way >= 2)
                is_sorted(&field);
            if (round >= 0)
                spent[way][round] = taken;
        }
    for (unsigned way = 0; way < WAYS; way++)
        bench_print(names[way], spent[way], ROUNDS, "ms");
    for (unsigned way = 0; way < 2; way++)
        for (unsigned sort = 2; sort < WAYS; sort++) {
            char name[60];
            (void)snprintf(name, sizeof name, "%s : %s", names[sort],
                           names[way]);
            bench_ratio(name, spent[sort], spent[way], ROUNDS,
                        sort == 2 ? 10 : 0);
        }
    (void)munmap(field.v, n * sizeof(float));
    (void)munmap(field.sizes, n * sizeof(uint32_t));
    (void)munmap(field.other, n * sizeof(uint32_t));
    (void)munmap(field.wire, kith_compression_bytes(&how));
}

int main(void)
{
    bench_pin(0);
    measure(1000000);
    measure(25000000);
    return 0;
}
