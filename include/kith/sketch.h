/* A count sketch: a table of r x c sums from which the large coordinates of a
 * long vector can be found again. It is linear, so sketches of many peers add
 * up to the sketch of their sum, in messages of one size.
 *
 *   S[j][h_j(i)] += s_j(i) v_i           for all rows j and coordinates i
 *   estimate of v_i = median_j s_j(i) S[j][h_j(i)]
 *   norm = sqrt(median_j sum_b S[j][b]^2)
 *
 * An estimate of one row has no bias over seeds and variance <= |v|^2 / c; that
 * more than half of r rows are off by several times |v| / sqrt(c) has a
 * probability exponentially small in r. Heads of a power law come back exactly
 * once their values are fetched; a dense Gaussian vector does not come back at
 * all. So truncate before sketching: what is added is the largest of v
 * (kith/top_list.h, kith_sketch_add_list), and v keeps the rest as its
 * residual.
 *
 * h_j is a polynomial of degree 1 and s_j of degree 3 modulo 2^61 - 1, 2-wise
 * and 4-wise independent, with coefficients drawn from the seed. With `blocks`
 * B > 1 only the first p = ceil(d / B) indices are hashed; i = b p + x has the
 * hashes of x, moved by an offset and turned by a sign of block b and row j.
 * They are of each row, where csvec has one for all rows: two coordinates with
 * the same x would otherwise meet in every row at once. The signs of x and y in
 * two blocks are 3-wise independent only: estimates keep their mean and
 * variance, the norm may be less exact.
 *
 * It is no compressor of kith/compressor.h. What it is for is addition on the
 * way, which CHOCO and BEER do not do; of one vector it is larger than the k
 * largest values and keeps less, and it may add more than it keeps: the k
 * largest estimates of a Gaussian are further from it than 0 is, and so are
 * those of its k largest values where c = k. At c = 4 k those are nearer, but
 * no bound is known that would be the w of a compressor.
 *
 * Charikar, Chen and Farach-Colton, "Finding Frequent Items in Data Streams",
 * ICALP 2002; Ivkin et al., "Communication-efficient Distributed SGD with
 * Sketching", NeurIPS 2019; Dai et al., gs-SGD, arXiv 2108.06004.
 * Test: unit/test_sketch.c (T3.1), unit/test_sketch_recover.c (T3.2),
 * unit/test_sketch_contraction.c; bench/bench_sketch.c */
#ifndef KITH_SKETCH_H
#define KITH_SKETCH_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "kith/err.h"
#include "kith/top_list.h"

KITH_BEGIN_DECLS

/* A median's rows side by side: 8 KiB of stack. */
#define KITH_SKETCH_ROWS_MAX 15u
/* Cells of a table: 256 MiB of float32, 20 times FetchSGD's. */
#define KITH_SKETCH_CELLS_MAX (1u << 26)
#define KITH_SKETCH_BLOCKS_MAX 1024u
/* Bits behind the point of a fixed-point cell. */
#define KITH_SKETCH_FRACTION_MAX 50u
/* A fixed-point value is at most this in units of the last place: doubles hold
 * it and its rounding exactly. */
#define KITH_SKETCH_FIXED_VALUE_MAX (INT64_C(1) << 51)
/* All values that were added to a fixed-point sketch, by size: no cell can be
 * larger, and the sum of two such is still an int64. */
#define KITH_SKETCH_MASS_MAX (UINT64_C(1) << 61)

enum kith_sketch_cells {
    KITH_SKETCH_FLOAT32,
    KITH_SKETCH_FLOAT64,
    /* int64 in units of 2^-fraction: sums are exact, so that tables are equal
     * to the bit in whatever order values came and sketches were merged. */
    KITH_SKETCH_FIXED64,
};

/* What all peers agree on: part of the group's configuration hash. */
struct kith_sketch_config {
    uint64_t seed;
    uint64_t dim;     /* d, in [1, KITH_PARAMETERS_MAX] */
    uint32_t rows;    /* r, odd, at most KITH_SKETCH_ROWS_MAX */
    uint32_t columns; /* c >= 2; r c <= KITH_SKETCH_CELLS_MAX */
    uint32_t blocks;  /* B, in [1, KITH_SKETCH_BLOCKS_MAX], at most dim */
    enum kith_sketch_cells cells;
    uint32_t fraction; /* bits, of KITH_SKETCH_FIXED64; else 0 */
};

/* Hashes of a configuration, shared by all its sketches; read only after init.
 * The memory is the caller's. */
struct kith_sketch_family {
    struct kith_sketch_config config;
    uint64_t period; /* p: indices that are hashed */
    /* Lowest degree first. */
    uint64_t bucket[KITH_SKETCH_ROWS_MAX][2], sign[KITH_SKETCH_ROWS_MAX][4];
    /* A place is 2 bucket + (is the sign negative?). */
    uint32_t *turns; /* (rows, blocks) what a block adds to places */
    uint32_t *cache; /* (rows, period) places, or NULL: hashed each time */
};

/* Owns nothing: cells are the caller's memory, 8-byte aligned. A sketch that
 * came from a peer is one whose cells and mass it said. */
struct kith_sketch {
    const struct kith_sketch_family *family;
    void *cells;   /* (rows, columns) */
    uint64_t mass; /* of FIXED64: sum of |v_i| of all that was added, in units
                      of 2^-fraction; else 0 */
};

/* Is every field within the bounds beside it? */
bool kith_sketch_config_sound(const struct kith_sketch_config *config);
/* Two configurations with one fingerprint have the same hashes and cells, and
 * sketches of theirs can be added. The version of the hash family is in it. */
uint64_t kith_sketch_fingerprint(const struct kith_sketch_config *config);

/* Bytes of memory, 4-byte aligned, that a family needs: 4 r B, and 4 r p for a
 * cache, which spares the hashing. */
size_t kith_sketch_family_size(const struct kith_sketch_config *config,
                               bool is_cached);
/* Returns KITH_OK, or
 *   KITH_EINVAL  the configuration is not sound; the family is unchanged
 *
 * Cost  r p hashes where there is a cache. */
KITH_MUST_CHECK enum kith_err
kith_sketch_family_init(void *memory, const struct kith_sketch_config *config,
                        bool is_cached, struct kith_sketch_family *family);

/* Bytes of a table, 8-byte aligned. */
size_t kith_sketch_size(const struct kith_sketch_config *config);
/* An empty sketch: all cells 0. */
void kith_sketch_init(void *memory, const struct kith_sketch_family *family,
                      struct kith_sketch *sketch);

/* Add coordinates [from, from + n) of a vector.
 *
 *   values  (n) read, not kept; from + n <= d
 *
 * Returns KITH_OK, or, the sketch being unchanged,
 *   KITH_ENONFINITE  a value is not finite, or not as a cell
 *   KITH_ELIMIT      fixed point: a value is above KITH_SKETCH_FIXED_VALUE_MAX
 *                    units, or the mass would be above KITH_SKETCH_MASS_MAX.
 *                    Refused, not saturated: that would depend on the order
 *
 * Fixed point rounds each value to the nearest unit, ties to even. Sums of
 * float cells may leave their type: kith_sketch_sane finds it.
 *
 * Cost  r n signed additions at r n cells; without a cache 4 r n products of
 *       61 by 32 bits modulo 2^61 - 1 (3 for the sign, 1 for the bucket) and
 *       r n of 61 by 32 for the range; a pass over values per row. */
KITH_MUST_CHECK enum kith_err kith_sketch_add(struct kith_sketch *sketch,
                                              uint64_t from, size_t n,
                                              const double *values);
KITH_MUST_CHECK enum kith_err
kith_sketch_add_float32(struct kith_sketch *sketch, uint64_t from, size_t n,
                        const float *values);
/* The same of the entries of a list, whose indices are below d. */
KITH_MUST_CHECK enum kith_err
kith_sketch_add_list(struct kith_sketch *sketch,
                     const struct kith_top_list *list);

/* into <- into + from, cell by cell.
 *
 * Returns KITH_OK, or, `into` being unchanged,
 *   KITH_EMISMATCH  their fingerprints differ
 *   KITH_ELIMIT     fixed point: the mass would be above KITH_SKETCH_MASS_MAX.
 *                   Mass only grows, so some merge is refused in every order
 *                   or in none
 *
 * Cost  r c additions. A table of a peer's is sane before it is merged. */
KITH_MUST_CHECK enum kith_err kith_sketch_merge(struct kith_sketch *into,
                                                const struct kith_sketch *from);

/* May cells that came from a peer be used? Every one is finite and at most
 * `bound` in size; and in fixed point the sizes of a row add up to no more than
 * the mass, as they do where values were added, and it to no more than
 * KITH_SKETCH_MASS_MAX, so that no merge can overflow.
 *
 * A hostile peer can still shift any estimate by `bound`: see
 * kith_sketch_misses. Cost: a pass over the table. */
bool kith_sketch_sane(const struct kith_sketch *sketch, double bound);

/* The estimate of one coordinate, index < d. */
double kith_sketch_query(const struct kith_sketch *sketch, uint64_t index);
/* estimates (n) <- those of [from, from + n), the same bits as from query.
 *
 * Cost  r n cells at random places, and as many hashes as kith_sketch_add; r
 *       passes of minima and maxima for the medians; 8 KiB of stack. */
void kith_sketch_estimate(const struct kith_sketch *sketch, uint64_t from,
                          size_t n, double *estimates);
/* An estimate of |v|: within a factor of 1 +- O(1 / sqrt(c)). */
double kith_sketch_norm(const struct kith_sketch *sketch);

/* list <- the largest of all d estimates, as many as it has room for (p2 k of
 * the public Sketched-SGD code), finished. Its values are estimates: the exact
 * ones are fetched in a second round.
 *
 * Cost  kith_sketch_estimate of all, and a heap of `room`; no memory of d. */
void kith_sketch_largest(const struct kith_sketch *sketch,
                         struct kith_top_list *list);
/* HEAVYMIX: all i with estimate^2 >= norm^2 / k, as far as there is room, and
 * where they are fewer than k the largest others up to k.
 *
 * Filled by size and not at random, as the paper has it, so that all peers ask
 * for the same candidates. k <= list->room. Cost: as above. */
void kith_sketch_heavy(const struct kith_sketch *sketch, uint32_t k,
                       struct kith_top_list *list);

/* Does a sketch belong to a vector? How many of count x r estimates of single
 * rows are further than `tolerance` from exact values of its sender's.
 *
 *   indices  (count) below d, drawn by the receiver when it has the sketch, so
 *            that its sender cannot know them before
 *   exact    (count) what the sender then says that v has there
 *
 * Of an honest sketch a share of at most |v|^2 / (c tolerance^2) is missed
 * (Chebyshev). Where a share f of a row's cells is false by more than the
 * tolerance and its noise, each coordinate meets one with probability f, so
 * m of them find it with 1 - (1 - f)^m; rows are independent. It finds who
 * shifts many estimates, not who shifts one: that one's exact value is asked
 * for by whoever recovers it. Cost: count x r hashes. */
size_t kith_sketch_misses(const struct kith_sketch *sketch, size_t count,
                          const uint32_t *indices, const double *exact,
                          double tolerance);

KITH_END_DECLS

#endif
