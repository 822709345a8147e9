/* Vectors that peers of one host read from each other's memory.
 *
 *   memory file   head: how often each slot was filled | the worker's vectors
 *
 * The owner maps it for writing and then seals it: nobody can cut, grow or map
 * it for writing any more. A reader maps it for reading, so that no writer's
 * doing can end it by SIGBUS, and copies what it was told of, once, into its
 * own inbox: gate, guard and merge see that copy alone.
 *
 * A slot is filled anew while a reader may still copy: the owner counts before
 * it writes, the reader looks at the count after it has copied (a seqlock,
 * whose writer never waits). What has been torn is thrown away.
 *
 * Xue et al., Fast Distributed Deep Learning over RDMA (EuroSys 2019): static
 * placement, with a reader's copy in place of a remote write.
 * Test: unit/test_shared_vectors.c */
#ifndef KITH_PEER_SHARED_VECTORS_H
#define KITH_PEER_SHARED_VECTORS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct kith_shared_head;

/* Ours. All zeros: there is none. */
struct kith_shared {
    int fd; /* for readers; valid while head is not NULL */
    struct kith_shared_head *head;
    size_t bytes; /* of the file */
};

/* Where a message lies, as its sender says in a sealed frame. */
struct kith_shared_place {
    uint32_t slot;
    uint64_t filled; /* the slot's count */
    uint64_t at;     /* in the file */
};

/* `bytes` of zeroed memory, 64-aligned, for kith_worker_config; once. NULL
 * where there is none, or where the system cannot seal it. */
void *kith_shared_take(void *shared, size_t bytes);
void kith_shared_free(struct kith_shared *shared);
/* The slot is about to be filled anew. */
void kith_shared_refill(struct kith_shared *shared, uint32_t slot);
/* Where `bytes` at `vector` lie; false: not in what is shared. */
bool kith_shared_find(const struct kith_shared *shared, uint32_t slot,
                      const void *vector, size_t bytes,
                      struct kith_shared_place *place);

/* A neighbour's. All zeros: there is none. */
struct kith_shared_view {
    const struct kith_shared_head *head;
    size_t bytes;
    int fd;                        /* valid while head is not NULL */
    uint64_t pages_from, pages_to; /* known to be written */
};
/* Room for `vectors` of at most `bytes` each, what a neighbour may map. */
size_t kith_shared_most(size_t vectors, size_t bytes);
/* NULL, or why the descriptor is refused; it is closed then. Nothing of
 * the memory is read before its seals and size are right, `most` bytes. */
const char *kith_shared_map(int fd, size_t most, struct kith_shared_view *view);
void kith_shared_unmap(struct kith_shared_view *view);
/* `bytes` at the place, if they are inside, a slot's, and written; else NULL.
 */
const uint8_t *kith_shared_look(struct kith_shared_view *view,
                                const struct kith_shared_place *place,
                                size_t bytes);
/* Has the slot not been filled anew since? Asked after the copy. */
bool kith_shared_stands(const struct kith_shared_view *view,
                        const struct kith_shared_place *place);

#endif
