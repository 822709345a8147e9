/* Labs of --measure: a folder of their own, what a signal does meanwhile, and
 * what a run of one took of processor time. */
#include "measure_lab.h"

#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>

#include "kith/assert.h"
#include "kith/experiment.h"
#include "kith/lab.h"
#include "kith/rundb.h"
#include "kith/text.h"

static const int stop_signals[3] = {SIGINT, SIGTERM, SIGHUP};

static volatile sig_atomic_t is_stopped;

static void on_stop(int number)
{
    (void)number;
    is_stopped = 1;
}

void kith_cli_place_close(const struct cli_place *place)
{
    if (place->folder[0] != '\0')
        (void)rmdir(place->folder);
    for (unsigned i = 0; i < 3; i++)
        sigaction(stop_signals[i], &place->actions[i], NULL);
    sigprocmask(SIG_SETMASK, &place->mask, NULL);
}

/* A signal waits: the lab that runs or comes next ends by it, and a folder with
 * half a run is not left behind. One that reaches a thread of a library, which
 * was there before, is told by is_stopped. */
int kith_cli_place_open(const struct cli_arguments *arguments,
                        struct cli_place *place)
{
    struct sigaction action = {.sa_handler = on_stop, .sa_flags = SA_RESTART};
    sigset_t ours;
    const char *base = getenv("TMPDIR");
    if (base == NULL || base[0] == '\0')
        base = "/tmp";
    const int length = snprintf(place->folder, sizeof place->folder,
                                "%s/kith-measure-XXXXXX", base);
    sigemptyset(&action.sa_mask);
    sigemptyset(&ours);
    for (unsigned i = 0; i < 3; i++) {
        sigaction(stop_signals[i], &action, &place->actions[i]);
        sigaddset(&ours, stop_signals[i]);
    }
    sigprocmask(SIG_BLOCK, &ours, &place->mask);
    const bool fits = length > 0 && (size_t)length < sizeof place->folder;
    if (fits && mkdtemp(place->folder) != NULL)
        return KITH_EXIT_OK;
    const int why = fits ? errno : ENAMETOOLONG;
    place->folder[0] = '\0';
    kith_cli_place_close(place);
    return kith_cli_fail(arguments, KITH_EXIT_WRITE,
                         "cannot make a folder for the labs of --measure in "
                         "%.300s: %s; set TMPDIR to a folder with room that "
                         "you may write",
                         base, strerror(why));
}

int kith_cli_labs_ended(const struct cli_arguments *arguments,
                        enum kith_err err, const char *error)
{
    return err == KITH_ECLOSED ? KITH_EXIT_INTERRUPTED
                               : kith_cli_check(arguments, err, error);
}

/* Of this process, which is the launcher, and of the peers, which have ended.
 */
static double all_cpu_s(void)
{
    double sum_s = 0;
    for (int i = 0; i < 2; i++) {
        struct rusage usage;
        if (getrusage(i == 0 ? RUSAGE_SELF : RUSAGE_CHILDREN, &usage) == 0)
            sum_s += (double)(usage.ru_utime.tv_sec + usage.ru_stime.tv_sec) +
                     1e-6 * (double)(usage.ru_utime.tv_usec +
                                     usage.ru_stime.tv_usec);
    }
    return sum_s;
}

enum kith_err kith_cli_spend(const struct kith_experiment *experiment,
                             const struct kith_dataset *dataset,
                             const char *folder, struct cli_spent *spent,
                             char error[KITH_LAB_ERROR_BYTES])
{
    char path[KITH_PATH_BYTES_MAX], why[KITH_RUNDB_ERROR_BYTES];
    struct kith_rundb *store;
    struct kith_summary summary = {0};
    enum kith_err err =
        kith_rundb_create(folder, "lab", experiment, &store, path, why);
    if (err != KITH_OK) {
        (void)snprintf(error, KITH_LAB_ERROR_BYTES, "%s", why);
        return err;
    }
    const struct kith_lab_options options = {
        .experiment = experiment, .dataset = dataset, .store = store};
    const double began_s = all_cpu_s();
    if (!is_stopped)
        err = kith_lab_run(&options, &summary, error);
    spent->cpu_s = all_cpu_s() - began_s;
    spent->wall_s = summary.wall_s;
    spent->steps = (double)summary.steps;
    spent->done = (double)summary.exchanges.done;
    spent->bytes = (double)summary.bytes_sent;
    spent->link_s = summary.cpu.aead_s + summary.cpu.socket_s;
    if (kith_rundb_close(store, why) != KITH_OK) {
        /* It is of no use to anybody. */
    }
    (void)unlink(path);
    if (err == KITH_OK && !summary.completed) {
        (void)snprintf(error, KITH_LAB_ERROR_BYTES, "interrupted");
        err = KITH_ECLOSED;
    }
    const double all =
        (double)experiment->peers * (double)experiment->stop.steps;
    if (err == KITH_EDEVICE || (err == KITH_OK && spent->steps < all)) {
        char first[sizeof why];
        (void)kith_text_copy(first, sizeof first,
                             err == KITH_OK ? "one has died" : error);
        (void)snprintf(error, KITH_LAB_ERROR_BYTES,
                       "a lab of %u peers has done %.0f of %.0f steps: %s; "
                       "where memory is short, hosts.peers or train.batch may "
                       "be smaller",
                       experiment->peers, spent->steps, all, first);
        err = KITH_EDEVICE;
    }
    return err;
}
