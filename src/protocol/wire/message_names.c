/* Names of messages and patterns, for traces and errors. */
#include "kith/message.h"

const char *kith_message_name(enum kith_message_kind kind)
{
    switch (kind) {
#define KITH_X(name, text)                                                     \
    case KITH_MESSAGE_##name:                                                  \
        return text;
        KITH_MESSAGES(KITH_X)
#undef KITH_X
    case KITH_MESSAGE_COUNT:
        break;
    }
    return "unknown";
}

const char *kith_pattern_name(enum kith_pattern pattern)
{
    switch (pattern) {
    case KITH_PATTERN_NONE:
        return "none";
    case KITH_PATTERN_SWAP:
        return "swap";
    case KITH_PATTERN_PUSH:
        return "push";
    case KITH_PATTERN_ROUND:
        return "round";
    case KITH_PATTERN_PULL:
        return "pull";
    case KITH_PATTERN_COUNT:
        break;
    }
    return "unknown";
}
