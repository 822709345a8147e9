/* Goal: a child of the lab is heard, steered, stopped and always ends.
 * Method: small children in the place of peers, over the real pipes: echo of
 * control lines, more records than a pipe holds, garbage, death by signal, a
 * launcher that is killed while its child is stopped. */
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include <cmocka.h>

#include "src/lab/process.h"

/* Turns of 10 ms before a test gives up: 10 s. */
#define PATIENCE 1000

struct heard {
    uint32_t count;
    struct lab_record last;
};

static void hear(void *user, const struct lab_record *record)
{
    struct heard *heard = user;
    heard->count++;
    heard->last = *record;
}

static void pause_10ms(void)
{
    const struct timespec wait = {0, 10000000};
    nanosleep(&wait, NULL);
}

/* Reads until the child has ended; returns how reading ended. */
static enum kith_err listen_to_the_end(struct lab_process *process,
                                       struct heard *heard)
{
    enum kith_err err = KITH_EAGAIN;
    for (int i = 0; i < PATIENCE && err == KITH_EAGAIN; i++) {
        struct pollfd fd = {process->rows_fd, POLLIN, 0};
        poll(&fd, 1, 10);
        for (int j = 0; j < 100 && err == KITH_EAGAIN; j++)
            err = kith_lab_process_read(process, heard, hear);
    }
    for (int i = 0; i < PATIENCE && !kith_lab_process_reap(process); i++)
        pause_10ms();
    assert_true(process->reaped);
    return err;
}

static struct lab_record line_record(const char *text)
{
    struct lab_record record = {.kind = LAB_RECORD_LINE};
    snprintf(record.as.line, sizeof record.as.line, "%s", text);
    return record;
}

/* Says back the first control line. */
static int child_echo(void *user, int rows_fd, int control_fd)
{
    (void)user;
    char line[64] = "";
    struct pollfd fd = {control_fd, POLLIN, 0};
    if (poll(&fd, 1, 5000) != 1)
        return 3;
    const ssize_t got = read(control_fd, line, sizeof line - 1);
    if (got <= 0)
        return 4;
    line[got - 1] = 0;
    struct lab_record record = line_record(line);
    return kith_lab_record_send(rows_fd, &record, 1000) ? 0 : 5;
}

static void control_lines_arrive_and_records_come_back(void **state)
{
    (void)state;
    struct lab_process process;
    struct heard heard = {0};
    const struct lab_job job = {"echo", -1, NULL, child_echo, false};
    assert_int_equal(kith_lab_process_start(&process, &job), KITH_OK);

    assert_true(kith_lab_process_tell(&process, "cut 3"));

    assert_int_equal(listen_to_the_end(&process, &heard), KITH_OK);
    assert_int_equal(heard.count, 1);
    assert_string_equal(heard.last.as.line, "cut 3");
    char text[64];
    kith_lab_process_text(&process, text, sizeof text);
    assert_string_equal(text, "exited with status 0");
    kith_lab_process_end(&process);
    kith_lab_process_end(&process);
}

#define FLOOD 20000u
static int child_flood(void *user, int rows_fd, int control_fd)
{
    (void)user;
    (void)control_fd;
    for (uint32_t i = 0; i < FLOOD; i++) {
        struct lab_record record = {.kind = LAB_RECORD_READY, .incarnation = i};
        if (!kith_lab_record_send(rows_fd, &record, 5000))
            return 1;
    }
    return 0;
}

static void no_record_is_lost_or_torn(void **state)
{
    (void)state;
    struct lab_process process;
    struct heard heard = {0};
    const struct lab_job job = {"flood", -1, NULL, child_flood, false};
    assert_int_equal(kith_lab_process_start(&process, &job), KITH_OK);

    assert_int_equal(listen_to_the_end(&process, &heard), KITH_OK);

    assert_int_equal(process.status, 0);
    assert_int_equal(heard.count, FLOOD);
    assert_int_equal(heard.last.incarnation, FLOOD - 1);
    kith_lab_process_end(&process);
}

/* What a full pipe does to a child that must not wait. */
static int child_full(void *user, int rows_fd, int control_fd)
{
    (void)user;
    (void)control_fd;
    const struct lab_record record = {.kind = LAB_RECORD_READY};
    uint32_t sent = 0;
    while (sent < FLOOD && kith_lab_record_send(rows_fd, &record, 0))
        sent++;
    return sent > 0 && sent < FLOOD ? 0 : 1;
}

static void a_full_pipe_refuses_at_once(void **state)
{
    (void)state;
    struct lab_process process;
    const struct lab_job job = {"full", -1, NULL, child_full, false};
    assert_int_equal(kith_lab_process_start(&process, &job), KITH_OK);
    for (int i = 0; i < PATIENCE && !kith_lab_process_reap(&process); i++)
        pause_10ms();
    assert_true(process.reaped);
    assert_int_equal(process.status, 0);
    kith_lab_process_end(&process);
}

static int child_garbage(void *user, int rows_fd, int control_fd)
{
    (void)user;
    (void)control_fd;
    char noise[LAB_RECORD_BYTES];
    memset(noise, 'z', sizeof noise);
    return write(rows_fd, noise, sizeof noise) == sizeof noise ? 0 : 1;
}

static int child_half(void *user, int rows_fd, int control_fd)
{
    (void)user;
    (void)control_fd;
    uint8_t bytes[LAB_RECORD_BYTES];
    const struct lab_record record = {.kind = LAB_RECORD_READY};
    kith_lab_record_pack(&record, bytes);
    return write(rows_fd, bytes, 100) == 100 ? 0 : 1;
}

static void garbage_is_named_and_half_a_record_is_nothing(void **state)
{
    (void)state;
    struct lab_process process;
    struct heard heard = {0};
    struct lab_job job = {"garbage", -1, NULL, child_garbage, false};
    assert_int_equal(kith_lab_process_start(&process, &job), KITH_OK);
    assert_int_equal(listen_to_the_end(&process, &heard), KITH_EPARSE);
    kith_lab_process_end(&process);

    job.run = child_half;
    assert_int_equal(kith_lab_process_start(&process, &job), KITH_OK);
    assert_int_equal(listen_to_the_end(&process, &heard), KITH_OK);
    assert_int_equal(heard.count, 0);
    kith_lab_process_end(&process);
}

static int child_abort(void *user, int rows_fd, int control_fd)
{
    (void)user;
    (void)rows_fd;
    (void)control_fd;
    raise(SIGKILL);
    return 0;
}

static void a_death_is_told_in_words(void **state)
{
    (void)state;
    struct lab_process process;
    struct heard heard = {0};
    char text[64];
    const struct lab_job job = {"abort", -1, NULL, child_abort, false};
    assert_int_equal(kith_lab_process_start(&process, &job), KITH_OK);
    kith_lab_process_text(&process, text, sizeof text);
    assert_string_equal(text, "still running");

    assert_int_equal(listen_to_the_end(&process, &heard), KITH_OK);

    kith_lab_process_text(&process, text, sizeof text);
    assert_string_equal(text, "killed by signal 9 (Killed)");
    kith_lab_process_end(&process);
}

/* 0 when exactly 0, 1, 2, the two pipes and the kept one are open. */
static int child_count_fds(void *user, int rows_fd, int control_fd)
{
    const int kept = *(const int *)user;
    for (int fd = 3; fd < 256; fd++) {
        const bool ours = fd == rows_fd || fd == control_fd || fd == kept;
        if ((fcntl(fd, F_GETFD) >= 0) != ours)
            return 1;
    }
    struct sigaction action;
    sigaction(SIGINT, NULL, &action);
    return action.sa_handler == SIG_IGN ? 0 : 2;
}

static void a_child_holds_nothing_that_is_not_its_own(void **state)
{
    (void)state;
    struct lab_process process;
    struct heard heard = {0};
    const int low = open("/dev/null", O_RDONLY);
    int kept = open("/dev/null", O_RDONLY);
    const int high = fcntl(low, F_DUPFD, 200);
    const struct lab_job job = {"fds", kept, &kept, child_count_fds, false};

    assert_int_equal(kith_lab_process_start(&process, &job), KITH_OK);
    assert_int_equal(listen_to_the_end(&process, &heard), KITH_OK);

    assert_int_equal(process.status, 0);
    kith_lab_process_end(&process);
    close(low);
    close(kept);
    close(high);
}

static int child_sleep(void *user, int rows_fd, int control_fd)
{
    (void)user;
    (void)rows_fd;
    (void)control_fd;
    for (int i = 0; i < PATIENCE; i++)
        pause_10ms();
    return 0;
}

static void a_stopped_child_can_be_ended(void **state)
{
    (void)state;
    struct lab_process process;
    const struct lab_job job = {"sleep", -1, NULL, child_sleep, false};
    assert_int_equal(kith_lab_process_start(&process, &job), KITH_OK);
    const pid_t pid = process.pid;

    kith_lab_process_signal(&process, SIGSTOP);
    kith_lab_process_end(&process);

    assert_int_equal(kill(pid, 0), -1);
    assert_int_equal(errno, ESRCH);
}

/* A launcher of its own, killed while its child is stopped. */
static void no_child_outlives_a_killed_launcher(void **state)
{
    (void)state;
    int tell[2];
    assert_int_equal(pipe(tell), 0);
    const pid_t launcher = fork();
    if (launcher == 0) {
        struct lab_process process;
        const struct lab_job job = {"sleep", -1, NULL, child_sleep, false};
        if (kith_lab_process_start(&process, &job) != KITH_OK)
            _exit(1);
        /* Give the child time to ask for its death signal. */
        for (int i = 0; i < 20; i++)
            pause_10ms();
        kith_lab_process_signal(&process, SIGSTOP);
        if (write(tell[1], &process.pid, sizeof process.pid) < 0)
            _exit(1);
        for (;;)
            pause();
    }
    pid_t child = 0;
    assert_int_equal(read(tell[0], &child, sizeof child), sizeof child);

    kill(launcher, SIGKILL);
    waitpid(launcher, NULL, 0);

    /* Its reaper is somebody else now: a zombie counts as ended. */
    bool ended = false;
    for (int i = 0; i < PATIENCE && !ended; i++) {
        char path[64], status[256] = "";
        snprintf(path, sizeof path, "/proc/%d/stat", (int)child);
        FILE *file = fopen(path, "r");
        if (file == NULL) {
            ended = true;
            break;
        }
        if (fgets(status, sizeof status, file) == NULL ||
            strstr(status, ") Z ") != NULL)
            ended = true;
        fclose(file);
        pause_10ms();
    }
    assert_true(ended);
    close(tell[0]);
    close(tell[1]);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(control_lines_arrive_and_records_come_back),
        cmocka_unit_test(no_record_is_lost_or_torn),
        cmocka_unit_test(a_full_pipe_refuses_at_once),
        cmocka_unit_test(garbage_is_named_and_half_a_record_is_nothing),
        cmocka_unit_test(a_death_is_told_in_words),
        cmocka_unit_test(a_child_holds_nothing_that_is_not_its_own),
        cmocka_unit_test(a_stopped_child_can_be_ended),
        cmocka_unit_test(no_child_outlives_a_killed_launcher),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
