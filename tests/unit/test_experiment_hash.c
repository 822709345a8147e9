/* Goal: the experiment's hash covers exactly the keys that all peers must agree
 * on; two files that mean the same have the same; a file whose hash has another
 * version is compared by its text.
 * Method: every row of the key table is given every value out of a list that
 * its type takes: one of them must change the hash, or none may. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

#include <cmocka.h>

#include "experiment_base.h"
#include "kith/backend.h"
#include "src/experiment/key_table.h"

/* Texts that some type of key takes. */
static const char *const texts[] = {
    "1",    "2",         "3",           "0.25",       "0.75", "true",
    "fc1",  "5s",        "10Mbit",      "classes(2)", "iid",  "never",
    "1e-3", "unlimited", "exponential", "measured",   "end",  "false",
};

static bool changes(const struct key *key, const char *text,
                    const struct kith_experiment *before)
{
    struct kith_experiment after = *before;
    return kith_schema_set(key, text, &after) == KITH_OK &&
           kith_experiment_hash(&after) != kith_experiment_hash(before);
}

static bool any_changes(const struct key *key,
                        const struct kith_experiment *before)
{
    bool found = false;
    for (size_t i = 0; i < COUNT(texts); i++)
        found = changes(key, texts[i], before) || found;
    for (unsigned i = 0; key->choice != NULL && key->choice->name(i) != NULL;
         i++)
        found = changes(key, key->choice->name(i), before) || found;
    return found;
}

/* Lists and files are read by the loader: one --set each that changes them. */
static const char *custom_set(const char *path)
{
    static const char *const sets[] = {
        "model.layers=[784, 128, 10]",
        "model.image=",
        "model.channels=",
        "train.milestones=",
        "train.augment={crop: 4}",
        "gossip.path=",
        "network.matrix=",
        "network.matrix_p90=",
        "network.coordinates=",
        "network.zone_rates=",
        "faults=[]",
        "compute.slow=[{peers: \"peer(2)\", by: 10}]",
        "assert=[]",
    };
    const size_t length = strlen(path);
    for (size_t i = 0; i < COUNT(sets); i++)
        if (strncmp(sets[i], path, length) == 0 && sets[i][length] == '=')
            return sets[i];
    return NULL;
}

static uint64_t hash_of(const char *set)
{
    struct kith_experiment experiment;
    must_parse(set, &experiment);
    const uint64_t hash = kith_experiment_hash(&experiment);
    kith_experiment_close(&experiment);
    return hash;
}

static void each_row_counts_or_does_not(void **state)
{
    (void)state;
    struct kith_experiment experiment;
    must_parse(NULL, &experiment);
    const uint64_t hash = kith_experiment_hash(&experiment);
    experiment.central.present = true;
    for (const struct key *key = kith_experiment_keys; key->path != NULL;
         key++) {
        const char *const set = custom_set(key->path);
        const bool is_shared = !(key->flags & KEY_LOCAL);
        if (key->choice != NULL && key->choice->name(1) == NULL)
            continue; /* one value alone */
        if (set == NULL && any_changes(key, &experiment) != is_shared)
            fail_msg("%s: %s", key->path,
                     is_shared ? "changes nothing" : "changes the hash");
        if (set != NULL && set[strlen(key->path) + 1] != '\0' &&
            (hash_of(set) != hash) != is_shared)
            fail_msg("%s: %s", set,
                     is_shared ? "changes nothing" : "changes the hash");
    }
    experiment.central.present = false;
    assert_true(kith_experiment_hash(&experiment) == hash);
    kith_experiment_close(&experiment);
}

/* A value in its canonical text reads back as itself: nothing is cut off. */
static void texts_are_canonical(void **state)
{
    (void)state;
    struct kith_experiment experiment, again;
    must_parse("train.learning_rate=0.1234567890123456", &experiment);
    again = experiment;
    for (const struct key *key = kith_experiment_keys; key->path != NULL;
         key++) {
        char text[SCHEMA_SHOWN_BYTES], back[SCHEMA_SHOWN_BYTES];
        if ((key->flags & KEY_LOCAL) || key->show != NULL ||
            kith_schema_show(key, &experiment, text) || text[0] == '\0')
            continue;
        if (key->type == KEY_SIZES)
            continue;
        if (kith_schema_set(key, text, &again) != KITH_OK)
            fail_msg("%s: %s", key->path, text);
        (void)kith_schema_show(key, &again, back);
        assert_string_equal(text, back);
    }
    assert_true(again.train.config.learning_rate == 0.1234567890123456);
    kith_experiment_close(&experiment);
}

#define VGG "model={kind: vgg, depth: 8, image: [32, 32, 3], classes: 10"

/* One file and another that says the same. */
static void same_meaning_same_hash(void **state)
{
    (void)state;
    static const char *const pairs[][2] = {
        {"gossip={every: 2}", "gossip={every: 2, algorithm: adpsgd}"},
        {"gossip={topology: ring}", "gossip={topology: ring, chance: 1.0}"},
        {"train={momentum: 0}", "train={optimiser: sgd, momentum: -0.0}"},
        {"stop={time: 60500ms}", "stop={time: 60.5s}"},
        {"data={kind: synthetic}", "data={kind: synthetic, rows: 10000}"},
        {"data={kind: gaussian}", "data={kind: gaussian, rows: 8000}"},
        {"train.backend=cpu", "train.backend=naive32"},
        {VGG "}", VGG ", norm: batch}"},
        {"seed=7", "seed=007"},
    };
    for (size_t i = 0; i < COUNT(pairs); i++)
        if (hash_of(pairs[i][0]) != hash_of(pairs[i][1]))
            fail_msg("%s is not %s", pairs[i][0], pairs[i][1]);
    assert_true(hash_of("data={kind: synthetic}") !=
                hash_of("data={kind: synthetic, rows: 9999}"));
    assert_true(hash_of("stop={time: 60s}") != hash_of("stop={time: 61s}"));
    assert_true(hash_of(VGG "}") != hash_of(VGG ", norm: group}"));
}

static uint64_t hash_of_gpt(const char *set)
{
    static const char text[] =
        "name: gpt\npeers: 2\nstop: {steps: 1}\n"
        "model: {kind: gpt, depth: 1, heads: 2, width: 8, context: 8, "
        "vocabulary: 8}\n"
        "data: {kind: synthetic}\n"
        "compute: {step: 5ms}\n";
    struct kith_experiment experiment;
    char error[KITH_EXPERIMENT_ERROR_BYTES] = "";
    if (parse(text, set, &experiment, error) != KITH_OK)
        fail_msg("%s", error);
    const uint64_t hash = kith_experiment_hash(&experiment);
    kith_experiment_close(&experiment);
    return hash;
}

/* A model's first norm is the same one whether the file names it or not. */
static void first_norm_is_no_other(void **state)
{
    (void)state;
    const uint64_t hash = hash_of_gpt(NULL);
    assert_true(hash_of_gpt("model.norm=layer") == hash);
    assert_true(hash_of_gpt("model.positions=learned") == hash);
    assert_true(hash_of_gpt("model.norm=rms") != hash);
    assert_true(hash_of_gpt("model.positions=rotary") != hash);
    /* Before there were two norms and positions, or a guard by default. */
    assert_true(hash_of_gpt("gossip.guard=none") ==
                UINT64_C(0x6fd456aab72fe1ca));
}

/* The rules behind the version: whoever changes this figure adds 1 to it. */
static void the_version_holds(void **state)
{
    (void)state;
    struct kith_experiment experiment;
    char text[KITH_EXPERIMENT_HASH_BYTES];
    must_parse("gossip.guard=none", &experiment);
    kith_experiment_hash_text(&experiment, text);
    assert_string_equal(text, "2:cfe8a8b078bf4659");
    kith_experiment_close(&experiment);
}

static void other_experiments_are_named(void **state)
{
    (void)state;
    static const struct {
        const char *set, *words;
    } cases[] = {
        {"seed=8", "its seed is 9, this run's is 8"},
        {"train.smoothing=0.1", "its train.smoothing is 0, this run's is 0.1"},
        {"stop={steps: 70}", "its stop.epochs is 5, this run's is not given"},
        {"model.layers=[784, 10]",
         "its number of parameters is 203530, this run's is 7850"},
        {"data.split=iid",
         "its data.split is dirichlet(0.1), this run's is not given"},
    };
    char what[200], hash[KITH_EXPERIMENT_HASH_BYTES];
    struct kith_experiment here, there;
    must_parse(NULL, &there);
    kith_experiment_hash_text(&there, hash);
    for (size_t i = 0; i < COUNT(cases); i++) {
        must_parse(cases[i].set, &here);
        assert_false(kith_experiment_is(&here, hash, base, what, sizeof what));
        if (strstr(what, cases[i].words) == NULL)
            fail_msg("%s: %s", cases[i].set, what);
        kith_experiment_close(&here);
    }
    assert_true(kith_experiment_is(&there, hash, NULL, what, sizeof what));
    must_parse("seed=8", &here);
    assert_false(kith_experiment_is(&here, hash, NULL, what, sizeof what));
    assert_string_equal(what, "its settings differ");
    assert_false(
        kith_experiment_is(&here, hash, "{not: yaml", what, sizeof what));
    assert_string_equal(what, "its settings differ");
    kith_experiment_close(&here);
    kith_experiment_close(&there);
}

/* A file that names no guard: its hash of before is that of guard none. */
static void no_guard_meant_none(void **state)
{
    (void)state;
    char what[200], before[KITH_EXPERIMENT_HASH_BYTES];
    struct kith_experiment here, there;
    must_parse("gossip.guard=none", &there);
    kith_experiment_hash_text(&there, before);
    must_parse(NULL, &here);
    assert_false(kith_experiment_is(&here, before, base, what, sizeof what));
    assert_non_null(strstr(what, "named no gossip.guard"));
    assert_true(kith_experiment_is(&there, before, base, what, sizeof what));
    kith_experiment_close(&here);
    kith_experiment_close(&there);
}

/* A hash before version 2 was a number alone. */
static void old_hashes_are_left_to_the_text(void **state)
{
    (void)state;
    char what[200];
    struct kith_experiment here, other;
    must_parse(NULL, &here);
    must_parse("seed=8", &other);
    static const char *const old[] = {"1234567890", "00c0ffee00c0ffee", "",
                                      "1:00c0ffee00c0ffee", NULL};
    for (size_t i = 0; i < COUNT(old); i++) {
        assert_true(kith_experiment_is(&here, old[i], base, what, sizeof what));
        assert_false(
            kith_experiment_is(&other, old[i], base, what, sizeof what));
        assert_string_equal(what, "its seed is 9, this run's is 8");
        assert_false(
            kith_experiment_is(&here, old[i], NULL, what, sizeof what));
        assert_non_null(strstr(what, "written by kith before"));
        assert_non_null(strstr(what, "start anew"));
    }
    kith_experiment_close(&here);
    kith_experiment_close(&other);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(each_row_counts_or_does_not),
        cmocka_unit_test(texts_are_canonical),
        cmocka_unit_test(same_meaning_same_hash),
        cmocka_unit_test(first_norm_is_no_other),
        cmocka_unit_test(the_version_holds),
        cmocka_unit_test(other_experiments_are_named),
        cmocka_unit_test(no_guard_meant_none),
        cmocka_unit_test(old_hashes_are_left_to_the_text),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
