/* Steps and swaps of the experiment's own model: labs of it, as many peers as
 * it has on a machine, with nothing of the file's but the machine to slow them.
 */
#include "peer_cost.h"

#include <math.h>
#include <stdio.h>

#include "kith/assert.h"
#include "kith/experiment.h"
#include "kith/lab.h"
#include "measure_lab.h"

/* As many as the experiment has on a machine, for their models take the caches
 * from one another: from one a core, so that none is idle, to four, and two
 * that can swap. */
static uint32_t own_peers(const struct kith_experiment *experiment)
{
    const uint32_t cores = kith_cli_cores() < CLI_LAB_PEERS_MAX / 4
                               ? kith_cli_cores()
                               : CLI_LAB_PEERS_MAX / 4;
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
                             struct cli_spent *spent,
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
        err = kith_cli_spend(&experiment, has ? &dataset : NULL, lab->folder,
                             spent, error);
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
static int run_own_two(struct own_lab *lab, double step_s,
                       struct cli_spent *spent, bool *last)
{
    const double steps =
        OWN_S / step_s * kith_cli_cores() / (double)lab->own.peers;
    const uint32_t count = steps > CLI_LAB_STEPS ? CLI_LAB_STEPS
                           : steps > OWN_MIN     ? (uint32_t)steps
                                                 : OWN_MIN;
    char error[KITH_LAB_ERROR_BYTES] = "";
    struct cli_spent shorter = {0};
    struct cli_place place;
    *spent = shorter;
    if (!kith_cli_place_open(&place))
        return kith_cli_no_place(lab->arguments);
    if (lab->wire != NULL)
        kith_cli_progress("measuring peers' models: %s", lab->wire);
    else
        kith_cli_progress("measuring peers' steps: batch %u", lab->batch);
    lab->folder = place.folder;
    enum kith_err err = run_own(lab, count, &shorter, error);
    if (err == KITH_OK)
        err = run_own(lab, CLI_LAB_LONGER * count, spent, error);
    *last = *last || spent->wall_s > LONG_S;
    kith_cli_spent_less(spent, &shorter);
    kith_cli_place_close(&place);
    if (err != KITH_OK)
        kith_cli_progress_end();
    return kith_cli_labs_ended(lab->arguments, err, error);
}

/* Steps alone, without their hand-over: the median. */
static double step_of(const struct cli_spent *spent, unsigned count,
                      const struct cli_peer_cost *cost)
{
    double times[LABS_OWN];
    KITH_ASSERT(count > 0 && count <= LABS_OWN);
    for (unsigned i = 0; i < count; i++)
        times[i] = spent[i].cpu_s / fmax(1, spent[i].steps) - cost->handover_s;
    return kith_cli_median(times, count);
}

/* Beyond what swaps of a few numbers take: at four ends of two models, and in
 * three items. Medians of times: one that took less than nothing, as
 * differences may, is the least of them. Returns what the steps of a swap took
 * too much for it to take any: they were measured while the machine was slower.
 */
static double take_swap(const struct cli_spent *spent, unsigned count,
                        double model_bytes, double step_s,
                        const struct cli_peer_cost *cost,
                        struct cli_wire_cost *wire)
{
    const double fixed_s =
        CLI_SWAP_ENDS * cost->message_s + CLI_SWAP_ITEMS * cost->handover_s;
    double all[LABS_OWN], links[LABS_OWN];
    KITH_ASSERT(count > 0 && count <= LABS_OWN);
    for (unsigned i = 0; i < count; i++) {
        all[i] = kith_cli_per_swap(&spent[i], spent[i].cpu_s,
                                   step_s + cost->handover_s) -
                 fixed_s;
        links[i] = kith_cli_per_swap(&spent[i], spent[i].link_s, cost->loop_s) -
                   cost->swap_link_s;
    }
    const double bytes = spent[0].bytes / fmax(1, spent[0].done) / 2;
    const double link_s = kith_cli_median(links, count);
    const double items_s = kith_cli_median(all, count) - fmax(0, link_s);
    wire->link = link_s > 0 ? 4 * bytes / link_s : 0;
    wire->merge = items_s > 0 ? CLI_SWAP_ITEMS * model_bytes / items_s : 0;
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
    struct cli_spent spent[LABS_OTHER];
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
    struct cli_spent spent[LABS_OTHER];
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
    struct cli_spent steps[LABS_OWN], swaps[LABS_OWN];
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
