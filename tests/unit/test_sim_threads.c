/* Goal: each share of a loop is run once, by a thread that is there; what one
 * peer's pages forget is no other's. Method: all numbers of shares, with
 * threads and where none can be had; a region of pages in the midst of others.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <errno.h>
#include <pthread.h>
#include <string.h>

#include "kith/sim.h"
#include "sim/huge_pages.h"
#include "sim/threads.h"

static unsigned refused_from = SIM_THREADS_MAX; /* this share's, and later */
static unsigned asked;

int __real_pthread_create(pthread_t *thread, const pthread_attr_t *attributes,
                          void *(*start)(void *argument), void *argument);
int __wrap_pthread_create(pthread_t *thread, const pthread_attr_t *attributes,
                          void *(*start)(void *argument), void *argument);
int __wrap_pthread_create(pthread_t *thread, const pthread_attr_t *attributes,
                          void *(*start)(void *argument), void *argument)
{
    return ++asked >= refused_from
               ? EAGAIN
               : __real_pthread_create(thread, attributes, start, argument);
}

struct ran {
    unsigned times;
    pthread_t by;
};

static void run(void *context, unsigned i)
{
    struct ran *const ran = (struct ran *)context + i;
    ran->times++;
    ran->by = pthread_self();
}

static void check(unsigned shares, unsigned from)
{
    struct ran ran[SIM_THREADS_MAX + 1];
    memset(ran, 0, sizeof ran);
    asked = 0;
    refused_from = from;
    sim_share_out(shares, run, ran);
    for (unsigned i = 0; i <= SIM_THREADS_MAX; i++) {
        assert_int_equal(ran[i].times, i < shares);
        if (i < shares)
            assert_true((pthread_equal(ran[i].by, pthread_self()) != 0) ==
                        (i == 0 || i >= from));
    }
}

static void test_each_once(void **state)
{
    (void)state;
    for (unsigned shares = 0; shares <= SIM_THREADS_MAX; shares++)
        check(shares, SIM_THREADS_MAX);
    for (unsigned from = 1; from <= 8; from++)
        check(8, from);
}

static void test_forgets_its_own(void **state)
{
    (void)state;
    enum { REGIONS = 5 };
    const size_t each = sim_pages_small(12345);
    assert_true(each >= 12345 && each % sim_pages_small(1) == 0);
    char *const pages = sim_pages_sparse(REGIONS * each);
    assert_non_null(pages);
    for (size_t i = 0; i < REGIONS * each; i++)
        assert_int_equal(pages[i], 0);
    memset(pages, 1, REGIONS * each);
    assert_true(sim_pages_forget(pages + 2 * each, each));
    for (size_t i = 0; i < REGIONS * each; i++)
        assert_int_equal(pages[i], i / each != 2);
    sim_pages_sparse_free(pages, REGIONS * each);
    sim_pages_sparse_free(NULL, each);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_each_once),
        cmocka_unit_test(test_forgets_its_own),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
