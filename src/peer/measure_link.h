/* What the way to a member is, over a visit whose session is open and whose
 * HELLO said KITH_VISIT_MEASURES. */
#ifndef KITH_PEER_MEASURE_LINK_H
#define KITH_PEER_MEASURE_LINK_H

#include "kith/peer.h"
#include "visit.h"

/* KITH_ECLOSED: the peer closed, as one does that has a guest already, or knows
 * none. */
enum kith_err kith_measure_link(struct kith_visit *visit,
                                struct kith_link_measure *link);

#endif
