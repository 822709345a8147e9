/* What this build is: its results belong to it, to the last bit. */
#ifndef KITH_BUILD_H
#define KITH_BUILD_H

#include <stdint.h>

/* Version, compiler and options, one line. */
const char *kith_build(void);
/* The same, and which sources: src/base/source_digest.sh. For what has no
 * promise between commits: processes of one run, and who goes on with one.
 * Peers of a cluster do not ask. Test: integration/test_source_digest.sh */
const char *kith_build_exact(void);
/* The hash goes on with that line. */
uint64_t kith_build_hash(uint64_t hash);

#endif
