/* What peers say to each other. One struct, one X-macro row per kind.
 *
 * An exchange is named by (initiator, incarnation, counter). On the wire the
 * initiator is "me" or "you", because the channel already says who speaks.
 *
 *   swap   A: REQUEST        B: ACCEPT | BUSY
 *          A: MODEL (s_A)    B: MODEL (s_B), each at its next step boundary
 *                            B: ACK, B has merged w (s_A - s_B)
 *          A: ACK            A, too, has merged w (s_B - s_A)
 *   push   A: REQUEST        B: ACCEPT | BUSY
 *          A: MODEL          B: ACK, B has added it
 *   pull   A: REQUEST        B: ACCEPT | BUSY, then MODEL      A: ACK
 *   round  both: MODEL(t)    passive: READY, initiator: ACK (commit) or ABORT
 *   doubt  A: ABORT          B: ABORTED (undone, or never done)
 *          B: PROBE          A: ACK | ABORT
 *   late   A: PROBE          B: ACCEPT | ABORT, it comes to that round or not
 */
#ifndef KITH_MESSAGE_H
#define KITH_MESSAGE_H

#include <stdbool.h>
#include <stdint.h>

#include "kith/err.h"
#include "kith/limits.h"
#include "kith/types.h"

/* X(NAME, text, fields): fields is the count of msgpack values after the kind.
 * Append only: the number travels. */
#define KITH_MESSAGES(X)                                                       \
    X(REQUEST, "request") /* open an exchange */                               \
    X(ACCEPT, "accept")   /* go on */                                          \
    X(BUSY, "busy")       /* not now: ask somebody else */                     \
    X(MODEL, "model")     /* a vector follows as bulk records */               \
    X(READY, "ready")     /* round: I hold your model */                       \
    X(ACK, "ack")         /* merged: the exchange is `both` */                 \
    X(ABORT, "abort")     /* take it back, idempotent */                       \
    X(ABORTED, "aborted") /* taken back, or never done */                      \
    X(PROBE, "probe")     /* what became of it? */                             \
    X(BYE, "bye")         /* I leave; do not pick me */

enum kith_message_kind {
#define KITH_X(name, text) KITH_MESSAGE_##name,
    KITH_MESSAGES(KITH_X)
#undef KITH_X
        KITH_MESSAGE_COUNT
};

/* How an exchange moves: what REQUEST asks for. */
enum kith_pattern {
    KITH_PATTERN_NONE,  /* never communicates */
    KITH_PATTERN_SWAP,  /* two parties, both end with the mix */
    KITH_PATTERN_PUSH,  /* one way */
    KITH_PATTERN_ROUND, /* all neighbours of round t, or a deadline */
    KITH_PATTERN_PULL,  /* a restarted peer adopts its first neighbour */
    KITH_PATTERN_COUNT
};

/* A partner that does not take part is followed by another: each has a counter
 * of its own, of exchange k of a peer k KITH_ASKS + 0, 1, ... */
#define KITH_ASKS 32u
struct kith_exchange_id {
    uint64_t counter;     /* the initiator's own; a round's index for ROUND */
    uint32_t incarnation; /* the initiator's, +1 at every restart */
};

struct kith_message {
    enum kith_message_kind kind;
    enum kith_pattern pattern;
    struct kith_exchange_id id;
    bool mine;             /* the sender of this message is the initiator */
    uint64_t step;         /* the sender's own training step */
    uint32_t scalar_count; /* MODEL: scalars that travel with the vector */
    double scalars[KITH_SCALARS_MAX];
    uint64_t payload_bytes; /* MODEL, REQUEST: bytes of the vector */
    /* Of a swap, 0 in all others. REQUEST: exchanges under way at the sender,
     * with this one; ACCEPT and the initiator's MODEL: the larger of both
     * ends', which makes the weight. */
    uint32_t overlap;

    /* Local, never packed. */
    uint32_t slot;           /* MODEL out: slot it is sent from;
                                in: slot it was received into, or
                                KITH_SLOT_NONE where it was discarded */
    bool finite;             /* MODEL in: every value passed the finite gate */
    double distance_squared; /* journal version 3 has room for it; NaN */
};

const char *kith_message_name(enum kith_message_kind kind);
const char *kith_pattern_name(enum kith_pattern pattern);

#endif
