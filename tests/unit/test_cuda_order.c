/* Goal: a caller of the CUDA module may write a received vector again as soon
 * as what reads it has returned, and what is computed into a shared vector is
 * what later calls and the host find there. Method: every entry that reads or
 * writes one, on the emulation, whose device does what it is told as late as
 * streams and events allow, and fetches at once or late. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "cuda_cases.h"
#include "kith/algorithm.h"
#include "kith/compressor.h"

enum { N = 3000 };
enum { EARLY, LATE, LATE_FETCH, ORDERS }; /* as in tests/cuda/emulate.h */

static const struct kith_backend *gpu, *half, *exact;
static void (*set_order)(int order);
static void (*set_late)(long queries);

/* What reads y, or computes with y into x. */
static void run_copy(const struct kith_backend *on, void *x, const void *y,
                     const void *z)
{
    (void)z;
    on->copy(N, x, y);
}

static void run_add(const struct kith_backend *on, void *x, const void *y,
                    const void *z)
{
    (void)z;
    on->add(N, 0.5, y, x);
}

static void run_mix(const struct kith_backend *on, void *x, const void *y,
                    const void *z)
{
    (void)on->mix(N, 0.25, y, z, x);
}

static void run_swap_mix(const struct kith_backend *on, void *x, const void *y,
                         const void *z)
{
    (void)on->swap_mix(N, 0.25, y, z, z, x);
}

static void run_combine(const struct kith_backend *on, void *x, const void *y,
                        const void *z)
{
    const struct kith_term terms[] = {{0.25, y, z}, {-0.5, y, NULL}};
    on->combine(
        N, 1,
        &(struct kith_update){.y = x, .own = 0.5, .count = 2, .terms = terms});
}

static void run_set(const struct kith_backend *on, void *x, const void *y,
                    const void *z)
{
    const struct kith_term gap = {1, y, z};
    on->combine(N, 1, &(struct kith_update){.y = x, .count = 1, .terms = &gap});
}

static void run_scale(const struct kith_backend *on, void *x, const void *y,
                      const void *z)
{
    (void)y;
    (void)z;
    on->scale(N, 0.25, x);
}

static void run_clear(const struct kith_backend *on, void *x, const void *y,
                      const void *z)
{
    (void)y;
    (void)z;
    on->clear(N, x);
}

static const struct {
    const char *name;
    void (*run)(const struct kith_backend *on, void *x, const void *y,
                const void *z);
} entries[] = {{"copy", run_copy},       {"add", run_add},
               {"mix", run_mix},         {"swap_mix", run_swap_mix},
               {"combine", run_combine}, {"combine alone", run_set},
               {"scale", run_scale},     {"clear", run_clear}};
#define ENTRIES (sizeof entries / sizeof entries[0])

static double own[N], first[N], third[N], want[N], got[N], second[N];

static void to_host(float *vector, const double *values)
{
    for (size_t i = 0; i < N; i++)
        vector[i] = (float)values[i];
}

/* What the entry makes of the three vectors, on naive64. */
static void expect(size_t entry)
{
    memcpy(want, own, sizeof want);
    entries[entry].run(exact, want, first, third);
}

static void check(const char *where, size_t entry, int order, bool fetched)
{
    for (size_t i = 0; i < N; i++) {
        if (!(fabs(got[i] - want[i]) <= 1e-6))
            fail_msg("%s %s, order %d, fetched %d: element %zu is %g, not %g",
                     entries[entry].name, where, order, fetched, i, got[i],
                     want[i]);
    }
}

/* What is received next is written, and fetched, over what was merged. */
static void read_received(size_t entry, int order, bool fetched)
{
    float *const inbox = gpu->alloc(N * sizeof *inbox, true);
    void *const x = cuda_room(gpu, N), *const z = cuda_room(gpu, N);
    set_order(order);
    gpu->write(N, own, x);
    gpu->write(N, third, z);
    to_host(inbox, first);
    if (fetched)
        gpu->arrived(inbox, N * sizeof *inbox);
    entries[entry].run(gpu, x, inbox, z);
    to_host(inbox, second);
    if (fetched)
        gpu->arrived(inbox, N * sizeof *inbox);
    gpu->read(N, x, got);
    expect(entry);
    check("of what was received", entry, order, fetched);
    set_order(EARLY);
    gpu->release(inbox);
    gpu->release(x);
    gpu->release(z);
}

static void test_received(void **state)
{
    (void)state;
    for (size_t entry = 0; entry < ENTRIES; entry++) {
        for (int order = EARLY; order < ORDERS; order++) {
            read_received(entry, order, false);
            read_received(entry, order, true);
        }
    }
}

/* A vector that is to be sent is changed while its first copy leaves. */
static void write_shared(size_t entry, int order, bool late)
{
    float *const sent = gpu->alloc(N * sizeof *sent, true);
    void *const y = cuda_room(gpu, N), *const z = cuda_room(gpu, N);
    void *const x = cuda_room(gpu, N);
    set_order(order);
    set_late(late ? 1000 : 0);
    gpu->write(N, own, x);
    gpu->write(N, first, y);
    gpu->write(N, third, z);
    gpu->copy(N, sent, x);
    entries[entry].run(gpu, sent, y, z);
    gpu->copy(N, x, sent);
    assert_true(gpu->settled(sent, true));
    for (size_t i = 0; i < N; i++)
        got[i] = (double)sent[i];
    expect(entry);
    check("in the host's memory", entry, order, late);
    gpu->read(N, x, got);
    check("on the device", entry, order, late);
    set_late(0);
    set_order(EARLY);
    gpu->release(sent);
    gpu->release(x);
    gpu->release(y);
    gpu->release(z);
}

static void test_shared(void **state)
{
    (void)state;
    for (size_t entry = 0; entry < ENTRIES; entry++) {
        for (int order = EARLY; order < ORDERS; order++) {
            write_shared(entry, order, false);
            write_shared(entry, order, true);
        }
    }
}

/* A difference that is not finite is replaced by zeros, which the copy of it
 * that is still under way must not overwrite. */
static void test_zeros_stay(void **state)
{
    (void)state;
    const struct kith_algorithm *choco = kith_algorithm_find("choco");
    const struct kith_compression compression = {
        .compressor = kith_compressor_find("none"), .backend = gpu, .dim = N};
    for (int order = EARLY; order < ORDERS; order++) {
        float *const sent = gpu->alloc(N * sizeof *sent, true);
        void *const x = cuda_room(gpu, N);
        void *const edges[] = {cuda_room(gpu, N), cuda_room(gpu, N)};
        double numbers[KITH_EDGE_SCALARS] = {0};
        struct kith_work_edge edge = {.peer = 1};
        struct kith_algebra algebra = {.backend = gpu,
                                       .dim = N,
                                       .compression = &compression,
                                       .live = x,
                                       .sent = sent,
                                       .edges = edges,
                                       .edge_scalars = numbers,
                                       .edge_count = 1,
                                       .edge_vectors = choco->edge_vectors};
        assert_int_equal(choco->edge_vectors, 2);
        memcpy(want, own, sizeof want);
        want[N / 2] = (double)INFINITY;
        set_order(order);
        set_late(1000);
        gpu->write(N, want, x);
        choco->make(&algebra, &edge);
        assert_true(gpu->settled(sent, true));
        for (size_t i = 0; i < N; i++)
            assert_true(fabs((double)sent[i]) <= 0);
        set_late(0);
        set_order(EARLY);
        gpu->release(sent);
        gpu->release(x);
        gpu->release(edges[0]);
        gpu->release(edges[1]);
    }
}

int main(void)
{
    if (!cuda_module_found(&gpu, &half))
        return 77;
    cuda_find(&set_order, "kith_emulate_order");
    cuda_find(&set_late, "kith_emulate_late");
    if (set_order == NULL) {
        printf("skipped: a device cannot be told to be late\n");
        return 77;
    }
    exact = kith_backend_find("naive64");
    cuda_fill(own, N, 1);
    cuda_fill(first, N, 2);
    cuda_fill(third, N, 3);
    cuda_fill(second, N, 4);
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_received),
        cmocka_unit_test(test_shared),
        cmocka_unit_test(test_zeros_stay),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
