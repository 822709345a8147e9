/* The few calls of cmocka that the CUDA tests make, so that they run where it
 * is not installed: a failure ends its test, all tests run, and one line for
 * each says how it ended. */
#ifndef KITH_BENCH_GPU_CMOCKA_H
#define KITH_BENCH_GPU_CMOCKA_H

#include <setjmp.h>
#include <stdio.h>
#include <string.h>

struct CMUnitTest {
    const char *name;
    void (*run)(void **state);
};
#define cmocka_unit_test(function)                                             \
    {                                                                          \
#function, function                                                    \
    }

__attribute__((weak)) jmp_buf mocka_end; /* one, whoever includes this */
#define fail_msg(...)                                                          \
    (printf("%s:%d: ", __FILE__, __LINE__), printf(__VA_ARGS__), puts(""),     \
     longjmp(mocka_end, 1))
#define skip() longjmp(mocka_end, 2)
#define print_message(...) printf(__VA_ARGS__)
#define assert_true(what) ((what) ? (void)0 : fail_msg("not true: %s", #what))
#define assert_false(what) assert_true(!(what))
#define assert_null(what) assert_true((what) == NULL)
#define assert_non_null(what) assert_true((what) != NULL)
#define assert_ptr_equal(a, b) assert_true((a) == (b))
#define assert_int_equal(a, b) assert_true((a) == (b))
#define assert_memory_equal(a, b, n) assert_true(memcmp(a, b, n) == 0)

#define cmocka_run_group_tests(tests, setup, teardown)                         \
    mocka_run(tests, sizeof tests / sizeof tests[0])
static inline int mocka_run(const struct CMUnitTest *tests, size_t count)
{
    int failed = 0;
    for (volatile size_t i = 0; i < count; i++) {
        printf("[ RUN ] %s\n", tests[i].name);
        (void)fflush(stdout); /* a crash then shows in which */
        const int how = setjmp(mocka_end);
        if (how == 0)
            tests[i].run(NULL);
        printf("[ %s ] %s\n",
               how == 0   ? "OK"
               : how == 1 ? "FAILED"
                          : "SKIPPED",
               tests[i].name);
        failed += how == 1;
    }
    return failed > 0;
}

#endif
