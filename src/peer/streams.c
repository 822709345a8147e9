/* What all streams of a process share: chunk pool, read buffer, one timer. */
#include <stdlib.h>
#include <string.h>

#include "kith/assert.h"
#include "kith/limits.h"
#include "socket.h"
#include "socket_private.h"

/* Releases what is due on every stream, then waits for the next. */
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

enum kith_err kith_net_init(struct kith_net *net, uv_loop_t *loop,
                            const struct kith_shape *shape, size_t large_bytes)
{
    memset(net, 0, sizeof *net);
    net->loop = loop;
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

void kith_net_stop(struct kith_net *net)
{
    for (struct kith_socket *s = net->streams; s != NULL; s = s->next)
        kith_socket_close(s);
    kith_timer_close(&net->release_timer);
}

static void chunks_free(struct kith_chunk *chunk)
{
    while (chunk != NULL) {
        struct kith_chunk *next = chunk->next;
        free(chunk);
        chunk = next;
    }
}

void kith_net_free(struct kith_net *net)
{
    KITH_ASSERT(net->streams == NULL);
    chunks_free(net->small);
    chunks_free(net->large);
    free(net->read_buffer);
}

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
    chunk->next = NULL;
    chunk->done = NULL;
    chunk->size = 0;
    chunk->written = 0;
    return chunk;
}

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
}
