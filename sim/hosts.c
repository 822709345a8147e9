/* See hosts.h. Each host has an array of what its cores run, a queue of threads
 * that wait for one, and one event, for the first job that ends or the first
 * thread whose slice is over while others wait. */
#include "sim/hosts.h"

#include "kith/affinity.h"
#include "kith/assert.h"
#include "kith/limits.h"
#include "kith/link_law.h"
#include "kith/rng.h"
#include "sim/world.h"

enum host_thread_kind { THREAD_WORKS, THREAD_SPEAKS };
#define THREADS 2u

enum host_state { HOST_SLEEPS, HOST_WAITS, HOST_RUNS };

/* What the thread that speaks is at. */
enum host_speech { SPEECH_NONE, SPEECH_OUT, SPEECH_IN, SPEECH_WORKED };

struct host_thread {
    kith_ns time_ns;  /* RUNS: when its job ends; WAITS: what is left of it */
    kith_ns slice_ns; /* RUNS: who waits may have its core from then on */
    uint32_t next;    /* WAITS: 1 + the next thread of the queue */
    enum host_state state;
};

struct host_chain {
    uint32_t first, last; /* packets; 0: none */
};

struct host_peer {
    struct host_thread threads[THREADS];
    struct host_chain out, in;
    kith_ns work_ns, least_ns; /* of the item */
    kith_ns began_ns;          /* KITH_NEVER: it has had no core yet */
    kith_ns padded_ns;         /* its period ends then; KITH_NEVER: no */
    enum host_speech speech;
    bool submits; /* an item waits until what was to be sent before has been */
    bool worked;  /* an item is over, and the loop has not come to that */
};

struct sim_host {
    kith_ns due_ns;       /* of the event; KITH_NEVER: none */
    uint32_t running;     /* cores that are not idle */
    uint32_t first, last; /* queue; 1 + thread */
    uint32_t awake;       /* 1 + thread whose job has just ended: it may go
                             on with the next one */
    uint32_t stamp;       /* of the event that is not stale */
    uint32_t woken;       /* by timers so far: their draws */
    uint32_t cores;
};

/* A host is a machine, or the share of one that its peers keep to. The last
 * machine may have fewer peers, and so other shares. */
struct sim_hosts {
    uint32_t cores;       /* of a host, at most */
    uint32_t peers, rest; /* on each of a full machine, of the last one */
    uint32_t full;        /* peers on full machines */
    struct sim_host *hosts;
    uint32_t *running;    /* (hosts x cores): threads */
    struct host_peer *at; /* (machines) */
};

/* What is left of a job is no more slices than this: a long one's are longer,
 * so that steps of days are not made of milliseconds. */
#define SLICES 256

/* Sealed within one turn of a real peer's loop: KITH_BURSTS_MIN of
 * src/peer/transport.h. */
#define LOOP_BYTES (3u * KITH_BURST_BYTES)

/* Of an item whose period is over, in place of a stamp. */
#define PADDED SIM_VALUE_MAX

/* Of a machine with so many peers; cores beyond their threads have nothing to
 * do. */
static struct kith_core_share share_of(const struct kith_experiment *experiment,
                                       uint32_t peers)
{
    struct kith_core_share share =
        kith_core_share(experiment, peers, experiment->hosts.cores);
    KITH_ASSERT(peers % share.peers == 0);
    if (share.cores / THREADS >= share.peers)
        share.cores = THREADS * share.peers;
    return share;
}

enum kith_err sim_hosts_open(struct sim_world *world)
{
    const struct kith_experiment *experiment = world->experiment;
    if (experiment->hosts.cores == 0)
        return KITH_OK;
    KITH_ASSERT(world->machine_count == world->peer_count);
    const uint32_t all = world->peer_count;
    const uint32_t most =
        experiment->hosts.peers == 0 || experiment->hosts.peers > all
            ? all
            : experiment->hosts.peers;
    struct sim_hosts *hosts = sim_alloc(world, 1, sizeof *hosts);
    if (!hosts)
        return KITH_ENOMEM;
    world->hosts = hosts;
    hosts->full = all - all % most;
    const struct kith_core_share share = share_of(experiment, most);
    const struct kith_core_share rest =
        hosts->full < all ? share_of(experiment, all - hosts->full) : share;
    hosts->peers = share.peers;
    hosts->rest = rest.peers;
    hosts->cores = rest.cores > share.cores ? rest.cores : share.cores;
    const uint32_t of_full = hosts->full / share.peers;
    const uint32_t count = of_full + (all - hosts->full) / rest.peers;
    hosts->hosts = sim_alloc(world, count, sizeof *hosts->hosts);
    hosts->running =
        sim_alloc(world, (size_t)count * hosts->cores, sizeof *hosts->running);
    hosts->at = sim_alloc(world, all, sizeof *hosts->at);
    if (!hosts->hosts || !hosts->running || !hosts->at)
        return KITH_ENOMEM;
    for (uint32_t i = 0; i < count; i++) {
        hosts->hosts[i].due_ns = KITH_NEVER;
        hosts->hosts[i].cores = i < of_full ? share.cores : rest.cores;
    }
    return KITH_OK;
}

/* ---- cores and the queue of those who wait for one */

static struct sim_host *host_of(const struct sim_hosts *hosts, kith_id peer)
{
    KITH_DEBUG_ASSERT(hosts->peers > 0 && hosts->rest > 0);
    return peer < hosts->full
               ? &hosts->hosts[peer / hosts->peers]
               : &hosts->hosts[hosts->full / hosts->peers +
                               (peer - hosts->full) / hosts->rest];
}

static uint32_t *running_of(const struct sim_hosts *hosts,
                            const struct sim_host *host)
{
    KITH_DEBUG_ASSERT(host->running <= host->cores);
    return &hosts->running[(size_t)(host - hosts->hosts) * hosts->cores];
}

static struct host_thread *thread_at(const struct sim_hosts *hosts,
                                     uint32_t thread)
{
    return &hosts->at[thread / THREADS].threads[thread % THREADS];
}

static void enqueue(const struct sim_hosts *hosts, struct sim_host *host,
                    uint32_t thread)
{
    struct host_thread *waits = thread_at(hosts, thread);
    KITH_DEBUG_ASSERT(waits->state != HOST_WAITS);
    waits->state = HOST_WAITS;
    waits->next = 0;
    if (host->first == 0)
        host->first = thread + 1;
    else
        thread_at(hosts, host->last - 1)->next = thread + 1;
    host->last = thread + 1;
}

static uint32_t dequeue(const struct sim_hosts *hosts, struct sim_host *host)
{
    KITH_DEBUG_ASSERT(host->first != 0);
    const uint32_t thread = host->first - 1;
    host->first = thread_at(hosts, thread)->next;
    return thread;
}

/* The thread has the i-th core now, and goes on with its job. */
static void run_on(struct sim_world *world, struct sim_host *host, uint32_t i,
                   uint32_t thread)
{
    const struct sim_hosts *hosts = world->hosts;
    struct host_peer *at = &hosts->at[thread / THREADS];
    struct host_thread *runs = thread_at(hosts, thread);
    const kith_ns from_ns = sim_time(world);
    KITH_ASSERT(i < host->running && runs->state != HOST_RUNS);
    running_of(hosts, host)[i] = thread;
    runs->state = HOST_RUNS;
    kith_ns slice_ns = world->experiment->hosts.slice_ns;
    if (slice_ns < runs->time_ns / SLICES)
        slice_ns = runs->time_ns / SLICES;
    runs->time_ns = kith_ns_add(from_ns, runs->time_ns);
    runs->slice_ns = kith_ns_add(from_ns, slice_ns);
    if (thread % THREADS == THREAD_WORKS && at->began_ns == KITH_NEVER)
        at->began_ns = from_ns;
}

/* The i-th core is free for whoever waits. */
static void leave_core(struct sim_world *world, struct sim_host *host,
                       uint32_t i)
{
    const struct sim_hosts *hosts = world->hosts;
    uint32_t *running = running_of(hosts, host);
    KITH_ASSERT(i < host->running);
    if (host->first != 0) {
        run_on(world, host, i, dequeue(hosts, host));
        return;
    }
    running[i] = running[--host->running];
}

/* The event for what happens first on the host; one for another time is stale.
 */
static void expect(struct sim_world *world, kith_id peer)
{
    const struct sim_hosts *hosts = world->hosts;
    struct sim_host *host = host_of(hosts, peer);
    const uint32_t *running = running_of(hosts, host);
    kith_ns due_ns = KITH_NEVER;
    if (host->awake != 0) /* jobs end one after another: no event until then */
        return;
    for (uint32_t i = 0; i < host->running; i++) {
        const struct host_thread *runs = thread_at(hosts, running[i]);
        due_ns = runs->time_ns < due_ns ? runs->time_ns : due_ns;
        if (host->first != 0 && runs->slice_ns < due_ns)
            due_ns = runs->slice_ns;
    }
    if (due_ns < sim_time(world)) /* a slice that was over when nobody waited */
        due_ns = sim_time(world);
    if (due_ns == host->due_ns)
        return;
    host->due_ns = due_ns;
    host->stamp = (host->stamp + 1) % PADDED;
    if (due_ns != KITH_NEVER)
        sim_schedule(world, peer, peer, due_ns, SIM_EVENT_HOST, host->stamp);
}

static void begin(struct sim_world *world, kith_id peer,
                  enum host_thread_kind kind, kith_ns time_ns)
{
    const struct sim_hosts *hosts = world->hosts;
    struct sim_host *host = host_of(hosts, peer);
    const uint32_t thread = peer * THREADS + (uint32_t)kind;
    struct host_thread *begins = thread_at(hosts, thread);
    KITH_ASSERT(time_ns >= 0);
    if (host->awake == thread + 1) { /* it has its core, and its slice */
        KITH_ASSERT(begins->state == HOST_RUNS);
        begins->time_ns = kith_ns_add(sim_time(world), time_ns);
        host->awake = UINT32_MAX;
        return;
    }
    KITH_ASSERT(begins->state == HOST_SLEEPS);
    begins->time_ns = time_ns;
    /* At once: what it takes to wake a thread is in what the message or the
     * hand-over takes, and a period is longer by what its timer is late. */
    if (host->running < host->cores)
        run_on(world, host, host->running++, thread);
    else
        enqueue(hosts, host, thread);
    expect(world, peer);
}

/* ---- items */

kith_ns sim_host_step_time(const struct sim_world *world, kith_id peer,
                           kith_ns step_ns)
{
    const struct kith_experiment *experiment = world->experiment;
    KITH_ASSERT(peer < world->peer_count && experiment->compute.step_ns > 0);
    return experiment->hosts.step_ns == 0
               ? step_ns
               : kith_ns_from((double)experiment->hosts.step_ns *
                              (double)step_ns /
                              (double)experiment->compute.step_ns);
}

kith_ns sim_host_merge_time(const struct sim_world *world)
{
    const struct kith_experiment *experiment = world->experiment;
    KITH_DEBUG_ASSERT(world->hosts != NULL);
    const kith_ns time_ns = kith_ns_add(
        experiment->compute.merge_ns,
        kith_line_time(world->vector_bytes, experiment->hosts.merge_bits));
    /* What is handed over is over later. */
    return time_ns == 0 && experiment->hosts.handover_ns > 0 ? 1 : time_ns;
}

static void submit(struct sim_world *world, kith_id peer)
{
    struct host_peer *at = &world->hosts->at[peer];
    KITH_ASSERT(at->out.first == 0 || at->speech == SPEECH_OUT);
    at->submits = false;
    at->began_ns = KITH_NEVER;
    begin(world, peer, THREAD_WORKS, at->work_ns);
}

/* The loop sends first what the same event made it send. */
void sim_host_work(struct sim_world *world, kith_id peer, kith_ns time_ns,
                   kith_ns least_ns)
{
    struct host_peer *at = &world->hosts->at[peer];
    KITH_ASSERT(least_ns >= 0 && !at->submits);
    at->work_ns = time_ns;
    at->least_ns = least_ns;
    at->padded_ns = KITH_NEVER;
    at->submits = true;
    if (at->out.first == 0)
        submit(world, peer);
}

/* ---- messages */

bool sim_host_charges_messages(const struct sim_world *world)
{
    const struct kith_experiment *experiment = world->experiment;
    return world->hosts && (experiment->hosts.message_ns > 0 ||
                            experiment->hosts.wire_bits > 0);
}

static kith_ns message_time(const struct sim_world *world, uint32_t packet)
{
    const struct kith_experiment *experiment = world->experiment;
    KITH_DEBUG_ASSERT(sim_host_charges_messages(world));
    return kith_ns_add(
        experiment->hosts.message_ns,
        kith_line_time(
            sim_message_bytes(&sim_packet_at(world, packet)->message),
            experiment->hosts.wire_bits));
}

static void append(struct sim_world *world, struct host_chain *chain,
                   uint32_t packet)
{
    uint32_t end = chain->first == 0 ? 0 : chain->last;
    sim_packet_append(world, &end, packet);
    if (chain->first == 0)
        chain->first = packet;
    chain->last = packet;
}

/* Is it the last one, and longer than what the loop seals in one go? The rest
 * of such a model leaves from later turns of it. */
static bool leaves_in_parts(const struct sim_world *world,
                            const struct host_chain *chain)
{
    const struct sim_packet *packet = sim_packet_at(world, chain->first);
    return chain->first == chain->last &&
           packet->message.payload_bytes > LOOP_BYTES;
}

/* What the loop does next: what an event made it send, then the news of an item
 * that is over, then what has come in. */
static void speak(struct sim_world *world, kith_id peer)
{
    struct host_peer *at = &world->hosts->at[peer];
    KITH_ASSERT(at->speech == SPEECH_NONE);
    if (at->out.first != 0) {
        at->speech = SPEECH_OUT;
        begin(world, peer, THREAD_SPEAKS, message_time(world, at->out.first));
        if (at->submits && leaves_in_parts(world, &at->out))
            submit(world, peer);
    } else if (at->worked) {
        at->speech = SPEECH_WORKED;
        begin(world, peer, THREAD_SPEAKS, world->experiment->hosts.handover_ns);
    } else if (at->in.first != 0) {
        at->speech = SPEECH_IN;
        begin(world, peer, THREAD_SPEAKS, message_time(world, at->in.first));
    }
}

/* Is the thread in the middle of something, or about to go on? */
static bool is_speaking(const struct sim_hosts *hosts, kith_id peer)
{
    KITH_DEBUG_ASSERT(hosts != NULL);
    return hosts->at[peer].speech != SPEECH_NONE ||
           host_of(hosts, peer)->awake == peer * THREADS + THREAD_SPEAKS + 1;
}

void sim_host_message(struct sim_world *world, kith_id peer, uint32_t packet)
{
    struct host_peer *at = &world->hosts->at[peer];
    KITH_ASSERT(peer < world->peer_count);
    append(world,
           sim_packet_at(world, packet)->from == peer ? &at->out : &at->in,
           packet);
    if (!is_speaking(world->hosts, peer))
        speak(world, peer);
}

/* ---- ends of jobs */

/* When a thread that sleeps for the rest of its period goes on: timers are
 * late, and a core that is idle is slow. Drawn, so that peers with equal steps
 * do not stay in step, which real ones never do. */
static kith_ns wakes_at(const struct sim_world *world, struct sim_host *host,
                        kith_ns period_ns)
{
    const struct kith_experiment *experiment = world->experiment;
    struct kith_rng rng;
    KITH_DEBUG_ASSERT(period_ns > sim_time(world));
    if (experiment->hosts.wake_ns == 0)
        return period_ns;
    kith_rng_init(&rng, experiment->seed, KITH_STREAM_HOST,
                  (uint64_t)(host - world->hosts->hosts));
    rng.block = host->woken++;
    return kith_ns_add(period_ns,
                       kith_rng_exponential(&rng, experiment->hosts.wake_ns));
}

static void end_work(struct sim_world *world, kith_id peer)
{
    struct host_peer *at = &world->hosts->at[peer];
    const kith_ns now_ns = sim_time(world);
    const kith_ns least_ns = kith_ns_add(at->began_ns, at->least_ns);
    KITH_DEBUG_ASSERT(at->began_ns <= now_ns);
    const bool sleeps = now_ns < least_ns;
    const kith_ns ends_ns =
        sleeps ? wakes_at(world, host_of(world->hosts, peer), least_ns)
               : now_ns;
    if (world->experiment->hosts.handover_ns == 0) {
        sim_work_ends(world, peer, ends_ns, ends_ns - at->began_ns);
    } else if (sleeps) {
        at->padded_ns = ends_ns;
        sim_schedule(world, peer, peer, ends_ns, SIM_EVENT_HOST, PADDED);
    } else {
        at->worked = true;
        if (!is_speaking(world->hosts, peer))
            speak(world, peer);
    }
}

/* The period is over: the thread wakes up. */
static void end_pad(struct sim_world *world, kith_id peer)
{
    struct host_peer *at = &world->hosts->at[peer];
    KITH_ASSERT(world->experiment->hosts.handover_ns > 0);
    if (at->padded_ns != sim_time(world))
        return;
    at->padded_ns = KITH_NEVER;
    begin(world, peer, THREAD_WORKS, 0);
}

static uint32_t take_first(struct sim_world *world, struct host_chain *chain)
{
    const uint32_t packet = sim_packet_next(world, &chain->first);
    KITH_ASSERT(packet != 0 && (chain->first == 0) == (packet == chain->last));
    return packet;
}

static void end_speech(struct sim_world *world, kith_id peer)
{
    struct host_peer *at = &world->hosts->at[peer];
    const enum host_speech speech = at->speech;
    at->speech = SPEECH_NONE;
    switch (speech) {
    case SPEECH_OUT:
        sim_message_handled(world, peer, take_first(world, &at->out));
        if (at->submits && at->out.first == 0)
            submit(world, peer);
        break;
    case SPEECH_IN:
        sim_message_handled(world, peer, take_first(world, &at->in));
        break;
    case SPEECH_WORKED:
        at->worked = false;
        sim_work_ended(world, peer, sim_time(world) - at->began_ns);
        break;
    case SPEECH_NONE:
        KITH_ASSERT(speech != SPEECH_NONE);
    }
    if (at->speech == SPEECH_NONE)
        speak(world, peer);
}

/* ---- events */

static void free_chain(struct sim_world *world, struct host_chain *chain)
{
    sim_packet_free_all(world, &chain->first);
    chain->last = 0;
}

static void take_from_queue(const struct sim_hosts *hosts,
                            struct sim_host *host, uint32_t thread)
{
    uint32_t kept = host->first;
    host->first = 0;
    while (kept != 0) { /* the order stays */
        const uint32_t other = kept - 1;
        kept = thread_at(hosts, other)->next;
        thread_at(hosts, other)->state = HOST_SLEEPS;
        if (other != thread)
            enqueue(hosts, host, other);
    }
}

static void end_thread(struct sim_world *world, struct sim_host *host,
                       uint32_t thread)
{
    const struct sim_hosts *hosts = world->hosts;
    const uint32_t *running = running_of(hosts, host);
    struct host_thread *ends = thread_at(hosts, thread);
    if (ends->state == HOST_WAITS)
        take_from_queue(hosts, host, thread);
    for (uint32_t i = 0; ends->state == HOST_RUNS && i < host->running; i++)
        if (running[i] == thread) {
            ends->state = HOST_SLEEPS;
            leave_core(world, host, i);
        }
    KITH_ASSERT(ends->state == HOST_SLEEPS);
}

void sim_host_crash(struct sim_world *world, kith_id peer)
{
    struct sim_hosts *hosts = world->hosts;
    if (!hosts)
        return;
    struct sim_host *host = host_of(hosts, peer);
    struct host_peer *at = &hosts->at[peer];
    KITH_ASSERT(host->awake == 0); /* a fault is an event of its own */
    for (uint32_t i = 0; i < THREADS; i++)
        end_thread(world, host, peer * THREADS + i);
    free_chain(world, &at->out);
    free_chain(world, &at->in);
    at->padded_ns = KITH_NEVER;
    at->speech = SPEECH_NONE;
    at->submits = at->worked = false;
    expect(world, peer);
}

/* The job of the thread on the i-th core is over; it may begin another, and
 * others may wake up while it still has its core. */
static void end_job(struct sim_world *world, struct sim_host *host, uint32_t i)
{
    const struct sim_hosts *hosts = world->hosts;
    const uint32_t thread = running_of(hosts, host)[i];
    KITH_ASSERT(i < host->running);
    host->awake = thread + 1;
    if (thread % THREADS == THREAD_WORKS)
        end_work(world, thread / THREADS);
    else
        end_speech(world, thread / THREADS);
    if (host->awake == thread + 1) {
        thread_at(hosts, thread)->state = HOST_SLEEPS;
        leave_core(world, host, i);
    }
    host->awake = UINT32_MAX;
}

/* The thread whose job ends first, now; the array's end: none. */
static uint32_t next_end(const struct sim_world *world,
                         const struct sim_host *host)
{
    const struct sim_hosts *hosts = world->hosts;
    const uint32_t *running = running_of(hosts, host);
    uint32_t best = host->running;
    for (uint32_t i = 0; i < host->running; i++)
        if (thread_at(hosts, running[i])->time_ns <= sim_time(world) &&
            (best == host->running || running[i] < running[best]))
            best = i;
    return best;
}

static void end_slices(struct sim_world *world, struct sim_host *host)
{
    const struct sim_hosts *hosts = world->hosts;
    for (uint32_t i = 0; i < host->running && host->first != 0; i++) {
        const uint32_t thread = running_of(hosts, host)[i];
        struct host_thread *runs = thread_at(hosts, thread);
        if (runs->slice_ns > sim_time(world))
            continue;
        runs->time_ns -= sim_time(world);
        enqueue(hosts, host, thread);
        run_on(world, host, i, dequeue(hosts, host));
    }
}

void sim_host_step(struct sim_world *world, kith_id peer, uint32_t stamp)
{
    const struct sim_hosts *hosts = world->hosts;
    struct sim_host *host = host_of(hosts, peer);
    KITH_ASSERT(host->awake == 0);
    if (stamp == PADDED) {
        end_pad(world, peer);
        return;
    }
    if (stamp != host->stamp)
        return;
    host->due_ns = KITH_NEVER;
    for (uint32_t i = next_end(world, host); i < host->running;
         i = next_end(world, host))
        end_job(world, host, i);
    end_slices(world, host);
    host->awake = 0;
    expect(world, peer);
}
