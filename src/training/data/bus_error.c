/* Reading mapped files that somebody may shrink, or whose disk may fail: the
 * system answers the first touch of a page that it cannot give with SIGBUS.
 * What reads runs under a guard; there the signal is a jump back to it,
 * anywhere else it means what it always has.
 *
 * Refused: reading each example with pread. It costs a system call per example
 * (0.9 us against 0.02 us for 784 bytes), and a descriptor per shard that has
 * to outlive a fork. */
#include "data_files.h"

#include <pthread.h>
#include <setjmp.h>
#include <signal.h>

/* A shared library's, too: libkith. */
static __attribute__((tls_model(
    "initial-exec"))) _Thread_local sigjmp_buf *landing; /* NULL: no guard */
static __attribute__((
    tls_model("initial-exec"))) _Thread_local const void *volatile missing;
static struct sigaction before;

static void on_missing(int number, siginfo_t *about, void *context)
{
    (void)context;
    const bool sent = about->si_code <= 0; /* by kill: there is no address */
    if (landing == NULL || sent) { /* Not ours: it means what it has meant. */
        (void)sigaction(number, &before, NULL);
        if (sent) /* A fault comes once more by itself. */
            (void)raise(number);
        return;
    }
    missing = about->si_addr;
    siglongjmp(*landing, 1);
}

static void catch_missing(void)
{
    struct sigaction action = {.sa_sigaction = on_missing,
                               .sa_flags = SA_SIGINFO | SA_NODEFER};
    (void)sigemptyset(&action.sa_mask);
    (void)sigaction(SIGBUS, &action, &before);
}

/* A fault that its thread has blocked ends the process. */
static void unblock(void)
{
    static pthread_once_t once = PTHREAD_ONCE_INIT;
    static __attribute__((tls_model("initial-exec"))) _Thread_local bool done;
    sigset_t one;
    (void)pthread_once(&once, catch_missing);
    if (done)
        return;
    (void)sigemptyset(&one);
    (void)sigaddset(&one, SIGBUS);
    (void)pthread_sigmask(SIG_UNBLOCK, &one, NULL);
    done = true;
}

bool kith_data_guard(void (*read)(void *), void *argument, const void **where)
{
    sigjmp_buf here;
    sigjmp_buf *const outer = landing;
    unblock();
    if (sigsetjmp(here, 0) != 0) {
        landing = outer;
        *where = missing;
        return false;
    }
    landing = &here;
    read(argument);
    landing = outer;
    return true;
}
