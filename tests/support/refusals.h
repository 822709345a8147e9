/* A pair of sessions of which one is to refuse the other. Included by the tests
 * of refusals; the state is theirs. */
#ifndef KITH_TESTS_REFUSALS_H
#define KITH_TESTS_REFUSALS_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "tests/support/sessions.h"

static struct sessions pair;
static uint8_t wire[KITH_PREAUTH_BYTES];

static inline void begin(enum kith_suite suite)
{
    static uint32_t run = 100;
    sessions_setup(&pair, suite, NULL, run++);
}

static inline void good_again(void)
{
    begin(KITH_SUITE_CHACHAPOLY);
    assert_true(sessions_start(&pair));
    assert_true(sessions_connect(&pair));
    sessions_close(&pair);
}

/* Ends the pair: `end` refused so. */
static inline void refused(int end, enum kith_err error, const char *reason)
{
    const struct sessions_end *e = &pair.ends[end];
    assert_false(kith_session_is_open(e->session));
    assert_string_equal(reason, kith_session_reason(e->session));
    assert_int_equal(error, e->error);
    sessions_close(&pair);
    good_again();
}

static inline size_t output_of(int end)
{
    return kith_session_output(pair.ends[end].session, wire, sizeof wire);
}

#endif
