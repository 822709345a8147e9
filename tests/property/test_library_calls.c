/* Goal: no order of calls, no argument and no second thread makes libkith do
 * anything but what kith.h says: what is wrong is an error with words, what is
 * right goes on, memory is left alone (the sanitizers say so).
 *
 * Method: random calls on a few handles that are open, closed, NULL or none at
 * all, of two peers that are each other's neighbours, first from one thread,
 * whose answers are then known, and then from two. KITH_CALLS: how many (10,000
 * unless told); KITH_SEED. */
#include <inttypes.h>
#include <math.h>
#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "kith/kith.h"
#include "kith/rng.h"
#include "tests/support/library_files.h"

enum { PEERS = LIBRARY_PEERS, DIM = 100, HANDLES = 4, STEPS = 40 };

static struct library_files files;
static float values[HANDLES][DIM];
static uint16_t halves[HANDLES][DIM];

static int set_up(void **state)
{
    (void)state;
    library_files_make(&files, DIM, STEPS);
    library_files_write(&files, "broken.yaml", "experiment: [\n");
    return 0;
}

static int tear_down(void **state)
{
    (void)state;
    library_files_remove(&files);
    return 0;
}

/* ---- random calls */

struct caller {
    struct kith_rng rng;
    bool is_alone; /* its answers are known */
    uint64_t calls, failed;
};
static _Atomic(kith_peer *) handles[HANDLES]; /* open, closed or none */
static atomic_bool is_open[HANDLES];
static atomic_bool has_saved[PEERS]; /* a file that kith_load() takes */

static uint32_t draw(struct caller *caller, uint32_t below)
{
    return kith_rng_below(&caller->rng, below);
}

/* A handle that was closed is open again where a new one has its address. */
static bool is_any_open(const kith_peer *peer)
{
    for (unsigned i = 0; i < HANDLES; i++)
        if (is_open[i] && handles[i] == peer)
            return true;
    return false;
}

static void log_line(void *user, const char *line)
{
    (void)user;
    assert_true(strlen(line) > 0);
}

static const char *save_of(unsigned at)
{
    static char paths[PEERS][256];
    char *path = paths[at % PEERS];
    (void)snprintf(path, sizeof *paths, "%s/own-%u", files.folder, at % PEERS);
    return path;
}

/* At least one thing is wrong, unless `right`. */
static kith_peer *open_one(struct caller *caller, unsigned at, bool right,
                           char *error, size_t size)
{
    static const char *const wrong[] = {"broken.yaml", "none.yaml", "run.yaml"};
    char path[256];
    struct kith_vector vectors[2] = {
        {values[at], DIM - 10, KITH_FLOAT32, 0},
        {halves[at], 10, KITH_FLOAT16 - draw(caller, 2), 0}};
    struct {
        struct kith_options options;
        char later[100];
    } wide = {.options = {sizeof wide, draw(caller, 3),
                          draw(caller, 2) ? log_line : NULL, NULL}};
    struct kith_options *options = draw(caller, 2) ? &wide.options : NULL;
    const struct kith_vector *given = vectors;
    uint32_t count = 2;
    (void)snprintf(path, sizeof path, "%s/peer-%u.yaml", files.folder,
                   at % PEERS);
    const char *file = path;
    if (draw(caller, 2))
        wide.options.size = (uint32_t[]){0, 4, 8, 24}[draw(caller, 4)];
    switch (right ? 10 : draw(caller, 10)) {
    case 0:
        file = NULL;
        break;
    case 1:
        given = NULL;
        break;
    case 2:
        count = draw(caller, 2) ? 0 : UINT32_MAX - draw(caller, 3);
        break;
    case 3:
        vectors[draw(caller, 2)].data = NULL;
        break;
    case 4:
        vectors[draw(caller, 2)].dtype = 3 + draw(caller, 9);
        break;
    case 5:
        vectors[0].count = UINT64_MAX - draw(caller, 200);
        break;
    case 6:
        vectors[1].count -= 1 + draw(caller, 10);
        break;
    case 7:
        wide.options.start = 3 + draw(caller, 9);
        wide.options.size = sizeof wide;
        options = &wide.options;
        break;
    case 8:
        (void)snprintf(path, sizeof path, "%s/%s", files.folder,
                       wrong[draw(caller, 3)]);
        break;
    case 9: /* of a device, where the experiment computes on the host */
        wide.options.memory = 1 + draw(caller, 9);
        wide.options.size = sizeof wide;
        options = &wide.options;
        break;
    default:
        break;
    }
    if (!right || !has_saved[at % PEERS] || draw(caller, 2))
        return kith_open(file, given, count, options, error, size);
    return kith_load(file, save_of(at), given, count, options, error, size);
}

static void try_open(struct caller *caller, unsigned at)
{
    char error[300] = "";
    char *words = draw(caller, 4) ? error : NULL;
    const size_t size = draw(caller, 4) ? sizeof error : draw(caller, 3);
    const bool right = draw(caller, 2);
    bool is_taken = false; /* its port */
    for (unsigned i = at % PEERS; i < HANDLES; i += PEERS)
        is_taken = is_taken || is_open[i];
    kith_peer *peer = open_one(caller, at, right, words, size);
    if (words != NULL && size > 0)
        assert_true(memchr(error, 0, size) != NULL);
    if (peer == NULL) {
        caller->failed++;
        assert_true(!caller->is_alone || !right || is_taken);
        if (words != NULL && size > 1)
            assert_true(error[0] != '\0');
        return;
    }
    assert_true(right && (!caller->is_alone || !is_taken));
    if (is_open[at]) { /* the other thread was faster */
        (void)kith_close(peer, NULL, 0);
        return;
    }
    handles[at] = peer;
    is_open[at] = true;
}

static void try_close(struct caller *caller, unsigned at, kith_peer *peer)
{
    char error[300] = "";
    const bool was_open = is_any_open(peer);
    const size_t size = draw(caller, 4) ? sizeof error : draw(caller, 3);
    char *words = draw(caller, 4) ? error : NULL;
    const int said = kith_close(peer, words, size);
    assert_true(said == 0 || said == KITH_FAILED);
    if (caller->is_alone)
        assert_int_equal(said, was_open || peer == NULL ? 0 : KITH_FAILED);
    if (said == KITH_FAILED && words != NULL && size == sizeof error)
        assert_true(error[0] != '\0');
    caller->failed += said != 0;
    if (peer == handles[at])
        is_open[at] = false;
    for (unsigned i = 0; i < HANDLES && caller->is_alone; i++)
        if (handles[i] == peer)
            is_open[i] = false;
}

static int try_save(struct caller *caller, unsigned at, kith_peer *peer)
{
    char error[300] = "";
    const bool right = draw(caller, 2), is_alive = is_any_open(peer);
    /* A closed handle's address may be another's by now. */
    const bool is_own = is_open[at] && peer == handles[at];
    const char *path = draw(caller, 2) ? "" : NULL;
    if (right)
        path = is_own || !caller->is_alone ? save_of(at) : "/dev/full/none";
    const int said = kith_save(peer, path, 0, draw(caller, 2) ? error : NULL,
                               draw(caller, sizeof error));
    assert_in_range(said + 1, 0, 3);
    if (caller->is_alone && !(right && is_alive && is_own))
        assert_true(said == KITH_FAILED ||
                    (said == KITH_LATE && right && is_alive));
    if (caller->is_alone && said == KITH_GOES_ON)
        has_saved[at % PEERS] = true;
    return said;
}

static void call_one(struct caller *caller)
{
    static kith_peer *const none = (kith_peer *)8;
    const unsigned at = draw(caller, HANDLES);
    const uint32_t what = draw(caller, 1000);
    kith_peer *peer = draw(caller, 50) == 0   ? NULL
                      : draw(caller, 50) == 0 ? none
                                              : handles[at];
    const bool is_alive = is_any_open(peer);
    char json[400];
    int said = 0;
    if (what < 40 && !is_open[at]) {
        try_open(caller, at);
    } else if (what < 46) {
        try_close(caller, at, peer);
    } else if (what < 60) {
        const void *data[] = {values[at], halves[at]};
        said = kith_read_from(peer, draw(caller, 2) ? data : NULL, 2);
        assert_int_equal(said, said == 0 ? 0 : KITH_FAILED);
        if (caller->is_alone)
            assert_int_equal(said, is_alive ? 0 : KITH_FAILED);
        assert_true(!caller->is_alone || is_alive || kith_writes(peer) == 0);
    } else if (what < 64) {
        said = try_save(caller, at, peer);
    } else if (what < 66) {
        said = kith_samples(peer, draw(caller, 2) ? UINT32_MAX : 0);
        assert_int_equal(said, said == 0 ? 0 : KITH_FAILED);
    } else if (what < 70) {
        said = kith_pause(peer, 0);
        assert_in_range(said + 1, 0, 3);
    } else if (what < 100) {
        const size_t size = draw(caller, sizeof json);
        const size_t length =
            kith_stats(peer, draw(caller, 9) ? json : NULL, size);
        assert_true(length < sizeof json);
        assert_true(!caller->is_alone || is_alive || length == 0);
    } else {
        const uint32_t patience_ms = draw(caller, 50) == 0;
        const double loss = (double[]){
            0.5, NAN, INFINITY,
            -1e300}[draw(caller, 300) > 2 ? draw(caller, 2) : draw(caller, 4)];
        said = what < 800 ? kith_step(peer, loss, patience_ms)
                          : kith_wait(peer, patience_ms);
        assert_in_range(said + 1, 0, 3);
        if (caller->is_alone && !is_alive)
            assert_int_equal(said, KITH_FAILED);
        if (caller->is_alone)
            values[at][draw(caller, DIM)] += 0.01f;
    }
    caller->failed += said == KITH_FAILED;
    caller->calls++;
    assert_non_null(kith_version());
}

static uint64_t number(const char *name, uint64_t usual)
{
    const char *text = getenv(name);
    return text == NULL ? usual : strtoull(text, NULL, 10);
}

static void *call_many(void *arg)
{
    struct caller *caller = arg;
    const uint64_t calls = number("KITH_CALLS", 10000);
    while (caller->calls < calls)
        call_one(caller);
    return NULL;
}

static void close_rest(void)
{
    for (unsigned i = 0; i < HANDLES; i++) {
        if (is_open[i])
            (void)kith_close(handles[i], NULL, 0);
        is_open[i] = false;
    }
}

static struct caller caller_of(uint64_t thread, bool is_alone)
{
    struct caller caller = {.is_alone = is_alone};
    kith_rng_init(&caller.rng, number("KITH_SEED", 1), 0, thread);
    return caller;
}

static void test_one_thread(void **state)
{
    (void)state;
    struct caller caller = caller_of(0, true);
    (void)call_many(&caller);
    close_rest();
    printf("one thread: %" PRIu64 " calls, %" PRIu64 " refused\n", caller.calls,
           caller.failed);
    assert_true(caller.failed > 0 && caller.failed < caller.calls);
}

static void test_two_threads(void **state)
{
    (void)state;
    struct caller callers[] = {caller_of(1, false), caller_of(2, false)};
    pthread_t other;
    assert_int_equal(pthread_create(&other, NULL, call_many, &callers[1]), 0);
    (void)call_many(&callers[0]);
    pthread_join(other, NULL);
    close_rest();
    printf("two threads: %" PRIu64 " calls, %" PRIu64 " refused\n",
           callers[0].calls + callers[1].calls,
           callers[0].failed + callers[1].failed);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_one_thread),
        cmocka_unit_test(test_two_threads),
    };
    return cmocka_run_group_tests(tests, set_up, tear_down);
}
