/* KITH_ASSERT states what must be; it stays on in release builds.
 * A failed one is a bug in kith, never something a peer or a user did. */
#ifndef KITH_ASSERT_H
#define KITH_ASSERT_H

#ifdef NDEBUG
#error "kith keeps its assertions in release builds: do not define NDEBUG"
#endif
#include <assert.h>

#define KITH_ASSERT(condition) assert(condition)

/* For checks that every event or message passes, where a profile shows their
 * cost: builds with sanitizers (configure --enable-sanitize) make them. */
#ifdef KITH_DEBUG
#define KITH_DEBUG_ASSERT(condition) KITH_ASSERT(condition)
#else
#define KITH_DEBUG_ASSERT(condition) ((void)sizeof(condition))
#endif

#endif
