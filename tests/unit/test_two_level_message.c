/* Goal: a message of two-level is held to what it is before any of it is used,
 * whatever round it is of, and one that is refused changes nothing.
 * Method: a peer of 2 sites of 2 by hand, messages that are spoilt in one place
 * each. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "tests/support/sites.h"

/* Shards of 8, lists of 4: 4 values, then 4 places at byte 16. A dense message
 * has its block of x at byte 32. */
enum { DIM = 16, KEPT = 4 };
/* One round of each kind, and that of a list in which site 1 shows x. */
enum { REDUCE, BETWEEN, GATHER, PERIOD };
enum { SHOWN = 15 * PERIOD + BETWEEN };

struct spoilt {
    const char *what;
    uint64_t round;
    double models;
    unsigned at;
    bool is_value;
    float value;
    uint32_t number;
    bool refused;
};

static void write_good(struct sites_peer *peer, uint64_t round)
{
    static const float values[] = {3, -2, 1, 0};
    static const uint32_t places[] = {1, 4, 7, 0};
    float *const floats = (void *)peer->received;
    for (unsigned i = 0; i < 16; i++)
        floats[i] = (float)i;
    if (round != BETWEEN)
        return;
    memcpy(peer->received, values, sizeof values);
    memcpy(peer->received + sizeof values, places, sizeof places);
}

static bool is_changed(const struct sites_peer *peer,
                       float before[SITES_VECTORS + 1][DIM])
{
    bool changed = memcmp(before[SITES_VECTORS], peer->x, DIM * 4) != 0;
    for (unsigned v = 0; v < SITES_VECTORS; v++)
        changed |= memcmp(before[v], peer->vectors[v], DIM * 4) != 0;
    return changed;
}

static void try_one(const struct spoilt *spoilt)
{
    const struct kith_algorithm *two_level = kith_algorithm_find("two-level");
    struct sites sites;
    float before[SITES_VECTORS + 1][DIM];
    sites_open(&sites, 4, 2, DIM, 0.5);
    assert_int_equal(sites_period(&sites), PERIOD);
    struct sites_peer *const peer = &sites.each[0];
    for (unsigned i = 0; i < DIM; i++)
        peer->gradient[i] = 0.25f * (float)(i + 1);
    for (uint64_t round = spoilt->round - spoilt->round % PERIOD;
         round <= spoilt->round; round++) {
        peer->algebra.round = round;
        two_level->make(&peer->algebra, &peer->edge);
        if (round < spoilt->round)
            (void)two_level->finish(&peer->algebra);
    }
    write_good(peer, spoilt->round);
    if (spoilt->is_value)
        memcpy(peer->received + spoilt->at, &spoilt->value, 4);
    else if (spoilt->at < 64)
        memcpy(peer->received + spoilt->at, &spoilt->number, 4);
    for (unsigned v = 0; v < SITES_VECTORS; v++)
        memcpy(before[v], peer->vectors[v], sizeof before[v]);
    memcpy(before[SITES_VECTORS], peer->x, sizeof before[SITES_VECTORS]);
    const double count = peer->scalars[0];
    peer->edge.scalars_received[0] = spoilt->models;
    two_level->merge(&peer->algebra, &peer->edge);
    const bool changed = is_changed(peer, before) || count != peer->scalars[0];
    printf("  %s: %s, %s, expected %s\n", spoilt->what,
           peer->edge.refused ? "refused" : "taken",
           changed ? "something changed" : "nothing changed",
           spoilt->refused ? "refused" : "taken");
    assert_true(peer->edge.refused == spoilt->refused);
    if (spoilt->refused)
        assert_false(changed);
    sites_close(&sites);
}

static void test_refuses(void **state)
{
    static const struct spoilt cases[] = {
        {"a shard", REDUCE, 1, 64, false, 0, 0, false},
        {"a shard of two", REDUCE, 2, 64, false, 0, 0, true},
        {"a shard that is none", REDUCE, 1, 12, true, NAN, 0, true},
        {"one without end", REDUCE, 1, 0, true, INFINITY, 0, true},
        {"one beyond the bound", REDUCE, 1, 28, true, 1.1e30f, 0, true},
        {"a list", BETWEEN, 2, 64, false, 0, 0, false},
        {"a list of nobody", BETWEEN, 0, 20, false, 0, 900, false},
        {"a list of more than a site", BETWEEN, 3, 64, false, 0, 0, true},
        {"the first place of all", BETWEEN, 2, 16, false, 0, 0, false},
        {"places side by side", BETWEEN, 2, 20, false, 0, 2, false},
        {"a place of a shard's end", BETWEEN, 2, 24, false, 0, 8, true},
        {"the last place there is", BETWEEN, 2, 24, false, 0, UINT32_MAX, true},
        {"a place twice", BETWEEN, 2, 20, false, 0, 1, true},
        {"places that fall", BETWEEN, 2, 16, false, 0, 5, true},
        {"a value that is none", BETWEEN, 2, 4, true, NAN, 0, true},
        {"a value beyond the bound", BETWEEN, 2, 0, true, -2e30f, 0, true},
        {"a place of nothing", BETWEEN, 2, 28, false, 0, 9, true},
        {"x in the place of a list", SHOWN, 2, 64, false, 0, 0, false},
        {"x that is none", SHOWN, 2, 8, true, NAN, 0, true},
        {"a mean's shard", GATHER, 4, 64, false, 0, 0, false},
        {"of more than all", GATHER, 5, 64, false, 0, 0, true},
        {"a shard without end", GATHER, 4, 16, true, -INFINITY, 0, true},
        {"x behind it that is none", GATHER, 4, 36, true, NAN, 0, true}};
    (void)state;
    for (unsigned n = 0; n < sizeof cases / sizeof *cases; n++)
        try_one(&cases[n]);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_refuses)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
