/* Goal: weights go out under Hugging Face's names and come in from what others
 * write: prefixes, half precision, tensors that are not ours. Method: a small
 * gpt written and read; then files made by hand for each rule. */
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

#include "kith/checkpoint.h"
#include "kith/model.h"

static char path[] = "/tmp/kith-weights-XXXXXX";
static char error[KITH_WEIGHTS_ERROR_BYTES];
static struct kith_graph *network;
static const struct kith_layout *layout;
static double *x, *z; /* (dim) */

/* Every view of x under a prefix in a dtype; `bend` changes the entries. */
static void write_views(const char *prefix, enum kith_dtype dtype,
                        void (*bend)(struct kith_tensor_entry *, size_t *))
{
    struct kith_tensor_entry *entries =
        calloc(layout->view_count + 2, sizeof *entries);
    assert_non_null(entries);
    size_t count = layout->view_count;
    for (uint32_t i = 0; i < layout->view_count; i++) {
        const struct kith_model_view *view = &layout->views[i];
        entries[i].dtype = dtype;
        entries[i].rank = view->rank;
        for (uint32_t k = 0; k < view->rank; k++)
            entries[i].shape[k] = view->shape[k];
        (void)snprintf(entries[i].name, sizeof entries[i].name, "%s%s", prefix,
                       view->name);
    }
    if (bend != NULL)
        bend(entries, &count);
    uint8_t *header;
    size_t bytes, data = 0;
    assert_int_equal(
        kith_safetensors_header(entries, count, NULL, 0, &header, &bytes),
        KITH_OK);
    FILE *file = fopen(path, "wb");
    assert_non_null(file);
    assert_int_equal(fwrite(header, 1, bytes, file), bytes);
    for (size_t i = 0; i < count; i++)
        data += entries[i].bytes;
    /* Each element its index modulo 8, halved: exact in every type. */
    for (size_t at = 0; at < data; at += kith_dtype_bytes(dtype)) {
        const float value = (float)(at / kith_dtype_bytes(dtype) % 8) / 2;
        const double wide = (double)value;
        uint32_t bits;
        uint16_t half;
        memcpy(&bits, &value, sizeof bits);
        half = (uint16_t)(bits >> 16);
        if (dtype == KITH_DTYPE_F16)
            half = value == 0 ? 0
                              : (uint16_t)(((bits >> 23) - 112) << 10 |
                                           (bits >> 13 & 1023));
        const void *from = dtype == KITH_DTYPE_F64   ? (const void *)&wide
                           : dtype == KITH_DTYPE_F32 ? (const void *)&value
                                                     : (const void *)&half;
        assert_int_equal(fwrite(from, kith_dtype_bytes(dtype), 1, file), 1);
    }
    assert_int_equal(fclose(file), 0);
    free(header);
    free(entries);
}

static void expect_values(void)
{
    if (kith_weights_read(path, NULL, layout, z, error) != KITH_OK)
        fail_msg("%s", error);
    for (size_t i = 0; i < layout->dim; i++)
        assert_true(z[i] == (double)(i % 8) / 2);
}

static void test_round_trip(void **state)
{
    (void)state;
    for (size_t i = 0; i < layout->dim; i++)
        x[i] = (double)(float)(0.37 * (double)i - 5);
    if (kith_weights_write(path, NULL, layout, x, error) != KITH_OK)
        fail_msg("%s", error);
    if (kith_weights_read(path, NULL, layout, z, error) != KITH_OK)
        fail_msg("%s", error);
    assert_memory_equal(x, z, layout->dim * sizeof *x);
}

static void test_types_and_prefixes(void **state)
{
    (void)state;
    static const char *const prefixes[] = {"", "transformer.", "model."};
    for (int dtype = 0; dtype < KITH_DTYPE_COUNT; dtype++) {
        for (unsigned i = 0; i < 3; i++) {
            write_views(prefixes[i], (enum kith_dtype)dtype, NULL);
            expect_values();
        }
    }
}

/* A tied head and an attention mask, as GPT-2's own files have them. */
static void add_strangers(struct kith_tensor_entry *entries, size_t *count)
{
    entries[*count] = (struct kith_tensor_entry){
        .name = "lm_head.weight", .rank = 2, .shape = {3, 2}};
    entries[*count + 1] = (struct kith_tensor_entry){
        .name = "h.0.attn.bias", .rank = 4, .shape = {1, 1, 2, 2}};
    *count += 2;
}

static void lose_one(struct kith_tensor_entry *entries, size_t *count)
{
    (void)entries;
    --*count;
}

static void transpose_one(struct kith_tensor_entry *entries, size_t *count)
{
    for (size_t i = 0; i < *count; i++) {
        if (strstr(entries[i].name, "mlp.c_fc.weight") == NULL)
            continue;
        const uint64_t side = entries[i].shape[0];
        entries[i].shape[0] = entries[i].shape[1];
        entries[i].shape[1] = side;
        return;
    }
    fail_msg("no such view");
}

static void flatten_one(struct kith_tensor_entry *entries, size_t *count)
{
    (void)count;
    entries[0].shape[0] *= entries[0].shape[1];
    entries[0].rank = 1;
}

static void expect_refusal(enum kith_err want, const char *part)
{
    assert_int_equal(kith_weights_read(path, NULL, layout, z, error), want);
    if (strstr(error, part) == NULL || strstr(error, path) == NULL)
        fail_msg("\"%s\" does not say \"%s\"", error, part);
}

static void test_other_tensors(void **state)
{
    (void)state;
    write_views("transformer.", KITH_DTYPE_F32, add_strangers);
    expect_values();
    write_views("", KITH_DTYPE_F32, lose_one);
    expect_refusal(KITH_EMISMATCH, layout->views[layout->view_count - 1].name);
    write_views("", KITH_DTYPE_F32, transpose_one);
    expect_refusal(KITH_EMISMATCH, "is (32, 8), the model's is (8, 32)");
    write_views("", KITH_DTYPE_F32, flatten_one);
    expect_refusal(KITH_EMISMATCH, "the model's is (");
    write_views("other.", KITH_DTYPE_F32, NULL);
    expect_refusal(KITH_EMISMATCH, "it has no tensor");
}

static void test_files(void **state)
{
    (void)state;
    FILE *file = fopen(path, "wb");
    assert_non_null(file);
    assert_int_equal(fclose(file), 0);
    expect_refusal(KITH_EPARSE, "truncated");
    assert_int_equal(kith_weights_read("/nowhere/x", NULL, layout, z, error),
                     KITH_ENOENT);
    assert_non_null(strstr(error, "/nowhere/x"));
    assert_int_equal(kith_weights_write("/nowhere/x", NULL, layout, x, error),
                     KITH_ENOENT);
    assert_int_equal(kith_weights_read("/tmp", NULL, layout, z, error),
                     KITH_EINVAL);
    assert_non_null(strstr(error, "not a plain file"));
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
        cmocka_unit_test(test_round_trip),
        cmocka_unit_test(test_types_and_prefixes),
        cmocka_unit_test(test_other_tensors),
        cmocka_unit_test(test_files),
    };
    return cmocka_run_group_tests(tests, open_model, close_model);
}
