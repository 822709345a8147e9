/* What all streams of a process share: chunk pool, read buffer, one timer. */
#include <stdlib.h>
#include <string.h>

#include "kith/assert.h"
#include "kith/limits.h"
#include "socket.h"
#include "socket_private.h"

/* The next pointer is read first: releasing may close a stream, but its memory
 * goes only in a callback of the loop.
 * Releases what is due on every stream, then waits for the next. */
static void net_release(void *arg)
{
    struct kith_net *net = arg;
    const enum kith_account_kind was = kith_net_enter(net);
    const kith_ns now = (kith_ns)uv_hrtime();
    for (struct kith_socket *s = net->streams; s != NULL;) {
        struct kith_socket *next = s->next;
        kith_socket_release(s, now);
        s = next;
    }
    kith_net_schedule(net);
    kith_net_leave(net, was);
}

/* One timer for all streams: descriptors are scarcer than the few dozen
 * comparisons. */
void kith_net_schedule(struct kith_net *net)
{
    kith_ns at = KITH_NEVER;
    for (const struct kith_socket *s = net->streams; s != NULL; s = s->next) {
        if (s->closing)
            continue;
        if (s->first && !s->flow.stalled && s->first->release_ns < at)
            at = s->first->release_ns;
        if (s->throttled && s->throttled_until_ns < at)
            at = s->throttled_until_ns;
    }
    kith_timer_set(&net->release_timer, at);
}

/* One read buffer for all links: a callback handles its bytes before the next
 * one runs. */
enum kith_err kith_net_init(struct kith_net *net, uv_loop_t *loop,
                            const struct kith_shape *shape, size_t large_bytes)
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
    kith_shaper_init(&net->shaper, shape);
    const enum kith_err err =
        kith_timer_init(&net->release_timer, loop, net_release, net);
    if (err != KITH_OK) {
        free(net->read_buffer);
        return err;
    }
    kith_account_start(&net->account, KITH_ACCOUNT_OTHER);
    return KITH_OK;
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
    chunks_free(net->small);
    chunks_free(net->large);
    free(net->read_buffer);
}

/* Two sizes, because nearly everything is a control frame or a whole burst; a
 * pool, because malloc of a megabyte maps and unmaps pages each time. */
struct kith_chunk *kith_chunk_take(struct kith_net *net, size_t capacity)
{
    const bool is_small = capacity <= KITH_CHUNK_SMALL;
    struct kith_chunk **list = is_small ? &net->small : &net->large;
    uint32_t *count = is_small ? &net->small_count : &net->large_count;
    struct kith_chunk *chunk = *list;
    if (chunk != NULL) {
        *list = chunk->next;
        --*count;
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
    struct kith_chunk **list = is_small ? &net->small : &net->large;
    uint32_t *count = is_small ? &net->small_count : &net->large_count;
    if (*count >= KITH_CHUNKS_KEPT) {
        free(chunk);
        return;
    }
    chunk->next = *list;
    *list = chunk;
    ++*count;
    KITH_ASSERT(*count <= KITH_CHUNKS_KEPT);
}
