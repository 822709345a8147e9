/* Goal: nothing that would spoil a count sketch comes in: values, cells and
 * configurations. Method: bad ones, then good ones again. */
#include <float.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include <cmocka.h>

#include "sketch_cases.h"

#define COUNT(array) (sizeof(array) / sizeof((array)[0]))

/* A refused value leaves the sketch as it was. */
static void what_cannot_be_added_is_refused(void **state)
{
    struct kith_sketch_config config = sketch_config(10, 8, 0);
    const struct {
        enum kith_sketch_cells cells;
        double bad;
        enum kith_err err;
    } cases[] = {{KITH_SKETCH_FLOAT32, NAN, KITH_ENONFINITE},
                 {KITH_SKETCH_FLOAT32, 1e39, KITH_ENONFINITE},
                 {KITH_SKETCH_FLOAT64, INFINITY, KITH_ENONFINITE},
                 {KITH_SKETCH_FIXED64, NAN, KITH_ENONFINITE},
                 {KITH_SKETCH_FIXED64, -DBL_MAX, KITH_ELIMIT},
                 {KITH_SKETCH_FIXED64, 0x1.000001p21, KITH_ELIMIT}};
    (void)state;
    for (size_t c = 0; c < COUNT(cases); c++) {
        const double values[3] = {1, 2, cases[c].bad};
        struct kith_top_entry entry = {cases[c].bad, 3};
        const struct kith_top_list list = {&entry, 1, 1};
        config = sketch_config(10, 8, cases[c].cells);
        struct kith_sketch_family family = family_open(&config, false);
        struct kith_sketch sketch = sketch_open(&family);
        struct kith_sketch empty = sketch_open(&family);
        assert_int_equal(kith_sketch_add(&sketch, 0, 3, values), cases[c].err);
        assert_int_equal(kith_sketch_add_list(&sketch, &list), cases[c].err);
        assert_memory_equal(sketch.cells, empty.cells,
                            kith_sketch_size(&config));
        assert_true(sketch.mass == 0);
        assert_int_equal(kith_sketch_add(&sketch, 0, 2, values), KITH_OK);
        sketch_close(&sketch);
        sketch_close(&empty);
        family_close(&family);
    }
}

/* Mass grows to its limit by values, and by merges, and not beyond: a cell that
 * holds all of it twice is still an int64. */
static void fixed_point_never_overflows(void **state)
{
    struct kith_sketch_config config = sketch_config(1, 2, KITH_SKETCH_FIXED64);
    struct kith_sketch_family family = family_open(&config, false);
    struct kith_sketch sketch = sketch_open(&family);
    const double most = ldexp((double)KITH_SKETCH_FIXED_VALUE_MAX, -30);
    unsigned added = 0;
    (void)state;
    for (; kith_sketch_add(&sketch, 0, 1, &most) == KITH_OK; added++)
        assert_true(added < 2000);
    said("largest values until the mass is full", "1024", added);
    assert_int_equal(added, 1024); /* 2^61 / 2^51 */
    assert_true(kith_sketch_sane(&sketch, ldexp(1, 31)));
    assert_true(fabs(kith_sketch_query(&sketch, 0)) == added * most);

    struct kith_sketch other = sketch_open(&family);
    assert_int_equal(kith_sketch_merge(&other, &sketch), KITH_OK);
    assert_int_equal(kith_sketch_merge(&other, &sketch), KITH_ELIMIT);
    assert_memory_equal(other.cells, sketch.cells, kith_sketch_size(&config));
    sketch_close(&sketch);
    sketch_close(&other);
    family_close(&family);
}

static void hostile_cells_are_refused(void **state)
{
    static double v[1000];
    (void)state;
    normal(4, 1000, v);
    for (unsigned cells = 0; cells < 3; cells++) {
        struct kith_sketch_config config =
            sketch_config(1000, 50, (enum kith_sketch_cells)cells);
        struct kith_sketch_family family = family_open(&config, false);
        struct kith_sketch sketch = sketch_open(&family);
        assert_int_equal(kith_sketch_add(&sketch, 0, 1000, v), KITH_OK);
        assert_true(kith_sketch_sane(&sketch, 100));
        assert_false(kith_sketch_sane(&sketch, 1));
        const uint64_t mass = sketch.mass;
        sketch.mass = cells == KITH_SKETCH_FIXED64 ? mass / 100 : 1;
        assert_false(kith_sketch_sane(&sketch, 100));
        sketch.mass = UINT64_MAX;
        assert_false(kith_sketch_sane(&sketch, 100));
        sketch.mass = mass;
        const double bad[] = {NAN, INFINITY, -INFINITY, 100.5, -1e30};
        for (size_t i = 0; i < COUNT(bad); i++) {
            int64_t fixed = i == 0   ? INT64_MIN
                            : i == 1 ? INT64_MAX
                                     : (int64_t)mass + 1;
            float narrow = (float)bad[i], kept_narrow;
            double kept;
            if (cells == KITH_SKETCH_FLOAT32) {
                float *cell = (float *)sketch.cells + 249;
                kept_narrow = *cell;
                *cell = narrow;
                assert_false(kith_sketch_sane(&sketch, 100));
                *cell = kept_narrow;
            } else {
                char *cell = (char *)sketch.cells + 249 * sizeof kept;
                memcpy(&kept, cell, sizeof kept);
                memcpy(cell,
                       cells == KITH_SKETCH_FLOAT64 ? (const void *)&bad[i]
                                                    : (const void *)&fixed,
                       sizeof kept);
                assert_false(kith_sketch_sane(&sketch, 100));
                memcpy(cell, &kept, sizeof kept);
            }
        }
        assert_true(kith_sketch_sane(&sketch, 100));
        sketch_close(&sketch);
        family_close(&family);
    }
}

/* Each field is part of the fingerprint, and others' sketches are not added. */
static void other_configurations_are_refused(void **state)
{
    const struct kith_sketch_config base =
        sketch_config(100, 20, KITH_SKETCH_FIXED64);
    struct kith_sketch_config others[7] = {base, base, base, base,
                                           base, base, base};
    struct kith_sketch_family family = family_open(&base, false);
    struct kith_sketch sketch = sketch_open(&family);
    (void)state;
    others[0].seed++;
    others[1].dim++;
    others[2].rows += 2;
    others[3].columns++;
    others[4].blocks++;
    others[5].cells = KITH_SKETCH_FLOAT64;
    others[5].fraction = 0;
    others[6].fraction++;
    for (size_t i = 0; i < COUNT(others); i++) {
        struct kith_sketch_family other = family_open(&others[i], false);
        struct kith_sketch theirs = sketch_open(&other);
        assert_true(kith_sketch_fingerprint(&base) !=
                    kith_sketch_fingerprint(&others[i]));
        assert_int_equal(kith_sketch_merge(&sketch, &theirs), KITH_EMISMATCH);
        sketch_close(&theirs);
        family_close(&other);
    }
    sketch_close(&sketch);
    family_close(&family);
}

static void configurations_are_bounded(void **state)
{
    const struct kith_sketch_config base =
        sketch_config(100, 20, KITH_SKETCH_FLOAT32);
    struct kith_sketch_config bad[11];
    struct kith_sketch_family family;
    (void)state;
    assert_true(kith_sketch_config_sound(&base));
    for (size_t i = 0; i < COUNT(bad); i++)
        bad[i] = base;
    bad[0].dim = 0;
    bad[1].dim = UINT64_MAX;
    bad[2].rows = 0;
    bad[3].rows = 4;
    bad[4].rows = KITH_SKETCH_ROWS_MAX + 2;
    bad[5].columns = 1;
    bad[6].columns = KITH_SKETCH_CELLS_MAX / 5 + 1;
    bad[7].blocks = 0;
    bad[8].blocks = 101;
    bad[9].fraction = 1;
    bad[10].cells = KITH_SKETCH_FIXED64;
    bad[10].fraction = KITH_SKETCH_FRACTION_MAX + 1;
    for (size_t i = 0; i < COUNT(bad); i++) {
        assert_false(kith_sketch_config_sound(&bad[i]));
        assert_int_equal(kith_sketch_family_init(NULL, &bad[i], false, &family),
                         KITH_EINVAL);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(what_cannot_be_added_is_refused),
        cmocka_unit_test(fixed_point_never_overflows),
        cmocka_unit_test(hostile_cells_are_refused),
        cmocka_unit_test(other_configurations_are_refused),
        cmocka_unit_test(configurations_are_bounded),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
