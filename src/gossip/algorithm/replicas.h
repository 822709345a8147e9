/* Public copies of a neighbour's vector, of which only compressed differences
 * travel.
 *
 *   q = C(v - v^);   v^ <- v^ + q      at the sender and at the receiver
 *
 * Both ends of an edge hold v^ of each, and an edge of a round commits at both
 * or at neither, so that the two copies are always the same: a message that is
 * lost is made up for by the next difference. (The papers send one q to all
 * neighbours; where nothing is lost that is the same: draws are the sender's.)
 * After a restart, or where it is not known whether the last one arrived, the
 * numbers that travel along differ and both ends start over from 0. */
#ifndef KITH_GOSSIP_ALGORITHM_REPLICAS_H
#define KITH_GOSSIP_ALGORITHM_REPLICAS_H

#include "updates.h"

#include "kith/compressor.h"

/* This edge's vector `index` of those kept for each neighbour. */
void *kith_replica_of(const struct kith_algebra *algebra, unsigned index);
/* Bytes of scratch for `parts` differences that are read at a time, and places
 * of one. */
size_t kith_replica_scratch(const struct kith_algebra *algebra, unsigned parts);
size_t kith_replica_places(const struct kith_algebra *algebra);
/* The first `copies` of every edge <- v; an edge whose two ends do not begin
 * with the same v starts over from 0. */
void kith_replica_start(struct kith_algebra *algebra, unsigned copies,
                        const void *v);
/* The number of commits so far, to be sent along: one more where an edge has
 * merged. */
double *kith_replica_number(const struct kith_algebra *algebra);
#define REPLICA_NUMBER_MAX 9007199254740992.0
/* `part`-th compressed difference of a message: wire <- C(v - mine), or zeros
 * where that is not finite: nothing, or to both ends malformed. */
void kith_replica_make(struct kith_algebra *algebra, unsigned part,
                       const void *v, const void *mine, void *wire);
/* Both ends know the same? Else all copies of this edge start over. */
bool kith_replica_agree(struct kith_algebra *algebra,
                        const struct kith_work_edge *edge, unsigned copies);
/* What `from` sent, to be added to its copy: read into the `index`-th part of
 * scratch, or the wire itself, whose values are checked as they come in. NULL:
 * malformed. Nothing may be changed before all of a message is read. */
const void *kith_replica_read(struct kith_algebra *algebra, kith_id from,
                              unsigned part, const void *wire, unsigned index);

#endif
