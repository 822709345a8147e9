/* HOST:PORT as people write it: "vm-3:7117", "10.0.0.3:7117", "[::]:7117". */
#ifndef KITH_PEER_ADDRESS_H
#define KITH_PEER_ADDRESS_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/socket.h>

#include "kith/err.h"
#include "kith/peer.h"

struct kith_address {
    char host[KITH_ADDRESS_BYTES]; /* without brackets; "" for ":PORT" */
    char port[6];                  /* decimal, 0..65535 */
};

/* KITH_EPARSE: no port, brackets that do not match, a port out of range. */
KITH_MUST_CHECK enum kith_err kith_address_parse(const char *text,
                                                 struct kith_address *address);
/* `at` <- that address, where no name is to be looked up. */
bool kith_address_is_numeric(const struct kith_address *address,
                             struct sockaddr_storage *at);
/* HOST:PORT of a socket address, numbers only. */
void kith_address_print(const struct sockaddr *from,
                        char text[KITH_ADDRESS_BYTES]);
bool kith_address_is_loopback(const struct sockaddr *from);
/* The 16-byte form (IPv4 mapped), for tables keyed by source. */
void kith_address_bytes(const struct sockaddr *from, uint8_t bytes[16]);
/* The same address, whatever the ports. */
bool kith_address_is_same_host(const struct sockaddr *a,
                               const struct sockaddr *b);
/* Those 16 bytes are an IPv4 address. */
bool kith_address_is_mapped(const uint8_t bytes[16]);

#endif
