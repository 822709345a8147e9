/* Goal: guard clip answers what its first comment says, to the last digit.
 * Method: models by hand, of distances and directions that make thresholds and
 * coherences round numbers. Every case fails with a bound that is another. */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "kith/guard.h"

enum { DIM = 64 };
static const struct kith_guard *guard;
static void *memory;
static unsigned turn;
static double elapsed;  /* share of own steps that are done */
static double rounding; /* share of |v|^2 that the wire has rounded */

static int open_guard(void **state)
{
    (void)state;
    guard = kith_guard_find("clip");
    memory = calloc(1, guard->bytes(DIM));
    turn = 0;
    elapsed = rounding = 0;
    return memory == NULL;
}

static int close_guard(void **state)
{
    (void)state;
    free(memory);
    return 0;
}

/* Along axis `way` by what is seen of it, of a model of ours that has gone
 * `ours` along the last. */
static double hidden(kith_id peer, double distance, double seen,
                     double movement, unsigned way, double ours)
{
    double v[DIM] = {0}, sent[DIM] = {0};
    v[way % DIM] = seen;
    sent[DIM - 1] = ours;
    const struct kith_guard_model model = {.peer = peer,
                                           .distance = fabs(distance),
                                           .movement = movement,
                                           .elapsed = elapsed,
                                           .v = v,
                                           .sent = sent,
                                           .rounding =
                                               rounding * distance * distance,
                                           .coordinates = DIM,
                                           .dim = DIM};
    return guard->weigh(memory, &model);
}

/* All of it is. */
static double beside(kith_id peer, double distance, double movement,
                     unsigned way, double ours)
{
    return hidden(peer, distance, distance, movement, way, ours);
}

/* Of one that does not move. */
static double towards(kith_id peer, double distance, double movement,
                      unsigned way)
{
    return beside(peer, distance, movement, way, 0);
}

/* In a direction that nobody has gone before. */
static double from(kith_id peer, double distance, double movement)
{
    return towards(peer, distance, movement, turn++);
}

static void is(double found, double expected)
{
    if (!(fabs(found - expected) <= 1e-15))
        fail_msg("let in %.17g, expected %.17g", found, expected);
}

/* What is let in between 2.5 m and 5 m. */
static double tapered(double d, double m)
{
    return 2 * m / d * (5 * m - d) / (2.5 * m);
}

/* One identity known or none: m is 3 times own movement. */
static void test_begins_with_own_movement(void **state)
{
    (void)state;
    is(from(1, 0, 0), 1); /* all begin alike */
    is(from(1, 1, 0), 0); /* and nothing has moved yet */
    is(from(1, 6, 2), 1);
    is(from(1, 12, 2), 1);
    is(from(1, 15, 2), 12. / 15);
    is(from(1, 15.001, 2), tapered(15.001, 6));
    is(from(1, 22.5, 2), 12. / 22.5 / 2);
    is(from(1, 29.999, 2), tapered(29.999, 6));
    is(from(1, 30, 2), 0);
    is(from(1, 30.001, 2), 0);
    assert_non_null(guard->before(memory, DIM));
}

/* What a worker holds in the guard's memory weighs nothing. */
static void test_lends_a_place(void **state)
{
    (void)state;
    void *plain = memory, *lent = calloc(1, guard->bytes(DIM));
    assert_non_null(lent);
    guard->begin(lent, DIM);
    for (unsigned i = 0; i < 200; i++) {
        const kith_id peer = 1 + i % (i < 20 ? 3 : 70);
        const double distance = 1 + (double)(i * 7 % 5);
        void *const place = guard->before(lent, DIM);
        assert_true((place != NULL) == (i <= 20));
        if (place != NULL)
            memset(place, 0xff, DIM * sizeof(double));
        const double expected = towards(peer, distance, 2, i);
        memory = lent;
        is(towards(peer, distance, 2, i), expected);
        memory = plain;
    }
    free(lent);
}

/* Two or three: the lower median as well, where it is more. */
static void test_few_identities(void **state)
{
    (void)state;
    is(from(1, 3, 1), 1);
    is(from(2, 40, 1), 0); /* alone, 1 says nothing of others */
    is(from(1, 4, 1), 1);
    is(from(2, 12, 1), tapered(12, 4)); /* max(3, 4) */
    is(from(1, 24, 1), 0);
    is(from(2, 30, 1), 24. / 30); /* lower of 24 and 12 */
    is(from(3, 60, 0), 48. / 60);
    assert_non_null(guard->before(memory, DIM));
}

/* Four: the lower median of the last distances, this one not among them. */
static void test_median_by_identity(void **state)
{
    (void)state;
    for (kith_id peer = 1; peer <= 4; peer++)
        is(from(peer, 10. * peer, 100), 1); /* 10 20 30 40 */
    assert_null(guard->before(memory, DIM));
    is(from(5, 50, 100), 40. / 50);
    is(from(5, 60, 100), 1); /* 10 20 30 40 50 */
    is(from(6, 75, 100), 60. / 75);
    is(from(6, 90, 100), tapered(90, 30));
    is(from(6, 150.01, 100), 0); /* 10 20 30 40 60 90: 30 */
    /* A rejected one counts, once whatever it sends: 1e30 is its distance. */
    for (unsigned i = 0; i < 9; i++)
        is(from(6, 1e30, 100), 0);
    is(from(1, 30, 100), 1);
    is(from(2, 30, 100), 1);
    is(from(3, 66, 100), 60. / 66);
}

/* Who is far after a partition comes in again: distances are written down. */
static void test_heals(void **state)
{
    (void)state;
    for (kith_id peer = 0; peer < 10; peer++)
        is(from(peer, 1, 1), 1);
    unsigned rejected = 0;
    for (unsigned round = 0; round < 3; round++)
        for (kith_id peer = 5; peer < 10; peer++)
            rejected += from(peer, 100, 1) <= 0;
    assert_int_equal(rejected, 15); /* half: the lower median is 1 */
    is(from(4, 100, 1), 0);
    is(from(5, 100, 1), 1); /* most are that far */
}

/* Of peer 4, whose distance is beside our norm. */
static double returns(double distance, double norm)
{
    return beside(4, distance, 1, turn++, norm);
}

/* All five are heard, then `others` models of `speakers`. */
static void part(unsigned others, unsigned speakers)
{
    memset(memory, 0, guard->bytes(DIM));
    for (kith_id k = 0; k < 12 * 5; k++)
        is(from(k % 5, 1, 1), 1);
    for (unsigned k = 0; k < others; k++)
        is(from(k % speakers, 1, 1), 1);
}

/* How many models of peer 4 are let in after that. */
static unsigned let_in_after(unsigned others, unsigned speakers)
{
    unsigned let_in = 0;
    part(others, speakers);
    for (; let_in < 99 && returns(100, 100) > 0; let_in++)
        ;
    return let_in;
}

/* Who missed more than 16 turns, of three of five each, is clipped and not
 * rejected a quarter as many times; two alone make nobody seem away, and what
 * is no number is rejected in any case. */
static void test_away(void **state)
{
    (void)state;
    assert_int_equal(let_in_after(3 * 15, 4), 0);
    assert_int_equal(let_in_after(3 * 19, 4), 4);
    assert_int_equal(let_in_after(3 * 41, 3), 10);
    assert_int_equal(let_in_after(999, 2), 0);
    part(99, 4);
    is(returns(100, 100), 2. / 100);
    is(returns((double)INFINITY, 100), 0);
}

/* Models that come nearer are not counted, those that do not are: 19 turns, 4
 * models. */
static void test_comes_nearer(void **state)
{
    (void)state;
    part(3 * 19, 4);
    is(returns(100, 100), 2. / 100);
    for (unsigned d = 99; d > 40; d--)
        is(returns(d, 100), 2. / d);
    for (unsigned k = 0; k < 3; k++)
        is(returns(41, 100), 2. / 41);
    is(returns(40, 100), 0);
}

/* Four are heard; then 20 turns of members `first` to 3, of which each takes us
 * further by 3. Returns where we are. */
static double go_away(kith_id first)
{
    double ours = 100;
    memset(memory, 0, guard->bytes(DIM));
    for (kith_id k = 0; k < 12 * 4; k++)
        is(from(1 + k % 4, 1, 1), 1);
    for (unsigned k = 0; k < 20; k++, ours += 3)
        for (kith_id peer = first; peer <= 3; peer++)
            is(beside(peer, 1, 1, turn++ % (DIM - 1), ours), 1);
    return ours;
}

/* Our way of a turn is 3, and twice that is more than 2 m: others are at 1. */
static void test_strides(void **state)
{
    (void)state;
    const double ours = go_away(1);
    is(beside(4, 90, 1, 5, ours), 6. / 90);
    is(beside(4, 5, 1, 6, ours), 1);
    is(beside(1, 5, 1, 7, ours), 0); /* who was there: beyond 5 m */
}

/* Nobody else makes a stride longer: not member 1 by what lies where we do not
 * look, nor by the turns that it was silent, which are none of one turn though
 * it comes back from too far to be spared. */
static void test_strides_are_our_own(void **state)
{
    (void)state;
    double ours = go_away(1);
    is(hidden(1, 1e4, 1e-6, 1, 4, ours), 0);
    is(beside(4, 90, 1, 5, ours), 6. / 90);
    ours = go_away(2);
    is(beside(1, 1e4, 1, 4, ours), 0);
    is(beside(4, 90, 1, 5, ours), 6. / 90);
}

/* Who is further than our own norm is not spared, nor counted for less. */
static void test_beyond_own(void **state)
{
    (void)state;
    part(3 * 19, 4);
    is(returns(100, 99), 0);
    is(returns(99, 98), 0);
    is(returns(99, 99), 2. / 99);
    for (unsigned k = 0; k < 2; k++)
        is(returns(99, 99), 2. / 99);
    is(returns(98, 99), 0);
}

/* Own steps are done: two models of each, however near; another member's are
 * not counted with them. */
static void test_ended(void **state)
{
    (void)state;
    for (unsigned i = 0; i < 9; i++)
        for (kith_id peer = 1; peer <= 5; peer++)
            is(from(peer, 1, 1), 1);
    elapsed = 0.999;
    for (unsigned i = 0; i < 9; i++)
        is(from(1, 1, 1), 1);
    elapsed = 1;
    is(from(1, 1, 1), 1);
    is(from(1, 1, 1), 1);
    for (unsigned i = 0; i < 9; i++)
        is(from(1, 1, 1), 0);
    is(from(2, 1, 1), 1);
    is(from(2, 1, 1), 1);
    is(from(2, 1, 1), 0);
}

static void test_not_finite(void **state)
{
    (void)state;
    for (kith_id peer = 1; peer <= 5; peer++)
        is(from(peer, 1, 1), 1);
    is(from(1, INFINITY, 1), 0);
    is(from(2, 2.5, 1), 2 / 2.5);
    for (kith_id peer = 1; peer <= 5; peer++)
        is(from(peer, INFINITY, 1), 0);
    is(from(1, 1, 1), 0); /* nothing to hold it against */
}

/* Always the same way: rho 1, while those of others who turn are 0.6 and less.
 */
static void test_coherence(void **state)
{
    (void)state;
    for (unsigned i = 0; i < 2; i++) {
        is(towards(9, 1, 1, 0), 1);
        for (kith_id peer = 1; peer <= 3; peer++)
            is(from(peer, 1, 1), 1);
    }
    is(towards(9, 1, 1, 0), 1); /* three times, but alone */
    for (kith_id peer = 1; peer <= 3; peer++)
        is(from(peer, 1, 1), 1);
    is(towards(9, 1, 1, 0), 0);
    is(from(1, 1, 1), 1);
}

/* One way by .8, and to both sides of it by .6: rho .83, then .81. */
static double leans(kith_id peer, unsigned round)
{
    const double v[DIM] = {.8, round % 2 == 0 ? .6 : -.6}, sent[DIM] = {0};
    const struct kith_guard_model model = {.peer = peer,
                                           .distance = 1,
                                           .movement = 1,
                                           .rounding = rounding,
                                           .v = v,
                                           .sent = sent,
                                           .coordinates = DIM};
    return guard->weigh(memory, &model);
}

/* Beside others who turn, .60, then .54, that is too much; where what they turn
 * by may be the wire's rounding it is not, though 1 is; of whom is rounded
 * itself nothing is said. */
static void test_coherence_of_rounded(void **state)
{
    (void)state;
    for (unsigned round = 0; round < 4; round++) {
        for (kith_id peer = 1; peer <= 4; peer++)
            is(from(peer, 1, 1), 1);
        is(leans(9, round), round < 3 ? 1 : 0);
    }
    memset(memory, 0, guard->bytes(DIM));
    for (unsigned round = 0; round < 4; round++) {
        rounding = .26;
        for (kith_id peer = 1; peer <= 4; peer++)
            is(from(peer, 1, 1), 1);
        is(towards(10, 1, 1, 0), 1);
        rounding = .24;
        is(leans(9, round), 1);
        is(towards(11, 1, 1, 1), round < 2 ? 1 : 0);
    }
}

/* Where all do, as on very unlike data, none is left out. */
static void test_coherence_of_all(void **state)
{
    (void)state;
    for (unsigned i = 0; i < 8; i++)
        for (kith_id peer = 1; peer <= 6; peer++)
            is(towards(peer, 1, 1, peer), 1);
}

/* Ours goes on by one, and three do with it. */
static double all_learn(kith_id still, double at)
{
    for (kith_id peer = 1; peer <= 3; peer++)
        is(beside(peer, 1, 1, turn++ % (DIM - 1), at), 1);
    /* Where it stays: our model has left it behind, its distance says. */
    return beside(still, 1 - at, 1, DIM - 1, at);
}

/* Old models: a way of nothing, three times, beside those of three. */
static void test_still(void **state)
{
    (void)state;
    is(all_learn(9, 0), 1);
    is(all_learn(9, .25), 0); /* 0 from the first on */
    is(all_learn(9, .5), 0);
}

/* One that stops: R is halved each time, and is under a quarter at the third.
 * One that goes on again is let in. */
static void test_stops(void **state)
{
    (void)state;
    static const struct {
        double at, let_in;
    } way[] = {{0, 1}, {1, 1}, {2, 1}, {2, 1}, {2, 1}, {2, 0}, {3, 1}};
    for (unsigned i = 0; i < sizeof way / sizeof way[0]; i++) {
        for (kith_id peer = 1; peer <= 3; peer++)
            is(beside(peer, 8, 10, DIM - 1, i), 1);
        is(beside(9, way[i].at - i, 10, DIM - 1, i), way[i].let_in);
    }
}

/* Two peers cannot tell who of them learns. */
static void test_still_of_two(void **state)
{
    (void)state;
    for (unsigned i = 0; i < 9; i++) {
        is(beside(1, 1, 100, turn++ % (DIM - 1), i), 1);
        is(beside(2, -(double)i, 100, DIM - 1, i), 1);
    }
}

/* Identities that were not met for longest make room; memory is what it says.
 */
static void test_memory_is_bounded(void **state)
{
    (void)state;
    assert_true(guard->bytes(KITH_GUARD_COORDINATES) < 774u << 10);
    for (kith_id peer = 1; peer <= 64; peer++)
        (void)from(peer, 1e9, 1);
    for (kith_id peer = 65; peer <= 128; peer++)
        (void)from(peer, 2, 1);
    is(from(1, 5, 1), 4. / 5);
}

/* Of as many coordinates as are looked at at most rows are pages, and what is
 * known of identities stands in two more behind them. */
enum { MOST = KITH_GUARD_COORDINATES, PAGE = MOST * sizeof(float) };

/* Are there values in that page of the state? */
static bool is_written(const char *state, size_t page)
{
    static const char zeros[PAGE];
    const size_t left = guard->bytes(MOST) - page * PAGE;
    return memcmp(state + page * PAGE, zeros, left < PAGE ? left : PAGE) != 0;
}

static unsigned rows_written(const char *state)
{
    unsigned written = 0;
    for (size_t page = 0; page < guard->bytes(MOST) / PAGE - 1; page++)
        written += is_written(state, page);
    return written;
}

/* Of `peer`, `v` away from our values, which are all `ours`. */
static void meet(char *state, kith_id peer, double v, double ours)
{
    double all[MOST], sent[MOST];
    for (size_t i = 0; i < MOST; i++) {
        all[i] = v;
        sent[i] = ours;
    }
    const struct kith_guard_model model = {.peer = peer,
                                           .distance = fabs(v),
                                           .movement = 1,
                                           .v = all,
                                           .sent = sent,
                                           .coordinates = MOST,
                                           .dim = MOST};
    (void)guard->weigh(state, &model);
}

/* A row for each of our snapshots, one for each identity, and one more for who
 * was met again. */
static void test_few_rows(void **state)
{
    (void)state;
    char *const kept = calloc(1, guard->bytes(MOST));
    assert_non_null(kept);
    for (kith_id peer = 1; peer <= 10; peer++)
        meet(kept, peer, .25, peer <= 5 ? 1 : 2);
    assert_int_equal(rows_written(kept), 2 + 10);
    meet(kept, 6, .25, 2);
    assert_int_equal(rows_written(kept), 2 + 10 + 1);
    assert_true(is_written(kept, guard->bytes(MOST) / PAGE - 1));
    assert_false(is_written(kept, guard->bytes(MOST) / PAGE));
    free(kept);
}

/* A file may say anything: of what is known of identities each byte, turned,
 * is refused, or no harm. Refused are how many there are, of each row how many
 * share it, of each entry its row, its sums, its flag and the sign of its
 * distance, and the sign of our way. */
static void test_damaged(void **state)
{
    (void)state;
    enum { ENTRIES = 64, IN_AN_ENTRY = 4 };
    const size_t size = guard->bytes(DIM);
    const size_t rows = size - size % (ENTRIES * DIM * sizeof(float));
    unsigned refused = 0;
    assert_true(guard->is_whole(memory, DIM));
    for (kith_id peer = 1; peer <= 10; peer++)
        from(peer, 10, 1);
    from(1, 10, 1);
    assert_true(guard->is_whole(memory, DIM));
    char *const kept = malloc(size);
    assert_non_null(kept);
    memcpy(kept, memory, size);
    for (size_t at = rows; at < size; at++) {
        ((uint8_t *)memory)[at] = 0xff;
        if (guard->is_whole(memory, DIM)) {
            from(1, 10, 1);
            from(99, 10, 1);
        } else {
            refused++;
        }
        memcpy(memory, kept, size);
    }
    assert_int_equal(refused, 4 + 1 + ENTRIES + IN_AN_ENTRY * ENTRIES);
    free(kept);
}

int main(void)
{
#define TEST(name)                                                             \
    cmocka_unit_test_setup_teardown(test_##name, open_guard, close_guard)
    const struct CMUnitTest tests[] = {
        TEST(begins_with_own_movement),
        TEST(lends_a_place),
        TEST(few_identities),
        TEST(median_by_identity),
        TEST(heals),
        TEST(away),
        TEST(comes_nearer),
        TEST(strides),
        TEST(strides_are_our_own),
        TEST(beyond_own),
        TEST(ended),
        TEST(not_finite),
        TEST(coherence),
        TEST(coherence_of_rounded),
        TEST(coherence_of_all),
        TEST(still),
        TEST(stops),
        TEST(still_of_two),
        TEST(memory_is_bounded),
        TEST(few_rows),
        TEST(damaged),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
