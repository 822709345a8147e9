/* Grids and what they are made for: see modular.h. */
#include "modular.h"

#include <math.h>
#include <string.h>

#include "kith/assert.h"
#include "kith/grid.h"
#include "kith/hash.h"
#include "kith/rng.h"

#define BLOCK KITH_RESIDUE_BLOCK
/* From there growing by half comes anywhere. */
#define REACH_LEAST 0x1p-24f
#define DECAY 0.97f

static float larger(float a, float b)
{
    return a > b ? a : b;
}

static size_t blocks_of(size_t n)
{
    return (n + BLOCK - 1) / BLOCK;
}

static size_t residues_bytes(unsigned bits)
{
    return BLOCK * bits / 8;
}

/* Blocks travel whole. */
size_t kith_modular_bytes(unsigned bits, size_t n)
{
    KITH_ASSERT(bits == 8 || bits == 4);
    return blocks_of(n) * (sizeof(uint32_t) + residues_bytes(bits));
}

size_t kith_modular_blocks(size_t n)
{
    return blocks_of(n);
}

bool kith_modular_is_sane(unsigned bits, size_t bytes, size_t offset,
                          size_t length, const void *part)
{
    const size_t heads =
        bytes / (sizeof(uint32_t) + residues_bytes(bits)) * sizeof(uint32_t);
    const uint32_t *const head = part;
    KITH_ASSERT(offset + length <= bytes && offset % sizeof(uint32_t) == 0);
    if (offset >= heads)
        return true;
    const size_t left = heads - offset;
    const size_t count = (left < length ? left : length) / sizeof(uint32_t);
    bool sane = true;
    for (size_t b = 0; b < count; b++)
        sane = sane && head[b] >> 24 != KITH_GRID_NO_STEP;
    return sane;
}

/* Zero behind the last value. */
static void read_block(const struct kith_backend *backend, size_t count,
                       const void *v, struct kith_residue_block *out)
{
    memset(out->v + count, 0, (BLOCK - count) * sizeof out->v[0]);
    if (backend->element_bytes == sizeof(float)) {
        memcpy(out->v, v, count * sizeof(float));
        return;
    }
    const double *const wide = v;
    for (size_t k = 0; k < count; k++)
        out->v[k] = (float)wide[k];
}

static void write_block(const struct kith_backend *backend, size_t count,
                        const struct kith_residue_block *block, void *out)
{
    double *const wide = out;
    if (backend->element_bytes == sizeof(float))
        memcpy(out, block->v, count * sizeof(float));
    else
        for (size_t k = 0; k < count; k++)
            wide[k] = (double)block->v[k];
}

static float furthest(const struct kith_residues *kernels,
                      struct kith_residue_block *a,
                      const struct kith_residue_block *b)
{
    for (size_t k = 0; k < BLOCK; k++)
        a->v[k] -= b->v[k];
    return kernels->largest(a);
}

/* Where nothing is known. */
static void guess(size_t blocks, float most, float *reach)
{
    for (size_t b = 0; b < blocks; b++)
        if (!(reach[b] > 0))
            reach[b] = larger(most / 64, REACH_LEAST);
}

static void start_on_device(const struct kith_backend *device, size_t n,
                            const void *v, const void *from, float *reach)
{
    float most = 0;
    device->residue_messages->largest(n, v, NULL, reach);
    for (size_t b = 0; b < blocks_of(n); b++) {
        most = reach[b] < INFINITY ? larger(reach[b], most) : most;
        reach[b] = 0;
    }
    if (from != NULL)
        device->residue_messages->largest(n, v, from, reach);
    for (size_t b = 0; b < blocks_of(n); b++)
        reach[b] = reach[b] < INFINITY ? reach[b] : 0;
    guess(blocks_of(n), most, reach);
}

void kith_modular_start(const struct kith_backend *backend, size_t n,
                        const void *v, const void *from, float *reach)
{
    float most = 0;
    struct kith_residue_block block, before;
    if (backend->residue_messages != NULL) {
        start_on_device(backend, n, v, from, reach);
        return;
    }
    const struct kith_residues *const kernels = backend->residues();
    for (size_t b = 0; b < blocks_of(n); b++) {
        const size_t at = b * BLOCK * backend->element_bytes;
        const size_t left = n - b * BLOCK, count = left < BLOCK ? left : BLOCK;
        read_block(backend, count, (const char *)v + at, &block);
        const float here = kernels->largest(&block);
        most = here < INFINITY ? larger(here, most) : most;
        reach[b] = 0;
        if (from == NULL || !(here < INFINITY))
            continue;
        read_block(backend, count, (const char *)from + at, &before);
        reach[b] = furthest(kernels, &block, &before);
    }
    guess(blocks_of(n), most, reach);
}

size_t kith_modular_carried(size_t n, double share)
{
    const size_t blocks = blocks_of(n);
    if (share <= 0 || share >= 1 || blocks == 0)
        return blocks;
    const size_t rounded = (size_t)(share * (double)blocks + 0.5);
    return rounded < 1 ? 1 : rounded;
}

/* Knuth's selection sampling: each set of that size is as likely. */
void kith_modular_choose(uint64_t seed, uint64_t round, size_t blocks,
                         size_t carried, uint32_t *chosen)
{
    struct kith_rng rng;
    size_t found = 0;
    KITH_ASSERT(carried <= blocks && blocks <= UINT32_MAX);
    kith_rng_init(&rng, seed, KITH_STREAM_MASK,
                  kith_hash_word(KITH_HASH_START, round));
    for (size_t b = 0; found < carried; b++)
        if (kith_rng_below(&rng, (uint32_t)(blocks - b)) < carried - found)
            chosen[found++] = (uint32_t)b;
}

/* The j-th block of a message: where it stands, and its values. */
struct place {
    size_t block, at, count;
};

static struct place place_of(const struct kith_modular_cover *cover,
                             const struct kith_backend *backend, size_t j)
{
    const size_t block = cover->blocks == NULL ? j : cover->blocks[j];
    const size_t left = cover->n - block * BLOCK;
    KITH_ASSERT(block < blocks_of(cover->n));
    return (struct place){.block = block,
                          .at = block * BLOCK * backend->element_bytes,
                          .count = left < BLOCK ? left : BLOCK};
}

float kith_modular_pack(const struct kith_format *format,
                        const struct kith_backend *backend,
                        const struct kith_modular_cover *cover, const void *v,
                        const float *reach, void *wire, void *kept)
{
    const unsigned bits = format->residue_bits;
    if (backend->residue_messages != NULL)
        return backend->residue_messages->pack(bits, cover, v, reach, wire,
                                               kept);
    const struct kith_residues *const kernels = backend->residues();
    uint32_t *const heads = wire;
    uint8_t *const residues = (uint8_t *)(heads + cover->count);
    struct kith_residue_block block;
    float most = 0;
    if (cover->blocks != NULL)
        memcpy(kept, v, cover->n * backend->element_bytes);
    for (size_t j = 0; j < cover->count; j++) {
        const struct place place = place_of(cover, backend, j);
        read_block(backend, place.count, (const char *)v + place.at, &block);
        const float fine = kith_grid_step_of_reach(bits, reach[place.block]);
        const float here = kernels->largest(&block);
        /* Twice, as the largest must stay below it when it is rounded. */
        const float least = 2 * here / KITH_RESIDUE_NUMBERS_BELOW;
        /* Whatever others make us reach for, values alone are refused. */
        const uint32_t number =
            kith_grid_step_for(larger(fine < kith_grid_step(KITH_GRID_STEPS_MAX)
                                          ? fine
                                          : kith_grid_step(KITH_GRID_STEPS_MAX),
                                      least));
        most = here < INFINITY ? larger(here, most) : most;
        if (number == KITH_GRID_NO_STEP)
            memset(&block, 0, sizeof block);
        heads[j] =
            number << 24 | kernels->pack(bits, kith_grid_step(number), &block,
                                         residues + j * residues_bytes(bits));
        write_block(backend, place.count, &block, (char *)kept + place.at);
    }
    return most;
}

/* What does not travel, or cannot be read, is what we kept. */
static void keep_others(const struct kith_backend *backend, size_t n,
                        const struct kith_modular_pair *pair, float *apart)
{
    memcpy(pair->out, pair->kept, n * backend->element_bytes);
    for (size_t b = 0; b < blocks_of(n); b++)
        apart[b] = NAN;
}

static double distance_squared(const struct kith_residue_block *a,
                               const struct kith_residue_block *b)
{
    double sum = 0;
    for (size_t k = 0; k < BLOCK; k++) {
        const double off = (double)a->v[k] - (double)b->v[k];
        sum += off * off;
    }
    return sum;
}

struct kith_modular_seen
kith_modular_unpack(const struct kith_format *format,
                    const struct kith_backend *backend,
                    const struct kith_modular_cover *cover,
                    const struct kith_modular_pair *pair, float *apart)
{
    const unsigned bits = format->residue_bits;
    if (backend->residue_messages != NULL)
        return backend->residue_messages->unpack(bits, cover, pair, apart);
    const struct kith_residues *const kernels = backend->residues();
    const uint32_t *const heads = pair->received, *const own = pair->sent;
    const uint8_t *const residues = (const uint8_t *)(heads + cover->count);
    struct kith_modular_seen seen = {.read = 0};
    struct kith_residue_block ours, theirs;
    if (cover->blocks != NULL)
        keep_others(backend, cover->n, pair, apart);
    for (size_t j = 0; j < cover->count; j++) {
        const struct place place = place_of(cover, backend, j);
        const struct kith_residue_head head = kith_grid_head(heads[j]);
        const struct kith_residue_head sender = kith_grid_head(own[j]);
        read_block(backend, place.count, (const char *)pair->kept + place.at,
                   &ours);
        const float found =
            kernels->unpack(bits, &head, residues + j * residues_bytes(bits),
                            &sender, &ours, &theirs);
        const bool both = found >= 0, read = found > KITH_RESIDUE_COARSE;
        seen.read += read;
        if (read && !both)
            seen.beyond += distance_squared(&theirs, &ours);
        apart[place.block] =
            read ? found : kith_grid_next(bits, found, sender.step, head.step);
        write_block(backend, place.count, both ? &theirs : &ours,
                    (char *)pair->out + place.at);
    }
    return seen;
}

void kith_modular_follow(size_t n, const float *apart, float most, float *reach)
{
    for (size_t b = 0; b < blocks_of(n); b++) {
        float next = reach[b];
        if (isnan(apart[b]))
            continue; /* it did not travel */
        if (apart[b] >= 0)
            next = larger(DECAY * next, apart[b]);
        else if (apart[b] == KITH_RESIDUE_UNREAD)
            next *= DECAY;
        else if (apart[b] == KITH_RESIDUE_COARSE)
            next /= 2;
        else
            next = larger(next, -apart[b]);
        /* Two models of one size are no further apart than twice that. */
        if (most > 0 && next > 3 * most)
            next = 3 * most;
        reach[b] = larger(next, REACH_LEAST);
    }
}
