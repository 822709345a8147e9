/* Goal: what the methods of docs/papers_costs.md wait for in a step, at 1 to
 * 100 Gbit/s between 8 to 1,024 peers. Method: round_costs.h, no vectors and no
 * arithmetic. Checked: a faster line makes no step longer and no message
 * larger, closed formulas where there are some, what is refused by name.
 * `--table` prints all of it, for docs/make_papers_costs.py:
 *
 *   network  d  Gbit/s  peers  method  ms  bytes that a peer sends  share */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "tests/support/round_costs.h"

enum { MEMBERS = 8, STEPS = 3, DRAWS = 20, SHARE_HALVINGS = 6 };
#define SHARE 0.01
#define OUT_NS (25 * KITH_US)
#define IN_NS (5 * KITH_US)

enum method { RING, LISTS, GTOP_K, GS_SGD, TWO_LEVEL, PAIRS, UPDATES, METHODS };
static const struct round_method methods[METHODS] = {
    [RING] = {.name = "dense ring", .algorithm = "allreduce-ring"},
    [LISTS] = {.name = "lists of all",
               .algorithm = "two-level",
               .share = SHARE,
               .members = 1},
    [GTOP_K] = {.name = "gTop-k", .algorithm = "gtop-k", .share = SHARE},
    [GS_SGD] = {.name = "gs-SGD", .algorithm = "gs-sgd", .share = SHARE},
    [TWO_LEVEL] = {.name = "two-level",
                   .algorithm = "two-level",
                   .share = SHARE,
                   .members = MEMBERS},
    [PAIRS] = {.name = "moniqua4 pairs",
               .algorithm = "adpsgd",
               .pairs = "random-matching",
               .wire = "moniqua4",
               .asks = true},
    [UPDATES] = {.name = "update sets",
                 .algorithm = "update-sets",
                 .compressor = "top-k-2bit",
                 .share = SHARE,
                 .every = 15}};

static const size_t dims[] = {25000000, 124000000};
static const unsigned rates[] = {1, 10, 25, 100}; /* Gbit/s */
enum { DIMS = 2, RATES = 4, SIZE_LEAST = 8, SIZE_MOST = 1024 };

/* Machines of eight with a line of this rate each and ten times that inside;
 * or one peer a machine. */
static struct round_network network_of(unsigned gigabits, bool is_even)
{
    const uint64_t bits = gigabits * UINT64_C(1000000000);
    return (struct round_network){.machine = is_even ? 1 : MEMBERS,
                                  .in_bits = 10 * bits,
                                  .out_bits = bits,
                                  .in_ns = IN_NS,
                                  .out_ns = OUT_NS};
}

/* A log of updates has room in three models: where it has none, less is kept.
 * NULL, or why not even that helps. */
static const char *open_plan(struct round_plan *plan, struct round_method *of,
                             enum method method, uint32_t peers, size_t dim)
{
    *of = methods[method];
    const char *refused = round_plan_open(plan, of, peers, dim);
    for (unsigned n = 0;
         method == UPDATES && refused != NULL && n < SHARE_HALVINGS; n++) {
        of->share /= 2;
        refused = round_plan_open(plan, of, peers, dim);
    }
    return refused;
}

/* Long schedules are in their stride after a step; pairs are drawn anew. */
static unsigned steps_of(const struct round_plan *plan)
{
    return plan->rounds > 100 ? 2 : plan->rounds == 0 ? DRAWS : STEPS;
}

static void print_row(enum method method, uint32_t peers, size_t dim,
                      bool is_even)
{
    struct round_plan plan;
    struct round_method of;
    const char *const refused = open_plan(&plan, &of, method, peers, dim);
    for (unsigned r = 0; r < RATES; r++) {
        const struct round_network network = network_of(rates[r], is_even);
        printf("%s\t%zu\t%u\t%u\t%s", is_even ? "even" : "machines", dim,
               rates[r], peers, methods[method].name);
        if (refused != NULL) {
            printf("\t-\t-\t-\n");
            continue;
        }
        const struct round_cost cost =
            round_cost_of(&plan, &network, steps_of(&plan));
        printf("\t%.9g\t%.9g\t%.9g\n", cost.ms, cost.bytes, of.share);
    }
}

static void print_table(void)
{
    for (unsigned even = 0; even < 2; even++)
        for (unsigned d = 0; d < DIMS; d++)
            for (uint32_t p = SIZE_LEAST; p <= SIZE_MOST; p *= 2)
                for (unsigned m = 0; m < METHODS; m++)
                    print_row(m, p, dims[d], even > 0);
}

/* ---- checked */

static void test_rates(void **state)
{
    (void)state;
    for (unsigned m = 0; m < METHODS; m++)
        for (unsigned even = 0; even < 2; even++) {
            struct round_plan plan;
            struct round_method of;
            assert_null(open_plan(&plan, &of, m, 32, dims[0]));
            double last = INFINITY, bytes = 0;
            for (unsigned r = 0; r < RATES; r++) {
                const struct round_network network =
                    network_of(rates[r], even > 0);
                const struct round_cost cost =
                    round_cost_of(&plan, &network, STEPS);
                assert_true(cost.ms > 0 && cost.ms < last);
                assert_true(r == 0 || cost.bytes == bytes);
                last = cost.ms;
                bytes = cost.bytes;
            }
        }
}

/* Pairs of one peer a machine: a question and its answer, the message, and that
 * it has arrived; 4 bits a value and 16 a block of 256, less than 0.52 bytes.
 */
static void test_pairs(void **state)
{
    (void)state;
    for (unsigned r = 0; r < RATES; r++) {
        struct round_plan plan;
        struct round_method of;
        const struct round_network network = network_of(rates[r], true);
        assert_null(open_plan(&plan, &of, PAIRS, 64, dims[0]));
        const struct round_cost cost = round_cost_of(&plan, &network, STEPS);
        const double line = cost.bytes * 8 / (rates[r] * 1e6);
        const double expected = line + 4 * (double)OUT_NS * 1e-6;
        assert_true(cost.bytes > 0.5 * (double)dims[0]);
        assert_true(cost.bytes < 0.52 * (double)dims[0]);
        assert_true(fabs(cost.ms - expected) < 0.01 * expected);
    }
}

static void test_ring(void **state)
{
    (void)state;
    struct round_plan plan;
    struct round_method of;
    const struct round_network network = network_of(10, true);
    assert_null(open_plan(&plan, &of, RING, 16, dims[0]));
    const struct round_cost cost = round_cost_of(&plan, &network, STEPS);
    const double each = 4.0 * (double)dims[0] / 16, bits = 10e6;
    assert_true(fabs(cost.bytes - 30 * each) < 1e-3 * 30 * each);
    assert_true(cost.ms > 30 * each * 8 / bits);
    assert_true(cost.ms <
                1.01 * 30 * (each * 8 / bits + 2 * (double)OUT_NS * 1e-6));
}

/* 64 peers have a bit each, and logs fit three models. */
static void test_refused(void **state)
{
    (void)state;
    struct round_plan plan;
    struct round_method of;
    assert_null(open_plan(&plan, &of, UPDATES, 8, dims[0]));
    assert_true(of.share == SHARE);
    assert_null(open_plan(&plan, &of, UPDATES, 64, dims[0]));
    assert_true(of.share < SHARE);
    const char *const refused = open_plan(&plan, &of, UPDATES, 128, dims[0]);
    assert_non_null(refused);
    assert_non_null(strstr(refused, "64 peers"));
    /* Lists of all go to everybody. */
    assert_null(open_plan(&plan, &of, LISTS, 512, dims[0]));
    assert_non_null(open_plan(&plan, &of, LISTS, 1024, dims[0]));
}

int main(int count, char **arguments)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_rates),
        cmocka_unit_test(test_pairs),
        cmocka_unit_test(test_ring),
        cmocka_unit_test(test_refused),
    };
    if (count > 1 && strcmp(arguments[1], "--table") == 0) {
        print_table();
        return 0;
    }
    return cmocka_run_group_tests(tests, NULL, NULL);
}
