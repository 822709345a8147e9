/* One TCP connection: chunks out, bytes in, delays where the network is
 * shaped. A chunk is tried at once while nothing waits before it, because most
 * control frames fit into the socket; the rest is libuv's queue. */
#include "socket.h"

#include <netinet/in.h>
#include <netinet/tcp.h>
#include <stdlib.h>
#include <string.h>

#include "kith/assert.h"
#include "kith/limits.h"

/* ---- what all streams of a process share: chunk pool, read buffer, timer */

/* Two sizes, because nearly everything is a control frame or a whole burst; a
 * pool, because malloc of a megabyte maps and unmaps pages each time. */
struct kith_chunk *kith_chunk_take(struct kith_net *net, size_t capacity)
{
    const bool is_small = capacity <= KITH_CHUNK_SMALL;
    struct kith_chunk_pool *pool = is_small ? &net->small : &net->large;
    struct kith_chunk *chunk = pool->first;
    if (chunk != NULL) {
        pool->first = chunk->next;
        pool->count--;
    } else {
        const size_t room = is_small ? KITH_CHUNK_SMALL : net->large_bytes;
        KITH_ASSERT(capacity <= room);
        chunk = malloc(sizeof *chunk + room);
        if (chunk == NULL)
            return NULL;
        chunk->capacity = room;
        chunk->bytes = (uint8_t *)(chunk + 1);
    }
    KITH_ASSERT(chunk->capacity >= capacity);
    chunk->next = NULL;
    chunk->done = NULL;
    chunk->size = 0;
    chunk->written = 0;
    return chunk;
}

/* Keeps a few, so that a burst of activity does not hold its memory for ever.
 */
void kith_chunk_give(struct kith_net *net, struct kith_chunk *chunk)
{
    const bool is_small = chunk->capacity <= KITH_CHUNK_SMALL;
    struct kith_chunk_pool *pool = is_small ? &net->small : &net->large;
    if (pool->count >= KITH_CHUNKS_KEPT) {
        free(chunk);
        return;
    }
    chunk->next = pool->first;
    pool->first = chunk;
    pool->count++;
    KITH_ASSERT(pool->count <= KITH_CHUNKS_KEPT);
}

/* Sets the timer for the earliest release of all streams. One timer for all
 * streams: descriptors are scarcer than the few dozen comparisons. */
static void net_schedule(struct kith_net *net)
{
    kith_ns at = KITH_NEVER;
    for (const struct kith_socket *s = net->streams; s != NULL; s = s->next) {
        if (s->closing)
            continue;
        if (s->first && !kith_link_is_cut(&s->flow->terms) &&
            s->first->release_ns < at)
            at = s->first->release_ns;
        if (s->throttled && s->throttled_until_ns < at)
            at = s->throttled_until_ns;
    }
    kith_timer_set(&net->release_timer, at);
}

/* ---- one stream */

/* `back` points at whatever points at this socket, so that removing it needs
 * no search. */
enum kith_err kith_socket_init(struct kith_socket *socket, struct kith_net *net,
                               void *owner)
{
    memset(socket, 0, sizeof *socket);
    socket->net = net;
    socket->owner = owner;
    socket->flow = &net->strangers;
    if (uv_tcp_init(net->loop, &socket->tcp) != 0)
        return KITH_ENOMEM;
    socket->tcp.data = socket;
    socket->next = net->streams;
    socket->back = &net->streams;
    if (socket->next != NULL)
        socket->next->back = &socket->next;
    net->streams = socket;
    return KITH_OK;
}

/* Of the other end's line out; 0: no limit. */
static uint64_t sent_bits(const struct kith_socket *socket)
{
    const struct kith_net *net = socket->net;
    return net->classes == NULL
               ? net->usual.rate_bits
               : kith_class_of(net->classes, socket->flow->to)->up_bits;
}

/* What is read is there at once, and only what comes after it later: where the
 * line in is the slower one a read takes a millisecond of it, or a packet. */
static size_t read_most(const struct kith_socket *socket, size_t size)
{
    const uint64_t in_bits = socket->net->in_bits;
    const uint64_t out_bits = sent_bits(socket);
    if (in_bits == 0 || (out_bits > 0 && out_bits <= in_bits))
        return size;
    const uint64_t most = in_bits / 8000;
    if (most < KITH_PACKET_BYTES)
        return size < KITH_PACKET_BYTES ? size : KITH_PACKET_BYTES;
    return most < size ? (size_t)most : size;
}

/* The owner knows where bytes go; a size of 0 makes libuv report UV_ENOBUFS,
 * which closes the link. */
static void socket_alloc(uv_handle_t *handle, size_t suggested, uv_buf_t *buf)
{
    struct kith_socket *socket = handle->data;
    (void)suggested;
    KITH_NET_SCOPE(socket->net);
    uint8_t *bytes = NULL;
    size_t size = 0;
    socket->alloc(socket, &bytes, &size);
    *buf = uv_buf_init((char *)bytes, (unsigned)read_most(socket, size));
}

/* Reading stops and the kernel's receive window fills: the sender slows down
 * by TCP itself. */
void kith_socket_throttle(struct kith_socket *socket, kith_ns until_ns)
{
    if (socket->closing)
        return;
    if (!socket->throttled || socket->throttled_until_ns < until_ns)
        socket->throttled_until_ns = until_ns;
    socket->throttled = true;
    uv_read_stop((uv_stream_t *)&socket->tcp);
    net_schedule(socket->net);
}

/* After `size` bytes the line in is busy. What comes was held back until its
 * last bit had left its sender's line, up to a burst of it, and the line in
 * took it in meanwhile (cut-through, as in the simulator): bytes are taken from
 * a burst's time ago on. Counted from now on, each message of an idle path
 * would be a burst late: 168 ms at 50 Mbit/s. */
static void socket_shape(struct kith_socket *socket, size_t size)
{
    struct kith_net *net = socket->net;
    if (net->in_bits == 0)
        return;
    const kith_ns now = (kith_ns)uv_hrtime();
    const kith_ns held = kith_line_time(net->large_bytes, sent_bits(socket));
    (void)kith_line_take(&net->in_free_ns, net->in_bits, now - held, size);
    const kith_ns until = net->in_free_ns;
    /* Shorter rests than a tenth of a millisecond cost more than they shape. */
    if (until - now >= KITH_MS / 10)
        kith_socket_throttle(socket, until);
}

/* A size of 0 means EAGAIN, not the end. */
static void socket_read(uv_stream_t *tcp, ssize_t size, const uv_buf_t *buf)
{
    struct kith_socket *socket = tcp->data;
    struct kith_net *net = socket->net;
    (void)buf;
    if (size == 0)
        return;
    KITH_NET_SCOPE(net);
    if (size > 0) {
        net->bytes_received += (uint64_t)size;
        socket_shape(socket, (size_t)size);
    }
    socket->read(socket, size);
}

/* TCP_NODELAY: frames are small and waited for; Nagle's algorithm (RFC 896)
 * would hold them back for an ACK. */
enum kith_err kith_socket_start(struct kith_socket *socket)
{
    uv_tcp_nodelay(&socket->tcp, 1);
    const char *congestion = socket->net->congestion;
    uv_os_fd_t fd;
    if (congestion && uv_fileno((uv_handle_t *)&socket->tcp, &fd) == 0 &&
        setsockopt(fd, IPPROTO_TCP, TCP_CONGESTION, congestion,
                   (socklen_t)strlen(congestion)) != 0)
        return KITH_EUNSUPPORTED;
    socket->reading = true;
    return uv_read_start((uv_stream_t *)&socket->tcp, socket_alloc,
                         socket_read) == 0
               ? KITH_OK
               : KITH_EIO;
}

/* Pause and throttle are independent: reading goes on when neither holds. */
void kith_socket_pause(struct kith_socket *socket, bool paused)
{
    if (socket->closing || socket->reading == !paused)
        return;
    socket->reading = !paused;
    if (paused)
        uv_read_stop((uv_stream_t *)&socket->tcp);
    else if (!socket->throttled)
        uv_read_start((uv_stream_t *)&socket->tcp, socket_alloc, socket_read);
}

/* The owner is told before the chunk is reused. */
static void chunk_done(struct kith_chunk *chunk)
{
    struct kith_socket *socket = chunk->socket;
    KITH_ASSERT(socket->queued > 0 && chunk->written <= chunk->size);
    socket->queued--;
    if (chunk->done)
        chunk->done(chunk);
    kith_chunk_give(socket->net, chunk);
}

/* A failed write is only noted: the owner closes the link at its next use, in
 * a callback where that is safe. */
static void socket_written(uv_write_t *write, int status)
{
    struct kith_chunk *chunk = write->data;
    struct kith_socket *socket = chunk->socket;
    struct kith_net *net = socket->net;
    KITH_NET_SCOPE(net);
    if (status < 0)
        socket->failed = true;
    else
        net->bytes_sent += chunk->size - chunk->written;
    chunk_done(chunk);
}

/* Hands a chunk to the kernel, the rest of it to libuv. */
static void socket_submit(struct kith_socket *socket, struct kith_chunk *chunk)
{
    struct kith_net *net = socket->net;
    uv_stream_t *tcp = (uv_stream_t *)&socket->tcp;
    uv_buf_t buf = uv_buf_init((char *)chunk->bytes, (unsigned)chunk->size);
    const enum kith_account_kind was =
        kith_account_switch(&net->account, KITH_ACCOUNT_SOCKET);
    int status = 0;
    if (socket->closing || socket->failed) {
        status = UV_ECANCELED;
    } else if (chunk->size <= KITH_CHUNK_SMALL && tcp->write_queue_size == 0) {
        const int count = uv_try_write(tcp, &buf, 1);
        if (count > 0) {
            chunk->written = (size_t)count;
            net->bytes_sent += (uint64_t)count;
        }
    }
    const bool whole = chunk->written == chunk->size;
    if (status == 0 && !whole) {
        buf.base += chunk->written;
        buf.len -= chunk->written;
        chunk->write.data = chunk;
        status = uv_write(&chunk->write, tcp, &buf, 1, socket_written);
    }
    kith_account_switch(&net->account, was);
    if (status != 0)
        socket->failed = true;
    if (status != 0 || whole)
        chunk_done(chunk);
}

/* When these bytes, handed over now, reach the other end: then the kernel gets
 * them. The queue keeps their order, the draws are the pair's. */
static kith_ns socket_delays(struct kith_socket *socket, size_t size)
{
    struct kith_net *net = socket->net;
    const kith_ns begins_ns = kith_line_take(
        &net->out_free_ns, net->usual.rate_bits, (kith_ns)uv_hrtime(), size);
    return kith_link_arrival(
        socket->flow, &(struct kith_link_piece){begins_ns, net->out_free_ns,
                                                size, socket->rest});
}

/* While something waits before it a chunk must queue, or it would overtake. */
void kith_socket_write(struct kith_socket *socket, struct kith_chunk *chunk)
{
    struct kith_net *net = socket->net;
    KITH_ASSERT(chunk->size > 0 && chunk->size <= chunk->capacity);
    chunk->socket = socket;
    socket->queued++;
    if (socket->first == NULL && kith_link_is_plain(&socket->flow->terms)) {
        socket_submit(socket, chunk);
        return;
    }
    chunk->release_ns = socket_delays(socket, chunk->size);
    if (socket->last != NULL)
        socket->last->next = chunk;
    else
        socket->first = chunk;
    socket->last = chunk;
    if (socket->first == chunk)
        net_schedule(net);
}

/* The caller has checked that there is one. */
static struct kith_chunk *socket_pop(struct kith_socket *socket)
{
    struct kith_chunk *chunk = socket->first;
    KITH_ASSERT((socket->first == NULL) == (socket->last == NULL));
    socket->first = chunk->next;
    if (socket->first == NULL)
        socket->last = NULL;
    return chunk;
}

/* Hands what is due to the kernel and ends a throttle of the line in.
 * A chunk that the kernel takes at once may free the next one; one loop does
 * them all. */
static void socket_release(struct kith_socket *socket, kith_ns now_ns)
{
    if (socket->closing)
        return;
    while (socket->first && !kith_link_is_cut(&socket->flow->terms) &&
           socket->first->release_ns <= now_ns)
        socket_submit(socket, socket_pop(socket));
    if (socket->throttled && socket->throttled_until_ns <= now_ns) {
        socket->throttled = false;
        if (socket->reading && !socket->closing)
            uv_read_start((uv_stream_t *)&socket->tcp, socket_alloc,
                          socket_read);
    }
}

/* A partition in one direction: bytes queue here, sealed, and leave in order
 * when it heals. */
void kith_socket_flow(struct kith_socket *socket, struct kith_link_flow *flow)
{
    socket->flow = flow;
    socket_release(socket, (kith_ns)uv_hrtime());
    net_schedule(socket->net);
}

/* What waited is given back to the pool; its owners hear of it as of chunks
 * that were written. */
static void socket_closed(uv_handle_t *handle)
{
    struct kith_socket *socket = handle->data;
    struct kith_net *net = socket->net;
    KITH_NET_SCOPE(net);
    KITH_ASSERT(socket->closing);
    while (socket->first != NULL)
        chunk_done(socket_pop(socket));
    KITH_ASSERT(socket->queued == 0);
    *socket->back = socket->next;
    if (socket->next != NULL)
        socket->next->back = socket->back;
    socket->closed(socket);
}

/* Idempotent; libuv cancels its writes, each with a callback. */
void kith_socket_close(struct kith_socket *socket)
{
    if (socket->closing)
        return;
    socket->closing = true;
    uv_close((uv_handle_t *)&socket->tcp, socket_closed);
}

/* ---- beginning and end */

/* The next pointer is read first: releasing may close a stream, but its memory
 * goes only in a callback of the loop.
 * Releases what is due on every stream, then waits for the next. */
static void net_release(void *arg)
{
    struct kith_net *net = arg;
    KITH_NET_SCOPE(net);
    const kith_ns now = (kith_ns)uv_hrtime();
    for (struct kith_socket *s = net->streams; s != NULL;) {
        struct kith_socket *next = s->next;
        socket_release(s, now);
        s = next;
    }
    net_schedule(net);
}

/* One read buffer for all links: a callback handles its bytes before the next
 * one runs. */
enum kith_err kith_net_init(struct kith_net *net, uv_loop_t *loop,
                            const struct kith_link_terms *usual,
                            size_t large_bytes)
{
    memset(net, 0, sizeof *net);
    net->loop = loop;
    KITH_ASSERT(large_bytes > KITH_CHUNK_SMALL);
    net->large_bytes = large_bytes;
    /* A record that was cut short is put before the next read. */
    net->read_bytes = KITH_READ_BYTES + KITH_RECORD_BYTES_MAX + 2u;
    net->read_buffer = malloc(net->read_bytes);
    if (net->read_buffer == NULL)
        return KITH_ENOMEM;
    net->usual = *usual;
    net->in_bits = usual->rate_bits;
    kith_link_flow_init(&net->strangers, usual, 0, KITH_NOBODY, KITH_NOBODY);
    const enum kith_err err =
        kith_timer_init(&net->release_timer, loop, net_release, net);
    if (err != KITH_OK) {
        free(net->read_buffer);
        return err;
    }
    kith_account_start(&net->account, KITH_ACCOUNT_OTHER);
    return KITH_OK;
}

void kith_net_take_lines(struct kith_net *net,
                         const struct kith_classes *classes, kith_id self)
{
    const struct kith_class *own = kith_class_of(classes, self);
    KITH_ASSERT(net->out_free_ns == 0 && net->in_free_ns == 0);
    net->classes = classes;
    net->usual.rate_bits = net->strangers.terms.rate_bits = own->up_bits;
    net->in_bits = own->down_bits;
}

/* Closing is asynchronous: memory goes in kith_net_free. */
void kith_net_stop(struct kith_net *net)
{
    for (struct kith_socket *s = net->streams; s != NULL; s = s->next)
        kith_socket_close(s);
    kith_timer_close(&net->release_timer);
}

/* A list through `next`. */
static void chunks_free(struct kith_chunk *chunk)
{
    while (chunk != NULL) {
        struct kith_chunk *next = chunk->next;
        free(chunk);
        chunk = next;
    }
}

/* The owner has run the loop dry, so that no stream is left. */
void kith_net_free(struct kith_net *net)
{
    KITH_ASSERT(net->streams == NULL);
    chunks_free(net->small.first);
    chunks_free(net->large.first);
    free(net->read_buffer);
}
