/* How a neighbour on our host gets the descriptor of our vectors' memory file.
 *
 *   owner   OFFER(name, token)   sealed frame: a socket of this host, a secret
 *   reader  connects to the name, sends the token
 *   owner   the same user, and the token of a link that is open? the descriptor
 *   reader  the same user, sealed, of a size? maps it
 *   reader  READY                sealed frame
 *
 * The socket is a Unix one in the abstract namespace, so that it leaves no file
 * behind and is seen within one network namespace alone. Each link has a token
 * of its own, which only its session has carried: the descriptor goes to who
 * has proved its key, and both ends ask the kernel who the other's user is.
 * Whatever fails, models go through the channel as ever. A member that is told
 * of a socket connects to it and sends 32 bytes, no more: its name is in an
 * abstract namespace of this host that begins with "kith-".
 *
 * Test: unit/test_hand_over.c, unit/test_shared_models.c,
 * integration/test_lab_shared.sh */
#ifndef KITH_PEER_HAND_OVER_H
#define KITH_PEER_HAND_OVER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <uv.h>

#include "shared_vectors.h"

struct kith_link;
struct kith_transport;
struct kith_claimant;
struct kith_fetch;

/* 0xc4 begins a msgpack byte string, and no header is one. */
#define KITH_FRAME_SHARED 0xc4u
enum kith_shared_frame {
    KITH_SHARED_OFFER = 1, /* name[16] || token[32] */
    KITH_SHARED_READY = 2,
    KITH_SHARED_BURST = 3, /* transfer.c */
};
#define KITH_HAND_OVER_NAME_BYTES 16u
#define KITH_HAND_OVER_TOKEN_BYTES 32u
/* Connections that have not shown a token; the oldest makes room. */
#define KITH_CLAIMANTS_MAX 8u

/* Of a process. All zeros: nothing is shared. */
struct kith_hand_over {
    uv_poll_t *listener;
    int fd;
    uint8_t name[KITH_HAND_OVER_NAME_BYTES];
    struct kith_claimant *claimants[KITH_CLAIMANTS_MAX];
    uint32_t next;
};

/* Of a link. */
struct kith_link_sharing {
    uint8_t token[KITH_HAND_OVER_TOKEN_BYTES]; /* of our offer */
    bool offered, asked;
    bool ready;                   /* they have mapped ours */
    struct kith_fetch *fetch;     /* theirs is on its way */
    struct kith_shared_view view; /* theirs */
};

/* Where the transport's options name vectors; else, and where the system will
 * not have it, nothing is shared, which is logged. */
void kith_hand_over_start(struct kith_transport *transport);
/* The loop then closes what is left. */
void kith_hand_over_stop(struct kith_transport *transport);
/* A link is open: offers ours where the other end has our address. */
void kith_hand_over_opened(struct kith_link *link);
/* OFFER or READY, of anybody who is certified; false: the link was refused. */
bool kith_hand_over_frame(struct kith_link *link, const uint8_t *frame,
                          size_t size);
void kith_hand_over_closed(struct kith_link *link);

#endif
