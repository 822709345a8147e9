/* What sealing alone leaves of an exchange: two processes of one thread each
 * seal, send, receive, open and average a vector, and nothing else. No node, no
 * snapshot, no gate, no guard. The ceiling of bench_exchange for its suite. */
#ifndef KITH_BENCH_BARE_EXCHANGE_H
#define KITH_BENCH_BARE_EXCHANGE_H

#include "bench/plain.h"
#include "kith/assert.h"
#include "src/protocol/session/aead.h"

/* Sealed at a time, and read at a time. */
#define BARE_RECORDS 16u
#define BARE_RECORD ((size_t)KITH_BULK_BYTES + KITH_TAG_BYTES)

struct bare_end {
    const struct kith_aead *aead;
    enum kith_suite suite;
    union kith_aead_state seal, open;
    int fd;
    size_t elements;
    float *x, *y;
    uint8_t *out, *in; /* (BARE_RECORDS, BARE_RECORD) */
    size_t out_from, out_to, in_to;
    size_t sealed, opened; /* bytes of the vector */
    uint64_t nonces[2];
};

static inline size_t bare_part(const struct bare_end *end, size_t at)
{
    const size_t left = end->elements * sizeof(float) - at;
    return left < KITH_BULK_BYTES ? left : KITH_BULK_BYTES;
}

static inline void bare_text(struct bare_end *end, enum kith_direction way,
                             const uint8_t *in, uint8_t *out, size_t bytes)
{
    uint8_t nonce[KITH_NONCE_BYTES_MAX] = {0};
    memcpy(nonce + 4, &end->nonces[way], sizeof end->nonces[way]);
    end->nonces[way]++;
    const struct kith_aead_text text = {
        .nonce = nonce, .in = in, .out = out, .bytes = bytes};
    KITH_ASSERT((way == KITH_SEAL
                     ? end->aead->seal(&end->seal, end->suite, &text)
                     : end->aead->open(&end->open, end->suite, &text)) ==
                KITH_OK);
}

static inline bool bare_send(struct bare_end *end)
{
    if (end->out_from == end->out_to) {
        end->out_from = end->out_to = 0;
        for (unsigned i = 0; i < BARE_RECORDS; i++) {
            const size_t bytes = bare_part(end, end->sealed);
            if (bytes == 0)
                break;
            bare_text(end, KITH_SEAL, (uint8_t *)end->x + end->sealed,
                      end->out + end->out_to, bytes);
            end->sealed += bytes;
            end->out_to += bytes + KITH_TAG_BYTES;
        }
    }
    const ssize_t count =
        write(end->fd, end->out + end->out_from, end->out_to - end->out_from);
    end->out_from += count > 0 ? (size_t)count : 0;
    return count > 0;
}

static inline bool bare_receive(struct bare_end *end)
{
    const ssize_t count = read(end->fd, end->in + end->in_to,
                               BARE_RECORDS * BARE_RECORD - end->in_to);
    size_t from = 0;
    end->in_to += count > 0 ? (size_t)count : 0;
    for (;;) {
        const size_t bytes = bare_part(end, end->opened);
        if (bytes == 0 || end->in_to - from < bytes + KITH_TAG_BYTES)
            break;
        bare_text(end, KITH_OPEN, end->in + from,
                  (uint8_t *)end->y + end->opened, bytes);
        end->opened += bytes;
        from += bytes + KITH_TAG_BYTES;
    }
    memmove(end->in, end->in + from, end->in_to - from);
    end->in_to -= from;
    return count > 0;
}

static inline void bare_once(struct bare_end *end)
{
    const size_t whole = end->elements * sizeof(float);
    end->sealed = end->opened = 0;
    for (;;) {
        const bool sends = end->sealed < whole || end->out_from < end->out_to;
        const bool receives = end->opened < whole;
        struct pollfd ready = {
            end->fd, (short)((receives ? POLLIN : 0) | (sends ? POLLOUT : 0)),
            0};
        if (!sends && !receives)
            break;
        const bool sent = sends && bare_send(end);
        const bool got = receives && bare_receive(end);
        if (!sent && !got)
            poll(&ready, 1, -1);
    }
    for (size_t i = 0; i < end->elements; i++)
        end->x[i] += 0.5f * (end->y[i] - end->x[i]);
}

static inline void bare_open(struct bare_end *end)
{
    static const uint8_t key[KITH_KEY_BYTES] = {9};
    KITH_ASSERT(end->aead->create(&end->seal, end->suite) == KITH_OK);
    KITH_ASSERT(end->aead->create(&end->open, end->suite) == KITH_OK);
    end->aead->key(&end->seal, end->suite, key, KITH_SEAL);
    end->aead->key(&end->open, end->suite, key, KITH_OPEN);
    end->x = bench_alloc(end->elements * sizeof *end->x);
    end->y = bench_alloc(end->elements * sizeof *end->y);
    end->out = bench_alloc(BARE_RECORDS * BARE_RECORD);
    end->in = bench_alloc(BARE_RECORDS * BARE_RECORD);
    fcntl(end->fd, F_SETFL, O_NONBLOCK);
}

/* A process of its own, whose memory goes with it. Seconds of an exchange. */
static inline void bare_process(struct bare_end *end, uint32_t count,
                                double *each_s)
{
    bare_open(end);
    bare_once(end);
    const double began_s = bench_now();
    for (uint32_t i = 0; i < count; i++)
        bare_once(end);
    *each_s = (bench_now() - began_s) / count;
    _exit(0);
}

/* Seconds of one exchange, the mean of `count`: neither side begins one before
 * its end of the last. `each_s` (2) is shared between processes. */
static inline double bare_exchange(const struct kith_aead *aead,
                                   enum kith_suite suite, size_t elements,
                                   uint32_t count, double *each_s)
{
    int fds[2];
    pid_t pids[2];
    bench_socket_pair(fds);
    fflush(NULL);
    for (int i = 0; i < 2; i++) {
        struct bare_end end = {
            .aead = aead, .suite = suite, .fd = fds[i], .elements = elements};
        each_s[i] = -1;
        pids[i] = fork();
        if (pids[i] == 0) {
            close(fds[!i]);
            bare_process(&end, count, each_s + i);
        }
    }
    close(fds[0]);
    close(fds[1]);
    for (int i = 0; i < 2; i++)
        waitpid(pids[i], NULL, 0);
    KITH_ASSERT(each_s[0] > 0 && each_s[1] > 0);
    return each_s[0];
}

#endif
