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
#include <stdio.h>
#include <sys/resource.h>

#include <uv.h>

#include "kith/assert.h"
#include "kith/experiment.h"
#include "kith/lab.h"
#include "measure_lab.h"

#define LABS 5u     /* of each kind: the median counts */
#define EVERY 8u    /* steps between exchanges */
#define PACED_S 0.2 /* of the shorter one */

/* No core is idle then. */
static uint32_t busy_peers(void)
{
    const uint32_t twice = 2 * kith_cli_cores();
    return twice < CLI_LAB_PEERS_MAX ? twice : CLI_LAB_PEERS_MAX;
}

/* `more`: lines of YAML. */
static enum kith_err run(const char *folder, uint32_t peers, uint32_t steps,
                         const char *more, struct cli_spent *spent,
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
    err = kith_cli_spend(&experiment, NULL, folder, spent, error);
    kith_experiment_close(&experiment);
    return err;
}

/* What the longer one took more. */
static enum kith_err run_two(const char *folder, uint32_t peers, uint32_t steps,
                             const char *more, struct cli_spent *spent,
                             char error[KITH_LAB_ERROR_BYTES])
{
    struct cli_spent shorter;
    enum kith_err err = run(folder, peers, steps, more, &shorter, error);
    if (err == KITH_OK)
        err = run(folder, peers, CLI_LAB_LONGER * steps, more, spent, error);
    if (err == KITH_OK)
        kith_cli_spent_less(spent, &shorter);
    return err;
}

/* A pair of labs more; the one that took the least counts, for a machine may be
 * busy but is never faster than it is. */
static enum kith_err best_of(const char *folder, uint32_t peers,
                             const char *more, struct cli_spent *best,
                             char error[KITH_LAB_ERROR_BYTES])
{
    struct cli_spent spent = {0};
    const enum kith_err err =
        run_two(folder, peers, CLI_LAB_STEPS, more, &spent, error);
    if (err == KITH_OK && spent.cpu_s < best->cpu_s)
        *best = spent;
    return err;
}

/* A swap without its items, by its ends. Never less than nothing. */
static enum kith_err measure_busy(const char *folder, uint32_t peers,
                                  struct cli_peer_cost *cost,
                                  char error[KITH_LAB_ERROR_BYTES])
{
    struct cli_spent alone = {.cpu_s = INFINITY},
                     swapping = {.cpu_s = INFINITY};
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
    cost->message_s = fmax(
        0, (kith_cli_per_swap(&swapping, swapping.cpu_s, cost->handover_s) -
            CLI_SWAP_ITEMS * cost->handover_s) /
               CLI_SWAP_ENDS);
    cost->loop_s = alone.link_s / fmax(1, alone.steps);
    cost->swap_link_s =
        kith_cli_per_swap(&swapping, swapping.link_s, cost->loop_s);
    return KITH_OK;
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
        struct cli_spent spent = {0};
        const enum kith_err err =
            run_two(folder, own.peers, steps, paced, &spent, error);
        if (err != KITH_OK)
            return err;
        wakes[i] = spent.wall_s * own.peers / fmax(1, spent.steps) - pace_s -
                   cost->handover_s;
    }
    cost->wake_s = fmax(0, kith_cli_median(wakes, LABS));
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
    struct cli_place place;
    *cost = (struct cli_peer_cost){0};
    kith_cli_progress("measuring peers: labs of %u", busy_peers());
    const int code = kith_cli_place_open(arguments, &place);
    if (code != KITH_EXIT_OK)
        return code;
    enum kith_err err = measure_busy(place.folder, busy_peers(), cost, error);
    if (err == KITH_OK)
        err = measure_idle(place.folder, experiment, cost, error);
    kith_cli_place_close(&place);
    kith_cli_progress_end();
    if (err == KITH_OK)
        cost->slice_s = measure_slice();
    return kith_cli_labs_ended(arguments, err, error);
}
