#define _GNU_SOURCE
#include "host_pair.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "kith/backend.h"
#include "tests/support/sessions.h"

struct pair_side pair_sides[PAIR_SIDES];
uv_loop_t pair_loop;
bool pair_has_none;

static uv_timer_t heartbeat;
static struct sessions_cluster cluster;
static struct kith_member members[PAIR_SIDES];
static int listeners[PAIR_SIDES];

static void on_up(void *arg, kith_id peer)
{
    struct pair_side *side = arg;
    (void)peer;
    side->up++;
}

static void on_down(void *arg, kith_id peer)
{
    (void)arg, (void)peer;
}

static void on_message(void *arg, kith_id from, const struct kith_message *m)
{
    struct pair_side *side = arg;
    (void)from;
    if (m->kind != KITH_MESSAGE_MODEL)
        return;
    assert_true(m->finite);
    side->models += m->slot == PAIR_SLOT;
    side->unwanted += m->slot == KITH_SLOT_NONE;
}

static uint32_t on_inbox(void *arg, kith_id from, const struct kith_message *m)
{
    struct pair_side *side = arg;
    (void)from, (void)m;
    if (++side->asked == side->refill_at)
        kith_shared_refill(&pair_sides[side == &pair_sides[0]].shared,
                           PAIR_SLOT);
    return side->wants ? PAIR_SLOT : KITH_SLOT_NONE;
}

/* One slot is sent from and received into here: the sender's is the shared
 * one. */
static void *on_slot(void *arg, uint32_t slot)
{
    struct pair_side *side = arg;
    assert_int_equal(slot, PAIR_SLOT);
    return side == &pair_sides[0] ? side->slot : side->inbox;
}

static void on_log(void *user, const char *line)
{
    (void)user;
    printf("  %s\n", line);
}

static void on_heartbeat(uv_timer_t *timer)
{
    (void)timer;
}

void pair_open_side(kith_id rank, bool shares, kith_ns delay_ns)
{
    struct pair_side *side = &pair_sides[rank];
    char name[16];
    snprintf(name, sizeof name, "peer-%u", (unsigned)rank);
    sessions_identity(&side->identity, name, &cluster);
    struct kith_certificate certificate =
        sessions_certificate(&side->identity, name, &cluster);
    certificate.rank = rank;
    certificate.not_before_s = (int64_t)time(NULL) - SESSIONS_DAY_S;
    certificate.not_after_s = (int64_t)time(NULL) + SESSIONS_DAY_S;
    sessions_certify(&side->identity, &certificate, &cluster);
    side->slot = pair_has_none ? calloc(1, PAIR_BYTES)
                               : kith_shared_take(&side->shared, PAIR_BYTES);
    side->inbox = calloc(1, PAIR_BYTES);
    assert_true(side->slot != NULL && side->inbox != NULL);
    side->wants = true;
    struct kith_transport_options options = {
        .members = members,
        .peers = PAIR_SIDES,
        .self = rank,
        .seed = 7,
        .identity = &side->identity,
        .trust = &cluster.trust,
        .suite = KITH_SUITE_CHACHAPOLY,
        .hello = {.rank = rank, .dim = PAIR_BYTES / 4, .model = "none"},
        .backend = kith_backend_find("naive32"),
        .payload_bytes = PAIR_BYTES,
        .model_bytes = PAIR_BYTES,
        .shared = shares ? &side->shared : NULL,
        .log_user = side,
        .on_log = on_log,
        .usual = {.latency_ns = delay_ns},
        .user = {.arg = side,
                 .up = on_up,
                 .down = on_down,
                 .message = on_message,
                 .inbox = on_inbox,
                 .slot = on_slot},
    };
    kith_peer_limits_default(&options.limits);
    options.limits.dial_first_ns = options.limits.dial_max_ns = KITH_MS;
    assert_int_equal(kith_transport_init(&side->transport, &pair_loop, &options,
                                         listeners[rank]),
                     KITH_OK);
    kith_transport_unhold(&side->transport);
}

int pair_setup(void **state)
{
    char error[KITH_PEER_ERROR_BYTES];
    (void)state;
    sessions_cluster(&cluster, "hand-over");
    memset(pair_sides, 0, sizeof pair_sides);
    assert_int_equal(uv_loop_init(&pair_loop), 0);
    uv_timer_init(&pair_loop, &heartbeat);
    uv_timer_start(&heartbeat, on_heartbeat, 1, 1);
    for (kith_id i = 0; i < PAIR_SIDES; i++)
        assert_int_equal(kith_peer_listen("127.0.0.1:0", &listeners[i],
                                          members[i].address, error),
                         KITH_OK);
    return 0;
}

int pair_teardown(void **state)
{
    (void)state;
    for (kith_id i = 0; i < PAIR_SIDES; i++)
        kith_transport_stop(&pair_sides[i].transport);
    uv_close((uv_handle_t *)&heartbeat, NULL);
    uv_run(&pair_loop, UV_RUN_DEFAULT);
    for (kith_id i = 0; i < PAIR_SIDES; i++) {
        kith_transport_free(&pair_sides[i].transport);
        kith_shared_free(&pair_sides[i].shared);
        free(pair_sides[i].inbox);
        if (pair_has_none)
            free(pair_sides[i].slot);
    }
    pair_has_none = false;
    return uv_loop_close(&pair_loop);
}

const struct kith_link *pair_link(kith_id rank)
{
    return pair_sides[rank].transport.members[!rank].link;
}

void pair_open(bool first, bool second, kith_ns delay_ns)
{
    pair_open_side(0, first, delay_ns);
    pair_open_side(1, second, delay_ns);
    kith_transport_dial(&pair_sides[0].transport, 1);
    RUN_UNTIL(pair_sides[0].up == 1 && pair_sides[1].up == 1);
}

void pair_fill(uint8_t seed)
{
    for (size_t i = 0; i < PAIR_BYTES; i++) /* floats that are finite */
        pair_sides[0].slot[i] = i % 4 == 3 ? 0x3f : (uint8_t)(seed + i % 251);
}

void pair_send(uint64_t step)
{
    const struct kith_message message = {.kind = KITH_MESSAGE_MODEL,
                                         .pattern = KITH_PATTERN_SWAP,
                                         .id = {.counter = step + 1},
                                         .mine = true,
                                         .step = step,
                                         .payload_bytes = PAIR_BYTES,
                                         .slot = PAIR_SLOT};
    kith_transport_send(&pair_sides[0].transport, 1, &message);
}

/* Bytes that the sender's sockets took for one model that arrives whole. */
uint64_t pair_cost(uint8_t seed)
{
    const uint64_t before = pair_sides[0].transport.net.bytes_sent;
    const unsigned models = pair_sides[1].models;
    pair_fill(seed);
    pair_send(seed);
    RUN_UNTIL(pair_sides[1].models == models + 1);
    assert_memory_equal(pair_sides[1].inbox, pair_sides[0].slot, PAIR_BYTES);
    return pair_sides[0].transport.net.bytes_sent - before;
}

unsigned pair_descriptors(void)
{
    unsigned count = 0;
    for (int fd = 0; fd < 1024; fd++)
        count += fcntl(fd, F_GETFD) != -1;
    return count;
}
