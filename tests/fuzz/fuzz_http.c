/* Goal: no bytes make the reading of a follower's request misbehave; what is
 * accepted is one whole head, and says the same with bytes behind it. */
#include <stdlib.h>
#include <string.h>

#include "kith/assert.h"
#include "kith/follow.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void inside(struct kith_http_text text, const char *bytes, size_t size)
{
    KITH_ASSERT(text.bytes == NULL || (text.bytes >= bytes &&
                                       text.bytes + text.size <= bytes + size));
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static const char token[] = "0123456789abcdef0123456789abcdef";
    struct kith_http_request request, again;
    enum kith_http_page page;
    char *bytes = malloc(size + 1); /* so that one byte too many is seen */
    KITH_ASSERT(bytes != NULL);
    memcpy(bytes, data, size);
    const int status = kith_http_read(bytes, size, &request);
    KITH_ASSERT(status == 0 || status == 200 || status >= 400);
    if (status == 200) {
        const int seen = kith_http_check(&request, 8080, token, &page);
        KITH_ASSERT(seen == 200 || seen == 403 || seen == 404);
        KITH_ASSERT(request.method.size == 3 && request.target.size > 0);
        inside(request.target, bytes, size);
        inside(request.host, bytes, size);
        inside(request.origin, bytes, size);
        inside(request.last_event_id, bytes, size);
        bytes[size] = 'x';
        KITH_ASSERT(kith_http_read(bytes, size + 1, &again) == 200);
        KITH_ASSERT(again.target.size == request.target.size);
    }
    free(bytes);
    return 0;
}
