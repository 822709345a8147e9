/* kith_buf: the only counted type. Bytes with one owner count, not atomic:
 * a buffer lives on one thread. Memory comes from the caller, who gets it back
 * through `release` when the last reference goes. */
#ifndef KITH_BUF_H
#define KITH_BUF_H

#include <stddef.h>
#include <stdint.h>

#include "kith/err.h"

KITH_BEGIN_DECLS

struct kith_buf {
    void *data;
    size_t size;                                      /* bytes */
    uint32_t references;                              /* > 0 while alive */
    void (*release)(struct kith_buf *buf, void *arg); /* may be NULL */
    void *arg;
};

void kith_buf_init(struct kith_buf *buf, void *data, size_t size,
                   void (*release)(struct kith_buf *buf, void *arg), void *arg);
struct kith_buf *kith_buf_retain(struct kith_buf *buf);
/* Accepts NULL. */
void kith_buf_release(struct kith_buf *buf);

KITH_END_DECLS

#endif
