/* Signals and progress: what meets the terminal. */
#include <errno.h>
#include <fcntl.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include "cli.h"

/* A terminal is rewritten this often; for a log fewer lines are enough. */
#define TERMINAL_PERIOD_NS (100 * KITH_MS)
#define PLAIN_PERIOD_NS (5 * KITH_S)
#define LINE_BYTES 512u /* of progress, on the widest terminal */

volatile sig_atomic_t kith_cli_stop;

static int signal_pipe = -1; /* its writing end; nobody closes it */

/* Once its reader is gone the run is over, and its last lines follow. */
static void tell_pipe(const char *line, size_t size)
{
    const int kept = errno;
    const ssize_t written = write(signal_pipe, line, size);
    (void)written;
    errno = kept;
}

void kith_cli_stop_idle(void)
{
    static const char line[] = "stop idle\n";
    tell_pipe(line, sizeof line - 1);
}

static void on_signal(int number)
{
    static const char text[] = "\nstopping; once more to stop at once\n";
    static const char line[] = "stop signal\n";
    if (signal_pipe >= 0) {
        tell_pipe(line, sizeof line - 1);
        return;
    }
    if (kith_cli_stop) /* At once, whatever step it is in: no file is half one.
                        */
        _exit(KITH_EXIT_INTERRUPTED);
    kith_cli_stop = 1;
    const int kept = errno;
    if (number == SIGINT && isatty(STDERR_FILENO)) {
        const ssize_t written = write(STDERR_FILENO, text, sizeof text - 1);
        (void)written;
    }
    errno = kept;
}

void kith_cli_catch_signals(void)
{
    struct sigaction action;
    memset(&action, 0, sizeof action);
    action.sa_handler = on_signal;
    sigemptyset(&action.sa_mask);
    action.sa_flags = SA_RESTART | SA_NODEFER;
    sigaction(SIGINT, &action, NULL);
    sigaction(SIGTERM, &action, NULL);
    /* A reader of our output that goes away must not kill a run. */
    signal(SIGPIPE, SIG_IGN);
}

int kith_cli_signal_pipe(void)
{
    int ends[2];
    if (pipe(ends) != 0)
        return -1;
    /* A handler must not wait for room. */
    if (fcntl(ends[1], F_SETFL, O_NONBLOCK) != 0) {
        close(ends[0]);
        close(ends[1]);
        return -1;
    }
    signal_pipe = ends[1];
    kith_cli_catch_signals();
    return ends[0];
}

static bool line_open; /* the terminal's cursor stands behind a line */

/* A line that a terminal wraps cannot be rewritten. */
static size_t columns(void)
{
    struct winsize size;
    return ioctl(STDERR_FILENO, TIOCGWINSZ, &size) == 0 && size.ws_col > 1
               ? size.ws_col - 1u
               : 79u;
}

void kith_cli_progress(const char *format, ...)
{
    char line[LINE_BYTES];
    static kith_ns next_ns;
    const kith_ns now_ns = kith_host_now();
    if (now_ns < next_ns)
        return;
    const bool terminal = isatty(STDERR_FILENO) == 1;
    const bool first = next_ns == 0;
    next_ns = now_ns + (terminal ? TERMINAL_PERIOD_NS : PLAIN_PERIOD_NS);
    if (first && !terminal)
        return; /* a short run logs its result alone */
    if (terminal)
        fputs("\r\033[K", stderr);
    va_list list;
    va_start(list, format);
    (void)vsnprintf(line, sizeof line, format, list);
    va_end(list);
    if (terminal && strlen(line) > columns())
        line[columns()] = '\0';
    fprintf(stderr, "%s%s", line, terminal ? "" : "\n");
    fflush(stderr);
    line_open = terminal;
}

void kith_cli_progress_end(void)
{
    if (line_open)
        fputc('\n', stderr);
    line_open = false;
}
