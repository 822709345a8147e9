/* A report that goes on while its runs do: the page's document, what has
 * changed of it since, and the few requests of HTTP/1.1 with which a browser
 * asks for either (RFC 9112; server-sent events: WHATWG HTML 9.2). No sockets
 * here: those are src/cli/follow_server.c. */
#ifndef KITH_FOLLOW_H
#define KITH_FOLLOW_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include "kith/err.h"
#include "kith/report.h"

/* --- requests ---------------------------------------------------------- */

#define KITH_HTTP_BYTES_MAX 8192u
#define KITH_HTTP_TOKEN_BYTES 33u /* hexadecimal, with its zero */

struct kith_http_text {
    const char *bytes; /* NULL: there is none */
    size_t size;
};
struct kith_http_request {
    struct kith_http_text method, target, host, origin, last_event_id;
};

/* The head of a request, of which so many bytes have come. Texts point into
 * `bytes`.
 *
 * Returns 0 (the rest is to come), 200, or the status that it is refused with:
 *   400  no request: a bare line feed, a folded or doubled field, no Host, a
 *        body, a byte that no field may have
 *   405  another method than GET
 *   431  KITH_HTTP_BYTES_MAX bytes without an end
 *   505  neither HTTP/1.1 nor 1.0
 * Cost    one pass.
 * Test    unit/test_follow.c, fuzz/fuzz_http.c */
int kith_http_read(const char *bytes, size_t size,
                   struct kith_http_request *request);

enum kith_http_page { KITH_HTTP_PAGE, KITH_HTTP_EVENTS };
/* May it see a page of ours, and which? Host must be this machine's loopback
 * and our port, for a name that an attacker points here (DNS rebinding) is not;
 * so must Origin where there is one. The target is "/TOKEN/" or
 * "/TOKEN/events".
 *
 * Returns 200, 403 (who asks) or 404 (for what; the token is compared in
 * constant time). */
int kith_http_check(const struct kith_http_request *request, uint16_t port,
                    const char token[KITH_HTTP_TOKEN_BYTES],
                    enum kith_http_page *page);

/* --- what is followed -------------------------------------------------- */

struct kith_follow;
/* Nothing is opened yet, for a run may not have begun.
 *
 *   paths  (count) the caller's: databases, or folders whose *.db are meant,
 *          at most KITH_REPORT_FILES_MAX of them
 *
 * KITH_EINVAL: count; KITH_ENOMEM. `error`: KITH_REPORT_ERROR_BYTES. */
KITH_MUST_CHECK enum kith_err kith_follow_open(const char *const *paths,
                                               unsigned count,
                                               struct kith_target target,
                                               struct kith_follow **follow,
                                               char *error);
void kith_follow_close(struct kith_follow *follow);
/* Reads the databases where a file has changed; true: so has the document.
 * What cannot be read is left as it was, and told by kith_follow_note(). */
bool kith_follow_look(struct kith_follow *follow);
enum kith_follow_state {
    KITH_FOLLOW_WAITING, /* no run yet */
    KITH_FOLLOW_RUNNING,
    KITH_FOLLOW_ENDED,
};
enum kith_follow_state kith_follow_state(const struct kith_follow *follow);
const char *kith_follow_note(const struct kith_follow *follow); /* "": none */
/* Counts changes, from 1 on. */
uint32_t kith_follow_generation(const struct kith_follow *follow);
/* The Content-Security-Policy of the page, for the head of an answer. */
void kith_follow_policy(FILE *out);
/* The page, and events that bring one of a generation up to date: changes, or
 * the whole document where they are too old or too large. malloc'd; NULL: no
 * memory. */
char *kith_follow_page(const struct kith_follow *follow, size_t *size);
char *kith_follow_events(const struct kith_follow *follow, uint32_t generation,
                         size_t *size);

#endif
