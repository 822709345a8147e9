/* A byte stream over TCP: what a link stands on, with nothing of kith in it.
 *
 *   out   chunks of sealed bytes -> delay queue where shaped -> libuv
 *   in    the owner says where bytes go, gets told how many came
 *
 * Chunks come from a pool of the process and return to it; a chunk's `done`
 * runs when the kernel has all of it, or when the stream has closed. */
#ifndef KITH_PEER_SOCKET_H
#define KITH_PEER_SOCKET_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <uv.h>

#include "account.h"
#include "timer.h"
#include "kith/classes.h"
#include "kith/err.h"
#include "kith/link_law.h"

struct kith_socket;
struct kith_net;

/* Small: control frames and handshakes. Large: one sealed burst. */
#define KITH_CHUNK_SMALL 2304u
/* Chunks kept for reuse, per size. */
#define KITH_CHUNKS_KEPT 8u
/* What one read asks for: measured with bench_channel, flat above 256 KiB. */
#define KITH_READ_BYTES (512u * 1024u)

struct kith_chunk {
    uv_write_t write;
    struct kith_chunk *next;
    struct kith_socket *socket;
    void (*done)(struct kith_chunk *chunk); /* may be NULL; before reuse */
    kith_ns release_ns;
    size_t size, capacity, written;
    uint8_t *bytes; /* (capacity), follows the struct */
};

/* What all streams of a process share. */
struct kith_net {
    uv_loop_t *loop;
    struct kith_account account;
    struct kith_link_terms usual;       /* of the network, but for faults */
    kith_ns out_free_ns, in_free_ns;    /* this peer's lines */
    uint64_t in_bits;                   /* of its line in; out: `usual` */
    const struct kith_classes *classes; /* of senders; NULL: all are alike */
    struct kith_link_flow strangers; /* of sockets whose member is unknown: no
                                        later than any member's */
    struct kith_timer release_timer; /* the next release of any delay queue */
    struct kith_socket *streams;
    struct kith_chunk_pool {
        struct kith_chunk *first; /* free ones, a list */
        uint32_t count;
    } small, large;
    size_t large_bytes;
    uint8_t *read_buffer; /* (read_bytes) */
    size_t read_bytes;
    const char *congestion; /* TCP_CONGESTION, NULL: the system's */
    uint64_t bytes_sent, bytes_received;
};

KITH_MUST_CHECK enum kith_err kith_net_init(struct kith_net *net,
                                            uv_loop_t *loop,
                                            const struct kith_link_terms *usual,
                                            size_t large_bytes);
/* The lines of peer `self`, which are its own; classes outlive the net. */
void kith_net_take_lines(struct kith_net *net,
                         const struct kith_classes *classes, kith_id self);
/* Stops what the loop watches; then, the loop having run dry, frees. */
void kith_net_stop(struct kith_net *net);
void kith_net_free(struct kith_net *net);

/* In every callback, up to the end of its block: the time inside is not the
 * socket's. */
struct kith_net_scope {
    struct kith_net *net;
    enum kith_account_kind was;
};
static inline struct kith_net_scope kith_net_enter(struct kith_net *net)
{
    return (struct kith_net_scope){
        net, kith_account_switch(&net->account, KITH_ACCOUNT_OTHER)};
}
static inline void kith_net_leave(const struct kith_net_scope *scope)
{
    kith_account_switch(&scope->net->account, scope->was);
}
#define KITH_NET_SCOPE(net)                                                    \
    __attribute__((cleanup(kith_net_leave)))                                   \
    const struct kith_net_scope scope = kith_net_enter(net)

struct kith_socket {
    uv_tcp_t tcp;
    struct kith_net *net;
    struct kith_socket *next, **back; /* in net->streams */
    struct kith_link_flow *flow;      /* ours to that member, the member's */
    size_t rest;                      /* of the model being written, to come */
    struct kith_chunk *first, *last;  /* delay queue */
    uint32_t queued;                  /* chunks not yet done */
    bool reading, throttled, closing, failed;
    kith_ns throttled_until_ns; /* the line in is busy */

    /* The owner: set before the first read. */
    void *owner;
    /* Where the next bytes go; *size 0: stop, the connection is broken. */
    void (*alloc)(struct kith_socket *socket, uint8_t **bytes, size_t *size);
    /* `size` bytes came, or (size < 0) a libuv error, UV_EOF included. */
    void (*read)(struct kith_socket *socket, ssize_t size);
    void (*closed)(struct kith_socket *socket);
};

/* The stream is registered; the owner then accepts or connects socket->tcp. */
KITH_MUST_CHECK enum kith_err
kith_socket_init(struct kith_socket *socket, struct kith_net *net, void *owner);
/* Once there is a connection: no delay, congestion control, reading. */
KITH_MUST_CHECK enum kith_err kith_socket_start(struct kith_socket *socket);
void kith_socket_pause(struct kith_socket *socket, bool paused);
/* Reads nothing before `until_ns`. */
void kith_socket_throttle(struct kith_socket *socket, kith_ns until_ns);
/* Idempotent. `closed` runs later; then the memory may go. */
void kith_socket_close(struct kith_socket *socket);

/* NULL when memory is short. */
struct kith_chunk *kith_chunk_take(struct kith_net *net, size_t capacity);
void kith_chunk_give(struct kith_net *net, struct kith_chunk *chunk);
/* Takes the chunk over. In order; the stream may fail, not the call. */
void kith_socket_write(struct kith_socket *socket, struct kith_chunk *chunk);
/* The flow is this one from now on, or its terms have changed. */
void kith_socket_flow(struct kith_socket *socket, struct kith_link_flow *flow);

#endif
