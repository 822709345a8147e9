/* One peer in a fuzz target; see victim.h. What src/peer/training_thread.c
 * defines is defined here: items run when the target says so. uv_hrtime() is
 * ours as well, and far ahead of the real clock, so that no timer of the system
 * expires by it. */
#include "tests/fuzz/victim.h"

#include <math.h>
#include <signal.h>
#include <sodium.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "kith/assert.h"
#include "kith/worker.h"
#include "src/protocol/session/aead.h"

#define FAR_AHEAD_NS (INT64_C(1) << 60)

static kith_ns clock_ns;
static int listener = -1;
static struct kith_member members[VICTIM_PEERS];

uint64_t uv_hrtime(void)
{
    return (uint64_t)clock_ns;
}

/* ---- in the place of the training thread */

enum kith_err kith_thread_start(struct kith_thread *thread, uv_loop_t *loop,
                                const struct kith_thread_options *options)
{
    (void)loop;
    thread->options = *options;
    return KITH_OK;
}

void kith_thread_submit(struct kith_thread *thread,
                        const struct kith_work *work)
{
    KITH_ASSERT(!thread->busy);
    thread->busy = true;
    thread->work = *work;
    kith_worker_prepare(thread->options.worker, &thread->work);
}

void kith_thread_finished(struct kith_thread *thread)
{
    (void)thread;
}

void kith_thread_slow(struct kith_thread *thread, double factor)
{
    thread->factor = factor;
}

void kith_thread_lie(struct kith_thread *thread, const struct kith_lie *lie)
{
    thread->lie = *lie;
}

void kith_thread_quiet(struct kith_thread *thread)
{
    (void)thread;
}

struct kith_thread_spent kith_thread_spent(struct kith_thread *thread)
{
    return thread->spent;
}

void kith_thread_stop(struct kith_thread *thread)
{
    thread->busy = false;
}

void victim_work(struct victim *victim)
{
    struct kith_thread *thread = &victim->driver.thread;
    struct kith_work_result result = {.kind = thread->work.kind};
    if (!thread->busy)
        return;
    result.finite = true;
    if (result.kind != KITH_WORK_SAVE)
        kith_worker_run(victim->driver.worker, &thread->work, &result);
    thread->busy = false;
    kith_driver_worked(&victim->driver, &result);
}

/* ---- what it says */

static void on_mark(void *user, kith_ns time_ns, const struct kith_mark *mark)
{
    struct victim *victim = user;
    (void)time_ns;
    KITH_ASSERT(mark->kind < KITH_MARK_COUNT);
    victim->marks[mark->kind]++;
}

static void on_log(void *user, const char *line)
{
    (void)user;
    KITH_ASSERT(strchr(line, '\n') == NULL);
    KITH_ASSERT(strlen(line) < KITH_PEER_LINE_BYTES);
}

static void (*deliver)(void *arg, kith_id from, const struct kith_message *m);

/* A model that is not finite, for which the node waits, is refused and counted,
 * as gated or, if it is none that may come, as bad; of other messages only
 * models are ever gated: late ones, and such with scalars that cannot be. */
static void on_message(void *arg, kith_id from, const struct kith_message *m)
{
    struct victim *victim = arg; /* the driver is its first member */
    struct kith_node_counters before, after;
    const bool model =
        m->kind == KITH_MESSAGE_MODEL && m->slot != KITH_SLOT_NONE;
    const bool awaited =
        model && kith_node_inbox(victim->driver.node, from, m) == m->slot;
    kith_node_counters(victim->driver.node, &before);
    deliver(arg, from, m);
    kith_node_counters(victim->driver.node, &after);
    victim->heard[m->kind]++;
    victim->models += model;
    if (victim->driver.phase > KITH_DRIVER_QUIETING)
        return; /* the node hears nothing any more */
    victim->spoilt += awaited && !m->finite;
    const uint64_t gated = after.gated - before.gated;
    KITH_ASSERT(gated <= (m->kind == KITH_MESSAGE_MODEL));
    KITH_ASSERT(gated + (after.bad - before.bad) == 1 || m->finite || !awaited);
}

/* ---- beginning and end */

static void open_node(struct victim *victim)
{
    struct kith_driver *driver = &victim->driver;
    const struct kith_experiment *experiment = victim->options.experiment;
    KITH_ASSERT(kith_experiment_node_config(experiment, 1000, &driver->topology,
                                            &driver->config) == KITH_OK);
    const struct kith_worker_config config = {
        .task = kith_experiment_task(experiment, NULL),
        .backend = experiment->backend,
        .self = VICTIM_SELF,
        .steps = 1000,
        .edges_max = kith_node_edges(&driver->config, VICTIM_SELF),
        .peers = experiment->peers,
    };
    KITH_ASSERT(kith_worker_open(&config, &driver->worker, victim->error) ==
                KITH_OK);
    driver->thread.options.worker = driver->worker;
    driver->node_memory = malloc(kith_node_size(&driver->config));
    KITH_ASSERT(driver->node_memory != NULL);
    driver->node =
        kith_node_init(driver->node_memory, &driver->config, VICTIM_SELF,
                       victim->options.incarnation, 0, victim->options.adopt);
}

static void open_transport(struct victim *victim)
{
    struct kith_driver *driver = &victim->driver;
    const struct kith_experiment *experiment = victim->options.experiment;
    struct kith_transport_options transport = {
        .members = members,
        .peers = VICTIM_PEERS,
        .self = VICTIM_SELF,
        .seed = experiment->seed,
        .identity = victim->options.identity,
        .trust = victim->options.trust,
        .suite = KITH_SUITE_CHACHAPOLY,
        .aead = &kith_aead_sodium,
        .limits = victim->options.limits,
        .usual = experiment->network.link,
        .experiment = experiment,
        .backend = experiment->backend,
        .payload_bytes = kith_worker_payload(driver->worker),
        .model_bytes = kith_worker_bytes(driver->worker),
        .slice_bytes = driver->config.slice_bytes,
        .opaque = kith_experiment_opaque(experiment),
        .format = experiment->gossip.format,
        .log_user = victim,
        .on_log = on_log,
        .user = kith_driver_user(driver),
    };
    deliver = transport.user.message;
    transport.user.message = on_message;
    const int fd = dup(listener);
    KITH_ASSERT(fd >= 0);
    KITH_ASSERT(kith_transport_init(&driver->transport, &driver->loop,
                                    &transport, fd) == KITH_OK);
}

static void deadline_passed(void *arg)
{
    kith_driver_tell(arg, KITH_EVENT_WAKE, KITH_NOBODY);
}

/* Dials fail at once: a member that is not connected has no address. */
static void listen_once(void)
{
    char error[KITH_PEER_ERROR_BYTES];
    signal(SIGPIPE, SIG_IGN); /* as kith_peer_run() */
    for (kith_id i = 0; i < VICTIM_PEERS; i++)
        snprintf(members[i].address, sizeof members[i].address, "nowhere");
    if (listener < 0)
        KITH_ASSERT(kith_peer_listen("127.0.0.1:0", &listener, NULL, error) ==
                    KITH_OK);
}

struct victim *victim_open(const struct kith_experiment *experiment,
                           const struct kith_identity *identity,
                           const struct kith_trust *trust, bool restarted)
{
    struct victim *victim = calloc(1, sizeof *victim);
    KITH_ASSERT(victim != NULL && experiment->peers == VICTIM_PEERS);
    struct kith_driver *driver = &victim->driver;
    clock_ns = FAR_AHEAD_NS;
    listen_once();
    for (kith_id i = 0; i < VICTIM_PEERS; i++)
        victim->wires[i] = -1;
    kith_peer_options_default(&victim->options);
    victim->options.experiment = experiment;
    victim->options.identity = identity;
    victim->options.trust = trust;
    victim->options.self = VICTIM_SELF;
    victim->options.adopt = restarted;
    victim->options.incarnation = restarted;
    victim->options.user = victim;
    victim->options.on_mark = on_mark;
    driver->options = &victim->options;
    driver->report = &victim->report;
    driver->error = victim->error;
    driver->last_loss = NAN;
    KITH_ASSERT(uv_loop_init(&driver->loop) == 0);
    open_node(victim);
    open_transport(victim);
    uv_timer_t *timers[] = {&driver->start, &driver->rows, &driver->limit,
                            &driver->grace};
    for (size_t i = 0; i < sizeof timers / sizeof *timers; i++) {
        uv_timer_init(&driver->loop, timers[i]);
        timers[i]->data = driver;
    }
    KITH_ASSERT(kith_timer_init(&driver->deadline, &driver->loop,
                                deadline_passed, driver) == KITH_OK);
    driver->start_ns = clock_ns;
    kith_driver_begin(driver);
    return victim;
}

/* Told to stop, a peer may have come to its end by itself. */
static void close_handles(struct kith_driver *driver)
{
    uv_timer_t *timers[] = {&driver->start, &driver->rows, &driver->limit,
                            &driver->grace};
    if (driver->phase == KITH_DRIVER_ENDED)
        return;
    for (size_t i = 0; i < sizeof timers / sizeof *timers; i++)
        uv_close((uv_handle_t *)timers[i], NULL);
    kith_timer_close(&driver->deadline);
    kith_transport_stop(&driver->transport);
}

/* Each count of the node has its mark. */
static void check_counters(const struct victim *victim)
{
    struct kith_node_counters counters;
    kith_node_counters(victim->driver.node, &counters);
    KITH_ASSERT(victim->marks[KITH_MARK_BAD] == counters.bad);
    KITH_ASSERT(victim->marks[KITH_MARK_GATED] == counters.gated);
    KITH_ASSERT(victim->marks[KITH_MARK_TORN] == counters.torn);
    KITH_ASSERT(victim->spoilt <= counters.gated + counters.bad);
}

void victim_close(struct victim *victim)
{
    struct kith_driver *driver = &victim->driver;
    check_counters(victim);
    close_handles(driver);
    uv_run(&driver->loop, UV_RUN_DEFAULT);
    kith_transport_free(&driver->transport);
    KITH_ASSERT(uv_loop_close(&driver->loop) == 0);
    for (kith_id i = 0; i < VICTIM_PEERS; i++)
        if (victim->wires[i] >= 0)
            close(victim->wires[i]);
    kith_worker_close(driver->worker);
    free(driver->node_memory);
    free(victim);
}

/* ---- links */

/* As transport_accept() leaves one whose handshake has come to its last
 * record. */
void victim_link(struct victim *victim, kith_id rank, const void *session)
{
    int ends[2];
    if (victim->driver.transport.stopping)
        return; /* it is closed as soon as it is accepted */
    struct kith_link *link = kith_link_new(&victim->driver.transport, false);
    KITH_ASSERT(link != NULL && rank < VICTIM_PEERS);
    KITH_ASSERT(socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK, 0, ends) == 0);
    KITH_ASSERT(uv_tcp_open(&link->socket.tcp, ends[0]) == 0);
    if (victim->wires[rank] >= 0)
        close(victim->wires[rank]);
    victim->wires[rank] = ends[1];
    link->session_memory = malloc(kith_session_size());
    KITH_ASSERT(link->session_memory != NULL);
    memcpy(link->session_memory, session, kith_session_size());
    link->session = link->session_memory;
    link->state = KITH_LINK_HANDSHAKE;
    snprintf(link->address, sizeof link->address, "127.0.0.%u:%u", rank + 1,
             rank);
}

/* The newest comes first in the list. */
struct kith_link *victim_find(const struct victim *victim, kith_id rank)
{
    char address[KITH_ADDRESS_BYTES];
    snprintf(address, sizeof address, "127.0.0.%u:%u", rank + 1, rank);
    for (struct kith_link *l = victim->driver.transport.links; l; l = l->next)
        if (l->state != KITH_LINK_CLOSED && strcmp(l->address, address) == 0)
            return l;
    return NULL;
}

bool victim_feed(struct victim *victim, kith_id rank, const uint8_t *bytes,
                 size_t size, size_t piece)
{
    KITH_NET_SCOPE(&victim->driver.transport.net);
    KITH_ASSERT(piece > 0);
    for (size_t at = 0; at < size;) {
        struct kith_link *link = victim_find(victim, rank);
        size_t room = 0;
        uint8_t *to;
        if (link == NULL || link->held)
            return false;
        link->socket.alloc(&link->socket, &to, &room);
        KITH_ASSERT(room > 0);
        const size_t most = room < piece ? room : piece;
        const size_t n = size - at < most ? size - at : most;
        memcpy(to, bytes + at, n);
        link->socket.read(&link->socket, (ssize_t)n);
        at += n;
    }
    return victim_find(victim, rank) != NULL;
}

void victim_break(struct victim *victim, kith_id rank)
{
    KITH_NET_SCOPE(&victim->driver.transport.net);
    struct kith_link *link = victim_find(victim, rank);
    if (link != NULL)
        link->socket.read(&link->socket, UV_EOF);
}

/* ---- time */

void victim_later(struct victim *victim, kith_ns ns, bool wake)
{
    const kith_ns deadline_ns = victim->driver.effects.deadline_ns;
    const kith_ns left_ns =
        deadline_ns == KITH_NEVER
            ? 0
            : deadline_ns - kith_driver_now(&victim->driver);
    KITH_ASSERT(ns >= 0);
    clock_ns += wake && left_ns > ns ? left_ns : ns;
    KITH_NET_SCOPE(&victim->driver.transport.net);
    if (wake)
        kith_driver_tell(&victim->driver, KITH_EVENT_WAKE, KITH_NOBODY);
}

void victim_turn(struct victim *victim)
{
    uv_run(&victim->driver.loop, UV_RUN_NOWAIT);
}
