/* A child process with two pipes: it writes records, it reads control lines.
 *
 * Forked, and executed for a program of the user's alone: it shares the
 * launcher's data set copy-on-write. It dies with the launcher
 * (PR_SET_PDEATHSIG), holds no descriptor that is not its own, ignores Ctrl-C
 * (the launcher decides) and prints to stderr only. Test:
 * unit/test_lab_process.c. */
#ifndef KITH_LAB_PROCESS_H
#define KITH_LAB_PROCESS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "kith/err.h"
#include "src/lab/records.h"

/* Records read by one call; what a stopped launcher leaves behind is the pipe's
 * business. */
#define LAB_READ_RECORDS 64u
/* What the pipe is asked to hold; the kernel may give less. */
#define LAB_PIPE_BYTES (1 << 20)

struct lab_process {
    pid_t pid;      /* 0: none */
    int rows_fd;    /* read end, not blocking; -1 once at its end */
    int control_fd; /* write end, not blocking; -1 */
    bool is_group;  /* so are the processes that it starts */
    bool reaped;
    int status; /* of waitpid, valid once reaped */
    size_t fill;
    uint8_t buffer[LAB_READ_RECORDS * LAB_RECORD_BYTES];
};

struct lab_job {
    char name[16]; /* for ps and top */
    int keep_fd;   /* one more descriptor the child keeps; -1: none */
    void *user;
    /* The child's whole life; what it returns is its exit status. */
    int (*run)(void *user, int rows_fd, int control_fd);
    bool is_group; /* it leads one: signals meet all of it */
};

/* KITH_EBUSY: no process or pipe could be made (errno says why). */
KITH_MUST_CHECK enum kith_err
kith_lab_process_start(struct lab_process *process, const struct lab_job *job);
/* Reads what is there. `each` sees every record. KITH_EAGAIN: there may be
 * more later; KITH_OK: end of file; KITH_EPARSE, KITH_EVERSION: the child
 * wrote something else than records. Reads no more than a full pipe, so that
 * one talkative child cannot keep the launcher from the others. */
KITH_MUST_CHECK enum kith_err kith_lab_process_read(
    struct lab_process *process, void *user,
    void (*each)(void *user, const struct lab_record *record));
/* One control line, newline added. false: the pipe is full or closed. */
bool kith_lab_process_tell(struct lab_process *process, const char *format, ...)
    KITH_PRINTF(2, 3);
/* KILL, STOP, CONT ... to a child that has not been reaped. */
void kith_lab_process_signal(struct lab_process *process, int number);
/* True once the child has ended; never waits. */
bool kith_lab_process_reap(struct lab_process *process);
/* Kills, waits and closes whatever there still is. Harmless twice. */
void kith_lab_process_end(struct lab_process *process);
/* "killed by signal 9 (Killed)", "exited with status 1". */
void kith_lab_process_text(const struct lab_process *process, char *text,
                           size_t size);

/* The child's side: writes all of a record, waiting for room at most wait_ms.
 * false: it was not written (no room, or nobody reads). */
bool kith_lab_record_send(int rows_fd, const struct lab_record *record,
                          int wait_ms);

#endif
