/* Goal: what is shown to a pool's threads is looked at once or not at all, and
 * by nobody once it has been withdrawn. Method: more of it than the ring holds,
 * on two to four threads, withdrawn in the order of showing and backwards, at
 * once and late; and what was withdrawn is taken for another's at once. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <sched.h>
#include <string.h>
#include <unistd.h>

#include "sim/work_pool.h"

enum { SIGHTS = 3 * SIM_SIGHTS_MAX, ROUNDS = 20, WAIT_MS = 60000 };

/* Without a lock: of whoever looks, and, once it is withdrawn, of the test. */
struct sight {
    unsigned looks;
    uint32_t place; /* 0: withdrawn */
};
static struct sight sights[SIGHTS];
static int owner;

static void look(const void *whose, void *sight)
{
    struct sight *const seen = sight;
    (void)sched_yield();
    seen->looks += whose == &owner ? 1 : 2;
}

static void open_pool(struct sim_work_pool *pool, uint64_t *counts,
                      unsigned threads)
{
    memset(pool, 0, sizeof *pool);
    memset(sights, 0, sizeof sights);
    pool->look = look;
    pool->owner = &owner;
    pool->counts = counts;
    pool->count = threads;
    sim_work_pool_open(pool);
}

static void withdraw(struct sim_work_pool *pool, struct sight *sight)
{
    if (sight->place != 0)
        sim_work_pool_withdraw(pool, sight, sight->place);
    sight->place = 0;
    const unsigned looks = sight->looks;
    sight->looks = 0;
    (void)sched_yield();
    assert_true(looks <= 1);
    assert_int_equal(sight->looks, 0);
}

static unsigned show_all(struct sim_work_pool *pool, size_t count)
{
    unsigned shown = 0;
    for (size_t i = 0; i < count; i++) {
        assert_int_equal(sights[i].place, 0);
        sights[i].place = sim_work_pool_show(pool, &sights[i]);
        shown += sights[i].place != 0;
    }
    return shown;
}

static void test_once_or_not_at_all(void **state)
{
    (void)state;
    for (unsigned threads = 2; threads <= 4; threads++) {
        /* A test that fails leaves its threads to it. */
        static struct sim_work_pool pool;
        static uint64_t counts[4];
        open_pool(&pool, counts, threads);
        assert_true(sim_work_pool_start(&pool));
        for (unsigned round = 0; round < ROUNDS; round++) {
            assert_true(show_all(&pool, SIGHTS) >= SIM_SIGHTS_MAX);
            if (round % 3 == 1)
                (void)sched_yield();
            for (size_t i = 0; i < SIGHTS; i++)
                withdraw(&pool, &sights[round % 2 == 0 ? i : SIGHTS - 1 - i]);
        }
        for (size_t i = 0; i < ROUNDS * SIGHTS; i++) {
            struct sight *const one = &sights[i % 7];
            one->place = sim_work_pool_show(&pool, one);
            withdraw(&pool, one);
        }
        sim_work_pool_close(&pool);
    }
}

/* Threads that have not begun look at nothing: the ring is full of what waits,
 * and empty of what was withdrawn. */
static void test_room(void **state)
{
    (void)state;
    static struct sim_work_pool pool;
    static uint64_t counts[2];
    open_pool(&pool, counts, 2);
    for (unsigned round = 0; round < ROUNDS; round++) {
        assert_int_equal(show_all(&pool, SIGHTS), SIM_SIGHTS_MAX);
        for (size_t i = 1; i < SIGHTS; i++)
            withdraw(&pool, &sights[i]);
        /* The first, which waits, holds the rest back. */
        sights[1].place = sim_work_pool_show(&pool, &sights[1]);
        assert_int_equal(sights[1].place, 0);
        withdraw(&pool, &sights[0]);
    }
    sim_work_pool_close(&pool);
}

/* What nobody has withdrawn is seen by somebody who has nothing else to do. */
static void test_somebody_looks(void **state)
{
    (void)state;
    static struct sim_work_pool pool;
    static uint64_t counts[2];
    open_pool(&pool, counts, 2);
    assert_int_equal(show_all(&pool, SIM_SIGHTS_MAX), SIM_SIGHTS_MAX);
    assert_true(sim_work_pool_start(&pool));
    bool all = false;
    for (unsigned i = 0; i < WAIT_MS && !all; i++) {
        pthread_mutex_lock(&pool.lock);
        all = pool.sight == pool.sights_end && pool.looking[1] == NULL;
        pthread_mutex_unlock(&pool.lock);
        usleep(1000);
    }
    assert_true(all);
    for (size_t i = 0; i < SIM_SIGHTS_MAX; i++)
        assert_int_equal(sights[i].looks, 1);
    sim_work_pool_close(&pool);
}

/* As somebody has looked at it, its place is another's when it is withdrawn. */
static void test_place_of_another(void **state)
{
    (void)state;
    static struct sim_work_pool pool;
    static uint64_t counts[2];
    open_pool(&pool, counts, 2);
    assert_int_equal(show_all(&pool, 1), 1);
    pool.sights[sights[0].place - 1] = NULL; /* a thread has */
    for (size_t i = 1; i <= SIM_SIGHTS_MAX; i++)
        sights[i].place = sim_work_pool_show(&pool, &sights[i]);
    assert_int_equal(sights[SIM_SIGHTS_MAX].place, sights[0].place);
    withdraw(&pool, &sights[0]);
    assert_ptr_equal(pool.sights[sights[SIM_SIGHTS_MAX].place - 1],
                     &sights[SIM_SIGHTS_MAX]);
    sim_work_pool_close(&pool);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_once_or_not_at_all),
        cmocka_unit_test(test_room),
        cmocka_unit_test(test_somebody_looks),
        cmocka_unit_test(test_place_of_another),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
