/* What adpsgd costs a step: a snapshot of all weights, float32, every ten
 * steps, and the merge of a neighbour's answer at a step's end once it has
 * come. The neighbour is a thread that answers from the host's memory with
 * weights of its own; the way between two machines is not in it. A round
 * without a merge is a failure, for it would cost nothing. */
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "bench_gpu.h"
#include "trainer.h"

enum { EVERY = 10, ROUNDS_MAX = 3, LATE_MS = 5000 };

struct neighbour {
    const struct kith_backend *on;
    size_t n;
    float *sent, *own, *inbox; /* (n) shared */
    atomic_uint asked, answered;
    atomic_bool stop;
    bool mute; /* GPU_MUTE=1: never answers, to show that this is noticed */
};

/* Waits for the snapshot as a transport does before it sends, then lets the
 * device have the answer. */
static void *answer(void *argument)
{
    struct neighbour *const n = argument;
    const struct timespec nap = {0, 50000};
    while (!atomic_load(&n->stop)) {
        if (n->mute || atomic_load(&n->asked) == atomic_load(&n->answered)) {
            (void)nanosleep(&nap, NULL);
            continue;
        }
        (void)n->on->settled(n->sent, true);
        memcpy(n->inbox, n->own, n->n * sizeof(float));
        n->on->arrived(n->inbox, n->n * sizeof(float));
        (void)atomic_fetch_add(&n->answered, 1);
    }
    return NULL;
}

struct round {
    double seconds;
    unsigned asked, merged, moved; /* moved: merges that changed x */
};

static void merge(struct trainer *t, struct neighbour *n, struct round *r)
{
    r->merged++;
    r->moved += t->on->mix(n->n, 0.5, n->inbox, n->sent, t->x) != 0;
}

/* `steps` steps; with a neighbour, an exchange every ten of them. */
static struct round round_of(struct trainer *t, struct neighbour *n,
                             unsigned steps)
{
    struct round r = {0};
    const double start = now();
    for (unsigned i = 0; i < steps; i++) {
        if (n != NULL && i % EVERY == 0 && r.merged == r.asked) {
            t->on->copy(n->n, n->sent, t->x);
            r.asked++;
            (void)atomic_fetch_add(&n->asked, 1);
        }
        trainer_step(t);
        if (n != NULL && r.merged < r.asked &&
            atomic_load(&n->answered) == atomic_load(&n->asked))
            merge(t, n, &r);
    }
    finish(t->on);
    r.seconds = now() - start;
    /* One that came too late is no part of the round. */
    for (int i = 0; n != NULL && !n->mute && i < LATE_MS &&
                    atomic_load(&n->answered) != atomic_load(&n->asked);
         i++)
        (void)nanosleep(&(struct timespec){0, 1000000}, NULL);
    return r;
}

/* Of one or of three. */
static double median(const double *v, unsigned count)
{
    if (count == 1)
        return v[0];
    const double low = v[0] < v[1] ? v[0] : v[1];
    const double high = v[0] < v[1] ? v[1] : v[0];
    return v[2] < low ? low : v[2] > high ? high : v[2];
}

static void measure(struct trainer *t, struct neighbour *n, const char *name,
                    unsigned steps, unsigned rounds)
{
    char text[160];
    double cost[ROUNDS_MAX], alone = 0;
    unsigned asked = 0, merged = 0, moved = 0;
    (void)round_of(t, n, EVERY);
    for (unsigned i = 0; i < rounds; i++) {
        const struct round without = round_of(t, NULL, steps);
        const struct round with = round_of(t, n, steps);
        cost[i] = with.seconds / without.seconds - 1;
        alone += without.seconds / rounds;
        asked += with.asked;
        merged += with.merged;
        moved += with.moved;
    }
    (void)snprintf(text, sizeof text, "%s, merges", name);
    char of[96];
    (void)snprintf(of, sizeof of, "of %u snapshots, %.2f ms a step alone",
                   asked, 1e3 * alone / steps);
    if (moved == 0 || moved < merged) {
        row_failed(text, moved == 0 ? "no merge took place"
                                    : "a merge changed nothing");
        return;
    }
    row(text, merged, "", of, merged == asked ? VERDICT_OK : VERDICT_MISSED);
    (void)snprintf(text, sizeof text, "%s, share of a step", name);
    row_target(text, median(cost, rounds), "", '<', 0.02);
}

static bool neighbour_open(struct neighbour *n, const struct trainer *t)
{
    const size_t bytes = t->layout->gossiped * sizeof(float);
    const double *const start = trainer_start(t);
    const char *const mute = getenv("GPU_MUTE");
    *n = (struct neighbour){.on = t->on,
                            .n = t->layout->gossiped,
                            .mute = mute != NULL && *mute == '1'};
    n->sent = t->on->alloc(bytes, true);
    n->own = t->on->alloc(bytes, true);
    n->inbox = t->on->alloc(bytes, true);
    if (n->sent == NULL || n->own == NULL || n->inbox == NULL)
        return false;
    for (size_t i = 0; i < n->n; i++)
        n->own[i] = (float)start[i];
    return true;
}

static void neighbour_close(struct neighbour *n)
{
    n->on->release(n->sent);
    n->on->release(n->own);
    n->on->release(n->inbox);
}

static void adpsgd(const struct machine *m, const struct kith_backend *on)
{
    struct trainer t;
    struct neighbour n;
    pthread_t thread;
    char name[96], why[KITH_MODEL_ERROR_BYTES];
    const size_t rows = m->tiny ? 1 : on == m->half ? 16 : 8;
    const struct training what = {on, "gpt", "adamw",
                                  trainer_gpt(m, m->tiny ? 72 : 50304), rows};
    if (!trainer_open(&t, &what, why)) {
        row_failed(on->name, why);
        return;
    }
    (void)snprintf(name, sizeof name, "%s, adpsgd, float32, %zu values",
                   on->name, t.layout->gossiped);
    if (!trainer_tokens(&t, rows, &what.config) || !neighbour_open(&n, &t))
        row_failed(name, "no memory");
    else if (pthread_create(&thread, NULL, answer, &n) != 0)
        row_failed(name, "no thread");
    else {
        measure(&t, &n, name, m->tiny ? EVERY : 5 * EVERY,
                m->tiny ? 1 : ROUNDS_MAX);
        atomic_store(&n.stop, true);
        (void)pthread_join(thread, NULL);
        neighbour_close(&n);
    }
    trainer_close(&t);
}

void bench_exchange(const struct machine *m)
{
    adpsgd(m, m->half != NULL ? m->half : m->single);
    row("sparta", 0, "",
        "left out: refused on CUDA until it gathers in one kernel; adpsgd",
        VERDICT_INFO);
}
