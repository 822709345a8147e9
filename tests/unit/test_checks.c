/* Goal: an assertion means what it says, and what was broken stays broken.
 * Method: parsing by table; every quantity of the registry against every
 * relation; a run of values in time. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <cmocka.h>

#include "kith/check.h"

#define COUNT(array) (sizeof(array) / sizeof((array)[0]))

static struct kith_check parsed(const char *text)
{
    struct kith_check check;
    char error[KITH_CHECK_ERROR_BYTES] = "";
    if (kith_check_parse(text, &check, error) != KITH_OK)
        fail_msg("%s", error);
    return check;
}

static void test_parse(void **state)
{
    (void)state;
    static const struct {
        const char *text, *word;
    } bad[] = {
        {"", "always or finally"},
        {"always", "always or finally"},
        {"never accuracy > 1", "always or finally"},
        {"always accuracy", "relation and a bound"},
        {"always accuracy >= ", "relation and a bound"},
        {"always accuracy => 1", "one of"},
        {"always accuracy >= x", "a number"},
        {"always accuracy >= nan", "a number"},
        {"always accuracy>=0.5", "unknown quantity"},
        {"always acuracy >= 0.5", "did you mean \"accuracy\""},
        {"always finite(model) > 0", "no relation"},
        {"always accuracy >= 0.5 or so", "relation and a bound"},
        {"always accuracy >= 0.5 * before", "relation and a bound"},
        {"within 60s partition.end live", "such as \"within 60s of"},
        {"within 60 of partition.end live", "such as \"within 60s of"},
        {"within 60s of partition live", "FAULT.begin or FAULT.end"},
        {"within 60s of partition.over live", "FAULT.begin or FAULT.end"},
        {"within 60s of flood.end live", "FAULT.begin or FAULT.end"},
        {"within 60s of crash.end loss < 2 * after", "relation and a bound"},
    };
    const struct kith_check check = parsed("  finally  accuracy >=  0.85 ");
    assert_int_equal(check.when, KITH_CHECK_FINALLY);
    assert_string_equal(check.quantity, "accuracy");
    assert_string_equal(check.relation, ">=");
    assert_true(check.bound > 0.849 && check.bound < 0.851);
    assert_int_equal(parsed("always finite(model)").when, KITH_CHECK_ALWAYS);
    const struct kith_check within =
        parsed("within 60s of partition.begin loss < 1.2 * before");
    assert_int_equal(within.when, KITH_CHECK_WITHIN);
    assert_true(within.within_ns == 60 * KITH_S);
    assert_true(within.begins && within.times_before);
    assert_false(parsed("within 1s of crash.end loss < 2").times_before);

    for (size_t i = 0; i < COUNT(bad); i++) {
        struct kith_check wrong;
        char error[KITH_CHECK_ERROR_BYTES] = "";
        assert_int_equal(kith_check_parse(bad[i].text, &wrong, error),
                         KITH_EPARSE);
        if (strstr(error, bad[i].word) == NULL)
            fail_msg("%s: %s", bad[i].text, error);
    }
}

static void test_relations(void **state)
{
    (void)state;
    static const struct {
        const char *relation;
        bool below, equal, above;
    } table[] = {
        {">=", false, true, true},  {"<=", true, true, false},
        {">", false, false, true},  {"<", true, false, false},
        {"==", false, true, false},
    };
    for (size_t i = 0; i < COUNT(table); i++) {
        char text[64];
        struct kith_values values;
        double value;
        snprintf(text, sizeof text, "finally torn %s 2", table[i].relation);
        const struct kith_check check = parsed(text);
        kith_values_clear(&values);
        for (int k = 1; k <= 3; k++) {
            const bool wanted = k == 1   ? table[i].below
                                : k == 2 ? table[i].equal
                                         : table[i].above;
            values.torn = k;
            assert_int_equal(kith_check_evaluate(&check, &values, &value),
                             wanted ? KITH_VERDICT_HELD : KITH_VERDICT_BROKEN);
            assert_int_equal(value, k);
        }
    }
}

/* Nothing is measured: nothing is known, for every quantity there is. */
static void test_every_quantity(void **state)
{
    (void)state;
    for (size_t i = 0; kith_quantities[i].name != NULL; i++) {
        const struct kith_quantity *quantity = &kith_quantities[i];
        char text[128];
        struct kith_values values;
        double value;
        assert_ptr_equal(kith_quantity_find(quantity->name), quantity);
        assert_non_null(quantity->summary);
        snprintf(text, sizeof text, "always %s%s", quantity->name,
                 quantity->predicate ? "" : " < 1");
        const struct kith_check check = parsed(text);
        kith_values_clear(&values);
        assert_int_equal(kith_check_evaluate(&check, &values, &value),
                         KITH_VERDICT_UNKNOWN);
    }
    assert_null(kith_quantity_find("nothing"));
}

static void test_predicates(void **state)
{
    (void)state;
    struct kith_values values;
    double value;
    const struct kith_check finite = parsed("always finite(model)");
    const struct kith_check conserved = parsed("always conserved");
    kith_values_clear(&values);
    values.finite = 1;
    values.conservation_error = 1e-13;
    values.conservation_tolerance = 1e-12;
    assert_int_equal(kith_check_evaluate(&finite, &values, &value),
                     KITH_VERDICT_HELD);
    assert_int_equal(kith_check_evaluate(&conserved, &values, &value),
                     KITH_VERDICT_HELD);
    values.finite = 0;
    values.conservation_error = 1e-11;
    assert_int_equal(kith_check_evaluate(&finite, &values, &value),
                     KITH_VERDICT_BROKEN);
    assert_int_equal(kith_check_evaluate(&conserved, &values, &value),
                     KITH_VERDICT_BROKEN);
}

static void test_run(void **state)
{
    (void)state;
    static struct kith_experiment experiment;
    struct kith_checks checks;
    struct kith_values values;
    experiment.check_count = 4;
    experiment.checks[0] = parsed("always consensus_distance < 5");
    experiment.checks[1] = parsed("finally accuracy >= 0.5");
    experiment.checks[2] = parsed("always torn == 0");
    experiment.checks[3] = parsed("finally loss < 1");
    kith_checks_start(&checks);
    kith_values_clear(&values);

    values.torn = 0;
    values.accuracy = 0.1; /* early: not the time to look */
    values.consensus_distance = 4;
    assert_int_equal(kith_checks_always(&checks, &experiment, &values, 1), 0);
    values.consensus_distance = 6;
    assert_int_equal(kith_checks_always(&checks, &experiment, &values, 2), 1);
    values.consensus_distance = 1;
    assert_int_equal(kith_checks_always(&checks, &experiment, &values, 3), 1);
    values.accuracy = 0.6;
    /* Broken: the distance at 2, and the loss that nobody measured. */
    assert_int_equal(kith_checks_finish(&checks, &experiment, &values, 4), 2);

    assert_int_equal(checks.results[0].at_ns, 2);
    assert_true(checks.results[0].value > 5.9);
    assert_int_equal(checks.results[1].verdict, KITH_VERDICT_HELD);
    assert_int_equal(checks.results[2].verdict, KITH_VERDICT_HELD);
    assert_int_equal(checks.results[3].verdict, KITH_VERDICT_BROKEN);
    assert_true(isnan(checks.results[3].value));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_parse),
        cmocka_unit_test(test_relations),
        cmocka_unit_test(test_every_quantity),
        cmocka_unit_test(test_predicates),
        cmocka_unit_test(test_run),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
