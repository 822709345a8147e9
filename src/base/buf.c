/* kith_buf: the only counted type. The count is not atomic: a buffer lives on
 * one thread, which is why it costs nothing to retain one. */
#include "kith/buf.h"

#include "kith/assert.h"

void kith_buf_init(struct kith_buf *buf, void *data, size_t size,
                   void (*release)(struct kith_buf *buf, void *arg), void *arg)
{
    KITH_ASSERT(data != NULL || size == 0);
    *buf = (struct kith_buf){.data = data,
                             .size = size,
                             .references = 1,
                             .release = release,
                             .arg = arg};
}

struct kith_buf *kith_buf_retain(struct kith_buf *buf)
{
    KITH_ASSERT(buf->references > 0);
    KITH_ASSERT(buf->references < UINT32_MAX);
    buf->references++;
    return buf;
}

void kith_buf_release(struct kith_buf *buf)
{
    if (buf == NULL)
        return;
    KITH_ASSERT(buf->references > 0);
    buf->references--;
    if (buf->references == 0 && buf->release != NULL)
        buf->release(buf, buf->arg);
}
