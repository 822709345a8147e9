/* Huge pages by advice; see huge_pages.h. */
#define _DEFAULT_SOURCE /* madvise, MAP_ANONYMOUS */
#include "sim/huge_pages.h"

#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "kith/assert.h"

#define LINE ((size_t)64)
/* Mapped, untouched pages free of charge; huge ones only where a table is so
 * large that rounding up to them costs next to nothing. */
#define LARGE ((size_t)1 << 16)

static size_t rounded(size_t bytes, size_t unit)
{
    KITH_ASSERT(unit > 0 && (unit & (unit - 1)) == 0);
    return (bytes + unit - 1) / unit * unit;
}

/* mmap promises small pages only: take one huge page more, and give back what
 * stands before the first and behind the last. */
static void *map(size_t whole)
{
    KITH_ASSERT(whole % SIM_HUGE_PAGE == 0);
    char *start = mmap(NULL, whole + SIM_HUGE_PAGE, PROT_READ | PROT_WRITE,
                       MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (start == MAP_FAILED)
        return NULL;
    const size_t before =
        (SIM_HUGE_PAGE - (uintptr_t)start % SIM_HUGE_PAGE) % SIM_HUGE_PAGE;
    if (before > 0)
        (void)munmap(start, before);
    if (before < SIM_HUGE_PAGE)
        (void)munmap(start + before + whole, SIM_HUGE_PAGE - before);
#ifdef MADV_HUGEPAGE
    if (whole >= 5 * SIM_HUGE_PAGE)
        (void)madvise(start + before, whole, MADV_HUGEPAGE);
#endif
    return start + before;
}

/* Small tables from the heap, large ones mapped: a mapping of its own costs a
 * page fault and a hole each. */
void *sim_pages(size_t bytes)
{
    if (bytes >= LARGE)
        return map(rounded(bytes, SIM_HUGE_PAGE));
    const size_t whole = rounded(bytes > 0 ? bytes : 1, LINE);
    void *pages = aligned_alloc(LINE, whole);
    return pages ? memset(pages, 0, whole) : NULL;
}

void *sim_pages_sparse(size_t bytes)
{
    KITH_ASSERT(bytes > 0);
    void *pages = mmap(NULL, bytes, PROT_READ | PROT_WRITE,
                       MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (pages == MAP_FAILED)
        return NULL;
#ifdef MADV_NOHUGEPAGE
    (void)madvise(pages, bytes, MADV_NOHUGEPAGE);
#endif
    return pages;
}

void sim_pages_sparse_free(void *pages, size_t bytes)
{
    if (pages)
        (void)munmap(pages, bytes);
}

size_t sim_pages_small(size_t bytes)
{
    const long page = sysconf(_SC_PAGESIZE);
    return rounded(bytes, page > 0 ? (size_t)page : SIM_HUGE_PAGE);
}

/* The system would round what is no whole page up to one. */
bool sim_pages_forget(void *pages, size_t bytes)
{
    KITH_ASSERT(pages && bytes > 0 && bytes == sim_pages_small(bytes));
    return madvise(pages, bytes, MADV_DONTNEED) == 0;
}

void sim_page_make(void *page)
{
    KITH_ASSERT((uintptr_t)page % SIM_HUGE_PAGE == 0);
#ifdef MADV_POPULATE_WRITE
    (void)madvise(page, SIM_HUGE_PAGE, MADV_POPULATE_WRITE);
#endif
}

size_t sim_pages_whole(size_t bytes)
{
    return bytes >= LARGE ? rounded(bytes, SIM_HUGE_PAGE) : bytes;
}

/* By size, as it was taken: the size says where the pages came from. */
void sim_pages_free(void *pages, size_t bytes)
{
    if (pages && bytes >= LARGE)
        (void)munmap(pages, rounded(bytes, SIM_HUGE_PAGE));
    else
        free(pages);
}

/* The old pages are copied, not remapped: mremap() would keep small ones. */
void *sim_pages_grow(void *pages, size_t old_bytes, size_t bytes)
{
    KITH_ASSERT(bytes >= old_bytes);
    void *larger = sim_pages(bytes);
    if (larger) {
        if (old_bytes > 0) /* there may be none yet: NULL */
            memcpy(larger, pages, old_bytes);
        sim_pages_free(pages, old_bytes);
    }
    return larger;
}
