/* What libkith costs a training loop, in C and from Python.
 *
 * Step: a call after which no exchange is due, each after a pause in which the
 * loop would train, beside a call that returns at once. Targets: 5 us in C, 25
 * us from Python, medians.
 * Mean: dpsgd between two peers of 25 MB, whose step() waits for its round:
 * from the call to its return. From Python it takes at most 1.1 times as long.
 * Where BENCH_HIVEMIND and BENCH_TORCHFT name Pythons that have those, their
 * means in the same rounds (mean_hivemind.py, mean_torchft.py); hivemind's
 * takes at least 4 times as long as ours from Python, and finding its group,
 * which is prepared beforehand, is not counted.
 *
 * BENCH_PYTHON (python3) has NumPy; without it C alone is measured.
 * BENCH_STEPS (2000), BENCH_MEANS (15), BENCH_ROUNDS (3), BENCH_PORT (29531).
 */
#include "bench/bench.h"

#include <math.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include "kith/kith.h"
#include "tests/support/library_files.h"

enum { MEAN_DIM = 6250000, STEP_DIM = 100000, CALLS_MAX = 100000 };
#define PAUSE_S 50e-6

static float values[MEAN_DIM];
static double times[CALLS_MAX];

static double median(double *of, int count)
{
    qsort(of, (size_t)count, sizeof *of, bench_compare);
    return of[count / 2];
}

static kith_peer *open_peer(const struct library_files *files, unsigned rank,
                            unsigned dim)
{
    char path[100], error[300];
    const struct kith_vector vector = {values, dim, KITH_FLOAT32, KITH_TRAINED};
    const struct kith_options options = {.size = sizeof options,
                                         .start = KITH_START_OWN};
    (void)snprintf(path, sizeof path, "%s/peer-%u.yaml", files->folder, rank);
    kith_peer *peer =
        kith_open(path, &vector, 1, &options, error, sizeof error);
    if (peer == NULL) {
        fprintf(stderr, "bench_library: %s\n", error);
        exit(1);
    }
    while (kith_wait(peer, 100) == KITH_LATE)
        ;
    return peer;
}

static void write_run(const struct library_files *files, unsigned dim,
                      const char *gossip)
{
    char text[300];
    (void)snprintf(text, sizeof text,
                   "name: bench\npeers: 2\nstop: {steps: 10000000}\n"
                   "model: {kind: program, dim: %u}\ngossip: %s\n",
                   dim, gossip);
    library_files_write(files, "run.yaml", text);
}

/* Nanoseconds of a call; `peer` NULL: of one that returns at once. */
static double step_ns(kith_peer *peer, int count)
{
    for (int i = 0; i < count; i++) {
        const double until_s = bench_now() + PAUSE_S;
        while (bench_now() < until_s)
            ;
        const double began_s = bench_now();
        if (peer != NULL)
            (void)kith_step(peer, 0.5, 1000);
        else
            (void)kith_version();
        times[i] = bench_now() - began_s;
    }
    return 1e9 * median(times, count);
}

/* Seconds of a mean; < 0: the child's, which has no clock. */
static double mean_s(const struct library_files *files, int count)
{
    const pid_t child = fork();
    if (child == 0) {
        kith_peer *other = open_peer(files, 1, MEAN_DIM);
        for (;;)
            (void)kith_step(other, 0.5, 1000);
    }
    kith_peer *peer = open_peer(files, 0, MEAN_DIM);
    for (int i = -3; i < count; i++) {
        const double began_s = bench_now();
        while (kith_step(peer, 0.5, 10000) == KITH_LATE)
            ;
        if (i >= 0)
            times[i] = bench_now() - began_s;
    }
    const double result = median(times, count);
    (void)kill(child, SIGKILL);
    (void)waitpid(child, NULL, 0);
    (void)kith_close(peer, NULL, 0);
    return result;
}

/* The last line that a command says, a number; NAN: none. */
static double last_number(const char *command)
{
    char line[100] = "";
    double result = NAN;
    FILE *pipe = popen(command, "r");
    if (pipe == NULL)
        return NAN;
    while (fgets(line, sizeof line, pipe) != NULL) {
        char *end;
        const double value = strtod(line, &end);
        result = end != line ? value : NAN;
    }
    (void)pclose(pipe);
    return result;
}

/* The same by library.py, in its seconds. */
static double python(const struct library_files *files, const char *what,
                     unsigned dim, int count)
{
    char command[700];
    const char *program = getenv("BENCH_PYTHON");
    (void)snprintf(
        command, sizeof command,
        "KITH_LIBRARY=\"$PWD/libkith.so.0\" PYTHONPATH='%s/../python' "
        "PYTHONDONTWRITEBYTECODE=1 %s %s/library.py %s %s %u %d",
        BENCH_FOLDER, program != NULL ? program : "python3", BENCH_FOLDER, what,
        files->folder, dim, count);
    return last_number(command);
}

/* Another library's mean, a port of its own each time; NAN: its Python is not
 * given. */
static double theirs(const char *variable, const char *script, int count)
{
    static int used;
    char command[700];
    const char *program = getenv(variable);
    if (program == NULL)
        return NAN;
    (void)snprintf(command, sizeof command,
                   "echo %d | PYTHONDONTWRITEBYTECODE=1 PYTHONWARNINGS=ignore "
                   "%s %s/%s %d %d 2>/dev/null",
                   count, program, BENCH_FOLDER, script, MEAN_DIM,
                   (int)bench_setting("BENCH_PORT", 29531) + used++);
    return last_number(command);
}

/* True where it is fast enough, or was not asked for. */
static bool print_theirs(const char *variable, const char *name,
                         const double *s, const double *ours, int rounds,
                         double target)
{
    if (getenv(variable) == NULL)
        return true;
    for (int r = 0; r < rounds; r++)
        if (isnan(s[r])) {
            (void)printf("%s: no number came in round %d of the Python that "
                         "%s names; has it the library?\n",
                         name, r, variable);
            return false;
        }
    (void)bench_print(name, s, rounds, "s");
    return bench_ratio("its time of ours from Python", s, ours, rounds,
                       target) >= target;
}

int main(void)
{
    enum { KINDS = 4 };
    const int rounds = (int)bench_setting("BENCH_ROUNDS", 3);
    const int steps = (int)bench_setting("BENCH_STEPS", 2000);
    const int means = (int)bench_setting("BENCH_MEANS", 15);
    double ns[KINDS][BENCH_ROUNDS_MAX], s[4][BENCH_ROUNDS_MAX];
    struct library_files files;
    library_files_make(&files, STEP_DIM, 1);
    for (int r = 0; r < rounds; r++) {
        write_run(&files, STEP_DIM, "{algorithm: adpsgd, every: 1000000}");
        kith_peer *peer = open_peer(&files, 0, STEP_DIM);
        ns[0][r] = step_ns(NULL, steps);
        ns[1][r] = step_ns(peer, steps);
        (void)kith_close(peer, NULL, 0);
        ns[2][r] = 1e9 * python(&files, "empty", STEP_DIM, steps);
        ns[3][r] = 1e9 * python(&files, "step", STEP_DIM, steps);
        write_run(&files, MEAN_DIM, "{algorithm: dpsgd, topology: complete}");
        s[0][r] = mean_s(&files, means);
        s[1][r] = python(&files, "mean", MEAN_DIM, means);
        s[2][r] = theirs("BENCH_HIVEMIND", "mean_hivemind.py", means);
        s[3][r] = theirs("BENCH_TORCHFT", "mean_torchft.py", means);
    }
    (void)bench_print("an empty call", ns[0], rounds, "ns");
    const double c = bench_print("step without an exchange", ns[1], rounds,
                                 "ns, target 5000");
    (void)bench_print("an empty method of Python", ns[2], rounds, "ns");
    const double py =
        bench_print("step from Python", ns[3], rounds, "ns, target 25000");
    (void)bench_print("mean of 25 MB between two peers, C", s[0], rounds, "s");
    (void)bench_print("from Python", s[1], rounds, "s");
    const double ratio =
        bench_ratio("C's time of Python's", s[0], s[1], rounds, 1 / 1.1);
    const bool faster = print_theirs("BENCH_HIVEMIND", "hivemind's averager",
                                     s[2], s[1], rounds, 4);
    const bool beside =
        print_theirs("BENCH_TORCHFT", "torchft over gloo, in the clear", s[3],
                     s[1], rounds, 0);
    library_files_remove(&files);
    return !faster || !beside || c > 5000 || py > 25000 || ratio < 1 / 1.1;
}
