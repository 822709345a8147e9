/* A simulation whose decisions are looked up by their words; see traced.c. */
#ifndef KITH_TESTS_TRACED_H
#define KITH_TESTS_TRACED_H

#include "kith/types.h"
#include "tests/support/simulate.h"

/* As simulate(), with its trace for when(). */
struct simulated traced(const char *yaml);
/* When the first line with these words stands in the last trace; -1: never. */
kith_ns when(const char *words);
/* The same at or after a time. */
kith_ns when_from(kith_ns from_ns, const char *words);

#endif
