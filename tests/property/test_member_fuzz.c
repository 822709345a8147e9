/* Goal and target: tests/fuzz/fuzz_member.c, here in every `make check` and
 * with any compiler. Method: programs are drawn, most of them of a member that
 * answers; `make fuzz` goes by coverage. KITH_FUZZ_RUNS sets how many; a
 * failing case prints the seed that KITH_SEED repeats. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "kith/rng.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

enum { RUNS = 5000, BYTES_MAX = 400 };

static struct kith_rng rng;
static char repeat[120];

/* An assertion ends the process: say first how to repeat it. */
static void on_abort(int number)
{
    (void)number;
    const ssize_t written = write(2, repeat, strlen(repeat));
    _exit(written < 0 ? 3 : 2);
}

static uint8_t below(uint32_t n)
{
    return (uint8_t)kith_rng_below(&rng, n);
}

/* The operations of fuzz_member.c: answer, begin, work, later, the rest. */
static uint8_t operation(void)
{
    const uint32_t chance = below(100);
    return chance < 42   ? below(10)
           : chance < 55 ? 10 + below(3)
           : chance < 90 ? 13 + below(7)
           : chance < 96 ? 20 + below(2)
                         : 22 + below(10);
}

static size_t draw(uint8_t program[BYTES_MAX])
{
    const size_t size = 20 + kith_rng_below(&rng, BYTES_MAX - 30);
    size_t at = 0;
    program[at++] = below(256);
    while (at < size) {
        const uint8_t how = below(4) == 0 ? (uint8_t)(below(4) << 6) : 0;
        program[at++] = operation() | (uint8_t)(below(2) << 5) | how;
        program[at++] = below(3) == 0 ? below(256) : below(3);
        if (how != 0)
            program[at++] = below(256);
    }
    return at;
}

static void test_any_program(void **state)
{
    (void)state;
    const char *only = getenv("KITH_SEED"), *count = getenv("KITH_FUZZ_RUNS");
    const uint64_t first = only != NULL ? strtoull(only, NULL, 10) : 1;
    const uint64_t runs = count != NULL  ? strtoull(count, NULL, 10)
                          : only != NULL ? 1
                                         : RUNS;
    uint8_t program[BYTES_MAX];
    for (uint64_t seed = first; seed < first + runs; seed++) {
        snprintf(repeat, sizeof repeat,
                 "repeat with KITH_SEED=%llu tests/property/test_member_fuzz\n",
                 (unsigned long long)seed);
        kith_rng_init(&rng, seed, KITH_STREAM_TEST, 0);
        LLVMFuzzerTestOneInput(program, draw(program));
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_any_program)};
    signal(SIGABRT, on_abort);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
