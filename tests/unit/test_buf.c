/* Goal: a buffer is given back exactly once, when its last reference goes.
 * Method: count calls of the release hook. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "kith/buf.h"

static void count_release(struct kith_buf *buf, void *arg)
{
    assert_int_equal(buf->references, 0);
    ++*(int *)arg;
}

static void test_released_once(void **state)
{
    (void)state;
    char bytes[8];
    int released = 0;
    struct kith_buf buf;
    kith_buf_init(&buf, bytes, sizeof bytes, count_release, &released);

    assert_ptr_equal(kith_buf_retain(&buf), &buf);
    kith_buf_release(&buf);
    assert_int_equal(released, 0);
    assert_ptr_equal(buf.data, bytes);

    kith_buf_release(&buf);
    assert_int_equal(released, 1);
}

static void test_null_and_no_hook(void **state)
{
    (void)state;
    struct kith_buf buf;
    kith_buf_init(&buf, NULL, 0, NULL, NULL);

    kith_buf_release(NULL);
    kith_buf_release(&buf);

    assert_int_equal(buf.references, 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_released_once),
        cmocka_unit_test(test_null_and_no_hook),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
