/* Goal: what a count sketch is worth as a compressor of one vector, for which
 * CHOCO and BEER need E|v - C(v)|^2 <= (1 - w) |v|^2 with a w above 0. Method:
 * C(v) are the k largest estimates of a table of 5 x c, means over families,
 * beside the k largest values themselves. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include <cmocka.h>

#include "sketch_cases.h"

enum { DIM = 20000, KEPT = 200, FAMILIES = 30 };

static double energy_of(const double *v)
{
    double sum = 0;
    for (size_t i = 0; i < DIM; i++)
        sum += v[i] * v[i];
    return sum;
}

/* |v - list|^2 / |v|^2 */
static double error_of(const struct kith_top_list *list, const double *v)
{
    double sum = energy_of(v);
    for (uint32_t e = 0; e < list->count; e++) {
        const struct kith_top_entry *entry = &list->entries[e];
        const double value = v[entry->index], off = value - entry->value;
        sum += off * off - value * value;
    }
    return sum / energy_of(v);
}

/* Of what is added, the `added` largest of v. */
static double mean_error(const double *v, uint32_t columns, uint32_t added)
{
    static struct kith_top_entry entries[DIM], found[KEPT];
    struct kith_top_list truncated = kith_top_list_of(entries, added);
    double mean = 0;
    for (uint32_t i = 0; i < DIM; i++)
        kith_top_list_offer(&truncated, i, v[i]);
    kith_top_list_finish(&truncated);
    for (uint64_t seed = 0; seed < FAMILIES; seed++) {
        struct kith_sketch_config config =
            sketch_config(DIM, columns, KITH_SKETCH_FLOAT32);
        config.seed = seed;
        struct kith_sketch_family family = family_open(&config, false);
        struct kith_sketch sketch = sketch_open(&family);
        struct kith_top_list list = kith_top_list_of(found, KEPT);
        assert_int_equal(kith_sketch_add_list(&sketch, &truncated), KITH_OK);
        kith_sketch_largest(&sketch, &list);
        mean += error_of(&list, v) / FAMILIES;
        sketch_close(&sketch);
        family_close(&family);
    }
    return mean;
}

static void a_sketch_of_one_vector_is_worth_less_than_its_head(void **state)
{
    static double v[DIM];
    static struct kith_top_entry entries[KEPT];
    struct kith_top_list head = kith_top_list_of(entries, KEPT);
    (void)state;
    normal(1, DIM, v);
    for (uint32_t i = 0; i < DIM; i++)
        kith_top_list_offer(&head, i, v[i]);
    const double plain = error_of(&head, v);
    const double whole = mean_error(v, 4 * KEPT, DIM);
    const double tight = mean_error(v, KEPT, KEPT);
    const double truncated = mean_error(v, 4 * KEPT, KEPT);
    said("Gaussian, the k largest values: error", "0.916 +- 0.005", plain);
    said("all of it in 5 x 4k", "> 1: no contraction", whole);
    said("the k largest in 5 x k", "> 1: no contraction", tight);
    said("the k largest in 5 x 4k", "above the values'", truncated);
    assert_true(plain > 0.911 && plain < 0.921);
    assert_true(whole > 1 && tight > 1);
    assert_true(truncated > plain && truncated < 1);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_sketch_of_one_vector_is_worth_less_than_its_head),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
