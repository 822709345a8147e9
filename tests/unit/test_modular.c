/* Goal: what modular.h promises. Both ends of an exchange agree, block by
 * block, on what is read and on the numbers, however far their models and their
 * grids are apart, and a number that was misread is always found; the bits are
 * the same from every instruction set and backend; nothing that a peer sends
 * makes a value that is no number; grids follow how far models are apart, and
 * two halves that no longer read each other find together again. Method: two
 * models, at drawn distances, packed and read by hand. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "kith/rng.h"
#include "kith/format.h"
#include "src/training/backend/cpu.h"

enum { N_MAX = 1030, BLOCKS = 5, WIRE_MAX = 2 * N_MAX, FORMATS = 2 };
static const char *const names[FORMATS] = {"moniqua8", "moniqua4"};

struct end {
    _Alignas(64) float x[N_MAX];
    _Alignas(64) float kept[N_MAX];
    _Alignas(64) float read[N_MAX]; /* of the other */
    _Alignas(64) uint8_t wire[WIRE_MAX];
    float reach[BLOCKS], apart[BLOCKS];
};

static struct end a, b;
static struct kith_rng rng;

static double uniform(double low, double high)
{
    return low + (high - low) * kith_rng_double(&rng);
}

static const struct kith_backend *host(void)
{
    return kith_backend_find("cpu");
}

/* Values of a block about `size`, and b's within `distance` of a's. */
static void draw(size_t n, double size, double distance)
{
    for (size_t i = 0; i < n; i++) {
        a.x[i] = (float)uniform(-size, size);
        b.x[i] = (float)((double)a.x[i] + uniform(-distance, distance));
    }
}

static struct kith_modular_cover all(size_t n)
{
    return (struct kith_modular_cover){.n = n, .count = kith_modular_blocks(n)};
}

static void pack(const struct kith_format *format, size_t n, struct end *end)
{
    const struct kith_modular_cover cover = all(n);
    (void)kith_modular_pack(format, host(), &cover, end->x, end->reach,
                            end->wire, end->kept);
}

static size_t read_by(const struct kith_format *format, size_t n,
                      struct end *reader, const struct end *sender)
{
    const struct kith_modular_pair pair = {.received = sender->wire,
                                           .sent = reader->wire,
                                           .kept = reader->kept,
                                           .out = reader->read};
    const struct kith_modular_cover cover = all(n);
    size_t left_out = 0;
    (void)kith_modular_unpack(format, host(), &cover, &pair, reader->apart);
    for (size_t i = 0; i < kith_modular_blocks(n); i++)
        left_out += reader->apart[i] < 0;
    return left_out;
}

static size_t meet(const struct kith_format *format, size_t n)
{
    pack(format, n, &a);
    pack(format, n, &b);
    const size_t unread = read_by(format, n, &a, &b);
    assert_int_equal(read_by(format, n, &b, &a), unread);
    return unread;
}

/* Of a block that both read, both have the same two numbers; of another, each
 * has its own. */
static size_t check_agreement(size_t n)
{
    size_t merged = 0;
    for (size_t i = 0; i < n; i++) {
        const size_t block = i / KITH_RESIDUE_BLOCK;
        const bool both = a.apart[block] >= 0;
        assert_true(both == (b.apart[block] >= 0));
        assert_true(a.read[i] == (both ? b.kept[i] : a.kept[i]));
        assert_true(b.read[i] == (both ? a.kept[i] : b.kept[i]));
        merged += both;
    }
    return merged;
}

/* Distances from far below a step to far beyond every grid. */
static void test_ends_agree(void **state)
{
    (void)state;
    size_t merged = 0, left_out = 0;
    kith_rng_init(&rng, 1, KITH_STREAM_TEST, 0);
    for (unsigned round = 0; round < 20000; round++) {
        const struct kith_format *format =
            kith_format_find(names[round % FORMATS]);
        const size_t n = 1 + kith_rng_below(&rng, N_MAX);
        const double reach = exp2(uniform(-16, 2));
        draw(n, exp2(uniform(-8, 4)), reach * exp2(uniform(-4, 4)));
        for (size_t i = 0; i < BLOCKS; i++) {
            a.reach[i] = (float)(reach * exp2(uniform(-2, 2)));
            b.reach[i] = (float)(reach * exp2(uniform(-2, 2)));
        }
        (void)meet(format, n);
        const size_t here = check_agreement(n);
        merged += here;
        left_out += n - here;
    }
    assert_true(merged > 1000000 && left_out > 1000000);
}

/* Within half a step; a model that is within reach is read. */
static void test_near(void **state)
{
    (void)state;
    kith_rng_init(&rng, 2, KITH_STREAM_TEST, 0);
    for (unsigned f = 0; f < FORMATS; f++) {
        const struct kith_format *format = kith_format_find(names[f]);
        const double half = exp2(format->residue_bits - 1);
        for (unsigned round = 0; round < 500; round++) {
            const double reach = exp2(uniform(-10, 0));
            draw(N_MAX, 8 * reach, reach);
            for (size_t i = 0; i < BLOCKS; i++)
                a.reach[i] = b.reach[i] = (float)reach;
            assert_int_equal(meet(format, N_MAX), 0);
            const double step =
                (half == 8 ? 2 : 16) * reach / (half - 1) * exp2(0.25) * 1.001;
            for (size_t i = 0; i < N_MAX; i++)
                assert_true(fabs((double)a.read[i] - (double)b.x[i]) <=
                            step / 2 + 1e-6 * reach);
        }
    }
}

/* One value that is far away, whatever its distance: its block is left out, on
 * both sides, and none beside it. */
static void test_far_value(void **state)
{
    (void)state;
    kith_rng_init(&rng, 3, KITH_STREAM_TEST, 0);
    for (unsigned round = 0; round < 20000; round++) {
        const struct kith_format *format =
            kith_format_find(names[round % FORMATS]);
        const size_t at = kith_rng_below(&rng, N_MAX);
        draw(N_MAX, 1, 0.01);
        for (size_t i = 0; i < BLOCKS; i++)
            a.reach[i] = b.reach[i] = 0.01f;
        const double sign = kith_rng_below(&rng, 2) == 0 ? 1 : -1;
        b.x[at] =
            a.x[at] +
            (float)(sign *
                    exp2(uniform(round % FORMATS == 0 ? -2.3 : -4.9, 12)));
        assert_int_equal(meet(format, N_MAX), 1);
        assert_true(a.apart[at / KITH_RESIDUE_BLOCK] < 0);
        (void)check_agreement(N_MAX);
    }
}

static void test_same_bits(void **state)
{
    (void)state;
    static struct kith_residue_block one, other, read[2];
    uint8_t rests[2][KITH_RESIDUE_BLOCK];
    kith_rng_init(&rng, 4, KITH_STREAM_TEST, 0);
    for (unsigned round = 0; round < 6000; round++) {
        const unsigned bits = round % 2 == 0 ? 8 : 4;
        const double step = exp2(uniform(-20, 0));
        uint32_t hashes[2];
        float apart[2];
        unsigned variant = round / 2 % 3;
        while (kith_cpu_loops[variant] == NULL ||
               !kith_cpu_loops[variant]->supported())
            variant = variant == 0 ? 2 : variant - 1;
        const struct kith_residues *const kernels[2] = {
            kith_cpu_portable.residues, kith_cpu_loops[variant]->residues};
        draw(KITH_RESIDUE_BLOCK, step * exp2(uniform(0, 19)),
             step * exp2(uniform(0, bits + 1)));
        for (unsigned k = 0; k < 2; k++) {
            memcpy(one.v, a.x, sizeof one.v);
            memcpy(other.v, b.x, sizeof other.v);
            struct kith_residue_head head = {.step = (float)step};
            struct kith_residue_head own = {.step = (float)(step * 1.1)};
            own.hash = kernels[k]->pack(bits, own.step, &one, rests[k]);
            head.hash = hashes[k] =
                kernels[k]->pack(bits, head.step, &other, rests[k]);
            memset(&read[k], 0, sizeof read[k]);
            apart[k] =
                kernels[k]->unpack(bits, &head, rests[k], &own, &one, &read[k]);
        }
        assert_int_equal(hashes[0], hashes[1]);
        assert_memory_equal(rests[0], rests[1], KITH_RESIDUE_BLOCK * bits / 8);
        assert_memory_equal(&apart[0], &apart[1], sizeof apart[0]);
        assert_memory_equal(&read[0], &read[1], sizeof read[0]);
    }
}

/* float64 models are read as float32, and end with the same numbers. */
static void test_wide(void **state)
{
    (void)state;
    static _Alignas(64) double wide[N_MAX], kept[N_MAX], read[N_MAX];
    static _Alignas(64) uint8_t wire[WIRE_MAX];
    const struct kith_backend *exact = kith_backend_find("naive64");
    float apart[BLOCKS];
    kith_rng_init(&rng, 5, KITH_STREAM_TEST, 0);
    for (unsigned f = 0; f < FORMATS; f++) {
        const struct kith_format *format = kith_format_find(names[f]);
        draw(N_MAX, 1, 0.02);
        for (size_t i = 0; i < N_MAX; i++)
            wide[i] = (double)a.x[i];
        for (size_t i = 0; i < BLOCKS; i++)
            a.reach[i] = b.reach[i] = 0.01f;
        (void)meet(format, N_MAX);
        const struct kith_modular_cover cover = all(N_MAX);
        (void)kith_modular_pack(format, exact, &cover, wide, a.reach, wire,
                                kept);
        assert_memory_equal(wire, a.wire, format->bytes(N_MAX));
        const struct kith_modular_pair pair = {
            .received = b.wire, .sent = wire, .kept = kept, .out = read};
        (void)kith_modular_unpack(format, exact, &cover, &pair, apart);
        assert_memory_equal(apart, a.apart, sizeof apart);
        for (size_t i = 0; i < N_MAX; i++)
            assert_true(read[i] == (double)a.read[i] &&
                        kept[i] == (double)a.kept[i]);
    }
}

static bool passes(const struct kith_format *format, size_t n,
                   const uint8_t *wire)
{
    bool sane = true;
    const size_t bytes = format->bytes(n);
    for (size_t at = 0; at < bytes; at += 64) {
        const size_t left = bytes - at;
        sane = format->is_sane(bytes, at, left < 64 ? left : 64, wire + at) &&
               sane;
    }
    return sane;
}

/* What is no number, or beyond 2^32, does not leave; what a peer makes of a
 * wire is refused or read as numbers, or left out. */
static void test_hostile(void **state)
{
    (void)state;
    const float bad[] = {INFINITY, -INFINITY, NAN, 0x1p40f, -0x1p127f};
    kith_rng_init(&rng, 6, KITH_STREAM_TEST, 0);
    for (unsigned round = 0; round < 8000; round++) {
        const struct kith_format *format =
            kith_format_find(names[round % FORMATS]);
        const size_t n = 1 + kith_rng_below(&rng, N_MAX);
        const size_t bytes = format->bytes(n);
        draw(n, 1, 0.01);
        for (size_t i = 0; i < BLOCKS; i++)
            a.reach[i] = b.reach[i] = (float)exp2(uniform(-30, 2));
        (void)meet(format, n);
        assert_true(passes(format, n, a.wire));
        for (unsigned k = 1 + kith_rng_below(&rng, 8); k > 0; k--)
            b.wire[kith_rng_below(&rng, (uint32_t)bytes)] =
                (uint8_t)kith_rng_below(&rng, 256);
        (void)read_by(format, n, &a, &b);
        assert_true(host()->finite(n, a.read));
        a.x[kith_rng_below(&rng, (uint32_t)n)] = bad[round % 5];
        pack(format, n, &a);
        assert_false(passes(format, n, a.wire));
        assert_true(host()->finite(n, a.kept));
        (void)read_by(format, n, &a, &b);
        assert_true(host()->finite(n, a.read));
    }
}

static void average(size_t n)
{
    for (size_t i = 0; i < n; i++) {
        const float delta = (b.kept[i] - a.kept[i]) / 2;
        if (a.apart[i / KITH_RESIDUE_BLOCK] >= 0) {
            a.x[i] += delta;
            b.x[i] -= delta;
        }
    }
}

/* From models that share nothing to agreement, by as many exchanges as growing
 * by half and shrinking by a twentieth take. */
static void test_finds_together(void **state)
{
    (void)state;
    kith_rng_init(&rng, 7, KITH_STREAM_TEST, 0);
    for (unsigned f = 0; f < FORMATS; f++) {
        const struct kith_format *format = kith_format_find(names[f]);
        draw(N_MAX, 1, 0);
        kith_modular_start(host(), N_MAX, a.x, NULL, a.reach);
        assert_true(fabs((double)a.reach[0] - 1.0 / 64) < 1e-3);
        draw(N_MAX, 1, 1000);
        kith_modular_start(host(), N_MAX, b.x, NULL, b.reach);
        unsigned first = 0;
        for (unsigned round = 0; round < 600; round++) {
            if (meet(format, N_MAX) > 0)
                first = round;
            average(N_MAX);
            kith_modular_follow(N_MAX, a.apart, 1000, a.reach);
            kith_modular_follow(N_MAX, b.apart, 1000, b.reach);
        }
        assert_in_range(first, 10, 40);
        for (size_t i = 0; i < N_MAX; i++)
            assert_true(fabs((double)a.x[i] - (double)b.x[i]) <=
                        1e-3 * (1 + fabs((double)a.x[i])));
    }
    /* All zero, and one that is not: nothing to begin with. */
    memset(a.x, 0, sizeof a.x);
    kith_modular_start(host(), N_MAX, a.x, NULL, a.reach);
    assert_true(a.reach[0] > 0);
}

/* What a member that lies may have made of our grids: nobody is moved by a step
 * that is larger than all values, nor taught to reach so far, and it passes. */
static void test_too_coarse(void **state)
{
    (void)state;
    kith_rng_init(&rng, 8, KITH_STREAM_TEST, 0);
    for (unsigned f = 0; f < FORMATS; f++) {
        const struct kith_format *format = kith_format_find(names[f]);
        unsigned last = 0;
        draw(N_MAX, 0.1, 0.001);
        for (size_t i = 0; i < BLOCKS; i++) {
            a.reach[i] = 0x1p30f;
            b.reach[i] = 0.001f;
        }
        for (unsigned round = 0; round < 300; round++) {
            const size_t left_out = meet(format, N_MAX);
            assert_true(passes(format, N_MAX, a.wire));
            last = left_out > 0 ? round : last;
            (void)check_agreement(N_MAX);
            for (size_t i = 0; i < N_MAX; i++)
                assert_true(a.apart[i / KITH_RESIDUE_BLOCK] < 0 ||
                            fabs((double)a.read[i] - (double)b.x[i]) <= 0.06);
            kith_modular_follow(N_MAX, a.apart, 0.1f, a.reach);
            kith_modular_follow(N_MAX, b.apart, 0.1f, b.reach);
        }
        assert_in_range(last, 1, 200);
        assert_true(a.reach[0] < 0.01f && b.reach[0] < 0.01f);
    }
}

static void test_bytes(void **state)
{
    (void)state;
    const struct kith_format *four = kith_format_find("moniqua4");
    const struct kith_format *eight = kith_format_find("moniqua8");
    assert_int_equal(four->bytes(0), 0);
    assert_int_equal(four->bytes(1), 132);
    assert_int_equal(four->bytes(257), 264);
    assert_int_equal(eight->bytes(256), 260);
    assert_int_equal(kith_modular_blocks(257), 2);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_bytes),
        cmocka_unit_test(test_near),
        cmocka_unit_test(test_ends_agree),
        cmocka_unit_test(test_far_value),
        cmocka_unit_test(test_same_bits),
        cmocka_unit_test(test_wide),
        cmocka_unit_test(test_hostile),
        cmocka_unit_test(test_finds_together),
        cmocka_unit_test(test_too_coarse),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
