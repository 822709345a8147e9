/* The text of every error code, from the table in err.h. */
#include "kith/err.h"

const char *kith_err_text(enum kith_err err)
{
    switch (err) {
#define KITH_X(name, value, text)                                              \
    case name:                                                                 \
        return text;
        KITH_ERRORS(KITH_X)
#undef KITH_X
    }
    return "unknown error";
}
