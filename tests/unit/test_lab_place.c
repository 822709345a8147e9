/* Goal: a place in a lab is taken as it was given, once, and nothing that is no
 * place is taken for one. Method: a round trip by a descriptor in the
 * environment; then the same bytes cut short, changed, and of another build. */
#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmocka.h>

#include "kith/lab_place.h"

#define PEERS 3
static const char text[] = "name: own\npeers: 3\nstop: {steps: 5}\n"
                           "model: {kind: program, run: \"own\"}\n";
static struct kith_experiment experiment;
static struct kith_identity identity = {.key = {7}, .secret = {9}};
static struct kith_trust trust = {.authority_count = 1};
static struct kith_member members[PEERS];
static char error[KITH_EXPERIMENT_ERROR_BYTES];

static int give(void)
{
    const struct kith_lab_place place = {.experiment = &experiment,
                                         .identity = &identity,
                                         .trust = &trust,
                                         .members = members,
                                         .save = "/tmp/x.save",
                                         .self = 2,
                                         .incarnation = 4,
                                         .adopts = true,
                                         .rows_fd = -1,
                                         .control_fd = -1,
                                         .listen_fd = -1,
                                         .average_fd = -1};
    char number[16];
    int fd;
    assert_int_equal(kith_lab_place_give(&place, &fd), KITH_OK);
    (void)snprintf(number, sizeof number, "%d", fd);
    assert_int_equal(setenv(KITH_PLACE_VARIABLE, number, 1), 0);
    return fd;
}

static void refused(enum kith_err expected, const char *words)
{
    struct kith_lab_place place;
    struct kith_member_file member;
    assert_int_equal(kith_lab_place_take(&place, &member, error), expected);
    assert_non_null(strstr(error, words));
    assert_null(member.members);
}

static void a_place_is_taken_once(void **state)
{
    struct kith_lab_place place;
    struct kith_member_file member;
    (void)state;
    const int other = dup(give());
    assert_int_equal(kith_lab_place_take(&place, &member, error), KITH_OK);
    assert_int_equal(place.self, 2);
    assert_int_equal(place.incarnation, 4);
    assert_true(place.adopts && !place.resumes);
    assert_string_equal(place.save, "/tmp/x.save");
    assert_ptr_equal(place.members, member.members);
    assert_memory_equal(member.members, members, sizeof members);
    assert_memory_equal(place.identity, &identity, sizeof identity);
    assert_int_equal(member.experiment.peers, PEERS);
    assert_int_equal(member.file.rank, 2);
    kith_member_file_close(&member);

    struct stat status;
    assert_int_equal(fstat(other, &status), 0);
    assert_int_equal(status.st_size, 0); /* the key is nowhere any more */
    (void)close(other);
    refused(KITH_ENOENT, "is taken");
}

/* Of a place that is refused nobody can read the key any more; a file that is
 * none stays as it is. */
static void given_is_refused(off_t size, const char *begins, enum kith_err err,
                             const char *words)
{
    const bool is_place = strncmp(begins, "kith ", 5) == 0;
    const int fd = give(), other = dup(fd);
    struct stat status;
    assert_true(other >= 0);
    assert_int_equal(ftruncate(fd, size), 0);
    if (size > 0)
        assert_true(pwrite(fd, begins, strlen(begins), 0) > 0);
    refused(err, words);
    assert_int_equal(fstat(other, &status), 0);
    assert_true((status.st_size == 0) == (is_place || size == 0));
    assert_true((fcntl(fd, F_GETFD) < 0) == (is_place && size > 0));
    if (!is_place || size == 0)
        (void)close(fd);
    (void)close(other);
}

static void what_is_no_place_is_refused(void **state)
{
    struct stat status;
    (void)state;
    const int fd = give();
    assert_int_equal(fstat(fd, &status), 0);
    (void)close(fd);
    for (off_t size = status.st_size - 1; size > 400; size -= 97)
        given_is_refused(size, "kith ", KITH_EPARSE, "cut short");
    given_is_refused(3, "kit", KITH_EPARSE, "not a place");
    given_is_refused(0, "", KITH_ENOENT, "is taken");
    given_is_refused(status.st_size, "kith 0.0.0 ", KITH_EVERSION,
                     "of one build");
    given_is_refused(status.st_size, "x", KITH_EPARSE, "not a place");
    assert_int_equal(setenv(KITH_PLACE_VARIABLE, "x", 1), 0);
    refused(KITH_ENOENT, "no kith lab has started this process");
    unsetenv(KITH_PLACE_VARIABLE);
    refused(KITH_ENOENT, "no kith lab has started this process");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_place_is_taken_once),
        cmocka_unit_test(what_is_no_place_is_refused),
    };
    for (uint32_t i = 0; i < PEERS; i++)
        (void)snprintf(members[i].address, sizeof members[i].address,
                       "127.0.0.1:%u", 7000 + i);
    if (kith_experiment_parse("own.yaml", text, sizeof text - 1, NULL, 0,
                              &experiment, error) != KITH_OK) {
        fprintf(stderr, "%s\n", error);
        return 99;
    }
    const int failed = cmocka_run_group_tests(tests, NULL, NULL);
    kith_experiment_close(&experiment);
    return failed;
}
