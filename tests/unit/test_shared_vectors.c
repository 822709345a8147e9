/* Goal: what a neighbour says of its memory is believed nowhere (T6.6 of the
 * papers' tests): only a sealed memory file is mapped, nothing outside it is
 * read, and a slot that was filled anew is known by its count (T6.4); and where
 * the system has no such memory, there is none. Torn copies are
 * test_torn_copies'.
 * Method: descriptors of every wrong kind; a million drawn places, a tenth near
 * the bounds; limits of the process, and calls that fail (--wrap). Prints
 * expected and measured. */
#define _GNU_SOURCE
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <errno.h>
#include <fcntl.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <unistd.h>
#include <cmocka.h>

#include "kith/rng.h"
#include "kith/work.h"
#include "src/peer/shared_vectors.h"

#define BYTES 100000u
#define PLACES 1000000u

static unsigned offered, mapped; /* descriptors, by refusal_of */

static const char *refusal_of(int fd)
{
    struct kith_shared_view view = {.head = NULL};
    const char *why = kith_shared_map(fd, 1 << 20, &view);
    assert_true((why == NULL) == (view.head != NULL));
    offered++;
    mapped += view.head != NULL;
    kith_shared_unmap(&view);
    assert_int_equal(fcntl(fd, F_GETFD), -1); /* closed in any case */
    return why;
}

static int memory_file(off_t bytes, int seals)
{
    const int fd = memfd_create("test", MFD_CLOEXEC | MFD_ALLOW_SEALING);
    assert_true(fd >= 0);
    assert_int_equal(ftruncate(fd, bytes), 0);
    if (seals != 0)
        assert_int_equal(fcntl(fd, F_ADD_SEALS, seals), 0);
    return fd;
}

static void only_sealed_memory_is_mapped(void **state)
{
    const int all =
        F_SEAL_SEAL | F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_FUTURE_WRITE;
    int pipes[2];
    (void)state;
    assert_int_equal(pipe(pipes), 0);
    close(pipes[1]);
    assert_non_null(refusal_of(pipes[0]));
    assert_non_null(refusal_of(open("/dev/zero", O_RDWR)));
    char path[] = "test_shared_vectors.XXXXXX";
    const int file = mkstemp(path);
    assert_int_equal(ftruncate(file, 1 << 20), 0);
    unlink(path);
    assert_non_null(refusal_of(file));
    for (int less = 0; less < 5; less++) {
        const int seals[] = {0, all & ~F_SEAL_SEAL, all & ~F_SEAL_GROW,
                             all & ~F_SEAL_SHRINK, all & ~F_SEAL_FUTURE_WRITE};
        assert_non_null(refusal_of(memory_file(1 << 20, seals[less])));
    }
    assert_non_null(refusal_of(memory_file(0, all)));
    assert_non_null(refusal_of(memory_file(64, all)));
    assert_non_null(refusal_of(memory_file((1 << 20) + 1, all)));
    assert_null(refusal_of(memory_file(1 << 20, all)));
    printf("T6.6 descriptors that are mapped, of %u: expected 1, measured %u\n",
           offered, mapped);
    assert_int_equal(mapped, 1);
}

/* The owner's file can be neither cut, grown nor mapped for writing. */
static void nobody_else_writes(void **state)
{
    struct kith_shared shared = {.head = NULL};
    (void)state;
    uint8_t *ours = kith_shared_take(&shared, BYTES);
    assert_non_null(ours);
    assert_int_equal((uintptr_t)ours % 64, 0);
    assert_int_equal(ours[BYTES - 1], 0);
    assert_int_equal(ftruncate(shared.fd, 0), -1);
    assert_int_equal(ftruncate(shared.fd, 1 << 24), -1);
    assert_true(mmap(NULL, shared.bytes, PROT_READ | PROT_WRITE, MAP_SHARED,
                     shared.fd, 0) == MAP_FAILED);
    assert_int_equal(write(shared.fd, "x", 1), -1);
    ours[7] = 1; /* we do */
    kith_shared_free(&shared);
    assert_null(shared.head);
    kith_shared_free(&shared);
}

struct both {
    struct kith_shared shared;
    struct kith_shared_view view;
    uint8_t *ours;
};

static void open_both(struct both *both)
{
    memset(both, 0, sizeof *both);
    both->ours = kith_shared_take(&both->shared, BYTES);
    assert_non_null(both->ours);
    memset(both->ours, 0, BYTES); /* all of it has pages */
    assert_null(kith_shared_map(fcntl(both->shared.fd, F_DUPFD_CLOEXEC, 0),
                                kith_shared_most(1, BYTES), &both->view));
}

static void close_both(struct both *both)
{
    kith_shared_unmap(&both->view);
    kith_shared_free(&both->shared);
}

/* Near the bounds, where 64 bits wrap, or anywhere. */
static uint64_t draw(struct kith_rng *rng, uint64_t near)
{
    const uint64_t any = kith_rng_u64(rng);
    switch (any % 10) {
    case 0:
        return near + any / 10 % 5 - 2;
    case 1:
        return UINT64_MAX - any / 10 % BYTES;
    case 2:
        return any;
    default:
        return any / 10 % (2 * near + 2);
    }
}

static void no_place_outside_is_read(void **state)
{
    struct both both;
    struct kith_rng rng;
    unsigned inside = 0, outside = 0, sum = 0;
    (void)state;
    kith_rng_init(&rng, 17, KITH_STREAM_SYNTHETIC, 0);
    open_both(&both);
    for (unsigned i = 0; i < PLACES; i++) {
        const struct kith_shared_place place = {
            .slot = (uint32_t)draw(&rng, KITH_SLOTS_MAX),
            .at = draw(&rng, both.view.bytes)};
        const size_t bytes = (size_t)draw(&rng, BYTES);
        const uint8_t *at = kith_shared_look(&both.view, &place, bytes);
        if (at == NULL)
            continue;
        inside++;
        if (place.slot >= KITH_SLOTS_MAX || place.at > both.view.bytes ||
            bytes > both.view.bytes - place.at ||
            at != (const uint8_t *)both.view.head + place.at) {
            outside++;
            continue;
        }
        sum += bytes > 0 ? at[0] + at[bytes - 1] : 0u;
        (void)kith_shared_stands(&both.view, &place);
    }
    printf("T6.6 reads outside, of %u places (%u inside): expected 0, "
           "measured %u\n",
           PLACES, inside, outside);
    assert_int_equal(outside, 0);
    assert_true(inside > PLACES / 100 && sum == 0);
    close_both(&both);
}

/* A file of which nothing was written is not read: its reader would pay. */
static void holes_are_not_read(void **state)
{
    const size_t bytes = (size_t)4 << 20;
    struct kith_shared shared = {.head = NULL};
    struct kith_shared_view view = {.head = NULL};
    struct kith_shared_place place;
    (void)state;
    uint8_t *ours = kith_shared_take(&shared, bytes);
    assert_non_null(ours);
    assert_null(kith_shared_map(fcntl(shared.fd, F_DUPFD_CLOEXEC, 0),
                                kith_shared_most(1, bytes), &view));
    assert_true(kith_shared_find(&shared, 1, ours, bytes, &place));
    const bool before = kith_shared_look(&view, &place, bytes) != NULL;
    memset(ours, 1, bytes - 8192);
    const bool half = kith_shared_look(&view, &place, bytes) != NULL;
    memset(ours, 1, bytes);
    const bool after = kith_shared_look(&view, &place, bytes) != NULL;
    printf("T6.6 reads of what was not written, not, wholly: expected 0 0 1, "
           "measured %d %d %d\n",
           before, half, after);
    assert_true(!before && !half && after);
    assert_int_equal(fallocate(shared.fd,
                               FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, 0,
                               1 << 20),
                     -1);
    kith_shared_unmap(&view);
    kith_shared_free(&shared);
}

static void room_does_not_overflow(void **state)
{
    (void)state;
    assert_true(kith_shared_most(1, BYTES) > BYTES);
    assert_true(kith_shared_most(KITH_SLOTS_MAX, SIZE_MAX) == SIZE_MAX);
    assert_true(kith_shared_most(SIZE_MAX, BYTES) == SIZE_MAX);
}

static void what_is_ours_is_found(void **state)
{
    struct both both;
    struct kith_shared_place place;
    uint8_t elsewhere[64];
    (void)state;
    open_both(&both);
    assert_true(kith_shared_find(&both.shared, 3, both.ours, BYTES, &place));
    both.ours[0] = 0xab;
    assert_int_equal(kith_shared_look(&both.view, &place, BYTES)[0], 0xab);
    assert_false(
        kith_shared_find(&both.shared, 3, both.ours, BYTES + 1, &place));
    assert_false(kith_shared_find(&both.shared, 3, both.ours - 1, 1, &place));
    assert_false(kith_shared_find(&both.shared, 3, elsewhere, 1, &place));
    assert_true(
        kith_shared_find(&both.shared, 3, both.ours + BYTES, 0, &place));
    /* A slot that is filled anew stands no more; another one does. */
    assert_true(kith_shared_find(&both.shared, 3, both.ours, 8, &place));
    kith_shared_refill(&both.shared, 4);
    assert_true(kith_shared_stands(&both.view, &place));
    kith_shared_refill(&both.shared, 3);
    const bool stands = kith_shared_stands(&both.view, &place);
    printf("T6.4 a slot that was filled anew stands: expected 0, measured %d\n",
           stands);
    assert_false(stands);
    close_both(&both);
}

/* What fails from now on: the linker puts these in place of the system's. */
static bool no_memory_files, no_seals;

int __real_memfd_create(const char *name, unsigned flags);
int __wrap_memfd_create(const char *name, unsigned flags);
int __wrap_memfd_create(const char *name, unsigned flags)
{
    errno = ENOSYS;
    return no_memory_files ? -1 : __real_memfd_create(name, flags);
}

int __real_fcntl(int fd, int command, ...);
int __wrap_fcntl(int fd, int command, ...);
int __wrap_fcntl(int fd, int command, ...)
{
    va_list list;
    va_start(list, command);
    const int value = va_arg(list, int);
    va_end(list);
    errno = EINVAL; /* of a kernel before 5.1, that F_SEAL_FUTURE_WRITE is */
    return no_seals && command == F_ADD_SEALS
               ? -1
               : __real_fcntl(fd, command, value);
}

static unsigned descriptors(void)
{
    unsigned count = 0;
    for (int fd = 0; fd < 1024; fd++)
        count += fcntl(fd, F_GETFD) != -1;
    return count;
}

/* Whether vectors are taken; nothing is left behind where they are not. */
static bool takes(size_t bytes)
{
    struct kith_shared shared = {.head = NULL};
    const unsigned before = descriptors();
    const bool taken = kith_shared_take(&shared, bytes) != NULL;
    assert_true(taken == (shared.head != NULL));
    kith_shared_free(&shared);
    assert_int_equal(descriptors(), before);
    return taken;
}

static bool takes_within(int resource, rlim_t limit)
{
    struct rlimit old, few;
    assert_int_equal(getrlimit(resource, &old), 0);
    few = old;
    few.rlim_cur = limit;
    assert_int_equal(setrlimit(resource, &few), 0);
    const bool taken = takes((size_t)1 << 30);
    assert_int_equal(setrlimit(resource, &old), 0);
    return taken;
}

/* Then vectors lie in the worker's own memory, and models go through the
 * channel: test_hand_over. */
static void a_system_without_such_memory(void **state)
{
    (void)state;
    const bool before = takes(BYTES);
    no_memory_files = true;
    const bool without_files = takes(BYTES);
    no_memory_files = false;
    no_seals = true;
    const bool without_seals = takes(BYTES);
    no_seals = false;
    const bool larger_than_files = takes_within(RLIMIT_FSIZE, 1 << 20);
#ifdef __SANITIZE_ADDRESS__
    const bool larger_than_memory = false; /* its shadow is larger, too */
#elif defined(__SANITIZE_THREAD__)
    const bool larger_than_memory = false;
#else
    const bool larger_than_memory = takes_within(RLIMIT_AS, (rlim_t)1 << 30);
#endif
    const bool too_large = takes(SIZE_MAX);
    printf("T6.6 vectors shared: ever, without memory files, without seals, "
           "beyond a limit of files, of memory, of size_t: expected 1 0 0 0 0 "
           "0, measured %d %d %d %d %d %d\n",
           before, without_files, without_seals, larger_than_files,
           larger_than_memory, too_large);
    assert_true(before && !without_files && !without_seals);
    assert_true(!larger_than_files && !larger_than_memory && !too_large);
    assert_true(takes(BYTES));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(only_sealed_memory_is_mapped),
        cmocka_unit_test(nobody_else_writes),
        cmocka_unit_test(no_place_outside_is_read),
        cmocka_unit_test(holes_are_not_read),
        cmocka_unit_test(room_does_not_overflow),
        cmocka_unit_test(what_is_ours_is_found),
        cmocka_unit_test(a_system_without_such_memory),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
