/* Between the two files of a connection: connection.c carries bytes over it,
 * connection_life.c makes it, times it and frees it. The others see it through
 * transport.h alone.
 * Test: integration/test_peer_sessions.c, integration/test_peer_flood.c */
#ifndef KITH_PEER_CONNECTION_H
#define KITH_PEER_CONNECTION_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "kith/types.h"

struct kith_link;
struct kith_socket;

/* connection.c */
/* What the session has to say; false: the link is closed. */
bool kith_link_flush(struct kith_link *link);
/* The socket's own callbacks: room for what comes, and that it has come. */
void kith_link_alloc(struct kith_socket *socket, uint8_t **bytes, size_t *size);
void kith_link_read(struct kith_socket *socket, ssize_t size);

/* connection_life.c */
/* Draws a key; false: the link is closed. */
bool kith_link_make_session(struct kith_link *link);
/* The timer looks at the link again then. */
void kith_link_set_timer(struct kith_link *link, kith_ns after_ns);
/* Of a link that has just become CLOSED: its handles, then its memory. */
void kith_link_release(struct kith_link *link);

#endif
