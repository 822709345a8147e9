/* What the simulator adds to the work of its peers: for every algorithm, the
 * wall time of a run over that of a bare loop.
 *
 *   sim    64 peers learn the digits, MLP 64-128-10, at most 4 neighbours: what
 *          `kith sim` does, its run database included
 *   bare   workers like those of the run, and a loop over the same work items
 *          in the same order: kith_worker_run and, where a step leaves its
 *          snapshot for who asks meanwhile, kith_worker_prepare; one copy of
 *          each snapshot that is sent, by pointer into the inbox of everyone
 *          who receives it, and every evaluation of the end. No node, no event,
 *          no message, no check of what came, no mean, no database
 *
 * The bare loop moves the bytes that the simulator moves and no others: where
 * a copy of sim/model_copies.c is filled, shared or used again, so is its. The
 * linker puts a recorder around the worker's functions (--wrap); it is off
 * while anything is timed. The database lies in memory (/dev/shm): a disk is
 * not what is measured. It has a thread of its own for its rows, so nothing is
 * pinned and a second core should be free. Both sides open their workers within
 * the time, and begin without the memory of the run before. Both must end with
 * the same models, byte for byte.
 *
 * Gate: sim <= 1.25 bare. Where a method asks for everybody's model by
 * definition (eager; a round in 8 of gossip-pga) it gets it. Arguments: names
 * of algorithms (all). BENCH_STEPS (200), BENCH_ROUNDS (5). */
#include "bench/bench.h"

#include <malloc.h>
#include <unistd.h>

#include "kith/algorithm.h"
#include "kith/sim.h"
#include "sim/world.h"

enum { PEERS = 64, BLOCKS = 1 << 16 };

#define MOST 1.25 /* sim : bare */

/* Graphs of four neighbours but where the method has its own. */
static const struct choice {
    const char *name, *gossip;
    unsigned divide; /* steps, where a step is many rounds */
} choices[] = {
    {"allreduce-doubling", "", 1},
    {"allreduce-ring", "", 10},
    {"allreduce-tree", "", 1},
    {"beer", "topology: torus, compressor: top-k, density: 0.1", 10},
    {"choco", "topology: torus, compressor: top-k, density: 0.01", 10},
    {"d2", "topology: torus, weights: lazy", 1},
    {"diloco", "topology: torus, every: 50", 1},
    {"eager", "every: 50", 1},
    {"epidemic", "degree: 4", 1},
    {"epidemic-oracle", "degree: 4", 1},
    {"gasloc", "topology: torus, every: 50", 1},
    {"gossip-pga", "graph: torus, period: 8", 1},
    {"gossipgrad", "", 1},
    {"gs-sgd", "", 1},
    {"gtop-k", "", 1},
    {"local", "", 1},
    {"local-sgd", "topology: torus, every: 10", 1},
    {"matcha", "graph: torus, budget: 0.5", 1},
    {"moshpit", "degree: 3, every: 4", 1},
    {"noloco", "topology: random-matching, every: 50", 1},
    {"overlap-sgp", "topology: equistatic, degree: 4", 1},
    {"push-pull", "topology: equistatic, degree: 4", 1},
    {"relaysgd", "topology: binary-tree", 1},
    {"running-sums", "topology: equistatic, degree: 4", 1},
    {"sgp", "topology: equistatic, degree: 4", 1},
    {"sgp-sync", "topology: equistatic, degree: 4", 1},
    {"slowmo", "topology: torus, every: 12", 1},
    {"sparse-loco", "every: 50, compressor: top-k-2bit, density: 0.03", 1},
    {"streaming", "topology: torus, every: 12", 1},
    {"swarm", "topology: torus, every: 3", 1},
    {"sync-sgd", "", 1},
    {"two-level", "", 10},
    {"update-sets", "every: 50, compressor: top-k-2bit, density: 0.0002", 1},
};

/* ---- The recorder. */

enum act { ACT_PREPARE, ACT_RUN, ACT_COPY, ACT_PUT, ACT_READ, ACT_SCORE };

struct record {
    enum act act;
    kith_id peer;
    uint32_t slot, block;  /* COPY: from, to; PUT: to, from */
    size_t bytes;          /* COPY */
    struct kith_work work; /* PREPARE, RUN */
    size_t edges;          /* of it, from here in the list of edges */
};

static struct {
    bool on;
    struct record *records;
    size_t count, room;
    struct kith_work_edge *edges;
    size_t edge_count, edge_room;
    struct kith_worker_config configs[PEERS];
    struct kith_worker *workers[PEERS];
    void *models[PEERS]; /* as they were at the end */
    /* The simulator's copies by their addresses, and what stands in each
     * snapshot's. */
    const void *blocks[BLOCKS]; /* open addressing */
    size_t block_bytes;
    struct {
        const void *block;
        size_t bytes;
    } sent[PEERS][KITH_SLOT_ROUND_SENT + 1];
} tape;

static void *grow(void *list, size_t count, size_t *room, size_t size)
{
    if (count < *room)
        return list;
    *room = *room == 0 ? 4096 : 2 * *room;
    list = realloc(list, *room * size);
    if (list == NULL)
        abort();
    return list;
}

static struct record *add(enum act act, const struct kith_worker *worker)
{
    tape.records =
        grow(tape.records, tape.count, &tape.room, sizeof *tape.records);
    struct record *record = &tape.records[tape.count++];
    *record = (struct record){.act = act};
    while (worker != NULL && tape.workers[record->peer] != worker)
        record->peer++;
    return record;
}

enum kith_err __real_kith_worker_open(const struct kith_worker_config *config,
                                      struct kith_worker **worker, char *error);
enum kith_err __wrap_kith_worker_open(const struct kith_worker_config *config,
                                      struct kith_worker **worker, char *error);
enum kith_err __wrap_kith_worker_open(const struct kith_worker_config *config,
                                      struct kith_worker **worker, char *error)
{
    const enum kith_err err = __real_kith_worker_open(config, worker, error);
    if (tape.on) {
        tape.configs[config->self] = *config;
        tape.workers[config->self] = *worker;
        const size_t dim = kith_worker_dim(*worker) * sizeof(float);
        const size_t payload = kith_worker_payload(*worker);
        tape.block_bytes = ((dim > payload ? dim : payload) + 63) / 64 * 64;
    }
    return err;
}

static void *model_of(struct kith_worker *worker)
{
    const size_t bytes = kith_worker_dim(worker) * sizeof(float);
    void *model = malloc(bytes);
    if (model == NULL)
        abort();
    return memcpy(model, kith_worker_slot(worker, KITH_SLOT_LIVE), bytes);
}

void __real_kith_worker_close(struct kith_worker *worker);
void __wrap_kith_worker_close(struct kith_worker *worker);
void __wrap_kith_worker_close(struct kith_worker *worker)
{
    for (kith_id id = 0; tape.on && id < PEERS; id++)
        if (tape.workers[id] == worker)
            tape.models[id] = model_of(worker);
    __real_kith_worker_close(worker);
}

static void add_work(enum act act, const struct kith_worker *worker,
                     const struct kith_work *work)
{
    struct record *record = add(act, worker);
    record->work = *work;
    record->edges = tape.edge_count;
    for (uint32_t i = 0; i < work->edge_count; i++) {
        tape.edges = grow(tape.edges, tape.edge_count, &tape.edge_room,
                          sizeof *tape.edges);
        tape.edges[tape.edge_count++] = work->edges[i];
    }
}

/* The snapshot that a step leaves for who asks while it lasts. */
void __real_kith_worker_prepare(struct kith_worker *worker,
                                struct kith_work *work);
void __wrap_kith_worker_prepare(struct kith_worker *worker,
                                struct kith_work *work);
void __wrap_kith_worker_prepare(struct kith_worker *worker,
                                struct kith_work *work)
{
    if (tape.on && work->kind == KITH_WORK_TRAIN && work->edge_count > 0)
        add_work(ACT_PREPARE, worker, work);
    __real_kith_worker_prepare(worker, work);
}

void __real_kith_worker_run(struct kith_worker *worker, struct kith_work *work,
                            struct kith_work_result *result);
void __wrap_kith_worker_run(struct kith_worker *worker, struct kith_work *work,
                            struct kith_work_result *result);
void __wrap_kith_worker_run(struct kith_worker *worker, struct kith_work *work,
                            struct kith_work_result *result)
{
    if (tape.on)
        add_work(ACT_RUN, worker, work);
    __real_kith_worker_run(worker, work, result);
}

/* The place in the bare loop's list of what is this block in the simulator. */
static uint32_t block_of(const void *block)
{
    uint32_t at = (uint32_t)(((uintptr_t)block >> 6) * 2654435761u >> 8);
    for (uint32_t tried = 0; tried < BLOCKS; tried++) {
        const void **place = &tape.blocks[at++ % BLOCKS];
        if (*place == NULL)
            *place = block;
        if (*place == block)
            return (uint32_t)(place - tape.blocks);
    }
    abort();
}

void __real_sim_copy_forget(struct sim_world *world, kith_id peer);
void __wrap_sim_copy_forget(struct sim_world *world, kith_id peer);
void __wrap_sim_copy_forget(struct sim_world *world, kith_id peer)
{
    __real_sim_copy_forget(world, peer);
    memset(tape.sent[peer], 0, sizeof tape.sent[peer]);
}

void *__real_sim_copy_slot(struct sim_world *world, kith_id peer, uint32_t slot,
                           size_t bytes);
void *__wrap_sim_copy_slot(struct sim_world *world, kith_id peer, uint32_t slot,
                           size_t bytes);
void *__wrap_sim_copy_slot(struct sim_world *world, kith_id peer, uint32_t slot,
                           size_t bytes)
{
    void *block = __real_sim_copy_slot(world, peer, slot, bytes);
    /* Asked for by length, too: see sim_copy_slot(). */
    const bool snapshot = slot <= KITH_SLOT_ROUND_SENT && slot % 2 == 1;
    const bool shared = snapshot && tape.sent[peer][slot].block == block &&
                        tape.sent[peer][slot].bytes == bytes;
    if (tape.on && !shared) {
        struct record *record = add(ACT_COPY, tape.workers[peer]);
        record->slot = slot;
        record->block = block_of(block);
        record->bytes = bytes;
    }
    if (snapshot) {
        tape.sent[peer][slot].block = block;
        tape.sent[peer][slot].bytes = bytes;
    }
    return block;
}

void *__real_kith_worker_swap(struct kith_worker *worker, uint32_t slot,
                              void *memory);
void *__wrap_kith_worker_swap(struct kith_worker *worker, uint32_t slot,
                              void *memory);
void *__wrap_kith_worker_swap(struct kith_worker *worker, uint32_t slot,
                              void *memory)
{
    void *old = __real_kith_worker_swap(worker, slot, memory);
    if (tape.on && tape.count > 0 && memory != NULL) { /* not lent, not back */
        struct record *record = add(ACT_PUT, worker);
        record->slot = slot;
        record->block = block_of(memory);
    }
    return old;
}

void __real_kith_worker_read(struct kith_worker *worker, double *z);
void __wrap_kith_worker_read(struct kith_worker *worker, double *z);
void __wrap_kith_worker_read(struct kith_worker *worker, double *z)
{
    if (tape.on)
        (void)add(ACT_READ, worker);
    __real_kith_worker_read(worker, z);
}

enum kith_err __real_kith_evaluator_score(struct kith_evaluator *evaluator,
                                          const double *z,
                                          struct kith_score *score,
                                          char *error);
enum kith_err __wrap_kith_evaluator_score(struct kith_evaluator *evaluator,
                                          const double *z,
                                          struct kith_score *score,
                                          char *error);
enum kith_err __wrap_kith_evaluator_score(struct kith_evaluator *evaluator,
                                          const double *z,
                                          struct kith_score *score, char *error)
{
    if (tape.on)
        (void)add(ACT_SCORE, NULL);
    return __real_kith_evaluator_score(evaluator, z, score, error);
}

/* ---- The two sides. */

struct bout {
    struct kith_experiment experiment;
    const struct kith_dataset *dataset;
    char folder[64];
};

static void must(enum kith_err err, const char *what, const char *error)
{
    if (err == KITH_OK)
        return;
    fprintf(stderr, "bench_algorithms: %s: %s\n", what, error);
    exit(1);
}

struct span {
    double wall, cpu;
};

static struct span span_from(struct span start)
{
    return (struct span){bench_now() - start.wall, bench_cpu() - start.cpu};
}

/* A run as `kith sim` has it. */
static struct span run_sim(struct bout *bout)
{
    char path[KITH_PATH_BYTES_MAX], error[SIM_ERROR_BYTES] = "";
    struct kith_rundb *store;
    struct kith_summary summary;
    must(kith_rundb_create(bout->folder, "sim", &bout->experiment, &store, path,
                           error),
         "store", error);
    const struct sim_options options = {.experiment = &bout->experiment,
                                        .dataset = bout->dataset,
                                        .store = store};
    (void)malloc_trim(0);
    const struct span start = {bench_now(), bench_cpu()};
    must(sim_run(&options, &summary, NULL, error), "sim", error);
    must(kith_rundb_finish(store, &bout->experiment, &summary), "store", path);
    must(kith_rundb_close(store, error), "store", error);
    const struct span took = span_from(start);
    if (!summary.completed)
        must(KITH_EINVAL, "sim", "did not complete");
    (void)unlink(path);
    return took;
}

static void play(const struct record *record, struct kith_worker **workers,
                 void **blocks, double *z, struct kith_evaluator *evaluator)
{
    struct kith_work work = record->work;
    struct kith_work_edge edges[KITH_DEGREE_MAX]; /* a merge may change them */
    struct kith_work_result result;
    struct kith_score score;
    char error[KITH_DATA_ERROR_BYTES];
    struct kith_worker *worker = workers[record->peer];
    void **block = &blocks[record->block];
    if (work.edge_count > 0)
        memcpy(edges, tape.edges + record->edges,
               work.edge_count * sizeof *edges);
    work.edges = edges;
    switch (record->act) {
    case ACT_PREPARE:
        __real_kith_worker_prepare(worker, &work);
        break;
    case ACT_RUN:
        __real_kith_worker_run(worker, &work, &result);
        break;
    case ACT_COPY:
        if (*block == NULL)
            *block = aligned_alloc(64, tape.block_bytes);
        memcpy(*block, kith_worker_slot(worker, record->slot), record->bytes);
        break;
    case ACT_PUT:
        (void)__real_kith_worker_swap(worker, record->slot, *block);
        break;
    case ACT_READ:
        __real_kith_worker_read(worker, z);
        break;
    case ACT_SCORE:
        must(__real_kith_evaluator_score(evaluator, z, &score, error),
             "evaluation", error);
        break;
    }
}

/* The bare loop. */
static struct span run_bare(struct bout *bout)
{
    static void *blocks[BLOCKS];
    struct kith_worker *workers[PEERS];
    struct kith_evaluator *evaluator;
    char error[KITH_DATA_ERROR_BYTES] = "";
    const size_t dim = kith_model_size_of(bout->experiment.model,
                                          &bout->experiment.model_config)
                           .dim;
    double *z = malloc(dim * sizeof *z);
    memset(blocks, 0, sizeof blocks);
    (void)malloc_trim(0);
    const struct span start = {bench_now(), bench_cpu()};
    for (kith_id id = 0; id < PEERS; id++)
        must(__real_kith_worker_open(&tape.configs[id], &workers[id], error),
             "worker", error);
    must(kith_evaluator_open(&bout->experiment, bout->experiment.backend,
                             &bout->dataset->test, &evaluator, error),
         "evaluator", error);
    for (size_t i = 0; i < tape.count; i++)
        play(&tape.records[i], workers, blocks, z, evaluator);
    const struct span took = span_from(start);
    for (kith_id id = 0; id < PEERS; id++) {
        if (memcmp(kith_worker_slot(workers[id], KITH_SLOT_LIVE),
                   tape.models[id], dim * sizeof(float)) != 0)
            must(KITH_EMISMATCH, "bare", "the models are not the same");
        __real_kith_worker_close(workers[id]);
    }
    kith_evaluator_close(evaluator);
    for (uint32_t i = 0; i < BLOCKS; i++)
        free(blocks[i]);
    free(z);
    return took;
}

/* One run, recorded. */
static void record_run(struct bout *bout)
{
    tape.count = tape.edge_count = 0;
    memset(tape.blocks, 0, sizeof tape.blocks);
    memset(tape.sent, 0, sizeof tape.sent);
    for (kith_id id = 0; id < PEERS; id++)
        free(tape.models[id]);
    tape.on = true;
    (void)run_sim(bout);
    tape.on = false;
}

static void open_bout(struct bout *bout, const struct kith_algorithm *algorithm)
{
    struct choice choice = {algorithm->name, "topology: torus", 1};
    for (size_t i = 0; i < sizeof choices / sizeof *choices; i++)
        if (strcmp(choices[i].name, algorithm->name) == 0)
            choice = choices[i];
    char text[2048], error[KITH_EXPERIMENT_ERROR_BYTES];
    const unsigned steps = (unsigned)bench_setting("BENCH_STEPS", 200);
    const int size = snprintf(
        text, sizeof text,
        "name: digits\nseed: 7\npeers: %d\nstop: {steps: %u}\n"
        "model: {kind: mlp, layers: [64, 128, 10]}\nevaluate: end\n"
        "data: {kind: idx, path: %s/../examples/data/digits, split: iid}\n"
        "train: {learning_rate: 0.02, momentum: 0.9, batch: 16}\n"
        "gossip: {algorithm: %s, %s}\n"
        "compute: {step: 1ms}\n",
        PEERS, steps / choice.divide, BENCH_FOLDER, algorithm->name,
        choice.gossip);
    must(kith_experiment_parse("digits", text, (size_t)size, NULL, 0,
                               &bout->experiment, error),
         algorithm->name, error);
}

static uint32_t degree_of(const struct bout *bout)
{
    uint32_t most = 0;
    const struct kith_topology *graph = &bout->experiment.gossip.graph;
    if (bout->experiment.gossip.algorithm->pattern == KITH_PATTERN_NONE)
        return 0;
    for (kith_id id = 0; id < PEERS; id++) {
        const uint32_t degree = kith_topology_degree(graph, id);
        most = degree > most ? degree : most;
    }
    return most;
}

/* sim : bare, and whether it was as asked. */
static bool compare(const struct kith_algorithm *algorithm,
                    const struct kith_dataset *dataset, const char *folder,
                    double *ratio)
{
    static double walls[BENCH_ROUNDS_MAX], cpus[BENCH_ROUNDS_MAX];
    static double sims[BENCH_ROUNDS_MAX], bares[BENCH_ROUNDS_MAX];
    const int rounds = (int)bench_setting("BENCH_ROUNDS", 5);
    struct bout bout = {.dataset = dataset};
    snprintf(bout.folder, sizeof bout.folder, "%s", folder);
    open_bout(&bout, algorithm);
    record_run(&bout);
    for (int i = 0; i < rounds; i++) {
        const struct span sim = run_sim(&bout), bare = run_bare(&bout);
        walls[i] = sim.wall / bare.wall;
        cpus[i] = sim.cpu / bare.cpu;
        sims[i] = sim.wall;
        bares[i] = bare.wall;
    }
    const struct bench_spread wall = bench_spread_of(walls, rounds);
    *ratio = wall.median;
    printf("%-18s sim:bare %5.2f [%.2f..%.2f] %-6s # CPU %.2f, %.2f s : %.2f "
           "s, %s <= %u\n",
           algorithm->name, wall.median, wall.least, wall.most,
           wall.median <= MOST ? "met" : "MISSED",
           bench_spread_of(cpus, rounds).median,
           bench_spread_of(sims, rounds).median,
           bench_spread_of(bares, rounds).median,
           bout.experiment.gossip.topology->name, degree_of(&bout));
    fflush(stdout);
    kith_experiment_close(&bout.experiment);
    return wall.median <= MOST;
}

static bool is_chosen(const char *name, int count, char **words)
{
    for (int word = 1; word < count; word++)
        if (strcmp(words[word], name) == 0)
            return true;
    return count == 1;
}

int main(int count, char **words)
{
    char folder[] = "/dev/shm/kith-bench-XXXXXX", error[KITH_DATA_ERROR_BYTES];
    struct kith_dataset dataset;
    struct bout first = {.dataset = NULL};
    const char *worst = "none";
    double most = 0;
    unsigned compared = 0, missed = 0;
    kith_backend_threads(1);
    if (mkdtemp(folder) == NULL)
        must(KITH_EIO, folder, "cannot be made");
    open_bout(&first, kith_algorithm_find("local"));
    must(kith_dataset_open(&first.experiment.data.config, &dataset, error),
         "digits", error);
    printf("# kith sim : bare loop, wall time, %d peers, digits, MLP "
           "64-128-10; asked <= %.2f\n",
           PEERS, MOST);
    for (unsigned i = 0; kith_algorithms[i] != NULL; i++) {
        double ratio;
        if (!is_chosen(kith_algorithms[i]->name, count, words))
            continue;
        compared++;
        missed += !compare(kith_algorithms[i], &dataset, folder, &ratio);
        if (ratio > most) {
            most = ratio;
            worst = kith_algorithms[i]->name;
        }
    }
    printf("worst: %s %.2f; missed: %u of %u\n", worst, most, missed, compared);
    kith_dataset_close(&dataset);
    kith_experiment_close(&first.experiment);
    (void)rmdir(folder);
    return 0;
}
