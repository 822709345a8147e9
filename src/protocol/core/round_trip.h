/* Deadlines: how long an answer is waited for, from measured round trips. */
#ifndef KITH_PROTOCOL_CORE_ROUND_TRIP_H
#define KITH_PROTOCOL_CORE_ROUND_TRIP_H

#include "kith/types.h"

/* Running mean and mean deviation of a duration (Jacobson and Karels, SIGCOMM
 * 1988; RFC 6298 with its gains 1/8 and 1/4), in integers. */
struct kith_estimate {
    int32_t mean_us, deviation_us; /* <= 120 s; mean 0: never measured */
};
void kith_estimate_add(struct kith_estimate *estimate, kith_ns sample_ns);
/* 4 (mean + 4 deviation), at least KITH_TIMEOUT_MIN_NS; `initial_ns` before the
 * first sample; doubled `tries` times, capped at KITH_TIMEOUT_MAX_NS. */
kith_ns kith_estimate_timeout(const struct kith_estimate *estimate,
                              kith_ns initial_ns, uint32_t tries);

/* Below this a busy machine's scheduling noise would look like a fault. */
#define KITH_TIMEOUT_MIN_NS (100 * KITH_MS)
#define KITH_TIMEOUT_MAX_NS (120 * KITH_S)
/* RFC 6298's first guess; a transfer adds its bytes at 10 Mbit/s. */
#define KITH_TIMEOUT_INITIAL_NS KITH_S
#define KITH_INITIAL_BITS_PER_S 10000000u
/* A message is repeated this often before the other side is declared dead. */
#define KITH_TRIES_MAX 4u
#endif
