/* See handles.h. */
#include "handles.h"

#include <pthread.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <sodium.h>

#include "kith/assert.h"

struct entry {
    const void *handle;
    struct kith_fork_gate *gate;
    struct kith_identity *identity;
    const char *call; /* that a thread is in; NULL: none */
    char misuse[KITH_MISUSE_BYTES];
};

static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
static pthread_once_t is_watching = PTHREAD_ONCE_INIT;
static struct entry entries[KITH_HANDLES_MAX];
static uint32_t count;

/* ---- fork() */

static void before_fork(void)
{
    pthread_mutex_lock(&mutex);
    for (uint32_t i = 0; i < count; i++)
        kith_fork_gate_hold(entries[i].gate);
}

static void in_parent(void)
{
    for (uint32_t i = count; i-- > 0;)
        kith_fork_gate_release(entries[i].gate);
    pthread_mutex_unlock(&mutex);
}

static void in_child(void)
{
    for (uint32_t i = 0; i < count; i++) {
        kith_fork_gate_forget(entries[i].gate);
        sodium_memzero(entries[i].identity, sizeof *entries[i].identity);
    }
    count = 0;
    pthread_mutex_unlock(&mutex);
}

static void watch(void)
{
    (void)pthread_atfork(before_fork, in_parent, in_child);
}

/* ---- the list */

/* Holds the mutex. NULL: it is not open here. */
static struct entry *find(const void *handle)
{
    for (uint32_t i = 0; i < count; i++)
        if (entries[i].handle == handle)
            return &entries[i];
    return NULL;
}

bool kith_handle_add(const void *handle, struct kith_fork_gate *gate,
                     struct kith_identity *identity)
{
    pthread_once(&is_watching, watch);
    pthread_mutex_lock(&mutex);
    KITH_ASSERT(find(handle) == NULL);
    const bool fits = count < KITH_HANDLES_MAX;
    if (fits)
        entries[count++] = (struct entry){.handle = handle,
                                          .gate = gate,
                                          .identity = identity,
                                          .call = "kith_open"};
    pthread_mutex_unlock(&mutex);
    return fits;
}

void kith_handle_remove(const void *handle)
{
    pthread_mutex_lock(&mutex);
    struct entry *entry = find(handle);
    KITH_ASSERT(entry != NULL);
    *entry = entries[--count];
    pthread_mutex_unlock(&mutex);
}

bool kith_handle_enter(const void *handle, const char *call)
{
    pthread_mutex_lock(&mutex);
    struct entry *entry = find(handle);
    const bool is_free = entry != NULL && entry->call == NULL;
    if (is_free)
        entry->call = call;
    else if (entry != NULL)
        (void)snprintf(entry->misuse, sizeof entry->misuse,
                       "%s() while another thread was in %s(): allowed: one "
                       "thread at a time",
                       call, entry->call);
    pthread_mutex_unlock(&mutex);
    return is_free;
}

void kith_handle_leave(const void *handle)
{
    pthread_mutex_lock(&mutex);
    struct entry *entry = find(handle);
    KITH_ASSERT(entry != NULL && entry->call != NULL);
    entry->call = NULL;
    pthread_mutex_unlock(&mutex);
}

void kith_handle_misuse(const void *handle, char text[KITH_MISUSE_BYTES])
{
    pthread_mutex_lock(&mutex);
    const struct entry *entry = find(handle);
    (void)snprintf(text, KITH_MISUSE_BYTES, "%s",
                   entry == NULL ? "kith_close(): this handle is not open: it "
                                   "was closed before, or is the parent's of "
                                   "before fork()"
                                 : entry->misuse);
    pthread_mutex_unlock(&mutex);
}
