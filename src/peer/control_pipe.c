/* What the launcher says over the control pipe, one line each; `kith peer` says
 * `stop signal` there at a signal, `stop idle` when nobody asks it any more.
 *
 *   slow F       steps take F times as long (F >= 1; 1 ends it)
 *   lie KIND F N what is sent is that lie (kith/lie.h), of the next N models
 *                (0: of all); none ends it
 *   link RANK FAULT BEGINS F
 *                a fault acts on our bytes to RANK: begins (1) or ends (0),
 *                with this factor
 *   stop [WHY]   finish, save, say goodbye
 *
 * The end of the pipe means that the launcher is gone: stop. */
#include <stdio.h>
#include <string.h>

#include "driver.h"
#include "kith/assert.h"
#include "kith/fault.h"
#include "kith/text.h"

_Static_assert(KITH_CONTROL_LINE_BYTES >
                   sizeof "link 4294967295  1 1.2345678901234567e+300\n" +
                       KITH_NAME_MAX,
               "the longest line and its terminator fit");

static bool control_link(struct kith_driver *driver, const char *line)
{
    char rank[16], fault[KITH_NAME_MAX], factor[32], begins;
    uint64_t other;
    if (sscanf(line, "link %15s %31s %c %31s", rank, fault, &begins, factor) !=
            4 ||
        kith_text_u64(rank, &other) != KITH_OK ||
        other >= driver->options->experiment->peers ||
        other == driver->options->self)
        return false;
    struct kith_atom atom = {.fault = kith_fault_find(fault),
                             .begins = begins == '1',
                             .peer = driver->options->self,
                             .other = (kith_id)other};
    if (atom.fault == NULL || atom.fault->effect != KITH_EFFECT_LINK ||
        kith_text_double(factor, &atom.factor) != KITH_OK)
        return false;
    kith_transport_act(&driver->transport, &atom);
    return true;
}

static bool control_lie(struct kith_driver *driver, const char *line)
{
    char kind[16], by[32], number[16];
    uint64_t models;
    struct kith_lie lie;
    if (sscanf(line, "lie %15s %31s %15s", kind, by, number) != 3)
        return false;
    lie.kind = kith_lie_find(kind);
    if (lie.kind == KITH_LIE_COUNT ||
        kith_text_double(by, &lie.by) != KITH_OK ||
        kith_text_u64(number, &models) != KITH_OK ||
        models > KITH_FAULT_MODELS_MAX)
        return false;
    lie.models = (uint32_t)models;
    kith_thread_lie(&driver->thread, &lie);
    kith_journal_lies(driver, &lie);
    return true;
}

/* Lines that make no sense are logged and passed over: the launcher is of the
 * same build, so it would be a bug there, and no reason to stop training. */
static void control_line(struct kith_driver *driver, const char *line)
{
    char verb[8] = "", argument[32] = "";
    double factor;
    const int count = sscanf(line, "%7s %31s", verb, argument);
    if (count >= 1 && strcmp(verb, "stop") == 0) {
        kith_driver_stop(driver);
    } else if (count == 2 && strcmp(verb, "slow") == 0 &&
               kith_text_double(argument, &factor) == KITH_OK && factor >= 1) {
        kith_thread_slow(&driver->thread, factor);
    } else if (!control_lie(driver, line) && !control_link(driver, line)) {
        kith_transport_log(
            &driver->transport,
            "control-unread line=\"%.60s\" expected=\"slow F | lie KIND F N | "
            "link RANK FAULT BEGINS F | stop [WHY]\"",
            line);
        return;
    }
    kith_transport_log(&driver->transport, "control line=\"%s\"", line);
}

/* Straight into the line buffer, behind what is there. */
static void control_alloc(uv_handle_t *handle, size_t suggested, uv_buf_t *buf)
{
    struct kith_driver *driver = handle->data;
    (void)suggested;
    /* One byte stays for the terminator; a longer line ends the pipe. */
    *buf =
        uv_buf_init(driver->line + driver->line_bytes,
                    (unsigned)(sizeof driver->line - 1 - driver->line_bytes));
}

/* Bytes may come in any portions; whole lines are cut off the front. */
static void control_read(uv_stream_t *pipe, ssize_t size, const uv_buf_t *buf)
{
    struct kith_driver *driver = pipe->data;
    (void)buf;
    KITH_NET_SCOPE(&driver->transport.net);
    if (size < 0) {
        uv_read_stop(pipe);
        kith_driver_stop(driver);
    } else {
        driver->line_bytes += (size_t)size;
        KITH_ASSERT(driver->line_bytes < sizeof driver->line);
        driver->line[driver->line_bytes] = '\0';
        char *at = driver->line, *end;
        while ((end = strchr(at, '\n')) != NULL) {
            *end = '\0';
            control_line(driver, at);
            at = end + 1;
        }
        driver->line_bytes = strlen(at);
        memmove(driver->line, at, driver->line_bytes);
    }
}

/* Also where nothing is opened: then a run is ended by its share or by
 * stop.time. */
enum kith_err kith_control_open(struct kith_driver *driver)
{
    const struct kith_peer_options *options = driver->options;
    if (options->control_fd < 0)
        return KITH_OK;
    uv_pipe_init(&driver->loop, &driver->control, 0);
    driver->control.data = driver;
    if (uv_pipe_open(&driver->control, options->control_fd) != 0 ||
        uv_read_start((uv_stream_t *)&driver->control, control_alloc,
                      control_read) != 0)
        return KITH_EIO;
    return KITH_OK;
}
