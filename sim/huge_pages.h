/* Memory of the large tables: zeroed, on huge pages where that is worth it,
 * because peers are visited in random order and small pages miss the TLB. What
 * is never touched costs address space only. */
#ifndef KITH_SIM_HUGE_PAGES_H
#define KITH_SIM_HUGE_PAGES_H

#include <stdbool.h>
#include <stddef.h>

#define SIM_HUGE_PAGE ((size_t)1 << 21)

/* NULL when there is none. */
void *sim_pages(size_t bytes);
/* Of what is touched far apart: small pages, on their own. NULL likewise. */
void *sim_pages_sparse(size_t bytes);
void sim_pages_sparse_free(void *pages, size_t bytes);
/* So many of them that they are whole pages. */
size_t sim_pages_small(size_t bytes);
/* Whole pages of those: zeros again, and no memory until they are written.
 * false: the system keeps them as they are. Any thread. */
bool sim_pages_forget(void *pages, size_t bytes);
/* A huge page of a table that will be written soon is made now, and what stands
 * in it stays; where the system cannot, it is made when it is written. Any
 * thread. */
void sim_page_make(void *page);
/* What it takes for so many: as many may be asked for. */
size_t sim_pages_whole(size_t bytes);
/* The same `bytes` as asked for; accepts NULL. */
void sim_pages_free(void *pages, size_t bytes);
/* Larger, with the old content in front; the old one is freed. NULL leaves the
 * old one as it is. */
void *sim_pages_grow(void *pages, size_t old_bytes, size_t bytes);

/* Ask for a cache line that will be needed soon. Always inlined: gcc 12 takes
 * a function that only does this for one without effect, and drops its calls.
 */
#if defined(__GNUC__)
#define SIM_INLINE static inline __attribute__((always_inline))
SIM_INLINE void sim_fetch(const void *line)
{
    __builtin_prefetch(line);
}
#else
#define SIM_INLINE static inline
SIM_INLINE void sim_fetch(const void *line)
{
    (void)line;
}
#endif

#endif
