/* Goal: a request is taken where it can be read in one way, and a page is shown
 * to this machine's own browser alone.
 * Method: requests and what each is answered with, whole and a byte at a time.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "kith/follow.h"

#define TOKEN "0123456789abcdef0123456789abcdef"
#define GET "GET /" TOKEN "/ HTTP/1.1\r\n"
#define HOST "Host: 127.0.0.1:8080\r\n"

static const struct {
    const char *bytes;
    int read, check;
} cases[] = {
    {GET HOST "\r\n", 200, 200},
    {GET "host:localhost:8080\r\n\r\n", 200, 200},
    {GET "HOST: [::1]:8080 \r\nAccept: */*\r\n\r\n", 200, 200},
    {"GET /" TOKEN "/events HTTP/1.1\r\n" HOST "\r\n", 200, 200},
    {"GET /" TOKEN "/events?since=3 HTTP/1.1\r\n" HOST "\r\n", 200, 200},
    {GET HOST "Origin: http://localhost:8080\r\n\r\n", 200, 200},
    {GET HOST "Content-Length: 0\r\n\r\n", 200, 200},
    /* Who asks. */
    {GET "Host: 127.0.0.1:8081\r\n\r\n", 200, 403},
    {GET "Host: 127.0.0.1\r\n\r\n", 200, 403},
    {GET "Host: evil.example:8080\r\n\r\n", 200, 403},
    {GET "Host: 127.0.0.1:8080.evil.example\r\n\r\n", 200, 403},
    {GET HOST "Origin: http://evil.example\r\n\r\n", 200, 403},
    {GET HOST "Origin: https://localhost:8080\r\n\r\n", 200, 403},
    {GET HOST "Origin: null\r\n\r\n", 200, 403},
    /* For what. */
    {"GET / HTTP/1.1\r\n" HOST "\r\n", 200, 404},
    {"GET /" TOKEN " HTTP/1.1\r\n" HOST "\r\n", 200, 404},
    {"GET /" TOKEN "/../ HTTP/1.1\r\n" HOST "\r\n", 200, 404},
    {"GET /" TOKEN "/eventsx HTTP/1.1\r\n" HOST "\r\n", 200, 404},
    {"GET /1123456789abcdef0123456789abcdef/ HTTP/1.1\r\n" HOST "\r\n", 200,
     404},
    /* How. */
    {"POST /" TOKEN "/ HTTP/1.1\r\n" HOST "\r\n", 405, 0},
    {"HEAD /" TOKEN "/ HTTP/1.1\r\n" HOST "\r\n", 405, 0},
    {"GET /" TOKEN "/ HTTP/2.0\r\n" HOST "\r\n", 505, 0},
    {GET "\r\n", 400, 0}, /* no Host */
    {GET HOST HOST "\r\n", 400, 0},
    {GET HOST "Transfer-Encoding: chunked\r\n\r\n", 400, 0},
    {GET HOST "Content-Length: 4\r\n\r\n", 400, 0},
    {GET HOST " folded\r\n\r\n", 400, 0},
    {GET "Host : 127.0.0.1:8080\r\n\r\n", 400, 0},
    {GET "Host: 127.0.0.1:8080\nX: y\r\n\r\n", 400, 0},
    {GET HOST "X: \x01\r\n\r\n", 400, 0},
    {"GET http://127.0.0.1:8080/ HTTP/1.1\r\n" HOST "\r\n", 400, 0},
    {"GET /  HTTP/1.1\r\n" HOST "\r\n", 400, 0},
    {"\r\n\r\n", 400, 0},
    {"\x16\x03\x01\r\n\r\n", 400, 0}, /* TLS */
};

static void test_requests(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct kith_http_request request;
        enum kith_http_page page = KITH_HTTP_PAGE;
        const size_t size = strlen(cases[i].bytes);
        const int status = kith_http_read(cases[i].bytes, size, &request);
        if (status != cases[i].read)
            print_message("%s", cases[i].bytes);
        assert_int_equal(status, cases[i].read);
        for (size_t k = 0; k + 1 < size; k++)
            assert_int_equal(kith_http_read(cases[i].bytes, k, &request), 0);
        if (status != 200)
            continue;
        assert_int_equal(kith_http_read(cases[i].bytes, size, &request), 200);
        const int seen = kith_http_check(&request, 8080, TOKEN, &page);
        if (seen != cases[i].check)
            print_message("%s", cases[i].bytes);
        assert_int_equal(seen, cases[i].check);
    }
}

static void test_bounded(void **state)
{
    (void)state;
    static char bytes[2 * KITH_HTTP_BYTES_MAX];
    struct kith_http_request request;
    memset(bytes, 'a', sizeof bytes);
    memcpy(bytes, GET HOST "X: ", sizeof GET HOST "X: " - 1);
    assert_int_equal(kith_http_read(bytes, KITH_HTTP_BYTES_MAX - 1, &request),
                     0);
    assert_int_equal(kith_http_read(bytes, KITH_HTTP_BYTES_MAX, &request), 431);
    assert_int_equal(kith_http_read(bytes, sizeof bytes, &request), 431);
}

static void test_fields(void **state)
{
    (void)state;
    static const char bytes[] =
        "GET /" TOKEN "/events HTTP/1.1\r\n" HOST "Last-Event-ID:\t42 \r\n\r\n";
    struct kith_http_request request;
    assert_int_equal(kith_http_read(bytes, sizeof bytes - 1, &request), 200);
    assert_int_equal(request.last_event_id.size, 2);
    assert_memory_equal(request.last_event_id.bytes, "42", 2);
    assert_null(request.origin.bytes);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_requests),
        cmocka_unit_test(test_bounded),
        cmocka_unit_test(test_fields),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
