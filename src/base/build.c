/* What this build is, in a line. */
#include "kith/build.h"

#include <string.h>

#include "kith/hash.h"
#include "source_digest.h" /* SOURCE_DIGEST: made anew by each make */

#ifndef PACKAGE_VERSION
#define PACKAGE_VERSION "unreleased"
#endif

#if defined(__clang__)
#define COMPILER "clang " __clang_version__
#elif defined(__GNUC__)
#define COMPILER "gcc " __VERSION__
#else
#define COMPILER "unknown compiler"
#endif

#if defined(__SANITIZE_ADDRESS__)
#define SANITIZED ", address sanitizer"
#else
#define SANITIZED ""
#endif

#if defined(__OPTIMIZE__)
#define OPTIMIZED ", optimised"
#else
#define OPTIMIZED ", not optimised"
#endif

#define BUILD "kith " PACKAGE_VERSION " (" COMPILER OPTIMIZED SANITIZED ")"

const char *kith_build(void)
{
    return BUILD;
}

const char *kith_build_exact(void)
{
    return BUILD ", source " SOURCE_DIGEST;
}

uint64_t kith_build_hash(uint64_t hash)
{
    return kith_hash_bytes(hash, kith_build_exact(),
                           strlen(kith_build_exact()));
}
