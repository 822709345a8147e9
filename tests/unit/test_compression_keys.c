/* Goal: gossip.density, levels, block and unbiased have their ranges, their
 * defaults, and are refused where the compressor does not read them; each is
 * part of the hash. Method: one key at a time beside every compressor. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "experiment_base.h"
#include "kith/compressor.h"

static void defaults_are_the_compressors_own(void **state)
{
    struct kith_experiment experiment;
    (void)state;
    must_parse(NULL, &experiment);
    const struct kith_compressor_config *config =
        &experiment.gossip.compression;
    const struct kith_compressor_config own = kith_compressor_defaults();
    assert_true(config->density == own.density);
    assert_int_equal(config->levels, own.levels);
    assert_int_equal(config->block, own.block);
    assert_true(config->unbiased == own.unbiased);
    kith_experiment_close(&experiment);
}

static void refuses(const char *set, const char *words)
{
    char error[KITH_EXPERIMENT_ERROR_BYTES] = "";
    struct kith_experiment experiment;
    assert_int_not_equal(parse(base, set, &experiment, error), KITH_OK);
    if (strstr(error, words) == NULL)
        fail_msg("%s: \"%s\" does not say \"%s\"", set, error, words);
}

static void ranges_are_held(void **state)
{
    (void)state;
    refuses("gossip.density=0", "a number above 0 to 1");
    refuses("gossip.density=1.01", "a number above 0 to 1");
    refuses("gossip.density=nan", "a number above 0 to 1");
    refuses("gossip.levels=0", "a whole number from 1 to 32767");
    refuses("gossip.levels=32768", "a whole number from 1 to 32767");
    refuses("gossip.levels=1.5", "a whole number from 1 to 32767");
    refuses("gossip.block=1073741825", "a whole number from 0 to 1073741824");
    refuses("gossip.block=-1", "a whole number from 0 to 1073741824");
    refuses("gossip.unbiased=maybe", "true or false");
    refuses("gossip.compressor=topk", "did you mean \"top-k\"");
}

/* The error of `key` beside the compressor, "" where there is none. */
static void told(const char *compressor, const char *key, char *error)
{
    char set[96];
    (void)snprintf(set, sizeof set, "gossip={compressor: %s, %s}", compressor,
                   key);
    struct kith_experiment experiment;
    error[0] = '\0';
    if (parse(base, set, &experiment, error) == KITH_OK)
        kith_experiment_close(&experiment);
}

static void what_is_not_read_is_refused(void **state)
{
    static const char *const keys[] = {
        [KITH_COMPRESSOR_KEY_DENSITY] = "density: 0.5",
        [KITH_COMPRESSOR_KEY_LEVELS] = "levels: 3",
        [KITH_COMPRESSOR_KEY_BLOCK] = "block: 64",
        [KITH_COMPRESSOR_KEY_UNBIASED] = "unbiased: true"};
    char error[KITH_EXPERIMENT_ERROR_BYTES], words[64];
    (void)state;
    for (unsigned i = 0; kith_compressors[i] != NULL; i++)
        for (unsigned key = 0; key < KITH_COMPRESSOR_KEY_COUNT; key++) {
            const char *name = kith_compressors[i]->name;
            (void)snprintf(words, sizeof words,
                           "compressor %s does not read it", name);
            told(name, keys[key], error);
            assert_true((strstr(error, words) == NULL) ==
                        (kith_compressors[i]->keys >> key & 1u));
        }
}

static void all_of_it_is_hashed(void **state)
{
    struct kith_experiment experiment;
    (void)state;
    must_parse(NULL, &experiment);
    const struct kith_compressor_config before = experiment.gossip.compression;
    const uint64_t hash = kith_experiment_hash(&experiment);
    experiment.gossip.compression.density = 0.5;
    assert_true(kith_experiment_hash(&experiment) != hash);
    experiment.gossip.compression = before;
    experiment.gossip.compression.levels = 3;
    assert_true(kith_experiment_hash(&experiment) != hash);
    experiment.gossip.compression = before;
    experiment.gossip.compression.block = 64;
    assert_true(kith_experiment_hash(&experiment) != hash);
    experiment.gossip.compression = before;
    experiment.gossip.compression.unbiased = true;
    assert_true(kith_experiment_hash(&experiment) != hash);
    experiment.gossip.compression = before;
    assert_true(kith_experiment_hash(&experiment) == hash);
    kith_experiment_close(&experiment);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(defaults_are_the_compressors_own),
        cmocka_unit_test(ranges_are_held),
        cmocka_unit_test(what_is_not_read_is_refused),
        cmocka_unit_test(all_of_it_is_hashed),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
