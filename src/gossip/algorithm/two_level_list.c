/* Lists of two-level and its blocks of x: see two_level.h. */
#include "two_level.h"

#include <math.h>

#include "kith/assert.h"
#include "kith/compressor.h"
#include "kith/hash.h"

/* Cycles to one in which a site shows x. */
#define CYCLES_TO_X 8u

struct kith_two_level kith_two_level_of(const struct kith_algebra *algebra)
{
    const uint32_t sites = kith_topology_sites(algebra->graph, algebra->peers);
    const uint32_t members = algebra->peers / sites;
    KITH_ASSERT(sites * members == algebra->peers);
    return (struct kith_two_level){.sites = sites,
                                   .members = members,
                                   .site = algebra->self / members,
                                   .member = algebra->self % members};
}

static uint64_t cycle_of(const struct kith_algebra *algebra)
{
    return algebra->round / kith_collective_phases(algebra);
}

size_t kith_two_level_shard_size(const struct kith_algebra *algebra)
{
    const size_t members = kith_two_level_of(algebra).members;
    return (algebra->dim + members - 1) / members;
}

struct kith_range kith_two_level_shard(const struct kith_algebra *algebra,
                                       uint32_t member)
{
    const struct kith_two_level of = kith_two_level_of(algebra);
    const size_t size = kith_two_level_shard_size(algebra), d = algebra->dim;
    const uint64_t turn = of.sites == 1 ? cycle_of(algebra) : 0;
    const size_t wanted = size * ((member + turn) % of.members),
                 at = wanted < d ? wanted : d;
    return (struct kith_range){at, d - at < size ? d - at : size};
}

size_t kith_two_level_kept(const struct kith_algebra *algebra)
{
    const size_t size = kith_two_level_shard_size(algebra);
    const double share = algebra->coefficients[KITH_GOSSIP_SHARE];
    const size_t rounded = (size_t)(share * (double)size + 0.5);
    KITH_ASSERT(share >= 0 && share <= 1);
    return rounded < 1 ? 1 : rounded < size ? rounded : size;
}

size_t kith_two_level_list_bytes(const struct kith_algebra *algebra)
{
    return kith_two_level_kept(algebra) *
           (algebra->backend->element_bytes + sizeof(uint32_t));
}

static size_t block_size(const struct kith_algebra *algebra)
{
    return kith_two_level_list_bytes(algebra) / algebra->backend->element_bytes;
}

size_t kith_two_level_dense_bytes(const struct kith_algebra *algebra)
{
    return (kith_two_level_shard_size(algebra) + block_size(algebra)) *
           algebra->backend->element_bytes;
}

bool kith_two_level_sane(const struct kith_algebra *algebra, const void *values,
                         size_t count)
{
    const struct kith_backend *backend = algebra->backend;
    return count == 0 || (backend->finite(count, values) &&
                          backend->magnitudes()->survey(count, values).most <=
                              FEEDBACK_VALUE_MAX);
}

/* ---- lists */

/* Where the list of a site stands in VALUES and PLACES. */
static void *list_at(const struct kith_algebra *algebra, unsigned vector,
                     uint32_t site)
{
    const size_t kept = kith_two_level_kept(algebra);
    KITH_ASSERT((site + 1) * kept <= algebra->dim);
    return kith_algorithm_at(algebra, algebra->vectors[vector], site * kept);
}

static uint32_t place_of(const struct kith_algebra *algebra, const void *places,
                         size_t n)
{
    uint32_t place;
    memcpy(&place, (const char *)places + n * algebra->backend->element_bytes,
           sizeof place);
    return place;
}

static void put(const struct kith_algebra *algebra, uint32_t site, size_t n,
                double value, uint32_t place)
{
    char *const places = list_at(algebra, TWO_LEVEL_PLACES, site);
    kith_feedback_put(algebra, list_at(algebra, TWO_LEVEL_VALUES, site), n,
                      value);
    memcpy(places + n * algebra->backend->element_bytes, &place, sizeof place);
}

void kith_two_level_take_in(struct kith_algebra *algebra)
{
    const struct kith_backend *backend = algebra->backend;
    const struct kith_range own =
        kith_two_level_shard(algebra, kith_two_level_of(algebra).member);
    char *const residual = kith_algorithm_at(
        algebra, algebra->vectors[TWO_LEVEL_RESIDUAL], own.at);
    backend->add(
        own.count, 1.0,
        kith_algorithm_at(algebra, algebra->vectors[TWO_LEVEL_SUM], own.at),
        residual);
    for (size_t i = 0; i < own.count; i++)
        if (!(fabs(kith_feedback_get(algebra, residual, i)) <=
              FEEDBACK_VALUE_MAX))
            kith_feedback_put(algebra, residual, i, 0);
    backend->clear(algebra->dim, algebra->vectors[TWO_LEVEL_VALUES]);
    backend->clear(algebra->dim, algebra->vectors[TWO_LEVEL_PLACES]);
}

void kith_two_level_choose(struct kith_algebra *algebra)
{
    const struct kith_two_level of = kith_two_level_of(algebra);
    const struct kith_range own = kith_two_level_shard(algebra, of.member);
    const size_t most = kith_two_level_kept(algebra);
    const size_t kept = most < own.count ? most : own.count;
    char *const residual = kith_algorithm_at(
        algebra, algebra->vectors[TWO_LEVEL_RESIDUAL], own.at);
    uint64_t key = kith_hash_word(KITH_HASH_START, algebra->seed);
    key = kith_hash_word(kith_hash_word(key, algebra->round), algebra->self);
    uint32_t *const places = algebra->scratch;
    const size_t count =
        kith_ms_top_k(algebra->backend, own.count, residual, kept, key, places);
    for (size_t n = 0; n < count; n++) {
        put(algebra, of.site, n,
            kith_feedback_get(algebra, residual, places[n]), places[n]);
        kith_feedback_put(algebra, residual, places[n], 0);
    }
}

void kith_two_level_write_list(struct kith_algebra *algebra)
{
    const uint32_t site = kith_two_level_of(algebra).site;
    const size_t kept = kith_two_level_kept(algebra);
    const void *const places = list_at(algebra, TWO_LEVEL_PLACES, site);
    char *const behind =
        (char *)algebra->sent + kept * algebra->backend->element_bytes;
    algebra->backend->copy(kept, algebra->sent,
                           list_at(algebra, TWO_LEVEL_VALUES, site));
    for (size_t n = 0; n < kept; n++) {
        const uint32_t place = place_of(algebra, places, n);
        memcpy(behind + n * sizeof place, &place, sizeof place);
    }
}

/* Places rise, so that no value is added twice, up to the entries that are
 * nothing. */
bool kith_two_level_read_list(struct kith_algebra *algebra, uint32_t site)
{
    const size_t kept = kith_two_level_kept(algebra);
    const struct kith_range own =
        kith_two_level_shard(algebra, kith_two_level_of(algebra).member);
    const char *const behind = (const char *)algebra->received +
                               kept * algebra->backend->element_bytes;
    if (!kith_two_level_sane(algebra, algebra->received, kept))
        return false;
    uint32_t next = 0;
    for (unsigned pass = 0; pass < 2; pass++)
        for (size_t n = 0; n < kept; n++) {
            const double value =
                kith_feedback_get(algebra, algebra->received, n);
            uint32_t place;
            memcpy(&place, behind + n * sizeof place, sizeof place);
            if (pass == 1)
                put(algebra, site, n, value, place);
            else if (value == 0 && place == 0)
                continue;
            else if (place < next || place >= own.count)
                return false;
            else
                next = place + 1;
        }
    return true;
}

void kith_two_level_add_lists(struct kith_algebra *algebra)
{
    const struct kith_two_level of = kith_two_level_of(algebra);
    const struct kith_range own = kith_two_level_shard(algebra, of.member);
    const size_t kept = kith_two_level_kept(algebra);
    char *const sum =
        kith_algorithm_at(algebra, algebra->vectors[TWO_LEVEL_SUM], own.at);
    algebra->backend->clear(own.count, sum);
    for (uint32_t site = 0; site < of.sites && own.count > 0; site++)
        for (size_t n = 0; n < kept; n++) {
            const uint32_t place =
                place_of(algebra, list_at(algebra, TWO_LEVEL_PLACES, site), n);
            KITH_ASSERT(place < own.count);
            kith_feedback_put(
                algebra, sum, place,
                kith_feedback_get(algebra, sum, place) +
                    kith_feedback_get(
                        algebra, list_at(algebra, TWO_LEVEL_VALUES, site), n));
        }
}

/* ---- blocks of x */

/* Of the turns in which x is shown. */
struct turn {
    uint64_t sweep, position; /* how often all of x went round; since then */
};
static struct turn turn_of(const struct kith_algebra *algebra)
{
    const uint64_t turn = cycle_of(algebra) / CYCLES_TO_X;
    const size_t values =
        block_size(algebra) * kith_two_level_of(algebra).members;
    const uint64_t turns = (algebra->dim + values - 1) / values;
    KITH_ASSERT(turns > 0);
    return (struct turn){turn / turns, turn % turns};
}

/* Each member's is another one, and in each sweep another member's, so that a
 * site whose member is gone gets all of x by the others. */
static struct kith_range block_of(const struct kith_algebra *algebra,
                                  uint32_t member)
{
    const struct turn turn = turn_of(algebra);
    const uint64_t members = kith_two_level_of(algebra).members;
    const size_t size = block_size(algebra), d = algebra->dim;
    const size_t wanted =
        (size_t)(turn.position * members + (member + turn.sweep) % members) *
        size;
    const size_t at = wanted < d ? wanted : d;
    return (struct kith_range){at, d - at < size ? d - at : size};
}

/* Sites take turns, and of each block in each sweep another one. */
bool kith_two_level_shows_x(const struct kith_algebra *algebra, uint32_t site)
{
    const struct turn turn = turn_of(algebra);
    return cycle_of(algebra) % CYCLES_TO_X == CYCLES_TO_X - 1 &&
           (turn.position + turn.sweep) % kith_two_level_of(algebra).sites ==
               site;
}

void kith_two_level_write_block(struct kith_algebra *algebra, void *to)
{
    const struct kith_range block =
        block_of(algebra, kith_two_level_of(algebra).member);
    algebra->backend->copy(block.count, to,
                           kith_algorithm_at(algebra, algebra->live, block.at));
    memset((char *)to + block.count * algebra->backend->element_bytes, 0,
           (block_size(algebra) - block.count) *
               algebra->backend->element_bytes);
}

bool kith_two_level_is_block_sane(const struct kith_algebra *algebra,
                                  uint32_t member, const void *from)
{
    return kith_two_level_sane(algebra, from, block_of(algebra, member).count);
}

double kith_two_level_take_block(struct kith_algebra *algebra, uint32_t member,
                                 const void *from)
{
    const struct kith_range block = block_of(algebra, member);
    char *const x = kith_algorithm_at(algebra, algebra->live, block.at);
    double changed = 0;
    for (size_t i = 0; i < block.count; i++)
        changed += kith_feedback_get(algebra, from, i) -
                   kith_feedback_get(algebra, x, i);
    algebra->backend->copy(block.count, x, from);
    return changed;
}
