/* Goal: what is written field by field is read field by field, pages of zeros
 * take next to nothing, and what does not fit says so and moves no more.
 * Method: a buffer in the place of a file. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <string.h>

#include "kith/archive.h"

struct buffer {
    uint8_t bytes[1 << 17];
    size_t at, size;
};

static bool put(void *arg, void *bytes, size_t size)
{
    struct buffer *buffer = arg;
    if (sizeof buffer->bytes - buffer->at < size)
        return false;
    memcpy(buffer->bytes + buffer->at, bytes, size);
    buffer->size = buffer->at += size;
    return true;
}

static bool take(void *arg, void *bytes, size_t size)
{
    struct buffer *buffer = arg;
    if (buffer->size - buffer->at < size)
        return false;
    memcpy(bytes, buffer->bytes + buffer->at, size);
    buffer->at += size;
    return true;
}

struct fields {
    uint32_t number;
    bool flag;
    uint8_t pages[70001];
};

static void move(struct kith_archive *archive, struct fields *fields)
{
    kith_archive_same(archive, 7, "another seven");
    KITH_ARCHIVE(archive, fields->number);
    kith_archive_bool(archive, &fields->flag);
    kith_archive_pages(archive, fields->pages, sizeof fields->pages);
}

static struct buffer buffer;
static struct fields written, found;

static void write_fields(void)
{
    struct kith_archive archive = {.move = put, .arg = &buffer};
    memset(&buffer, 0, sizeof buffer);
    memset(&written, 0, sizeof written);
    written.number = 5;
    written.flag = true;
    written.pages[4096] = 9;
    written.pages[70000] = 3;
    move(&archive, &written);
    assert_null(archive.failed);
}

static void test_round_trip(void **state)
{
    struct kith_archive archive = {.reads = true, .move = take, .arg = &buffer};
    (void)state;
    write_fields();
    buffer.at = 0;
    memset(&found, 0xff, sizeof found);
    found.flag = false;

    move(&archive, &found);

    assert_null(archive.failed);
    assert_int_equal(buffer.at, buffer.size);
    assert_int_equal(found.number, 5);
    assert_true(found.flag);
    assert_memory_equal(found.pages, written.pages, sizeof found.pages);
    /* Of 18 pages two. */
    assert_in_range(buffer.size, 4096, 4096 + 70001 % 4096 + 32);
}

static void test_cut_off(void **state)
{
    (void)state;
    write_fields();
    for (size_t size = 0; size < buffer.size; size++) {
        struct buffer part = buffer;
        struct kith_archive archive = {
            .reads = true, .move = take, .arg = &part};
        part.at = 0;
        part.size = size;
        move(&archive, &found);
        assert_string_equal(archive.failed, "it ends too early");
        if (size > 64)
            size += 500;
    }
}

static void test_no_fit(void **state)
{
    struct kith_archive archive = {.reads = true, .move = take, .arg = &buffer};
    (void)state;
    write_fields();
    buffer.at = 0;
    buffer.bytes[0] = 8;
    found.number = 77;

    move(&archive, &found);

    assert_string_equal(archive.failed, "another seven");
    assert_int_equal(found.number, 77);
}

/* Whatever a byte holds, a bool is one. */
static void test_bool(void **state)
{
    struct kith_archive archive = {.reads = true, .move = take, .arg = &buffer};
    bool flag = false;
    (void)state;
    buffer.at = 0;
    buffer.size = 1;
    buffer.bytes[0] = 0x40;

    kith_archive_bool(&archive, &flag);

    assert_true(flag == true);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_round_trip), cmocka_unit_test(test_cut_off),
        cmocka_unit_test(test_no_fit), cmocka_unit_test(test_bool)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
