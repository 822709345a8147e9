/* Exchange + merge of a 100 MB model between two real peers, against gloo's
 * plaintext exchange + average.
 *
 * Ours, in four ways. `both ask`: both peers pull triggers, as ADPSGD's do, so
 * that exchanges are initiated and served at once; `one asks`: rank 0 alone.
 * `at once`: as many exchanges a side as `gossip.exchanges` gives, where the
 * rate is that of finished ones; or one. There, where one asks, it is that of
 * each from its trigger to its DONE: the snapshot, the request, a model each
 * way, both merges. Node, worker thread, session, gate and transport are as
 * they are. Nothing trains, as with gloo: a peer that trained meanwhile would
 * copy x once.
 * Bare: what a loop of the same suite does without all that, one thread a
 * process (bare_exchange.h). Target: 0.90 of it, for float32.
 * gloo: isend + irecv + lerp_, without authentication (exchange_gloo.py).
 * Targets, of its rate: 0.60 with AES-256-GCM of the fastest provider and of
 * libcrypto, 0.40 of libsodium, 0.95 with AEGIS-256X2, 1.20 with AES-256-GCM
 * and numbers in bfloat16, whose rate is that of the model's bytes in
 * float32; 2.00 by shared memory. BENCH_EXCHANGES (7), BENCH_EXCHANGE_ROUNDS
 * (3), BENCH_CHANNEL and BENCH_WAY, which channel and which way, from 0 (all).
 * BENCH_GUARD=NAME, in place of all that: the same between peers that train, an
 * mlp of as many parameters, without a guard and with that one, in turn.
 * Target: at most 1.05 times the time. */
#include "bench/bare_exchange.h"

#include <signal.h>
#include <sys/wait.h>

#include "tests/support/peers.h"

#define TIMES_MAX 64u

/* As what a model travels: cipher, its provider (NULL: the fastest), numbers.
 */
static const struct channel {
    const char *name, *provider;
    enum kith_suite suite;
    const char *wire;
    double target;
    const char *same_host; /* NULL: tcp */
} channels[] = {
    {"AES-GCM", NULL, KITH_SUITE_AESGCM, "float32", 0.60, NULL},
    {"AES-GCM, libcrypto", "libcrypto", KITH_SUITE_AESGCM, "float32", 0.60,
     NULL},
    {"AES-GCM, libsodium", "libsodium", KITH_SUITE_AESGCM, "float32", 0.40,
     NULL},
    {"AEGIS", NULL, KITH_SUITE_AEGIS256X2, "float32", 0.95, NULL},
    {"AES-GCM, bfloat16", NULL, KITH_SUITE_AESGCM, "bfloat16", 1.20, NULL},
    {"AEGIS, bfloat16", NULL, KITH_SUITE_AEGIS256X2, "bfloat16", 1.20, NULL},
    {"shared memory", NULL, KITH_SUITE_AESGCM, "float32", 2.00,
     "shared-memory"},
};
#define CHANNELS (sizeof channels / sizeof *channels)

static const struct mode {
    const char *name;
    bool both;
    unsigned exchanges; /* 0: the default */
} modes[] = {{"both ask", true, 1},
             {"one asks", false, 1},
             {"both ask, at once", true, 0},
             {"one asks, at once", false, 0}};
#define MODES (sizeof modes / sizeof *modes)

static uint32_t elements_of(void)
{
    const double asked = bench_setting("BENCH_ELEMENTS", 25e6);
    return asked >= 1 && asked <= 1e9 ? (uint32_t)asked : 25000000;
}

/* Written by the peers' processes. */
struct times {
    const struct mode *mode;
    double triggered_s[2];
    /* By exchange, of each rank: when its trigger was pulled. */
    struct {
        uint64_t exchange;
        double began_s;
    } open[2][TIMES_MAX];
    double cpu_s[2]; /* of each process, until its last mark */
    uint32_t count, rejected;
    double bare_s[2]; /* of the bare loop, instead of all that */
    struct done {
        double ended_s, seconds, cpu_s;
    } done[TIMES_MAX];
};
static struct times *times;

/* An ATTEMPT names no exchange; the next OPENED is its own. Partners that are
 * asked in vain are of the same one. */
static void on_mark(int rank, const struct kith_mark *mark)
{
    const uint64_t exchange = mark->id.counter / KITH_ASKS;
    const double now = bench_now();
    struct timespec cpu;
    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &cpu);
    times->cpu_s[rank] = (double)cpu.tv_sec + 1e-9 * (double)cpu.tv_nsec;
    times->rejected += mark->kind == KITH_MARK_REJECTED;
    if (mark->kind == KITH_MARK_ATTEMPT && mark->peer != KITH_NOBODY)
        times->triggered_s[rank] = now;
    if (!mark->initiator || (rank > 0 && !times->mode->both) ||
        (mark->kind != KITH_MARK_OPENED && mark->kind != KITH_MARK_DONE))
        return;
    uint64_t *known = &times->open[rank][exchange % TIMES_MAX].exchange;
    double *began_s = &times->open[rank][exchange % TIMES_MAX].began_s;
    if (*known != exchange + 1)
        *began_s = times->triggered_s[rank];
    *known = exchange + 1;
    if (mark->kind == KITH_MARK_OPENED)
        return;
    const uint32_t at =
        __atomic_fetch_add(&times->count, 1, __ATOMIC_SEQ_CST) % TIMES_MAX;
    times->done[at] =
        (struct done){now, now - *began_s, times->cpu_s[0] + times->cpu_s[1]};
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
    options->on_mark = options->self == 0 ? on_mark_0 : on_mark_1;
    if (options->self != 0 && !times->mode->both)
        options->share = 1; /* It answers; it does not ask. */
}

/* NULL: not here. */
static const struct kith_aead *aead_of(const struct channel *channel)
{
    if (channel->provider == NULL)
        return kith_aead_best(channel->suite);
    for (size_t i = 0; kith_aeads[i] != NULL; i++)
        if (strcmp(kith_aead_name(kith_aeads[i]), channel->provider) == 0 &&
            kith_aead_has(kith_aeads[i], channel->suite))
            return kith_aeads[i];
    return NULL;
}

struct cost {
    double seconds, cpu; /* of an exchange; cpu: of both processes */
};

/* Of `count` exchanges, after those that touch their pages for the first
 * time. */
static struct cost cost_each(uint32_t first, uint32_t count)
{
    const struct done *before = &times->done[first - 1];
    const struct done *last = before + count;
    struct cost cost = {(last->ended_s - before->ended_s) / count,
                        (last->cpu_s - before->cpu_s) / count};
    double seconds[TIMES_MAX];
    for (uint32_t i = 0; i < count; i++)
        seconds[i] = before[i + 1].seconds;
    if (!times->mode->both && times->mode->exchanges == 1)
        cost.seconds = bench_spread_of(seconds, (int)count).median;
    return cost;
}

/* Without a guard's name, peers that do not train: those need none. */
static void write_experiment(const char *guard, unsigned exchanges,
                             const struct channel *channel, char yaml[1024])
{
    char model[512];
    if (guard == NULL)
        snprintf(model, sizeof model,
                 "model: {kind: consensus, dim: %u}\ncompute: {step: 2ms}\n",
                 elements_of());
    else
        snprintf(model, sizeof model,
                 "model: {kind: mlp, layers: [64, 4960, 4960, 10]}\n"
                 "data: {kind: idx, path: %s/../examples/data/digits}\n"
                 "train: {learning_rate: 0.001, batch: 1}\n",
                 BENCH_FOLDER);
    snprintf(yaml, 1024,
             "name: exchange\nseed: 5\npeers: 2\nstop: {steps: 1000000}\n%s"
             "gossip: {algorithm: adpsgd, every: 1, exchanges: %u, guard: %s, "
             "wire: %s}\nnetwork: {same_host: %s}\nsave: never\n",
             model, exchanges, guard ? guard : "none", channel->wire,
             channel->same_host ? channel->same_host : "tcp");
}

static struct cost ours(const struct channel *channel, const struct mode *mode,
                        const char *guard, uint32_t count)
{
    const bool verbose = bench_setting("BENCH_VERBOSE", 0) > 0;
    char yaml[1024];
    struct peers peers;
    const uint32_t first = mode->exchanges == 1 ? 2 : 4 * KITH_EXCHANGES_LIMIT;
    const struct kith_aead *const aead = aead_of(channel);
    write_experiment(guard, mode->exchanges, channel, yaml);
    memset(times, 0, sizeof *times);
    times->mode = mode;
    peers_open(&peers, yaml);
    peers.change = change;
    peers.trust.suite = channel->suite; /* the policy of its authority */
    memcpy(&peers.arg, &aead, sizeof peers.arg);
    peers_start_all(&peers);
    const double until = bench_now() + 60;
    volatile uint32_t *done = &times->count;
    while (*done < first + count && bench_now() < until)
        usleep(2000);
    const bool enough = *done >= first + count;
    const struct cost each =
        enough ? cost_each(first, count) : (struct cost){0};
    const bool stopped = peers_stop(&peers, 20);
    if (verbose || !stopped)
        for (kith_id i = 0; i < 2; i++)
            peers_print(&peers, i);
    peers_close(&peers);
    if (!stopped || !enough) {
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
    char elements[16], line[64], script[512];
    const char *const theirs = getenv("BENCH_THEIRS");
    const char *python = find_python();
    if (python == NULL) {
        printf("# no PyTorch: add the package python3-torch to compare with "
               "gloo\n");
        return false;
    }
    if (pipe(ask) != 0 || pipe(answer) != 0)
        return false;
    snprintf(script, sizeof script, "%s/%s", BENCH_FOLDER,
             theirs ? theirs : "exchange_gloo.py");
    snprintf(elements, sizeof elements, "%u", elements_of());
    fflush(NULL);
    gloo->pid = fork();
    if (gloo->pid == 0) {
        dup2(ask[0], 0);
        dup2(answer[1], 1);
        close(ask[1]);
        close(answer[0]);
        execlp(python, python, script, elements, "29517", (char *)NULL);
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

struct rates {
    double rate[BENCH_ROUNDS], cpu_ms[BENCH_ROUNDS];
};
static double bare_rate[CHANNELS][BENCH_ROUNDS];

static bool has_bare(const struct channel *channel)
{
    return strcmp(channel->wire, "float32") == 0 && channel->same_host == NULL;
}

/* Whether this channel can be had, and this way is asked for. */
static bool is_chosen(size_t c, size_t m)
{
    const double only_channel = bench_setting("BENCH_CHANNEL", -1);
    const double only_way = bench_setting("BENCH_WAY", -1);
    return aead_of(&channels[c]) != NULL &&
           (only_channel < 0 || c == (size_t)only_channel) &&
           (only_way < 0 || m == (size_t)only_way);
}

static bool is_any_chosen(size_t c)
{
    bool any = false;
    for (size_t m = 0; m < MODES; m++)
        any |= is_chosen(c, m);
    return any;
}

/* Every way that is chosen, over the first channel unless another is. */
static void compare_guard(const char *guard, int rounds, uint32_t count)
{
    const size_t p = (size_t)bench_setting("BENCH_CHANNEL", 0);
    for (size_t m = 0; m < MODES; m++) {
        const double gb = 0.1; /* as many parameters as by default */
        struct rates plain, guarded;
        uint32_t rejected = 0;
        char name[80];
        for (int r = 0; r < rounds && is_chosen(p, m); r++) {
            struct cost cost = ours(&channels[p], &modes[m], "none", count);
            plain.rate[r] = gb / cost.seconds;
            plain.cpu_ms[r] = 1e3 * cost.cpu;
            cost = ours(&channels[p], &modes[m], guard, count);
            guarded.rate[r] = gb / cost.seconds;
            guarded.cpu_ms[r] = 1e3 * cost.cpu;
            rejected += times->rejected;
        }
        if (!is_chosen(p, m))
            continue;
        printf("# guard %s, %s: %u models rejected\n", guard, modes[m].name,
               rejected);
        bench_print("trained exchange + merge", plain.rate, rounds, "GB/s");
        bench_print("  CPU time of both peers", plain.cpu_ms, rounds,
                    "ms an exchange");
        snprintf(name, sizeof name, "with guard %s", guard);
        bench_print(name, guarded.rate, rounds, "GB/s");
        bench_print("  CPU time of both peers", guarded.cpu_ms, rounds,
                    "ms an exchange");
        bench_ratio("time without : with (>= 0.95 is <= 1.05)", guarded.rate,
                    plain.rate, rounds, 0.95);
    }
}

static void report(int rounds, struct rates rates[CHANNELS][MODES],
                   const double *gloo_rate)
{
    for (size_t c = 0; c < CHANNELS; c++) {
        const struct channel *channel = &channels[c];
        if (aead_of(channel) == NULL)
            printf("# no %s here\n", channel->name);
        if (is_any_chosen(c) && has_bare(channel)) {
            char name[80];
            snprintf(name, sizeof name, "%s, bare loop", channel->name);
            bench_print(name, bare_rate[c], rounds, "GB/s");
        }
        for (size_t m = 0; m < MODES; m++) {
            char name[80];
            if (!is_chosen(c, m))
                continue;
            snprintf(name, sizeof name, "%s, %s", channel->name, modes[m].name);
            bench_print(name, rates[c][m].rate, rounds, "GB/s");
            bench_print("  CPU time of both peers", rates[c][m].cpu_ms, rounds,
                        "ms an exchange");
            if (has_bare(channel))
                bench_ratio("it : bare loop of the suite", rates[c][m].rate,
                            bare_rate[c], rounds, 0.90);
            snprintf(name, sizeof name, "it : theirs, %s, %s", channel->name,
                     modes[m].name);
            if (gloo_rate != NULL)
                bench_ratio(name, rates[c][m].rate, gloo_rate, rounds,
                            channel->target);
        }
    }
}

int main(void)
{
    static struct rates rates[CHANNELS][MODES];
    double gloo_rate[BENCH_ROUNDS];
    const int rounds = (int)bench_setting("BENCH_EXCHANGE_ROUNDS", 3);
    const uint32_t count = (uint32_t)bench_setting("BENCH_EXCHANGES", 7);
    const char *const guard = getenv("BENCH_GUARD");
    const double gb = 1e-9 * sizeof(float) * elements_of();
    struct gloo gloo;
    if (rounds < 1 || rounds > BENCH_ROUNDS) {
        fprintf(stderr, "BENCH_EXCHANGE_ROUNDS: found %d; allowed: 1 to %d\n",
                rounds, BENCH_ROUNDS);
        return 2;
    }
    bench_network();
    signal(SIGPIPE, SIG_IGN);
    times = mmap(NULL, sizeof *times, PROT_READ | PROT_WRITE,
                 MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    if (guard != NULL) {
        compare_guard(guard, rounds, count);
        return 0;
    }
    const bool compare = gloo_open(&gloo);
    for (int r = 0; r < rounds; r++) {
        if (compare)
            gloo_rate[r] = gb / gloo_run(&gloo, count);
        for (size_t c = 0; c < CHANNELS; c++) {
            if (is_any_chosen(c) && has_bare(&channels[c]))
                bare_rate[c][r] =
                    gb / bare_exchange(aead_of(&channels[c]), channels[c].suite,
                                       elements_of(), count, times->bare_s);
            for (size_t m = 0; m < MODES; m++) {
                if (!is_chosen(c, m))
                    continue;
                const struct cost cost =
                    ours(&channels[c], &modes[m], NULL, count);
                rates[c][m].rate[r] = gb / cost.seconds;
                rates[c][m].cpu_ms[r] = 1e3 * cost.cpu;
            }
        }
    }
    if (compare) {
        gloo_close(&gloo);
        bench_print("theirs: exchange + average, plaintext", gloo_rate, rounds,
                    "GB/s");
    }
    report(rounds, rates, compare ? gloo_rate : NULL);
    return 0;
}
