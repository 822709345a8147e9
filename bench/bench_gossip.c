/* Gossip messages per second at 10^5 peers, and what an idle peer costs.
 *
 *   bare   averaging with one of 20 random neighbours per period, request and
 *          answer with a random latency, over bench/calendar.h: nothing else
 *   kith   the same shape through kith_node_step: adpsgd on a graph of 20
 *          neighbours, `model: none`, `wire: sized`, trace hash on. Each
 *          exchange is REQUEST, ACCEPT, MODEL, MODEL, ACK
 *   steps  kith_node_step for the same exchanges and nothing else
 *          (steps_alone.h): what no loop around it can pass
 *
 * Both sides have the same shape. The bare kernel's timers are spread over the
 * period, so kith's steps last an exponential time of it. The bare kernel's
 * graph is a table, so ours is a list of offsets. It knows no connections, so
 * the run is long enough that in the half that is timed nearly all neighbours
 * have met; what handshakes are left cost time and are not counted as messages.
 *
 * Gate: >= 0.35 of the bare kernel (goal 0.5), and <= 512 bytes per idle peer,
 * the slope of memory between 10^4 and 10^5 peers.
 * BENCH_PEERS and BENCH_STEPS change the size, BENCH_EXCHANGES how many a peer
 * may have at a time (0: as many as usual), BENCH_THREADS how many threads of
 * kith sim share the events: its time is measured then, and not its processor
 * time as of the other two, so that the machine must be quiet. */
#include "bench/bench.h"
#include "bench/calendar.h"
#include "bench/steps_alone.h"

#include <sys/wait.h>
#include <unistd.h>

#include "kith/sim.h"

enum { ROUNDS = 3, NEIGHBOURS = 20, FAR_OFF = 4801 };
#define TIMER UINT32_MAX
#define ANSWER (UINT32_C(1) << 31)

struct bare {
    struct bench_calendar calendar;
    uint32_t *neighbours; /* (peers, NEIGHBOURS) */
    float *x;             /* (peers) */
    uint64_t dice, messages;
};

static void bare_send(struct bare *bare, double now, uint32_t to, uint32_t from,
                      float value)
{
    const double latency = 0.01 + 0.04 * bench_uniform(&bare->dice);
    bench_calendar_push(
        &bare->calendar,
        (struct bench_event){
            .time = now + latency, .node = to, .from = from, .value = value});
    bare->messages++;
}

static void bare_step(struct bare *bare, struct bench_event event)
{
    const uint32_t node = event.node;
    if (event.from == TIMER) {
        const uint32_t *row = bare->neighbours + (size_t)node * NEIGHBOURS;
        const uint32_t to = row[bench_random(&bare->dice) % NEIGHBOURS];
        bare_send(bare, event.time, to, node, bare->x[node]);
        event.time += 1;
        bench_calendar_push(&bare->calendar, event);
        return;
    }
    if (!(event.from & ANSWER))
        bare_send(bare, event.time, event.from, node | ANSWER, bare->x[node]);
    bare->x[node] = 0.5f * (bare->x[node] + event.value);
}

static double bare_rate(size_t peers, size_t periods)
{
    const size_t capacity = 4 * peers + 16;
    struct bare bare = {.dice = 7};
    bench_calendar_open(&bare.calendar, capacity, (double)peers);
    const size_t graph_bytes = peers * NEIGHBOURS * sizeof *bare.neighbours;
    bare.neighbours = (uint32_t *)bench_alloc(graph_bytes);
    bare.x = (float *)bench_alloc(peers * sizeof *bare.x);
    for (size_t i = 0; i < peers * NEIGHBOURS; i++)
        bare.neighbours[i] = (uint32_t)(bench_random(&bare.dice) % peers);
    for (uint32_t i = 0; i < peers; i++) {
        bare.x[i] = (float)i;
        bench_calendar_push(
            &bare.calendar,
            (struct bench_event){
                .time = bench_uniform(&bare.dice), .node = i, .from = TIMER});
    }
    const double start = bench_cpu();
    for (;;) {
        const struct bench_event event = bench_calendar_pop(&bare.calendar);
        if (event.time >= (double)periods)
            break;
        bare_step(&bare, event);
    }
    const double rate = (double)bare.messages / (bench_cpu() - start) * 1e-6;
    bench_calendar_close(&bare.calendar, capacity);
    munmap(bare.neighbours, graph_bytes);
    munmap(bare.x, peers * sizeof *bare.x);
    return rate;
}

/* 20 neighbours near and far, the same offsets for every peer: undirected. Of
 * few peers no two offsets come to the same one. */
static uint32_t graph_degree(const struct kith_topology *topology, kith_id self)
{
    (void)topology;
    (void)self;
    return NEIGHBOURS;
}

/* The sorting is of offsets that are sorted already but for the wrap-around:
 * the bare kernel's graph is a table, so ours must not cost much either. */
static void graph_neighbours(const struct kith_topology *topology,
                             struct kith_neighbours *list)
{
    static const int32_t far[] = {1,    13,   101,  499,  997,
                                  1499, 2003, 2999, 4001, FAR_OFF};
    static const int32_t near[] = {1,   13,  50,  101, 150,
                                   199, 250, 307, 401, 499};
    const int32_t *offsets = topology->peers > 2 * FAR_OFF ? far : near;
    const uint32_t peers = topology->peers;
    kith_id *const out = list->ids;
    list->count = NEIGHBOURS;
    for (uint32_t i = 0; i < NEIGHBOURS; i++) {
        const int32_t offset = i < NEIGHBOURS / 2
                                   ? -offsets[NEIGHBOURS / 2 - 1 - i]
                                   : offsets[i - NEIGHBOURS / 2];
        int64_t id = (int64_t)list->self + offset;
        if (id < 0 || id >= peers)
            id = (id + FAR_OFF * (int64_t)peers) % peers;
        const kith_id wrapped = (kith_id)id;
        uint32_t at = i;
        for (; at > 0 && out[at - 1] > wrapped; at--)
            out[at] = out[at - 1];
        out[at] = wrapped;
    }
}

static const struct kith_topology_kind graph = {
    .name = "twenty",
    .paper = "-",
    .summary = "20 neighbours, near and far",
    .is_static = true,
    .degree = graph_degree,
    .neighbours = graph_neighbours,
};

static double elapsed(void)
{
    return bench_setting("BENCH_THREADS", 1) > 1 ? bench_now() : bench_cpu();
}

/* The second half of a run: by then most neighbours have met. */
struct half {
    double start;
    uint64_t messages;
};

static void note_half(const struct sim_progress *progress, void *arg)
{
    struct half *half = arg;
    if (half->start == 0 && 2 * progress->steps_done > progress->steps_total) {
        half->start = elapsed();
        half->messages = progress->messages;
    }
}

static void fail(const char *error)
{
    fprintf(stderr, "bench_gossip: %s\n", error);
    exit(1);
}

static void experiment_of(size_t peers, size_t steps, const char *algorithm,
                          struct kith_experiment *experiment)
{
    char text[512];
    char error[KITH_EXPERIMENT_ERROR_BYTES];
    snprintf(text, sizeof text,
             "name: gossip\nseed: 1\npeers: %zu\nstop: {steps: %zu}\n"
             "model: {kind: none}\n"
             "gossip: {algorithm: %s, topology: ring, exchanges: %u}\n"
             "network: {latency: 10ms, jitter: 20ms}\n"
             "compute: {step: 1s%s}\nsave: never\n",
             peers, steps, algorithm,
             (unsigned)bench_setting("BENCH_EXCHANGES", 0),
             strcmp(algorithm, "local") != 0 ? ", spread: exponential" : "");
    if (kith_experiment_parse("gossip", text, strlen(text), NULL, 0, experiment,
                              error) != KITH_OK)
        fail(error);
    experiment->gossip.topology = &graph;
}

/* Messages a second; *exchanges: of those done per message. */
static double kith_rate(size_t peers, size_t steps, const char *algorithm,
                        struct sim_report *report, double *exchanges)
{
    char error[SIM_ERROR_BYTES];
    struct kith_experiment experiment;
    experiment_of(peers, steps, algorithm, &experiment);
    struct half half = {0, 0};
    const struct sim_options options = {
        .experiment = &experiment,
        .progress = note_half,
        .arg = &half,
        .cores = (unsigned)sysconf(_SC_NPROCESSORS_ONLN),
        .threads = strcmp(algorithm, "local") != 0
                       ? (unsigned)bench_setting("BENCH_THREADS", 1)
                       : 1};
    struct kith_summary summary;
    if (sim_run(&options, &summary, report, error) != KITH_OK)
        fail(error);
    kith_experiment_close(&experiment);
    *exchanges = (double)summary.exchanges.done / (double)report->messages;
    return (double)(report->messages - half.messages) /
           (elapsed() - half.start) * 1e-6;
}

static double steps_rate(size_t peers, size_t steps, double *exchanges)
{
    struct kith_experiment experiment;
    experiment_of(peers, steps, "adpsgd", &experiment);
    const double rate = alone_rate(&experiment, steps, exchanges);
    kith_experiment_close(&experiment);
    return rate;
}

/* Resident bytes of a process that has just run `peers` peers which train and
 * never speak: its peak, seen by its parent. */
static double idle_bytes(size_t peers)
{
    int ends[2];
    if (pipe(ends) != 0)
        exit(1);
    const pid_t child = fork();
    if (child == 0) {
        struct sim_report report;
        double exchanges;
        (void)kith_rate(peers, 2, "local", &report, &exchanges);
        FILE *status = fopen("/proc/self/status", "r");
        char line[256];
        double kib = 0;
        while (status && fgets(line, sizeof line, status))
            if (sscanf(line, "VmHWM: %lf", &kib) == 1)
                break;
        const ssize_t sent = write(ends[1], &kib, sizeof kib);
        _exit(sent == (ssize_t)sizeof kib ? 0 : 1);
    }
    double kib = 0;
    int status = 0;
    if (child < 0 || read(ends[0], &kib, sizeof kib) != (ssize_t)sizeof kib ||
        waitpid(child, &status, 0) != child || status != 0) {
        fprintf(stderr, "bench_gossip: cannot measure memory\n");
        exit(1);
    }
    close(ends[0]);
    close(ends[1]);
    return 1024 * kib;
}

int main(void)
{
    if (bench_setting("BENCH_THREADS", 1) <= 1)
        bench_pin(0);
    const size_t peers = (size_t)bench_setting("BENCH_PEERS", 100000);
    const size_t steps = (size_t)bench_setting("BENCH_STEPS", 60);
    double bare[ROUNDS], alone[ROUNDS], kith[ROUNDS], done[ROUNDS], share,
        alone_share = 0;
    struct sim_report report;
    for (int i = 0; i < ROUNDS; i++) {
        bare[i] = bare_rate(peers, steps);
        alone[i] = steps_rate(peers, steps, &alone_share);
        kith[i] = kith_rate(peers, steps, "adpsgd", &report, &share);
        done[i] = kith[i] * share * 1000;
    }
    printf("%zu peers, %zu steps: %llu messages, %llu handshakes\n", peers,
           steps, (unsigned long long)report.messages,
           (unsigned long long)report.handshakes);
    if (!(alone_share > 0.9 * share && alone_share < 1.1 * share))
        fail("the steps alone are not those of kith sim");
    bench_print("bare gossip kernel", bare, ROUNDS, "M messages/s");
    bench_print("kith_node_step alone", alone, ROUNDS, "M messages/s");
    bench_print("kith sim, adpsgd", kith, ROUNDS, "M messages/s");
    bench_print("kith sim, adpsgd, of these", done, ROUNDS, "k exchanges/s");
    if (report.windows_text[0] != '\0')
        printf("%s\n", report.windows_text);
    printf("messages an exchange: %.2f of kith sim, %.2f of its steps alone\n",
           1 / share, 1 / alone_share);
    bench_ratio("steps alone : bare", alone, bare, ROUNDS, 0);
    bench_ratio("kith : steps alone", kith, alone, ROUNDS, 0);
    bench_ratio("kith : bare", kith, bare, ROUNDS, 0.35);
    const double slope = (idle_bytes(100000) - idle_bytes(10000)) / 90000;
    printf("%-48s %10.0f bytes, target <= 512: %s\n", "an idle peer", slope,
           slope <= 512 ? "met" : "MISSED");
    return 0;
}
