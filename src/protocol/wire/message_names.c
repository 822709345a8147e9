/* Names of messages and patterns, for traces and errors. */
#include "kith/message.h"

const char *kith_message_name(enum kith_message_kind kind)
{
    static const char *const names[KITH_MESSAGE_COUNT] = {
#define KITH_X(name, text) text,
        KITH_MESSAGES(KITH_X)
#undef KITH_X
    };
    return (unsigned)kind < KITH_MESSAGE_COUNT ? names[kind] : "unknown";
}

const char *kith_pattern_name(enum kith_pattern pattern)
{
    static const char *const names[KITH_PATTERN_COUNT] = {
        [KITH_PATTERN_NONE] = "none", [KITH_PATTERN_SWAP] = "swap",
        [KITH_PATTERN_PUSH] = "push", [KITH_PATTERN_ROUND] = "round",
        [KITH_PATTERN_PULL] = "pull",
    };
    return (unsigned)pattern < KITH_PATTERN_COUNT ? names[pattern] : "unknown";
}
