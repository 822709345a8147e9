/* Child processes of the lab: fork, pipes, and a certain end. See process.h.
 *
 * What keeps a child from outliving its launcher, whatever happens to it:
 *   orderly end     the launcher kills and reaps (kith_lab_process_end)
 *   launcher killed PR_SET_PDEATHSIG = SIGKILL, which a stopped process gets
 *                   too; the parent is asked for once more after it is set,
 *                   because it may have died before. */
#include "src/lab/process.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include "kith/assert.h"

#define LAST_FD ((unsigned)~0u)

static void close_fd(int *fd)
{
    if (*fd >= 0)
        close(*fd);
    *fd = -1;
}

/* Closes everything from 3 up, the kept ones left out. keep[] ascends. */
static void close_all_but(const int *keep, int count)
{
    unsigned from = 3;
    for (int i = 0; i < count; i++) {
        if (keep[i] < (int)from)
            continue;
        if ((unsigned)keep[i] > from)
            close_range(from, (unsigned)keep[i] - 1, 0);
        from = (unsigned)keep[i] + 1;
    }
    close_range(from, LAST_FD, 0);
}

static int by_number(const void *a, const void *b)
{
    return *(const int *)a - *(const int *)b;
}

/* Standard input is nothing; standard output belongs to the launcher's result
 * (--json), so a child's prints go to standard error. */
static void child_streams(void)
{
    const int null = open("/dev/null", O_RDONLY | O_CLOEXEC);
    if (null >= 0) {
        dup2(null, STDIN_FILENO);
        if (null > 2)
            close(null);
    }
    dup2(STDERR_FILENO, STDOUT_FILENO);
}

static void child_signals(void)
{
    signal(SIGINT, SIG_IGN);
    signal(SIGTERM, SIG_IGN);
    signal(SIGHUP, SIG_IGN);
    signal(SIGPIPE, SIG_IGN);
    signal(SIGCHLD, SIG_DFL);
    sigset_t none;
    sigemptyset(&none);
    sigprocmask(SIG_SETMASK, &none, NULL);
}

static void child_main(const struct lab_job *job, pid_t launcher, int rows_fd,
                       int control_fd)
{
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    if (getppid() != launcher)
        _exit(1);
    prctl(PR_SET_NAME, job->name);
    if (job->is_group)
        (void)setpgid(0, 0);
    child_signals();
    child_streams();
    int keep[3] = {job->keep_fd, rows_fd, control_fd};
    qsort(keep, 3, sizeof *keep, by_number);
    close_all_but(keep, 3);
    const int status = job->run(job->user, rows_fd, control_fd);
    fflush(NULL);
    _exit(status);
}

enum kith_err kith_lab_process_start(struct lab_process *process,
                                     const struct lab_job *job)
{
    process->pid = 0;
    process->rows_fd = process->control_fd = -1;
    process->is_group = job->is_group;
    process->reaped = false;
    process->fill = 0;

    int rows[2] = {-1, -1}, control[2] = {-1, -1};
    if (pipe2(rows, O_CLOEXEC | O_NONBLOCK) != 0)
        return KITH_EBUSY;
    if (pipe2(control, O_CLOEXEC | O_NONBLOCK) != 0)
        goto fail;
    (void)fcntl(rows[0], F_SETPIPE_SZ, LAB_PIPE_BYTES);

    /* What is buffered now would otherwise be printed twice. */
    fflush(NULL);
    const pid_t launcher = getpid();
    const pid_t pid = fork();
    if (pid < 0)
        goto fail;
    if (pid == 0)
        child_main(job, launcher, rows[1], control[0]);
    if (job->is_group) /* whoever of the two is first */
        (void)setpgid(pid, pid);
    close(rows[1]);
    close(control[0]);
    process->pid = pid;
    process->rows_fd = rows[0];
    process->control_fd = control[1];
    return KITH_OK;

fail:;
    const int why = errno;
    close_fd(&rows[0]);
    close_fd(&rows[1]);
    close_fd(&control[0]);
    close_fd(&control[1]);
    errno = why;
    return KITH_EBUSY;
}

/* Hands out the whole records of the buffer and keeps the rest. */
static enum kith_err read_records(struct lab_process *process, void *user,
                                  void (*each)(void *user,
                                               const struct lab_record *record))
{
    size_t at = 0;
    while (process->fill - at >= LAB_RECORD_BYTES) {
        struct lab_record record;
        const enum kith_err err =
            kith_lab_record_unpack(process->buffer + at, &record);
        if (err != KITH_OK)
            return err;
        at += LAB_RECORD_BYTES;
        each(user, &record);
    }
    process->fill -= at;
    memmove(process->buffer, process->buffer + at, process->fill);
    return KITH_OK;
}

/* One buffer of records; *more: it was filled. */
static enum kith_err
read_some(struct lab_process *process, void *user,
          void (*each)(void *user, const struct lab_record *record), bool *more)
{
    const size_t room = sizeof process->buffer - process->fill;
    const ssize_t got =
        read(process->rows_fd, process->buffer + process->fill, room);
    *more = got > 0 && (size_t)got == room;
    if (got < 0 && (errno == EAGAIN || errno == EINTR))
        return KITH_EAGAIN;
    if (got <= 0) {
        close_fd(&process->rows_fd);
        return KITH_OK;
    }
    process->fill += (size_t)got;
    const enum kith_err err = read_records(process, user, each);
    if (err != KITH_OK)
        close_fd(&process->rows_fd);
    return err == KITH_OK ? KITH_EAGAIN : err;
}

/* All that has gathered, and no more than a pipe holds: others have their turn.
 */
enum kith_err
kith_lab_process_read(struct lab_process *process, void *user,
                      void (*each)(void *user, const struct lab_record *record))
{
    enum kith_err err = KITH_EAGAIN;
    bool more = true;
    if (process->rows_fd < 0)
        return KITH_OK;
    for (size_t at = 0; more && err == KITH_EAGAIN && at < LAB_PIPE_BYTES;
         at += sizeof process->buffer)
        err = read_some(process, user, each, &more);
    return err;
}

bool kith_lab_process_tell(struct lab_process *process, const char *format, ...)
{
    char text[128];
    va_list list;
    va_start(list, format);
    int length = vsnprintf(text, sizeof text, format, list);
    va_end(list);
    KITH_ASSERT(length > 0 && (size_t)length + 1 < sizeof text);
    text[length++] = '\n';
    if (process->control_fd < 0)
        return false;
    /* Shorter than PIPE_BUF: written whole or not at all. */
    return write(process->control_fd, text, (size_t)length) == length;
}

void kith_lab_process_signal(struct lab_process *process, int number)
{
    if (process->pid > 0 && !process->reaped)
        kill(process->is_group ? -process->pid : process->pid, number);
}

/* While its leader is there to be reaped nobody else has the group's number.
 * false: the leader has not ended. */
static bool end_group(const struct lab_process *process, int flags)
{
    siginfo_t info = {.si_pid = 0};
    int code;
    do
        code =
            waitid(P_PID, (id_t)process->pid, &info, WEXITED | WNOWAIT | flags);
    while (code < 0 && errno == EINTR);
    if (code == 0 && info.si_pid == 0)
        return false;
    (void)kill(-process->pid, SIGKILL);
    return true;
}

static void reap_with(struct lab_process *process, int flags)
{
    if (process->pid <= 0 || process->reaped)
        return;
    if (process->is_group && !end_group(process, flags))
        return;
    pid_t got;
    do
        got = waitpid(process->pid, &process->status, flags);
    while (got < 0 && errno == EINTR);
    if (got == process->pid || (got < 0 && errno == ECHILD))
        process->reaped = true;
}

bool kith_lab_process_reap(struct lab_process *process)
{
    reap_with(process, WNOHANG);
    return process->pid <= 0 || process->reaped;
}

void kith_lab_process_end(struct lab_process *process)
{
    kith_lab_process_signal(process, SIGKILL);
    reap_with(process, 0);
    if (process->pid > 0) {
        close_fd(&process->rows_fd);
        close_fd(&process->control_fd);
    }
    process->pid = 0;
}

void kith_lab_process_text(const struct lab_process *process, char *text,
                           size_t size)
{
    const int status = process->status;
    if (!process->reaped)
        snprintf(text, size, "still running");
    else if (WIFSIGNALED(status))
        snprintf(text, size, "killed by signal %d (%s)", WTERMSIG(status),
                 strsignal(WTERMSIG(status)));
    else
        snprintf(text, size, "exited with status %d", WEXITSTATUS(status));
}

bool kith_lab_record_send(int rows_fd, const struct lab_record *record,
                          int wait_ms)
{
    uint8_t bytes[LAB_RECORD_BYTES];
    kith_lab_record_pack(record, bytes);
    for (int waits = 0;; waits++) {
        const ssize_t put = write(rows_fd, bytes, sizeof bytes);
        if (put == (ssize_t)sizeof bytes)
            return true;
        if (put >= 0 || (errno != EAGAIN && errno != EINTR) || waits > 8)
            return false;
        struct pollfd room = {rows_fd, POLLOUT, 0};
        if (wait_ms == 0 || poll(&room, 1, wait_ms) == 0)
            return false;
    }
}
