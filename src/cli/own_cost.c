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
static const char *const own_sets[] = {"faults=[]", "classes=[{peers: n(0)}]",
                                       "evaluate=end", "compute={}"};
#define OWN_WORDS ((uint32_t)(sizeof own_sets / sizeof *own_sets))
/* And peers, train.batch, stop, network and gossip. */
#define OWN_SETS (OWN_WORDS + 5)
/* What scoring the models at a lab's end takes is no part of a step: few
 * examples will do. */
#define SCORED_MAX 64u

/* wire NULL: nothing is exchanged. */
struct own_lab {
    const struct cli_arguments *arguments;
    const struct kith_experiment *experiment;
    const char *wire, *folder;
    uint32_t batch;
    struct cli_own own;
};

/* The experiment's, where swaps can have it: it looks at every model, and may
 * take longer than the merge. */
static const char *guard_of(const struct kith_experiment *experiment)
{
    const struct kith_guard *guard = kith_guard_find(experiment->gossip.guard);
    const bool is_none = guard->weigh == NULL && guard->judge == NULL;
    return is_none || guard->weigh != NULL ? experiment->gossip.guard : "clip";
}

static enum kith_err run_own(const struct own_lab *lab, uint32_t steps,
                             struct cli_spent *spent,
                             char error[KITH_LAB_ERROR_BYTES])
{
    const struct cli_arguments *arguments = lab->arguments;
    char sets[4][128], gossip[192] = "gossip={algorithm: local}";
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
                       "random, wire: %s, guard: %s}",
                       lab->own.every, lab->wire, guard_of(lab->experiment));
    (void)snprintf(sets[0], sizeof sets[0], "peers=%u", lab->own.peers);
    (void)snprintf(sets[1], sizeof sets[1], "train.batch=%u", lab->batch);
    (void)snprintf(sets[2], sizeof sets[2], "stop={steps: %u}", steps);
    (void)snprintf(sets[3], sizeof sets[3], "network={suite: %s}",
                   lab->experiment->network.suite);
    for (unsigned i = 0; i < 4; i++)
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
    if (dataset.test.count > SCORED_MAX)
        dataset.test.count = SCORED_MAX;
    if (err == KITH_OK)
        err = kith_cli_spend(&experiment, has ? &dataset : NULL, lab->folder,
                             spent, error);
    kith_dataset_close(&dataset);
    kith_experiment_close(&experiment);
    return err;
}

/* The longer lab's steps alone take a core so long, but there are some. Labs
 * differ by 8 % for the machine's sake, so that the shorter one, which is there
 * to take off what a start is, is a small part of it. */
#define OWN_S 0.9
#define OWN_LONGER 9u
#define OWN_MIN 8u
/* Pairs of labs. What is predicted of an experiment hangs on its own batch and
 * format. */
#define LABS_OTHER 3u
#define LABS_OWN CLI_LABS_MAX
/* Once is enough then. */
#define LONG_S 4.0

/* What the longer of two took more; *last: another pair would take long. 0, or
 * an exit code. */
static int run_own_two(struct own_lab *lab, double step_s,
                       struct cli_spent *spent, bool *last)
{
    const uint32_t longer = (uint32_t)fmax(
        CLI_LAB_LONGER * OWN_MIN,
        fmin(CLI_LAB_LONGER * CLI_LAB_STEPS,
             OWN_S / step_s * kith_cli_cores() / (double)lab->own.peers));
    const uint32_t count =
        longer / OWN_LONGER > OWN_MIN ? longer / OWN_LONGER : OWN_MIN;
    char error[KITH_LAB_ERROR_BYTES] = "";
    struct cli_spent shorter = {0};
    struct cli_place place;
    *spent = shorter;
    const int code = kith_cli_place_open(lab->arguments, &place);
    if (code != KITH_EXIT_OK)
        return code;
    if (lab->wire != NULL)
        kith_cli_progress("measuring peers' models: %s", lab->wire);
    else
        kith_cli_progress("measuring peers' steps: batch %u", lab->batch);
    lab->folder = place.folder;
    enum kith_err err = run_own(lab, count, &shorter, error);
    if (err == KITH_OK)
        err = run_own(lab, longer, spent, error);
    *last = *last || spent->wall_s > LONG_S;
    kith_cli_spent_less(spent, &shorter);
    kith_cli_place_close(&place);
    if (err != KITH_OK)
        kith_cli_progress_end();
    return kith_cli_labs_ended(lab->arguments, err, error);
}

int kith_cli_measure_peer_step(const struct cli_arguments *arguments,
                               const struct kith_experiment *experiment,
                               kith_ns alone_ns,
                               const struct cli_peer_cost *cost,
                               kith_ns *step_ns)
{
    struct own_lab lab = {.arguments = arguments,
                          .experiment = experiment,
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
    *step_ns = (kith_ns)fmax(1, 1e9 * kith_cli_step_of(spent, count, cost));
    return KITH_EXIT_OK;
}

int kith_cli_measure_wire(const struct cli_arguments *arguments,
                          const struct kith_experiment *experiment,
                          const char *wire, kith_ns step_ns, double model_bytes,
                          const struct cli_peer_cost *cost,
                          struct cli_wire_cost *out)
{
    struct own_lab lab = {.arguments = arguments,
                          .experiment = experiment,
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
    (void)kith_cli_take_swap(spent, count, model_bytes, step_s, cost, out);
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
                            .experiment = experiment,
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
    double step_s = kith_cli_step_of(steps, count, cost);
    const double over_s =
        kith_cli_take_swap(swaps, count, model_bytes, step_s, cost, wire);
    step_s -= over_s * swaps[0].done / fmax(1, swaps[0].steps);
    *step_ns = (kith_ns)fmax(1, 1e9 * step_s);
    return KITH_EXIT_OK;
}
