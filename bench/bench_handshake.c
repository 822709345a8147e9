/* Handshakes per second over loopback against the sum of their operations:
 *
 *   rate = 2 cores / (both sides' handshake in memory + TCP set-up)
 *
 * in CPU seconds of all processes, which a busy machine disturbs least. Ours is
 * kith_transport, one process and one loop per core: rank 0 dials eight others
 * at once, both sides prove themselves, HELLOs are exchanged, the link is
 * closed, again and again. The operations: the same handshake between two
 * sessions in memory, and connect + accept + close. What the law leaves out,
 * four writes, four reads and the loop's waiting, is ours to keep small.
 * Target: 0.8. */
#include "bench/plain.h"

#include <signal.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <uv.h>

#include "src/peer/transport.h"
#include "tests/support/peers.h"
#include "tests/support/sessions.h"

#define AT_ONCE 8

static void end_link(void *arg, kith_id peer)
{
    (void)arg;
    (void)peer;
}

static void end_message(void *arg, kith_id from, const struct kith_message *m)
{
    (void)arg;
    (void)from;
    (void)m;
}

static uint32_t end_inbox(void *arg, kith_id from, const struct kith_message *m)
{
    (void)arg;
    (void)from;
    (void)m;
    return KITH_SLOT_NONE;
}

static void *end_slot(void *arg, uint32_t slot)
{
    (void)arg;
    (void)slot;
    return NULL;
}

static void open_end(struct kith_transport *end, uv_loop_t *loop,
                     const struct peers *peers, kith_id self)
{
    struct kith_transport_options options = {
        .members = peers->members,
        .peers = peers->experiment.peers,
        .self = self,
        .identity = &peers->identities[self],
        .trust = &peers->trust,
        .suite = KITH_SUITE_AESGCM,
        .hello = {.rank = self, .model = "bench"},
        .backend = peers->experiment.backend,
        .payload_bytes = 64,
        .congestion = BENCH_CONGESTION,
        .user = {end, end_link, end_link, end_message, end_inbox, end_slot},
    };
    kith_peer_limits_default(&options.limits);
    /* The pace that a member is held to is not what is measured. */
    options.limits.handshake_rate = options.limits.handshake_burst = 1000000;
    if (kith_transport_init(end, loop, &options, peers->listen_fds[self]) !=
        KITH_OK)
        exit(1);
    kith_transport_unhold(end);
}

/* The answering process, all ranks but 0 on one loop: until it is killed. */
static void answer(const struct peers *peers)
{
    static struct kith_transport ends[AT_ONCE + 1];
    uv_loop_t loop;
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    bench_pin(1);
    uv_loop_init(&loop);
    for (kith_id rank = 1; rank <= AT_ONCE; rank++)
        open_end(&ends[rank], &loop, peers, rank);
    uv_run(&loop, UV_RUN_DEFAULT);
}

/* A send dials; what would be said then is taken back. */
static void dial(struct kith_transport *end, kith_id rank)
{
    const struct kith_message hello = {.kind = KITH_MESSAGE_BYE,
                                       .slot = KITH_SLOT_NONE};
    struct kith_member_state *member = &end->members[rank];
    if (member->link != NULL || member->dialled != NULL)
        return;
    kith_transport_send(end, rank, &hello);
    member->waiting_count = 0;
}

/* Keeps AT_ONCE dials under way until `count` sessions have opened; a session
 * that is open is closed at once. Ranks 1.. stand for the places. */
static void ask(const struct peers *peers, uint32_t count)
{
    static struct kith_transport end;
    uv_loop_t loop;
    uv_loop_init(&loop);
    open_end(&end, &loop, peers, 0);
    while (end.connected < count) {
        struct kith_link *next;
        for (struct kith_link *l = end.links; l != NULL; l = next) {
            next = l->next;
            if (l->state == KITH_LINK_OPEN)
                kith_link_close(l, "measured");
        }
        for (kith_id rank = 1; rank <= AT_ONCE; rank++)
            dial(&end, rank);
        uv_run(&loop, UV_RUN_ONCE);
    }
    kith_transport_stop(&end);
    uv_run(&loop, UV_RUN_DEFAULT);
    kith_transport_free(&end);
    uv_loop_close(&loop);
}

static void listen_again(struct peers *peers, kith_id rank)
{
    char error[KITH_PEER_ERROR_BYTES];
    if (kith_peer_listen(peers->members[rank].address, &peers->listen_fds[rank],
                         NULL, error) != KITH_OK)
        exit(1);
}

/* CPU seconds of this process and of the children that have ended. */
static double cpu_of_all(void)
{
    struct rusage self, children;
    getrusage(RUSAGE_SELF, &self);
    getrusage(RUSAGE_CHILDREN, &children);
    return (double)(self.ru_utime.tv_sec + self.ru_stime.tv_sec +
                    children.ru_utime.tv_sec + children.ru_stime.tv_sec) +
           1e-6 *
               (double)(self.ru_utime.tv_usec + self.ru_stime.tv_usec +
                        children.ru_utime.tv_usec + children.ru_stime.tv_usec);
}

/* Our core dials, core 1 answers. */
static double ours(struct peers *peers, uint32_t count)
{
    const double before = cpu_of_all();
    fflush(NULL);
    const pid_t child = fork();
    if (child == 0) {
        answer(peers);
        _exit(1);
    }
    for (kith_id rank = 1; rank <= AT_ONCE; rank++)
        close(peers->listen_fds[rank]);
    ask(peers, count);
    kill(child, SIGKILL);
    waitpid(child, NULL, 0);
    const double rate = 2 * count / (cpu_of_all() - before);
    for (kith_id rank = 0; rank <= AT_ONCE; rank++)
        listen_again(peers, rank);
    return rate;
}

/* ---- the operations */

static double handshakes(uint32_t count)
{
    struct sessions pair;
    double seconds = 0;
    for (uint32_t i = 0; i < count; i++) {
        sessions_setup(&pair, KITH_SUITE_AESGCM, NULL, i + 1);
        const double began = bench_cpu();
        if (!sessions_start(&pair) || !sessions_connect(&pair))
            exit(1);
        sessions_close(&pair);
        seconds += bench_cpu() - began;
    }
    return seconds / count;
}

/* connect + accept + close, on a listener that stands already. */
static double set_ups(uint32_t count)
{
    struct sockaddr_in at = {.sin_family = AF_INET};
    socklen_t size = sizeof at;
    at.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    const int listener = socket(AF_INET, SOCK_STREAM, 0);
    if (bind(listener, (void *)&at, sizeof at) != 0 ||
        listen(listener, AT_ONCE) != 0 ||
        getsockname(listener, (void *)&at, &size) != 0)
        exit(1);
    const double began = bench_cpu();
    for (uint32_t i = 0; i < count; i++) {
        const int dialled = socket(AF_INET, SOCK_STREAM, 0);
        if (connect(dialled, (void *)&at, size) != 0)
            exit(1);
        const int accepted = accept(listener, NULL, NULL);
        bench_socket_options(dialled);
        bench_socket_options(accepted);
        close(dialled);
        close(accepted);
    }
    const double seconds = bench_cpu() - began;
    close(listener);
    return seconds / count;
}

/* What two cores could do if there were nothing else. A child keeps the other
 * core as busy as it is in ours. */
static double operations(uint32_t count)
{
    fflush(NULL);
    const pid_t child = fork();
    if (child == 0) {
        bench_pin(1);
        (void)handshakes(count);
        _exit(0);
    }
    const double handshake = handshakes(count);
    waitpid(child, NULL, 0);
    return 2 / (handshake + set_ups(count));
}

int main(void)
{
    double mine[BENCH_ROUNDS], floor[BENCH_ROUNDS];
    const uint32_t count = (uint32_t)bench_setting("BENCH_HANDSHAKES", 3000);
    struct peers peers;
    bench_network();
    peers_open(&peers, "name: handshake\npeers: 9\nstop: {steps: 1}\n"
                       "model: {kind: consensus, dim: 4}\n");
    bench_pin(0);
    for (int r = 0; r < BENCH_ROUNDS; r++) {
        floor[r] = operations(count);
        mine[r] = ours(&peers, count);
    }
    bench_print("sum of operations, both cores", floor, BENCH_ROUNDS, "1/s");
    bench_print("handshakes over loopback", mine, BENCH_ROUNDS, "1/s");
    bench_ratio("handshakes : sum of operations", mine, floor, BENCH_ROUNDS,
                0.8);
    peers_close(&peers);
    return 0;
}
