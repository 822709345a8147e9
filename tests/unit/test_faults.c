/* Goal: statements become the atoms they describe, each draws from a stream of
 * its own, and overlapping ones never confuse a driver.
 * Method: selectors and spreads by table; whole files through the loader;
 * random statements against the rule "every begin has at most one end". */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#include "kith/fault.h"

#define COUNT(array) (sizeof(array) / sizeof((array)[0]))
#define PEERS 8u

static void load_stop(const char *faults, const char *slow,
                      struct kith_experiment *experiment)
{
    char text[4096], error[KITH_EXPERIMENT_ERROR_BYTES];
    snprintf(text, sizeof text,
             "name: x\nseed: 7\npeers: %u\nmodel: {kind: none}\n"
             "stop: {time: 1h}\ncompute: {step: 1ms, slow: [%s]}\n"
             "faults: [%s]\n",
             PEERS, slow, faults);
    if (kith_experiment_parse("x.yaml", text, strlen(text), NULL, 0, experiment,
                              error) != KITH_OK)
        fail_msg("%s", error);
}

static void load(const char *faults, struct kith_experiment *experiment)
{
    load_stop(faults, "", experiment);
}

static void test_spreads(void **state)
{
    (void)state;
    static const struct {
        const char *text;
        enum kith_spread_kind kind;
        kith_ns low_ns, high_ns;
    } good[] = {
        {"3s", KITH_SPREAD_FIXED, 3 * KITH_S, 0},
        {"exp(30s)", KITH_SPREAD_EXPONENTIAL, 30 * KITH_S, 0},
        {"uniform(1s, 2s)", KITH_SPREAD_UNIFORM, KITH_S, 2 * KITH_S},
        {"uniform(1s,1s)", KITH_SPREAD_UNIFORM, KITH_S, KITH_S},
    };
    static const char *const bad[] = {
        "",
        "3",
        "exp(3)",
        "exp()",
        "exp(3s",
        "uniform(1s)",
        "uniform(2s, 1s)",
        "uniform(1s, 2s, 3s)",
        "-1s",
        "1000001s",
        "exp(999h)",
        "weibull(1s, 2s)",
        "uniform(,)",
        "uniform(1s,",
        ")",
    };
    struct kith_spread spread;
    for (size_t i = 0; i < COUNT(good); i++) {
        assert_int_equal(kith_spread_parse(good[i].text, &spread), KITH_OK);
        assert_int_equal(spread.kind, good[i].kind);
        assert_int_equal(spread.low_ns, good[i].low_ns);
        assert_int_equal(spread.high_ns, good[i].high_ns);
    }
    for (size_t i = 0; i < COUNT(bad); i++)
        if (kith_spread_parse(bad[i], &spread) == KITH_OK)
            fail_msg("accepted %s", bad[i]);
}

static void test_draws_are_in_range(void **state)
{
    (void)state;
    struct kith_rng rng;
    struct kith_spread spread;
    double sum = 0;
    kith_rng_init(&rng, 1, KITH_STREAM_TEST, 0);
    assert_int_equal(kith_spread_parse("uniform(1s, 2s)", &spread), KITH_OK);
    for (unsigned i = 0; i < 1000; i++) {
        const kith_ns draw = kith_spread_draw(&spread, &rng);
        assert_in_range(draw, KITH_S, 2 * KITH_S);
    }
    assert_int_equal(kith_spread_parse("exp(1s)", &spread), KITH_OK);
    for (unsigned i = 0; i < 10000; i++)
        sum += (double)kith_spread_draw(&spread, &rng) / 1e9;
    /* The mean of 10,000 has a deviation of 0.01. */
    assert_true(sum / 10000 > 0.95 && sum / 10000 < 1.05);
}

static void test_selectors(void **state)
{
    (void)state;
    static const struct {
        const char *text, *chosen;
    } good[] = {
        {"all", "11111111"},
        {"peer(3)", "00010000"},
        {"peer(0..3)", "11110000"},
        {" peer(7) ", "00000001"},
        {"all - peer(0..3)", "00001111"},
        {"all - peer(0) - peer(7)", "01111110"},
        {"frac(1)", "11111111"},
        {"frac(0)", "00000000"},
        {"n(8)-peer(1)", "10111111"},
        {"all - frac(1e-3)", "11111111"},
    };
    static const char *const bad[] = {
        "",         "some",   "peer()",   "peer(8)", "peer(3..1)", "peer(0..8)",
        "peer(-1)", "n(9)",   "n(x)",     "frac(2)", "frac(-0.1)", "frac(nan)",
        "all -",    "- all",  "all all",  "n(1",     "peer(1,2)",  "n(1)x",
        "all - -",  "frac()", "peer(1..", "()",      "ALL",
    };
    uint8_t chosen[PEERS];
    struct kith_rng rng;
    char error[KITH_FAULT_ERROR_BYTES];
    kith_rng_init(&rng, 1, KITH_STREAM_TEST, 0);
    for (size_t i = 0; i < COUNT(good); i++) {
        assert_int_equal(
            kith_selector_parse(good[i].text, PEERS, &rng, chosen, error),
            KITH_OK);
        for (unsigned k = 0; k < PEERS; k++)
            if (chosen[k] != (uint8_t)(good[i].chosen[k] - '0'))
                fail_msg("%s: peer %u", good[i].text, k);
    }
    for (size_t i = 0; i < COUNT(bad); i++)
        if (kith_selector_parse(bad[i], PEERS, &rng, chosen, error) == KITH_OK)
            fail_msg("accepted \"%s\"", bad[i]);
}

/* n(k) takes exactly k, and every peer is as likely. */
static void test_selection_is_fair(void **state)
{
    (void)state;
    uint8_t chosen[PEERS];
    unsigned hits[PEERS] = {0};
    char error[KITH_FAULT_ERROR_BYTES];
    for (unsigned seed = 0; seed < 4000; seed++) {
        struct kith_rng rng;
        unsigned count = 0;
        kith_rng_init(&rng, seed, KITH_STREAM_FAULT, 5);
        assert_int_equal(
            kith_selector_parse("n(3)", PEERS, &rng, chosen, error), KITH_OK);
        for (unsigned k = 0; k < PEERS; k++) {
            count += chosen[k];
            hits[k] += chosen[k];
        }
        assert_int_equal(count, 3);
    }
    for (unsigned k = 0; k < PEERS; k++)
        assert_in_range(hits[k], 1350, 1650); /* 1500 +- 5 deviations */
}

static void test_crash(void **state)
{
    (void)state;
    struct kith_experiment experiment;
    load("{at: 2s, crash: \"peer(2..3)\", restart: 3s}", &experiment);

    assert_int_equal(experiment.atom_count, 4);
    for (uint32_t i = 0; i < 4; i++) {
        const struct kith_atom *atom = &experiment.atoms[i];
        assert_string_equal(kith_atom_event(atom)->name,
                            i < 2 ? "crash" : "restart");
        assert_int_equal(atom->at_ns, (i < 2 ? 2 : 5) * KITH_S);
        assert_int_equal(atom->peer, 2 + i % 2);
        assert_int_equal(atom->other, KITH_NOBODY);
        assert_int_equal(atom->statement, 0);
    }
    kith_experiment_close(&experiment);
}

static void test_partition(void **state)
{
    (void)state;
    struct kith_experiment experiment;
    load("{at: 1s, for: 2s, partition: \"peer(0..1) -> peer(1..2)\"}",
         &experiment);

    /* 0->1, 0->2, 1->2: nobody is cut off from itself. */
    static const kith_id links[][2] = {{0, 1}, {0, 2}, {1, 2}};
    assert_int_equal(experiment.atom_count, 2);
    for (uint32_t i = 0; i < 2; i++) {
        struct kith_atom_walk walk = {.atom = &experiment.atoms[i]};
        struct kith_atom one;
        assert_int_equal(kith_atom_count(&experiment.atoms[i]), 3);
        for (uint32_t k = 0; kith_atom_next(&walk, &one); k++) {
            assert_string_equal(kith_atom_event(&one)->name,
                                i == 0 ? "cut" : "heal");
            assert_int_equal(one.peer, links[k][0]);
            assert_int_equal(one.other, links[k][1]);
        }
    }

    /* The force on its link: cut, and as usual again. */
    struct kith_link_flow flow = {.terms = {.loss = 0.5}, .to = 1};
    kith_atom_act(&experiment.atoms[0], &flow);
    assert_true(kith_link_is_cut(&flow.terms));
    kith_atom_act(&experiment.atoms[1], &flow);
    assert_false(kith_link_is_cut(&flow.terms));
    kith_experiment_close(&experiment);

    load("{at: 1s, partition: \"peer(0..3) <-> peer(4..7)\"}", &experiment);
    assert_int_equal(experiment.atom_count, 1);
    assert_int_equal(kith_atom_count(&experiment.atoms[0]), 32);
    kith_experiment_close(&experiment);
}

/* A peer is down from the first begin to the last end. */
static void test_overlaps_merge(void **state)
{
    (void)state;
    struct kith_experiment experiment;
    load("{at: 2s, crash: \"peer(1)\", restart: 4s},"
         "{at: 3s, crash: \"peer(1)\", restart: 1s},"
         "{at: 6s, crash: \"peer(1)\", restart: 2s}",
         &experiment);
    assert_int_equal(experiment.atom_count, 2);
    assert_int_equal(experiment.atoms[0].at_ns, 2 * KITH_S);
    assert_int_equal(experiment.atoms[1].at_ns, 8 * KITH_S);
    assert_string_equal(kith_atom_event(&experiment.atoms[1])->name, "restart");
    kith_experiment_close(&experiment);

    /* One of them has no end: it never comes back. */
    load("{at: 2s, crash: \"peer(1)\", restart: 4s}, {at: 3s, crash: all}",
         &experiment);
    for (uint32_t i = 0; i < experiment.atom_count; i++)
        assert_string_equal(kith_atom_event(&experiment.atoms[i])->name,
                            "crash");
    assert_int_equal(experiment.atom_count, 8);
    kith_experiment_close(&experiment);
}

static void test_slow_multiplies(void **state)
{
    (void)state;
    static const struct {
        int64_t at_s;
        double factor;
    } wanted[] = {{0, 2}, {1, 6}, {2, 30}, {3, 10}, {4, 2}};
    struct kith_experiment experiment;
    load_stop("{at: 1s, for: 2s, slow: \"peer(3)\", by: 3},"
              "{at: 2s, for: 2s, slow: \"peer(3)\", by: 5}",
              "{peers: \"peer(3)\", by: 2}", &experiment);
    assert_int_equal(experiment.atom_count, COUNT(wanted));
    for (size_t i = 0; i < COUNT(wanted); i++) {
        assert_string_equal(kith_atom_event(&experiment.atoms[i])->name,
                            "slow");
        assert_int_equal(experiment.atoms[i].at_ns, wanted[i].at_s * KITH_S);
        assert_true(experiment.atoms[i].factor >= wanted[i].factor);
        assert_true(experiment.atoms[i].factor <= wanted[i].factor);
    }
    assert_int_equal(experiment.atoms[0].statement, UINT32_MAX);
    kith_experiment_close(&experiment);
}

/* Nobody knows when so many models have been sent: each stands as it is. */
static void test_models_do_not_merge(void **state)
{
    (void)state;
    struct kith_experiment experiment;
    load("{at: 1s, models: 11, huge: \"peer(3)\", by: 1e19},"
         "{at: 1s, models: 2, huge: \"peer(3)\", by: 3e38}",
         &experiment);
    assert_int_equal(experiment.atom_count, 2);
    assert_int_equal(experiment.atoms[0].models, 11);
    assert_int_equal(experiment.atoms[1].models, 2);
    assert_true(experiment.atoms[1].begins &&
                experiment.atoms[1].factor > 2e38);
    kith_experiment_close(&experiment);
}

/* A peer tells one lie at a time: the youngest in force, whatever fault it is
 * of; a default of its kind where no `by` is given. */
static void test_lies(void **state)
{
    (void)state;
    static const struct {
        int at_s;
        const char *name;
        double by;
        bool begins, has_factor;
    } wanted[] = {{1, "hostile scale", -10, true, true},
                  {2, "hostile nan", 0, true, false},
                  {3, "huge", 9, true, true},
                  {5, "hostile scale", -10, true, true},
                  {6, "hostile scale", 1, false, true}};
    struct kith_experiment experiment;
    static const char text[] =
        "name: x\nseed: 7\npeers: 8\nmodel: {kind: consensus, dim: 8}\n"
        "stop: {time: 1h}\ncompute: {step: 1ms}\nfaults:\n"
        "- {at: 1s, for: 5s, hostile: \"peer(3)\", kind: scale}\n"
        "- {at: 2s, for: 2s, hostile: \"peer(3)\", kind: nan}\n"
        "- {at: 3s, for: 2s, huge: \"peer(3)\", by: 9}\n";
    char error[KITH_EXPERIMENT_ERROR_BYTES] = "";
    if (kith_experiment_parse("x.yaml", text, strlen(text), NULL, 0,
                              &experiment, error) != KITH_OK)
        fail_msg("%s", error);
    assert_int_equal(experiment.atom_count, COUNT(wanted));
    for (size_t i = 0; i < COUNT(wanted); i++) {
        const struct kith_atom *atom = &experiment.atoms[i];
        assert_string_equal(kith_atom_event(atom)->name, wanted[i].name);
        assert_int_equal(atom->at_ns, wanted[i].at_s * KITH_S);
        assert_int_equal(atom->begins, wanted[i].begins);
        assert_int_equal(kith_atom_has_factor(atom), wanted[i].has_factor);
        assert_true(atom->factor >= wanted[i].by &&
                    atom->factor <= wanted[i].by);
    }
    assert_int_equal(kith_atom_lie(&experiment.atoms[4]).kind, KITH_LIE_NONE);
    kith_experiment_close(&experiment);
}

/* What makes failing runs shrinkable: the others keep their draws. */
static void test_removal_shifts_nothing(void **state)
{
    (void)state;
    static const char first[] = "{at: \"exp(2s)\", crash: \"n(2)\", "
                                "restart: \"exp(1s)\"}";
    static const char second[] = "{at: 5s, for: \"uniform(1s, 9s)\", "
                                 "pause: \"frac(0.5)\"}";
    char both[512];
    struct kith_experiment alone, together;
    snprintf(both, sizeof both, "%s, %s", first, second);
    load(second, &alone);
    load(both, &together);

    uint32_t found = 0;
    for (uint32_t i = 0; i < together.atom_count; i++) {
        if (together.atoms[i].statement != 1)
            continue;
        assert_true(found < alone.atom_count);
        assert_int_equal(together.atoms[i].at_ns, alone.atoms[found].at_ns);
        assert_int_equal(together.atoms[i].peer, alone.atoms[found].peer);
        found++;
    }
    assert_int_equal(found, alone.atom_count);
    assert_true(found > 0);
    kith_experiment_close(&alone);
    kith_experiment_close(&together);
}

/* Equal statements are still independent draws. */
static void test_twins_differ(void **state)
{
    (void)state;
    struct kith_experiment experiment;
    uint32_t sets[2] = {0, 0};
    load("{at: 1s, crash: \"n(3)\"}, {at: 1s, crash: \"n(3)\"}", &experiment);
    /* Merged: at least one peer beyond the first statement's three. */
    assert_true(experiment.atom_count > 3);
    for (uint32_t i = 0; i < experiment.atom_count; i++)
        sets[experiment.atoms[i].statement] |= 1u << experiment.atoms[i].peer;
    assert_int_equal(sets[0] & sets[1], 0);
    kith_experiment_close(&experiment);
}

/* Any soup of intervals: per subject begins and ends alternate. */
static void test_atoms_alternate(void **state)
{
    (void)state;
    struct kith_rng rng;
    kith_rng_init(&rng, 3, KITH_STREAM_TEST, 1);
    for (unsigned round = 0; round < 200; round++) {
        struct kith_atoms atoms = {0};
        for (uint32_t k = 0; k < 40; k++) {
            struct kith_atom atom = {.fault = kith_fault_find("pause"),
                                     .begins = true,
                                     .peer = kith_rng_below(&rng, 3),
                                     .other = KITH_NOBODY,
                                     .factor = 1,
                                     .statement = k,
                                     .at_ns = kith_rng_below(&rng, 20)};
            assert_int_equal(kith_atoms_add(&atoms, &atom), KITH_OK);
            atom.begins = false;
            atom.at_ns += kith_rng_below(&rng, 6);
            assert_int_equal(kith_atoms_add(&atoms, &atom), KITH_OK);
        }
        assert_int_equal(kith_atoms_settle(&atoms), KITH_OK);

        bool down[3] = {false};
        kith_ns last = 0;
        for (uint32_t i = 0; i < atoms.count; i++) {
            const struct kith_atom *atom = &atoms.list[i];
            assert_true(atom->at_ns >= last);
            last = atom->at_ns;
            assert_true(down[atom->peer] == !atom->begins);
            down[atom->peer] = !down[atom->peer];
        }
        assert_false(down[0] || down[1] || down[2]);
        free(atoms.list);
    }
}

/* A trace's hash holds them: each event has its own, unless begin and end are
 * one. */
static void test_numbers_differ(void **state)
{
    (void)state;
    unsigned seen = 0;
    for (unsigned i = 0; kith_faults[i] != NULL; i++) {
        const struct kith_fault *fault = kith_faults[i];
        if (fault->expand != NULL) /* its atoms are other kinds' */
            continue;
        const unsigned own =
            1u << fault->begin.number | 1u << fault->end.number;
        assert_non_null(fault->begin.name);
        assert_non_null(fault->end.name);
        assert_int_equal(seen & own, 0);
        seen |= own;
    }
}

static void test_refused(void **state)
{
    (void)state;
    static const struct {
        const char *faults, *word;
    } bad[] = {
        {"{crash: all}", "at: not given"},
        {"{at: 1s}", "found no fault"},
        {"{at: 1s, crash: all, pause: all}", "found both"},
        {"{at: 1s, crash: all, for: 1s}", "does not take \"for\""},
        {"{at: 1s, pause: all, restart: 1s}", "does not take \"restart\""},
        {"{at: 1s, slow: all}", "by: not given"},
        {"{at: 1s, slow: all, by: 1}", "above 1"},
        {"{at: 1s, slow: all, by: -2}", "above 1"},
        {"{at: 1s, huge: all, by: 9, models: 0}", "allowed: 1 to 1000000"},
        {"{at: 1s, huge: all, by: 9, models: 1.5}", "found \"1.5\""},
        {"{at: 1s, huge: all, by: 9, for: 1s, models: 2}", "both for and"},
        {"{at: 1s, slow: all, by: 9, models: 2}", "does not take \"models\""},
        {"{at: 1s, hostile: all}", "kind: not given"},
        {"{at: 1s, hostile: all, kind: flop}", "did you mean \"flip\""},
        {"{at: 1s, hostile: all, kind: huge}", "found \"huge\""},
        {"{at: 1s, hostile: all, kind: flip, by: 2}", "does not take \"by\""},
        {"{at: 1s, hostile: all, by: -1, kind: alie}", "above 0 to 1e+06"},
        {"{at: 1s, huge: all, by: 9, kind: flip}", "does not take \"kind\""},
        {"{at: 1s, partition: all}", "SELECTOR <-> SELECTOR"},
        {"{at: 1s, partition: \"all <-> n(9)\"}", "n(9)"},
        {"{at: 1s, crash: [all]}", "found a list"},
        {"{at: soon, crash: all}", "uniform(1s, 3s)"},
        {"{at: 1s, crsh: all}", "did you mean \"crash\""},
        {"crash", "found \"crash\""},
        {"{at: 2h, crash: all}", "predicted end"},
    };
    for (size_t i = 0; i < COUNT(bad); i++) {
        char text[512], error[KITH_EXPERIMENT_ERROR_BYTES] = "";
        struct kith_experiment experiment;
        snprintf(text, sizeof text,
                 "name: x\npeers: 8\nmodel: {kind: none}\nstop: {time: 1h}\n"
                 "faults:\n  - %s\n",
                 bad[i].faults);
        assert_true(kith_experiment_parse("x.yaml", text, strlen(text), NULL, 0,
                                          &experiment, error) != KITH_OK);
        if (strstr(error, bad[i].word) == NULL ||
            strstr(error, "x.yaml:6: faults") == NULL)
            fail_msg("%s: %s", bad[i].faults, error);
    }
}

/* Two crashes of each of a million peers are more than a list may hold. */
static void test_atoms_are_bounded(void **state)
{
    (void)state;
    static const char text[] =
        "name: x\npeers: 1000000\nmodel: {kind: none}\nstop: {time: 1h}\n"
        "faults: [{at: 1s, crash: all}, {at: 2s, crash: all}]\n";
    char error[KITH_EXPERIMENT_ERROR_BYTES] = "";
    struct kith_experiment experiment;
    assert_int_equal(kith_experiment_parse("x.yaml", text, strlen(text), NULL,
                                           0, &experiment, error),
                     KITH_ELIMIT);
    assert_non_null(strstr(error, "timed events"));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_spreads),
        cmocka_unit_test(test_draws_are_in_range),
        cmocka_unit_test(test_selectors),
        cmocka_unit_test(test_selection_is_fair),
        cmocka_unit_test(test_crash),
        cmocka_unit_test(test_partition),
        cmocka_unit_test(test_overlaps_merge),
        cmocka_unit_test(test_slow_multiplies),
        cmocka_unit_test(test_removal_shifts_nothing),
        cmocka_unit_test(test_twins_differ),
        cmocka_unit_test(test_atoms_alternate),
        cmocka_unit_test(test_numbers_differ),
        cmocka_unit_test(test_models_do_not_merge),
        cmocka_unit_test(test_lies),
        cmocka_unit_test(test_refused),
        cmocka_unit_test(test_atoms_are_bounded),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
