/* Goal: a manifest says what data is, and nothing that is not one is taken for
 * one. Method: one is made, written and read again; then shortened at every
 * length, lengthened, and changed in every byte; one is made of a folder. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
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

/* ---- of several files */

static char top[] = "/tmp/kith-manifest-XXXXXX";

static void put_file(const char *name, size_t first, size_t size)
{
    char path[64];
    (void)snprintf(path, sizeof path, "%s/%s", top, name);
    FILE *const file = fopen(path, "wb");
    assert_non_null(file);
    assert_int_equal(fwrite(data + first, 1, size, file), size);
    assert_int_equal(fclose(file), 0);
}

/* Files of 100, 0 (passed over) and 300 bytes, and one that is hidden. */
static void test_files(void **state)
{
    struct kith_manifest found;
    struct kith_manifest_file file = {.next = 0};
    struct kith_piece_origin origin;
    uint8_t *bytes, piece[128];
    size_t size;
    (void)state;
    assert_non_null(mkdtemp(top));
    put_file("b", 100, 300);
    put_file("a", 0, 100);
    put_file("empty", 0, 0);
    put_file(".hidden", 0, 10);
    if (kith_manifest_make(top, PIECE, &bytes, &size, error) != KITH_OK)
        fail_msg("%s", error);
    assert_int_equal(kith_manifest_parse(bytes, size, NULL, &found, error),
                     KITH_OK);
    assert_int_equal(found.file_count, 2);
    assert_int_equal(found.bytes, 128 + 300);
    assert_int_equal(found.count, 4);
    assert_true(kith_manifest_next(&found, &file));
    assert_string_equal(file.name, "a");
    assert_int_equal(file.at, 0);
    assert_int_equal(file.size, 100);
    assert_true(kith_manifest_find(&found, "b", &file));
    assert_int_equal(file.at, 128);
    assert_int_equal(file.size, 300);
    assert_false(kith_manifest_find(&found, "empty", &file));
    assert_false(kith_manifest_find(&found, NULL, &file));

    /* A piece that spans two files, zeros between them. */
    assert_int_equal(kith_piece_origin_init(&origin, top, &found), KITH_OK);
    const struct kith_piece_source source = kith_piece_origin_source(&origin);
    for (uint32_t i = 0; i < found.count; i++) {
        const size_t length = kith_manifest_size(&found, i);
        assert_int_equal(source.read(source.owner, i, 0, length, piece),
                         KITH_OK);
        assert_true(kith_manifest_holds(&found, i, piece, length));
    }
    /* Names that leave the folder, are not in order, or are none. */
    const size_t b_at = size - 1, a_at = b_at - 10;
    static const char bad[] = {'/', '.', '\n', '\0'};
    for (size_t i = 0; i < sizeof bad; i++) {
        bytes[b_at] = (uint8_t)bad[i];
        assert_int_equal(kith_manifest_parse(bytes, size, NULL, &found, error),
                         KITH_EPARSE);
    }
    bytes[b_at] = bytes[a_at];
    assert_int_equal(kith_manifest_parse(bytes, size, NULL, &found, error),
                     KITH_EPARSE);
    free(bytes);
    assert_int_equal(
        kith_manifest_make("/tmp/kith-not-there", PIECE, &bytes, &size, error),
        KITH_ENOENT);
}

static int clean(void **state)
{
    char command[64];
    (void)state;
    (void)snprintf(command, sizeof command, "rm -rf %s", top);
    return system(command);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_again),
        cmocka_unit_test(test_bounds),
        cmocka_unit_test(test_refused),
        cmocka_unit_test(test_files),
    };
    return cmocka_run_group_tests(tests, make, clean);
}
