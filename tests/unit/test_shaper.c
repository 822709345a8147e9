/* Goal: latency, rate, jitter, loss and stalls do to sealed bytes what the
 * experiment file says. Method: the shaper is arithmetic on instants, so every
 * expectation is a number; the clock is ours. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <cmocka.h>

#include "kith/limits.h"
#include "src/peer/shaper.h"

static void setup(struct kith_shaper *shaper, struct kith_shaper_flow *flow,
                  struct kith_link_terms shape)
{
    kith_shaper_init(shaper, &shape);
    kith_shaper_flow_init(flow, &shape, 7, 0, 1);
}

static void nothing_shaped_passes(void **state)
{
    struct kith_shaper shaper;
    struct kith_shaper_flow flow;
    (void)state;
    setup(&shaper, &flow, (struct kith_link_terms){.latency_ns = 0});
    assert_true(kith_link_is_plain(&flow.terms));
    flow.terms.cut = true;
    assert_false(kith_link_is_plain(&flow.terms));
}

static void latency_is_added(void **state)
{
    struct kith_shaper shaper;
    struct kith_shaper_flow flow;
    (void)state;
    setup(&shaper, &flow,
          (struct kith_link_terms){.latency_ns = 200 * KITH_US});
    assert_false(kith_link_is_plain(&flow.terms));
    assert_int_equal(kith_shaper_release(&shaper, &flow, 1000, 100),
                     1000 + 200 * KITH_US);
}

/* Two connections of a peer share its line out: 1 Gbit carries 125 bytes per
 * microsecond, whoever sends them. */
static void rate_is_shared_by_lanes(void **state)
{
    struct kith_shaper shaper;
    struct kith_shaper_flow a, b;
    (void)state;
    setup(&shaper, &a, (struct kith_link_terms){.rate_bits = 1000000000});
    kith_shaper_flow_init(&b, &shaper.usual, 7, 0, 2);
    assert_int_equal(kith_shaper_release(&shaper, &a, 0, 125000), KITH_MS);
    assert_int_equal(kith_shaper_release(&shaper, &b, 0, 125000), 2 * KITH_MS);
    /* After a pause the line is free again. */
    assert_int_equal(kith_shaper_release(&shaper, &a, 10 * KITH_MS, 125),
                     10 * KITH_MS + KITH_US);
    assert_int_equal(kith_shaper_arrive(&shaper, 0, 125000), KITH_MS);
    assert_int_equal(kith_shaper_arrive(&shaper, 0, 125000), 2 * KITH_MS);
}

static void a_slow_line_does_not_overflow(void **state)
{
    struct kith_shaper shaper;
    struct kith_shaper_flow flow;
    (void)state;
    setup(&shaper, &flow, (struct kith_link_terms){.rate_bits = 8});
    assert_int_equal(kith_shaper_release(&shaper, &flow, 0, 1000000),
                     1000000 * KITH_S);
}

static void jitter_has_its_mean_and_keeps_order(void **state)
{
    struct kith_shaper shaper;
    struct kith_shaper_flow flow;
    const int count = 20000;
    double sum = 0;
    kith_ns last = 0;
    (void)state;
    setup(&shaper, &flow, (struct kith_link_terms){.jitter_ns = 100 * KITH_US});
    for (int i = 0; i < count; i++) {
        const kith_ns now = (kith_ns)i * 100 * KITH_MS;
        const kith_ns at = kith_shaper_release(&shaper, &flow, now, 1);
        assert_true(at >= last && at >= now);
        last = at;
        sum += (double)(at - now);
    }
    assert_true(sum / count > 0.97e5 && sum / count < 1.03e5);
    /* Handed over at one instant, nothing overtakes. */
    for (int i = 0; i < 100; i++) {
        const kith_ns at = kith_shaper_release(&shaper, &flow, last, 1);
        assert_true(at >= last);
        last = at;
    }
}

static void loss_costs_round_trips(void **state)
{
    struct kith_shaper shaper;
    struct kith_shaper_flow flow;
    const kith_ns latency = 5 * KITH_MS;
    int lost = 0;
    (void)state;
    setup(&shaper, &flow,
          (struct kith_link_terms){.latency_ns = latency, .loss = 0.1});
    for (int i = 0; i < 10000; i++) {
        const kith_ns now = (kith_ns)i * KITH_S;
        const kith_ns at =
            kith_shaper_release(&shaper, &flow, now, KITH_BULK_BYTES) - now;
        assert_true(at == latency || at == 3 * latency);
        lost += at == 3 * latency;
    }
    assert_in_range(lost, 900, 1100);
}

/* Another flow's draws do not shift this one's: a named stream per link. */
static void lanes_draw_by_themselves(void **state)
{
    struct kith_shaper shaper;
    struct kith_shaper_flow a, again, other;
    (void)state;
    setup(&shaper, &a, (struct kith_link_terms){.jitter_ns = KITH_MS});
    kith_shaper_flow_init(&again, &shaper.usual, 7, 0, 1);
    kith_shaper_flow_init(&other, &shaper.usual, 7, 1, 0);
    const kith_ns first = kith_shaper_release(&shaper, &a, 0, 1);
    assert_int_equal(kith_shaper_release(&shaper, &again, 0, 1), first);
    assert_int_not_equal(kith_shaper_release(&shaper, &other, 0, 1), first);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(nothing_shaped_passes),
        cmocka_unit_test(latency_is_added),
        cmocka_unit_test(rate_is_shared_by_lanes),
        cmocka_unit_test(a_slow_line_does_not_overflow),
        cmocka_unit_test(jitter_has_its_mean_and_keeps_order),
        cmocka_unit_test(loss_costs_round_trips),
        cmocka_unit_test(lanes_draw_by_themselves),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
