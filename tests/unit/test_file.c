/* Goal: only a regular file is opened, a new one written, and nothing is waited
 * for. Method: each kind of file that a path may name. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include "kith/plain_file.h"

static char folder[] = "/tmp/kith-test-file-XXXXXX";

static int set_up(void **state)
{
    (void)state;
    return mkdtemp(folder) == NULL ? 1 : chdir(folder);
}

static int tear_down(void **state)
{
    static const char *const names[] = {"file", "fifo", "socket"};
    (void)state;
    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++)
        (void)unlink(names[i]);
    return chdir("/") == 0 ? rmdir(folder) : 1;
}

static void refused(const char *path, enum kith_err expected, const char *why)
{
    char opened[KITH_FILE_WHY_BYTES] = "", checked[KITH_FILE_WHY_BYTES] = "";
    int fd = 0;
    size_t bytes = 7;

    assert_int_equal(kith_file_open(path, &fd, &bytes, opened), expected);
    assert_int_equal(kith_file_check(path, checked), expected);

    assert_string_equal(opened, why);
    assert_string_equal(checked, why);
    assert_int_equal(bytes, 7);
}

static void test_kinds(void **state)
{
    (void)state;
    struct sockaddr_un address = {.sun_family = AF_UNIX, .sun_path = "socket"};
    const int server = socket(AF_UNIX, SOCK_STREAM, 0);
    assert_int_equal(
        bind(server, (const struct sockaddr *)&address, sizeof address), 0);
    assert_int_equal(mkfifo("fifo", 0600), 0);

    refused("none", KITH_ENOENT, strerror(ENOENT));
    refused(".", KITH_EINVAL, "it is a folder, not a plain file");
    refused("fifo", KITH_EINVAL, "it is a FIFO, not a plain file");
    refused("socket", KITH_EINVAL, "it is a socket, not a plain file");
    refused("/dev/zero", KITH_EINVAL, "it is a device, not a plain file");
    (void)close(server);
}

static void test_regular(void **state)
{
    (void)state;
    char why[KITH_FILE_WHY_BYTES], text[8] = "";
    int fd;
    size_t bytes;
    FILE *file = fopen("file", "w");
    assert_non_null(file);
    fputs("hello", file);
    fclose(file);

    assert_int_equal(kith_file_check("file", why), KITH_OK);
    assert_int_equal(kith_file_open("file", &fd, &bytes, why), KITH_OK);

    assert_int_equal(bytes, 5);
    assert_int_equal(read(fd, text, sizeof text), 5);
    assert_string_equal(text, "hello");
    assert_true((fcntl(fd, F_GETFD) & FD_CLOEXEC) != 0);
    close(fd);
}

static void test_errors(void **state)
{
    (void)state;
    assert_int_equal(kith_file_error(ENOMEM), KITH_ENOMEM);
    assert_int_equal(kith_file_error(ENOSPC), KITH_ENOSPC);
    assert_int_equal(kith_file_error(EACCES), KITH_EPERM);
    assert_int_equal(kith_file_error(ENOTDIR), KITH_ENOENT);
    assert_int_equal(kith_file_error(EIO), KITH_EIO);
}

static void test_create(void **state)
{
    (void)state;
    struct stat about;
    int fd = kith_file_create("file");
    assert_true(fd >= 0);
    assert_int_equal(close(fd), 0);

    assert_int_equal(symlink("file", "link"), 0);
    FILE *file = kith_file_create_stream("link");
    assert_non_null(file);
    assert_true(fputs("text", file) >= 0);
    assert_int_equal(fclose(file), 0);

    assert_int_equal(stat("file", &about), 0);
    assert_int_equal(about.st_size, 0);
    assert_int_equal(unlink("link"), 0);
    assert_int_equal(mkfifo("link", 0600), 0);
    fd = kith_file_create("link");
    assert_true(fd >= 0);
    assert_int_equal(close(fd), 0);
    assert_int_equal(unlink("link"), 0);
    assert_int_equal(mkdir("link", 0700), 0);
    assert_int_equal(kith_file_create("link"), -1);
    assert_null(kith_file_create_stream("link/none/file"));
    assert_int_equal(rmdir("link"), 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_kinds),
        cmocka_unit_test(test_regular),
        cmocka_unit_test(test_errors),
        cmocka_unit_test(test_create),
    };
    return cmocka_run_group_tests(tests, set_up, tear_down);
}
