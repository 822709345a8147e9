/* The dump: a run as matrices, so that anybody's NumPy can carry its algorithm
 * out again and compare (docs/dump.md).
 *
 *   x        (T + 1, n, d)  models where step t begins, and at the end: what
 *                           gradients are taken at, of push-sum x / weight
 *   weight   (T + 1, n)     push-sum's
 *   vectors  (T + 1, n, v, d)  the algorithm's own
 *   rate     (T)            learning rates
 *   targets  (n, d)         of models that have them
 *   W        (R, n, n)      rows of round r as merged: x_i <- sum_j W_ij x_j
 *   C        (R, n, n)      columns as given, of directed graphs
 *   graph    (n, n)         1 where i hears from j, of graphs that stay
 *
 * A round of an all-reduce has no matrix: its sums are of all peers.
 *
 * Rows are taken where an item begins or ends, on the thread of the events: no
 * other item of that peer runs then. */
#include "sim/dump.h"

#include <string.h>

#include "kith/assert.h"
#include "kith/npz.h"
#include "sim/world.h"

enum array { MODELS, WEIGHT, VECTORS, RATE, TARGETS, ROWS, COLUMNS, GRAPH };
#define ARRAY_COUNT (GRAPH + 1u)
#define ABSENT UINT32_MAX

struct sim_dump {
    struct kith_npz *npz;
    unsigned index[ARRAY_COUNT]; /* in the file; ABSENT */
    uint64_t *next;              /* (peers) the step that is to begin */
    double *values;              /* (the longest row) */
    uint64_t rounds;
    size_t dim, gossiped;
};

static bool has(const struct sim_dump *dump, enum array array)
{
    return dump->index[array] != ABSENT;
}

static const struct kith_algorithm *algorithm_of(const struct sim_world *world)
{
    return sim_node_config(world)->algorithm;
}

/* ---- what can be dumped */

static enum kith_err refuse(struct sim_world *world, const char *why)
{
    return sim_fail(world, KITH_EINVAL, "cannot dump to %s: %s",
                    world->options.dump_path, why);
}

static enum kith_err check(struct sim_world *world)
{
    if (world->experiment->central.present)
        return refuse(world, "a central method mixes no models; leave out "
                             "`central:`, or --dump");
    const enum kith_pattern pattern = algorithm_of(world)->pattern;
    if (pattern != KITH_PATTERN_ROUND && pattern != KITH_PATTERN_NONE)
        return sim_fail(world, KITH_EINVAL,
                        "cannot dump to %s: %s has no synchronous form, its "
                        "pairs meet at any time; --dump is for methods in "
                        "rounds, such as dpsgd, gt or sgp-sync",
                        world->options.dump_path, algorithm_of(world)->name);
    if (world->dim == 0)
        return refuse(world, "model none has no parameters");
    if (world->steps == UINT64_MAX)
        return refuse(world, "how many steps is not known; say stop.steps or "
                             "stop.epochs");
    return KITH_OK;
}

/* ---- how large it is */

/* Rounds of a run: a trigger's are those of a cycle. */
static uint64_t rounds_of(const struct sim_world *world)
{
    const struct kith_node_config *config = sim_node_config(world);
    if (config->algorithm->pattern == KITH_PATTERN_NONE)
        return 0;
    return world->steps / config->every;
}

static bool gives_shares(const struct kith_algorithm *algorithm)
{
    const uint32_t flags =
        KITH_ALLOWS_DIRECTED_LINKS | KITH_SENDS_EDGE_MESSAGES;
    return (algorithm->flags & flags) == flags;
}

/* All that there may be, in the order of enum array; sizes[0] = 0: absent. */
static void describe(const struct sim_world *world, const struct sim_dump *dump,
                     struct kith_npz_array arrays[ARRAY_COUNT])
{
    const struct kith_algorithm *algorithm = algorithm_of(world);
    const struct kith_topology *graph = sim_node_config(world)->topology;
    const bool wide = world->experiment->backend->element_bytes == 8;
    const uint64_t rows = world->steps + 1, n = world->peer_count;
    const bool averages = algorithm->pattern == KITH_PATTERN_ROUND &&
                          !graph->kind->collective && dump->rounds > 0;
    const struct kith_npz_array all[ARRAY_COUNT] = {
        [MODELS] = {"x", {rows, n, dump->dim}, 3, wide},
        [WEIGHT] = {"weight", {algorithm->factor ? rows : 0, n}, 2, true},
        [VECTORS] = {"vectors",
                     {algorithm->vectors > 0 ? rows : 0, n, algorithm->vectors,
                      dump->gossiped},
                     4,
                     wide},
        [RATE] = {"rate", {world->steps}, 1, true},
        [TARGETS] = {"targets",
                     {world->experiment->model->target ? n : 0, dump->dim},
                     2,
                     true},
        [ROWS] = {"W", {averages ? dump->rounds : 0, n, n}, 3, true},
        [COLUMNS] = {"C",
                     {averages && gives_shares(algorithm) ? dump->rounds : 0, n,
                      n},
                     3,
                     true},
        [GRAPH] = {
            "graph", {averages && graph->kind->is_static ? n : 0, n}, 2, true}};
    memcpy(arrays, all, sizeof all);
}

/* ---- what is known before the run */

static void write_rates(const struct sim_world *world)
{
    const struct sim_dump *dump = world->dump;
    const struct kith_training *training = &world->experiment->train;
    for (uint64_t step = 0; step < world->steps; step++) {
        const double rate =
            training->config.learning_rate *
            kith_schedule_factor(&training->schedule, step, world->steps);
        kith_npz_write(dump->npz, dump->index[RATE], step, 1, &rate);
    }
}

static void write_targets(const struct sim_world *world)
{
    const struct sim_dump *dump = world->dump;
    const struct kith_experiment *experiment = world->experiment;
    for (kith_id i = 0; has(dump, TARGETS) && i < world->peer_count; i++) {
        experiment->model->target(&experiment->model_config, experiment->seed,
                                  i, dump->values);
        kith_npz_write(dump->npz, dump->index[TARGETS], i * dump->dim,
                       dump->dim, dump->values);
    }
}

static void write_graph(const struct sim_world *world)
{
    const struct sim_dump *dump = world->dump;
    const double one = 1;
    kith_id in[KITH_DEGREE_MAX];
    for (uint64_t i = 0; has(dump, GRAPH) && i < world->peer_count; i++) {
        const uint32_t count = kith_topology_sources(
            sim_node_config(world)->topology, (kith_id)i, 0, in, NULL);
        for (uint32_t k = 0; k < count; k++)
            kith_npz_write(dump->npz, dump->index[GRAPH],
                           i * world->peer_count + in[k], 1, &one);
    }
}

/* Who merges nothing in a round keeps what it has. */
static void write_diagonals(const struct sim_world *world, enum array array)
{
    const struct sim_dump *dump = world->dump;
    const uint64_t n = world->peer_count;
    const double one = 1;
    for (uint64_t row = 0; has(dump, array) && row < dump->rounds * n; row++)
        kith_npz_write(dump->npz, dump->index[array], row * n + row % n, 1,
                       &one);
}

enum kith_err sim_dump_open(struct sim_world *world)
{
    if (!world->options.dump_path)
        return KITH_OK;
    enum kith_err err = check(world);
    if (err != KITH_OK)
        return err;
    struct sim_dump *dump = sim_alloc(world, 1, sizeof *dump);
    if (!dump)
        return KITH_ENOMEM;
    dump->dim = world->dim;
    dump->gossiped = kith_model_size_of(world->experiment->model,
                                        &world->experiment->model_config)
                         .gossiped;
    dump->rounds = rounds_of(world);
    const size_t longest =
        world->dim > world->peer_count ? world->dim : world->peer_count;
    dump->next = sim_alloc(world, world->peer_count, sizeof *dump->next);
    dump->values = sim_alloc(world, longest, sizeof *dump->values);
    if (!dump->next || !dump->values)
        return KITH_ENOMEM;
    struct kith_npz_array all[ARRAY_COUNT], arrays[ARRAY_COUNT];
    describe(world, dump, all);
    unsigned count = 0;
    for (unsigned i = 0; i < ARRAY_COUNT; i++) {
        dump->index[i] = all[i].sizes[0] > 0 ? count : ABSENT;
        if (all[i].sizes[0] > 0)
            arrays[count++] = all[i];
    }
    char error[KITH_DATA_ERROR_BYTES];
    err = kith_npz_create(world->options.dump_path, arrays, count, &dump->npz,
                          error);
    if (err != KITH_OK)
        return sim_fail(world, err, "%s", error);
    world->dump = dump;
    write_rates(world);
    write_targets(world);
    write_graph(world);
    write_diagonals(world, ROWS);
    write_diagonals(world, COLUMNS);
    return KITH_OK;
}

/* ---- on the way */

static void write_models(const struct sim_world *world, kith_id peer,
                         uint64_t step)
{
    struct sim_dump *dump = world->dump;
    struct kith_worker *worker = sim_worker(world, peer);
    const uint64_t row = step * world->peer_count + peer;
    const unsigned vectors = algorithm_of(world)->vectors;
    kith_worker_read(worker, dump->values);
    kith_npz_write(dump->npz, dump->index[MODELS], row * dump->dim, dump->dim,
                   dump->values);
    if (has(dump, WEIGHT))
        kith_npz_write(dump->npz, dump->index[WEIGHT], row, 1,
                       kith_worker_scalars(worker));
    for (unsigned i = 0; has(dump, VECTORS) && i < vectors; i++) {
        kith_worker_read_own(worker, i, dump->values);
        kith_npz_write(dump->npz, dump->index[VECTORS],
                       (row * vectors + i) * dump->gossiped, dump->gossiped,
                       dump->values);
    }
}

/* Shares of a round, C_ji: what leaves this peer is the column. */
static void write_column(const struct sim_world *world, kith_id peer,
                         const struct kith_work *work)
{
    const struct sim_dump *dump = world->dump;
    const uint64_t n = world->peer_count, first = work->round * n;
    double kept = 1;
    for (uint32_t i = 0; i < work->edge_count; i++) {
        const struct kith_work_edge *edge = &work->edges[i];
        kept -= edge->weight;
        kith_npz_write(dump->npz, dump->index[COLUMNS],
                       (first + edge->peer) * n + peer, 1, &edge->weight);
    }
    kith_npz_write(dump->npz, dump->index[COLUMNS], (first + peer) * n + peer,
                   1, &kept);
}

static void write_row(const struct sim_world *world, kith_id peer,
                      const struct kith_work *work)
{
    const struct sim_dump *dump = world->dump;
    const uint64_t n = world->peer_count;
    double *const row = dump->values;
    memset(row, 0, n * sizeof *row);
    row[peer] = 1;
    for (uint32_t i = 0; i < work->edge_count; i++) {
        const struct kith_work_edge *edge = &work->edges[i];
        if (edge->refused)
            continue;
        row[edge->peer] += edge->weight;
        row[peer] -= edge->weight;
    }
    kith_npz_write(dump->npz, dump->index[ROWS], (work->round * n + peer) * n,
                   n, row);
}

/* A step that is taken again, after a fault, is no step of a trajectory: it is
 * found to be missing at the end. */
void sim_dump_begins(struct sim_world *world, kith_id peer,
                     const struct kith_work *work)
{
    struct sim_dump *dump = world->dump;
    if (work->kind == KITH_WORK_TRAIN && work->step == dump->next[peer] &&
        work->step < world->steps) {
        write_models(world, peer, work->step);
        dump->next[peer]++;
    }
}

void sim_dump_ended(struct sim_world *world, kith_id peer,
                    const struct kith_work *work)
{
    const struct sim_dump *dump = world->dump;
    if (work->pattern != KITH_PATTERN_ROUND || work->round >= dump->rounds)
        return;
    if (work->kind == KITH_WORK_SNAPSHOT && has(dump, COLUMNS))
        write_column(world, peer, work);
    else if (work->kind == KITH_WORK_MERGE && has(dump, ROWS))
        write_row(world, peer, work);
}

/* ---- at the end */

void sim_dump_end(struct sim_world *world, bool completed)
{
    struct sim_dump *dump = world->dump;
    char error[KITH_DATA_ERROR_BYTES];
    if (!dump || !completed)
        return;
    for (kith_id peer = 0; peer < world->peer_count; peer++) {
        if (dump->next[peer] < world->steps || !sim_worker(world, peer)) {
            (void)sim_fail(world, KITH_EINVAL,
                           "nothing is dumped to %s: peer %u has not begun "
                           "step %llu in its turn; leave out `faults:`",
                           world->options.dump_path, peer,
                           (unsigned long long)dump->next[peer]);
            return;
        }
        write_models(world, peer, world->steps);
    }
    const enum kith_err err = kith_npz_commit(dump->npz, error);
    dump->npz = NULL;
    if (err != KITH_OK)
        (void)sim_fail(world, err, "%s", error);
}

void sim_dump_close(struct sim_world *world)
{
    if (world->dump)
        kith_npz_abandon(world->dump->npz);
}
