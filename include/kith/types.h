/* Scalars with a meaning, shared by every floor. */
#ifndef KITH_TYPES_H
#define KITH_TYPES_H

#include <stdint.h>

/* Nanoseconds: a monotonic instant, or a span. Never negative as an instant. */
typedef int64_t kith_ns;
#define KITH_NEVER INT64_MAX
#define KITH_US ((kith_ns)1000)
#define KITH_MS ((kith_ns)1000000)
#define KITH_S ((kith_ns)1000000000)

/* A peer as the core knows it: its rank in the sorted member list, 0..n-1.
 * Keys, certificates and addresses live in the driver's table. */
typedef uint32_t kith_id;
#define KITH_NOBODY UINT32_MAX

#endif
