/* See hosts.h. Each host has a heap of jobs by when they end, in its own count
 * of service, and one event, for the first of them: arrivals and departures
 * change how fast the count runs, not the order. */
#include "sim/hosts.h"

#include <math.h>

#include "kith/assert.h"
#include "kith/link_law.h"
#include "sim/world.h"

enum host_thread { THREAD_WORKS, THREAD_SPEAKS };
#define THREADS 2u

struct host_job {
    double ends; /* in the host's count */
    kith_id peer;
    enum host_thread thread;
};

struct sim_host {
    double served;         /* what each job had since the host was last idle */
    kith_ns at_ns, due_ns; /* of `served`; of the event, KITH_NEVER: none */
    uint32_t count;        /* of its jobs, a heap */
    bool steps;            /* jobs end one after another: no event until then */
    uint32_t stamp;        /* of the event that is not stale */
};

struct host_peer {
    kith_ns began_ns, least_ns; /* of the item */
    uint32_t first, last;       /* chain of messages; 1 + index */
};

struct sim_hosts {
    double cores;
    uint32_t peers; /* on each */
    struct sim_host *hosts;
    struct host_job *jobs; /* (machines x THREADS), by host */
    struct host_peer *at;  /* (machines) */
};

enum kith_err sim_hosts_open(struct sim_world *world)
{
    const struct kith_experiment *experiment = world->experiment;
    if (experiment->hosts.cores == 0)
        return KITH_OK;
    KITH_ASSERT(world->machine_count == world->peer_count);
    const uint32_t all = world->peer_count;
    struct sim_hosts *hosts = sim_alloc(world, 1, sizeof *hosts);
    if (!hosts)
        return KITH_ENOMEM;
    world->hosts = hosts;
    hosts->cores = experiment->hosts.cores;
    hosts->peers = experiment->hosts.peers == 0 || experiment->hosts.peers > all
                       ? all
                       : experiment->hosts.peers;
    const uint32_t count = (all + hosts->peers - 1) / hosts->peers;
    hosts->hosts = sim_alloc(world, count, sizeof *hosts->hosts);
    hosts->jobs =
        sim_alloc(world, (size_t)count * hosts->peers, /* whole hosts */
                  THREADS * sizeof *hosts->jobs);
    hosts->at = sim_alloc(world, all, sizeof *hosts->at);
    if (!hosts->hosts || !hosts->jobs || !hosts->at)
        return KITH_ENOMEM;
    for (uint32_t i = 0; i < count; i++)
        hosts->hosts[i].due_ns = KITH_NEVER;
    return KITH_OK;
}

/* ---- a host's jobs: a binary heap; who comes first among those that end at
 * once is a matter of ranks */

static bool is_before(const struct host_job *a, const struct host_job *b)
{
    KITH_DEBUG_ASSERT(a->ends >= 0 && b->ends >= 0);
    if (a->ends != b->ends)
        return a->ends < b->ends;
    return a->peer != b->peer ? a->peer < b->peer : a->thread < b->thread;
}

static void swap(struct host_job *a, struct host_job *b)
{
    KITH_DEBUG_ASSERT(a != b);
    const struct host_job kept = *a;
    *a = *b;
    *b = kept;
}

static void sift_up(struct host_job *jobs, uint32_t at)
{
    while (at > 0 && is_before(&jobs[at], &jobs[(at - 1) / 2])) {
        swap(&jobs[at], &jobs[(at - 1) / 2]);
        at = (at - 1) / 2;
    }
}

static void sift_down(struct host_job *jobs, uint32_t count, uint32_t at)
{
    KITH_DEBUG_ASSERT(at < count);
    for (;;) {
        uint32_t least = at;
        for (uint32_t child = 2 * at + 1; child <= 2 * at + 2; child++)
            if (child < count && is_before(&jobs[child], &jobs[least]))
                least = child;
        if (least == at)
            return;
        swap(&jobs[at], &jobs[least]);
        at = least;
    }
}

static void take_out(struct sim_host *host, struct host_job *jobs, uint32_t at)
{
    KITH_ASSERT(at < host->count);
    jobs[at] = jobs[--host->count];
    if (at == host->count)
        return;
    sift_down(jobs, host->count, at);
    sift_up(jobs, at);
}

/* ---- service */

static uint32_t host_of(const struct sim_hosts *hosts, kith_id peer)
{
    KITH_DEBUG_ASSERT(hosts->peers > 0);
    return peer / hosts->peers;
}

static struct host_job *jobs_of(const struct sim_hosts *hosts, kith_id peer)
{
    return &hosts->jobs[(size_t)host_of(hosts, peer) * hosts->peers * THREADS];
}

static double speed(const struct sim_hosts *hosts, const struct sim_host *host)
{
    KITH_DEBUG_ASSERT(hosts->cores >= 1);
    return host->count <= hosts->cores ? 1 : hosts->cores / host->count;
}

static void advance(const struct sim_hosts *hosts, struct sim_host *host,
                    kith_ns now_ns)
{
    KITH_ASSERT(now_ns >= host->at_ns);
    if (host->count == 0)
        host->served = 0;
    else
        host->served += (double)(now_ns - host->at_ns) * speed(hosts, host);
    host->at_ns = now_ns;
}

/* The event that is due for the first job; one for another time is stale. */
static void expect(struct sim_world *world, kith_id peer)
{
    struct sim_hosts *hosts = world->hosts;
    struct sim_host *host = &hosts->hosts[host_of(hosts, peer)];
    kith_ns due_ns = KITH_NEVER;
    KITH_DEBUG_ASSERT(host->at_ns == sim_time(world));
    if (host->steps)
        return;
    if (host->count > 0) {
        const double left = jobs_of(hosts, peer)->ends - host->served;
        const double wait_ns = left > 0 ? ceil(left / speed(hosts, host)) : 0;
        due_ns = kith_ns_add(host->at_ns, kith_ns_from(wait_ns));
        due_ns = due_ns < KITH_NEVER ? due_ns : KITH_NEVER - 1; /* not none */
    }
    if (due_ns == host->due_ns)
        return;
    host->due_ns = due_ns;
    host->stamp = (host->stamp + 1) & SIM_VALUE_MAX;
    if (due_ns != KITH_NEVER)
        sim_schedule(world, peer, peer, due_ns, SIM_EVENT_HOST, host->stamp);
}

static void begin(struct sim_world *world, kith_id peer,
                  enum host_thread thread, kith_ns time_ns)
{
    struct sim_hosts *hosts = world->hosts;
    struct sim_host *host = &hosts->hosts[host_of(hosts, peer)];
    struct host_job *jobs = jobs_of(hosts, peer);
    KITH_ASSERT(host->count < hosts->peers * THREADS && time_ns >= 0);
    advance(hosts, host, sim_time(world));
    jobs[host->count] =
        (struct host_job){host->served + (double)time_ns, peer, thread};
    sift_up(jobs, host->count++);
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
    KITH_DEBUG_ASSERT(world->hosts != NULL);
    return kith_ns_add(world->experiment->compute.merge_ns,
                       kith_line_time(world->vector_bytes,
                                      world->experiment->hosts.merge_bits));
}

void sim_host_work(struct sim_world *world, kith_id peer, kith_ns time_ns,
                   kith_ns least_ns)
{
    struct host_peer *at = &world->hosts->at[peer];
    KITH_ASSERT(least_ns >= 0);
    at->began_ns = sim_time(world);
    at->least_ns = least_ns;
    begin(world, peer, THREAD_WORKS, time_ns);
}

static void end_work(struct sim_world *world, kith_id peer)
{
    const struct host_peer *at = &world->hosts->at[peer];
    const kith_ns least_ns = at->began_ns + at->least_ns;
    const kith_ns now_ns = sim_time(world);
    KITH_DEBUG_ASSERT(at->began_ns <= now_ns);
    const kith_ns ends_ns = now_ns > least_ns ? now_ns : least_ns;
    sim_work_ends(world, peer, ends_ns, ends_ns - at->began_ns);
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

void sim_host_message(struct sim_world *world, kith_id peer, uint32_t packet)
{
    struct host_peer *at = &world->hosts->at[peer];
    KITH_ASSERT(peer < world->peer_count);
    if (at->first == 0) {
        sim_packet_append(world, &at->first, packet);
        begin(world, peer, THREAD_SPEAKS, message_time(world, packet));
    } else {
        uint32_t chain = at->last;
        sim_packet_append(world, &chain, packet);
    }
    at->last = packet;
}

static void end_speech(struct sim_world *world, kith_id peer)
{
    struct host_peer *at = &world->hosts->at[peer];
    const uint32_t packet = sim_packet_next(world, &at->first);
    KITH_ASSERT(packet != 0 && (at->first == 0) == (packet == at->last));
    if (at->first != 0)
        begin(world, peer, THREAD_SPEAKS, message_time(world, at->first));
    sim_message_handled(world, peer, packet);
}

/* ---- events */

void sim_host_crash(struct sim_world *world, kith_id peer)
{
    struct sim_hosts *hosts = world->hosts;
    if (!hosts)
        return;
    struct sim_host *host = &hosts->hosts[host_of(hosts, peer)];
    struct host_job *jobs = jobs_of(hosts, peer);
    KITH_ASSERT(!host->steps); /* a fault is an event of its own */
    advance(hosts, host, sim_time(world));
    for (uint32_t i = 0; i < host->count;)
        if (jobs[i].peer == peer) {
            take_out(host, jobs, i);
            i = 0; /* the heap has moved */
        } else {
            i++;
        }
    sim_packet_free_all(world, &hosts->at[peer].first);
    expect(world, peer);
}

/* Jobs that end now, to half a nanosecond; each may begin another. */
void sim_host_step(struct sim_world *world, kith_id peer, uint32_t stamp)
{
    struct sim_hosts *hosts = world->hosts;
    struct sim_host *host = &hosts->hosts[host_of(hosts, peer)];
    struct host_job *jobs = jobs_of(hosts, peer);
    KITH_ASSERT(!host->steps);
    if (stamp != host->stamp)
        return;
    advance(hosts, host, sim_time(world));
    host->due_ns = KITH_NEVER;
    host->steps = true;
    while (host->count > 0 && jobs[0].ends <= host->served + 0.5) {
        const struct host_job job = jobs[0];
        take_out(host, jobs, 0);
        if (job.thread == THREAD_WORKS)
            end_work(world, job.peer);
        else
            end_speech(world, job.peer);
    }
    host->steps = false;
    expect(world, peer);
}
