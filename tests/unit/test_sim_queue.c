/* Goal: both queues pop any events in the order (time, peer, sequence), and a
 * day of any events is sorted so.
 * Method: the calendar beside the heap under the loads that could break it:
 * spread times, one instant for all, bursts with long silence, far timers, and
 * events pushed into the current day or the current time, in any order; days of
 * many sizes with few times, peers or sequences, or many, beside qsort(). */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#include "kith/rng.h"
#include "sim/event_sort.h"
#include "sim/queue.h"

/* How long after an event its successor comes. */
typedef kith_ns (*delay_of)(struct kith_rng *rng);

static kith_ns delay_spread(struct kith_rng *rng)
{
    return kith_rng_below(rng, 2000000000u);
}

static kith_ns delay_lockstep(struct kith_rng *rng)
{
    (void)rng;
    return 5 * KITH_MS;
}

static kith_ns delay_burst(struct kith_rng *rng)
{
    return kith_rng_below(rng, 8) == 0 ? 3600 * KITH_S : kith_rng_below(rng, 3);
}

static kith_ns delay_mixed(struct kith_rng *rng)
{
    static const kith_ns delays[] = {0,           1,          200 * KITH_US,
                                     5 * KITH_MS, 5 * KITH_S, 86400 * KITH_S};
    return delays[kith_rng_below(rng, 6)];
}

static void push(struct sim_queue *queue, const struct sim_event *event)
{
    assert_int_equal(sim_queue_push(queue, event), KITH_OK);
}

static void assert_same(const struct sim_event *a, const struct sim_event *b)
{
    if (a->time_ns != b->time_ns || a->peer != b->peer ||
        a->sequence != b->sequence || a->value != b->value) {
        fail_msg("%lld/%u/%llu against %lld/%u/%llu", (long long)a->time_ns,
                 a->peer, (unsigned long long)a->sequence,
                 (long long)b->time_ns, b->peer,
                 (unsigned long long)b->sequence);
    }
}

/* Both queues side by side: pop one, push none, one or two. */
static void hold(delay_of delay, uint32_t pending, uint32_t rounds)
{
    struct sim_queue queues[2];
    struct kith_rng rng;
    kith_rng_init(&rng, pending, KITH_STREAM_TEST, 1);
    for (unsigned q = 0; q < 2; q++) { /* small: they have to grow */
        assert_int_equal(sim_queue_open(&queues[q], (enum sim_queue_kind)q, 1),
                         KITH_OK);
    }
    uint64_t sequence = 0;
    for (uint32_t i = 0; i < pending; i++) {
        const struct sim_event event = {.time_ns = delay(&rng),
                                        .sequence = sequence++,
                                        .peer = kith_rng_below(&rng, pending),
                                        .value = i & SIM_VALUE_MAX};
        push(&queues[0], &event);
        push(&queues[1], &event);
    }
    kith_ns last_ns = 0;
    for (uint32_t i = 0; i < rounds || queues[0].count > 0; i++) {
        struct sim_event events[2];
        for (unsigned q = 0; q < 2; q++) {
            struct sim_event first;
            const bool looks = kith_rng_below(&rng, 4) == 0;
            if (looks) /* a day may begin while others wait */
                assert_true(sim_queue_first(&queues[q], &first));
            const kith_ns next_ns = sim_queue_next_ns(&queues[q]);
            assert_true(sim_queue_pop(&queues[q], &events[q]));
            assert_true(next_ns == KITH_NEVER || next_ns <= events[q].time_ns);
            if (looks)
                assert_same(&first, &events[q]);
        }
        assert_same(&events[0], &events[1]);
        assert_true(events[0].time_ns >= last_ns);
        last_ns = events[0].time_ns;
        const uint32_t births =
            i < rounds ? kith_rng_below(&rng, 3) + (queues[0].count == 0) : 0;
        for (uint32_t k = 0; k < births; k++) {
            events[0].time_ns = last_ns + delay(&rng);
            events[0].peer = kith_rng_below(&rng, pending);
            events[0].sequence =
                (uint64_t)kith_rng_below(&rng, 8) << 40 | sequence++;
            push(&queues[0], &events[0]);
            push(&queues[1], &events[0]);
        }
    }
    struct sim_event none;
    assert_false(sim_queue_pop(&queues[0], &none));
    assert_false(sim_queue_pop(&queues[1], &none));
    sim_queue_close(&queues[0]);
    sim_queue_close(&queues[1]);
}

static void test_same_order(void **state)
{
    (void)state;
    static const delay_of delays[] = {delay_spread, delay_lockstep, delay_burst,
                                      delay_mixed};
    static const uint32_t pendings[] = {1, 7, 1000, 30000};
    for (size_t d = 0; d < sizeof delays / sizeof delays[0]; d++)
        for (size_t p = 0; p < sizeof pendings / sizeof pendings[0]; p++)
            hold(delays[d], pendings[p], 20000);
}

/* The run's own events (nobody's) come last among equals. */
static void test_nobody_is_last(void **state)
{
    (void)state;
    for (unsigned kind = 0; kind < 2; kind++) {
        struct sim_queue queue;
        assert_int_equal(sim_queue_open(&queue, (enum sim_queue_kind)kind, 4),
                         KITH_OK);
        push(&queue, &(struct sim_event){.time_ns = 9, .peer = KITH_NOBODY});
        push(&queue, &(struct sim_event){.time_ns = 9, .peer = 5});
        push(&queue, &(struct sim_event){.time_ns = 8, .peer = 7});

        struct sim_event event;
        assert_true(sim_queue_pop(&queue, &event));
        assert_int_equal(event.peer, 7);
        assert_true(sim_queue_pop(&queue, &event));
        assert_int_equal(event.peer, 5);
        assert_true(sim_queue_pop(&queue, &event));
        assert_int_equal(event.peer, KITH_NOBODY);
        sim_queue_close(&queue);
    }
}

static int compare(const void *left, const void *right)
{
    const struct sim_event *a = left, *b = right;
    return sim_event_before(a, b) ? -1 : sim_event_before(b, a);
}

/* Of so many times, 2^shift ns apart, and peers; every 50th event is the run's
 * own. */
static void sort_day(struct kith_rng *rng, size_t count, uint32_t times,
                     unsigned shift, uint32_t peers, bool nobody)
{
    const size_t bytes = (count + 1) * sizeof(struct sim_event);
    struct sim_event *events = calloc(1, bytes), *scratch = calloc(1, bytes);
    struct sim_event *expected = calloc(1, bytes);
    assert_true(events && scratch && expected);
    for (size_t i = 0; i < count; i++) {
        events[i] = (struct sim_event){
            .time_ns =
                INT64_MAX - ((kith_ns)kith_rng_below(rng, times) << shift),
            .sequence = (uint64_t)kith_rng_below(rng, 1u << 30) << 32 | i,
            .peer = nobody && kith_rng_below(rng, 50) == 0
                        ? KITH_NOBODY
                        : kith_rng_below(rng, peers)};
    }
    memcpy(expected, events, bytes);
    qsort(expected, count, sizeof *expected, compare);
    const struct sim_event *sorted = sim_sort(events, scratch, count);
    for (size_t i = 0; i < count; i++)
        assert_same(&sorted[i], &expected[i]);
    free(events);
    free(scratch);
    free(expected);
}

static void test_sorts(void **state)
{
    (void)state;
    static const size_t counts[] = {0,  1,  2,    7,    8,    9,    31,
                                    32, 33, 1000, 3000, 9000, 80000};
    static const uint32_t spreads[] = {1, 2, 100, 1u << 30};
    static const unsigned shifts[] = {0, 20, 33};
    struct kith_rng rng;
    kith_rng_init(&rng, 3, KITH_STREAM_TEST, 1);
    for (size_t c = 0; c < sizeof counts / sizeof counts[0]; c++)
        for (size_t t = 0; t < 4; t++)
            for (size_t p = 0; p < 4; p++)
                for (unsigned nobody = 0; nobody < 2; nobody++)
                    for (size_t s = 0; s < 3; s++)
                        sort_day(&rng, counts[c], spreads[t], shifts[s],
                                 spreads[p], nobody == 1);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_same_order),
        cmocka_unit_test(test_nobody_is_last),
        cmocka_unit_test(test_sorts),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
