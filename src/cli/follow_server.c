/* A server for one reader: a page, and what is new of it as server-sent events
 * (follow_client.c).
 *
 * It listens on 127.0.0.1 alone, at a port of the system's choice and below a
 * random path, and has CLIENTS_MAX places. Where all are taken the oldest that
 * has not asked for that path yet gives its place up, so that no other program
 * of this machine keeps the reader out by holding connections. The run is never
 * waited for, and is looked at so rarely that looking takes at most half a
 * hundredth of the time. */
#include "follow_server.h"

#include <sodium.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "follow_client.h"
#include "kith/text.h"

#define CLIENTS_MAX 32u
#define TICK_MS 250u
#define LOOK_MS 1000u
#define LOOK_SHARE 200u /* of the time, one part in so many */

struct server {
    struct follow_host host; /* the first: what clients point to */
    const struct cli_arguments *arguments;
    uv_tcp_t socket;
    uv_timer_t timer;
    uv_signal_t signals[2];
    uint64_t look_ms; /* not before this */
    bool told;        /* that the runs have ended */
    bool backlog;     /* somebody waits for a client to go */
    bool closing;
    char note[512]; /* the last that was told */
    struct follow_client clients[CLIENTS_MAX];
};

/* --- connections ------------------------------------------------------- */

static struct follow_client *find_free(struct server *server)
{
    for (unsigned i = 0; i < CLIENTS_MAX; i++)
        if (server->clients[i].state == FOLLOW_FREE)
            return &server->clients[i];
    return NULL;
}

/* The oldest that has asked for nothing yet, or NULL. */
static struct follow_client *find_silent(struct server *server)
{
    struct follow_client *oldest = NULL;
    for (unsigned i = 0; i < CLIENTS_MAX; i++) {
        struct follow_client *client = &server->clients[i];
        if (client->state == FOLLOW_READING &&
            (oldest == NULL || client->since_ms < oldest->since_ms))
            oldest = client;
    }
    return oldest;
}

static void on_connection(uv_stream_t *listener, int status)
{
    struct server *server = listener->data;
    if (status != 0)
        return;
    struct follow_client *client = find_free(server);
    server->backlog = client == NULL;
    if (client != NULL)
        kith_follow_client_accept(client, &server->host, listener);
    else if ((client = find_silent(server)) != NULL)
        kith_follow_client_drop(client);
}

/* Whoever waits gets the place. */
static void on_free(struct follow_host *host)
{
    struct server *server = (struct server *)host;
    if (server->backlog && !server->closing)
        on_connection((uv_stream_t *)&server->socket, 0);
}

/* --- time -------------------------------------------------------------- */

static void tell(struct server *server)
{
    const char *note = kith_follow_note(server->host.follow);
    if (strcmp(note, server->note) != 0 && note[0] != '\0')
        (void)kith_cli_fail(server->arguments, KITH_EXIT_OK, "%s", note);
    (void)kith_text_add(server->note, sizeof server->note, 0, "%s", note);
    const bool ended =
        kith_follow_state(server->host.follow) == KITH_FOLLOW_ENDED;
    if (ended && !server->told) {
        puts("the run has ended and all of it is on the page, which is served "
             "until Ctrl-C");
        fflush(stdout);
    }
    server->told = ended;
}

static void look(struct server *server)
{
    /* Of the processor: a busy machine makes nobody look less. */
    const clock_t before = clock();
    (void)kith_follow_look(server->host.follow);
    const uint64_t took_ms =
        (uint64_t)(clock() - before) * 1000 / CLOCKS_PER_SEC;
    uv_update_time(&server->host.loop);
    const uint64_t rest_ms = took_ms * (LOOK_SHARE - 1);
    server->look_ms =
        uv_now(&server->host.loop) + (rest_ms > LOOK_MS ? rest_ms : LOOK_MS);
    tell(server);
}

static void on_tick(uv_timer_t *timer)
{
    struct server *server = timer->data;
    if (uv_now(&server->host.loop) >= server->look_ms)
        look(server);
    for (unsigned i = 0; i < CLIENTS_MAX; i++)
        kith_follow_client_tend(&server->clients[i]);
}

static void on_signal(uv_signal_t *signal, int number)
{
    (void)number;
    uv_stop(signal->loop);
}

static void close_handle(uv_handle_t *handle, void *unused)
{
    (void)unused;
    if (!uv_is_closing(handle))
        uv_close(handle, NULL);
}

/* --- begin and end ----------------------------------------------------- */

static bool make_secrets(struct server *server)
{
    unsigned char random[(KITH_HTTP_TOKEN_BYTES - 1) / 2];
    size_t size = 0;
    FILE *out = open_memstream(&server->host.policy, &size);
    if (out == NULL || sodium_init() < 0)
        return false;
    kith_follow_policy(out);
    randombytes_buf(random, sizeof random);
    sodium_bin2hex(server->host.token, sizeof server->host.token, random,
                   sizeof random);
    return fclose(out) == 0;
}

static int listen_on(struct server *server)
{
    struct sockaddr_in address;
    int length = (int)sizeof address;
    int err = uv_ip4_addr("127.0.0.1", 0, &address);
    uv_tcp_init(&server->host.loop, &server->socket);
    server->socket.data = server;
    if (err == 0)
        err =
            uv_tcp_bind(&server->socket, (const struct sockaddr *)&address, 0);
    if (err == 0)
        err = uv_listen((uv_stream_t *)&server->socket, 16, on_connection);
    if (err == 0)
        err = uv_tcp_getsockname(&server->socket, (struct sockaddr *)&address,
                                 &length);
    server->host.port = ntohs(address.sin_port);
    return err;
}

static void begin(struct server *server)
{
    static const int numbers[] = {SIGINT, SIGTERM};
    (void)signal(SIGPIPE, SIG_IGN); /* A reader that has gone is an error. */
    for (unsigned i = 0; i < 2; i++) {
        uv_signal_init(&server->host.loop, &server->signals[i]);
        uv_signal_start(&server->signals[i], on_signal, numbers[i]);
    }
    uv_timer_init(&server->host.loop, &server->timer);
    server->timer.data = server;
    look(server);
    uv_timer_start(&server->timer, on_tick, TICK_MS, TICK_MS);
    printf("following at http://127.0.0.1:%u/%s/ until Ctrl-C\n",
           server->host.port, server->host.token);
    fflush(stdout);
}

int kith_cli_follow_serve(const struct cli_arguments *arguments,
                          struct kith_follow *follow)
{
    struct server *server = calloc(1, sizeof *server);
    if (server == NULL || !make_secrets(server) ||
        uv_loop_init(&server->host.loop) != 0) {
        free(server);
        return kith_cli_fail(arguments, KITH_EXIT_RESOURCES,
                             "following: out of memory");
    }
    server->arguments = arguments;
    server->host.follow = follow;
    server->host.on_free = on_free;
    const int err = listen_on(server);
    int code = KITH_EXIT_OK;
    if (err == 0) {
        begin(server);
        uv_run(&server->host.loop, UV_RUN_DEFAULT);
    } else {
        code = kith_cli_fail(arguments, KITH_EXIT_NETWORK,
                             "following: cannot listen on 127.0.0.1: %s",
                             uv_strerror(err));
    }
    server->closing = true;
    for (unsigned i = 0; i < CLIENTS_MAX; i++)
        kith_follow_client_drop(&server->clients[i]);
    uv_walk(&server->host.loop, close_handle, NULL);
    uv_run(&server->host.loop, UV_RUN_DEFAULT);
    uv_loop_close(&server->host.loop);
    free(server->host.policy);
    free(server);
    return code;
}
