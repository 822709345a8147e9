/* Shares of a loop on threads. See threads.h. */
#include "sim/threads.h"

#include <pthread.h>
#include <stdbool.h>

#include "kith/assert.h"
#include "kith/sim.h"

struct share {
    void (*run)(void *context, unsigned i);
    void *context;
    unsigned i;
};

static void *thread_main(void *argument)
{
    const struct share *share = argument;
    KITH_ASSERT(share->i > 0);
    share->run(share->context, share->i);
    return NULL;
}

void sim_share_out(unsigned shares, void (*share)(void *context, unsigned i),
                   void *context)
{
    pthread_t threads[SIM_THREADS_MAX];
    bool started[SIM_THREADS_MAX] = {false};
    struct share each[SIM_THREADS_MAX];
    KITH_ASSERT(shares <= SIM_THREADS_MAX);
    for (unsigned i = 1; i < shares; i++) {
        each[i] = (struct share){.run = share, .context = context, .i = i};
        started[i] =
            pthread_create(&threads[i], NULL, thread_main, &each[i]) == 0;
    }
    for (unsigned i = 0; i < shares; i++)
        if (started[i])
            (void)pthread_join(threads[i], NULL);
        else
            share(context, i);
}
