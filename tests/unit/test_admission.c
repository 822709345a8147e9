/* Goal: strangers who come and go at once, so that few are half-open at any
 * time, cannot have more of the processor than its share, and one flooding
 * address cannot have it all.
 * Method: admission is pure; the clock and the sources are ours. Every
 * connection here is over as soon as it was admitted. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>
#include <cmocka.h>
#include <uv.h>

#include "src/peer/half_open.h"

#define PER_S 250u /* the default */

static struct kith_half_open_table halfopen;
static struct kith_peer_limits limits;

static int setup(void **state)
{
    (void)state;
    kith_peer_limits_default(&limits);
    assert_int_equal(PER_S, limits.handshakes_per_s);
    assert_int_equal(KITH_OK, kith_half_open_init(&halfopen, &limits, 3, 7));
    return 0;
}

static int teardown(void **state)
{
    (void)state;
    kith_half_open_close(&halfopen);
    return 0;
}

/* Do they say their first message? */
static bool speaks = true;

/* One handshake from this address, over at once. */
static enum kith_refusal visit(const char *from_text, kith_ns now_ns)
{
    union {
        struct sockaddr any;
        struct sockaddr_in v4;
        struct sockaddr_in6 v6;
    } from;
    uint32_t ticket;
    memset(&from, 0, sizeof from);
    if (uv_ip4_addr(from_text, 9, &from.v4) != 0)
        assert_int_equal(0, uv_ip6_addr(from_text, 9, &from.v6));
    void *evicted;
    const struct kith_half_open_request request = {&from.any, now_ns, &ticket};
    const enum kith_refusal refusal =
        kith_half_open_admit(&halfopen, &request, &ticket, &evicted);
    if (refusal != KITH_REFUSAL_COUNT)
        return refusal;
    const bool paid = !speaks || kith_half_open_pay(&halfopen, ticket, now_ns);
    kith_half_open_release(&halfopen, ticket);
    return paid ? KITH_REFUSAL_COUNT : KITH_REFUSAL_BUDGET;
}

static uint32_t flood(const char *from, uint32_t count, kith_ns now_ns)
{
    uint32_t admitted = 0;
    for (uint32_t i = 0; i < count; i++)
        admitted += visit(from, now_ns) == KITH_REFUSAL_COUNT;
    return admitted;
}

static void one_address_leaves_half_to_the_rest(void **state)
{
    (void)state;
    const uint32_t admitted = flood("192.0.2.1", 10000, KITH_S);
    assert_in_range(admitted, PER_S / 2, PER_S / 2 + limits.handshake_burst);
    assert_int_equal(KITH_REFUSAL_RATE, visit("192.0.2.1", KITH_S));
    assert_int_equal(KITH_REFUSAL_COUNT, visit("198.51.100.7", KITH_S));

    /* A second later, the flood going on: its own rate, and the rest's half. */
    assert_true(flood("192.0.2.1", 10000, 2 * KITH_S) <= PER_S / 2 + 5);
    assert_int_equal(KITH_REFUSAL_COUNT, visit("198.51.100.8", 2 * KITH_S));
}

static void many_addresses_share_the_budget(void **state)
{
    (void)state;
    uint32_t admitted = 0, refused = 0;
    for (uint32_t i = 0; i < 2 * PER_S; i++) {
        char from[32];
        snprintf(from, sizeof from, "10.%u.%u.1", i / 250, i % 250);
        const enum kith_refusal refusal = visit(from, KITH_S);
        admitted += refusal == KITH_REFUSAL_COUNT;
        refused += refusal == KITH_REFUSAL_BUDGET;
    }
    assert_int_equal(PER_S, admitted);
    assert_int_equal(PER_S, refused);

    /* A tenth of a second later a tenth of the budget is there again. */
    assert_int_equal(KITH_REFUSAL_COUNT,
                     visit("203.0.113.1", KITH_S + 100 * KITH_MS));
    for (uint32_t i = 1; i < PER_S / 10; i++) {
        char from[32];
        snprintf(from, sizeof from, "203.0.%u.2", i);
        assert_int_equal(KITH_REFUSAL_COUNT,
                         visit(from, KITH_S + 100 * KITH_MS));
    }
    assert_int_equal(KITH_REFUSAL_BUDGET,
                     visit("203.0.200.3", KITH_S + 100 * KITH_MS));
}

static void live_at(uint32_t member, const char *text)
{
    struct sockaddr_in at;
    assert_int_equal(0, uv_ip4_addr(text, 7117, &at));
    kith_half_open_home(&halfopen, member, (const struct sockaddr *)&at);
}

/* Strangers that use the budget up, each within its own rate, keep no member
 * out; who floods from where one lives has the rate of one address. */
static void members_come_from_where_they_live(void **state)
{
    (void)state;
    live_at(1, "203.0.113.7");
    for (uint32_t i = 0; i < 2 * PER_S; i++) {
        char from[32];
        snprintf(from, sizeof from, "10.%u.%u.1", i / 250, i % 250);
        (void)visit(from, KITH_S);
    }
    assert_int_equal(KITH_REFUSAL_BUDGET, visit("203.0.113.8", KITH_S));
    assert_int_equal(KITH_REFUSAL_COUNT, visit("203.0.113.7", KITH_S));
    assert_int_equal(limits.handshake_burst - 1,
                     flood("203.0.113.7", 1000, KITH_S));
    live_at(1, "203.0.113.8"); /* it has moved */
    assert_int_equal(KITH_REFUSAL_COUNT,
                     visit("203.0.113.8", KITH_S + KITH_MS));
    assert_int_equal(KITH_REFUSAL_RATE, visit("203.0.113.7", KITH_S + KITH_MS));
}

/* Silence takes nothing from those who have something to say. */
static void silence_costs_no_handshakes(void **state)
{
    (void)state;
    speaks = false;
    for (uint32_t i = 0; i < 10 * PER_S; i++) {
        char from[32];
        snprintf(from, sizeof from, "10.%u.%u.1", i / 250, i % 250);
        assert_int_equal(KITH_REFUSAL_COUNT, visit(from, KITH_S));
    }
    speaks = true;
    assert_int_equal(KITH_REFUSAL_COUNT, visit("203.0.113.1", KITH_S));
}

/* One machine has 2^64 addresses or more. */
static void an_ipv6_network_is_one_source(void **state)
{
    (void)state;
    uint32_t admitted = 0;
    for (uint32_t i = 0; i < 4 * PER_S; i++) {
        char from[48];
        snprintf(from, sizeof from, "2001:db8:0:1%02x::%x", i % 256, i);
        admitted += visit(from, KITH_S) == KITH_REFUSAL_COUNT;
    }
    assert_in_range(admitted, PER_S / 2, PER_S / 2 + limits.handshake_burst);
    assert_int_equal(KITH_REFUSAL_COUNT, visit("2001:db8:0:200::1", KITH_S));
}

/* A lab's peers all come from here, at once. */
static void loopback_is_exempt(void **state)
{
    (void)state;
    assert_int_equal(10000, flood("127.0.0.1", 10000, KITH_S));
    assert_int_equal(KITH_REFUSAL_COUNT, visit("192.0.2.1", KITH_S));
    limits.loopback_exempt = false;
    assert_true(flood("127.0.0.1", 10000, KITH_S) < PER_S);
}

/* The clock does not run backwards, but it may stand still. */
static void an_idle_day_saves_one_second(void **state)
{
    (void)state;
    assert_in_range(flood("192.0.2.1", 10000, 86400 * KITH_S), PER_S / 2,
                    PER_S / 2 + limits.handshake_burst);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(one_address_leaves_half_to_the_rest,
                                        setup, teardown),
        cmocka_unit_test_setup_teardown(many_addresses_share_the_budget, setup,
                                        teardown),
        cmocka_unit_test_setup_teardown(members_come_from_where_they_live,
                                        setup, teardown),
        cmocka_unit_test_setup_teardown(silence_costs_no_handshakes, setup,
                                        teardown),
        cmocka_unit_test_setup_teardown(an_ipv6_network_is_one_source, setup,
                                        teardown),
        cmocka_unit_test_setup_teardown(loopback_is_exempt, setup, teardown),
        cmocka_unit_test_setup_teardown(an_idle_day_saves_one_second, setup,
                                        teardown),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
