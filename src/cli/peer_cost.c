/* Real peers with a model of a few numbers, whose steps cost next to nothing,
 * so that processor time is what the machinery around steps takes:
 *
 *   alone       unpaced, nothing is exchanged: a step is a hand-over
 *   exchanging  the same with a swap every eighth step. A swap that is done is
 *               five messages, each with two ends, and three items: snapshot,
 *               merge, merge
 *   paced       peers that sleep between steps, as many and as long as those of
 *               the experiment: a period is longer by a hand-over, and by what
 *               the timer is late and the idle core slow
 *
 * Twice as many peers as cores, so that no core is idle in the first two. Of
 * two lengths the difference counts: what a start takes is no part of it. Of
 * the busy ones the best pair counts, of the others the median. */
#include "peer_cost.h"

#include <math.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>

#include <uv.h>

#include "kith/assert.h"
#include "kith/experiment.h"
#include "kith/lab.h"
#include "kith/rundb.h"

#define STEPS 2000u  /* of the shorter one */
#define LONGER 3u    /* times as many */
#define LABS 5u      /* of each kind: the median counts */
#define EVERY 8u     /* steps between exchanges */
#define SWAP_ENDS 10 /* of the messages of a swap */
#define SWAP_ITEMS 3
#define PACED_S 0.2 /* of the shorter one */
#define PEERS_MAX 64u

#define FOLDER "/tmp/kith-measure-XXXXXX"

struct spent {
    double cpu_s, wall_s;
    double link_s; /* of the first: sealing, sockets, opening */
    double steps, done, bytes;
};

/* No core is idle then. */
static uint32_t busy_peers(void)
{
    const uint32_t twice = 2 * kith_cli_cores();
    return twice < PEERS_MAX ? twice : PEERS_MAX;
}

/* As many as the experiment has on a machine, for their models take the caches
 * from one another: from one a core, so that none is idle, to four, and two
 * that can swap. */
static uint32_t own_peers(const struct kith_experiment *experiment)
{
    const uint32_t cores =
        kith_cli_cores() < PEERS_MAX / 4 ? kith_cli_cores() : PEERS_MAX / 4;
    const uint32_t least = cores > 2 ? cores : 2;
    const uint32_t here = experiment->hosts.peers > 0 &&
                                  experiment->hosts.peers < experiment->peers
                              ? experiment->hosts.peers
                              : experiment->peers;
    return here < least ? least : here < 4 * cores ? here : 4 * cores;
}

static kith_ns within(kith_ns value, kith_ns low, kith_ns high)
{
    KITH_DEBUG_ASSERT(low <= high);
    return value < low ? low : value > high ? high : value;
}

/* A model that lay idle for long is in no cache: swaps as far apart, but some
 * in a short lab, and some steps beside them. A core that has slept for longer
 * is slower to go on: periods as long; without a pace none sleeps, and any will
 * do. */
struct cli_own kith_cli_own(const struct kith_experiment *experiment)
{
    return (struct cli_own){
        .peers = own_peers(experiment),
        .every = (uint32_t)within(experiment->gossip.every, 4, 16),
        .pace_ns =
            within(experiment->compute.step_ns, 2 * KITH_MS, 10 * KITH_MS),
    };
}

/* Where the labs of one measurement are, and what signals did before. */
struct place {
    char folder[sizeof FOLDER];
    sigset_t mask;
    struct sigaction actions[3];
};
static const int stop_signals[3] = {SIGINT, SIGTERM, SIGHUP};

static volatile sig_atomic_t is_stopped;

static void on_stop(int number)
{
    (void)number;
    is_stopped = 1;
}

static void close_place(const struct place *place)
{
    (void)rmdir(place->folder);
    for (unsigned i = 0; i < 3; i++)
        sigaction(stop_signals[i], &place->actions[i], NULL);
    sigprocmask(SIG_SETMASK, &place->mask, NULL);
}

/* A signal waits: the lab that runs or comes next ends by it, and a folder with
 * half a run is not left behind. One that reaches a thread of a library, which
 * was there before, is told by is_stopped. */
static bool open_place(struct place *place)
{
    struct sigaction action = {.sa_handler = on_stop, .sa_flags = SA_RESTART};
    sigset_t ours;
    memcpy(place->folder, FOLDER, sizeof FOLDER);
    sigemptyset(&action.sa_mask);
    sigemptyset(&ours);
    for (unsigned i = 0; i < 3; i++) {
        sigaction(stop_signals[i], &action, &place->actions[i]);
        sigaddset(&ours, stop_signals[i]);
    }
    sigprocmask(SIG_BLOCK, &ours, &place->mask);
    if (mkdtemp(place->folder) != NULL)
        return true;
    close_place(place);
    return false;
}

static int no_folder(const struct cli_arguments *arguments)
{
    return kith_cli_fail(arguments, KITH_EXIT_WRITE,
                         "cannot make a folder such as " FOLDER
                         " for the labs of --measure");
}

static int ended(const struct cli_arguments *arguments, enum kith_err err,
                 const char *error)
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

static enum kith_err run_lab(const struct kith_experiment *experiment,
                             const struct kith_dataset *dataset,
                             const char *folder, struct spent *spent,
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
    return err;
}

/* `more`: lines of YAML. */
static enum kith_err run(const char *folder, uint32_t peers, uint32_t steps,
                         const char *more, struct spent *spent,
                         char error[KITH_LAB_ERROR_BYTES])
{
    char yaml[512];
    struct kith_experiment experiment;
    const int length =
        snprintf(yaml, sizeof yaml,
                 "name: measure\nseed: 1\npeers: %u\nstop: {steps: %u}\n"
                 "model: {kind: consensus, dim: 10}\nevaluate: end\n%s",
                 peers, steps, more);
    enum kith_err err = kith_experiment_parse("measure", yaml, (size_t)length,
                                              NULL, 0, &experiment, error);
    if (err != KITH_OK)
        return err;
    err = run_lab(&experiment, NULL, folder, spent, error);
    kith_experiment_close(&experiment);
    return err;
}

static int compare(const void *a, const void *b)
{
    const double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

static double median(double *values, unsigned count)
{
    qsort(values, count, sizeof *values, compare);
    return values[count / 2];
}

static void take_away(struct spent *spent, const struct spent *shorter)
{
    spent->cpu_s -= shorter->cpu_s;
    spent->wall_s -= shorter->wall_s;
    spent->link_s -= shorter->link_s;
    spent->steps -= shorter->steps;
    spent->done -= shorter->done;
    spent->bytes -= shorter->bytes;
}

/* What the longer one took more. */
static enum kith_err run_two(const char *folder, uint32_t peers, uint32_t steps,
                             const char *more, struct spent *spent,
                             char error[KITH_LAB_ERROR_BYTES])
{
    struct spent shorter;
    enum kith_err err = run(folder, peers, steps, more, &shorter, error);
    if (err == KITH_OK)
        err = run(folder, peers, LONGER * steps, more, spent, error);
    if (err == KITH_OK)
        take_away(spent, &shorter);
    return err;
}

/* What each swap that was done took beside steps of so long. */
static double per_swap(const struct spent *spent, double all_s, double step_s)
{
    return (all_s - step_s * spent->steps) / fmax(1, spent->done);
}

/* A pair of labs more; the one that took the least counts, for a machine may be
 * busy but is never faster than it is. */
static enum kith_err best_of(const char *folder, uint32_t peers,
                             const char *more, struct spent *best,
                             char error[KITH_LAB_ERROR_BYTES])
{
    struct spent spent = {0};
    const enum kith_err err =
        run_two(folder, peers, STEPS, more, &spent, error);
    if (err == KITH_OK && spent.cpu_s < best->cpu_s)
        *best = spent;
    return err;
}

/* A swap without its items, by its ends. Never less than nothing. */
static enum kith_err measure_busy(const char *folder, uint32_t peers,
                                  struct cli_peer_cost *cost,
                                  char error[KITH_LAB_ERROR_BYTES])
{
    struct spent alone = {.cpu_s = INFINITY}, swapping = {.cpu_s = INFINITY};
    char swaps[128];
    (void)snprintf(swaps, sizeof swaps,
                   "gossip: {algorithm: adpsgd, every: %u, topology: random}\n",
                   EVERY);
    for (unsigned i = 0; i < LABS; i++) {
        enum kith_err err = best_of(
            folder, peers, "gossip: {algorithm: local}\n", &alone, error);
        if (err == KITH_OK)
            err = best_of(folder, peers, swaps, &swapping, error);
        if (err != KITH_OK)
            return err;
    }
    cost->handover_s = fmax(0, alone.cpu_s / fmax(1, alone.steps));
    cost->message_s =
        fmax(0, (per_swap(&swapping, swapping.cpu_s, cost->handover_s) -
                 SWAP_ITEMS * cost->handover_s) /
                    SWAP_ENDS);
    cost->loop_s = alone.link_s / fmax(1, alone.steps);
    cost->swap_link_s = per_swap(&swapping, swapping.link_s, cost->loop_s);
    return KITH_OK;
}

/* ---- steps of the experiment's own model */

/* In place of what the file says: no peer has anything of its own, and nothing
 * but the machine slows them down. */
static const char *const own_sets[] = {"network={}", "faults=[]",
                                       "classes=[{peers: n(0)}]",
                                       "evaluate=end", "compute={}"};
#define OWN_WORDS ((uint32_t)(sizeof own_sets / sizeof *own_sets))
/* And peers, train.batch, stop and gossip. */
#define OWN_SETS (OWN_WORDS + 4)

/* wire NULL: nothing is exchanged. */
struct own_lab {
    const struct cli_arguments *arguments;
    const char *wire, *folder;
    uint32_t batch;
    struct cli_own own;
};

static enum kith_err run_own(const struct own_lab *lab, uint32_t steps,
                             struct spent *spent,
                             char error[KITH_LAB_ERROR_BYTES])
{
    const struct cli_arguments *arguments = lab->arguments;
    char sets[3][64], gossip[128] = "gossip={algorithm: local}";
    const char *overrides[CLI_WORDS_MAX + OWN_SETS];
    uint32_t count = 0;
    struct kith_experiment experiment;
    struct kith_dataset dataset = {.close = NULL};
    bool has = false;
    for (; count < arguments->set_count; count++)
        overrides[count] = arguments->sets[count];
    if (lab->wire != NULL)
        (void)snprintf(gossip, sizeof gossip,
                       "gossip={algorithm: adpsgd, every: %u, topology: "
                       "random, wire: %s}",
                       lab->own.every, lab->wire);
    (void)snprintf(sets[0], sizeof sets[0], "peers=%u", lab->own.peers);
    (void)snprintf(sets[1], sizeof sets[1], "train.batch=%u", lab->batch);
    (void)snprintf(sets[2], sizeof sets[2], "stop={steps: %u}", steps);
    for (unsigned i = 0; i < 3; i++)
        overrides[count++] = sets[i];
    overrides[count++] = gossip;
    for (uint32_t i = 0; i < OWN_WORDS; i++)
        overrides[count++] = own_sets[i];
    KITH_ASSERT(count <= sizeof overrides / sizeof *overrides);
    enum kith_err err = kith_experiment_load(arguments->words[0], overrides,
                                             count, &experiment, error);
    if (err != KITH_OK)
        return err;
    if (kith_cli_dataset_open(arguments, &experiment, &dataset, &has) !=
        KITH_EXIT_OK) {
        (void)snprintf(error, KITH_LAB_ERROR_BYTES, "the data cannot be read");
        err = KITH_EIO;
    }
    if (err == KITH_OK)
        err = run_lab(&experiment, has ? &dataset : NULL, lab->folder, spent,
                      error);
    kith_dataset_close(&dataset);
    kith_experiment_close(&experiment);
    return err;
}

/* A core's steps of the shorter lab take so long, but there are some. What two
 * starts differ by, some ten milliseconds, is to be little beside a swap's. */
#define OWN_S 0.3
#define OWN_MIN 8u
/* Pairs of labs. What is predicted of an experiment hangs on its own batch and
 * format. */
#define LABS_OTHER 3u
#define LABS_OWN 5u
/* Once is enough then. */
#define LONG_S 2.0

/* What the longer of two took more; *last: another pair would take long. 0, or
 * an exit code. */
static int run_own_two(struct own_lab *lab, double step_s, struct spent *spent,
                       bool *last)
{
    const double steps =
        OWN_S / step_s * kith_cli_cores() / (double)lab->own.peers;
    const uint32_t count = steps > STEPS     ? STEPS
                           : steps > OWN_MIN ? (uint32_t)steps
                                             : OWN_MIN;
    char error[KITH_LAB_ERROR_BYTES] = "";
    struct spent shorter = {0};
    struct place place;
    *spent = shorter;
    if (!open_place(&place))
        return no_folder(lab->arguments);
    if (lab->wire != NULL)
        kith_cli_progress("measuring peers' models: %s", lab->wire);
    else
        kith_cli_progress("measuring peers' steps: batch %u", lab->batch);
    lab->folder = place.folder;
    enum kith_err err = run_own(lab, count, &shorter, error);
    if (err == KITH_OK)
        err = run_own(lab, LONGER * count, spent, error);
    *last = *last || spent->wall_s > LONG_S;
    take_away(spent, &shorter);
    close_place(&place);
    if (err != KITH_OK)
        kith_cli_progress_end();
    return ended(lab->arguments, err, error);
}

/* Steps alone, without their hand-over: the median. */
static double step_of(const struct spent *spent, unsigned count,
                      const struct cli_peer_cost *cost)
{
    double times[LABS_OWN];
    KITH_ASSERT(count > 0 && count <= LABS_OWN);
    for (unsigned i = 0; i < count; i++)
        times[i] = spent[i].cpu_s / fmax(1, spent[i].steps) - cost->handover_s;
    return median(times, count);
}

/* Beyond what swaps of a few numbers take: at four ends of two models, and in
 * three items. Medians of times: one that took less than nothing, as
 * differences may, is the least of them. Returns what the steps of a swap took
 * too much for it to take any: they were measured while the machine was slower.
 */
static double take_swap(const struct spent *spent, unsigned count,
                        double model_bytes, double step_s,
                        const struct cli_peer_cost *cost,
                        struct cli_wire_cost *wire)
{
    const double fixed_s =
        SWAP_ENDS * cost->message_s + SWAP_ITEMS * cost->handover_s;
    double all[LABS_OWN], links[LABS_OWN];
    KITH_ASSERT(count > 0 && count <= LABS_OWN);
    for (unsigned i = 0; i < count; i++) {
        all[i] =
            per_swap(&spent[i], spent[i].cpu_s, step_s + cost->handover_s) -
            fixed_s;
        links[i] = per_swap(&spent[i], spent[i].link_s, cost->loop_s) -
                   cost->swap_link_s;
    }
    const double bytes = spent[0].bytes / fmax(1, spent[0].done) / 2;
    const double link_s = median(links, count);
    const double items_s = median(all, count) - fmax(0, link_s);
    wire->link = link_s > 0 ? 4 * bytes / link_s : 0;
    wire->merge = items_s > 0 ? SWAP_ITEMS * model_bytes / items_s : 0;
    return fmax(0, -items_s);
}

int kith_cli_measure_peer_step(const struct cli_arguments *arguments,
                               const struct kith_experiment *experiment,
                               kith_ns alone_ns,
                               const struct cli_peer_cost *cost,
                               kith_ns *step_ns)
{
    struct own_lab lab = {.arguments = arguments,
                          .batch = experiment->train.batch,
                          .own = kith_cli_own(experiment)};
    const double step_s = 1e-9 * (double)alone_ns + cost->handover_s;
    struct spent spent[LABS_OTHER];
    unsigned count = 0;
    bool last = false;
    while (count < LABS_OTHER && !last) {
        const int code = run_own_two(&lab, step_s, &spent[count++], &last);
        if (code != KITH_EXIT_OK)
            return code;
    }
    kith_cli_progress_end();
    *step_ns = (kith_ns)fmax(1, 1e9 * step_of(spent, count, cost));
    return KITH_EXIT_OK;
}

int kith_cli_measure_wire(const struct cli_arguments *arguments,
                          const struct kith_experiment *experiment,
                          const char *wire, kith_ns step_ns, double model_bytes,
                          const struct cli_peer_cost *cost,
                          struct cli_wire_cost *out)
{
    struct own_lab lab = {.arguments = arguments,
                          .wire = wire,
                          .batch = experiment->train.batch,
                          .own = kith_cli_own(experiment)};
    const double step_s = 1e-9 * (double)step_ns;
    struct spent spent[LABS_OTHER];
    unsigned count = 0;
    bool last = false;
    while (count < LABS_OTHER && !last) {
        const int code = run_own_two(&lab, step_s + cost->handover_s,
                                     &spent[count++], &last);
        if (code != KITH_EXIT_OK)
            return code;
    }
    kith_cli_progress_end();
    (void)take_swap(spent, count, model_bytes, step_s, cost, out);
    return KITH_EXIT_OK;
}

/* In turn, so that both are of the same minute. */
int kith_cli_measure_own(const struct cli_arguments *arguments,
                         const struct kith_experiment *experiment,
                         kith_ns alone_ns, double model_bytes,
                         const struct cli_peer_cost *cost, kith_ns *step_ns,
                         struct cli_wire_cost *wire)
{
    struct own_lab alone = {.arguments = arguments,
                            .batch = experiment->train.batch,
                            .own = kith_cli_own(experiment)};
    struct own_lab swapping = alone;
    struct spent steps[LABS_OWN], swaps[LABS_OWN];
    const double begin_s = 1e-9 * (double)alone_ns + cost->handover_s;
    unsigned count = 0;
    bool last = false;
    swapping.wire = experiment->gossip.format->name;
    while (count < LABS_OWN && !last) {
        int code = run_own_two(&alone, begin_s, &steps[count], &last);
        if (code == KITH_EXIT_OK)
            code = run_own_two(&swapping, begin_s, &swaps[count], &last);
        if (code != KITH_EXIT_OK)
            return code;
        count++;
    }
    kith_cli_progress_end();
    double step_s = step_of(steps, count, cost);
    const double over_s =
        take_swap(swaps, count, model_bytes, step_s, cost, wire);
    step_s -= over_s * swaps[0].done / fmax(1, swaps[0].steps);
    *step_ns = (kith_ns)fmax(1, 1e9 * step_s);
    return KITH_EXIT_OK;
}

static enum kith_err measure_idle(const char *folder,
                                  const struct kith_experiment *experiment,
                                  struct cli_peer_cost *cost,
                                  char error[KITH_LAB_ERROR_BYTES])
{
    const struct cli_own own = kith_cli_own(experiment);
    const double pace_s = 1e-9 * (double)own.pace_ns;
    const uint32_t steps = (uint32_t)(PACED_S / pace_s);
    char paced[128];
    double wakes[LABS];
    (void)snprintf(paced, sizeof paced,
                   "compute: {step: %lluns}\ngossip: {algorithm: local}\n",
                   (unsigned long long)own.pace_ns);
    for (unsigned i = 0; i < LABS; i++) {
        struct spent spent = {0};
        const enum kith_err err =
            run_two(folder, own.peers, steps, paced, &spent, error);
        if (err != KITH_OK)
            return err;
        wakes[i] = spent.wall_s * own.peers / fmax(1, spent.steps) - pace_s -
                   cost->handover_s;
    }
    cost->wake_s = fmax(0, median(wakes, LABS));
    return KITH_OK;
}

/* ---- the kernel's slice: two threads that both want one core */

#define SPIN_S 0.3

static void spin(void *arg)
{
    long *switches = arg;
    struct rusage usage;
    const uint64_t end_ns = uv_hrtime() + (uint64_t)(1e9 * SPIN_S);
    while (uv_hrtime() < end_ns)
        continue;
    *switches = getrusage(RUSAGE_THREAD, &usage) == 0 ? usage.ru_nivcsw : 0;
}

/* 0: threads cannot be held on one core here. */
static double measure_slice(void)
{
    cpu_set_t before, one;
    long switches[2] = {0, 0};
    uv_thread_t threads[2];
    CPU_ZERO(&one);
    if (sched_getaffinity(0, sizeof before, &before) != 0)
        return 0;
    for (size_t i = 0; i < CPU_SETSIZE && CPU_COUNT(&one) == 0; i++)
        if (CPU_ISSET(i, &before))
            CPU_SET(i, &one);
    if (sched_setaffinity(0, sizeof one, &one) != 0)
        return 0; /* threads inherit it */
    unsigned started = 0;
    while (started < 2 &&
           uv_thread_create(&threads[started], spin, &switches[started]) == 0)
        started++;
    for (unsigned i = 0; i < started; i++)
        (void)uv_thread_join(&threads[i]);
    if (sched_setaffinity(0, sizeof before, &before) != 0 || started < 2)
        return 0;
    const long all = switches[0] + switches[1];
    return all > 0 ? SPIN_S / (double)all : 0;
}

int kith_cli_measure_peers(const struct cli_arguments *arguments,
                           const struct kith_experiment *experiment,
                           struct cli_peer_cost *cost)
{
    char error[KITH_LAB_ERROR_BYTES] = "";
    struct place place;
    *cost = (struct cli_peer_cost){0};
    kith_cli_progress("measuring peers: labs of %u", busy_peers());
    if (!open_place(&place))
        return no_folder(arguments);
    enum kith_err err = measure_busy(place.folder, busy_peers(), cost, error);
    if (err == KITH_OK)
        err = measure_idle(place.folder, experiment, cost, error);
    close_place(&place);
    kith_cli_progress_end();
    if (err == KITH_OK)
        cost->slice_s = measure_slice();
    return ended(arguments, err, error);
}
