/* libuv transport against blocking sockets: plain bytes, one way, between two
 * processes, from tensor to tensor. Ours is socket.c as links use it (chunks of
 * 1 MiB, three in flight, reads straight into the tensor), without the session.
 * Target: 0.90 of blocking write and read. */
#include "bench/plain.h"

#include "src/peer/socket.h"

#define CHUNKS 3

struct end {
    struct kith_net net;
    struct kith_socket socket;
    uint8_t *tensor;
    size_t total, done, queued;
};

static void end_closed(struct kith_socket *socket)
{
    (void)socket;
}

static void end_alloc(struct kith_socket *socket, uint8_t **bytes, size_t *size)
{
    struct end *end = socket->owner;
    const size_t at = end->done % BENCH_TENSOR;
    const size_t left = BENCH_TENSOR - at;
    *bytes = end->tensor + at;
    *size = left < KITH_READ_BYTES ? left : KITH_READ_BYTES;
}

static void end_read(struct kith_socket *socket, ssize_t size)
{
    struct end *end = socket->owner;
    end->done += size > 0 ? (size_t)size : 0;
    if (size < 0 || end->done >= end->total)
        kith_socket_close(socket);
}

static void send_one(struct end *end);

static void send_done(struct kith_chunk *chunk)
{
    struct end *end = chunk->socket->owner;
    end->done += chunk->size;
    if (end->done >= end->total)
        kith_socket_close(&end->socket);
    else if (end->queued < end->total)
        send_one(end);
}

/* Chunks own their bytes; here they point into the tensor instead. */
static void send_one(struct end *end)
{
    struct kith_chunk *chunk = kith_chunk_take(&end->net, BENCH_WRITE);
    chunk->bytes = end->tensor + end->queued % BENCH_TENSOR;
    chunk->size = BENCH_WRITE;
    chunk->done = send_done;
    end->queued += BENCH_WRITE;
    kith_socket_write(&end->socket, chunk);
}

static void run_end(int fd, uint8_t *tensor, size_t total, bool sends)
{
    static struct end end;
    const struct kith_link_terms usual = {.latency_ns = 0};
    uv_loop_t loop;
    memset(&end, 0, sizeof end);
    end.tensor = tensor;
    end.total = total;
    uv_loop_init(&loop);
    if (kith_net_init(&end.net, &loop, &usual, BENCH_WRITE) != KITH_OK ||
        kith_socket_init(&end.socket, &end.net, &end) != KITH_OK)
        exit(1);
    end.socket.alloc = end_alloc;
    end.socket.read = end_read;
    end.socket.closed = end_closed;
    uv_tcp_open(&end.socket.tcp, fd);
    if (kith_socket_start(&end.socket) != KITH_OK)
        exit(1);
    for (int i = 0; sends && i < CHUNKS; i++)
        send_one(&end);
    while (!end.socket.closing)
        uv_run(&loop, UV_RUN_ONCE);
    kith_net_stop(&end.net);
    uv_run(&loop, UV_RUN_DEFAULT);
    kith_net_free(&end.net);
    uv_loop_close(&loop);
}

/* GB/s of one transfer: the child sends, we receive. */
static double transfer(uint8_t *tensor, size_t total, bool ours)
{
    int fds[2];
    char go;
    bench_socket_pair(fds);
    fflush(NULL);
    const pid_t child = fork();
    if (child == 0) {
        close(fds[0]);
        bench_pin(1);
        for (size_t i = 0; i < BENCH_TENSOR; i += 4096)
            tensor[i] = 1;
        if (read(fds[1], &go, 1) != 1)
            _exit(1);
        if (ours)
            run_end(fds[1], tensor, total, true);
        else
            bench_plain_send(fds[1], tensor, total);
        _exit(0);
    }
    close(fds[1]);
    bench_write_all(fds[0], (const uint8_t *)"g", 1);
    const double began = bench_now();
    if (ours)
        run_end(fds[0], tensor, total, false);
    else
        bench_plain_receive(fds[0], tensor, total);
    const double seconds = bench_now() - began;
    if (!ours)
        close(fds[0]);
    waitpid(child, NULL, 0);
    return 1e-9 * (double)total / seconds;
}

int main(void)
{
    double ours[BENCH_ROUNDS], plain[BENCH_ROUNDS];
    const size_t total = (size_t)bench_setting("BENCH_MIB", 512) << 20;
    bench_network();
    bench_pin(0);
    uint8_t *tensor = bench_alloc(BENCH_TENSOR);
    memset(tensor, 1, BENCH_TENSOR);
    (void)transfer(tensor, total, true);
    for (int r = 0; r < BENCH_ROUNDS; r++) {
        plain[r] = transfer(tensor, total, false);
        ours[r] = transfer(tensor, total, true);
    }
    bench_print("blocking sockets, 1 MiB writes", plain, BENCH_ROUNDS, "GB/s");
    bench_print("kith socket over libuv", ours, BENCH_ROUNDS, "GB/s");
    bench_ratio("kith socket : blocking sockets", ours, plain, BENCH_ROUNDS,
                0.90);
    return 0;
}
