/* A memory file has two ends here: kith_shared, which writes, and
 * kith_shared_view, which reads. Nothing is locked: the writer never learns
 * that it is read, and a reader that came too late learns it from the count. */
#define _GNU_SOURCE /* memfd_create, seals */
#include "shared_vectors.h"

#include <fcntl.h>
#include <stdatomic.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include "kith/assert.h"
#include "kith/work.h"

/* What a later kernel header has; on an earlier kernel sealing fails, and
 * nothing is shared. */
#ifndef F_SEAL_FUTURE_WRITE
#define F_SEAL_FUTURE_WRITE 0x0010
#endif

#define SEALS (F_SEAL_SEAL | F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_FUTURE_WRITE)

/* The counts, by slot; they only grow, and wrap after 2^64 steps. */
struct kith_shared_head {
    atomic_ullong filled[KITH_SLOTS_MAX];
};

/* Whole cache lines, so that vectors are 64-aligned. */
#define HEAD_BYTES ((sizeof(struct kith_shared_head) + 63) & ~(size_t)63)

_Static_assert(sizeof(atomic_ullong) == 8 && ATOMIC_LLONG_LOCK_FREE == 2,
               "processes share the counts, so no lock may hide in them");

/* Beyond it ftruncate would end the process by SIGXFSZ. */
static bool is_within_file_limit(size_t bytes)
{
    struct rlimit limit;
    return getrlimit(RLIMIT_FSIZE, &limit) == 0 && bytes <= limit.rlim_cur;
}

/* Mapped before it is sealed: of a file that is sealed against writing in
 * future there is no second writable mapping. */
void *kith_shared_take(void *owner, size_t bytes)
{
    struct kith_shared *shared = owner;
    KITH_ASSERT(shared->head == NULL);
    if (bytes > PTRDIFF_MAX - HEAD_BYTES)
        return NULL;
    const size_t whole = HEAD_BYTES + bytes;
    if (!is_within_file_limit(whole))
        return NULL;
    const int fd =
        memfd_create("kith-vectors", MFD_CLOEXEC | MFD_ALLOW_SEALING);
    if (fd < 0)
        return NULL;
    void *memory = MAP_FAILED;
    if (ftruncate(fd, (off_t)whole) == 0)
        memory = mmap(NULL, whole, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    /* Our mapping stays writable; there will be no other such one. */
    if (memory == MAP_FAILED || fcntl(fd, F_ADD_SEALS, SEALS) != 0) {
        if (memory != MAP_FAILED)
            munmap(memory, whole);
        close(fd);
        return NULL;
    }
#ifdef MADV_HUGEPAGE
    (void)madvise(memory, whole, MADV_HUGEPAGE);
#endif
    *shared = (struct kith_shared){fd, memory, whole};
    return (uint8_t *)memory + HEAD_BYTES;
}

/* Readers keep their mapping: its pages go with the last of them. */
void kith_shared_free(struct kith_shared *shared)
{
    if (shared->head == NULL)
        return;
    munmap(shared->head, shared->bytes);
    close(shared->fd);
    *shared = (struct kith_shared){.head = NULL};
}

/* Before the first write: a reader that has seen one sees the count, too. */
void kith_shared_refill(struct kith_shared *shared, uint32_t slot)
{
    KITH_ASSERT(slot < KITH_SLOTS_MAX);
    if (shared->head == NULL)
        return;
    atomic_fetch_add(&shared->head->filled[slot], 1);
    atomic_thread_fence(memory_order_seq_cst);
}

/* An empty vector may stand at the very end. */
bool kith_shared_find(const struct kith_shared *shared, uint32_t slot,
                      const void *vector, size_t bytes,
                      struct kith_shared_place *place)
{
    const uintptr_t base = (uintptr_t)shared->head, at = (uintptr_t)vector;
    KITH_ASSERT(slot < KITH_SLOTS_MAX);
    if (shared->head == NULL || at < base + HEAD_BYTES ||
        at - base > shared->bytes || bytes > shared->bytes - (at - base))
        return false;
    *place = (struct kith_shared_place){
        slot, atomic_load(&shared->head->filled[slot]), at - base};
    return true;
}

/* Saturates: what is larger than memory is refused by the system. */
size_t kith_shared_most(size_t vectors, size_t bytes)
{
    const size_t room = SIZE_MAX - HEAD_BYTES;
    const size_t each = bytes > SIZE_MAX - 63 ? SIZE_MAX : bytes + 63;
    return vectors > room / each ? SIZE_MAX : HEAD_BYTES + vectors * each;
}

/* A file that may shrink would end the reader by SIGBUS; one that is no memory
 * file may block it. F_GET_SEALS fails on everything else. */
const char *kith_shared_map(int fd, size_t most, struct kith_shared_view *view)
{
    struct stat is;
    const int seals = fcntl(fd, F_GET_SEALS); /* of memory files alone */
    const char *why = NULL;
    KITH_ASSERT(view->head == NULL);
    if (seals < 0 || fstat(fd, &is) != 0)
        why = "what was handed over is no memory file";
    else if ((seals & SEALS) != SEALS)
        why = "the memory file is not sealed";
    else if (is.st_size <= (off_t)HEAD_BYTES)
        why = "the memory file is too small";
    else if ((uintmax_t)is.st_size > most)
        why = "the memory file is larger than its slots";
    if (why == NULL) {
        void *memory =
            mmap(NULL, (size_t)is.st_size, PROT_READ, MAP_SHARED, fd, 0);
        if (memory == MAP_FAILED)
            why = "the memory file cannot be mapped";
        else
            *view = (struct kith_shared_view){
                .head = memory, .bytes = (size_t)is.st_size, .fd = fd};
    }
    if (why == NULL)
        return NULL;
    /* What lingers would block the loop where this is the last descriptor. */
    const struct linger none = {0, 0};
    (void)setsockopt(fd, SOL_SOCKET, SO_LINGER, &none, sizeof none);
    close(fd);
    return why;
}

/* Twice is harmless, as in the other end. */
void kith_shared_unmap(struct kith_shared_view *view)
{
    if (view->head != NULL) {
        munmap((void *)(uintptr_t)view->head, view->bytes);
        close(view->fd);
    }
    *view = (struct kith_shared_view){.head = NULL};
}

/* Reading a page that was never written would make us pay for it. Pages come,
 * by their owner's writing; sealed as the file is none goes again, so what was
 * found once is kept: the system looks as far as the next hole. */
static bool has_pages(struct kith_shared_view *view, uint64_t at, size_t bytes)
{
    if (at < view->pages_from || at + bytes > view->pages_to) {
        const off_t hole = lseek(view->fd, (off_t)at, SEEK_HOLE);
        if (hole < 0 || (uint64_t)hole < at + bytes)
            return false;
        view->pages_from = at;
        view->pages_to = (uint64_t)hole;
    }
    return true;
}

/* Compared, never added: any of the numbers may be 2^64 - 1. */
const uint8_t *kith_shared_look(struct kith_shared_view *view,
                                const struct kith_shared_place *place,
                                size_t bytes)
{
    if (view->head == NULL || place->slot >= KITH_SLOTS_MAX ||
        place->at < HEAD_BYTES || place->at > view->bytes ||
        bytes > view->bytes - place->at ||
        (bytes > 0 && !has_pages(view, place->at, bytes)))
        return NULL;
    return (const uint8_t *)view->head + place->at;
}

/* The fence keeps the copy's loads before the count's. */
bool kith_shared_stands(const struct kith_shared_view *view,
                        const struct kith_shared_place *place)
{
    KITH_ASSERT(place->slot < KITH_SLOTS_MAX);
    atomic_thread_fence(memory_order_seq_cst);
    return atomic_load(&view->head->filled[place->slot]) == place->filled;
}
