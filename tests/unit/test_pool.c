/* Goal: every part of a loop runs once, whatever runs beside it. Method: loops
 * of many sizes on one to five threads, loops within loops, from several
 * threads at once, and in forked children. */
#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#include "src/training/backend/pool.h"

enum { PARTS_MAX = 200, CALLERS = 4, ROUNDS = 300 };

/* What one loop did; without a lock, since no part runs twice. */
struct loop {
    int done[PARTS_MAX];
    size_t inner; /* parts of a loop within each part */
};

static void inner_part(void *context, size_t i)
{
    ((int *)context)[i]++;
}

static void part(void *context, size_t i)
{
    struct loop *loop = context;
    int inner[PARTS_MAX] = {0};
    kith_pool_run(loop->inner, inner_part, inner);
    for (size_t k = 0; k < loop->inner; k++)
        loop->done[i] += inner[k] - 1;
    loop->done[i]++;
}

/* 0: every part of a loop of `count` was done once. */
static int run(size_t count, size_t inner)
{
    struct loop loop = {.inner = inner};
    kith_pool_run(count, part, &loop);
    for (size_t i = 0; i < PARTS_MAX; i++)
        if (loop.done[i] != (i < count))
            return 1;
    return 0;
}

static void test_parts(void **state)
{
    (void)state;
    assert_int_equal(kith_pool_threads(), 1);
    for (unsigned threads = 1; threads <= 5; threads++) {
        kith_pool_set(threads);
        assert_int_equal(kith_pool_threads(), threads);
        for (size_t count = 0; count < 40; count++)
            assert_int_equal(run(count, 0), 0);
        for (int round = 0; round < ROUNDS; round++)
            assert_int_equal(run(PARTS_MAX, 0), 0);
    }
    kith_pool_set(1u << 20);
    assert_int_equal(kith_pool_threads(), KITH_POOL_THREADS_MAX);
    kith_pool_set(2);
}

static void test_nested(void **state)
{
    (void)state;
    for (unsigned threads = 1; threads <= 3; threads++) {
        kith_pool_set(threads);
        assert_int_equal(run(20, 30), 0);
    }
}

static void *caller(void *failures)
{
    for (int round = 0; round < ROUNDS; round++)
        *(int *)failures += run(17, 0);
    return NULL;
}

static void test_callers(void **state)
{
    (void)state;
    pthread_t threads[CALLERS];
    int failures[CALLERS] = {0};
    kith_pool_set(3);
    for (int i = 0; i < CALLERS; i++)
        assert_int_equal(
            pthread_create(&threads[i], NULL, caller, &failures[i]), 0);
    for (int i = 0; i < CALLERS; i++) {
        pthread_join(threads[i], NULL);
        assert_int_equal(failures[i], 0);
    }
}

/* Workers that slept are woken again. */
static void test_sleepers(void **state)
{
    (void)state;
    kith_pool_set(3);
    for (int round = 0; round < 20; round++) {
        usleep(2000);
        assert_int_equal(run(64, 0), 0);
    }
}

static void test_forks(void **state)
{
    (void)state;
#ifdef __SANITIZE_THREAD__
    skip(); /* It refuses threads in the child of a process with threads. */
#endif
    kith_pool_set(3);
    assert_int_equal(run(64, 0), 0);
    for (int round = 0; round < 5; round++) {
        const pid_t child = fork();
        assert_true(child >= 0);
        if (child == 0)
            _exit(run(64, 0) + run(64, 3));
        assert_int_equal(run(64, 0), 0);
        int status;
        assert_int_equal(waitpid(child, &status, 0), child);
        assert_true(WIFEXITED(status) && WEXITSTATUS(status) == 0);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_parts),   cmocka_unit_test(test_nested),
        cmocka_unit_test(test_callers), cmocka_unit_test(test_sleepers),
        cmocka_unit_test(test_forks),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
