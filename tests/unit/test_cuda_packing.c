/* Goal: what a device packs are the bytes that a CPU packs, whatever the values
 * are, and what it unpacks are the CPU's values. Method: the CUDA module's
 * emulation beside backend cpu, formats alone. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cuda_cases.h"
#include "kith/format.h"
#include "kith/rng.h"

enum { EARLY, LATE, LATE_FETCH, ORDERS }; /* as in tests/cuda/emulate.h */
enum { MOST = 65471 };
#define COUNT(list) (sizeof(list) / sizeof(list)[0])

static const struct kith_backend *gpu, *half, *cpu;
static void (*set_order)(int order);

static bool packs_whole(const struct kith_format *format)
{
    return !format->raw && format->residue_bits == 0;
}

/* ---- bytes */

enum { FINE, WILD, KINDS };

/* Magnitudes from 2^-140 to 2^127; WILD: some are infinite or no number, with
 * bits of their own. */
static void draw(size_t n, unsigned kind, float *values)
{
    struct kith_rng rng;
    kith_rng_init(&rng, 3 + kind, KITH_STREAM_TEST, n);
    const int span = n % 2 == 0 ? 30 : 267;
    for (size_t i = 0; i < n; i++) {
        const int power = (int)kith_rng_below(&rng, (uint32_t)span) - 140;
        const double sign = kith_rng_below(&rng, 2) == 0 ? 1 : -1;
        values[i] = kith_rng_below(&rng, 16) == 0
                        ? 0
                        : (float)(sign * ldexp(kith_rng_double(&rng), power));
        if (kind == WILD && kith_rng_below(&rng, 300) == 0) {
            const uint32_t bits =
                0x7f800000u | (kith_rng_u32(&rng) & 0x807fffffu);
            memcpy(values + i, &bits, sizeof bits);
        }
    }
}

/* Where memory of both is, and what stands there. */
struct room {
    float *v, *back;
    uint8_t *wire;
};

static struct room room_on(const struct kith_backend *on)
{
    return (struct room){.v = on->alloc((MOST + 8) * sizeof(float), false),
                         .back = on->alloc((MOST + 8) * sizeof(float), false),
                         .wire = on->alloc((MOST + 8) * sizeof(float), true)};
}

static void room_close(const struct kith_backend *on, const struct room *room)
{
    on->release(room->v);
    on->release(room->back);
    on->release(room->wire);
}

/* Bits, which `read` and `write` would carry through float64. */
static void put(const float *values, size_t n, float *on_device)
{
    float *const shared = gpu->alloc((n + 1) * sizeof *shared, true);
    memcpy(shared, values, n * sizeof *shared);
    gpu->copy(n, on_device, shared);
    gpu->release(shared);
}

static void get(const float *on_device, size_t n, float *values)
{
    float *const shared = gpu->alloc((n + 1) * sizeof *shared, true);
    gpu->copy(n, shared, on_device);
    assert_true(gpu->settled(shared, true));
    memcpy(values, shared, n * sizeof *values);
    gpu->release(shared);
}

static void same_bytes(const struct kith_format *format, size_t n,
                       unsigned kind, const struct room *device)
{
    const size_t bytes = format->bytes(n);
    struct room host = room_on(cpu);
    float *const got = malloc((n + 1) * sizeof *got);
    draw(n, kind, host.v);
    put(host.v, n, device->v);
    memset(device->wire, 0xa5, bytes + 64);
    format->pack(cpu, n, host.v, host.wire);
    format->pack(gpu, n, device->v, device->wire);
    assert_true(gpu->settled(device->wire, true));
    if (memcmp(device->wire, host.wire, bytes) != 0)
        fail_msg("%s of %zu values, kind %u: other bytes", format->name, n,
                 kind);
    for (size_t i = 0; i < 64; i++)
        assert_int_equal(device->wire[bytes + i], 0xa5);

    /* Received: the host writes, and a copy is fetched. */
    uint8_t *const inbox = gpu->alloc(bytes + 64, true);
    memcpy(inbox, host.wire, bytes);
    gpu->arrived(inbox, bytes);
    format->unpack(cpu, n, host.wire, 0, n, host.back);
    format->unpack(gpu, n, inbox, 0, n, device->back);
    memset(inbox, 0xff, bytes); /* what is received next */
    get(device->back, n, got);
    if (memcmp(got, host.back, n * sizeof *got) != 0)
        fail_msg("%s of %zu values, kind %u: read otherwise", format->name, n,
                 kind);
    gpu->release(inbox);
    free(got);
    room_close(cpu, &host);
}

static void test_bytes(void **state)
{
    (void)state;
    static const size_t sizes[] = {0,   1,    2,    7,    8,    255, 256,
                                   257, 1030, 2047, 8192, 8193, MOST};
    const struct room device = room_on(gpu);
    for (size_t f = 0; kith_formats[f] != NULL; f++)
        for (size_t s = 0; s < COUNT(sizes) && packs_whole(kith_formats[f]);
             s++)
            for (unsigned kind = 0; kind < KINDS; kind++)
                for (int order = EARLY; order < ORDERS; order++) {
                    if (set_order != NULL)
                        set_order(order);
                    same_bytes(kith_formats[f], sizes[s], kind, &device);
                    if (set_order != NULL)
                        set_order(EARLY);
                }
    room_close(gpu, &device);
}

/* ---- residues: messages, what is kept, what is read, how far apart */

/* Of one end; `wire`, `reach` and `apart` in memory that a host shares. */
struct end {
    float *v, *kept, *out, *reach, *apart;
    void *wire, *inbox;
    struct kith_modular_seen seen;
    float most;
};

static struct end end_on(const struct kith_backend *on, size_t n)
{
    const size_t bytes = (n + 512) * sizeof(float);
    return (struct end){.v = on->alloc(bytes, false),
                        .kept = on->alloc(bytes, false),
                        .out = on->alloc(bytes, false),
                        .reach = on->alloc(bytes, true),
                        .apart = on->alloc(bytes, true),
                        .wire = on->alloc(bytes, true),
                        .inbox = on->alloc(bytes, true)};
}

static void end_close(const struct kith_backend *on, const struct end *end)
{
    void *const all[] = {end->v,     end->kept, end->out,  end->reach,
                         end->apart, end->wire, end->inbox};
    for (size_t i = 0; i < COUNT(all); i++)
        on->release(all[i]);
}

/* Each end's own model, the same start; models come from `apart` apart. */
static void run_ends(const struct kith_format *format,
                     const struct kith_backend *on, size_t n, unsigned kind,
                     bool half_of_it, struct end ends[2])
{
    static float values[MOST], start[MOST];
    const size_t blocks = kith_modular_blocks(n);
    const size_t carried = kith_modular_carried(n, half_of_it ? 0.5 : 1);
    uint32_t *const chosen = on->alloc((blocks + 1) * sizeof *chosen, true);
    kith_modular_choose(7, 3, blocks, carried, chosen);
    const struct kith_modular_cover cover = {
        n, carried < blocks ? chosen : NULL, carried};
    const size_t bytes = format->bytes(carried * KITH_RESIDUE_BLOCK);
    draw(n, FINE, start);
    for (unsigned k = 0; k < 2; k++) {
        struct end *const end = &ends[k];
        *end = end_on(on, n);
        draw(n, kind, values);
        for (size_t i = 0; i < n; i++)
            values[i] += (float)((i * 7 + k * 3) % 5) * (i < n / 2 ? 0.01f : 3);
        if (on == gpu) {
            put(values, n, end->v);
            put(start, n, end->out);
        } else {
            memcpy(end->v, values, n * sizeof *values);
            memcpy(end->out, start, n * sizeof *values);
        }
        kith_modular_start(on, n, end->v, k == 0 ? end->out : NULL, end->reach);
        end->most = kith_modular_pack(format, on, &cover, end->v, end->reach,
                                      end->wire, end->kept);
        assert_true(on->settled == NULL || on->settled(end->wire, true));
    }
    for (unsigned k = 0; k < 2; k++) {
        struct end *const end = &ends[k];
        memcpy(end->inbox, ends[1 - k].wire, bytes);
        ((uint8_t *)end->inbox)[bytes - 1] ^= n % 3 == 0;
        if (on->arrived != NULL)
            on->arrived(end->inbox, bytes);
        const struct kith_modular_pair pair = {end->inbox, end->wire, end->kept,
                                               end->out};
        end->seen = kith_modular_unpack(format, on, &cover, &pair, end->apart);
    }
    on->release(chosen);
}

static void same_vector(const char *what, const float *device,
                        const float *host, size_t n)
{
    float *const got = malloc((n + 1) * sizeof *got);
    get(device, n, got);
    for (size_t i = 0; i < n; i++)
        if (memcmp(got + i, host + i, sizeof *got) != 0 &&
            !(isnan(got[i]) && isnan(host[i])))
            fail_msg("%s: value %zu is %g, not %g", what, i, (double)got[i],
                     (double)host[i]);
    free(got);
}

static void same_ends(const struct kith_format *format, size_t n, unsigned kind,
                      bool half_of_it)
{
    struct end host[2], device[2];
    const size_t blocks = kith_modular_blocks(n);
    const size_t bytes = format->bytes(
        kith_modular_carried(n, half_of_it ? 0.5 : 1) * KITH_RESIDUE_BLOCK);
    run_ends(format, cpu, n, kind, half_of_it, host);
    run_ends(format, gpu, n, kind, half_of_it, device);
    for (unsigned k = 0; k < 2; k++) {
        const struct end *a = &device[k], *b = &host[k];
        assert_memory_equal(a->reach, b->reach, blocks * sizeof(float));
        if (memcmp(a->wire, b->wire, bytes) != 0)
            fail_msg("%s of %zu values, kind %u: other bytes", format->name, n,
                     kind);
        same_vector("kept", a->kept, b->kept, n);
        same_vector("read", a->out, b->out, n);
        for (size_t i = 0; i < blocks; i++)
            assert_true(memcmp(a->apart + i, b->apart + i, 4) == 0 ||
                        (isnan(a->apart[i]) && isnan(b->apart[i])));
        assert_int_equal(a->seen.read, b->seen.read);
        assert_true(fabs(a->seen.beyond - b->seen.beyond) <=
                    1e-12 * b->seen.beyond);
        assert_true(memcmp(&a->most, &b->most, sizeof a->most) == 0);
        end_close(cpu, b);
        end_close(gpu, a);
    }
}

static void test_residues(void **state)
{
    (void)state;
    static const size_t sizes[] = {1, 255, 256, 257, 1030, 8193, MOST};
    for (size_t f = 0; kith_formats[f] != NULL; f++)
        for (size_t s = 0;
             s < COUNT(sizes) && kith_formats[f]->residue_bits > 0; s++)
            for (unsigned kind = 0; kind < 2 * KINDS; kind++)
                for (int order = EARLY; order < ORDERS; order++) {
                    if (sizes[s] == MOST && order != EARLY)
                        continue;
                    if (set_order != NULL)
                        set_order(order);
                    same_ends(kith_formats[f], sizes[s], kind / 2, kind % 2);
                    if (set_order != NULL)
                        set_order(EARLY);
                }
}

int main(void)
{
    if (!cuda_module_found(&gpu, &half))
        return 77;
    cuda_find(&set_order, "kith_emulate_order");
    cpu = kith_backend_find("cpu");
    kith_backend_threads(1);
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_bytes),
        cmocka_unit_test(test_residues),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
