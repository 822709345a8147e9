/* Backend naive32: the plain loops of naive.inc.h in float32. */
#include "kith/backend.h"

#define REAL float
#define RECORD kith_backend_naive32
#define NAME "naive32"
#define SUMMARY "plain loops in float32, the same bits on every CPU"
#include "naive.inc.h"
