/* Goal: all links between two groups as one thing are the links one by one.
 * Method: random statements; the atoms of each single link, merged by
 * kith_atoms_settle(), against what the walk tells and the links are asked. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#include "kith/fault.h"

enum { PEERS = 7, STATEMENTS_MAX = 5, ROUNDS = 2000 };

static const char *const selectors[] = {"all",
                                        "peer(0)",
                                        "peer(3)",
                                        "peer(0..2)",
                                        "peer(3..6)",
                                        "peer(2..4)",
                                        "all - peer(1)",
                                        "peer(6)",
                                        "peer(1..5)",
                                        "all - peer(0)",
                                        "peer(0..3) - peer(2)"};
#define SELECTORS (sizeof selectors / sizeof *selectors)

struct statement {
    const char *first, *second;
    bool both_ways, ends;
    uint32_t at_s, for_s;
};

static void draw(struct kith_rng *rng, struct statement *statement)
{
    *statement = (struct statement){
        .first = selectors[kith_rng_below(rng, SELECTORS)],
        .second = selectors[kith_rng_below(rng, SELECTORS)],
        .both_ways = kith_rng_below(rng, 3) > 0,
        .ends = kith_rng_below(rng, 5) > 0,
        .at_s = kith_rng_below(rng, 6),
        .for_s = kith_rng_below(rng, 4),
    };
}

/* ---- one by one */

static void add(struct kith_atoms *atoms, uint32_t index,
                const struct statement *statement, kith_id from, kith_id to)
{
    struct kith_atom atom = {.fault = kith_fault_find("partition"),
                             .at_ns = statement->at_s * KITH_S,
                             .begins = true,
                             .peer = from,
                             .other = to,
                             .factor = 1,
                             .statement = index};
    assert_int_equal(kith_atoms_add(atoms, &atom), KITH_OK);
    atom.at_ns += statement->for_s * KITH_S;
    atom.begins = false;
    if (statement->ends)
        assert_int_equal(kith_atoms_add(atoms, &atom), KITH_OK);
}

static void expand(struct kith_atoms *atoms, uint32_t index,
                   const struct statement *statement)
{
    uint8_t first[PEERS], second[PEERS];
    char error[KITH_FAULT_ERROR_BYTES];
    assert_int_equal(
        kith_selector_parse(statement->first, PEERS, NULL, first, error),
        KITH_OK);
    assert_int_equal(
        kith_selector_parse(statement->second, PEERS, NULL, second, error),
        KITH_OK);
    for (kith_id i = 0; i < PEERS; i++)
        for (kith_id j = 0; j < PEERS; j++) {
            if (i == j || !first[i] || !second[j])
                continue;
            add(atoms, index, statement, i, j);
            if (statement->both_ways)
                add(atoms, index, statement, j, i);
        }
}

/* ---- as one thing */

static void load(const struct statement *statements, uint32_t count,
                 struct kith_experiment *experiment)
{
    char text[4096], error[KITH_EXPERIMENT_ERROR_BYTES];
    size_t at =
        (size_t)snprintf(text, sizeof text,
                         "name: x\nseed: 7\npeers: %u\nmodel: {kind: none}\n"
                         "stop: {time: 1h}\ncompute: {step: 1ms}\nfaults:\n",
                         (unsigned)PEERS);
    for (uint32_t i = 0; i < count; i++) {
        char length[16] = "";
        if (statements[i].ends)
            (void)snprintf(length, sizeof length, ", for: %us",
                           (unsigned)statements[i].for_s);
        at += (size_t)snprintf(
            text + at, sizeof text - at,
            "- {at: %us%s, partition: \"%s %s %s\"}\n",
            (unsigned)statements[i].at_s, length, statements[i].first,
            statements[i].both_ways ? "<->" : "->", statements[i].second);
    }
    if (kith_experiment_parse("x.yaml", text, strlen(text), NULL, 0, experiment,
                              error) != KITH_OK)
        fail_msg("%s in %s", error, text);
}

/* Told in the same order, the same. */
static void compare_walk(unsigned round,
                         const struct kith_experiment *experiment,
                         const struct kith_atoms *wanted)
{
    uint32_t at = 0;
    for (uint32_t i = 0; i < experiment->atom_count; i++) {
        struct kith_atom_walk walk = {.atom = &experiment->atoms[i]};
        struct kith_atom one;
        const uint32_t before = at;
        while (kith_atom_next(&walk, &one)) {
            const struct kith_atom *want = &wanted->list[at];
            if (at++ == wanted->count || one.at_ns != want->at_ns ||
                one.begins != want->begins || one.peer != want->peer ||
                one.other != want->other || one.statement != want->statement)
                fail_msg("round %u: atom %u differs", round, (unsigned)at);
        }
        assert_true(at > before);
    }
    if (at != wanted->count)
        fail_msg("round %u: told %u of %u", round, (unsigned)at,
                 (unsigned)wanted->count);
}

/* Asked of each link, also of one that is made late: the same forces, and as
 * many turns, which draw losses anew. */
static void compare_links(unsigned round,
                          const struct kith_experiment *experiment,
                          const struct kith_atoms *wanted)
{
    const struct kith_link_terms usual = {.loss = 0.5};
    for (kith_id from = 0; from < PEERS; from++)
        for (kith_id to = 0; to < PEERS; to++) {
            struct kith_link_flow want, asked;
            uint32_t at = 0;
            if (from == to)
                continue;
            kith_link_flow_init(&want, &usual, 1, from, to);
            kith_link_flow_init(&asked, &usual, 1, from, to);
            for (uint32_t i = 0; i < experiment->atom_count; i++) {
                const struct kith_atom *atom = &experiment->atoms[i];
                kith_atom_act(atom, &asked);
                const bool more = i + 1 < experiment->atom_count &&
                                  atom[1].at_ns == atom->at_ns;
                for (; at < wanted->count &&
                       wanted->list[at].at_ns <= atom->at_ns;
                     at++)
                    if (wanted->list[at].peer == from &&
                        wanted->list[at].other == to)
                        kith_atom_act(&wanted->list[at], &want);
                if (!more && (kith_link_is_cut(&want.terms) !=
                                  kith_link_is_cut(&asked.terms) ||
                              want.losses != asked.losses))
                    fail_msg("round %u: %u -> %u differs at %lld ns", round,
                             (unsigned)from, (unsigned)to,
                             (long long)atom->at_ns);
            }
        }
}

static void test_random_statements(void **state)
{
    (void)state;
    uint32_t turns = 0, instants = 0;
    for (unsigned round = 0; round < ROUNDS; round++) {
        struct statement statements[STATEMENTS_MAX];
        struct kith_atoms atoms = {0};
        struct kith_experiment experiment;
        struct kith_rng rng;
        kith_rng_init(&rng, 5, KITH_STREAM_TEST, round);
        const uint32_t count = 1 + kith_rng_below(&rng, STATEMENTS_MAX);
        for (uint32_t i = 0; i < count; i++) {
            draw(&rng, &statements[i]);
            expand(&atoms, i, &statements[i]);
            instants += statements[i].ends && statements[i].for_s == 0;
        }
        assert_int_equal(kith_atoms_settle(&atoms), KITH_OK);
        load(statements, count, &experiment);
        turns += atoms.count;

        compare_walk(round, &experiment, &atoms);
        compare_links(round, &experiment, &atoms);

        kith_experiment_close(&experiment);
        kith_atoms_free(atoms.list, NULL);
    }
    assert_true(turns > 20 * ROUNDS && instants > 100);
}

/* 10^12 links are an atom or two, and asked as any. */
static void test_a_million_peers(void **state)
{
    (void)state;
    static const char text[] =
        "name: x\npeers: 1000000\nmodel: {kind: none}\nstop: {time: 1h}\n"
        "compute: {step: 1ms}\n"
        "faults: [{at: 1s, for: 2s, partition: \"all <-> all\"},\n"
        "  {at: 4s, partition: \"peer(0..499999) -> peer(500000..999999)\"}]\n";
    char error[KITH_EXPERIMENT_ERROR_BYTES], words[64];
    struct kith_experiment experiment;
    if (kith_experiment_parse("x.yaml", text, strlen(text), NULL, 0,
                              &experiment, error) != KITH_OK)
        fail_msg("%s", error);
    const struct kith_atom *const atoms = experiment.atoms;

    assert_int_equal(experiment.atom_count, 3);
    assert_int_equal(kith_atom_count(&atoms[2]), 1);
    assert_true(kith_atom_turns(&atoms[0], true, 999999, 0));
    assert_true(kith_atom_turns(&atoms[1], false, 999999, 0));
    assert_true(kith_atom_turns(&atoms[2], true, 7, 999999));
    assert_false(kith_atom_turns(&atoms[2], true, 999999, 7));
    assert_int_equal(atoms[2].peer, 0);
    assert_int_equal(atoms[2].other, 500000);
    assert_string_equal(kith_sides_text(atoms[2].sides, words, sizeof words),
                        "0..499999 -> 500000..999999");
    kith_experiment_close(&experiment);
}

/* Room for the sides of 64 statements of 2^20 peers. */
static void test_sides_are_bounded(void **state)
{
    (void)state;
    static char text[16384];
    char error[KITH_EXPERIMENT_ERROR_BYTES] = "";
    struct kith_experiment experiment;
    size_t at = (size_t)snprintf(text, sizeof text,
                                 "name: x\npeers: 1048576\n"
                                 "model: {kind: none}\nstop: {time: 1h}\n"
                                 "compute: {step: 1ms}\nfaults:\n");
    for (unsigned i = 0; i < 65; i++)
        at += (size_t)snprintf(text + at, sizeof text - at,
                               "- {at: %us, partition: \"peer(0) -> all\"}\n",
                               i + 1);
    assert_true(kith_experiment_parse("x.yaml", text, strlen(text), NULL, 0,
                                      &experiment, error) != KITH_OK);
    assert_non_null(strstr(error, "faults[64]"));
    assert_non_null(strstr(error, "take fewer statements"));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_random_statements),
        cmocka_unit_test(test_a_million_peers),
        cmocka_unit_test(test_sides_are_bounded),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
