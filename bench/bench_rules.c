/* An algorithm's arithmetic around an exchange beside plain C loops over as
 * many vectors, none of which a cache holds.
 *
 *   rule    `make`, `merge` and `finish` as the worker calls them, one
 *           neighbour, backend cpu on one thread, the last round of a cycle
 *   plain   one loop that reads and writes what the rule's formula needs at the
 *           least: u vectors in place, r only read, w only written. So a rule
 *           reads u + r and writes u + w. Where a number that depends on every
 *           coordinate stands in the formula (clipped, qg-adam), two loops
 *
 * Gate: merge and finish >= 0.85 of the plain loop's speed; make is shown. A
 * vector has BENCH_MIB (64) MiB, and so has what of it an exchange moves: of
 * allreduce-ring, whose parts are halves here, it has twice that; streaming has
 * one fragment, and every round of sparta-diloco is whole. sparta's plain loop
 * gathers and scatters at as many places, which it has in a list; a cache would
 * hold them from round to round, so both begin after a pass over other vectors,
 * as after a step of training. choco and beer have no compressor: what they
 * unpack is the vector itself. Arguments: names of algorithms (all). */
#include "bench/bench.h"

#include <math.h>

#include "kith/algorithm.h"
#include "kith/compressor.h"
#include "kith/experiment.h"
#include "kith/hash.h"
#include "kith/rng.h"

enum { ROUNDS_DEFAULT = 9, VECTORS_MAX = 24, PLAIN_MAX = 5 };
#define TARGET 0.85
enum hook { MAKE, MERGE, FINISH, HOOKS };
static const char *const hook_names[HOOKS] = {"make", "merge", "finish"};

/* Vectors that a formula changes, reads and writes. Zeros: no vector. */
struct needs {
    unsigned u, r, w;
    unsigned first; /* read by a loop before that */
};

static const struct rule {
    const char *name; /* NULL: of all others */
    struct needs needs[HOOKS];
} rules[] = {
    {"acid", {{0, 0, 0, 0}, {2, 2, 0, 0}, {0, 0, 0, 0}}},
    {"allreduce-doubling", {{0, 1, 2, 0}, {1, 1, 0, 0}, {1, 1, 0, 0}}},
    /* `merge` moves half of what `finish` does. */
    {"allreduce-ring", {{1, 0, 1, 0}, {0, 1, 1, 0}, {1, 1, 0, 0}}},
    {"allreduce-tree", {{0, 1, 1, 0}, {0, 1, 1, 0}, {1, 1, 0, 0}}},
    {"beer", {{0, 4, 2, 0}, {4, 4, 0, 0}, {0, 0, 0, 0}}},
    {"choco", {{0, 2, 1, 0}, {3, 2, 0, 0}, {0, 0, 0, 0}}},
    {"clipped", {{0, 0, 0, 0}, {0, 0, 0, 0}, {1, 2, 0, 2}}},
    {"d2", {{1, 1, 1, 0}, {1, 2, 0, 0}, {1, 2, 0, 0}}},
    {"diloco", {{0, 0, 0, 0}, {1, 2, 0, 0}, {2, 1, 0, 0}}},
    {"eager", {{4, 0, 1, 0}, {1, 1, 0, 0}, {0, 0, 0, 0}}},
    {"epidemic", {{0, 0, 0, 0}, {0, 0, 0, 0}, {1, 2, 0, 0}}},
    {"extra", {{1, 2, 1, 0}, {2, 2, 0, 0}, {0, 0, 0, 0}}},
    {"gasloc", {{1, 1, 1, 0}, {1, 2, 0, 0}, {2, 1, 1, 0}}},
    {"gosgd", {{0, 1, 1, 0}, {1, 1, 0, 0}, {0, 0, 0, 0}}},
    {"gossip-push", {{0, 0, 0, 0}, {1, 1, 0, 0}, {0, 0, 0, 0}}},
    {"gt", {{0, 2, 2, 0}, {2, 4, 0, 0}, {0, 0, 0, 0}}},
    {"noloco", {{1, 2, 2, 0}, {1, 4, 0, 0}, {2, 1, 0, 0}}},
    {"overlap-sgp", {{1, 0, 1, 0}, {1, 1, 0, 0}, {0, 0, 0, 0}}},
    {"push-pull", {{1, 1, 2, 0}, {1, 1, 0, 0}, {1, 1, 0, 0}}},
    {"qg-adam", {{0, 0, 0, 0}, {1, 2, 0, 0}, {2, 2, 0, 2}}},
    {"qg-dsgdm", {{0, 0, 0, 0}, {1, 2, 0, 0}, {1, 2, 0, 0}}},
    {"qg-dsgdm-n", {{0, 0, 0, 0}, {1, 2, 0, 0}, {1, 2, 0, 0}}},
    {"relaysgd", {{0, 1, 1, 0}, {0, 1, 1, 0}, {1, 2, 0, 0}}},
    {"running-sums", {{2, 0, 1, 0}, {2, 1, 0, 0}, {0, 0, 0, 0}}},
    {"sgp", {{1, 0, 1, 0}, {1, 1, 0, 0}, {0, 0, 0, 0}}},
    {"sgp-sync", {{1, 0, 1, 0}, {1, 1, 0, 0}, {0, 0, 0, 0}}},
    {"slowmo", {{0, 0, 0, 0}, {1, 2, 0, 0}, {2, 1, 0, 0}}},
    {"sparta-diloco", {{0, 1, 1, 0}, {1, 2, 0, 0}, {2, 1, 0, 0}}},
    {"streaming", {{0, 1, 1, 0}, {0, 0, 0, 0}, {3, 2, 0, 0}}},
    {"swarm", {{0, 1, 2, 0}, {2, 2, 0, 0}, {0, 0, 0, 0}}},
    {NULL, {{0, 0, 0, 0}, {1, 2, 0, 0}, {0, 0, 0, 0}}},
};

/* ---- Plain loops: every target gets a mean of all that is read. */

#define PLAIN_LOOP(name, READ, WRITE)                                          \
    BENCH_BEST static void name(size_t n, float *restrict *t,                  \
                                const float *restrict *s)                      \
    {                                                                          \
        float *restrict a = t[0], *restrict b = t[1];                          \
        float *restrict c = t[2], *restrict d = t[3];                          \
        const float *restrict p = s[0], *restrict q = s[1];                    \
        const float *restrict v = s[2], *restrict w = s[3];                    \
        (void)a, (void)b, (void)c, (void)d;                                    \
        (void)p, (void)q, (void)v, (void)w;                                    \
        for (size_t i = 0; i < n; i++) {                                       \
            const float m = .1f * (READ);                                      \
            WRITE;                                                             \
        }                                                                      \
    }
#define R1 p[i]
#define R2 p[i] + q[i]
#define R4 p[i] + q[i] + v[i] + w[i]
#define U1 a[i]
#define U2 a[i] + b[i]
#define U3 a[i] + b[i] + c[i]
#define U4 a[i] + b[i] + c[i] + d[i]
#define W1 a[i] = m
#define W2 a[i] = m, b[i] = -m
#define W3 a[i] = m, b[i] = -m, c[i] = m
#define W4 a[i] = m, b[i] = -m, c[i] = m, d[i] = m
PLAIN_LOOP(plain_011, R1, W1)
PLAIN_LOOP(plain_012, R1, W2)
PLAIN_LOOP(plain_021, R2, W1)
PLAIN_LOOP(plain_022, R2, W2)
PLAIN_LOOP(plain_042, R4, W2)
PLAIN_LOOP(plain_101, U1, W2)
PLAIN_LOOP(plain_110, U1 + R1, W1)
PLAIN_LOOP(plain_111, U1 + R1, W2)
PLAIN_LOOP(plain_112, U1 + R1, W3)
PLAIN_LOOP(plain_120, U1 + R2, W1)
PLAIN_LOOP(plain_121, U1 + R2, W2)
PLAIN_LOOP(plain_122, U1 + R2, W3)
PLAIN_LOOP(plain_140, U1 + R4, W1)
PLAIN_LOOP(plain_201, U2, W3)
PLAIN_LOOP(plain_210, U2 + R1, W2)
PLAIN_LOOP(plain_211, U2 + R1, W3)
PLAIN_LOOP(plain_220, U2 + R2, W2)
PLAIN_LOOP(plain_240, U2 + R4, W2)
PLAIN_LOOP(plain_320, U3 + R2, W3)
PLAIN_LOOP(plain_440, U4 + R4, W4)

/* In the names: changed, read, written. The targets that are only written stand
 * behind those that are changed. */
BENCH_BEST static void plain_401(size_t n, float *restrict *t,
                                 const float *restrict *s)
{
    float *restrict a = t[0], *restrict b = t[1], *restrict c = t[2];
    float *restrict d = t[3], *restrict e = t[4];
    (void)s;
    for (size_t i = 0; i < n; i++)
        a[i] = b[i] = c[i] = d[i] = e[i] = .1f * (U4);
}

static const struct plain {
    unsigned code;
    void (*loop)(size_t n, float *restrict *t, const float *restrict *s);
} plains[] = {{11, plain_011},  {12, plain_012},  {21, plain_021},
              {22, plain_022},  {42, plain_042},  {101, plain_101},
              {110, plain_110}, {111, plain_111}, {112, plain_112},
              {120, plain_120}, {121, plain_121}, {122, plain_122},
              {140, plain_140}, {201, plain_201}, {210, plain_210},
              {211, plain_211}, {220, plain_220}, {240, plain_240},
              {320, plain_320}, {401, plain_401}, {440, plain_440}};

/* The distance of two vectors: sums that do not wait for each other. */
typedef float lanes_t __attribute__((vector_size(64)));

BENCH_BEST static float plain_distance(size_t n, const float *x, const float *y)
{
    lanes_t one = {0}, other = {0};
    for (size_t i = 0; i + 32 <= n; i += 32) {
        lanes_t a, b, c, d;
        memcpy(&a, x + i, sizeof a);
        memcpy(&b, y + i, sizeof b);
        memcpy(&c, x + i + 16, sizeof c);
        memcpy(&d, y + i + 16, sizeof d);
        one += (a - b) * (a - b);
        other += (c - d) * (c - d);
    }
    float sum = 0;
    for (size_t k = 0; k < 16; k++)
        sum += one[k] + other[k];
    return sum;
}

/* ---- The rule. */

struct stage {
    const struct kith_algorithm *algorithm;
    struct kith_algebra algebra;
    struct kith_topology graph;
    struct kith_compression compression;
    struct kith_experiment experiment;
    struct kith_work_edge edge;
    void *memory[VECTORS_MAX];
    void *vectors[KITH_ALGORITHM_VECTORS_MAX], *edges[KITH_EDGE_VECTORS_MAX];
    const void *inboxes[1];
    double scalars[KITH_SCALARS_MAX], edge_scalars[KITH_EDGE_SCALARS];
    uint32_t *places; /* sparta's */
    size_t places_count;
};

static void fail(const char *what, const char *error)
{
    fprintf(stderr, "bench_rules: %s: %s\n", what, error);
    exit(1);
}

/* Two peers. The graph is the algorithm's own, so that its cycle is. */
static void open_graph(struct stage *stage)
{
    const struct kith_algorithm *algorithm = stage->algorithm;
    char text[512], error[KITH_EXPERIMENT_ERROR_BYTES];
    const int size = snprintf(
        text, sizeof text,
        "name: rules\npeers: 2\nstop: {steps: 10}\n"
        "model: {kind: consensus, dim: 4}\ngossip: {algorithm: %s%s%s%s}\n"
        "compute: {step: 1ms}\n",
        algorithm->name, algorithm->schedule == NULL ? ", topology: " : "",
        algorithm->schedule != NULL          ? ""
        : algorithm->flags & KITH_NEEDS_TREE ? "path"
                                             : "complete",
        strcmp(algorithm->name, "acid") == 0 ? ", mixing: 0.3, strength: 0.5"
                                             : "");
    if (kith_experiment_parse("rules", text, (size_t)size, NULL, 0,
                              &stage->experiment, error) != KITH_OK)
        fail(algorithm->name, error);
}

/* What one rule leaves behind, growing from call to call, is not the next
 * one's. */
static void refill(void *const *memory, size_t n)
{
    for (unsigned i = 0; i < VECTORS_MAX; i++) {
        float *x = memory[i];
        for (size_t k = 0; k < n; k++)
            x[k] = (float)(1 + (i + k) % 7) / 8;
    }
}

static void open_stage(struct stage *stage,
                       const struct kith_algorithm *algorithm, size_t n,
                       void *const *memory)
{
    static double coefficients[KITH_GOSSIP_KEY_COUNT];
    *stage = (struct stage){.algorithm = algorithm};
    open_graph(stage);
    memcpy(stage->memory, memory, sizeof stage->memory);
    memcpy(coefficients, stage->experiment.gossip.coefficients,
           sizeof coefficients);
    coefficients[KITH_GOSSIP_FRAGMENTS] = 1;
    coefficients[KITH_GOSSIP_OUTER_EVERY] = 1; /* every round is whole */
    const uint64_t period =
        kith_topology_period(&stage->experiment.gossip.graph);
    stage->compression = kith_experiment_compression(&stage->experiment, n);
    for (unsigned i = 0; i < KITH_ALGORITHM_VECTORS_MAX; i++)
        stage->vectors[i] = memory[8 + i];
    for (unsigned i = 0; i < KITH_EDGE_VECTORS_MAX; i++)
        stage->edges[i] = memory[14 + i];
    stage->inboxes[0] = memory[4];
    stage->algebra =
        (struct kith_algebra){.backend = kith_backend_find("cpu"),
                              .dim = n,
                              .peers = 2,
                              .self = 1,
                              .seed = 7,
                              .coefficients = coefficients,
                              .graph = &stage->experiment.gossip.graph,
                              .compression = &stage->compression,
                              .live = memory[0],
                              .scalars = stage->scalars,
                              .vectors = stage->vectors,
                              .scratch = memory[6],
                              .trained = n,
                              .rate = 0.1,
                              .every = 1,
                              .round = period > 0 ? period - 1 : 0,
                              .sent = memory[2],
                              .received = memory[4],
                              .edges = stage->edges,
                              .edge_scalars = stage->edge_scalars,
                              .edge_count = 1,
                              .edge_vectors = algorithm->edge_vectors,
                              .merged = &stage->edge,
                              .merged_count = 1,
                              .inboxes = stage->inboxes};
    if (algorithm->start != NULL)
        algorithm->start(&stage->algebra);
}

/* Scalars as they are where nothing is refused, and numbers agree. */
static void run_hook(struct stage *stage, enum hook hook)
{
    const struct kith_algorithm *algorithm = stage->algorithm;
    memcpy(stage->scalars, algorithm->scalars_start, sizeof stage->scalars);
    stage->edge = (struct kith_work_edge){.peer = 0,
                                          .sent = KITH_SLOT_ROUND_SENT,
                                          .inbox = kith_slot_inbox(0, 0),
                                          .weight = 0.5};
    if (algorithm->pattern == KITH_PATTERN_SWAP)
        stage->edge.sent = KITH_SLOT_INITIATED_SENT;
    stage->edge.scalars_received[0] =
        algorithm->flags & KITH_CHECKS_ITS_MESSAGES ? stage->edge_scalars[0]
        : stage->scalars[0] > 0                     ? stage->scalars[0]
        : algorithm->edge_vectors                   ? 1
                                                    : 0;
    stage->algebra.given = 0;
    if (hook == MAKE)
        algorithm->make(&stage->algebra, &stage->edge);
    else if (hook == MERGE)
        algorithm->merge(&stage->algebra, &stage->edge);
    else
        (void)algorithm->finish(&stage->algebra);
    if (hook == MERGE && stage->edge.refused)
        fail(algorithm->name, "merge refused what came");
}

/* ---- Beside each other. */

static bool has_hook(const struct kith_algorithm *algorithm, enum hook hook)
{
    return hook == MAKE    ? algorithm->make != NULL
           : hook == MERGE ? algorithm->merge != NULL
                           : algorithm->finish != NULL;
}

static void plain_gather(struct stage *stage, enum hook hook)
{
    float *x = stage->memory[0], *sent = stage->memory[2];
    const float *received = stage->memory[4];
    const uint32_t *places = stage->places;
    for (size_t i = 0; hook == MAKE && i < stage->places_count; i++)
        sent[i] = x[places[i]];
    for (size_t i = 0; hook == MERGE && i < stage->places_count; i++)
        x[places[i]] += .5f * (received[i] - sent[i]);
}

/* As many places, one in each run of 1 / share, as sparta's own. */
static void list_places(struct stage *stage)
{
    const double share = stage->algebra.coefficients[KITH_GOSSIP_SHARE];
    struct kith_rng rng;
    kith_rng_init(&rng, 7, KITH_STREAM_MASK, 0);
    const uint32_t each = (uint32_t)(1 / share);
    stage->places_count = stage->algebra.dim / each;
    stage->places = malloc(stage->places_count * sizeof *stage->places);
    for (size_t i = 0; i < stage->places_count; i++)
        stage->places[i] = (uint32_t)i * each + kith_rng_below(&rng, each);
}

static float sink;

/* The vectors change roles from call to call of the rule, not here: which of
 * them a loop takes does not matter. */
static void run_plain(struct stage *stage, const struct needs *needs, size_t n,
                      enum hook hook)
{
    float *t[PLAIN_MAX];
    const float *s[PLAIN_MAX];
    if (stage->places != NULL) {
        plain_gather(stage, hook);
        return;
    }
    for (unsigned i = 0; i < PLAIN_MAX; i++) {
        t[i] = stage->memory[i == 0 ? 0 : 7 + i];
        s[i] = stage->memory[i < 2 ? 2 + 2 * i : 12 + i];
    }
    if (needs->first > 0)
        sink += plain_distance(n, s[0], s[1]);
    const unsigned code = 100 * needs->u + 10 * needs->r + needs->w;
    for (size_t i = 0; i < sizeof plains / sizeof *plains; i++) {
        if (plains[i].code == code) {
            plains[i].loop(n, t, s);
            return;
        }
    }
    fail(stage->algorithm->name, "no plain loop for what it needs");
}

/* No cache holds any of x. */
static void forget_places(const struct stage *stage, size_t n)
{
    const unsigned last = VECTORS_MAX - 1;
    if (stage->places != NULL)
        sink +=
            plain_distance(2 * n, stage->memory[last], stage->memory[last - 1]);
}

static double compare(struct stage *stage, const struct needs *needs, size_t n,
                      enum hook hook)
{
    static double rule[BENCH_ROUNDS_MAX], plain[BENCH_ROUNDS_MAX];
    static double ratios[BENCH_ROUNDS_MAX];
    const int rounds = (int)bench_setting("BENCH_ROUNDS", ROUNDS_DEFAULT);
    for (int i = -1; i < rounds; i++) {
        forget_places(stage, n);
        const double start = bench_cpu();
        run_hook(stage, hook);
        const double taken = bench_cpu() - start;
        forget_places(stage, n);
        const double again = bench_cpu();
        run_plain(stage, needs, n, hook);
        if (i < 0)
            continue;
        rule[i] = taken;
        plain[i] = bench_cpu() - again;
        ratios[i] = plain[i] / rule[i];
    }
    char name[96];
    if (stage->places != NULL)
        snprintf(name, sizeof name, "%s, %s, %zu places",
                 stage->algorithm->name, hook_names[hook], stage->places_count);
    else
        snprintf(name, sizeof name, "%s, %s, %u + %u", stage->algorithm->name,
                 hook_names[hook], needs->u + needs->r + needs->first,
                 needs->u + needs->w);
    if (hook == MAKE)
        return bench_print(name, ratios, rounds, "of the plain loop");
    return bench_ratio(name, plain, rule, rounds, TARGET);
}

static const struct rule *rule_of(const struct kith_algorithm *algorithm)
{
    const struct rule *rule = rules;
    while (rule->name != NULL && strcmp(rule->name, algorithm->name) != 0)
        rule++;
    return rule;
}

/* Returns the worst of merge and finish. */
static double run_rule(const struct kith_algorithm *algorithm, size_t n,
                       void *const *memory, unsigned *missed)
{
    static struct stage stage;
    const struct rule *rule = rule_of(algorithm);
    const bool halves = strcmp(algorithm->name, "allreduce-ring") == 0;
    double worst = INFINITY;
    refill(memory, 2 * n);
    open_stage(&stage, algorithm, halves ? 2 * n : n, memory);
    if (strcmp(algorithm->name, "sparta") == 0)
        list_places(&stage);
    for (enum hook hook = MAKE; hook < HOOKS; hook++) {
        const struct needs *needs = &rule->needs[hook];
        const unsigned some = needs->u + needs->r + needs->w;
        const bool measured = some > 0 || stage.places != NULL;
        if (!has_hook(algorithm, hook) || !measured)
            continue;
        const double ratio =
            compare(&stage, needs, halves && hook == FINISH ? 2 * n : n, hook);
        if (hook != MAKE && ratio < worst)
            worst = ratio;
        *missed += hook != MAKE && ratio < TARGET;
    }
    free(stage.places);
    kith_experiment_close(&stage.experiment);
    return worst;
}

int main(int count, char **words)
{
    void *memory[VECTORS_MAX];
    const char *worst = "none";
    unsigned missed = 0;
    double least = INFINITY;
    const size_t n =
        (size_t)bench_setting("BENCH_MIB", 64) * ((1u << 20) / sizeof(float));
    bench_pin(0);
    kith_backend_threads(1);
    /* Each may be a message of two, or the whole of what is sent in halves.
     * They begin at unlike places of a page, lest all compete for the same
     * lines of a cache. */
    for (unsigned i = 0; i < VECTORS_MAX; i++) {
        const size_t at = (size_t)i * 43 * 16;
        float *x = bench_alloc((2 * n + VECTORS_MAX * 43 * 16) * sizeof *x);
        memory[i] = x += at;
        for (size_t k = 0; k < 2 * n; k++)
            x[k] = (float)(1 + (i + k) % 7) / 8;
    }
    printf("# rules : plain loops, vectors of %zu MiB, arrays read + written\n",
           n * sizeof(float) >> 20);
    for (unsigned i = 0; kith_algorithms[i] != NULL; i++) {
        const struct kith_algorithm *algorithm = kith_algorithms[i];
        bool chosen = count == 1;
        for (int word = 1; word < count; word++)
            chosen = chosen || strcmp(words[word], algorithm->name) == 0;
        /* Lists are found value by value, beside which no plain loop is. */
        if (!chosen || algorithm->merge == NULL ||
            kith_algorithm_sends_bytes(algorithm) ||
            (algorithm->flags & KITH_NEEDS_HOST) != 0)
            continue;
        const double ratio = run_rule(algorithm, n, memory, &missed);
        if (ratio < least) {
            least = ratio;
            worst = algorithm->name;
        }
    }
    printf("worst: %s, %.3f of the plain loop; %u missed\n", worst, least,
           missed);
    return 0;
}
