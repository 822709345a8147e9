/* Goal: the simulator's stories stay as they are: every message, decision and
 * fault at its nanosecond, and the hash of it all.
 * Method: tests/golden/NAME.yaml against NAME.trace, line by line. A change on
 * purpose is looked at and then written down with KITH_GOLDEN=update. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "kith/sim.h"

#define PATH_BYTES 1024
#define LINE_BYTES 256

static void path_of(char *path, const char *name, const char *suffix)
{
    const char *top = getenv("srcdir");
    const int length = snprintf(path, PATH_BYTES, "%s/tests/golden/%s.%s",
                                top ? top : ".", name, suffix);
    assert_in_range(length, 1, PATH_BYTES - 1);
}

static void simulate_to(const char *name, const char *trace_path)
{
    char path[PATH_BYTES];
    char error[KITH_EXPERIMENT_ERROR_BYTES + SIM_ERROR_BYTES];
    path_of(path, name, "yaml");
    struct kith_experiment experiment;
    if (kith_experiment_load(path, NULL, 0, &experiment, error) != KITH_OK)
        fail_msg("%s", error);
    const struct sim_options options = {.experiment = &experiment,
                                        .trace_path = trace_path};
    struct kith_summary summary;
    if (sim_run(&options, &summary, NULL, error) != KITH_OK)
        fail_msg("%s", error);
    kith_experiment_close(&experiment);
}

static bool read_line(FILE *file, char *line)
{
    if (!fgets(line, LINE_BYTES, file)) {
        line[0] = '\0';
        return false;
    }
    line[strcspn(line, "\n")] = '\0';
    return true;
}

static void compare(const char *name, const char *found, const char *expected)
{
    FILE *a = fopen(found, "r"), *b = fopen(expected, "r");
    assert_non_null(a);
    if (!b)
        fail_msg("%s is missing: write it with KITH_GOLDEN=update", expected);
    char ours[LINE_BYTES], golden[LINE_BYTES];
    unsigned line = 0;
    for (bool more = true; more;) {
        line++;
        const bool left = read_line(a, ours), right = read_line(b, golden);
        more = left || right;
        if (left != right || strcmp(ours, golden) != 0) {
            fail_msg("%s, line %u\n  golden: %s\n  now:    %s\nLook at the "
                     "difference; if it is meant: KITH_GOLDEN=update",
                     name, line, golden, ours);
        }
    }
    fclose(a);
    fclose(b);
}

static void check(const char *name)
{
    char golden[PATH_BYTES], found[PATH_BYTES];
    path_of(golden, name, "trace");
    const char *update = getenv("KITH_GOLDEN");
    if (update && strcmp(update, "update") == 0) {
        simulate_to(name, golden);
        return;
    }
    snprintf(found, sizeof found, "golden-%s.trace", name);
    simulate_to(name, found);
    compare(name, found, golden);
    remove(found);
}

static void test_swap(void **state)
{
    (void)state;
    check("swap");
}

static void test_torn(void **state)
{
    (void)state;
    check("torn");
}

static void test_round(void **state)
{
    (void)state;
    check("round");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_swap),
        cmocka_unit_test(test_torn),
        cmocka_unit_test(test_round),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
