/* Goal: a model's name in HELLO that could write fields or lines of its own
 * into a log is refused before anything of it is shown; the instance in HELLO
 * is one process's, and one pair's.
 * Method: two sessions joined by memory, one of them lying. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>
#include <cmocka.h>

#include "tests/support/sessions.h"

static struct sessions pair;

/* Connects with this name at end `from`; the other end's error. */
static enum kith_err say(int from, const char *model)
{
    static uint32_t run = 1;
    sessions_setup(&pair, KITH_SUITE_CHACHAPOLY, NULL, run++);
    snprintf(pair.ends[from].config.hello.model, KITH_NAME_MAX, "%s", model);
    assert_true(sessions_start(&pair));
    (void)sessions_connect(&pair);
    return pair.ends[1 - from].error;
}

static void names_that_lie(void **state)
{
    static const char *const names[] = {
        "mlp\" kind=auth address=\"192.0.2.1",
        "mlp\nconnected rank=0",
        "mlp ",
        "mlp\x1b[2J",
        "mlp\x80",
        "../mlp",
        "a=b",
    };
    (void)state;
    for (size_t i = 0; i < sizeof names / sizeof *names; i++)
        for (int from = 0; from < 2; from++) {
            assert_int_equal(KITH_EPARSE, say(from, names[i]));
            assert_string_equal(
                "first record is not a HELLO",
                kith_session_reason(pair.ends[1 - from].session));
            sessions_close(&pair);
        }
}

static void other_names_are_named(void **state)
{
    (void)state;
    assert_int_equal(KITH_EMISMATCH, say(0, "other-model_2.1"));
    assert_string_equal("model differs: peer has other-model_2.1, we have mlp",
                        kith_session_reason(pair.ends[1].session));
    sessions_close(&pair);
    assert_int_equal(KITH_EMISMATCH, say(1, ""));
    sessions_close(&pair);
    assert_int_equal(KITH_OK, say(1, "mlp"));
    assert_true(kith_session_is_open(pair.ends[0].session));
    sessions_close(&pair);
}

/* What Alice shows, at this end of a session. */
static uint32_t instance(int of, uint8_t secret, const char *to)
{
    static uint32_t run = 100;
    sessions_setup(&pair, KITH_SUITE_CHACHAPOLY, NULL, run++);
    pair.ends[of].config.secret[31] = secret;
    sessions_identity(&pair.ends[of].identity, "alice", &pair.cluster);
    sessions_identity(&pair.ends[1 - of].identity, to, &pair.cluster);
    assert_true(sessions_start(&pair));
    assert_true(sessions_connect(&pair));
    const uint32_t shown =
        kith_session_peer_hello(pair.ends[1 - of].session)->instance;
    sessions_close(&pair);
    return shown;
}

static void one_instance_a_process_and_peer(void **state)
{
    const uint32_t alice = instance(0, 1, "bob");
    (void)state;
    assert_true(alice == instance(1, 1, "bob")); /* whoever dials */
    assert_true(alice != instance(0, 2, "bob"));
    assert_true(alice != instance(0, 1, "carol"));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(names_that_lie),
        cmocka_unit_test(other_names_are_named),
        cmocka_unit_test(one_instance_a_process_and_peer),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
