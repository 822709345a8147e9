/* What update-sets remembers: who said what in which of the last rounds.
 *
 *   have_s    of whom the update of round s is here
 *   known_s   those, and what is not wanted any more
 *   told_j    what peer j said that it knows, and in which round that was
 *
 * It lies in the algorithm's own vectors, as whole numbers below 2^16 which any
 * element holds and a checkpoint keeps. Rounds are told apart by s mod window;
 * masks have a bit for each peer. */
#ifndef KITH_GOSSIP_ALGORITHM_UPDATE_LOG_H
#define KITH_GOSSIP_ALGORITHM_UPDATE_LOG_H

#include "updates.h"

/* Peers have a bit each in a mask. */
#define UPDATE_PEERS_MAX 64u
#define UPDATE_WINDOW_MAX 32u
/* Vectors of d that it lies in. */
#define UPDATE_LOG_VECTORS 3u

struct update_log {
    const struct kith_algebra *algebra;
    void *const *vectors; /* (UPDATE_LOG_VECTORS) */
    size_t entry_bytes;   /* of an update */
    uint32_t window;      /* rounds; 0: there is no room for enough of them */
    uint32_t words;       /* numbers of a mask */
};

/* Whose update, and of which round. */
struct update_name {
    kith_id peer;
    uint64_t round;
};

struct update_log kith_update_log_of(const struct kith_algebra *algebra,
                                     void *const *vectors, size_t entry_bytes);

/* Numbers of one's own: FIRST round that is logged + 1, LAST round + 1; 0 where
 * nothing is logged yet. */
enum update_mark { UPDATE_FIRST, UPDATE_LAST, UPDATE_MARKS };
uint64_t kith_update_mark(const struct update_log *log, enum update_mark mark);
void kith_update_mark_set(const struct update_log *log, enum update_mark mark,
                          uint64_t value);

/* The first round that the log has room for, in round `last`. */
static inline uint64_t kith_update_oldest(const struct update_log *log,
                                          uint64_t last)
{
    return last + 1 > log->window ? last + 1 - log->window : 0;
}

uint64_t kith_update_have(const struct update_log *log, uint64_t round);
uint64_t kith_update_known(const struct update_log *log, uint64_t round);
/* Nothing of this round is here; `known` of it is not wanted. */
void kith_update_clear(const struct update_log *log, uint64_t round,
                       uint64_t known);
/* bytes (entry_bytes) */
void kith_update_put(const struct update_log *log, struct update_name name,
                     const uint8_t *bytes);
void kith_update_get(const struct update_log *log, struct update_name name,
                     uint8_t *bytes);

/* What `peer` said in `round` that it knows: masks (window), of round s at s
 * mod window. */
void kith_update_tell(const struct update_log *log, kith_id peer,
                      uint64_t round, const uint64_t *masks);

/* names <- up to `room` updates that are here and that `partner` has not, as
 * far as can be told, the newest first; returns how many. Everybody's pairs are
 * known, so that what everybody would know by now if no message were lost is
 * found by doing it again; what peers have said of themselves comes in where
 * they said it. */
uint32_t kith_update_choose(const struct update_log *log, kith_id partner,
                            uint32_t room, struct update_name *names);

#endif
