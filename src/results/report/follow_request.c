/* Requests of a browser that follows a report. See kith/follow.h.
 *
 * Stricter than RFC 9112 allows: nothing that two readers could understand in
 * two ways is understood at all. */
#include <sodium.h>
#include <stdio.h>
#include <string.h>
#include <strings.h>

#include "kith/assert.h"
#include "kith/follow.h"

static bool is(struct kith_http_text text, const char *word)
{
    return text.size == strlen(word) &&
           strncasecmp(text.bytes, word, text.size) == 0;
}

/* Up to `end`, which is left behind; false: it does not come. */
static bool cut(struct kith_http_text *rest, char end,
                struct kith_http_text *part)
{
    const char *found = memchr(rest->bytes, end, rest->size);
    if (found == NULL)
        return false;
    *part = (struct kith_http_text){rest->bytes, (size_t)(found - rest->bytes)};
    rest->bytes = found + 1;
    rest->size -= part->size + 1;
    return true;
}

/* A line without its CR LF; no other control character stands in it. */
static bool cut_line(struct kith_http_text *rest, struct kith_http_text *line)
{
    if (!cut(rest, '\n', line) || line->size == 0 ||
        line->bytes[line->size - 1] != '\r')
        return false;
    line->size--;
    for (size_t i = 0; i < line->size; i++) {
        const unsigned char byte = (unsigned char)line->bytes[i];
        if ((byte < ' ' && byte != '\t') || byte == 0x7f)
            return false;
    }
    return true;
}

static bool is_token(struct kith_http_text text)
{
    static const char marks[] = "!#$%&'*+-.^_`|~";
    for (size_t i = 0; i < text.size; i++) {
        const char c = text.bytes[i];
        const bool word = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') ||
                          (c >= '0' && c <= '9');
        if (!word && (c == '\0' || strchr(marks, c) == NULL))
            return false;
    }
    return text.size > 0;
}

static struct kith_http_text trimmed(struct kith_http_text text)
{
    while (text.size > 0 && (*text.bytes == ' ' || *text.bytes == '\t')) {
        text.bytes++;
        text.size--;
    }
    while (text.size > 0 && (text.bytes[text.size - 1] == ' ' ||
                             text.bytes[text.size - 1] == '\t'))
        text.size--;
    return text;
}

static int read_field(struct kith_http_text line,
                      struct kith_http_request *request)
{
    struct kith_http_text name;
    if (!cut(&line, ':', &name) || !is_token(name))
        return 400;
    const struct kith_http_text value = trimmed(line);
    if (is(name, "transfer-encoding") ||
        (is(name, "content-length") && !is(value, "0")))
        return 400;
    struct kith_http_text *place = is(name, "host")     ? &request->host
                                   : is(name, "origin") ? &request->origin
                                   : is(name, "last-event-id")
                                       ? &request->last_event_id
                                       : NULL;
    if (place == NULL)
        return 200;
    if (place->bytes != NULL)
        return 400;
    *place = value;
    return 200;
}

static int read_first(struct kith_http_text line,
                      struct kith_http_request *request)
{
    if (!cut(&line, ' ', &request->method) || !is_token(request->method) ||
        !cut(&line, ' ', &request->target) || request->target.size == 0 ||
        request->target.bytes[0] != '/' || line.size != 8 ||
        memcmp(line.bytes, "HTTP/", 5) != 0)
        return 400;
    for (size_t i = 0; i < request->target.size; i++)
        if (request->target.bytes[i] < '!' || request->target.bytes[i] > '~')
            return 400;
    if (memcmp(line.bytes, "HTTP/1.1", 8) != 0 &&
        memcmp(line.bytes, "HTTP/1.0", 8) != 0)
        return 505;
    return request->method.size == 3 &&
                   memcmp(request->method.bytes, "GET", 3) == 0
               ? 200
               : 405;
}

int kith_http_read(const char *bytes, size_t size,
                   struct kith_http_request *request)
{
    *request = (struct kith_http_request){.method = {NULL, 0}};
    const size_t most = size < KITH_HTTP_BYTES_MAX ? size : KITH_HTTP_BYTES_MAX;
    struct kith_http_text rest = {bytes, most}, line;
    if (memmem(bytes, most, "\r\n\r\n", 4) == NULL)
        return size >= KITH_HTTP_BYTES_MAX ? 431 : 0;
    if (!cut_line(&rest, &line))
        return 400;
    int status = read_first(line, request);
    while (status == 200) {
        if (!cut_line(&rest, &line))
            return 400;
        if (line.size == 0)
            break;
        status = read_field(line, request);
    }
    return status == 200 && request->host.bytes == NULL ? 400 : status;
}

/* 127.0.0.1:PORT, localhost:PORT or [::1]:PORT */
static bool is_ours(struct kith_http_text host, uint16_t port)
{
    static const char *const names[] = {"127.0.0.1", "localhost", "[::1]"};
    char ours[32];
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        (void)snprintf(ours, sizeof ours, "%s:%u", names[i], port);
        if (is(host, ours))
            return true;
    }
    return false;
}

int kith_http_check(const struct kith_http_request *request, uint16_t port,
                    const char token[KITH_HTTP_TOKEN_BYTES],
                    enum kith_http_page *page)
{
    const size_t length = KITH_HTTP_TOKEN_BYTES - 1;
    struct kith_http_text origin = request->origin;
    KITH_ASSERT(request->host.bytes != NULL && request->target.size > 0);
    if (!is_ours(request->host, port))
        return 403;
    if (origin.bytes != NULL) {
        if (origin.size < 7 || strncasecmp(origin.bytes, "http://", 7) != 0)
            return 403;
        origin.bytes += 7;
        origin.size -= 7;
        if (!is_ours(origin, port))
            return 403;
    }
    if (request->target.size < length + 2 ||
        sodium_memcmp(request->target.bytes + 1, token, length) != 0)
        return 404;
    const struct kith_http_text rest = {request->target.bytes + 1 + length,
                                        request->target.size - 1 - length};
    *page = is(rest, "/") ? KITH_HTTP_PAGE : KITH_HTTP_EVENTS;
    if (is(rest, "/"))
        return 200;
    const bool events = rest.size >= 7 && memcmp(rest.bytes, "/events", 7) == 0;
    return events && (rest.size == 7 || rest.bytes[7] == '?') ? 200 : 404;
}
