/* State that leaves a process and comes into another one, by one walk for both
 * ways: what writes a field and what reads it is the same line, so that they
 * cannot differ. Fields have no names and no lengths: who reads knows what was
 * written, and says so with kith_archive_same(). Of one machine's layout.
 *
 * Test: unit/test_archive.c, unit/test_worker_archive.c */
#ifndef KITH_ARCHIVE_H
#define KITH_ARCHIVE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct kith_archive {
    bool reads; /* into the fields; else out of them */
    /* All of `size` bytes, one way or the other; false: it cannot. */
    bool (*move)(void *arg, void *bytes, size_t size);
    void *arg;
    /* A vector of the caller's that the state points to, NULL among them: what
     * says which one, and where it is the first to, what stands in it. */
    void (*vector)(struct kith_archive *archive, void **vector);
    void *owner; /* of those vectors */
    /* What does not fit, in words; NULL: all is well. The first one stays, and
     * nothing is moved any more. */
    const char *failed;
};

void kith_archive_fail(struct kith_archive *archive, const char *what);
void kith_archive_bytes(struct kith_archive *archive, void *bytes, size_t size);
/* Many, of which whole pages may be zeros: those take a bit each, and memory
 * that was never touched stays so. */
void kith_archive_pages(struct kith_archive *archive, void *bytes, size_t size);
/* Whatever is read becomes one of the two. */
void kith_archive_bool(struct kith_archive *archive, bool *value);
/* `value` on both sides, or `what` fails it. */
void kith_archive_same(struct kith_archive *archive, uint64_t value,
                       const char *what);
#define KITH_ARCHIVE(archive, field)                                           \
    kith_archive_bytes(archive, &(field), sizeof(field))

#endif
