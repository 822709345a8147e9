/* See follow_client.h. What a client may cost is bounded: KITH_HTTP_BYTES_MAX
 * of a request, one answer in memory, and a time for either. */
#include "follow_client.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "kith/assert.h"
#include "kith/text.h"

#define REQUEST_MS 2000u /* of a browser on this machine */
#define ANSWER_MS 30000u
#define BEAT_MS 15000u

static void on_closed(uv_handle_t *handle)
{
    struct follow_client *client = handle->data;
    free(client->answer);
    client->answer = NULL;
    client->state = FOLLOW_FREE;
    client->host->on_free(client->host);
}

void kith_follow_client_drop(struct follow_client *client)
{
    if (client->state == FOLLOW_CLOSING || client->state == FOLLOW_FREE)
        return;
    client->state = FOLLOW_CLOSING;
    uv_close((uv_handle_t *)&client->socket, on_closed);
}

static void feed(struct follow_client *client);

static void on_written(uv_write_t *write, int status)
{
    struct follow_client *client = write->data;
    client->writing = false;
    free(client->answer);
    client->answer = NULL;
    client->since_ms = uv_now(&client->host->loop);
    if (status != 0 || client->state == FOLLOW_WRITING)
        kith_follow_client_drop(client);
    else if (client->state == FOLLOW_STREAM)
        feed(client);
}

/* Takes the text over. */
static void answer(struct follow_client *client, char *text, size_t size)
{
    KITH_ASSERT(!client->writing);
    if (text == NULL || client->state == FOLLOW_CLOSING) {
        free(text);
        kith_follow_client_drop(client);
        return;
    }
    const uv_buf_t bytes = uv_buf_init(text, (unsigned)size);
    client->answer = text;
    client->writing = true;
    client->since_ms = uv_now(&client->host->loop);
    client->write.data = client;
    if (uv_write(&client->write, (uv_stream_t *)&client->socket, &bytes, 1,
                 on_written) != 0) {
        client->writing = false;
        kith_follow_client_drop(client);
    }
}

/* What is new, or nothing. */
static void feed(struct follow_client *client)
{
    const struct follow_host *host = client->host;
    const uint32_t now = kith_follow_generation(host->follow);
    size_t size = 0;
    if (client->writing || client->generation == now)
        return;
    char *text = kith_follow_events(host->follow, client->generation, &size);
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
static void respond(struct follow_client *client, int status, const char *type,
                    const char *body, size_t body_size, bool ends)
{
    char *text = NULL;
    size_t size = 0;
    FILE *out = open_memstream(&text, &size);
    if (out == NULL) {
        kith_follow_client_drop(client);
        return;
    }
    fprintf(
        out,
        "HTTP/1.1 %d %s\r\nContent-Type: %s; charset=utf-8\r\n"
        "Content-Security-Policy: %s; frame-ancestors 'none'\r\n"
        "X-Content-Type-Options: nosniff\r\nReferrer-Policy: no-referrer\r\n"
        "Cross-Origin-Resource-Policy: same-origin\r\n"
        "Cache-Control: no-store\r\nConnection: close\r\n",
        status, reason(status), type, client->host->policy);
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
static void begin_stream(struct follow_client *client,
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
    client->state = FOLLOW_STREAM;
    respond(client, 200, "text/event-stream", hello, sizeof hello - 1, false);
}

static void serve(struct follow_client *client, int status,
                  struct kith_http_request *request)
{
    const struct follow_host *host = client->host;
    enum kith_http_page page = KITH_HTTP_PAGE;
    uv_read_stop((uv_stream_t *)&client->socket);
    client->state = FOLLOW_WRITING;
    if (status == 200)
        status = kith_http_check(request, host->port, host->token, &page);
    if (status != 200) {
        respond(client, status, "text/plain", reason(status),
                strlen(reason(status)), true);
    } else if (page == KITH_HTTP_EVENTS) {
        begin_stream(client, request);
    } else {
        size_t size = 0;
        char *text = kith_follow_page(host->follow, &size);
        if (text == NULL)
            kith_follow_client_drop(client);
        else
            respond(client, 200, "text/html", text, size, true);
        free(text);
    }
}

/* --- connections ------------------------------------------------------- */

static void on_room(uv_handle_t *handle, size_t wanted, uv_buf_t *room)
{
    struct follow_client *client = handle->data;
    (void)wanted;
    *room = uv_buf_init(client->request + client->size,
                        (unsigned)(sizeof client->request - client->size));
}

static void on_read(uv_stream_t *stream, ssize_t count, const uv_buf_t *room)
{
    struct follow_client *client = stream->data;
    struct kith_http_request request;
    (void)room;
    if (count < 0) {
        kith_follow_client_drop(client);
        return;
    }
    client->size += (size_t)count;
    const int status = kith_http_read(client->request, client->size, &request);
    if (status != 0)
        serve(client, status, &request);
}

void kith_follow_client_accept(struct follow_client *client,
                               struct follow_host *host, uv_stream_t *listener)
{
    KITH_ASSERT(client->state == FOLLOW_FREE);
    client->host = host;
    client->size = 0;
    client->writing = false;
    if (uv_tcp_init(&host->loop, &client->socket) != 0)
        return;
    client->socket.data = client;
    client->state = FOLLOW_READING;
    client->since_ms = uv_now(&host->loop);
    if (uv_accept(listener, (uv_stream_t *)&client->socket) != 0 ||
        uv_read_start((uv_stream_t *)&client->socket, on_room, on_read) != 0)
        kith_follow_client_drop(client);
}

/* --- time -------------------------------------------------------------- */

void kith_follow_client_tend(struct follow_client *client)
{
    if (client->state == FOLLOW_FREE || client->state == FOLLOW_CLOSING)
        return;
    const uint64_t waited = uv_now(&client->host->loop) - client->since_ms;
    if (client->state == FOLLOW_READING
            ? waited > REQUEST_MS
            : client->writing && waited > ANSWER_MS) {
        kith_follow_client_drop(client);
    } else if (client->state == FOLLOW_STREAM && !client->writing) {
        feed(client);
        if (!client->writing && waited > BEAT_MS) {
            char *beat = strdup(":\n\n"); /* who has gone is found out */
            answer(client, beat, beat == NULL ? 0 : strlen(beat));
        }
    }
}
