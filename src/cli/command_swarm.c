/* kith swarm: a search for a run that breaks a promise.
 *
 *   launcher --fork--> one run; its outcome comes back in a page of memory
 *
 * A process each: a run that aborts, or never ends, is a violation like any
 * other. What has ended is in the journal; the same command goes on. */
#define _GNU_SOURCE /* prctl */
#include <errno.h>
#include <inttypes.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <jansson.h>

#include "kith/json.h"
#include "swarm_command.h"

#define JOBS_MAX 256u
/* Peers that are paced take a tenth of a core a run. */
#define LAB_JOBS_PER_CORE 8u
/* A run takes a second; one that takes so many turns in a circle. */
#define CPU_SECONDS_MAX 300u
#define SHOWN_MAX 20u

struct job {
    pid_t pid; /* 0: free */
    uint32_t run;
};

struct swarm {
    struct swarm_search search;
    struct swarm_journal journal;
    struct job jobs[JOBS_MAX];
    struct swarm_outcome *outcomes; /* (job_count), shared */
    unsigned job_count, running;
    uint32_t next;
    int code;
};

/* ---- one run in its own process */

static void child(const struct swarm *swarm, unsigned at, uint32_t run,
                  pid_t launcher)
{
    const struct rlimit none = {0, 0};
    const struct rlimit seconds = {CPU_SECONDS_MAX, CPU_SECONDS_MAX};
    sigset_t empty;
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    signal(SIGINT, SIG_IGN); /* Ctrl-C is the launcher's */
    signal(SIGTERM, SIG_DFL);
    sigemptyset(&empty);
    sigprocmask(SIG_SETMASK, &empty, NULL);
    if (setrlimit(RLIMIT_CORE, &none) != 0 ||
        setrlimit(RLIMIT_CPU, &seconds) != 0 || getppid() != launcher)
        _exit(KITH_EXIT_RESOURCES);
    _exit(kith_swarm_run(&swarm->search, run, NULL, &swarm->outcomes[at]));
}

static bool start(struct swarm *swarm, unsigned at, uint32_t run)
{
    const pid_t launcher = getpid();
    memset(&swarm->outcomes[at], 0, sizeof swarm->outcomes[at]);
    fflush(stdout);
    fflush(swarm->journal.file);
    const pid_t pid = fork();
    if (pid == 0)
        child(swarm, at, run, launcher);
    if (pid < 0) {
        swarm->code = kith_cli_fail(
            swarm->search.arguments, KITH_EXIT_RESOURCES,
            "cannot start a process: %s; use fewer --jobs", strerror(errno));
        return false;
    }
    swarm->jobs[at] = (struct job){pid, run};
    swarm->running++;
    return true;
}

static void start_more(struct swarm *swarm)
{
    for (unsigned i = 0; i < swarm->job_count; i++) {
        if (swarm->jobs[i].pid != 0)
            continue;
        while (swarm->next < swarm->search.runs &&
               swarm->journal.done[swarm->next])
            swarm->next++;
        if (swarm->next == swarm->search.runs || !start(swarm, i, swarm->next))
            return;
        swarm->next++;
    }
}

static void tell(const struct swarm *swarm, uint32_t run, const char *what)
{
    char replay[KITH_PATH_BYTES_MAX + 64];
    kith_swarm_replay(&swarm->search, run, replay, sizeof replay);
    (void)kith_cli_fail(swarm->search.arguments, KITH_EXIT_FAILED,
                        "run %" PRIu32 ": %s; again: %s", run, what, replay);
}

/* A run has ended: what it said, or how it was ended. */
static void collect(struct swarm *swarm, unsigned at, int status)
{
    struct swarm_outcome *outcome = &swarm->outcomes[at];
    const uint32_t run = swarm->jobs[at].run;
    swarm->jobs[at].pid = 0;
    swarm->running--;
    if (WIFEXITED(status) && WEXITSTATUS(status) == KITH_EXIT_INTERRUPTED) {
        kith_cli_stop = 1; /* a lab reads signals itself */
        return;
    }
    if (WIFEXITED(status) && WEXITSTATUS(status) != KITH_EXIT_OK) {
        swarm->code = WEXITSTATUS(status); /* it has said why */
        return;
    }
    if (WIFSIGNALED(status))
        (void)snprintf(outcome->what, sizeof outcome->what,
                       "ended by signal %d (%s)", WTERMSIG(status),
                       strsignal(WTERMSIG(status)));
    if (outcome->what[0] != '\0')
        tell(swarm, run, outcome->what);
    const int code =
        kith_swarm_journal_add(&swarm->search, &swarm->journal, run, outcome);
    if (code != KITH_EXIT_OK)
        swarm->code = code;
}

static void reap(struct swarm *swarm, pid_t ended, int status)
{
    for (unsigned i = 0; i < swarm->job_count; i++)
        if (swarm->jobs[i].pid == ended)
            collect(swarm, i, status);
}

/* Signals interrupt the wait, or come before it: then the next end of a run,
 * which is near, finds them. */
static void run_all(struct swarm *swarm)
{
    for (;;) {
        int status;
        if (kith_cli_stop || swarm->code != KITH_EXIT_OK)
            break;
        start_more(swarm);
        if (swarm->running == 0)
            break;
        kith_cli_progress("%" PRIu32 " of %" PRIu32 " runs, %" PRIu32
                          " violations",
                          swarm->journal.done_count, swarm->search.runs,
                          swarm->journal.violated);
        const pid_t ended = waitpid(-1, &status, 0);
        if (ended > 0)
            reap(swarm, ended, status);
    }
    /* A lab has processes and files to take back, all of them at once. */
    const int end = swarm->search.lab ? SIGTERM : SIGKILL;
    for (unsigned i = 0; i < swarm->job_count; i++)
        if (swarm->jobs[i].pid != 0)
            kill(swarm->jobs[i].pid, end);
    for (unsigned i = 0; i < swarm->job_count; i++)
        if (swarm->jobs[i].pid != 0)
            (void)waitpid(swarm->jobs[i].pid, NULL, 0);
    kith_cli_progress_end();
}

/* ---- before and after */

static void show_text(const struct swarm *swarm)
{
    const struct swarm_journal *journal = &swarm->journal;
    char replay[KITH_PATH_BYTES_MAX + 64];
    printf("\nswarm: %" PRIu32 " of %" PRIu32 " runs, seed %" PRIu64
           ", %" PRIu32 " violations\n",
           journal->done_count, swarm->search.runs, swarm->search.seed,
           journal->violated);
    for (uint32_t i = 0; i < journal->violated && i < SHOWN_MAX; i++) {
        kith_swarm_replay(&swarm->search, journal->failures[i], replay,
                          sizeof replay);
        printf("  %-22s %s\n", "again", replay);
    }
    printf("  %-22s %10s %14s\n", "mark", "runs", "times");
    for (unsigned k = 0; k < KITH_MARK_COUNT; k++)
        printf("  %-22s %10" PRIu64 " %14" PRIu64 "\n",
               kith_mark_name((enum kith_mark_kind)k), journal->reached[k],
               journal->times[k]);
    printf("  %-22s %s\n", "journal", journal->path);
}

static void show_json(const struct swarm *swarm)
{
    const struct swarm_journal *journal = &swarm->journal;
    json_t *failures = json_array(), *marks = json_object();
    for (uint32_t i = 0; i < journal->violated; i++)
        json_array_append_new(failures, json_integer(journal->failures[i]));
    for (unsigned k = 0; k < KITH_MARK_COUNT; k++)
        json_object_set_new(marks, kith_mark_name((enum kith_mark_kind)k),
                            json_pack("{s:I, s:I}", "runs",
                                      (json_int_t)journal->reached[k], "times",
                                      (json_int_t)journal->times[k]));
    json_t *document = json_pack(
        "{s:I, s:I, s:I, s:o, s:o, s:o}", "seed",
        (json_int_t)swarm->search.seed, "runs", (json_int_t)journal->done_count,
        "wanted", (json_int_t)swarm->search.runs, "violations", failures,
        "marks", marks, "journal", kith_json_text(journal->path));
    kith_json_print(document, 9);
}

/* A run with real processes takes minutes: nobody waits for its end. */
static void catch_signals(void)
{
    static const int numbers[] = {SIGINT, SIGTERM};
    kith_cli_catch_signals();
    for (unsigned i = 0; i < 2; i++) {
        struct sigaction action;
        (void)sigaction(numbers[i], NULL, &action);
        action.sa_flags &= ~SA_RESTART;
        (void)sigaction(numbers[i], &action, NULL);
    }
}

static int search_all(struct swarm *swarm)
{
    const struct cli_arguments *arguments = swarm->search.arguments;
    uint64_t jobs =
        kith_cli_cores() * (swarm->search.lab ? LAB_JOBS_PER_CORE : 1);
    if (jobs > JOBS_MAX)
        jobs = JOBS_MAX;
    int code = kith_cli_number(arguments, CLI_JOBS, 1, JOBS_MAX, &jobs);
    if (code == KITH_EXIT_OK)
        code = kith_swarm_journal_open(&swarm->search, &swarm->journal);
    if (code != KITH_EXIT_OK)
        return code;
    swarm->job_count = (unsigned)jobs;
    swarm->outcomes =
        mmap(NULL, jobs * sizeof *swarm->outcomes, PROT_READ | PROT_WRITE,
             MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    if (swarm->outcomes == MAP_FAILED)
        return kith_cli_fail(arguments, KITH_EXIT_RESOURCES, "out of memory");
    catch_signals();
    signal(SIGXFSZ, SIG_IGN);
    run_all(swarm);
    if (kith_cli_given(arguments, CLI_JSON))
        show_json(swarm);
    else
        show_text(swarm);
    (void)munmap(swarm->outcomes, jobs * sizeof *swarm->outcomes);
    code = swarm->code;
    if (code == KITH_EXIT_OK && kith_cli_stop)
        code = kith_cli_fail(arguments, KITH_EXIT_INTERRUPTED,
                             "the same command goes on");
    if (code == KITH_EXIT_OK && swarm->journal.violated > 0)
        code = KITH_EXIT_FAILED;
    return kith_cli_flush(arguments, code);
}

/* --run K: here, with its file. */
static int replay(const struct swarm_search *search, uint32_t run)
{
    struct swarm_outcome outcome;
    const int code = kith_swarm_run(
        search, run, search->arguments->values[CLI_KEEP], &outcome);
    if (code != KITH_EXIT_OK)
        return code;
    char trace[32] = "";
    if (!search->lab)
        (void)snprintf(trace, sizeof trace, ", trace %016" PRIx64,
                       outcome.hash);
    printf("swarm: run %" PRIu32 ", seed %" PRIu64 "%s: %s\n", run,
           search->seed, trace,
           outcome.what[0] == '\0' ? "no violation" : outcome.what);
    return kith_cli_flush(search->arguments, outcome.what[0] == '\0'
                                                 ? KITH_EXIT_OK
                                                 : KITH_EXIT_FAILED);
}

int kith_cli_swarm(const struct cli_arguments *arguments)
{
    const bool random = kith_cli_given(arguments, CLI_RANDOM);
    const bool one = kith_cli_given(arguments, CLI_RUN);
    uint64_t seed = 1, runs = 1000, run = 0;
    if (arguments->word_count != (random ? 0 : 1))
        return kith_cli_fail(arguments, KITH_EXIT_USAGE,
                             "search what? kith swarm EXPERIMENT.yaml, or kith "
                             "swarm --random");
    if (!one && (kith_cli_given(arguments, CLI_KEEP) ||
                 kith_cli_given(arguments, CLI_TRACE)))
        return kith_cli_fail(arguments, KITH_EXIT_USAGE,
                             "--keep and --trace go with --run K");
    if (kith_cli_given(arguments, CLI_LAB) &&
        kith_cli_given(arguments, CLI_TRACE))
        return kith_cli_fail(arguments, KITH_EXIT_USAGE,
                             "--trace is of simulations; a --lab run has its "
                             "rows and marks in a run database");
    int code = kith_cli_number(arguments, CLI_SEED, 0, INT64_MAX, &seed);
    if (code == KITH_EXIT_OK)
        code = kith_cli_number(arguments, CLI_RUNS, 1, SWARM_RUNS_MAX, &runs);
    if (code == KITH_EXIT_OK)
        code = kith_cli_number(arguments, CLI_RUN, 0, SWARM_RUNS_MAX, &run);
    if (code != KITH_EXIT_OK)
        return code;
    const struct swarm_search search = {
        .arguments = arguments,
        .file = random ? NULL : arguments->words[0],
        .seed = seed,
        .runs = (uint32_t)runs,
        .one = one,
        .lab = kith_cli_given(arguments, CLI_LAB),
    };
    if (random && arguments->set_count > 0)
        code = kith_swarm_check_settings(&search);
    if (code != KITH_EXIT_OK)
        return code;
    if (one)
        return replay(&search, (uint32_t)run);
    struct swarm *swarm = calloc(1, sizeof *swarm);
    if (swarm == NULL)
        return kith_cli_fail(arguments, KITH_EXIT_RESOURCES, "out of memory");
    swarm->search = search;
    code = search_all(swarm);
    kith_swarm_journal_close(&swarm->journal);
    free(swarm);
    return code;
}
