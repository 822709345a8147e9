/* Goal: a save is there whole or not at all, the one before beside it, and no
 * bit of it can change, nor its end be missing, without being found out.
 * Method: every bit of a small one is flipped, every length cut off. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "sim/save_file.h"
#include "sim/save_log.h"

static char folder[] = "/tmp/kith-test-save-XXXXXX";

static int set_up(void **state)
{
    (void)state;
    return mkdtemp(folder) == NULL ? 1 : chdir(folder);
}

static int tear_down(void **state)
{
    static const char *const names[] = {"a", "a.previous", "log"};
    (void)state;
    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++)
        (void)unlink(names[i]);
    return chdir("/") == 0 ? rmdir(folder) : 1;
}

/* A body of `size` bytes `fill`, in `writer`, to be published. */
static void prepare(struct sim_save_writer *writer, uint64_t events,
                    size_t size, int fill)
{
    struct sim_save_head head = {.events = events};
    uint8_t *body = malloc(size);
    assert_non_null(body);
    memset(body, fill, size);
    assert_int_equal(sim_save_write_open(writer, "a"), 0);
    assert_true(sim_save_write(writer, body, size / 2));
    assert_true(sim_save_write(writer, body + size / 2, size - size / 2));
    assert_int_equal(sim_save_write_finish(writer, &head), 0);
    free(body);
}

static void write_save(uint64_t events, size_t size, int fill)
{
    struct sim_save_writer writer;
    prepare(&writer, events, size, fill);
    assert_int_equal(sim_save_publish(&writer), 0);
}

static enum kith_err read_save(const char *path, uint64_t *events)
{
    struct sim_save_reader reader;
    struct sim_save_head head;
    char why[SIM_SAVE_WHY_BYTES] = "";
    const enum kith_err err = sim_save_read_open(&reader, path, &head, why);
    assert_true((err == KITH_OK) == (why[0] == '\0'));
    sim_save_read_close(&reader);
    *events = head.events;
    return err;
}

static void test_two_generations(void **state)
{
    uint64_t events;
    (void)state;
    assert_int_equal(read_save("a", &events), KITH_ENOENT);
    write_save(5, 10000, 1);
    assert_int_equal(read_save("a.previous", &events), KITH_ENOENT);
    write_save(6, 300, 2);
    assert_int_equal(read_save("a", &events), KITH_OK);
    assert_int_equal(events, 6);
    assert_int_equal(read_save("a.previous", &events), KITH_OK);
    assert_int_equal(events, 5);
    assert_int_equal(access("a.partial", F_OK), -1);
}

static void expect_saves(uint64_t last, uint64_t before)
{
    uint64_t events;
    assert_int_equal(read_save("a", &events), KITH_OK);
    assert_int_equal(events, last);
    assert_int_equal(read_save("a.previous", &events),
                     before > 0 ? KITH_OK : KITH_ENOENT);
    if (before > 0)
        assert_int_equal(events, before);
    assert_int_equal(access("a.partial", F_OK), -1);
}

/* What is there stays, whichever of the two renames fails. */
static void test_not_published(void **state)
{
    struct sim_save_writer writer;
    (void)state;
    write_save(5, 300, 1);
    write_save(6, 300, 2);
    prepare(&writer, 7, 300, 3);
    assert_int_equal(unlink("a.partial"), 0);
    assert_int_equal(sim_save_publish(&writer), ENOENT);
    assert_int_equal(unlink("a.previous"), -1);
    expect_saves(6, 0);
    assert_int_equal(mkdir("a.previous", 0777), 0);
    prepare(&writer, 7, 300, 3);
    assert_int_equal(sim_save_publish(&writer), EISDIR);
    assert_int_equal(rmdir("a.previous"), 0);
    expect_saves(6, 0);
}

static void test_withdrawn(void **state)
{
    struct sim_save_writer writer;
    uint64_t events;
    (void)state;
    write_save(6, 300, 2);
    prepare(&writer, 7, 300, 3);
    assert_int_equal(sim_save_publish(&writer), 0);
    expect_saves(7, 6);
    sim_save_withdraw(&writer);
    expect_saves(6, 0);
    assert_int_equal(unlink("a"), 0);
    prepare(&writer, 7, 300, 3);
    assert_int_equal(sim_save_publish(&writer), 0);
    sim_save_withdraw(&writer);
    assert_int_equal(read_save("a", &events), KITH_ENOENT);
}

static uint8_t bytes[1 << 14];
static size_t size;

static void put_bytes(size_t count)
{
    FILE *file = fopen("a", "wb");
    assert_non_null(file);
    assert_int_equal(fwrite(bytes, 1, count, file), count);
    assert_int_equal(fclose(file), 0);
}

static void test_every_bit(void **state)
{
    uint64_t events;
    (void)state;
    write_save(6, 300, 2);
    FILE *file = fopen("a", "rb");
    assert_non_null(file);
    size = fread(bytes, 1, sizeof bytes, file);
    assert_int_equal(fclose(file), 0);
    assert_int_equal(size, sizeof(struct sim_save_head) + 300);

    for (size_t i = 0; i < size; i++) {
        bytes[i] ^= (uint8_t)(1u << i % 8);
        put_bytes(size);
        assert_int_not_equal(read_save("a", &events), KITH_OK);
        bytes[i] ^= (uint8_t)(1u << i % 8);
    }
    for (size_t cut = 0; cut < size; cut++) {
        put_bytes(cut);
        assert_int_not_equal(read_save("a", &events), KITH_OK);
    }
    put_bytes(size);
    assert_int_equal(read_save("a", &events), KITH_OK);
}

static void test_chain(void **state)
{
    struct sim_chain whole, parts, cut;
    (void)state;
    memset(bytes, 7, sizeof bytes);
    sim_chain_start(&whole);
    sim_chain_start(&parts);
    sim_chain_start(&cut);
    sim_chain_add(&whole, bytes, 9000);
    for (size_t at = 0, part = 1; at < 9000; at += part, part = part * 2 % 4999)
        sim_chain_add(&parts, bytes, 9000 - at < part ? 9000 - at : part);
    sim_chain_add(&cut, bytes, 8999);
    assert_int_equal(sim_chain_hash(&whole), sim_chain_hash(&parts));
    assert_int_not_equal(sim_chain_hash(&whole), sim_chain_hash(&cut));
}

/* What was put is read again, and the log goes on from where it is cut. */
static void test_log(void **state)
{
    static struct sim_save_log log, other;
    struct sim_save_head head = {.log_bytes = 0};
    char why[SIM_SAVE_WHY_BYTES];
    uint8_t found[3];
    (void)state;
    assert_int_equal(sim_save_log_open(&log, "log"), 0);
    for (unsigned i = 0; i < 100000; i++)
        assert_true(sim_save_log_put(&log, &i, 3));
    head.log_bytes = log.chain.bytes;
    head.log_hash = sim_chain_hash(&log.chain);
    for (unsigned i = 0; i < 50; i++)
        assert_true(sim_save_log_put(&log, &i, 2));
    assert_int_equal(sim_save_log_sync(&log), 0);
    sim_save_log_close(&log);

    assert_int_equal(sim_save_log_open(&other, "log"), 0);
    assert_int_equal(sim_save_log_check(&other, &head, why), KITH_OK);
    for (unsigned i = 0; i < 100000; i++) {
        assert_true(sim_save_log_get(&other, head.log_bytes, found, 3));
        assert_memory_equal(found, &i, 3);
    }
    assert_int_equal(sim_save_log_read(&other), head.log_bytes);
    assert_false(sim_save_log_get(&other, head.log_bytes, found, 3));
    assert_int_equal(sim_save_log_cut(&other, head.log_bytes), 0);
    assert_int_equal(sim_save_log_check(&other, &head, why), KITH_OK);
    assert_int_equal(truncate("log", 1000), 0);
    assert_int_equal(sim_save_log_check(&other, &head, why), KITH_EPARSE);
    sim_save_log_close(&other);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_two_generations),
                                       cmocka_unit_test(test_not_published),
                                       cmocka_unit_test(test_withdrawn),
                                       cmocka_unit_test(test_every_bit),
                                       cmocka_unit_test(test_chain),
                                       cmocka_unit_test(test_log)};
    return cmocka_run_group_tests(tests, set_up, tear_down);
}
