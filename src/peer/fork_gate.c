/* See kith/fork_gate.h. */
#include "kith/fork_gate.h"

#include <pthread.h>
#include <stdlib.h>
#include <unistd.h>

#include <sodium.h>

#include "connection.h"
#include "driver.h"
#include "fork_loop.h"
#include "kith/assert.h"

struct kith_fork_gate {
    pthread_mutex_t mutex; /* held while a fork is made */
    pthread_cond_t changed;
    uv_async_t wake;
    struct kith_driver *driver; /* NULL: no loop */
    bool is_wanted;             /* a fork waits for the loop */
    bool rests;                 /* no callback of the loop's is under way */
};

enum kith_err kith_fork_gate_open(struct kith_fork_gate **out)
{
    struct kith_fork_gate *gate = calloc(1, sizeof *gate);
    if (gate == NULL)
        return KITH_ENOMEM;
    pthread_mutex_init(&gate->mutex, NULL);
    pthread_cond_init(&gate->changed, NULL);
    gate->rests = true;
    *out = gate;
    return KITH_OK;
}

void kith_fork_gate_close(struct kith_fork_gate *gate)
{
    if (gate == NULL)
        return;
    KITH_ASSERT(gate->driver == NULL);
    pthread_cond_destroy(&gate->changed);
    pthread_mutex_destroy(&gate->mutex);
    free(gate);
}

/* ---- the loop thread */

void kith_fork_gate_rest(struct kith_fork_gate *gate)
{
    pthread_mutex_lock(&gate->mutex);
    gate->rests = true;
    pthread_cond_broadcast(&gate->changed);
    pthread_mutex_unlock(&gate->mutex);
}

void kith_fork_gate_resume(struct kith_fork_gate *gate)
{
    pthread_mutex_lock(&gate->mutex);
    while (gate->is_wanted)
        pthread_cond_wait(&gate->changed, &gate->mutex);
    gate->rests = gate->driver == NULL;
    pthread_mutex_unlock(&gate->mutex);
}

static void woken(uv_async_t *async)
{
    struct kith_fork_gate *gate = async->data;
    kith_fork_gate_rest(gate);
    kith_fork_gate_resume(gate);
}

enum kith_err kith_fork_loop_begin(struct kith_fork_gate *gate,
                                   struct kith_driver *driver)
{
    if (gate == NULL)
        return KITH_OK;
    if (uv_async_init(&driver->loop, &gate->wake, woken) != 0)
        return KITH_ENOMEM;
    gate->wake.data = gate;
    pthread_mutex_lock(&gate->mutex);
    gate->driver = driver;
    gate->rests = false;
    pthread_mutex_unlock(&gate->mutex);
    return KITH_OK;
}

void kith_fork_loop_end(struct kith_fork_gate *gate)
{
    if (gate == NULL || gate->driver == NULL)
        return;
    pthread_mutex_lock(&gate->mutex);
    gate->driver = NULL;
    gate->rests = true;
    pthread_cond_broadcast(&gate->changed);
    pthread_mutex_unlock(&gate->mutex);
    uv_close((uv_handle_t *)&gate->wake, NULL);
}

/* ---- who forks */

void kith_fork_gate_hold(struct kith_fork_gate *gate)
{
    pthread_mutex_lock(&gate->mutex);
    gate->is_wanted = true;
    if (!gate->rests)
        (void)uv_async_send(&gate->wake);
    while (!gate->rests)
        pthread_cond_wait(&gate->changed, &gate->mutex);
}

void kith_fork_gate_release(struct kith_fork_gate *gate)
{
    gate->is_wanted = false;
    pthread_cond_broadcast(&gate->changed);
    pthread_mutex_unlock(&gate->mutex);
}

/* close(), not uv_close(): what is open stays the parent's, whose epoll set
 * libuv would take it out of. */
static void close_descriptor(uv_handle_t *handle, void *unused)
{
    uv_os_fd_t fd;
    (void)unused;
    if (!uv_is_closing(handle) && uv_fileno(handle, &fd) == 0)
        (void)close(fd);
}

void kith_fork_gate_forget(struct kith_fork_gate *gate)
{
    struct kith_driver *driver = gate->driver;
    if (driver == NULL)
        return;
    struct kith_transport *transport = &driver->transport;
    uv_walk(&driver->loop, close_descriptor, NULL);
    (void)close(uv_backend_fd(&driver->loop));
    for (struct kith_link *link = transport->links; link != NULL;
         link = link->next)
        if (link->session != NULL)
            kith_session_close(link->session);
    sodium_memzero(transport->secret, sizeof transport->secret);
    sodium_memzero(&transport->identity, sizeof transport->identity);
}
