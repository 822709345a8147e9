/* A server for one reader: a page, and what is new of it as server-sent events.
 *
 *   READING -> a request is whole -> WRITING the answer -> closed
 *                                 \-> STREAM: events, one write at a time
 *
 * It listens on 127.0.0.1 alone, at a port of the system's choice and below a
 * random path. What a client may cost is bounded: KITH_HTTP_BYTES_MAX of
 * a request, CLIENTS_MAX connections, one answer in memory each, and a time for
 * either. The run is never waited for, and is looked at so rarely that looking
 * takes at most half a hundredth of the time. */
#include "follow_server.h"

#include <sodium.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <uv.h>

#include "kith/assert.h"
#include "kith/text.h"

#define CLIENTS_MAX 32u
#define TICK_MS 250u
#define LOOK_MS 1000u
#define LOOK_SHARE 200u /* of the time, one part in so many */
#define REQUEST_MS 10000u
#define ANSWER_MS 30000u
#define BEAT_MS 15000u

enum client_state { FREE, READING, WRITING, STREAM, CLOSING };

struct server;
struct client {
    struct server *server;
    uv_tcp_t socket;
    uv_write_t write;
    enum client_state state;
    bool writing;
    uint64_t since_ms; /* of the state, or of the write */
    uint32_t generation;
    size_t size;
    char request[KITH_HTTP_BYTES_MAX];
    char *answer; /* being written */
};

struct server {
    const struct cli_arguments *arguments;
    struct kith_follow *follow;
    uv_loop_t loop;
    uv_tcp_t socket;
    uv_timer_t timer;
    uv_signal_t signals[2];
    uint16_t port;
    char token[KITH_HTTP_TOKEN_BYTES];
    char *policy;
    uint64_t look_ms; /* not before this */
    bool told;        /* that the runs have ended */
    bool backlog;     /* somebody waits for a client to go */
    char note[512];   /* the last that was told */
    struct client clients[CLIENTS_MAX];
};

static void on_closed(uv_handle_t *handle)
{
    struct client *client = handle->data;
    free(client->answer);
    client->answer = NULL;
    client->state = FREE;
}

static void drop(struct client *client)
{
    if (client->state == CLOSING || client->state == FREE)
        return;
    client->state = CLOSING;
    uv_close((uv_handle_t *)&client->socket, on_closed);
}

static void feed(struct client *client);

static void on_written(uv_write_t *write, int status)
{
    struct client *client = write->data;
    client->writing = false;
    free(client->answer);
    client->answer = NULL;
    client->since_ms = uv_now(&client->server->loop);
    if (status != 0 || client->state == WRITING)
        drop(client);
    else if (client->state == STREAM)
        feed(client);
}

/* Takes the text over. */
static void answer(struct client *client, char *text, size_t size)
{
    KITH_ASSERT(!client->writing);
    if (text == NULL || client->state == CLOSING) {
        free(text);
        drop(client);
        return;
    }
    const uv_buf_t bytes = uv_buf_init(text, (unsigned)size);
    client->answer = text;
    client->writing = true;
    client->since_ms = uv_now(&client->server->loop);
    client->write.data = client;
    if (uv_write(&client->write, (uv_stream_t *)&client->socket, &bytes, 1,
                 on_written) != 0) {
        client->writing = false;
        drop(client);
    }
}

/* What is new, or nothing. */
static void feed(struct client *client)
{
    const struct server *server = client->server;
    const uint32_t now = kith_follow_generation(server->follow);
    size_t size = 0;
    if (client->writing || client->generation == now)
        return;
    char *text = kith_follow_events(server->follow, client->generation, &size);
    client->generation = now;
    answer(client, text, size);
}

/* --- answers ----------------------------------------------------------- */

static const char *reason(int status)
{
    return status == 200   ? "OK"
           : status == 403 ? "Forbidden"
           : status == 404 ? "Not Found"
           : status == 405 ? "Method Not Allowed"
           : status == 431 ? "Request Header Fields Too Large"
           : status == 505 ? "HTTP Version Not Supported"
                           : "Bad Request";
}

/* Head and body in one text. */
static void respond(struct client *client, int status, const char *type,
                    const char *body, size_t body_size, bool ends)
{
    char *text = NULL;
    size_t size = 0;
    FILE *out = open_memstream(&text, &size);
    if (out == NULL) {
        drop(client);
        return;
    }
    fprintf(
        out,
        "HTTP/1.1 %d %s\r\nContent-Type: %s; charset=utf-8\r\n"
        "Content-Security-Policy: %s; frame-ancestors 'none'\r\n"
        "X-Content-Type-Options: nosniff\r\nReferrer-Policy: no-referrer\r\n"
        "Cross-Origin-Resource-Policy: same-origin\r\n"
        "Cache-Control: no-store\r\nConnection: close\r\n",
        status, reason(status), type, client->server->policy);
    if (status == 405)
        fputs("Allow: GET\r\n", out);
    if (ends)
        fprintf(out, "Content-Length: %zu\r\n", body_size);
    fputs("\r\n", out);
    fwrite(body, 1, body_size, out);
    const bool failed = fclose(out) != 0;
    if (failed) {
        free(text);
        text = NULL;
    }
    answer(client, text, size);
}

static uint32_t generation_of(struct kith_http_text text)
{
    char digits[16] = "";
    uint64_t value = 0;
    if (text.size == 0 || text.size >= sizeof digits)
        return 0;
    memcpy(digits, text.bytes, text.size);
    return kith_text_u64(digits, &value) == KITH_OK && value <= UINT32_MAX
               ? (uint32_t)value
               : 0;
}

/* A browser that comes back says how far it was; 0: it is told everything. */
static void begin_stream(struct client *client,
                         const struct kith_http_request *request)
{
    static const char hello[] = "retry: 2000\n\n";
    static const char since[] = "?since=";
    struct kith_http_text from = request->last_event_id;
    if (from.bytes == NULL) {
        const char *found = memmem(request->target.bytes, request->target.size,
                                   since, sizeof since - 1);
        if (found != NULL) {
            from.bytes = found + sizeof since - 1;
            from.size = (size_t)(request->target.bytes + request->target.size -
                                 from.bytes);
        }
    }
    client->generation = generation_of(from);
    client->state = STREAM;
    respond(client, 200, "text/event-stream", hello, sizeof hello - 1, false);
}

static void serve(struct client *client, int status,
                  struct kith_http_request *request)
{
    const struct server *server = client->server;
    enum kith_http_page page = KITH_HTTP_PAGE;
    uv_read_stop((uv_stream_t *)&client->socket);
    client->state = WRITING;
    if (status == 200)
        status = kith_http_check(request, server->port, server->token, &page);
    if (status != 200) {
        respond(client, status, "text/plain", reason(status),
                strlen(reason(status)), true);
    } else if (page == KITH_HTTP_EVENTS) {
        begin_stream(client, request);
    } else {
        size_t size = 0;
        char *text = kith_follow_page(server->follow, &size);
        if (text == NULL)
            drop(client);
        else
            respond(client, 200, "text/html", text, size, true);
        free(text);
    }
}

/* --- connections ------------------------------------------------------- */

static void on_room(uv_handle_t *handle, size_t wanted, uv_buf_t *room)
{
    struct client *client = handle->data;
    (void)wanted;
    *room = uv_buf_init(client->request + client->size,
                        (unsigned)(sizeof client->request - client->size));
}

static void on_read(uv_stream_t *stream, ssize_t count, const uv_buf_t *room)
{
    struct client *client = stream->data;
    struct kith_http_request request;
    (void)room;
    if (count < 0) {
        drop(client);
        return;
    }
    client->size += (size_t)count;
    const int status = kith_http_read(client->request, client->size, &request);
    if (status != 0)
        serve(client, status, &request);
}

static void on_connection(uv_stream_t *listener, int status)
{
    struct server *server = listener->data;
    struct client *client = NULL;
    for (unsigned i = 0; status == 0 && client == NULL && i < CLIENTS_MAX; i++)
        if (server->clients[i].state == FREE)
            client = &server->clients[i];
    server->backlog = status == 0 && client == NULL; /* until a tick */
    if (client == NULL)
        return;
    client->server = server;
    client->size = 0;
    client->writing = false;
    if (uv_tcp_init(&server->loop, &client->socket) != 0)
        return;
    client->socket.data = client;
    client->state = READING;
    client->since_ms = uv_now(&server->loop);
    if (uv_accept(listener, (uv_stream_t *)&client->socket) != 0 ||
        uv_read_start((uv_stream_t *)&client->socket, on_room, on_read) != 0)
        drop(client);
}

/* --- time -------------------------------------------------------------- */

static void tell(struct server *server)
{
    const char *note = kith_follow_note(server->follow);
    if (strcmp(note, server->note) != 0 && note[0] != '\0')
        (void)kith_cli_fail(server->arguments, KITH_EXIT_OK, "%s", note);
    (void)kith_text_add(server->note, sizeof server->note, 0, "%s", note);
    const bool ended = kith_follow_state(server->follow) == KITH_FOLLOW_ENDED;
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
    (void)kith_follow_look(server->follow);
    const uint64_t took_ms =
        (uint64_t)(clock() - before) * 1000 / CLOCKS_PER_SEC;
    uv_update_time(&server->loop);
    const uint64_t rest_ms = took_ms * (LOOK_SHARE - 1);
    server->look_ms =
        uv_now(&server->loop) + (rest_ms > LOOK_MS ? rest_ms : LOOK_MS);
    tell(server);
}

static void tend(struct client *client, uint64_t now)
{
    const uint64_t waited = now - client->since_ms;
    if (client->state == FREE || client->state == CLOSING)
        return;
    if (client->state == READING ? waited > REQUEST_MS
                                 : client->writing && waited > ANSWER_MS) {
        drop(client);
    } else if (client->state == STREAM && !client->writing) {
        feed(client);
        if (!client->writing && waited > BEAT_MS) {
            char *beat = strdup(":\n\n"); /* who has gone is found out */
            answer(client, beat, beat == NULL ? 0 : strlen(beat));
        }
    }
}

static void on_tick(uv_timer_t *timer)
{
    struct server *server = timer->data;
    if (uv_now(&server->loop) >= server->look_ms)
        look(server);
    for (unsigned i = 0; i < CLIENTS_MAX; i++)
        tend(&server->clients[i], uv_now(&server->loop));
    if (server->backlog)
        on_connection((uv_stream_t *)&server->socket, 0);
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
    FILE *out = open_memstream(&server->policy, &size);
    if (out == NULL || sodium_init() < 0)
        return false;
    kith_follow_policy(out);
    randombytes_buf(random, sizeof random);
    sodium_bin2hex(server->token, sizeof server->token, random, sizeof random);
    return fclose(out) == 0;
}

static int listen_on(struct server *server)
{
    struct sockaddr_in address;
    int length = (int)sizeof address;
    int err = uv_ip4_addr("127.0.0.1", 0, &address);
    uv_tcp_init(&server->loop, &server->socket);
    server->socket.data = server;
    if (err == 0)
        err =
            uv_tcp_bind(&server->socket, (const struct sockaddr *)&address, 0);
    if (err == 0)
        err = uv_listen((uv_stream_t *)&server->socket, 16, on_connection);
    if (err == 0)
        err = uv_tcp_getsockname(&server->socket, (struct sockaddr *)&address,
                                 &length);
    server->port = ntohs(address.sin_port);
    return err;
}

static void begin(struct server *server)
{
    static const int numbers[] = {SIGINT, SIGTERM};
    (void)signal(SIGPIPE, SIG_IGN); /* A reader that has gone is an error. */
    for (unsigned i = 0; i < 2; i++) {
        uv_signal_init(&server->loop, &server->signals[i]);
        uv_signal_start(&server->signals[i], on_signal, numbers[i]);
    }
    uv_timer_init(&server->loop, &server->timer);
    server->timer.data = server;
    look(server);
    uv_timer_start(&server->timer, on_tick, TICK_MS, TICK_MS);
    printf("following at http://127.0.0.1:%u/%s/ until Ctrl-C\n", server->port,
           server->token);
    fflush(stdout);
}

int kith_cli_follow_serve(const struct cli_arguments *arguments,
                          struct kith_follow *follow)
{
    struct server *server = calloc(1, sizeof *server);
    if (server == NULL || !make_secrets(server) ||
        uv_loop_init(&server->loop) != 0) {
        free(server);
        return kith_cli_fail(arguments, KITH_EXIT_RESOURCES,
                             "following: out of memory");
    }
    server->arguments = arguments;
    server->follow = follow;
    const int err = listen_on(server);
    int code = KITH_EXIT_OK;
    if (err == 0) {
        begin(server);
        uv_run(&server->loop, UV_RUN_DEFAULT);
    } else {
        code = kith_cli_fail(arguments, KITH_EXIT_NETWORK,
                             "following: cannot listen on 127.0.0.1: %s",
                             uv_strerror(err));
    }
    for (unsigned i = 0; i < CLIENTS_MAX; i++)
        drop(&server->clients[i]);
    uv_walk(&server->loop, close_handle, NULL);
    uv_run(&server->loop, UV_RUN_DEFAULT);
    uv_loop_close(&server->loop);
    free(server->policy);
    free(server);
    return code;
}
