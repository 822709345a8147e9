/* Goal: a step of the CUDA module finds what its calls would say outside of
 * one, and a device that fails fails for good. Method: as test_cuda_vectors.c;
 * a device breaks in the emulation alone. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "cuda_cases.h"

static const struct kith_backend *gpu, *half;

enum { ROWS = 8, CLASSES = 10, LOGITS = ROWS * CLASSES };

struct little {
    int32_t *labels;
    void *logits, *x, *m, *v;
};

static void little_open(struct little *l, uint64_t seed)
{
    double values[LOGITS];
    l->labels = gpu->alloc(ROWS * sizeof *l->labels, true);
    for (size_t i = 0; i < ROWS; i++)
        l->labels[i] = (int32_t)i;
    void **const vectors[] = {&l->logits, &l->x, &l->m, &l->v};
    cuda_fill(values, LOGITS, seed);
    for (size_t i = 0; i < 4; i++) {
        *vectors[i] = cuda_room(gpu, LOGITS);
        if (i == 2) /* moments begin at 0 */
            memset(values, 0, sizeof values);
        gpu->write(LOGITS, values, *vectors[i]);
    }
}

static void little_close(struct little *l)
{
    void *const all[] = {l->labels, l->logits, l->x, l->m, l->v};
    for (size_t i = 0; i < 5; i++)
        gpu->release(all[i]);
}

static double little_loss(struct little *l, uint32_t *correct)
{
    return gpu->ops->cross_entropy(&(struct kith_loss){.rows = ROWS,
                                                       .classes = CLASSES,
                                                       .labels = l->labels,
                                                       .scale = 1,
                                                       .logits = l->logits,
                                                       .correct = correct});
}

/* What a step finds is what its calls return outside of one. */
static void test_step(void **state)
{
    (void)state;
    struct little a, b;
    struct kith_found found;
    uint32_t correct = 77, want_correct;
    double got[LOGITS], want[LOGITS];
    little_open(&a, 5);
    little_open(&b, 5);
    const double loss = little_loss(&a, &want_correct);
    const double norm = gpu->clip(LOGITS, 0.1, a.logits);
    assert_true(gpu->ops->adamw(&(struct kith_adamw){.n = LOGITS,
                                                     .rate = 0.1,
                                                     .beta1 = 0.9,
                                                     .beta2 = 0.99,
                                                     .epsilon = 1e-8,
                                                     .t = 1,
                                                     .g = a.logits,
                                                     .m = a.m,
                                                     .v = a.v,
                                                     .x = a.x}));
    gpu->step_begin();
    assert_true(fabs(little_loss(&b, &correct)) <= 0);
    assert_true(fabs(gpu->clip(LOGITS, 0.1, b.logits)) <= 0);
    assert_true(gpu->ops->adamw(&(struct kith_adamw){.n = LOGITS,
                                                     .rate = 0.1,
                                                     .beta1 = 0.9,
                                                     .beta2 = 0.99,
                                                     .epsilon = 1e-8,
                                                     .t = 1,
                                                     .g = b.logits,
                                                     .m = b.m,
                                                     .v = b.v,
                                                     .x = b.x}));
    gpu->step_end(&found);
    assert_int_equal(correct, 77);
    assert_true(fabs(found.loss - loss) <= 0);
    assert_true(fabs(found.norm - norm) <= 0);
    assert_int_equal(found.correct, want_correct);
    assert_true(found.finite);
    gpu->read(LOGITS, a.x, want);
    gpu->read(LOGITS, b.x, got);
    assert_memory_equal(got, want, sizeof got);

    /* A value that is not finite is found, and the next step is clean. */
    for (size_t round = 0; round < 2; round++) {
        got[3] = round == 0 ? (double)NAN : 0;
        gpu->write(LOGITS, got, b.logits);
        gpu->step_begin();
        (void)little_loss(&b, NULL);
        gpu->step_end(&found);
        assert_true(found.finite == (round == 1));
    }
    little_close(&a);
    little_close(&b);
}

/* ---- failures, which last: the emulation's device alone breaks for us */

static void test_no_memory(void **state)
{
    (void)state;
    void (*memory)(size_t bytes);
    void *const symbol = cuda_emulation("kith_emulate_memory");
    if (symbol == NULL)
        skip();
    memcpy(&memory, &symbol, sizeof memory);
    memory((size_t)64 << 20);
    assert_null(gpu->alloc((size_t)65 << 20, false));
    assert_null(gpu->failed());
    void *const x = gpu->alloc((size_t)1 << 20, false);
    assert_non_null(x);
    gpu->release(x);
    memory(0);
}

static void test_device_fails(void **state)
{
    (void)state;
    void (*fail_after)(long launches, int code);
    void *const symbol = cuda_emulation("kith_emulate_fail");
    if (symbol == NULL)
        skip();
    memcpy(&fail_after, &symbol, sizeof fail_after);
    enum { ECC = 214 };
    struct little l;
    struct kith_found found;
    double values[LOGITS];
    float *const sent = gpu->alloc(LOGITS * sizeof *sent, true);
    little_open(&l, 9);
    fail_after(1, ECC);
    gpu->step_begin();
    (void)little_loss(&l, NULL);
    assert_true(gpu->ops->adamw(&(struct kith_adamw){.n = LOGITS,
                                                     .rate = 0.1,
                                                     .beta1 = 0.9,
                                                     .beta2 = 0.99,
                                                     .epsilon = 1e-8,
                                                     .t = 1,
                                                     .g = l.logits,
                                                     .m = l.m,
                                                     .v = l.v,
                                                     .x = l.x}) ==
                (gpu->failed() == NULL));
    gpu->step_end(&found);
    assert_false(found.finite);
    assert_true(isnan(found.loss));
    assert_non_null(gpu->failed());
    assert_non_null(strstr(gpu->failed(), "ECC"));
    assert_non_null(strstr(gpu->failed(), "nvidia-smi"));

    /* Nothing that is not true leaves it. */
    gpu->copy(LOGITS, sent, l.x);
    assert_true(gpu->settled(sent, true));
    assert_false(gpu->finite(LOGITS, l.x));
    assert_false(gpu->sgd(&(struct kith_sgd){
        .n = LOGITS, .rate = 0.1, .gradient = l.logits, .x = l.x}));
    assert_true(isnan(gpu->sum(LOGITS, l.x)));
    assert_true(isnan(gpu->mix(LOGITS, 0.5, sent, sent, l.x)));
    assert_true(isnan(little_loss(&l, NULL)));
    gpu->read(LOGITS, l.x, values);
    assert_true(isnan(values[0]) && isnan(values[LOGITS - 1]));
    assert_null(gpu->alloc(64, false));

    /* And for good. */
    fail_after(-1, 0);
    assert_non_null(gpu->failed());
    assert_null(gpu->alloc(64, false));
    little_close(&l);
    gpu->release(sent);
}

int main(void)
{
    if (!cuda_module_found(&gpu, &half))
        return 77;
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_step),
        cmocka_unit_test(test_no_memory),
        cmocka_unit_test(test_device_fails),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
