/* Goal: entries leave in the order (time, peer, sequence), whatever order they
 * came in. Method: random entries with many ties against qsort. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <cmocka.h>

#include "kith/heap.h"
#include "kith/rng.h"

enum { ENTRIES = 5000 };

static int compare(const void *a, const void *b)
{
    if (kith_heap_before(a, b))
        return -1;
    return kith_heap_before(b, a) ? 1 : 0;
}

static void assert_same(const struct kith_heap_entry *a,
                        const struct kith_heap_entry *b)
{
    assert_int_equal(a->time_ns, b->time_ns);
    assert_int_equal(a->peer, b->peer);
    assert_int_equal(a->sequence, b->sequence);
    assert_int_equal(a->value, b->value);
}

static void draw_entries(struct kith_heap_entry entries[ENTRIES])
{
    struct kith_rng rng;
    kith_rng_init(&rng, 5, KITH_STREAM_TEST, 0);
    for (uint32_t i = 0; i < ENTRIES; i++)
        entries[i] =
            (struct kith_heap_entry){.time_ns = kith_rng_below(&rng, 50),
                                     .peer = kith_rng_below(&rng, 20),
                                     .value = i,
                                     .sequence = i};
}

static void test_order(void **state)
{
    (void)state;
    static struct kith_heap_entry entries[ENTRIES], storage[ENTRIES];
    draw_entries(entries);
    struct kith_heap heap;
    kith_heap_init(&heap, storage, ENTRIES);
    for (size_t i = 0; i < ENTRIES; i++)
        assert_true(kith_heap_push(&heap, entries[i]));
    qsort(entries, ENTRIES, sizeof entries[0], compare);

    for (size_t i = 0; i < ENTRIES; i++) {
        struct kith_heap_entry entry;
        assert_true(kith_heap_pop(&heap, &entry));
        assert_same(&entry, &entries[i]);
    }
}

/* Pops between pushes: what comes out is never before what came out, since
 * nothing earlier is pushed. */
static void test_mixed(void **state)
{
    (void)state;
    static struct kith_heap_entry storage[64];
    struct kith_heap heap;
    kith_heap_init(&heap, storage, 64);
    struct kith_rng rng;
    kith_rng_init(&rng, 6, KITH_STREAM_TEST, 0);
    struct kith_heap_entry last = {0};
    uint64_t sequence = 1;

    for (int i = 0; i < 20000; i++) {
        const struct kith_heap_entry next = {.time_ns = last.time_ns +
                                                        kith_rng_below(&rng, 3),
                                             .peer = last.peer,
                                             .sequence = sequence++};
        if (kith_rng_below(&rng, 2) == 0 && kith_heap_push(&heap, next))
            continue;
        struct kith_heap_entry entry;
        if (!kith_heap_pop(&heap, &entry))
            continue;
        assert_true(kith_heap_before(&last, &entry));
        last = entry;
    }
}

static void test_full_and_empty(void **state)
{
    (void)state;
    struct kith_heap_entry storage[1], entry = {.time_ns = 3};
    struct kith_heap heap;
    kith_heap_init(&heap, storage, 1);

    assert_false(kith_heap_pop(&heap, &entry));
    assert_true(kith_heap_push(&heap, entry));
    assert_false(kith_heap_push(&heap, entry));
    assert_true(kith_heap_pop(&heap, &entry));
    assert_int_equal(entry.time_ns, 3);
    assert_false(kith_heap_pop(&heap, &entry));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_order),
        cmocka_unit_test(test_mixed),
        cmocka_unit_test(test_full_and_empty),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
