/* Goal: a way that is slower than another one is told in a line, once for each
 * kind, and nothing is told where the quick one was taken.
 * Method: operations of odd sizes and addresses on the CUDA module beside even
 * ones; where it is the emulation, which has no libraries, products and
 * convolutions as well. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "cuda_cases.h"

static const struct kith_backend *single, *half;

enum { MANY = 70000 };
static void *room_x, *room_y, *room_z;

static int open_rooms(void **state)
{
    (void)state;
    room_x = cuda_room(half, 2 * MANY);
    room_y = cuda_room(half, 2 * MANY);
    room_z = cuda_room(half, 2 * MANY);
    return 0;
}

static int close_rooms(void **state)
{
    (void)state;
    half->release(room_x);
    half->release(room_y);
    half->release(room_z);
    return 0;
}

static bool emulated(void)
{
    return cuda_emulation("kith_emulate_launches") != NULL;
}

/* The next line holds `word`, and there is no other. */
static void told(const char *word)
{
    const char *const line = half->notice();
    assert_non_null(line);
    print_message("%s\n", line);
    if (strstr(line, word) == NULL)
        fail_msg("\"%s\" says nothing of \"%s\"", line, word);
    assert_null(half->notice());
    assert_null(single->notice());
}

static void silent(void)
{
    const char *const line = half->notice();
    if (line != NULL)
        fail_msg("\"%s\" though nothing slow was done", line);
}

static void multiply(size_t out)
{
    const struct kith_linear op = {.in = 64, .out = out, .in_out = true};
    half->ops->kernels[KITH_OP_LINEAR]->forward(&(struct kith_arguments){
        .shape = &op, .rows = 32, .x = room_x, .weight = room_y, .y = room_z});
}

static void test_products(void **state)
{
    (void)state;
    multiply(64);
    if (emulated())
        told("a product (32, 64, 64) by the kernel of our own");
    multiply(64);
    silent();
    multiply(63);
    told("(32, 63, 64) whose rows do not begin");
    multiply(61);
    silent();
}

static void convolve(void)
{
    const struct kith_conv op = {4, 4, 8, 8, 3,
                                 1, 1, 4, 4, KITH_ACTIVATION_NONE};
    half->ops->kernels[KITH_OP_CONV]->forward(&(struct kith_arguments){
        .shape = &op, .rows = 2, .x = room_x, .weight = room_y, .y = room_z});
}

static void test_convolutions(void **state)
{
    (void)state;
    convolve();
    if (emulated())
        told("a convolution (4 x 4 x 8 to 8, kernel 3)");
    convolve();
    silent();
}

static void attend(size_t size)
{
    const struct kith_attention op = {8, 2, 2 * size};
    half->ops->kernels[KITH_OP_ATTENTION]->forward(&(struct kith_arguments){
        .shape = &op, .rows = 1, .x = room_x, .saved = room_y, .y = room_z});
}

static void test_attention(void **state)
{
    (void)state;
    attend(64);
    silent();
    attend(48);
    told("attention, 2 heads of 48");
    attend(40);
    silent();
}

static void test_loss(void **state)
{
    (void)state;
    int32_t *const labels = half->alloc(64 * sizeof *labels, true);
    memset(labels, 0, 64 * sizeof *labels);
    (void)half->ops->cross_entropy(&(struct kith_loss){.rows = 64,
                                                       .classes = 1032,
                                                       .labels = labels,
                                                       .scale = 1,
                                                       .logits = room_x});
    (void)half->ops->cross_entropy(&(struct kith_loss){.rows = 64,
                                                       .classes = 1031,
                                                       .stride = 1088,
                                                       .labels = labels,
                                                       .scale = 1,
                                                       .logits = room_x});
    silent();
    (void)half->ops->cross_entropy(&(struct kith_loss){.rows = 64,
                                                       .classes = 1031,
                                                       .labels = labels,
                                                       .scale = 1,
                                                       .logits = room_x});
    told("a loss of 1031 classes");
    half->release(labels);
}

static void test_vectors(void **state)
{
    (void)state;
    float *const x = room_x, *const y = room_y;
    single->add(MANY, 1, x, y);
    single->add(100, 1, x + 1, y); /* which takes no time */
    silent();
    single->add(MANY, 1, x + 1, y);
    told("adding of 70000 values");
    single->add(MANY, 1, x, y + 1);
    silent();
}

int main(void)
{
    if (!cuda_module_found(&single, &half))
        return 77;
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_products),  cmocka_unit_test(test_convolutions),
        cmocka_unit_test(test_attention), cmocka_unit_test(test_loss),
        cmocka_unit_test(test_vectors),
    };
    return cmocka_run_group_tests(tests, open_rooms, close_rooms);
}
