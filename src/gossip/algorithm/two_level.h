/* What two-level keeps and sends: see two_level.c.
 *
 *   inside a site    a shard of values, a block of x
 *   between sites    k values, k places in the shard (uint32); or a block of x
 *
 * A list that is shorter, as of the last shard, ends in values 0 at place 0. A
 * block of x is as many values as have room in the bytes of a list. */
#ifndef KITH_GOSSIP_ALGORITHM_TWO_LEVEL_H
#define KITH_GOSSIP_ALGORITHM_TWO_LEVEL_H

#include "feedback.h"

/* SUM: the gradient, in which sums take the place of shards. RESIDUAL: of the
 * own shard. VALUES and PLACES: the lists of all sites, k for each; a place
 * takes the first bytes of an element. */
enum {
    TWO_LEVEL_SUM,
    TWO_LEVEL_RESIDUAL,
    TWO_LEVEL_VALUES,
    TWO_LEVEL_PLACES,
    TWO_LEVEL_VECTORS
};

/* m sites of g members, and this peer's place. */
struct kith_two_level {
    uint32_t sites, members, site, member;
};
struct kith_two_level kith_two_level_of(const struct kith_algebra *algebra);

struct kith_range {
    size_t at, count;
};
/* Values of a shard, d / g rounded up; the last ones may be short or empty. */
size_t kith_two_level_shard_size(const struct kith_algebra *algebra);
/* The shard that a member is there for: that of its number between sites; with
 * one site another one in each cycle. */
struct kith_range kith_two_level_shard(const struct kith_algebra *algebra,
                                       uint32_t member);
/* k: `share` of a shard, at least 1. */
size_t kith_two_level_kept(const struct kith_algebra *algebra);

size_t kith_two_level_dense_bytes(const struct kith_algebra *algebra);
size_t kith_two_level_list_bytes(const struct kith_algebra *algebra);

/* May these values of a peer's be added or taken? Cost: a pass. */
bool kith_two_level_sane(const struct kith_algebra *algebra, const void *values,
                         size_t count);

/* ---- two_level_list.c: lists */

/* RESIDUAL takes the own shard of SUM in; all lists are empty. */
void kith_two_level_take_in(struct kith_algebra *algebra);
/* The own list <- the k largest of RESIDUAL, which loses them. */
void kith_two_level_choose(struct kith_algebra *algebra);
void kith_two_level_write_list(struct kith_algebra *algebra);
/* The list of a site <- what came; false: it is none, and nothing is taken. */
bool kith_two_level_read_list(struct kith_algebra *algebra, uint32_t site);
/* The own shard of SUM <- the lists of all sites, site after site: equal to the
 * bit in all of them. */
void kith_two_level_add_lists(struct kith_algebra *algebra);

/* ---- two_level_list.c: blocks of x */

/* Does this site send x in the place of its list in this cycle? */
bool kith_two_level_shows_x(const struct kith_algebra *algebra, uint32_t site);
/* The block of this cycle that comes with or by a member's messages. */
void kith_two_level_write_block(struct kith_algebra *algebra, void *to);
bool kith_two_level_is_block_sane(const struct kith_algebra *algebra,
                                  uint32_t member, const void *from);
/* x there <- `from`, which is sane; returns the sum of what that changed. */
double kith_two_level_take_block(struct kith_algebra *algebra, uint32_t member,
                                 const void *from);

#endif
