/* One tensor from a process to another on the same machine, in three ways, for
 * bench_tensors and long/message_cost:
 *
 *   copied   serialised into a message, written; read, copied into its place:
 *            what RPC does, 2 copies in user space
 *   direct   written from where it lies, read to where it belongs: 0 copies
 *   memory   it lies in a memory file that the other has mapped; a flag says
 *            so, and the other copies it to where it belongs: 1 copy, and none
 *            of the kernel's
 *
 * The first two are a TCP connection on loopback, the third is kith's
 * shared_vectors.h with an atomic count for a flag in place of its sealed frame
 * (which is 66 bytes over the channel). Each transfer ends with the other's
 * answer: a byte, or a count.
 * Xue et al., Fast Distributed Deep Learning over RDMA (EuroSys 2019). */
#ifndef KITH_BENCH_TENSOR_WAYS_H
#define KITH_BENCH_TENSOR_WAYS_H

#include "bench/plain.h"

#include <sched.h>
#include <stdatomic.h>
#include <sys/uio.h>

#include "src/peer/shared_vectors.h"

#define TENSOR_HEAD ((size_t)64)
#define TENSOR_SLOT 1u
#define TENSOR_STEPS_MAX 2048u

static const struct tensor_way {
    const char *name;
    unsigned copies;
    bool by_memory, serialises;
} tensor_ways[] = {{"copied", 2, false, true},
                   {"direct", 0, false, false},
                   {"memory", 1, true, false}};
#define TENSOR_WAYS (sizeof tensor_ways / sizeof *tensor_ways)
enum { TENSOR_COPIED, TENSOR_DIRECT, TENSOR_MEMORY };

/* The flag and its answer, on a cache line each; mapped by both. */
struct tensor_flags {
    _Alignas(64) atomic_ullong announced;
    _Alignas(64) atomic_ullong answered;
};

/* One end. Only the sender's tensor lies in shared memory. */
struct tensor_end {
    const struct tensor_way *way;
    size_t bytes;
    uint8_t *tensor, *message;
    int fd;
    uint64_t count;
    struct kith_shared shared;
    struct kith_shared_view view;
    struct kith_shared_place place;
    struct tensor_flags *flags;
};

/* Polls, and lets others run where nothing comes for some 100 us: whom the
 * system then runs has the core for milliseconds. */
static inline void tensor_await(const atomic_ullong *flag, uint64_t value)
{
    for (unsigned i = 0;
         atomic_load_explicit(flag, memory_order_acquire) != value; i++)
        if (i % 65536 == 65535)
            sched_yield();
}

static inline void tensor_read(int fd, uint8_t *bytes, size_t size)
{
    while (size > 0) {
        const ssize_t count = read(fd, bytes, size);
        if (count <= 0) {
            perror("bench: read");
            exit(1);
        }
        bytes += count;
        size -= (size_t)count;
    }
}

/* The other end has come as far, by flags alone. */
static inline void tensor_meet_receiver(struct tensor_end *end)
{
    atomic_store_explicit(&end->flags->announced, ++end->count,
                          memory_order_release);
    tensor_await(&end->flags->answered, end->count);
}

static inline void tensor_meet_sender(struct tensor_end *end)
{
    tensor_await(&end->flags->announced, ++end->count);
    atomic_store_explicit(&end->flags->answered, end->count,
                          memory_order_release);
}

static inline void tensor_send(struct tensor_end *end)
{
    if (end->way->by_memory) {
        tensor_meet_receiver(end);
        return;
    }
    uint8_t head[TENSOR_HEAD] = {0}, answer;
    memcpy(head, &end->bytes, sizeof end->bytes);
    if (end->way->serialises) {
        memcpy(end->message, head, sizeof head);
        memcpy(end->message + sizeof head, end->tensor, end->bytes);
        bench_write_all(end->fd, end->message, sizeof head + end->bytes);
    } else {
        const struct iovec parts[2] = {{head, sizeof head},
                                       {end->tensor, end->bytes}};
        const ssize_t count = writev(end->fd, parts, 2);
        const size_t done =
            count < (ssize_t)sizeof head ? 0 : (size_t)count - sizeof head;
        bench_write_all(end->fd, end->tensor + done, end->bytes - done);
    }
    tensor_read(end->fd, &answer, 1);
}

/* Into end->tensor, whole. False: torn, which no sender here does. */
static inline bool tensor_receive(struct tensor_end *end)
{
    const uint8_t answer = 1;
    if (end->way->by_memory) {
        tensor_await(&end->flags->announced, ++end->count);
        const uint8_t *from =
            kith_shared_look(&end->view, &end->place, end->bytes);
        if (from == NULL)
            return false;
        memcpy(end->tensor, from, end->bytes);
        const bool stands = kith_shared_stands(&end->view, &end->place);
        atomic_store_explicit(&end->flags->answered, end->count,
                              memory_order_release);
        return stands;
    }
    uint8_t head[TENSOR_HEAD];
    tensor_read(end->fd, head, sizeof head);
    if (end->way->serialises) {
        tensor_read(end->fd, end->message, end->bytes);
        memcpy(end->tensor, end->message, end->bytes);
    } else {
        tensor_read(end->fd, end->tensor, end->bytes);
    }
    bench_write_all(end->fd, &answer, 1);
    return true;
}

/* Before the fork: both ends, the sender's first. */
static inline void tensor_open(struct tensor_end ends[2],
                               const struct tensor_way *way, size_t bytes)
{
    int fds[2];
    memset(ends, 0, 2 * sizeof *ends);
    bench_socket_pair(fds);
    struct tensor_flags *flags =
        mmap(NULL, sizeof *flags, PROT_READ | PROT_WRITE,
             MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    for (unsigned i = 0; i < 2; i++) {
        ends[i].way = way;
        ends[i].bytes = bytes;
        ends[i].fd = fds[i];
        ends[i].flags = flags;
        ends[i].message = bench_alloc(TENSOR_HEAD + bytes);
        ends[i].tensor = i == 0 ? kith_shared_take(&ends[0].shared, bytes)
                                : bench_alloc(bytes);
    }
    if (flags == MAP_FAILED || ends[0].tensor == NULL) {
        fprintf(stderr, "bench: no sealed memory files here\n");
        exit(77);
    }
    memset(ends[0].tensor, 1, bytes);
    memset(ends[0].message, 1, TENSOR_HEAD + bytes);
    if (kith_shared_map(dup(ends[0].shared.fd), kith_shared_most(1, bytes),
                        &ends[1].view) != NULL ||
        !kith_shared_find(&ends[0].shared, TENSOR_SLOT, ends[0].tensor, bytes,
                          &ends[1].place))
        exit(1);
}

static inline void tensor_close(struct tensor_end ends[2])
{
    const size_t bytes = ends[0].bytes;
    munmap(ends[0].flags, sizeof *ends[0].flags);
    munmap(ends[1].tensor, bytes);
    kith_shared_unmap(&ends[1].view);
    kith_shared_free(&ends[0].shared);
    for (unsigned i = 0; i < 2; i++) {
        munmap(ends[i].message, TENSOR_HEAD + bytes);
        close(ends[i].fd);
    }
}

/* What either end does in each step before the transfer; NULL: nothing. */
typedef void (*tensor_work)(struct tensor_end *end);

/* Seconds of a whole step of the sender, which waits for the other end, and of
 * the transfer in it, from the sender's first move to the other's answer: of
 * all steps the quantile that the run asks for, since others may use these
 * cores, too. */
struct tensor_times {
    double step, transfer;
};

struct tensor_run {
    const struct tensor_way *way;
    size_t bytes;
    bool silent; /* steps without a transfer: the ends meet */
    tensor_work work;
    double quantile; /* 0.5: the median; 0.1: of steps that nothing disturbs */
    unsigned warm, count; /* steps that are not timed; <= TENSOR_STEPS_MAX */
};

/* The sender's tensor is another one in each step. */
static inline void tensor_produce(struct tensor_end *end, unsigned step)
{
    kith_shared_refill(&end->shared, TENSOR_SLOT);
    memset(end->tensor, (int)(step % 255), end->bytes);
}

/* What arrives is what was produced last. */
static inline void tensor_run_receiver(struct tensor_end *end,
                                       const struct tensor_run *run)
{
    for (unsigned i = 0; i < run->warm + run->count; i++) {
        if (run->work != NULL)
            run->work(end);
        end->place.filled++;
        if (run->silent) {
            tensor_meet_sender(end);
            continue;
        }
        if (!tensor_receive(end) || end->tensor[0] != i % 255 ||
            end->tensor[end->bytes - 1] != i % 255)
            _exit(1);
    }
}

static inline double tensor_quantile(double *seconds,
                                     const struct tensor_run *run)
{
    qsort(seconds, run->count, sizeof *seconds, bench_compare);
    return seconds[(unsigned)(run->quantile * run->count)];
}

static inline struct tensor_times
tensor_run_sender(struct tensor_end *end, const struct tensor_run *run)
{
    static double step[TENSOR_STEPS_MAX], transfer[TENSOR_STEPS_MAX];
    for (unsigned i = 0; i < run->warm + run->count; i++) {
        const double began = bench_now();
        if (run->work != NULL)
            run->work(end);
        tensor_produce(end, i);
        const double made = bench_now();
        if (run->silent)
            tensor_meet_receiver(end);
        else
            tensor_send(end);
        const double ended = bench_now();
        if (i < run->warm)
            continue;
        step[i - run->warm] = ended - began;
        transfer[i - run->warm] = ended - made;
    }
    return (struct tensor_times){tensor_quantile(step, run),
                                 tensor_quantile(transfer, run)};
}

/* The child receives, on the other core. */
static inline struct tensor_times tensor_time(const struct tensor_run *run)
{
    struct tensor_end ends[2];
    tensor_open(ends, run->way, run->bytes);
    fflush(NULL);
    const pid_t child = fork();
    if (child == 0) {
        bench_pin(1);
        memset(ends[1].tensor, 2, run->bytes);
        memset(ends[1].message, 2, TENSOR_HEAD + run->bytes);
        tensor_run_receiver(&ends[1], run);
        _exit(0);
    }
    const struct tensor_times times = tensor_run_sender(&ends[0], run);
    int status = 1;
    waitpid(child, &status, 0);
    if (status != 0) {
        fprintf(stderr, "bench: the receiver failed\n");
        exit(1);
    }
    tensor_close(ends);
    return times;
}

#endif
