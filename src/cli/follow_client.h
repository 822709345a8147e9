/* One browser's connection to a followed report. Private to follow_server.c.
 *
 *   READING -> a request is whole -> WRITING the answer -> closed
 *                                 \-> STREAM: events, one write at a time
 *
 * Nobody is served before the request named the page's secret path. */
#ifndef KITH_SRC_CLI_FOLLOW_CLIENT_H
#define KITH_SRC_CLI_FOLLOW_CLIENT_H

#include <uv.h>

#include "kith/follow.h"

/* What clients share; each points to it, and it outlives them. */
struct follow_host {
    struct kith_follow *follow;
    uv_loop_t loop;
    uint16_t port;
    char token[KITH_HTTP_TOKEN_BYTES];
    char *policy;
    void (*on_free)(struct follow_host *host); /* a place is free again */
};

enum follow_client_state {
    FOLLOW_FREE,
    FOLLOW_READING,
    FOLLOW_WRITING,
    FOLLOW_STREAM,
    FOLLOW_CLOSING
};

struct follow_client {
    struct follow_host *host;
    uv_tcp_t socket;
    uv_write_t write;
    enum follow_client_state state;
    bool writing;
    uint64_t since_ms; /* of the state, or of the write */
    uint32_t generation;
    size_t size;
    char request[KITH_HTTP_BYTES_MAX];
    char *answer; /* being written */
};

/* Takes the listener's next connection; the client is free. */
void kith_follow_client_accept(struct follow_client *client,
                               struct follow_host *host, uv_stream_t *listener);
/* Ends what took too long, and tells a stream what is new. */
void kith_follow_client_tend(struct follow_client *client);
/* Closes it, whatever it does; the place is free when that is done. */
void kith_follow_client_drop(struct follow_client *client);

#endif
