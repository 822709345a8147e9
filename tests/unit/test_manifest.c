/* Goal: a manifest says what data is, and nothing that is not one is taken for
 * one. Method: one is made, written and read again; then shortened at every
 * length, lengthened, and changed in every byte. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "kith/pieces.h"

enum { BYTES = 1000, PIECE = 128, COUNT = 8, LAST = BYTES - 7 * PIECE };
enum { WRITTEN = KITH_MANIFEST_HEAD_BYTES + COUNT * KITH_PIECE_HASH_BYTES };

static uint8_t data[BYTES], hashes[COUNT * KITH_PIECE_HASH_BYTES];
static uint8_t written[WRITTEN + 1], root[KITH_PIECE_HASH_BYTES];
static struct kith_manifest made;
static char error[KITH_PIECES_ERROR_BYTES];

static int make(void **state)
{
    (void)state;
    for (unsigned i = 0; i < BYTES; i++)
        data[i] = (uint8_t)(i * i * 31 >> 4);
    made = (struct kith_manifest){.bytes = BYTES,
                                  .piece_bytes = PIECE,
                                  .count = kith_manifest_count(BYTES, PIECE),
                                  .hashes = hashes};
    for (uint32_t i = 0; i < made.count; i++)
        kith_manifest_hash(data + i * PIECE, kith_manifest_size(&made, i),
                           hashes + i * KITH_PIECE_HASH_BYTES);
    kith_manifest_root(&made, root);
    kith_manifest_write_head(&made, written);
    memcpy(written + KITH_MANIFEST_HEAD_BYTES, hashes, sizeof hashes);
    return 0;
}

static void test_again(void **state)
{
    struct kith_manifest found;
    (void)state;
    assert_int_equal(made.count, COUNT);
    assert_int_equal(kith_manifest_parse(written, WRITTEN, root, &found, error),
                     KITH_OK);
    assert_int_equal(found.bytes, BYTES);
    assert_int_equal(found.piece_bytes, PIECE);
    assert_int_equal(found.count, COUNT);
    assert_int_equal(kith_manifest_size(&found, COUNT - 1), LAST);
    for (uint32_t i = 0; i < COUNT; i++)
        assert_true(kith_manifest_holds(&found, i, data + i * PIECE,
                                        kith_manifest_size(&found, i)));
    assert_false(kith_manifest_holds(&found, 0, data + PIECE, PIECE));
    assert_false(kith_manifest_holds(&found, 0, data, PIECE - 1));
    assert_false(kith_manifest_holds(&found, COUNT, data, PIECE));
}

static void test_bounds(void **state)
{
    const uint64_t most = (uint64_t)KITH_PIECES_MAX * KITH_PIECE_BYTES_MAX;
    (void)state;
    assert_int_equal(kith_manifest_count(0, PIECE), 0);
    assert_int_equal(kith_manifest_count(1, KITH_PIECE_BYTES_MIN - 1), 0);
    assert_int_equal(kith_manifest_count(1, KITH_PIECE_BYTES_MAX + 1), 0);
    assert_int_equal(kith_manifest_count(1, KITH_PIECE_BYTES_MIN), 1);
    assert_int_equal(kith_manifest_count(most, KITH_PIECE_BYTES_MAX),
                     KITH_PIECES_MAX);
    assert_int_equal(kith_manifest_count(most + 1, KITH_PIECE_BYTES_MAX), 0);
    assert_int_equal(kith_manifest_count(UINT64_MAX, KITH_PIECE_BYTES_MAX), 0);
}

static void test_refused(void **state)
{
    struct kith_manifest found;
    (void)state;
    for (size_t size = 0; size < WRITTEN; size++)
        assert_int_equal(
            kith_manifest_parse(written, size, root, &found, error),
            KITH_EPARSE);
    assert_int_equal(
        kith_manifest_parse(written, WRITTEN + 1, root, &found, error),
        KITH_EPARSE);
    for (size_t i = 0; i < WRITTEN; i++) {
        uint8_t bad[WRITTEN];
        memcpy(bad, written, sizeof bad);
        bad[i] ^= 0x80;
        const enum kith_err err =
            kith_manifest_parse(bad, sizeof bad, root, &found, error);
        if (i < 8)
            assert_int_equal(err, KITH_EPARSE);
        else if (i < KITH_MANIFEST_HEAD_BYTES)
            assert_true(err == KITH_EPARSE || err == KITH_ELIMIT ||
                        err == KITH_EMISMATCH);
        else
            assert_int_equal(err, KITH_EMISMATCH);
    }
    root[0] ^= 1;
    assert_int_equal(kith_manifest_parse(written, WRITTEN, root, &found, error),
                     KITH_EMISMATCH);
    root[0] ^= 1;
    assert_int_equal(kith_manifest_parse(written, WRITTEN, root, &found, error),
                     KITH_OK);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_again),
        cmocka_unit_test(test_bounds),
        cmocka_unit_test(test_refused),
    };
    return cmocka_run_group_tests(tests, make, NULL);
}
