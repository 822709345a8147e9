/* See archive.h. */
#include "kith/archive.h"

#include <string.h>

#include "kith/assert.h"

#define PAGE 4096u
/* Pages that have their bits in one byte. */
#define GROUP 8u

void kith_archive_fail(struct kith_archive *archive, const char *what)
{
    KITH_ASSERT(what != NULL);
    if (archive->failed == NULL)
        archive->failed = what;
}

void kith_archive_bytes(struct kith_archive *archive, void *bytes, size_t size)
{
    KITH_ASSERT(bytes != NULL || size == 0);
    if (archive->failed == NULL && size > 0 &&
        !archive->move(archive->arg, bytes, size))
        kith_archive_fail(archive, archive->reads ? "it ends too early"
                                                  : "it cannot be written");
}

/* Eight bytes at a time, until one is not. */
static bool is_zero(const unsigned char *bytes, size_t size)
{
    uint64_t word = 0;
    size_t at = 0;
    KITH_ASSERT(size <= PAGE);
    for (; size - at >= sizeof word && word == 0; at += sizeof word)
        memcpy(&word, bytes + at, sizeof word);
    for (; at < size && word == 0; at++)
        word = bytes[at];
    return word == 0;
}

static size_t page_at(size_t size, size_t at)
{
    KITH_ASSERT(at < size);
    return size - at < PAGE ? size - at : PAGE;
}

/* Up to eight pages, behind the byte that says which of them are there. */
static void move_group(struct kith_archive *archive, unsigned char *bytes,
                       size_t size)
{
    uint8_t there = 0;
    KITH_ASSERT(size <= GROUP * PAGE);
    for (size_t at = 0; at < size && !archive->reads; at += PAGE)
        if (!is_zero(bytes + at, page_at(size, at)))
            there |= (uint8_t)(1u << at / PAGE);
    KITH_ARCHIVE(archive, there);
    for (size_t at = 0; at < size && archive->failed == NULL; at += PAGE) {
        const size_t part = page_at(size, at);
        if (there >> at / PAGE & 1u)
            kith_archive_bytes(archive, bytes + at, part);
        else if (archive->reads && !is_zero(bytes + at, part))
            memset(bytes + at, 0, part);
    }
}

void kith_archive_pages(struct kith_archive *archive, void *bytes, size_t size)
{
    unsigned char *from = bytes;
    for (size_t at = 0; at < size && archive->failed == NULL;
         at += GROUP * PAGE) {
        const size_t left = size - at;
        move_group(archive, from + at,
                   left < GROUP * PAGE ? left : GROUP * PAGE);
    }
}

void kith_archive_bool(struct kith_archive *archive, bool *value)
{
    uint8_t byte = *value;
    KITH_ARCHIVE(archive, byte);
    if (archive->reads)
        *value = byte != 0;
}

void kith_archive_same(struct kith_archive *archive, uint64_t value,
                       const char *what)
{
    uint64_t found = value;
    KITH_ARCHIVE(archive, found);
    if (archive->failed == NULL && found != value)
        kith_archive_fail(archive, what);
}
