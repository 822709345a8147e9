/* Goal: what a device compresses are the bytes that a CPU writes, whatever the
 * values are; what it reads of a message are the CPU's values, and it refuses
 * what a CPU refuses. Method: the CUDA module's emulation beside backend cpu,
 * every compressor of the registry, blocks of all lengths, ties, zeros, values
 * that are not finite, messages with bits turned. */
#include <float.h>
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
#include "kith/compressor.h"
#include "kith/rng.h"

enum { EARLY, LATE, LATE_FETCH, ORDERS }; /* as in tests/cuda/emulate.h */
enum { MOST = 65471, GUARD = 0xa5, GUARDED = 64 };
#define COUNT(list) (sizeof(list) / sizeof(list)[0])
static const size_t sizes[] = {1,   2,   31,   32,   33,   255, 256,
                               257, 512, 1023, 1025, 4097, MOST};

static const struct kith_backend *gpu, *half, *cpu;
static void (*set_order)(int order);

/* ---- values */

enum { GAUSSIAN, TIES, SPARSE, WIDE, HUGE, NO_NUMBER, KINDS };

static float draw_one(struct kith_rng *rng, unsigned kind)
{
    const double u = kith_rng_double(rng) + kith_rng_double(rng) - 1;
    switch (kind) {
    case TIES:
        return (float)((int)kith_rng_below(rng, 5) - 2);
    case SPARSE:
        return kith_rng_below(rng, 40) == 0 ? (float)u : 0;
    case WIDE:
        return (float)ldexp(u, (int)kith_rng_below(rng, 260) - 145);
    case HUGE:
        return u < 0 ? -FLT_MAX : FLT_MAX;
    default:
        return (float)u;
    }
}

static void draw(float *values, size_t n, unsigned kind)
{
    struct kith_rng rng;
    kith_rng_init(&rng, cuda_seed(kind), KITH_STREAM_TEST, n);
    for (size_t i = 0; i < n; i++)
        values[i] = draw_one(&rng, kind);
    if (kind == SPARSE) /* whole blocks of nothing, of both signs */
        for (size_t i = 0; i < n / 2; i++)
            values[i] = i % 3 == 0 ? -0.0f : 0.0f;
    if (kind == NO_NUMBER)
        values[n / 2] = n % 2 == 0 ? (float)NAN : -(float)INFINITY;
}

/* ---- a message from one end to the other */

/* On one backend; the wire begins at an odd address of what is shared, and has
 * bytes around it. */
struct trip {
    struct kith_compression how;
    size_t bytes;
    float *shared, *v, *out;
    uint8_t *memory, *wire;
    bool sent, read;
};

static struct trip trip_open(const struct kith_compression *like,
                             const struct kith_backend *on, const float *values)
{
    struct trip t = {.how = *like, .bytes = kith_compression_bytes(like)};
    const size_t bytes = (like->dim + 1) * sizeof(float);
    t.how.backend = on;
    const size_t places = kith_compression_places(&t.how);
    t.how.places = on->alloc((places + 1) * sizeof *t.how.places, true);
    t.shared = on->alloc(bytes, true);
    t.v = on->alloc(bytes, false);
    t.out = on->alloc(bytes, false);
    t.memory = on->alloc(t.bytes + 2 * GUARDED + 3, true);
    memset(t.memory, GUARD, t.bytes + 2 * GUARDED + 3);
    t.wire = t.memory + GUARDED + 3;
    memcpy(t.shared, values, like->dim * sizeof *values);
    on->copy(like->dim, t.v, t.shared);
    return t;
}

static void trip_close(struct trip *t)
{
    const struct kith_backend *on = t->how.backend;
    on->release(t->how.places);
    on->release(t->shared);
    on->release(t->v);
    on->release(t->out);
    on->release(t->memory);
}

static void send(struct trip *t, uint64_t key)
{
    const struct kith_backend *on = t->how.backend;
    t->sent = kith_compress(&t->how, t->v, key, t->wire);
    assert_true(on->settled == NULL || on->settled(t->wire, true));
    for (size_t i = 0; i < GUARDED; i++) {
        assert_int_equal(t->memory[i], GUARD);
        assert_int_equal(t->wire[t->bytes + i], GUARD);
    }
}

/* Another inbox, for the host writes what is received; what it reads stands in
 * `shared` then. */
static void receive(struct trip *t, uint64_t key, const uint8_t *message)
{
    const struct kith_backend *on = t->how.backend;
    uint8_t *const inbox = on->alloc(t->bytes + 7, true);
    memcpy(inbox + 5, message, t->bytes);
    if (on->arrived != NULL && key % 2 == 0)
        on->arrived(inbox + 5, t->bytes);
    t->read = kith_decompress(&t->how, inbox + 5, key, t->out);
    memset(inbox, 0xff, t->bytes + 7); /* what is received next */
    float *const got = on->alloc((t->how.dim + 1) * sizeof *got, true);
    on->copy(t->how.dim, got, t->out);
    assert_true(on->settled == NULL || on->settled(got, true));
    memcpy(t->shared, got, t->how.dim * sizeof *got);
    on->release(got);
    on->release(inbox);
}

static void same_read(struct trip *host, struct trip *device, uint64_t key,
                      const uint8_t *message, const char *what)
{
    receive(host, key, message);
    receive(device, key, message);
    if (host->read != device->read)
        fail_msg("%s: read %d, not %d", what, device->read, host->read);
    if (host->read && memcmp(host->shared, device->shared,
                             host->how.dim * sizeof(float)) != 0)
        fail_msg("%s: read otherwise", what);
}

static void same_trip(const struct kith_compression *how, unsigned kind)
{
    static float values[MOST];
    char what[128];
    const uint64_t key = cuda_seed(how->dim + kind);
    draw(values, how->dim, kind);
    struct trip host = trip_open(how, cpu, values);
    struct trip device = trip_open(how, gpu, values);
    (void)snprintf(what, sizeof what, "%s of %zu values, kind %u, block %u, %g",
                   how->compressor->name, how->dim, kind, how->config.block,
                   how->config.density);
    send(&host, key);
    send(&device, key);
    if (host.sent != device.sent)
        fail_msg("%s: sent %d, not %d", what, device.sent, host.sent);
    if (host.sent && memcmp(host.wire, device.wire, host.bytes) != 0)
        fail_msg("%s: other bytes", what);
    assert_true(kind != NO_NUMBER || !host.sent);
    if (host.sent)
        same_read(&host, &device, key, host.wire, what);
    trip_close(&host);
    trip_close(&device);
}

static struct kith_compression compression(size_t c, size_t dim)
{
    return (struct kith_compression){.compressor = kith_compressors[c],
                                     .config = kith_compressor_defaults(),
                                     .backend = cpu,
                                     .dim = dim};
}

/* A raw wire is no compressor's, and some have no kernels. */
static bool is_skipped(const struct kith_compression *how)
{
    return how->compressor->raw || how->compressor->pack == NULL;
}

static void test_trips(void **state)
{
    (void)state;
    static const struct kith_compressor_config configs[] = {
        {.density = 0.01, .levels = 15},
        {.density = 0.25, .levels = 1, .block = 100, .unbiased = true},
        {.density = 0.5, .levels = 127, .block = 1500},
        {.density = 1, .levels = 32767, .block = 7, .unbiased = true},
        {.density = 1e-9, .levels = 3, .block = KITH_COMPRESSOR_BLOCK_MAX}};
    for (size_t c = 0; kith_compressors[c] != NULL; c++)
        for (size_t s = 0; s < COUNT(sizes); s++)
            for (size_t k = 0; k < COUNT(configs); k++)
                for (unsigned kind = 0; kind < KINDS; kind++) {
                    struct kith_compression how = compression(c, sizes[s]);
                    how.config = configs[k];
                    if (is_skipped(&how) ||
                        (sizes[s] == MOST && (k > 0 || kind > WIDE)))
                        continue;
                    same_trip(&how, kind);
                }
}

/* However late the device is: the next message over one that still leaves. */
static void test_late(void **state)
{
    (void)state;
    if (set_order == NULL)
        skip();
    for (size_t c = 0; kith_compressors[c] != NULL; c++)
        for (int order = EARLY; order < ORDERS; order++) {
            const struct kith_compression how = compression(c, 3000);
            if (is_skipped(&how))
                continue;
            set_order(order);
            for (unsigned kind = 0; kind < KINDS; kind++)
                same_trip(&how, kind);
            set_order(EARLY);
        }
}

/* Any one bit: a device takes it or not as a CPU does. */
static void test_turned_bits(void **state)
{
    (void)state;
    static float values[700];
    draw(values, COUNT(values), GAUSSIAN);
    for (size_t c = 0; kith_compressors[c] != NULL; c++) {
        struct kith_compression how = compression(c, COUNT(values));
        how.config = (struct kith_compressor_config){
            .density = 0.02, .levels = 4, .block = 300};
        if (is_skipped(&how))
            continue;
        struct trip host = trip_open(&how, cpu, values);
        struct trip device = trip_open(&how, gpu, values);
        uint8_t *const message = malloc(host.bytes);
        assert_non_null(message);
        send(&host, 4);
        memcpy(message, host.wire, host.bytes);
        const size_t bits = 8 * host.bytes, step = bits > 2000 ? 7 : 1;
        for (size_t bit = 0; bit < bits; bit += step) {
            message[bit / 8] ^= (uint8_t)(1u << bit % 8);
            same_read(&host, &device, 4, message, how.compressor->name);
            message[bit / 8] ^= (uint8_t)(1u << bit % 8);
        }
        free(message);
        trip_close(&host);
        trip_close(&device);
    }
}

/* All that two indices of nine can say: doubled, out of order, outside, too
 * many or too few of them. */
static void test_indices(void **state)
{
    (void)state;
    static const float values[] = {1, -2, 3, -4, 5, -6, 7, -8, 9};
    struct kith_compression how = {.compressor = kith_compressor_find("top-k"),
                                   .config = {.density = 0.2},
                                   .backend = cpu,
                                   .dim = COUNT(values)};
    struct trip host = trip_open(&how, cpu, values);
    struct trip device = trip_open(&how, gpu, values);
    uint8_t message[10];
    unsigned taken = 0;
    assert_int_equal(host.bytes, sizeof message);
    send(&host, 4);
    memcpy(message, host.wire, sizeof message);
    for (unsigned c = 0; c < 32 * 64; c++) {
        message[8] = (uint8_t)(c % 32); /* 2 + 2 bits, and one behind */
        message[9] = (uint8_t)(c / 32);
        same_read(&host, &device, 4, message, "indices");
        taken += host.read;
    }
    assert_int_equal(taken, 9 * 8 / 2);
    trip_close(&host);
    trip_close(&device);
}

/* Bytes of no message at all. */
static void test_any_bytes(void **state)
{
    (void)state;
    static float values[500];
    static uint8_t message[4096];
    struct kith_rng rng;
    kith_rng_init(&rng, cuda_seed(5), KITH_STREAM_TEST, 0);
    for (size_t c = 0; kith_compressors[c] != NULL; c++) {
        struct kith_compression how = compression(c, COUNT(values));
        how.config.density = 0.1;
        if (is_skipped(&how))
            continue;
        struct trip host = trip_open(&how, cpu, values);
        struct trip device = trip_open(&how, gpu, values);
        assert_true(host.bytes <= sizeof message);
        for (unsigned round = 0; round < 50; round++) {
            kith_rng_fill(&rng, message, host.bytes);
            if (round < 3)
                memset(message, round == 0 ? 0 : 255, host.bytes);
            same_read(&host, &device, 4 + round, message, how.compressor->name);
        }
        trip_close(&host);
        trip_close(&device);
    }
}

static void test_erase(void **state)
{
    (void)state;
    static float values[700];
    for (size_t c = 0; kith_compressors[c] != NULL; c++) {
        const struct kith_compression how = compression(c, COUNT(values));
        struct trip device = trip_open(&how, gpu, values);
        if (!is_skipped(&how))
            send(&device, 1);
        kith_compression_erase(&device.how, device.wire);
        assert_true(gpu->settled(device.wire, true));
        for (size_t i = 0; i < device.bytes; i++)
            assert_int_equal(device.wire[i], 0);
        trip_close(&device);
    }
}

int main(void)
{
    if (!cuda_module_found(&gpu, &half))
        return 77;
    cuda_find(&set_order, "kith_emulate_order");
    cpu = kith_backend_find("cpu");
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_trips),       cmocka_unit_test(test_late),
        cmocka_unit_test(test_turned_bits), cmocka_unit_test(test_indices),
        cmocka_unit_test(test_any_bytes),   cmocka_unit_test(test_erase),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
