/* Goal: every message survives the wire, its size is known without writing it,
 * and nothing that is not a header is taken for one.
 * Method: round trips over random messages, hand-made bad bytes, truncation at
 * every byte and flips of every bit. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#include "kith/rng.h"
#include "kith/wire.h"

/* A number whose length in bits is uniform: every msgpack width is drawn. */
static uint64_t draw_number(struct kith_rng *rng, uint64_t most)
{
    const uint64_t value = kith_rng_u64(rng) >> kith_rng_below(rng, 64);
    return value > most ? most : value;
}

static struct kith_message draw_message(struct kith_rng *rng)
{
    struct kith_message message = {
        .kind = (enum kith_message_kind)kith_rng_below(rng, KITH_MESSAGE_COUNT),
        .pattern = (enum kith_pattern)kith_rng_below(rng, KITH_PATTERN_COUNT),
        .mine = kith_rng_below(rng, 2) == 1,
    };
    message.id.incarnation = (uint32_t)draw_number(rng, UINT32_MAX);
    message.id.counter = draw_number(rng, UINT64_MAX);
    message.step = draw_number(rng, UINT64_MAX);
    message.payload_bytes = draw_number(rng, 8 * KITH_PARAMETERS_MAX);
    message.scalar_count = kith_rng_below(rng, KITH_SCALARS_MAX + 1);
    for (uint32_t i = 0; i < message.scalar_count; i++)
        message.scalars[i] = kith_rng_double(rng) - 0.5;
    return message;
}

static void assert_same(const struct kith_message *a,
                        const struct kith_message *b)
{
    assert_int_equal(a->kind, b->kind);
    assert_int_equal(a->pattern, b->pattern);
    assert_int_equal(a->id.counter, b->id.counter);
    assert_int_equal(a->id.incarnation, b->id.incarnation);
    assert_int_equal(a->mine, b->mine);
    assert_int_equal(a->step, b->step);
    assert_int_equal(a->payload_bytes, b->payload_bytes);
    assert_int_equal(a->scalar_count, b->scalar_count);
    for (uint32_t i = 0; i < a->scalar_count; i++)
        assert_true(a->scalars[i] == b->scalars[i]);
}

static void test_round_trip(void **state)
{
    (void)state;
    struct kith_rng rng;
    kith_rng_init(&rng, 21, KITH_STREAM_TEST, 0);
    for (int i = 0; i < 20000; i++) {
        const struct kith_message message = draw_message(&rng);
        uint8_t bytes[KITH_WIRE_BYTES_MAX];
        struct kith_message back;

        const size_t size = kith_wire_pack(&message, bytes);
        assert_int_equal(size, kith_wire_size(&message));
        assert_int_equal(kith_wire_scan(bytes, size), KITH_OK);
        assert_int_equal(kith_wire_unpack(bytes, size, &back), KITH_OK);
        assert_same(&message, &back);
    }
}

/* The bytes of docs/protocol.md: a change here is a new wire version. */
static void test_fixed_bytes(void **state)
{
    (void)state;
    const struct kith_message message = {
        .kind = KITH_MESSAGE_MODEL,
        .pattern = KITH_PATTERN_PUSH,
        .id = {.counter = 300, .incarnation = 1},
        .mine = true,
        .step = 70000,
        .payload_bytes = 128,
        .scalar_count = 1,
        .scalars = {0.5}};
    static const uint8_t want[] = {
        0x98, 0x03, 0x02, 0xc3, 0x01, 0xcd, 0x01, 0x2c, 0xce, 0x00, 0x01, 0x11,
        0x70, 0xcc, 0x80, 0xcb, 0x3f, 0xe0, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00};
    uint8_t bytes[KITH_WIRE_BYTES_MAX];

    assert_int_equal(kith_wire_pack(&message, bytes), sizeof want);
    assert_memory_equal(bytes, want, sizeof want);
}

static void assert_refused(const uint8_t *bytes, size_t size)
{
    static const struct kith_message zero;
    struct kith_message message;
    memset(&message, 0xff, sizeof message);

    assert_int_equal(kith_wire_unpack(bytes, size, &message), KITH_EPARSE);
    assert_same(&message, &zero);
}

#define REFUSED(...)                                                           \
    do {                                                                       \
        static const uint8_t bytes[] = {__VA_ARGS__};                          \
        assert_refused(bytes, sizeof bytes);                                   \
    } while (0)

static void test_not_a_header(void **state)
{
    (void)state;
    assert_refused(NULL, 0);
    REFUSED(0x00);                                     /* a bare number */
    REFUSED(0x90);                                     /* an empty array */
    REFUSED(0x96, 0, 1, 0xc3, 0, 0, 0);                /* too short */
    REFUSED(0x97, 0, 1, 0xc3, 0, 0, 0);                /* one value missing */
    REFUSED(0x97, 0, 1, 0xc3, 0, 0, 0, 0, 0);          /* one too many */
    REFUSED(0x9a, 0, 1, 0xc3, 0, 0, 0, 0, 0, 0, 0);    /* three scalars */
    REFUSED(0xdd, 0xff, 0xff, 0xff, 0xff);             /* 2^32 - 1 values */
    REFUSED(0xdc, 0, 7, 0, 1, 0xc3, 0, 0, 0, 0);       /* a long array */
    REFUSED(0x97, 0, 1, 0x90, 0, 0, 0, 0);             /* nested */
    REFUSED(0x97, 0, 1, 0xc3, 0xa1, 'x', 0, 0, 0);     /* a string */
    REFUSED(0x97, 0, 1, 0xc3, 0x80, 0, 0, 0);          /* a map */
    REFUSED(0x97, 0, 1, 0xc3, 0xd4, 0, 0, 0, 0, 0);    /* an extension */
    REFUSED(0x97, 0, 1, 0xc3, 0xc0, 0, 0, 0);          /* nil */
    REFUSED(0x97, 0, 1, 0xc3, 0xc1, 0, 0, 0);          /* never used */
    REFUSED(0x97, 0, 1, 0xc3, 0, 0, 0, 0xcf, 0, 0, 0); /* cut short */
}

static void test_out_of_range(void **state)
{
    (void)state;
    REFUSED(0x97, KITH_MESSAGE_COUNT, 1, 0xc3, 0, 0, 0, 0);
    REFUSED(0x97, 0, KITH_PATTERN_COUNT, 0xc3, 0, 0, 0, 0);
    REFUSED(0x97, 0xff, 1, 0xc3, 0, 0, 0, 0);       /* kind -1 */
    REFUSED(0x97, 0, 1, 1, 0, 0, 0, 0);             /* mine is no bool */
    REFUSED(0x97, 0xc3, 1, 0xc3, 0, 0, 0, 0);       /* kind is one */
    REFUSED(0x97, 0, 1, 0xc3, 0, 0xd0, 0x80, 0, 0); /* counter -128 */
    REFUSED(0x97, 0, 1, 0xc3, 0xcf, 0, 0, 0, 1, 0, 0, 0, 0, 0, 0,
            0); /* 33-bit incarnation */
    REFUSED(0x97, 0, 1, 0xc3, 0, 0, 0, 0xcf, 0, 0, 0, 4, 0, 0, 0,
            1);                               /* one byte too many */
    REFUSED(0x98, 3, 2, 0xc3, 0, 0, 0, 0, 7); /* a whole scalar */
    REFUSED(0x98, 3, 1, 0xc2, 0, 0, 0, 0, 7); /* not the initiator's */
    REFUSED(0x98, 0, 1, 0xc3, 0, 0, 0, 0, 0); /* no overlap is 0 */
    REFUSED(0x98, 0, 1, 0xc3, 0, 0, 0, 0, KITH_OVERLAP_MAX + 1);
    REFUSED(0x98, 2, 1, 0xc3, 0, 0, 0, 0, 1); /* BUSY has none */
    REFUSED(0x98, 3, 1, 0xc3, 0, 0, 0, 0, 0xcb, 0x7f, 0xf0, 0, 0, 0, 0, 0,
            0); /* infinity */
    REFUSED(0x98, 3, 1, 0xc3, 0, 0, 0, 0, 0xcb, 0x7f, 0xf8, 0, 0, 0, 0, 0,
            0); /* nan */
}

/* Wider forms than the shortest are legal msgpack, and read. */
static void test_wide_forms(void **state)
{
    (void)state;
    static const uint8_t bytes[] = {0x97, 0xcc, 0, 0xd1, 0, 1, 0xc2, 0xce, 0,
                                    0,    0,    5, 0xcd, 0, 6, 7,    8};
    struct kith_message message;

    assert_int_equal(kith_wire_unpack(bytes, sizeof bytes, &message), KITH_OK);
    assert_int_equal(message.pattern, 1);
    assert_int_equal(message.id.incarnation, 5);
    assert_int_equal(message.id.counter, 6);
    assert_int_equal(message.step, 7);
    assert_int_equal(message.payload_bytes, 8);
}

/* Found by fuzzing: a float32 scalar read as a double would be packed longer
 * than it came. Nobody packs one, so nobody may send one. */
static void test_float32_scalar(void **state)
{
    (void)state;
    static const uint8_t bytes[] = {0x98, 3,    2,    0xc3, 1, 0, 1,
                                    0,    0xca, 0x2c, 0,    0, 0};

    assert_refused(bytes, sizeof bytes);
}

/* Cut anywhere: refused. One bit flipped: refused, or another legal header. */
static void test_damage(void **state)
{
    (void)state;
    struct kith_rng rng;
    kith_rng_init(&rng, 22, KITH_STREAM_TEST, 0);
    for (int i = 0; i < 200; i++) {
        const struct kith_message message = draw_message(&rng);
        uint8_t bytes[KITH_WIRE_BYTES_MAX];
        const size_t size = kith_wire_pack(&message, bytes);
        struct kith_message back;

        for (size_t cut = 0; cut < size; cut++)
            assert_refused(bytes, cut);
        for (size_t bit = 0; bit < 8 * size; bit++) {
            bytes[bit / 8] ^= (uint8_t)(1u << bit % 8);
            if (kith_wire_unpack(bytes, size, &back) == KITH_OK) {
                assert_true(back.kind < KITH_MESSAGE_COUNT);
                assert_true(back.pattern < KITH_PATTERN_COUNT);
                assert_true(back.scalar_count <= KITH_SCALARS_MAX);
                assert_true(back.payload_bytes <= 8 * KITH_PARAMETERS_MAX);
            }
            bytes[bit / 8] ^= (uint8_t)(1u << bit % 8);
        }
    }
}

static void test_longest(void **state)
{
    (void)state;
    struct kith_message message = {.kind = KITH_MESSAGE_MODEL,
                                   .id = {UINT64_MAX, UINT32_MAX},
                                   .step = UINT64_MAX,
                                   .payload_bytes = 8 * KITH_PARAMETERS_MAX,
                                   .scalar_count = KITH_SCALARS_MAX};

    assert_true(kith_wire_size(&message) <= KITH_WIRE_BYTES_MAX);
}

static void test_names(void **state)
{
    (void)state;
    for (int i = 0; i < KITH_MESSAGE_COUNT; i++)
        assert_string_not_equal(kith_message_name((enum kith_message_kind)i),
                                "unknown");
    for (int i = 0; i < KITH_PATTERN_COUNT; i++)
        assert_string_not_equal(kith_pattern_name((enum kith_pattern)i),
                                "unknown");
    assert_string_equal(kith_message_name(KITH_MESSAGE_BYE), "bye");
    assert_string_equal(kith_message_name(KITH_MESSAGE_COUNT), "unknown");
    assert_string_equal(kith_pattern_name(KITH_PATTERN_COUNT), "unknown");
}

/* tests/golden/old/wire-50ce217.txt: every kind and pattern, as 50ce217 packed
 * it. Other bytes are another wire version. */
static void test_old_bytes(void **state)
{
    (void)state;
    char path[4096], line[256];
    const char *top = getenv("srcdir");
    snprintf(path, sizeof path, "%s/tests/golden/old/wire-50ce217.txt",
             top == NULL ? "." : top);
    FILE *file = fopen(path, "r");
    assert_non_null(file);
    unsigned lines = 0;
    for (; fgets(line, sizeof line, file) != NULL; lines++) {
        const unsigned kind = lines / KITH_PATTERN_COUNT;
        const unsigned pattern = lines % KITH_PATTERN_COUNT;
        const bool bulk =
            kind == KITH_MESSAGE_MODEL || kind == KITH_MESSAGE_REQUEST;
        const struct kith_message message = {
            .kind = (enum kith_message_kind)kind,
            .pattern = (enum kith_pattern)pattern,
            .id = {.counter = 300 + kind, .incarnation = 1 + pattern},
            .mine = (kind + pattern) % 2 == 1,
            .step = 70000 + pattern,
            .scalar_count = kind == KITH_MESSAGE_MODEL,
            .scalars = {0.5},
            .payload_bytes = bulk ? 4096 : 0};
        uint8_t bytes[KITH_WIRE_BYTES_MAX];
        char wanted[256];
        const size_t size = kith_wire_pack(&message, bytes);
        size_t at = (size_t)snprintf(wanted, sizeof wanted, "%s %s ",
                                     kith_message_name(message.kind),
                                     kith_pattern_name(message.pattern));
        for (size_t i = 0; i < size; i++)
            at += (size_t)snprintf(wanted + at, sizeof wanted - at, "%02x",
                                   bytes[i]);
        line[strcspn(line, "\n")] = '\0';
        assert_string_equal(line, wanted);
    }
    (void)fclose(file);
    assert_int_equal(lines, KITH_MESSAGE_COUNT * KITH_PATTERN_COUNT);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_round_trip),
        cmocka_unit_test(test_fixed_bytes),
        cmocka_unit_test(test_old_bytes),
        cmocka_unit_test(test_not_a_header),
        cmocka_unit_test(test_out_of_range),
        cmocka_unit_test(test_wide_forms),
        cmocka_unit_test(test_float32_scalar),
        cmocka_unit_test(test_damage),
        cmocka_unit_test(test_longest),
        cmocka_unit_test(test_names),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
