/* Backend naive64: the plain loops of naive.inc.h in float64, for the
 * theory tests and as the reference of every other backend. */
#include "kith/backend.h"

#define REAL double
#define RECORD kith_backend_naive64
#define NAME "naive64"
#define SUMMARY "plain loops in float64, the same bits on every CPU"
#include "naive.inc.h"
