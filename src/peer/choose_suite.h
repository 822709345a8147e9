/* The choice of a suite as a function of what is given, for tests. */
#ifndef KITH_PEER_CHOOSE_SUITE_H
#define KITH_PEER_CHOOSE_SUITE_H

#include "kith/peer.h"

/* `wanted_word` is network.suite, bit s of `here` says that this machine has
 * suite s. KITH_EMISMATCH, KITH_EUNSUPPORTED as kith_peer_suite(). */
KITH_MUST_CHECK enum kith_err
kith_suite_choose(const char *wanted_word, enum kith_suite policy,
                  uint32_t here, enum kith_suite *suite, char *error);

#endif
