/* Pieces of the data set between members: see kith/data_store.h for what they
 * are, and data_gathering.c for who asks whom.
 *
 *   frame = 0xc5 || kind (1) || root[8] || piece (4)
 *
 *   ASK       which piece; at most one at a time on a link
 *   AWAY      the answer: it is not here
 *   COMPLETE  all pieces are here; on every link, once; members' has_all
 *
 * The other answer is the piece itself: one burst of transfer 2^64 - 2, whose
 * offset is the piece's number and whose length is its size. `root` begins the
 * manifest's: who has another is told AWAY.
 *
 * A frame comes over a link that has proved its member's key. Nothing is
 * allocated for it: the asker has a place for one piece, the giver sends from
 * memory, to one link one piece a turn of the loop, and no more pieces than
 * there are; who does not read is given none. What was not asked for, or has
 * another size, closes the link; whether it is the piece says its hash, where
 * it is read (kith/pieces.h).
 *
 * Test: integration/test_peer_pieces.c, fuzz_pieces. */
#ifndef KITH_PEER_PIECE_EXCHANGE_H
#define KITH_PEER_PIECE_EXCHANGE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "kith/data_store.h"
#include "kith/session.h"
#include "kith/types.h"

struct kith_link;
struct kith_transport;

/* 0xc5 begins a msgpack byte string, and no header is one. */
#define KITH_FRAME_PIECE 0xc5u
#define KITH_PIECE_FRAME_BYTES 14u
enum kith_piece_frame {
    KITH_PIECE_ASK = 1,
    KITH_PIECE_AWAY = 2,
    KITH_PIECE_COMPLETE = 3,
};
/* Bursts of this transfer are pieces. */
#define KITH_PIECE_TRANSFER (UINT64_MAX - 1)
/* Beyond as many as there are: those of a connection that broke. */
#define KITH_PIECES_AGAIN 16u
/* Chunks that wait on a link that is given one more: who waits for each answer
 * before it asks again has read all but the last. */
#define KITH_PIECES_QUEUED_MAX 8u

/* Of a process. All zeros: data does not come in pieces. */
struct kith_piece_exchange {
    struct kith_data_store *store;
    bool complete;    /* here; then COMPLETE is said on every new link */
    kith_ns given_ns; /* when a member got one last; 0: none did */
    uint64_t given;   /* to members */
    uint8_t *bytes;   /* (piece_bytes) what was asked for; NULL: never asks */
    struct kith_link *link; /* that was asked; NULL: none */
    uint32_t piece;
    enum kith_err answer; /* KITH_EAGAIN until there is one; KITH_ENOENT: AWAY;
                             KITH_ECLOSED: the link is gone */
};

/* Of a link. */
struct kith_link_pieces {
    bool asked, coming; /* by us; its burst has begun */
    bool differs;       /* it has another manifest, which is logged once */
    uint32_t piece;     /* that was asked */
    uint64_t given;     /* to the other end */
    uint64_t missed;    /* that it asked for, and that were not to be had */
};

/* How long a member may be waited for in all: SLACK_NS, and for what it gives
 * at a rate below which it is left for others. So a member that drips pieces
 * costs a start SLACK_NS, whatever there is to get, and one of a slow line what
 * the line takes.  Test: unit/test_piece_patience.c */
#define KITH_PIECE_SLACK_NS (30 * KITH_S)
#define KITH_PIECE_RATE_LEAST 65536 /* bytes a second */
struct kith_piece_patience {
    kith_ns waited_ns; /* for answers, all of them */
    uint64_t bytes;    /* of pieces that came */
    bool is_over;
};
/* For a piece of `size` bytes that is asked for now; 0: it is not asked. */
kith_ns kith_piece_patience_left(const struct kith_piece_patience *patience,
                                 size_t size);
/* It was waited for so long; `size`: bytes that came of it. True: with that it
 * is over, for the log. */
bool kith_piece_patience_took(struct kith_piece_patience *patience,
                              kith_ns waited_ns, size_t size);

/* Asks; the exchange then has the answer, in `bytes` where it is KITH_OK.
 * False: the link still owes an answer, or is broken. */
bool kith_piece_ask(struct kith_link *link, uint32_t piece);
/* Nobody waits for the answer any more: a piece that is half here closes its
 * link, for it has no place to go. */
void kith_piece_give_up(struct kith_piece_exchange *exchange);
/* All pieces are here: says so on all links. */
void kith_piece_complete(struct kith_transport *transport);
/* A link is open, or has closed. */
void kith_piece_opened(struct kith_link *link);
void kith_piece_closed(struct kith_link *link);
/* Bytes that the link may bring for a piece; 0: none. */
size_t kith_piece_expected(const struct kith_link *link);
/* A frame, and a part of a burst; false: the link was refused. */
bool kith_piece_frame(struct kith_link *link, const uint8_t *frame,
                      size_t size);
bool kith_piece_event(struct kith_link *link,
                      const struct kith_session_event *event);

#endif
