/* Images on their way to a model: crop and flip, then the values it sees.
 * Zeros are added before normalisation: they are black, not the mean. */
#include "data_files.h"

#include <string.h>

/* width pixels of `bytes` each, last first. Inlined, so that a constant
 * `bytes` makes moves of it. */
__attribute__((always_inline)) static inline void
reverse(const uint8_t *row, size_t width, size_t bytes, uint8_t *out)
{
    for (size_t x = 0; x < width; x++)
        memcpy(out + x * bytes, row + (width - 1 - x) * bytes, bytes);
}

/* A row of the image, moved left by `shift` pixels with zeros where it has
 * none, then turned. |shift| < width. */
static void cut(const uint8_t *row, size_t width, size_t bytes, ptrdiff_t shift,
                bool turned, uint8_t *out)
{
    const size_t away = (size_t)(shift < 0 ? -shift : shift);
    const size_t kept = width - away;
    const size_t to = (shift > 0) == turned ? away : 0;
    if (shift > 0)
        row += away * bytes;
    memset(out + (to == 0 ? kept : 0) * bytes, 0, away * bytes);
    if (turned && bytes == 1)
        reverse(row, kept, 1, out + to);
    else if (turned && bytes == 3)
        reverse(row, kept, 3, out + to * 3);
    else if (turned)
        reverse(row, kept, bytes, out + to * bytes);
    else
        memcpy(out + to * bytes, row, kept * bytes);
}

/* Uniform in [0, n) but for n / 2^32 of bias: one word per draw, so that each
 * example has its own block of the stream. */
static ptrdiff_t draw(struct kith_rng *rng, size_t n)
{
    return (ptrdiff_t)((uint64_t)kith_rng_u32(rng) * n >> 32);
}

void kith_data_pixels_augment(const struct kith_examples *examples,
                              const struct kith_augment *augment,
                              struct kith_rng *rng, const void *image,
                              void *out)
{
    const size_t height = examples->shape[0], width = examples->shape[1];
    const size_t bytes =
        examples->shape[2] * kith_data_value_bytes(examples->element);
    const size_t places = 2 * (size_t)augment->crop + 1;
    const bool turned = (kith_rng_u32(rng) >> 31) != 0 && augment->flip;
    const ptrdiff_t crop = (ptrdiff_t)augment->crop;
    const ptrdiff_t down = draw(rng, places) - crop;
    const ptrdiff_t right = draw(rng, places) - crop;
    for (size_t y = 0; y < height; y++) {
        const ptrdiff_t from = (ptrdiff_t)y + down;
        uint8_t *target = (uint8_t *)out + y * width * bytes;
        if (from < 0 || from >= (ptrdiff_t)height) {
            memset(target, 0, width * bytes);
            continue;
        }
        const uint8_t *row =
            (const uint8_t *)image + (size_t)from * width * bytes;
        cut(row, width, bytes, right, turned, target);
    }
}

void kith_data_pixels_init(struct pixels *pixels,
                           const struct kith_examples *examples)
{
    *pixels = (struct pixels){.plain = true,
                              .channels = kith_data_channels(examples)};
    for (uint32_t c = 0; c < pixels->channels; c++) {
        const double mean = (double)examples->mean[c];
        const double deviation = (double)examples->deviation[c];
        if (mean < 0 || mean > 0 || deviation < 1 || deviation > 1)
            pixels->plain = false;
        for (int v = 0; v < 256; v++)
            pixels->table[c][v] = (float)((v / 255.0 - mean) / deviation);
    }
}

/* Inlined for the same reason. */
__attribute__((always_inline)) static inline void
convert_bytes(const struct pixels *pixels, uint32_t channels, size_t n,
              const uint8_t *image, float *out)
{
    for (size_t i = 0; i < n; i += channels)
        for (uint32_t c = 0; c < channels; c++)
            out[i + c] = pixels->table[c][image[i + c]];
}

static void convert_values(const struct kith_examples *examples,
                           uint32_t channels, size_t n, const float *image,
                           float *out)
{
    for (size_t i = 0; i < n; i++) {
        const size_t c = i % channels;
        out[i] = (image[i] - examples->mean[c]) / examples->deviation[c];
    }
}

void kith_data_pixels_convert(const struct pixels *pixels,
                              const struct kith_examples *examples,
                              const struct kith_backend *host,
                              const void *image, void *out)
{
    const size_t n = examples->features;
    const bool bytes = examples->element == KITH_ELEMENT_U8;
    if (bytes && pixels->plain) {
        host->from_bytes(n, image, out);
        return;
    }
    if (bytes && pixels->channels == 1)
        convert_bytes(pixels, 1, n, image, out);
    else if (bytes && pixels->channels == 3)
        convert_bytes(pixels, 3, n, image, out);
    else if (bytes)
        convert_bytes(pixels, pixels->channels, n, image, out);
    else if (pixels->plain)
        memcpy(out, image, n * sizeof(float));
    else
        convert_values(examples, pixels->channels, n, image, out);
    if (host->element_bytes == sizeof(float))
        return;
    /* In place, from the end: float32 i lies before float64 i. */
    double *wide = out;
    for (size_t i = n; i-- > 0;) {
        float value;
        memcpy(&value, (const char *)out + i * sizeof value, sizeof value);
        wide[i] = (double)value;
    }
}
