/* Scalars with a meaning, shared by every floor. */
#ifndef KITH_TYPES_H
#define KITH_TYPES_H

#include <stdint.h>

/* Nanoseconds: a monotonic instant, or a span. Never negative as an instant. */
typedef int64_t kith_ns;
#define KITH_NEVER INT64_MAX
/* As far as virtual time goes, 146 years: one more span of it still fits. */
#define KITH_TIME_MAX (KITH_NEVER / 2)
#define KITH_US ((kith_ns)1000)
#define KITH_MS ((kith_ns)1000000)
#define KITH_S ((kith_ns)1000000000)

/* Of times >= 0 that may be too long for 63 bits: KITH_NEVER then. */
static inline kith_ns kith_ns_add(kith_ns at_ns, kith_ns span_ns)
{
    return span_ns < KITH_NEVER - at_ns ? at_ns + span_ns : KITH_NEVER;
}
static inline kith_ns kith_ns_from(double span_ns)
{
    return span_ns < 0x1p63 ? (kith_ns)span_ns : KITH_NEVER;
}

/* A peer as the core knows it: its rank in the sorted member list, 0..n-1.
 * Keys, certificates and addresses live in the driver's table. */
typedef uint32_t kith_id;
#define KITH_NOBODY UINT32_MAX

#endif
