/* One connection to a member, of somebody who comes, asks and goes: a socket
 * that is waited for, with a deadline, and its session. No loop. */
#ifndef KITH_PEER_VISIT_H
#define KITH_PEER_VISIT_H

#include <netdb.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/socket.h>

#include "kith/session.h"
#include "kith/types.h"

/* Bytes that do not make a whole record yet are held back, as the session
 * asks. */
struct kith_visit {
    int fd; /* -1: none */
    struct kith_session *session;
    kith_ns until_ns; /* by uv_hrtime() */
    size_t received;  /* bytes of the peer */
    uint8_t bytes[KITH_PREAUTH_BYTES];
    size_t held;
    uint8_t frame[64]; /* the last control frame, or its beginning */
    size_t frame_bytes;
    struct sockaddr_storage address;
    socklen_t address_bytes;
};

/* 0, or errno of the last step; the kernel alone would wait for two minutes. */
int kith_visit_connect(struct kith_visit *visit, const struct addrinfo *at,
                       kith_ns wait_ns);
/* A connection to the same address in its place, the session let go. */
int kith_visit_again(struct kith_visit *visit, kith_ns wait_ns);
/* False: the connection broke, or took too long. */
bool kith_visit_write(struct kith_visit *visit, const uint8_t *bytes,
                      size_t size);
/* Reads until the session yields this kind; others are passed over. What is
 * longer than a handshake's messages breaks the visit. KITH_ECLOSED: the peer
 * closed; KITH_ETIMEOUT: it said nothing more; else the session's. */
enum kith_err kith_visit_await(struct kith_visit *visit,
                               enum kith_session_event_kind kind,
                               struct kith_session_event *event);

#endif
