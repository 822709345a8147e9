/* What this build is, in one line. */
#include "kith/build.h"

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

const char *kith_build(void)
{
    return "kith " PACKAGE_VERSION " (" COMPILER OPTIMIZED SANITIZED ")";
}
