/* kith-mpi.so: messages between ranks, by MPI-3.1. See kith/ranks.h. */
#include <mpi.h>

#include <stdlib.h>

#include "kith/assert.h"
#include "kith/ranks.h"

struct request {
    MPI_Request mpi;
    struct request *next; /* of those not in use */
};
static struct request *unused;

/* Only the thread that has started it speaks. */
static bool start(uint32_t *rank, uint32_t *count)
{
    int provided, self, all;
    if (MPI_Init_thread(NULL, NULL, MPI_THREAD_FUNNELED, &provided) !=
            MPI_SUCCESS ||
        provided < MPI_THREAD_FUNNELED)
        return false;
    (void)MPI_Comm_rank(MPI_COMM_WORLD, &self);
    (void)MPI_Comm_size(MPI_COMM_WORLD, &all);
    KITH_ASSERT(self >= 0 && self < all);
    *rank = (uint32_t)self;
    *count = (uint32_t)all;
    return true;
}

static void finish(void)
{
    while (unused != NULL) {
        struct request *const request = unused;
        unused = request->next;
        free(request);
    }
    (void)MPI_Finalize();
}

/* MPI's own errors end all ranks, with its words: MPI_ERRORS_ARE_FATAL. Where
 * there is no memory for this one, there is none for those either. */
static struct request *take(void)
{
    struct request *request = unused;
    if (request != NULL)
        unused = request->next;
    else if ((request = malloc(sizeof *request)) == NULL)
        (void)MPI_Abort(MPI_COMM_WORLD, 8);
    return request;
}

/* Kinds are tags: MPI keeps the order of messages of one tag between two ranks,
 * which is all that kith asks of it. */
static void *send(uint32_t to, enum kith_ranks_kind kind, const void *bytes,
                  size_t size)
{
    struct request *const request = take();
    KITH_ASSERT(size <= KITH_RANKS_BYTES_MAX);
    (void)MPI_Isend(bytes, (int)size, MPI_BYTE, (int)to, (int)kind,
                    MPI_COMM_WORLD, &request->mpi);
    return request;
}

static void *receive(uint32_t from, enum kith_ranks_kind kind, void *bytes,
                     size_t size_max)
{
    struct request *const request = take();
    KITH_ASSERT(size_max <= KITH_RANKS_BYTES_MAX);
    (void)MPI_Irecv(bytes, (int)size_max, MPI_BYTE, (int)from, (int)kind,
                    MPI_COMM_WORLD, &request->mpi);
    return request;
}

/* Never MPI_Wait: who waits has other work to do meanwhile. */
static bool done(void *handle, size_t *size)
{
    struct request *const request = handle;
    MPI_Status status;
    int is_done, count;
    (void)MPI_Test(&request->mpi, &is_done, &status);
    if (!is_done)
        return false;
    (void)MPI_Get_count(&status, MPI_BYTE, &count);
    KITH_ASSERT(count >= 0); /* bytes */
    *size = (size_t)count;
    request->next = unused;
    unused = request;
    return true;
}

/* Also where MPI goes on with what it has begun: it works within calls. */
static bool look(enum kith_ranks_kind kind, uint32_t *from)
{
    MPI_Status status;
    int is_there;
    (void)MPI_Iprobe(MPI_ANY_SOURCE, (int)kind, MPI_COMM_WORLD, &is_there,
                     &status);
    if (is_there)
        *from = (uint32_t)status.MPI_SOURCE;
    return is_there;
}

extern const struct kith_ranks_module kith_ranks_module
    __attribute__((visibility("default")));
const struct kith_ranks_module kith_ranks_module = {
    .magic = KITH_RANKS_MAGIC,
    .version = PACKAGE_VERSION,
    .abi = KITH_RANKS_ABI,
    .start = start,
    .finish = finish,
    .send = send,
    .receive = receive,
    .done = done,
    .look = look,
};
