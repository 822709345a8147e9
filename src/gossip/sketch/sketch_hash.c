/* A family of hashes: coefficients from the seed, turns of blocks, and the
 * cache. See sketch_hash.h. */
#include "sketch_hash.h"

#include "kith/assert.h"
#include "kith/hash.h"
#include "kith/limits.h"
#include "kith/rng.h"

/* Of the hash family: any change of a place is another version. */
enum { FAMILY_VERSION = 1 };

_Static_assert(KITH_PARAMETERS_MAX <= UINT64_C(1) << 32,
               "an index is of 32 bits");
_Static_assert(KITH_SKETCH_CELLS_MAX <= UINT32_C(1) << 31,
               "a place is a column and a bit");

bool kith_sketch_config_sound(const struct kith_sketch_config *config)
{
    const bool is_fixed = config->cells == KITH_SKETCH_FIXED64;
    return config->dim >= 1 && config->dim <= KITH_PARAMETERS_MAX &&
           config->rows % 2 == 1 && config->rows <= KITH_SKETCH_ROWS_MAX &&
           config->columns >= 2 &&
           config->columns <= KITH_SKETCH_CELLS_MAX / config->rows &&
           config->blocks >= 1 && config->blocks <= KITH_SKETCH_BLOCKS_MAX &&
           config->blocks <= config->dim &&
           config->cells <= KITH_SKETCH_FIXED64 &&
           config->fraction <= (is_fixed ? KITH_SKETCH_FRACTION_MAX : 0);
}

uint64_t kith_sketch_fingerprint(const struct kith_sketch_config *config)
{
    const uint64_t words[] = {FAMILY_VERSION,
                              config->seed,
                              config->dim,
                              config->rows,
                              config->columns,
                              config->blocks,
                              (uint64_t)config->cells,
                              config->fraction};
    uint64_t hash = KITH_HASH_START;
    for (size_t i = 0; i < sizeof words / sizeof words[0]; i++)
        hash = kith_hash_word(hash, words[i]);
    return hash;
}

static uint64_t period_of(const struct kith_sketch_config *config)
{
    return (config->dim + config->blocks - 1) / config->blocks;
}

size_t kith_sketch_family_size(const struct kith_sketch_config *config,
                               bool is_cached)
{
    KITH_ASSERT(kith_sketch_config_sound(config));
    const size_t each = config->blocks + (is_cached ? period_of(config) : 0);
    return config->rows * each * sizeof(uint32_t);
}

/* Uniform in [0, p): drawn again where it is p. */
static uint64_t coefficient(struct kith_rng *rng)
{
    uint64_t drawn;
    do
        drawn = kith_rng_u64(rng) >> 3;
    while (drawn == SKETCH_PRIME);
    return drawn;
}

/* A row's draws depend on the seed and the row alone. */
static void draw_row(struct kith_sketch_family *family, uint32_t row)
{
    const struct kith_sketch_config *config = &family->config;
    struct kith_rng rng;
    kith_rng_init(&rng, config->seed, KITH_STREAM_SKETCH, row);
    for (unsigned i = 0; i < 2; i++)
        family->bucket[row][i] = coefficient(&rng);
    for (unsigned i = 0; i < 4; i++)
        family->sign[row][i] = coefficient(&rng);
    uint32_t *turns = family->turns + (size_t)row * config->blocks;
    for (uint32_t block = 0; block < config->blocks; block++)
        turns[block] =
            config->blocks == 1 ? 0 : kith_rng_below(&rng, 2 * config->columns);
}

static void hash_row(const struct kith_sketch_family *family, uint32_t row,
                     uint64_t from, size_t n, uint32_t *places)
{
    const uint64_t *bucket = family->bucket[row], *sign = family->sign[row];
    const uint64_t b[2] = {bucket[0], bucket[1]};
    const uint64_t s[4] = {sign[0], sign[1], sign[2], sign[3]};
    const uint32_t columns = family->config.columns, first = (uint32_t)from;
    for (uint32_t i = 0; i < n; i++)
        places[i] = sketch_hash(b, s, columns, first + i);
}

enum kith_err kith_sketch_family_init(void *memory,
                                      const struct kith_sketch_config *config,
                                      bool is_cached,
                                      struct kith_sketch_family *family)
{
    if (!kith_sketch_config_sound(config))
        return KITH_EINVAL;
    *family = (struct kith_sketch_family){
        .config = *config, .period = period_of(config), .turns = memory};
    for (uint32_t row = 0; row < config->rows; row++)
        draw_row(family, row);
    if (!is_cached)
        return KITH_OK;
    uint32_t *cache = family->turns + (size_t)config->rows * config->blocks;
    for (uint32_t row = 0; row < config->rows; row++)
        hash_row(family, row, 0, family->period, cache + row * family->period);
    family->cache = cache;
    return KITH_OK;
}

/* Moved by the block's offset and turned by its sign. */
static inline uint32_t turned(uint32_t place, uint32_t turn, uint32_t columns)
{
    const uint32_t moved = (place >> 1) + (turn >> 1);
    const uint32_t column = moved >= columns ? moved - columns : moved;
    return column << 1 | ((place ^ turn) & 1);
}

/* Within a block. */
static void block_places(const struct kith_sketch_family *family, uint32_t row,
                         uint64_t from, size_t n, uint32_t *places)
{
    const struct kith_sketch_config *config = &family->config;
    const uint64_t block = from / family->period, x = from % family->period;
    const uint32_t turn = family->turns[(size_t)row * config->blocks + block];
    if (family->cache == NULL)
        hash_row(family, row, x, n, places);
    else
        for (size_t i = 0; i < n; i++)
            places[i] = family->cache[row * family->period + x + i];
    if (turn != 0)
        for (size_t i = 0; i < n; i++)
            places[i] = turned(places[i], turn, config->columns);
}

void kith_sketch_places(const struct kith_sketch_family *family, uint32_t row,
                        uint64_t from, size_t n, uint32_t *places)
{
    KITH_ASSERT(row < family->config.rows);
    KITH_ASSERT(from + n <= family->config.dim);
    for (size_t done = 0, count; done < n; done += count) {
        const uint64_t at = from + done;
        const uint64_t left = family->period - at % family->period;
        count = left < n - done ? (size_t)left : n - done;
        block_places(family, row, at, count, places + done);
    }
}

uint32_t kith_sketch_place(const struct kith_sketch_family *family,
                           uint32_t row, uint64_t index)
{
    uint32_t place;
    kith_sketch_places(family, row, index, 1, &place);
    return place;
}
