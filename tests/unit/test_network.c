/* Goal: the arena's plan is sound and small. Method: for nets of every kind,
 * forward and back, kept whole or recomputed: no two pieces that are alive at
 * one step overlap; nothing is read before it was written; the arena stays
 * close to the most that is alive at one step, which no plan can beat. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "src/training/graph/graph_state.h"

struct plan_case {
    const char *name, *label;
    struct kith_model_config config;
    size_t rows;
};

static const struct plan_case cases[] = {
    {"mlp",
     "mlp 784-512-512-10",
     {.layers = {784, 512, 512, 10}, .layer_count = 4},
     64},
    {"mlp",
     "mlp with dropout",
     {.layers = {784, 512, 512, 10}, .layer_count = 4, .dropout = 0.1},
     64},
    {"cnn",
     "cnn 16-32",
     {.image = {28, 28, 1},
      .classes = 10,
      .channels = {16, 32},
      .channel_count = 2},
     64},
    {"vgg",
     "vgg 16",
     {.image = {32, 32, 3}, .classes = 10, .depth = 16, .dropout = 0.5},
     16},
    {"resnet",
     "resnet 20",
     {.image = {32, 32, 3}, .classes = 10, .depth = 20},
     128},
    {"resnet",
     "resnet 50",
     {.image = {224, 224, 3}, .classes = 1000, .depth = 50},
     8},
    {"resnet",
     "resnet 20, first layers frozen",
     {.image = {32, 32, 3}, .classes = 10, .depth = 20, .frozen = "layer"},
     16},
    {"gpt",
     "gpt 4 x 128",
     {.depth = 4, .heads = 4, .width = 128, .context = 128, .vocabulary = 65},
     16},
    {"gpt",
     "gpt 4 x 128 with dropout",
     {.depth = 4,
      .heads = 4,
      .width = 128,
      .context = 128,
      .vocabulary = 65,
      .dropout = 0.1},
     16},
    {"gpt",
     "GPT-2 124M",
     {.depth = 12,
      .heads = 12,
      .width = 768,
      .context = 1024,
      .vocabulary = 50257},
     4},
};
enum { CASES = sizeof cases / sizeof cases[0] };

static struct kith_net *open_net(const struct plan_case *one)
{
    char error[KITH_MODEL_ERROR_BYTES];
    struct kith_net *net;
    if (kith_net_open(kith_model_find(one->name), &one->config, &net, error) !=
        KITH_OK)
        fail_msg("%s: %s", one->label, error);
    return net;
}

static void open_plan(const struct plan_case *one, const struct kith_net *net,
                      bool training, bool recompute, struct kith_plan *plan)
{
    const struct kith_planning how = {.net = net,
                                      .backend = kith_backend_find("cpu"),
                                      .rows = one->rows,
                                      .training = training,
                                      .recompute = recompute};
    if (kith_plan_open(&how, plan) != KITH_OK)
        fail_msg("%s cannot be planned", one->label);
}

static bool meet(size_t a, size_t a_size, size_t b, size_t b_size)
{
    return a < b + b_size && b < a + a_size;
}

static void check_overlap(const char *label, const struct kith_plan *plan)
{
    for (uint32_t i = 0; i < plan->piece_count; i++) {
        const struct kith_piece *one = &plan->pieces[i];
        assert_true(one->bytes > 0 && one->offset % 64 == 0);
        assert_true(one->offset + one->bytes <= plan->bytes);
        assert_true(one->first <= one->last && one->last < plan->step_count);
        for (uint32_t k = 0; k < i; k++) {
            const struct kith_piece *two = &plan->pieces[k];
            if (one->first <= two->last && two->first <= one->last &&
                meet(one->offset, one->bytes, two->offset, two->bytes))
                fail_msg("%s: pieces %u and %u overlap", label, k, i);
        }
    }
}

/* Follows each piece through the steps: a byte of the arena belongs to the
 * piece that was written last, and nobody else reads it. */
static void check_reads(const char *label, const struct kith_plan *plan)
{
    bool *written = calloc(plan->piece_count, sizeof *written);
    assert_non_null(written);
    for (uint32_t s = 0; s < plan->step_count; s++) {
        const struct kith_step *step = &plan->steps[s];
        const uint32_t forward[] = {step->a, step->b};
        const uint32_t back[] = {step->a, step->b, step->y, step->saved,
                                 step->dy};
        const bool fills =
            step->kind == KITH_STEP_FORWARD || step->kind == KITH_STEP_AGAIN;
        const uint32_t *reads = fills ? forward : back;
        const size_t count = fills ? 2 : 5;
        for (size_t i = 0; i < count; i++) {
            if (reads[i] >= KITH_PIECE_INPUT)
                continue;
            if (!written[reads[i]])
                fail_msg("%s: step %u reads what nobody wrote", label, s);
        }
        if (step->add & KITH_ADD_DATA)
            assert_true(written[step->dx]);
        if (fills) {
            written[step->y] = true;
            if (step->saved != KITH_PIECE_NONE)
                written[step->saved] = true;
        }
        if (step->dx != KITH_PIECE_NONE)
            written[step->dx] = true;
    }
    free(written);
}

static void test_plans(void **state)
{
    (void)state;
    for (size_t c = 0; c < CASES; c++) {
        struct kith_net *net = open_net(&cases[c]);
        size_t bytes[3];
        for (int mode = 0; mode < 3; mode++) { /* forward, train, recompute */
            struct kith_plan plan;
            open_plan(&cases[c], net, mode > 0, mode == 2, &plan);
            check_overlap(cases[c].label, &plan);
            check_reads(cases[c].label, &plan);
            bytes[mode] = plan.bytes;
            print_message("%-32s %-9s %4u steps %9.2f MB, at least %9.2f\n",
                          cases[c].label,
                          mode == 0   ? "forward"
                          : mode == 1 ? "train"
                                      : "recompute",
                          plan.step_count, (double)plan.bytes / 1e6,
                          (double)plan.floor / 1e6);
            /* First fit in order of size: within a tenth of the bound. */
            assert_true((double)plan.bytes <= 1.1 * (double)plan.floor);
            kith_plan_close(&plan);
        }
        assert_true(bytes[0] <= bytes[1]);
        assert_true(bytes[2] <= bytes[1]);
        free(net);
    }
}

/* The same plan every time: steps, pieces and places. */
static void test_same_plan(void **state)
{
    (void)state;
    for (size_t c = 0; c < CASES; c++) {
        struct kith_net *net = open_net(&cases[c]);
        struct kith_plan plans[2];
        for (int i = 0; i < 2; i++)
            open_plan(&cases[c], net, true, true, &plans[i]);
        assert_int_equal(plans[0].step_count, plans[1].step_count);
        assert_int_equal(plans[0].piece_count, plans[1].piece_count);
        for (uint32_t i = 0; i < plans[0].piece_count; i++)
            assert_int_equal(plans[0].pieces[i].offset,
                             plans[1].pieces[i].offset);
        for (int i = 0; i < 2; i++)
            kith_plan_close(&plans[i]);
        free(net);
    }
}

/* A residual stream is summed in place and its gradient is never copied. */
static void test_no_copies(void **state)
{
    (void)state;
    for (size_t c = 0; c < CASES; c++) {
        struct kith_net *net = open_net(&cases[c]);
        struct kith_plan plan;
        open_plan(&cases[c], net, true, false, &plan);
        for (uint32_t s = 0; s < plan.step_count; s++) {
            const struct kith_step *step = &plan.steps[s];
            assert_int_not_equal(step->kind, KITH_STEP_COPY);
            assert_int_not_equal(step->kind, KITH_STEP_ADD);
            if (step->kind == KITH_STEP_FORWARD &&
                net->ops[step->op].operation->kind == KITH_OP_SUM)
                assert_true(step->y == step->a || step->y == step->b);
        }
        kith_plan_close(&plan);
        free(net);
    }
}

/* Builders: what does not fit ends the building with words. */
static void test_bad_nets(void **state)
{
    (void)state;
    struct kith_net *net = malloc(sizeof *net);
    assert_non_null(net);
    for (int i = 0; i < 8; i++) {
        kith_net_begin(net, "");
        kith_tensor x = kith_net_images(net, 8, 8, 6);
        const struct kith_net_linear plain = {.out = 4, .bias = true};
        if (i == 0)
            x = kith_net_conv(
                net, x, "conv",
                (struct kith_net_conv){.out = 4, .kernel = 9, .stride = 1});
        if (i == 1)
            x = kith_net_norm(net, x, "norm", KITH_NORM_GROUP, 4, 1e-5,
                              KITH_ACTIVATION_NONE);
        if (i == 2)
            x = kith_net_sum(net, x, x, KITH_ACTIVATION_NONE);
        if (i == 3)
            x = kith_net_attention(net, x, 2);
        if (i == 4)
            (void)kith_net_linear(net, x, "scores", plain);
        if (i == 5)
            x = kith_net_linear(
                net, x,
                "a-name-of-more-than-sixty-three-bytes-is-too-long-for-"
                "a-view-of-ours",
                plain);
        if (i == 6)
            for (uint32_t k = 0; k <= KITH_OPS_MAX; k++)
                x = kith_net_dropout(net, x, 0.5);
        if (i == 7)
            x = kith_net_linear(
                net, x, "big",
                (struct kith_net_linear){.out = (size_t)1 << 28});
        if (i != 4)
            x = kith_net_linear(net, x, "scores", plain);
        kith_net_cross_entropy(net, x);
        assert_int_not_equal(kith_net_finish(net), KITH_OK);
        assert_true(strlen(net->error) > 0);
    }
    kith_net_begin(net, "");
    kith_tensor x = kith_net_images(net, 8, 8, 6);
    x = kith_net_linear(net, x, "scores", (struct kith_net_linear){.out = 4});
    kith_net_cross_entropy(net, x);
    assert_int_equal(kith_net_finish(net), KITH_OK);
    free(net);
}

/* Rows of a batch are a user's: no product of sizes wraps around. */
static void test_huge_batch(void **state)
{
    (void)state;
    const struct kith_model_config config = {.depth = 1,
                                             .heads = 1,
                                             .width = 1,
                                             .context = 32768,
                                             .vocabulary = 65536};
    const struct kith_graph_options options = {.backend =
                                                   kith_backend_find("cpu"),
                                               .rows = (size_t)1 << 20,
                                               .training = true};
    struct kith_graph *network;
    char error[KITH_MODEL_ERROR_BYTES] = "";
    assert_int_equal(kith_graph_open(kith_model_find("gpt"), &config, &options,
                                     &network, error),
                     KITH_ELIMIT);
    assert_non_null(strstr(error, "lower train.batch"));
}

/* More than the machine has is refused, not promised. */
static void test_no_memory(void **state)
{
    (void)state;
    const struct kith_backend *backend = kith_backend_find("cpu");
    assert_null(backend->alloc((size_t)1 << 46, false));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_plans),      cmocka_unit_test(test_same_plan),
        cmocka_unit_test(test_no_copies),  cmocka_unit_test(test_bad_nets),
        cmocka_unit_test(test_huge_batch), cmocka_unit_test(test_no_memory),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
