/* kith lab: the experiment with real processes on this machine. */
#include <math.h>
#include <stdio.h>

#include "calibrate.h"
#include "cli.h"
#include "kith/lab.h"

static void show_progress(void *user, const struct kith_lab_progress *progress)
{
    char loss[40] = "", accuracy[32] = "", share[24] = "",
         speed[KITH_SPEED_TEXT_BYTES];
    const double done =
        progress->steps == UINT64_MAX || progress->steps == 0
            ? NAN
            : 100 * (double)progress->step_min / (double)progress->steps;
    (void)user;
    if (isfinite(progress->loss))
        snprintf(loss, sizeof loss, ", loss %.4f", progress->loss);
    if (isfinite(progress->accuracy))
        snprintf(accuracy, sizeof accuracy, ", accuracy %.2f %%",
                 100 * progress->accuracy);
    if (isfinite(done))
        snprintf(share, sizeof share, " (%.0f %%)", done);
    kith_speed_text(&progress->speed, speed);
    kith_cli_progress(
        "%6.1f s  steps %llu-%llu%s, %u peer%s, %llu exchanges%s%s%s%s",
        (double)progress->time_ns / 1e9, (unsigned long long)progress->step_min,
        (unsigned long long)progress->step_max, share, progress->alive,
        progress->alive == 1 ? "" : "s",
        (unsigned long long)progress->exchanges, loss, accuracy,
        speed[0] == '\0' ? "" : ", ", speed);
}

static void show_line(void *user, const char *line)
{
    (void)user;
    kith_cli_progress_end();
    fprintf(stderr, "%s\n", line);
}

static void show_peer_line(void *user, kith_id peer, kith_ns time_ns,
                           const char *line)
{
    (void)user;
    kith_cli_progress_end();
    fprintf(stderr, "%.3f s  peer %u: %s\n", (double)time_ns / 1e9,
            (unsigned)peer, line);
}

int kith_cli_lab(const struct cli_arguments *arguments)
{
    struct cli_run run;
    struct kith_summary summary = {0};
    char error[KITH_LAB_ERROR_BYTES] = "";
    uint64_t port = 0;
    int code = kith_cli_number(arguments, CLI_PORT, 1, 65535, &port);
    const bool record = kith_cli_given(arguments, CLI_RECORD);
    if (code == KITH_EXIT_OK && record && kith_cli_given(arguments, CLI_RESUME))
        return kith_cli_fail(arguments, KITH_EXIT_USAGE,
                             "--record and --resume: a journal begins with the "
                             "first step of a run; give one of them");
    if (code == KITH_EXIT_OK)
        code = kith_cli_calibrate_if(arguments, true);
    if (code == KITH_EXIT_OK)
        code = kith_cli_run_open(&run, arguments, KITH_WORLD_LAB);
    if (code != KITH_EXIT_OK)
        return code;
    kith_cli_catch_signals();
    const struct kith_lab_options options = {
        .experiment = &run.experiment,
        .dataset = run.has_dataset ? &run.dataset : NULL,
        .store = run.store,
        .saves = run.save,
        .resume = run.resume,
        .record = record,
        .output = run.path,
        .port = (uint16_t)port,
        .on_progress = show_progress,
        .on_line = show_line,
        .on_peer_line =
            kith_cli_given(arguments, CLI_LOG) ? show_peer_line : NULL,
    };
    const enum kith_err err = kith_lab_run(&options, &summary, error);
    if (err == KITH_OK && !summary.completed)
        kith_cli_stop = 1; /* the launcher reads signals itself */
    code = kith_cli_run_close(&run, err, error, &summary);
    /* Interrupted, or there was no room: what can be gone on with. */
    if (!summary.completed && (err == KITH_OK || code == KITH_EXIT_WRITE))
        kith_cli_resume_advise(&run);
    return code;
}
