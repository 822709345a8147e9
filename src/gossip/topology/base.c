/* Base-(k+1) graphs: averages exactly after a short schedule, for any n, with
 * at most k neighbours a round.
 *
 * H_k(n), n = F_1 ... F_L with all F <= k + 1: in phase m the peers whose
 * number differs in digit m alone, F_m of them, average with weight 1 / F_m.
 *
 * Simple(n), n = sum_l a_l (k+1)^(p_l): part l has V_l = a_l (k+1)^(p_l) peers.
 *   1. H_k in each part.
 *   2. Round l: each peer of the later parts meets one peer in each of the a_l
 *      blocks of part l, with weight q / a_l, q = V_l / (V_l + ... + V_L); the
 *      mean of the later parts, and of each block, is then that of all.
 *   3. H_k in each block of part l, while the later parts go on.
 *
 * Base(n): the shorter of Simple(n) and H_k(p), then Simple(n / p) across, p
 * the part of n whose prime factors are at most k + 1. */
#include "topology_kinds.h"

#include <string.h>

#include "kith/assert.h"

#define DEGREE_DEFAULT 1u
#define FACTORS_MAX 20u /* 2^20 peers */

/* H_k: factors[count]; an empty one is of one peer. */
struct cube {
    uint32_t factors[FACTORS_MAX], count;
};

struct part {
    uint32_t first, size, blocks, block; /* size = blocks * block */
    struct cube whole, inner;            /* H_k of the part, of a block */
};

struct base {
    struct cube inside; /* H_k(p), before all else */
    uint32_t p;         /* peers of such a group */
    struct part parts[FACTORS_MAX];
    uint32_t part_count;
    uint32_t later[FACTORS_MAX]; /* peers of parts after l */
    uint32_t length;
};

/* Fewest factors of 2..k+1, none larger than the one before; false: n is not
 * such a product. Deepens one factor at a time. */
static bool search(uint32_t n, uint32_t most, struct cube *cube)
{
    for (uint32_t depth = 0; depth <= FACTORS_MAX; depth++) {
        uint32_t rest[FACTORS_MAX + 1] = {n}, at = 0;
        if (depth == 0 && n == 1) {
            cube->count = 0;
            return true;
        }
        uint32_t factor = most;
        while (depth > 0) {
            while (factor > 1 && rest[at] % factor != 0)
                factor--;
            if (factor > 1) {
                cube->factors[at] = factor;
                rest[at + 1] = rest[at] / factor;
                at++;
                if (rest[at] == 1) {
                    cube->count = at;
                    return true;
                }
                if (at < depth)
                    continue; /* the same factor, or a smaller one */
            }
            if (factor <= 1 && at == 0)
                break;
            factor = cube->factors[--at] - 1;
        }
    }
    return false;
}

/* The part of n whose prime factors are at most k + 1. */
static uint32_t smooth_part(uint32_t n, uint32_t k)
{
    uint32_t smooth = 1;
    for (uint32_t factor = 2; factor <= k + 1; factor++)
        while (n % factor == 0) {
            n /= factor;
            smooth *= factor;
        }
    return smooth;
}

static void add_part(struct base *base, uint32_t first, uint32_t blocks,
                     uint32_t block, uint32_t k)
{
    struct part *part = &base->parts[base->part_count++];
    *part = (struct part){.first = first,
                          .size = blocks * block,
                          .blocks = blocks,
                          .block = block};
    const bool found = search(part->size, k + 1, &part->whole) &&
                       search(block, k + 1, &part->inner);
    KITH_ASSERT(found);
}

/* Simple(n / p) and H_k(p). */
static void fill(struct base *base, uint32_t n, uint32_t p, uint32_t k)
{
    memset(base, 0, sizeof *base);
    base->p = p;
    const bool found = search(p, k + 1, &base->inside);
    KITH_ASSERT(found);
    const uint32_t q = n / p;
    uint32_t power = 1, first = 0;
    while (power <= q / (k + 1))
        power *= k + 1;
    if (smooth_part(q, k) == q) {
        if (q > 1)
            add_part(base, 0, 1, q, k);
    } else {
        for (; power > 0; power /= k + 1) {
            const uint32_t digit = (q - first) / power;
            if (digit == 0)
                continue;
            add_part(base, first, digit, power, k);
            first += digit * power;
        }
    }
    for (uint32_t l = 0; l < base->part_count; l++)
        base->later[l] = q - base->parts[l].first - base->parts[l].size;
    base->length = base->inside.count;
    if (base->part_count > 0)
        base->length += base->parts[0].whole.count;
    if (base->part_count > 1)
        base->length += 1 + base->parts[0].inner.count;
}

static enum kith_err prepare(struct kith_topology *topology, char *error)
{
    uint32_t *k = &topology->options.degree;
    struct base base;
    if (*k == 0)
        *k = DEGREE_DEFAULT;
    const uint32_t smooth = smooth_part(topology->peers, *k);
    fill(&base, topology->peers, 1, *k);
    topology->own = 1;
    const uint32_t simple = base.length;
    fill(&base, topology->peers, smooth, *k);
    if (base.length < simple)
        topology->own = smooth;
    const uint32_t length = base.length < simple ? base.length : simple;
    if (length * *k > KITH_LINKS_MAX)
        return kith_topology_refuse(
            error, KITH_ELIMIT,
            "degree: found %u with %u peers, up to %u partners each; allowed: "
            "at most %u, so a smaller degree",
            *k, topology->peers, length * *k, KITH_LINKS_MAX);
    return KITH_OK;
}

static size_t size(const struct kith_topology *topology)
{
    (void)topology;
    return sizeof(struct base);
}

static enum kith_err build(struct kith_topology *topology, void *memory,
                           char *error)
{
    (void)error;
    fill(memory, topology->peers, topology->own, topology->options.degree);
    return KITH_OK;
}

/* Who shares a group with `place` in this phase: each is first + stride * (what
 * it counts) in the caller's numbering. */
struct group {
    struct kith_neighbours *list;
    uint32_t first, stride; /* number of place 0; distance of two places */
};

static void add(const struct group *group, uint32_t place, double weight)
{
    kith_list_add(group->list, group->first + place * group->stride, weight);
}

static void add_cube(const struct group *group, const struct cube *cube,
                     uint32_t phase, uint32_t offset, uint32_t place)
{
    uint32_t stride = 1;
    if (phase >= cube->count)
        return;
    for (uint32_t m = 0; m < phase; m++)
        stride *= cube->factors[m];
    const uint32_t factor = cube->factors[phase];
    const uint32_t digit = place / stride % factor;
    const uint32_t zero = offset + place - digit * stride;
    for (uint32_t d = 0; d < factor; d++)
        if (d != digit)
            add(group, zero + d * stride, 1.0 / factor);
}

/* Step 2 of part l, seen from a peer of it or of a later one. */
static void add_bridge(const struct group *group, const struct base *base,
                       uint32_t l, uint32_t place)
{
    const struct part *part = &base->parts[l];
    const uint32_t end = part->first + part->size;
    const double q = (double)part->size / (part->size + base->later[l]);
    const double weight = q / part->blocks;
    if (place >= end) {
        for (uint32_t a = 0; a < part->blocks; a++)
            add(group, part->first + a * part->block + (place - end), weight);
        return;
    }
    const uint32_t index = (place - part->first) % part->block;
    if (index < base->later[l])
        add(group, end + index, weight);
}

static void add_simple(const struct group *group, const struct base *base,
                       uint32_t round, uint32_t place)
{
    uint32_t l = 0;
    while (place >= base->parts[l].first + base->parts[l].size)
        l++;
    const struct part *part = &base->parts[l];
    const uint32_t start = base->parts[0].whole.count;
    if (round < start) {
        add_cube(group, &part->whole, round, part->first, place - part->first);
        return;
    }
    const uint32_t step = round - start;
    if (step <= l && step + 1 < base->part_count) {
        add_bridge(group, base, step, place);
        return;
    }
    if (step <= l || l + 1 == base->part_count)
        return;
    const uint32_t inside = (place - part->first) % part->block;
    add_cube(group, &part->inner, step - l - 1, place - inside, inside);
}

static uint64_t period(const struct kith_topology *topology)
{
    const struct base *base = topology->built;
    return base->length == 0 ? 1 : base->length;
}

static void neighbours(const struct kith_topology *topology,
                       struct kith_neighbours *list)
{
    const struct base *base = topology->built;
    const uint32_t phase = (uint32_t)(list->round % period(topology));
    const uint32_t member = list->self % base->p;
    struct group group = {.list = list, .stride = 1};
    if (phase < base->inside.count) {
        add_cube(&group, &base->inside, phase, list->self - member, member);
        return;
    }
    group.first = member;
    group.stride = base->p;
    add_simple(&group, base, phase - base->inside.count, list->self / base->p);
}

const struct kith_topology_kind kith_topology_base = {
    .name = "base",
    .paper = "Takezawa et al., NeurIPS 2023 (2305.11420)",
    .summary = "exact for any n in few rounds, `degree` neighbours a round [1]",
    .weighted = true,
    .keys = KITH_TOPOLOGY_READS(DEGREE),
    .prepare = prepare,
    .size = size,
    .build = build,
    .degree = kith_degree_option,
    .neighbours = neighbours,
    .period = period,
};
