/* Goal: the law of links (docs/links.md) is what both worlds take from it:
 * rate, latency, jitter with their means, and loss as TCP shows it.
 * Method: arithmetic on instants, the clock is ours. Means against their closed
 * forms; one message whole, as in the simulator, and in pieces, as the lab's
 * sockets write it. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <cmocka.h>

#include <math.h>
#include <stdlib.h>

#include "kith/limits.h"
#include "kith/link_law.h"

static struct kith_link_flow flow_of(struct kith_link_terms terms)
{
    struct kith_link_flow flow;
    kith_link_flow_init(&flow, &terms, 7, 0, 1);
    return flow;
}

/* A message of so many bytes that the line sends at once. */
static kith_ns send_at(struct kith_link_flow *flow, kith_ns at_ns,
                       uint64_t bytes)
{
    return kith_link_arrival(flow,
                             &(struct kith_link_piece){at_ns, at_ns, bytes, 0});
}

static void nothing_is_plain(void **state)
{
    (void)state;
    struct kith_link_terms terms = {.latency_ns = 0};
    assert_true(kith_link_is_plain(&terms));
    terms.force[0] = 1;
    assert_false(kith_link_is_plain(&terms));
}

static void latency_is_added(void **state)
{
    (void)state;
    struct kith_link_flow flow =
        flow_of((struct kith_link_terms){.latency_ns = 200 * KITH_US});
    assert_false(kith_link_is_plain(&flow.terms));
    assert_int_equal(send_at(&flow, 1000, 100), 1000 + 200 * KITH_US);
}

/* What does not fit is KITH_NEVER, and stays so whatever is added to it. */
static void times_do_not_overflow(void **state)
{
    (void)state;
    const uint64_t bytes = 10000000000000; /* central.payload's most */
    kith_ns free_ns = 0;
    assert_int_equal(kith_line_time(bytes, 1000000),
                     bytes * 8 / 1000000 * KITH_S);
    assert_int_equal(kith_line_time(1152921504, 1), 9223372032 * KITH_S);
    assert_int_equal(kith_line_time(1152921505, 1), KITH_NEVER);
    assert_int_equal(kith_line_time(UINT64_MAX / 8, 1), KITH_NEVER);
    for (int i = 0; i < 200; i++)
        assert_true(kith_line_take(&free_ns, 1000000, i, bytes) >= 0);
    assert_int_equal(free_ns, KITH_NEVER);
    struct kith_link_flow flow = flow_of((struct kith_link_terms){
        .latency_ns = 60 * KITH_S, .jitter_ns = 60 * KITH_S, .loss = 0.99});
    for (int i = 0; i < 3; i++)
        assert_int_equal(send_at(&flow, i, bytes), KITH_NEVER);
}

/* 1 Gbit carries 125 bytes per microsecond, whoever sends them. */
static void a_line_is_shared(void **state)
{
    (void)state;
    kith_ns free_ns = 0;
    assert_int_equal(kith_line_take(&free_ns, 1000000000, 0, 125000), 0);
    assert_int_equal(free_ns, KITH_MS);
    assert_int_equal(kith_line_take(&free_ns, 1000000000, 0, 125000), KITH_MS);
    assert_int_equal(free_ns, 2 * KITH_MS);
    /* After a pause the line is free again. */
    assert_int_equal(kith_line_take(&free_ns, 1000000000, 10 * KITH_MS, 125),
                     10 * KITH_MS);
    assert_int_equal(free_ns, 10 * KITH_MS + KITH_US);
    assert_int_equal(kith_line_time(1000000, 8), 1000000 * KITH_S);
}

static void jitter_has_its_mean(void **state)
{
    (void)state;
    enum { COUNT = 20000 };
    struct kith_link_flow flow =
        flow_of((struct kith_link_terms){.jitter_ns = 100 * KITH_US});
    double sum = 0;
    for (int i = 0; i < COUNT; i++)
        sum += (double)(send_at(&flow, i, 1) - i);
    assert_true(fabs(sum / COUNT / 1e5 - 1) < 0.03);
}

/* A message of one packet has nothing behind it: T, 2 T, 4 T ... until it is
 * there, with mean T p / (1 - 2 p). */
static void a_lone_packet_waits_for_time_outs(void **state)
{
    (void)state;
    enum { COUNT = 100000 };
    const double p = 0.05;
    const kith_ns latency_ns = 5 * KITH_MS, timeout_ns = 210 * KITH_MS;
    struct kith_link_flow flow =
        flow_of((struct kith_link_terms){.latency_ns = latency_ns, .loss = p});
    double sum = 0;
    for (int i = 0; i < COUNT; i++) {
        const kith_ns at_ns = (kith_ns)i * 1000 * KITH_S;
        const kith_ns late_ns = send_at(&flow, at_ns, 100) - at_ns - latency_ns;
        const kith_ns times = late_ns / timeout_ns + 1;
        assert_int_equal(late_ns % timeout_ns, 0);
        assert_int_equal(times & (times - 1), 0); /* 2^k - 1 time-outs */
        sum += (double)late_ns;
    }
    const double mean = (double)timeout_ns * p / (1 - 2 * p);
    assert_true(fabs(sum / COUNT / mean - 1) < 0.05);
}

/* The longest that losses hold a message up, but for one in `rare`: time-outs
 * that double. */
static void a_stall_is_all_time_outs(void **state)
{
    (void)state;
    const struct kith_link_terms terms = {.latency_ns = 5 * KITH_MS,
                                          .loss = 0.1};
    const kith_ns timeout_ns = 210 * KITH_MS;
    assert_int_equal(kith_link_stall(&terms, 0.2), 0);
    assert_int_equal(kith_link_stall(&terms, 0.05), timeout_ns);
    assert_int_equal(kith_link_stall(&terms, 0.005), 3 * timeout_ns);
    assert_int_equal(kith_link_stall(&terms, 5e-5), 15 * timeout_ns);
}

/* Where more follows, a lost packet costs a round trip, and the message no more
 * than its last loss does. */
static void a_followed_packet_is_sent_again_at_once(void **state)
{
    (void)state;
    const kith_ns latency_ns = 5 * KITH_MS;
    struct kith_link_flow flow = flow_of(
        (struct kith_link_terms){.latency_ns = latency_ns, .loss = 0.02});
    unsigned fast = 0, none = 0, waited = 0;
    for (int i = 0; i < 10000; i++) {
        const kith_ns at_ns = (kith_ns)i * 1000 * KITH_S;
        const kith_ns late_ns =
            send_at(&flow, at_ns, 10 * KITH_PACKET_BYTES) - at_ns - latency_ns;
        none += late_ns == 0;
        fast += late_ns == 2 * latency_ns;
        waited += late_ns >= 210 * KITH_MS;
    }
    /* No loss: 0.98^10. A time-out: of the last three, or one lost twice. */
    assert_in_range(none, 8070, 8270);
    assert_in_range(waited, 560, 690);
    assert_int_equal(none + fast + waited, 10000);
}

/* In the long run a window of sqrt(3 / (2 p)) packets leaves in each round
 * trip, and every packet that is lost twice costs its time-outs. */
static void throughput_is_that_of_the_window(void **state)
{
    (void)state;
    const double p = 0.01, packets = 1e6;
    struct kith_link_flow flow =
        flow_of((struct kith_link_terms){.latency_ns = 5 * KITH_MS, .loss = p});
    const double seconds =
        1e-9 * (double)send_at(&flow, 0, (uint64_t)packets * KITH_PACKET_BYTES);
    const double window = 0.01 * sqrt(2 * p / 3) * packets;
    const double timeouts = packets * p * 0.21 * p / (1 - 2 * p);
    assert_true(fabs(seconds / (window + timeouts) - 1) < 0.05);
}

/* Whole and in pieces of any size: equal draws, and arrivals that differ by no
 * more than rounding. */
static void pieces_make_no_difference(void **state)
{
    (void)state;
    enum { MESSAGES = 200 };
    const struct kith_link_terms terms = {.latency_ns = 5 * KITH_MS,
                                          .jitter_ns = KITH_MS,
                                          .rate_bits = 100000000,
                                          .loss = 0.01};
    const uint64_t sizes[] = {1000, KITH_PACKET_BYTES, 65535, 1u << 20};
    for (size_t s = 0; s < sizeof sizes / sizeof *sizes; s++) {
        struct kith_link_flow whole = flow_of(terms), cut = whole;
        for (uint64_t i = 0; i < MESSAGES; i++) {
            const uint64_t bytes = 100 + i % 3 * 300000;
            kith_ns free_ns = (kith_ns)i * 1000 * KITH_S, last_ns = 0;
            const kith_ns begins_ns =
                kith_line_take(&free_ns, terms.rate_bits, 0, bytes);
            const kith_ns want_ns = kith_link_arrival(
                &whole,
                &(struct kith_link_piece){begins_ns, free_ns, bytes, 0});
            free_ns = begins_ns;
            for (uint64_t at = 0, size; at < bytes; at += size) {
                size = bytes - at < sizes[s] ? bytes - at : sizes[s];
                const kith_ns from_ns =
                    kith_line_take(&free_ns, terms.rate_bits, 0, size);
                const kith_ns at_ns = kith_link_arrival(
                    &cut, &(struct kith_link_piece){from_ns, free_ns, size,
                                                    bytes - at - size});
                last_ns = at_ns > last_ns ? at_ns : last_ns;
            }
            assert_int_equal(cut.losses, whole.losses);
            assert_int_equal(cut.until_loss, whole.until_loss);
            assert_true(llabs(last_ns - want_ns) < KITH_MS);
        }
        assert_int_equal(cut.messages, MESSAGES);
        assert_true(whole.losses > 100);
    }
}

/* Another pair's draws are others; the same pair's are the same. */
static void pairs_draw_by_themselves(void **state)
{
    (void)state;
    const struct kith_link_terms terms = {.jitter_ns = KITH_MS};
    struct kith_link_flow one = flow_of(terms), again = one, other;
    kith_link_flow_init(&other, &terms, 7, 1, 0);
    const kith_ns first_ns = send_at(&one, 0, 1);
    assert_int_equal(send_at(&again, 0, 1), first_ns);
    assert_int_not_equal(send_at(&other, 0, 1), first_ns);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(nothing_is_plain),
        cmocka_unit_test(latency_is_added),
        cmocka_unit_test(times_do_not_overflow),
        cmocka_unit_test(a_line_is_shared),
        cmocka_unit_test(jitter_has_its_mean),
        cmocka_unit_test(a_lone_packet_waits_for_time_outs),
        cmocka_unit_test(a_stall_is_all_time_outs),
        cmocka_unit_test(a_followed_packet_is_sent_again_at_once),
        cmocka_unit_test(throughput_is_that_of_the_window),
        cmocka_unit_test(pieces_make_no_difference),
        cmocka_unit_test(pairs_draw_by_themselves),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
