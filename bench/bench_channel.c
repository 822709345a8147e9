/* Authenticated exchange both ways between two processes, against the serial
 * law of what it is made of:
 *
 *   rate = 1 / (1 / plain + 1 / seal + 1 / open)
 *
 * plain: two processes, one thread each, sending and receiving at once; seal
 * and open: whole bursts through the session in memory, by one process alone;
 * all in the same rounds.
 * Ours is kith_transport with everything that links do: both sides send models
 * as fast as they go and receive into an inbox, the finite gate included.
 * Target: 0.88 of the law. */
#include "bench/plain.h"

#include <uv.h>

#include "src/peer/transport.h"
#include "tests/support/peers.h"
#include "tests/support/sessions.h"

#define MODEL_BYTES ((size_t)64 << 20)

/* ---- ours */

/* When an end had its first model, and its last. In shared memory. */
struct span {
    double first_s, last_s;
};

struct end {
    uv_loop_t loop;
    struct kith_transport transport;
    uint8_t *source, *target;
    kith_id self;
    size_t count, received, sent;
    struct span *span;
};

static void send_model(struct end *end)
{
    const struct kith_message model = {.kind = KITH_MESSAGE_MODEL,
                                       .pattern = KITH_PATTERN_PUSH,
                                       .mine = true,
                                       .payload_bytes = MODEL_BYTES,
                                       .slot = KITH_SLOT_INITIATED_SENT};
    end->sent++;
    kith_transport_send(&end->transport, 1 - end->self, &model);
}

static void end_up(void *arg, kith_id peer)
{
    (void)peer;
    struct end *end = arg;
    if (end->self == 1)
        send_model(end);
}

static void end_down(void *arg, kith_id peer)
{
    (void)arg;
    (void)peer;
}

/* One model waits behind the one on its way, so both directions are always
 * busy, and neither can run away from the other. The first model warms pages
 * and windows up. */
static void end_message(void *arg, kith_id from, const struct kith_message *m)
{
    struct end *end = arg;
    (void)from;
    if (m->kind != KITH_MESSAGE_MODEL)
        return;
    if (end->received++ == 0)
        end->span->first_s = bench_now();
    while (end->sent < end->received + 2 && end->sent < end->count)
        send_model(end);
    if (end->received == end->count) {
        end->span->last_s = bench_now();
        kith_transport_leave(&end->transport);
    }
}

static uint32_t end_inbox(void *arg, kith_id from, const struct kith_message *m)
{
    (void)arg;
    (void)from;
    (void)m;
    return KITH_SLOT_ANSWERED_INBOX;
}

static void *end_slot(void *arg, uint32_t slot)
{
    const struct end *end = arg;
    return slot == KITH_SLOT_ANSWERED_INBOX ? end->target : end->source;
}

static void run_end(const struct peers *peers, kith_id self, int fd,
                    const struct kith_aead *aead, size_t count,
                    struct span *span)
{
    static struct end end;
    memset(&end, 0, sizeof end);
    end.self = self;
    end.count = count;
    end.span = span;
    end.source = bench_alloc(MODEL_BYTES);
    end.target = bench_alloc(MODEL_BYTES);
    memset(end.source, 0, MODEL_BYTES);
    memset(end.target, 0, MODEL_BYTES);
    struct kith_transport_options options = {
        .members = peers->members,
        .peers = 2,
        .self = self,
        .identity = &peers->identities[self],
        .trust = &peers->trust,
        .suite = KITH_SUITE_AESGCM,
        .aead = aead,
        .hello = {.rank = self, .model = "bench"},
        .backend = peers->experiment.backend,
        .payload_bytes = MODEL_BYTES,
        .congestion = BENCH_CONGESTION,
        .user = {&end, end_up, end_down, end_message, end_inbox, end_slot},
    };
    kith_peer_limits_default(&options.limits);
    uv_loop_init(&end.loop);
    if (kith_transport_init(&end.transport, &end.loop, &options, fd) != KITH_OK)
        exit(1);
    kith_transport_unhold(&end.transport);
    if (self == 0)
        send_model(&end);
    while (!end.transport.stopping || !kith_transport_is_empty(&end.transport))
        uv_run(&end.loop, UV_RUN_ONCE);
    kith_transport_stop(&end.transport);
    uv_run(&end.loop, UV_RUN_DEFAULT);
    kith_transport_free(&end.transport);
    uv_loop_close(&end.loop);
    munmap(end.source, MODEL_BYTES);
    munmap(end.target, MODEL_BYTES);
}

/* GB/s per direction, from the first model that arrived anywhere until the last
 * one has: at least `count - 1` models each way lie between. */
static double channel(struct peers *peers, const struct kith_aead *aead,
                      size_t count, struct span span[2])
{
    fflush(NULL);
    const pid_t child = fork();
    if (child == 0) {
        close(peers->listen_fds[0]);
        bench_pin(1);
        run_end(peers, 1, peers->listen_fds[1], aead, count, &span[1]);
        _exit(0);
    }
    close(peers->listen_fds[1]);
    run_end(peers, 0, peers->listen_fds[0], aead, count, &span[0]);
    waitpid(child, NULL, 0);
    for (kith_id i = 0; i < 2; i++) {
        char error[KITH_PEER_ERROR_BYTES];
        if (kith_peer_listen(peers->members[i].address, &peers->listen_fds[i],
                             NULL, error) != KITH_OK)
            exit(1);
    }
    const bool later = span[1].first_s > span[0].first_s;
    const bool longer = span[1].last_s > span[0].last_s;
    return 1e-9 * (double)((count - 1) * MODEL_BYTES) /
           (span[longer].last_s - span[!later].first_s);
}

/* ---- what it is made of */

static double plain(size_t total)
{
    int fds[2];
    uint8_t *source = bench_alloc(BENCH_TENSOR);
    uint8_t *target = bench_alloc(BENCH_TENSOR);
    memset(source, 1, BENCH_TENSOR);
    memset(target, 1, BENCH_TENSOR);
    bench_socket_pair(fds);
    fflush(NULL);
    const pid_t child = fork();
    if (child == 0) {
        close(fds[0]);
        bench_pin(1);
        memset(source, 2, BENCH_TENSOR);
        memset(target, 2, BENCH_TENSOR);
        bench_plain_duplex(fds[1], source, target, 2 * BENCH_WRITE);
        bench_plain_duplex(fds[1], source, target, total);
        _exit(0);
    }
    close(fds[1]);
    bench_plain_duplex(fds[0], source, target, 2 * BENCH_WRITE);
    const double began = bench_now();
    bench_plain_duplex(fds[0], source, target, total);
    const double rate = 1e-9 * (double)total / (bench_now() - began);
    close(fds[0]);
    waitpid(child, NULL, 0);
    munmap(source, BENCH_TENSOR);
    munmap(target, BENCH_TENSOR);
    return rate;
}

/* GB/s of sealing and of opening whole bursts. */
static void records(const struct kith_aead *aead, size_t total, double *seal,
                    double *open)
{
    struct sessions pair;
    uint8_t *source = bench_alloc(BENCH_TENSOR);
    uint8_t *target = bench_alloc(BENCH_TENSOR);
    const size_t room = kith_session_burst_size(KITH_BURST_BYTES);
    uint8_t *wire = malloc(room);
    double sealing = 0, opening = 0;
    size_t size = 0;
    memset(source, 1, BENCH_TENSOR);
    memset(target, 1, BENCH_TENSOR);
    sessions_setup(&pair, KITH_SUITE_AESGCM, aead, 1);
    if (!sessions_start(&pair) || !sessions_connect(&pair))
        exit(1);
    for (size_t done = 0; done < total; done += KITH_BURST_BYTES) {
        const size_t at = done % (BENCH_TENSOR - KITH_BURST_BYTES) / 64 * 64;
        const double t0 = bench_now();
        if (kith_session_seal_burst(pair.ends[0].session,
                                    &(const struct kith_session_burst){
                                        1, done, source + at, KITH_BURST_BYTES},
                                    wire, room, &size) != KITH_OK)
            exit(1);
        const double t1 = bench_now();
        pair.ends[1].sink = target + at;
        if (sessions_feed(&pair.ends[1], wire, size) != KITH_OK)
            exit(1);
        opening += bench_now() - t1;
        sealing += t1 - t0;
    }
    *seal = 1e-9 * (double)total / sealing;
    *open = 1e-9 * (double)total / opening;
    sessions_close(&pair);
    free(wire);
    munmap(source, BENCH_TENSOR);
    munmap(target, BENCH_TENSOR);
}

int main(void)
{
    const size_t count = (size_t)bench_setting("BENCH_MODELS", 9);
    const int rounds = (int)bench_setting("BENCH_CHANNEL_ROUNDS", 5);
    double ours[8][BENCH_ROUNDS], law[8][BENCH_ROUNDS], raw[BENCH_ROUNDS];
    struct peers peers;
    bench_network();
    struct span *span = mmap(NULL, 4096, PROT_READ | PROT_WRITE,
                             MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    peers_open(&peers, "name: channel\npeers: 2\nstop: {steps: 1}\n"
                       "model: {kind: consensus, dim: 4}\n");
    bench_pin(0);
    for (int r = 0; r < rounds; r++) {
        raw[r] = plain(count * MODEL_BYTES);
        for (size_t a = 0; kith_aeads[a] != NULL && a < 8; a++) {
            double seal, open;
            if (!kith_aead_has(kith_aeads[a], KITH_SUITE_AESGCM))
                continue;
            records(kith_aeads[a], 2 * MODEL_BYTES, &seal, &open);
            law[a][r] = 1 / (1 / raw[r] + 1 / seal + 1 / open);
            ours[a][r] = channel(&peers, kith_aeads[a], count, span);
        }
    }
    bench_print("plain sockets both ways, per direction", raw, rounds, "GB/s");
    for (size_t a = 0; kith_aeads[a] != NULL && a < 8; a++) {
        char name[64];
        const char *library = kith_aead_name(kith_aeads[a]);
        if (!kith_aead_has(kith_aeads[a], KITH_SUITE_AESGCM))
            continue;
        snprintf(name, sizeof name, "serial law, AESGCM, %s", library);
        bench_print(name, law[a], rounds, "GB/s");
        snprintf(name, sizeof name, "kith channel both ways, %s", library);
        bench_print(name, ours[a], rounds, "GB/s");
        snprintf(name, sizeof name, "kith channel : serial law, %s", library);
        bench_ratio(name, ours[a], law[a], rounds, 0.88);
    }
    peers_close(&peers);
    return 0;
}
