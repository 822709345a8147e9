/* Names of marks and work items, from the same X-macros as their numbers. */
#include "kith/node.h"

const char *kith_mark_name(enum kith_mark_kind kind)
{
    static const char *const names[] = {
#define KITH_X(name, text) text,
        KITH_MARKS(KITH_X)
#undef KITH_X
    };
    _Static_assert(sizeof names / sizeof *names == KITH_MARK_COUNT,
                   "a name for each");
    return (unsigned)kind < KITH_MARK_COUNT ? names[kind] : "unknown";
}

const char *kith_work_name(enum kith_work_kind kind)
{
    static const char *const names[] = {
#define KITH_X(name, text) text,
        KITH_WORKS(KITH_X)
#undef KITH_X
    };
    _Static_assert(sizeof names / sizeof *names == KITH_WORK_COUNT,
                   "a name for each");
    return (unsigned)kind < KITH_WORK_COUNT ? names[kind] : "unknown";
}
