/* Processes that carry out one simulation together: ranks, as MPI numbers them.
 * What they speak through is a module, kith-mpi.so (kith/module.h;
 * KITH_MPI_MODULE names another file), which is loaded where Open MPI's mpirun
 * has started this process as one of several, and nowhere else: no other run
 * needs MPI, or starts any of it. Test: integration/test_sim_ranks.sh */
#ifndef KITH_RANKS_H
#define KITH_RANKS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define KITH_RANKS_MAGIC "kith-ranks-module"
#define KITH_RANKS_ABI 1u
#define KITH_RANKS_MAX 1024u
/* Of a message. */
#define KITH_RANKS_BYTES_MAX ((size_t)INT32_MAX)

/* Messages of a kind come in the order in which they were sent. */
enum kith_ranks_kind {
    KITH_RANKS_CONTROL, /* before a run: does everybody go on? */
    KITH_RANKS_LOG, /* what engines need to know of vectors: sim/rank_log.c */
    KITH_RANKS_MODEL,
    KITH_RANKS_VALUES,  /* of an evaluation */
    KITH_RANKS_FAILURE, /* the run is over */
};

/* What the symbol kith_ranks_module holds. Of one thread. */
struct kith_ranks_module {
    char magic[sizeof KITH_RANKS_MAGIC];
    char version[16]; /* of the release it was built with */
    uint32_t abi;
    bool (*start)(uint32_t *rank, uint32_t *count);
    void (*finish)(void); /* when all ranks call it */
    /* The bytes are the module's until done() says so. */
    void *(*send)(uint32_t to, enum kith_ranks_kind kind, const void *bytes,
                  size_t size);
    void *(*receive)(uint32_t from, enum kith_ranks_kind kind, void *bytes,
                     size_t size_max);
    /* true: it has left or come, *size bytes, and `request` is gone. */
    bool (*done)(void *request, size_t *size);
    /* Has one come that nobody receives yet? */
    bool (*look)(enum kith_ranks_kind kind, uint32_t *from);
};

struct kith_ranks {
    const struct kith_ranks_module *module;
    uint32_t rank, count;
};

#define KITH_RANKS_WHY_BYTES 2048u
/* The module that would be loaded, `path` of KITH_MODULE_PATH_BYTES; false:
 * there is none, `why`. */
bool kith_ranks_find(char *path, char *why);
/* How many processes mpirun has started, this one the *rank-th; 1: this alone.
 * Nothing is loaded. */
uint64_t kith_ranks_started(uint32_t *rank);
/* ranks->count is 1 where this process was started alone; false: it was not,
 * and cannot speak to the others, `why`. */
bool kith_ranks_start(struct kith_ranks *ranks, char *why);
/* All of them: the first code that is not 0, by rank, and whose it is. */
int kith_ranks_agree(const struct kith_ranks *ranks, int code, uint32_t *whose);
void kith_ranks_finish(struct kith_ranks *ranks);

#endif
