/* Between streams.c and socket.c. */
#ifndef KITH_PEER_SOCKET_PRIVATE_H
#define KITH_PEER_SOCKET_PRIVATE_H

#include "socket.h"

/* Hands what is due to the kernel and ends a throttle of the line in. */
void kith_socket_release(struct kith_socket *socket, kith_ns now_ns);
/* Sets the timer for the earliest release of all streams. */
void kith_net_schedule(struct kith_net *net);

#endif
