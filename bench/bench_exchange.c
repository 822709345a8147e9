/* Exchange + merge of a 100 MB model between two real peers, against gloo's
 * plaintext exchange + average.
 *
 * Ours, in two ways. `both ask`: both peers pull triggers, as ADPSGD's do, so
 * that each has one exchange it initiated and one it serves; the rate is that
 * of finished exchanges. `one asks`: rank 0 alone, from its trigger to its
 * DONE; between them lie one after another the snapshot, the request, a model
 * there, rank 1's snapshot and merge, a model back and rank 0's merge. In both,
 * node, worker thread, session, gate and transport are as they are. Nothing
 * trains, as with gloo: a peer that trained meanwhile would copy x once.
 * gloo: isend + irecv + lerp_, without authentication (exchange_gloo.py).
 * Target: 0.70 of its rate with libcrypto, 0.40 with libsodium. */
#include "bench/bench.h"
#include "bench/network.h"

#include <signal.h>
#include <sys/wait.h>

#include "tests/support/peers.h"

#define ELEMENTS 25000000u
#define TIMES_MAX 64u
#define PROVIDERS 2

static const char *const providers[PROVIDERS] = {"libcrypto", "libsodium"};
static const double targets[PROVIDERS] = {0.70, 0.40};

enum mode { BOTH_ASK, ONE_ASKS, MODES };
static const char *const modes[MODES] = {"both ask", "one asks"};

/* Written by the peers' processes. */
struct times {
    enum mode mode;
    double began_s[2];
    uint32_t count;
    double seconds[TIMES_MAX]; /* one asks: of each; both ask: since the last */
};
static struct times *times;

/* rank: which of the two peers this process is. */
static void count_done(int rank)
{
    const double now = bench_now();
    const uint32_t at =
        __atomic_fetch_add(&times->count, 1, __ATOMIC_SEQ_CST) % TIMES_MAX;
    times->seconds[at] =
        times->mode == ONE_ASKS ? now - times->began_s[rank] : now;
}

static void on_mark(int rank, const struct kith_mark *mark)
{
    if (mark->kind == KITH_MARK_ATTEMPT && mark->peer != KITH_NOBODY)
        times->began_s[rank] = bench_now();
    if (mark->kind == KITH_MARK_DONE && mark->initiator)
        count_done(rank);
}

static void on_mark_0(void *user, kith_ns time_ns, const struct kith_mark *mark)
{
    (void)user;
    (void)time_ns;
    on_mark(0, mark);
}

static void on_mark_1(void *user, kith_ns time_ns, const struct kith_mark *mark)
{
    (void)user;
    (void)time_ns;
    on_mark(1, mark);
}

static void change(struct kith_peer_options *options, void *arg)
{
    options->aead = arg;
    options->save = NULL;
    options->congestion = BENCH_CONGESTION;
    if (options->self == 0)
        options->on_mark = on_mark_0;
    else if (times->mode == BOTH_ASK)
        options->on_mark = on_mark_1;
    else
        options->share = 1; /* It answers; it does not ask. */
}

static const struct kith_aead *provider(const char *name)
{
    for (size_t i = 0; kith_aeads[i] != NULL; i++)
        if (strcmp(kith_aead_name(kith_aeads[i]), name) == 0 &&
            kith_aead_has(kith_aeads[i], KITH_SUITE_AESGCM))
            return kith_aeads[i];
    return NULL;
}

/* Seconds per exchange, of `count` after the first two: those touch their
 * pages for the first time. */
static double seconds_each(uint32_t count)
{
    if (times->mode == ONE_ASKS)
        return bench_spread_of(times->seconds + 2, (int)count).median;
    return (times->seconds[count + 1] - times->seconds[1]) / count;
}

static double ours(const struct kith_aead *aead, enum mode mode, uint32_t count,
                   bool verbose)
{
    char yaml[512];
    struct peers peers;
    snprintf(yaml, sizeof yaml,
             "name: exchange\nseed: 5\npeers: 2\nstop: {steps: 1000000}\n"
             "model: {kind: consensus, dim: %u}\n"
             "gossip: {algorithm: adpsgd, every: 1}\n"
             "compute: {step: 2ms}\nsave: never\n",
             ELEMENTS);
    times->mode = mode;
    times->count = 0;
    peers_open(&peers, yaml);
    peers.change = change;
    memcpy(&peers.arg, &aead, sizeof peers.arg);
    peers_start_all(&peers);
    const double until = bench_now() + 60;
    volatile uint32_t *done = &times->count;
    while (*done < count + 2 && bench_now() < until)
        usleep(2000);
    const double each = *done < count + 2 ? 0 : seconds_each(count);
    const bool stopped = peers_stop(&peers, 20);
    if (verbose || !stopped)
        for (kith_id i = 0; i < 2; i++)
            peers_print(&peers, i);
    peers_close(&peers);
    if (!stopped || each <= 0) {
        fprintf(stderr, "bench_exchange: the exchanges did not end\n");
        exit(1);
    }
    return each;
}

/* ---- gloo */

struct gloo {
    FILE *ask, *answer;
    pid_t pid;
};

/* A distribution's own Python has its packages; $BENCH_PYTHON comes first. */
static const char *find_python(void)
{
    const char *const names[] = {getenv("BENCH_PYTHON"), "/usr/bin/python3",
                                 "python3"};
    char command[256];
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        if (names[i] == NULL)
            continue;
        snprintf(command, sizeof command,
                 "%s -c 'import torch.distributed' 2>/dev/null", names[i]);
        if (system(command) == 0)
            return names[i];
    }
    return NULL;
}

static bool gloo_open(struct gloo *gloo)
{
    int ask[2], answer[2];
    char elements[16], line[64];
    const char *python = find_python();
    if (python == NULL) {
        printf("# no PyTorch: add the package python3-torch to compare with "
               "gloo\n");
        return false;
    }
    if (pipe(ask) != 0 || pipe(answer) != 0)
        return false;
    snprintf(elements, sizeof elements, "%u", ELEMENTS);
    fflush(NULL);
    gloo->pid = fork();
    if (gloo->pid == 0) {
        dup2(ask[0], 0);
        dup2(answer[1], 1);
        close(ask[1]);
        close(answer[0]);
        execlp(python, python, BENCH_FOLDER "/exchange_gloo.py", elements,
               "29517", (char *)NULL);
        _exit(127);
    }
    close(ask[0]);
    close(answer[1]);
    gloo->ask = fdopen(ask[1], "w");
    gloo->answer = fdopen(answer[0], "r");
    return fgets(line, sizeof line, gloo->answer) != NULL &&
           strncmp(line, "ready", 5) == 0;
}

static double gloo_run(struct gloo *gloo, uint32_t count)
{
    char line[64];
    fprintf(gloo->ask, "%u\n", count);
    fflush(gloo->ask);
    if (fgets(line, sizeof line, gloo->answer) == NULL) {
        fprintf(stderr, "bench_exchange: gloo went away\n");
        exit(1);
    }
    return strtod(line, NULL);
}

static void gloo_close(struct gloo *gloo)
{
    fclose(gloo->ask);
    fclose(gloo->answer);
    waitpid(gloo->pid, NULL, 0);
}

static void report(int rounds, double rates[PROVIDERS][MODES][BENCH_ROUNDS],
                   const double *gloo_rate)
{
    for (int p = 0; p < PROVIDERS; p++) {
        if (provider(providers[p]) == NULL) {
            printf("# no AESGCM from %s here\n", providers[p]);
            continue;
        }
        for (int m = 0; m < MODES; m++) {
            char name[80];
            snprintf(name, sizeof name, "kith exchange + merge, %s, %s",
                     modes[m], providers[p]);
            bench_print(name, rates[p][m], rounds, "GB/s");
            snprintf(name, sizeof name, "kith : gloo, %s, %s", modes[m],
                     providers[p]);
            if (gloo_rate != NULL)
                bench_ratio(name, rates[p][m], gloo_rate, rounds, targets[p]);
        }
    }
}

int main(void)
{
    double rates[PROVIDERS][MODES][BENCH_ROUNDS], gloo_rate[BENCH_ROUNDS];
    const int rounds = (int)bench_setting("BENCH_EXCHANGE_ROUNDS", 3);
    const uint32_t count = (uint32_t)bench_setting("BENCH_EXCHANGES", 7);
    const bool verbose = bench_setting("BENCH_VERBOSE", 0) > 0;
    struct gloo gloo;
    bench_network();
    signal(SIGPIPE, SIG_IGN);
    times = mmap(NULL, sizeof *times, PROT_READ | PROT_WRITE,
                 MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    const bool compare = gloo_open(&gloo);
    for (int r = 0; r < rounds; r++) {
        if (compare)
            gloo_rate[r] = 0.1 / gloo_run(&gloo, count);
        for (int p = 0; p < PROVIDERS; p++)
            for (int m = 0; m < MODES; m++)
                if (provider(providers[p]) != NULL)
                    rates[p][m][r] = 0.1 / ours(provider(providers[p]),
                                                (enum mode)m, count, verbose);
    }
    if (compare) {
        gloo_close(&gloo);
        bench_print("gloo exchange + average, 100 MB, plaintext", gloo_rate,
                    rounds, "GB/s");
    }
    report(rounds, rates, compare ? gloo_rate : NULL);
    return 0;
}
