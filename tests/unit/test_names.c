/* Goal: another program's names and axes are ours: a file of pairs is read or
 * refused by line, weights go out under them and come back, and what does not
 * fit is named with what is close. Method: a small gpt, names by hand. */
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "kith/experiment.h"
#include "kith/model.h"
#include "kith/names.h"

static char path[] = "/tmp/kith-names-XXXXXX";
static char error[KITH_WEIGHTS_ERROR_BYTES];
static struct kith_graph *network;
static const struct kith_layout *layout;
static double *x, *z; /* (dim) */

_Static_assert(KITH_WEIGHTS_ERROR_BYTES >= KITH_EXPERIMENT_ERROR_BYTES,
               "one buffer for all");

static enum kith_err parse(const char *text, struct kith_names *names)
{
    return kith_names_parse("names.yaml", text, strlen(text), names, error);
}

static void says(const char *part)
{
    if (strstr(error, part) == NULL)
        fail_msg("\"%s\" does not say \"%s\"", error, part);
}

static void test_files(void **state)
{
    (void)state;
    static const struct {
        const char *text, *part;
    } wrong[] = {
        {"", "found no keys"},
        {"a: [b, c]", "names.yaml:1: a: found a list; allowed: a tensor"},
        {"ok: a\nb: {axes: [1, 0]}", "names.yaml:2: b: found a mapping"},
        {"b: {name: a, axis: [1, 0]}", "b: found a mapping"},
        {"b: {name: a, axes: 1}", "axes: found \"1\"; allowed: ours"},
        {"b: {name: a, axes: [0, 0]}", "axes: found a list"},
        {"b: {name: a, axes: [0, 2]}", "axes: found a list"},
        {"b: {name: a, axes: [0, 1, 2, 3, 4]}", "axes: found a list"},
        {"b: {name: a, axes: [-1, 0]}", "axes: found a list"},
        {"b: {name: a, axes: []}", "axes: found an empty list"},
        {"h.*.b: a", "one * in both or in neither"},
        {"h.*.*: a.*.*", "one * in both or in neither"},
        {"b: ''", "names of up to 127 bytes"},
        {"b: a\nb: c", "given twice"},
    };
    struct kith_names names;
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) {
        assert_int_not_equal(parse(wrong[i].text, &names), KITH_OK);
        says(wrong[i].part);
    }
    char *many = malloc(2000 * 16), *at = many;
    assert_non_null(many);
    for (int i = 0; i < 1100; i++)
        at += sprintf(at, "t%d: o%d\n", i, i);
    assert_int_not_equal(parse(many, &names), KITH_OK);
    says("more than 1024 keys");
    free(many);

    assert_int_equal(parse("h.*.w: {name: b.*.v, axes: [1, 0]}\nc: d", &names),
                     KITH_OK);
    assert_int_equal(names.count, 2);
    assert_string_equal(names.pairs[0].theirs, "h.*.w");
    assert_string_equal(names.pairs[0].ours, "b.*.v");
    assert_int_equal(names.pairs[0].axis_count, 2);
    assert_int_equal(names.pairs[0].axes[0], 1);
    assert_int_equal(names.pairs[1].axis_count, 0);
    assert_int_equal(names.pairs[1].line, 2);
    kith_names_close(&names);
    assert_int_equal(kith_names_load("/nowhere/n.yaml", &names, error),
                     KITH_ENOENT);
}

static void test_against_a_model(void **state)
{
    (void)state;
    static const struct {
        const char *text, *part;
    } wrong[] = {
        {"a: h.0.ln_1.wieght", "did you mean \"h.0.ln_1.weight\""},
        {"ok: wte.weight\na.*: g.*.ln_1.weight", "names.yaml:2: found \"g.*"},
        {"a: {name: ln_f.bias, axes: [1, 0]}",
         "names.yaml:1: axes: found 2 of them; ln_f.bias has 1"},
        {"a: wte.weight\nw.*: w*.weight",
         "names.yaml:2: wte.weight has a name from line 1"},
    };
    struct kith_names names;
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) {
        if (i == 3)
            continue;
        assert_int_equal(parse(wrong[i].text, &names), KITH_OK);
        assert_int_equal(kith_names_check(&names, layout, error),
                         KITH_EMISMATCH);
        says(wrong[i].part);
        assert_int_equal(kith_weights_read(path, &names, layout, z, error),
                         KITH_EMISMATCH);
        says(wrong[i].part);
        kith_names_close(&names);
    }
    assert_int_equal(parse("a: wte.weight\nw*: w*.weight", &names), KITH_OK);
    assert_int_equal(kith_names_check(&names, layout, error), KITH_EMISMATCH);
    says(wrong[3].part);
    kith_names_close(&names);
}

static const char theirs[] =
    "emb: wte.weight\n"
    "blocks.*.qkv.weight: {name: h.*.attn.c_attn.weight, axes: [1, 0]}\n"
    "blocks.*.norm.weight: h.*.ln_1.weight\n";

static void test_round_trip(void **state)
{
    (void)state;
    struct kith_names names;
    for (size_t i = 0; i < layout->dim; i++)
        x[i] = (double)(float)(0.37 * (double)i - 5);
    assert_int_equal(parse(theirs, &names), KITH_OK);

    assert_int_equal(kith_weights_write(path, &names, layout, x, error),
                     KITH_OK);
    memset(z, 0, layout->dim * sizeof *z);
    if (kith_weights_read(path, &names, layout, z, error) != KITH_OK)
        fail_msg("%s", error);

    assert_memory_equal(x, z, layout->dim * sizeof *x);
    /* Under our names nothing of that is found: all of it is told. */
    assert_int_equal(kith_weights_read(path, NULL, layout, z, error),
                     KITH_EMISMATCH);
    says("no tensor wte.weight (11, 8), close is emb (11, 8)");
    says("no tensor h.0.attn.c_attn.weight (8, 24), close is "
         "blocks.0.qkv.weight (24, 8)");
    says("no tensor h.0.ln_1.weight (8), close is blocks.0.norm.weight (8)");
    kith_names_close(&names);
    assert_int_equal(parse("q.*: h.*.attn.c_attn.weight\nemb: wte.weight\n"
                           "blocks.*.norm.weight: h.*.ln_1.weight",
                           &names),
                     KITH_OK);
    assert_int_equal(kith_weights_read(path, &names, layout, z, error),
                     KITH_EMISMATCH);
    says("no tensor q.0 for h.0.attn.c_attn.weight (8, 24), close is "
         "blocks.0.qkv.weight (24, 8)");
    kith_names_close(&names);
    assert_int_equal(parse("ln_f.bias: ln_f.weight", &names), KITH_OK);
    assert_int_equal(kith_weights_write(path, &names, layout, x, error),
                     KITH_EMISMATCH);
    says("two tensors of the model would be called \"ln_f.bias\"");
    kith_names_close(&names);
}

/* Every permutation of four axes against indices written out. */
static void test_axes(void **state)
{
    (void)state;
    const struct kith_model_view view = {
        .name = "k", .rank = 4, .shape = {2, 3, 4, 5}, .elements = 120};
    double ours[120], there[120], back[120];
    for (int i = 0; i < 120; i++)
        ours[i] = i;
    for (uint8_t p = 0; p < 255; p++) {
        struct kith_names_pair pair = {
            .theirs = "t", .ours = "k", .axis_count = 4};
        unsigned seen = 0;
        for (int i = 0; i < 4; i++) {
            pair.axes[i] = p >> (2 * i) & 3;
            seen |= 1u << pair.axes[i];
        }
        if (seen != 15)
            continue;
        struct kith_names names = {.pairs = &pair, .count = 1};
        struct kith_tensor_entry entry;
        assert_ptr_equal(kith_names_entry(&names, &view, &entry), &pair);
        assert_string_equal(entry.name, "t");
        kith_names_to_theirs(&pair, &view, ours, there);
        for (size_t n = 0; n < 120; n++) {
            const size_t i[] = {n / 60, n / 20 % 3, n / 5 % 4, n % 5};
            size_t j[4], at = 0;
            for (int k = 0; k < 4; k++)
                j[pair.axes[k]] = i[k];
            for (int k = 0; k < 4; k++)
                at = at * entry.shape[k] + j[k];
            assert_true(there[at] == ours[n]);
        }
        kith_names_to_ours(&pair, &view, there, back);
        assert_memory_equal(ours, back, sizeof ours);
    }
}

static int open_model(void **state)
{
    (void)state;
    const struct kith_model_config config = {
        .depth = 1, .heads = 2, .width = 8, .context = 4, .vocabulary = 11};
    const struct kith_graph_options options = {
        .backend = kith_backend_find("naive32"), .rows = 1};
    const int fd = mkstemp(path);
    if (fd < 0 || close(fd) != 0 ||
        kith_graph_open(kith_model_find("gpt"), &config, &options, &network,
                        error) != KITH_OK)
        return 1;
    layout = kith_graph_layout(network);
    x = calloc(layout->dim, sizeof *x);
    z = calloc(layout->dim, sizeof *z);
    return x == NULL || z == NULL;
}

static int close_model(void **state)
{
    (void)state;
    free(x);
    free(z);
    kith_graph_close(network);
    return unlink(path);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_files),
        cmocka_unit_test(test_against_a_model),
        cmocka_unit_test(test_round_trip),
        cmocka_unit_test(test_axes),
    };
    return cmocka_run_group_tests(tests, open_model, close_model);
}
